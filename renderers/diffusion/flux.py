"""`flux`: FLUX.1 dev and schnell, FLUX.2 dev and klein."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from katha.errors import UsageError
from katha.jsonio import sha256_hex
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.diffusion.images import frame_name
from katha.renderers.diffusion.memory import Loaded, Rung
from katha.renderers.diffusion.prompt_encoding import frame_prompt, reader_for
from katha.renderers.diffusion.renderer import DiffusionRenderer, Job, Settings
from katha.renderers.diffusion.sdxl import draw_embeds
from katha.renderers.diffusion.weights import calling_of

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor


class FluxBase(DiffusionRenderer):
    """What `flux` and `kontext` share: prompts read whole or refused, and guidance away from a negative prompt."""

    wording_tokens: ClassVar[int] = 0
    """Tokens that a renderer keeps free for words of its own around a plan's prompt."""

    def __init__(
        self, argument: str | None, settings: Settings, *, negative: str, true_cfg: float, prompt_tokens: int | None
    ) -> None:
        super().__init__(argument, settings)
        own = self.prompt_tokens
        if prompt_tokens is not None and not 1 <= prompt_tokens <= own:
            raise UsageError(f"prompt_tokens is 1 to {own} for this model, not {prompt_tokens}.")
        self.prompt_tokens = prompt_tokens or own
        self.negative, self.true_cfg = negative, true_cfg
        self.calling = calling_of(self.checkpoint.pipeline)
        self._check_guidance()
        room = max(1, self.prompt_tokens - self.wording_tokens)
        self.capabilities = replace(self.capabilities, prompt_tokens=room)
        self.reader = reader_for(self.checkpoint, self.prompt_tokens)

    def spec(self) -> Mapping[str, Any]:
        """Weights, adapters, settings and versions: everything that can change the pixels."""
        mine = {"negative": self.negative, "true_cfg": self.true_cfg, "prompt_tokens": self.prompt_tokens}
        return {**super().spec(), **mine}

    def check_prompt(self, request: FrameRequest) -> None:
        """Refuse a prompt that is longer than the encoder reads.

        Raises:
            UsageError: both numbers are named.
        """
        negative = self.negative_of(request)
        unwanted = [negative] if self.guided_away(negative) else []
        for text in (frame_prompt(request.prompt, request.style), *unwanted):
            count = self.reader.count(text)
            if count > self.prompt_tokens:
                raise UsageError(
                    f"The prompt of {frame_name(request)} has {count} tokens; the model reads {self.prompt_tokens}.",
                    hint=f"Shorten it; it begins {text[:60]!r}.",
                )

    def encode(self, loaded: Loaded, request: FrameRequest) -> Mapping[str, Tensor]:
        """The pipeline's embeddings of the prompt and, where guidance uses it, of what shall not be seen."""
        return self.encode_with(loaded, request, ())

    def encode_with(self, loaded: Loaded, request: FrameRequest, pictures: Sequence[Image]) -> Mapping[str, Tensor]:
        """The same for a frame drawn from `pictures`, which some text encoders read too."""
        seen = pictures if self.reader.sees else ()
        marks = " ".join(sha256_hex(picture.tobytes()) for picture in seen)

        def read(text: str) -> Mapping[str, Tensor]:
            key = f"{self.prompt_tokens} {marks} {text}"
            return loaded.prompts.get(key, lambda _: self.reader.read(loaded.pipe, text, seen))

        wanted = dict(read(frame_prompt(request.prompt, request.style)))
        negative = self.negative_of(request)
        if not self.guided_away(negative):
            return wanted
        unwanted = read(negative or self.calling.blank)
        return wanted | {f"negative_{name}": value for name, value in unwanted.items()}

    def negative_of(self, request: FrameRequest) -> str:
        """What the frame shall not show."""
        return ", ".join(part for part in (request.negative_prompt, self.negative) if part)

    def guided_away(self, negative: str) -> bool:
        """Whether the model is asked a second time at each step, with the negative prompt."""
        counts: Mapping[str, bool] = {
            "true_cfg": self.true_cfg > 1 and bool(negative),
            "guidance": self.guidance > 1 and not self._facts()["is_distilled"],
            "never": False,
        }
        return counts[self.calling.away]

    def _check_guidance(self) -> None:
        """Refuse options that would change nothing."""
        if self.true_cfg != 1 and self.calling.away != "true_cfg":
            raise UsageError("true_cfg is for FLUX.1 models.", hint="This one has guidance only.")
        if self.negative and not self.guided_away(self.negative):
            raise UsageError(
                f"The option negative changes nothing with guidance={self.guidance:g}, true_cfg={self.true_cfg:g}.",
                hint="FLUX.1 needs true_cfg above 1; distilled FLUX.2 models know no negative prompt.",
            )

    def draw(self, pipe: Any, jobs: Sequence[Job]) -> Tensor:
        """One batch through the pipeline; every frame has its own noise."""
        return self.draw_with(pipe, jobs, self.call_options(jobs))

    def draw_with(self, pipe: Any, jobs: Sequence[Job], options: Mapping[str, Any]) -> Tensor:
        """One batch through the pipeline with further arguments of it: images of shape (B, 3, H, W)."""
        return draw_embeds(pipe, jobs, self.steps, **options)

    def call_options(self, jobs: Sequence[Job]) -> dict[str, Any]:
        """Further arguments of the pipeline."""
        options = {self.calling.scale: self.guidance}
        if "negative_pooled_prompt_embeds" in jobs[0].encoded:
            options["true_cfg_scale"] = self.true_cfg
        return options


class FluxRenderer(FluxBase):
    """FLUX.1 dev and schnell, FLUX.2 dev and klein: `flux:FOLDER`, `flux:FILE.safetensors` or `flux:OWNER/NAME`."""

    family_name = "flux"
    renderer_name = "flux"
    capabilities = Capabilities(default_size=(1024, 1024), size_multiple=16, prompt_tokens=512)

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
        lora: tuple[str, ...] = (),
        batch: int = 1,
        any_size: bool = False,
        negative: str = "",
        true_cfg: float = 1.0,
        prompt_tokens: int | None = None,
    ) -> None:
        """Find the checkpoint; nothing is loaded yet.

        negative: what no frame shall show, added to the plan's own; FLUX.1 uses it with `true_cfg` above 1 only, which
        asks the model twice a step; distilled FLUX.2 models know none. prompt_tokens: a lower limit than the model's
        own, which saves time.

        Raises:
            UsageError: no such checkpoint, adapter or option value. MissingExtraError: a package is missing.
        """
        super().__init__(
            argument,
            Settings(
                revision=revision, variant=variant, base=base, download=download, device=device, dtype=dtype,
                memory=memory, vae_tiling=vae_tiling, steps=steps, guidance=guidance, lora=tuple(lora), batch=batch,
                any_size=any_size,
            ),
            negative=negative, true_cfg=true_cfg, prompt_tokens=prompt_tokens,
        )  # fmt: skip
