"""`sdxl`: any SDXL checkpoint, with adapters, negative prompts and prompts of any length."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from katha.protocols import Capabilities, FrameRequest
from katha.renderers.diffusion.images import frame_name, generator_of
from katha.renderers.diffusion.memory import Loaded, Rung
from katha.renderers.diffusion.prompt_encoding import encode_sdxl, frame_prompt, pad_sdxl, refuse_long
from katha.renderers.diffusion.renderer import DiffusionRenderer, Job, Settings

if TYPE_CHECKING:
    from torch import Tensor


class SdxlRenderer(DiffusionRenderer):
    """Stable Diffusion XL on this machine: `sdxl:FOLDER`, `sdxl:FILE.safetensors` or `sdxl:OWNER/NAME`."""

    family_name = "sdxl"
    renderer_name = "sdxl"
    capabilities = Capabilities(default_size=(1024, 1024), size_multiple=8)

    def __init__(
        self,
        argument: str | None = None,
        *,
        revision: str | None = None,
        variant: str | None = None,
        base: str | None = None,
        download: bool = False,
        device: str | None = None,
        dtype: str | None = None,
        memory: Rung = "full",
        vae_tiling: bool = False,
        steps: int | None = None,
        guidance: float | None = None,
        scheduler: str | None = None,
        lora: tuple[str, ...] = (),
        batch: int = 1,
        any_size: bool = False,
        negative: str = "",
        long_prompts: Literal["chunk", "refuse"] = "chunk",
    ) -> None:
        """Find the checkpoint; nothing is loaded yet.

        negative: what no frame shall show, added to the plan's own. long_prompts: `chunk` reads a prompt of more than
        75 tokens in pieces, `refuse` stops. scheduler: `ddim`, `euler`, ... instead of the checkpoint's own.

        Raises:
            UsageError: no such checkpoint, adapter or option value. MissingExtraError: a package is missing.
        """
        super().__init__(
            argument,
            Settings(
                revision=revision, variant=variant, base=base, download=download, device=device, dtype=dtype,
                memory=memory, vae_tiling=vae_tiling, steps=steps, guidance=guidance, scheduler=scheduler,
                lora=tuple(lora), batch=batch, any_size=any_size,
            ),
        )  # fmt: skip
        self.negative, self.long_prompts = negative, long_prompts

    def spec(self) -> Mapping[str, Any]:
        """Weights, adapters, settings and versions: everything that can change the pixels."""
        return {**super().spec(), "negative": self.negative, "long_prompts": self.long_prompts}

    def check_prompt(self, request: FrameRequest) -> None:
        """With `long_prompts=refuse`, refuse what one piece cannot hold."""
        if self.long_prompts == "refuse":
            for text in (frame_prompt(request.prompt, request.style), self.negative_of(request) or ""):
                refuse_long(self._tokenizer, text, self.prompt_tokens, frame_name(request))

    def encode(self, loaded: Loaded, request: FrameRequest) -> Mapping[str, Tensor]:
        """Embeddings of the prompt and of what shall not be seen, of one length."""
        import torch

        pipe = loaded.pipe

        def read(text: str) -> Mapping[str, Tensor]:
            return loaded.prompts.get(text, lambda prompt: encode_sdxl(pipe, prompt))

        wanted = read(frame_prompt(request.prompt, request.style))
        negative = self.negative_of(request)
        if negative is None and pipe.config.force_zeros_for_empty_prompt:
            unwanted = {name: torch.zeros_like(value) for name, value in wanted.items()}
        else:
            unwanted = dict(read(negative or ""))
        length = max(wanted["embeds"].shape[1], unwanted["embeds"].shape[1])
        return {
            "prompt_embeds": pad_sdxl(pipe, wanted["embeds"], length),
            "negative_prompt_embeds": pad_sdxl(pipe, unwanted["embeds"], length),
            "pooled_prompt_embeds": wanted["pooled"],
            "negative_pooled_prompt_embeds": unwanted["pooled"],
        }

    def draw(self, pipe: Any, jobs: Sequence[Job]) -> Tensor:
        """One batch through the pipeline; every frame has its own noise."""
        return draw_embeds(pipe, jobs, self.steps, guidance_scale=self.guidance)

    def negative_of(self, request: FrameRequest) -> str | None:
        """What the frame shall not show; None for nothing."""
        return ", ".join(part for part in (request.negative_prompt, self.negative) if part) or None

    @property
    def _tokenizer(self) -> Any:
        from transformers import CLIPTokenizer

        return CLIPTokenizer.from_pretrained(self.checkpoint.folder / "tokenizer", local_files_only=True)


def draw_embeds(pipe: Any, jobs: Sequence[Job], steps: int, **extra: Any) -> Tensor:
    """Images of shape (B, 3, H, W), values 0 to 1, of jobs whose encoded tensors are the pipeline's own arguments."""
    import torch

    device = pipe._execution_device
    request = jobs[0].request
    stacked = {name: torch.cat([job.encoded[name] for job in jobs]).to(device) for name in jobs[0].encoded}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="`upcast_vae` is deprecated")  # the pipeline's own call
        images: Tensor = pipe(
            **stacked, generator=[generator_of(job.request.seed) for job in jobs], width=request.width,
            height=request.height, num_inference_steps=steps, output_type="pt", **extra,
        ).images  # fmt: skip
    return images
