"""`sdxl`: any SDXL checkpoint, with adapters, negative prompts and prompts of any length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from katha.protocols import Capabilities, FrameRequest
from katha.renderers.diffusion.memory import Loaded
from katha.renderers.diffusion.options import DiffusionOptions
from katha.renderers.diffusion.prompt_encoding import Encoded, encode_sdxl, frame_prompt, pad_sdxl, token_count
from katha.renderers.diffusion.renderer import DiffusionRenderer

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class SdxlOptions(DiffusionOptions):
    """The options of `sdxl`."""

    long_prompts: Literal["chunk", "refuse"] = "chunk"
    """`chunk` reads a prompt of more than 75 tokens in pieces, `refuse` stops."""


class SdxlRenderer(DiffusionRenderer):
    """Stable Diffusion XL on this machine: `sdxl:FOLDER`, `sdxl:FILE.safetensors` or `sdxl:OWNER/NAME`."""

    family_name = "sdxl"
    renderer_name = "sdxl"
    options_class: ClassVar[type[SdxlOptions]] = SdxlOptions
    options: SdxlOptions
    capabilities = Capabilities(default_size=(1024, 1024), size_multiple=8)

    def count_tokens(self, text: str) -> int:
        """Return the tokens of the first encoder; 0 where a prompt may have any number of them."""
        return token_count(self._tokenizer, text) if self.options.long_prompts == "refuse" else 0

    def encode(self, loaded: Loaded, request: FrameRequest) -> Mapping[str, Tensor]:
        """Return the embeddings of the prompt and of what shall not be seen, of one length."""
        import torch

        pipe = loaded.pipe

        def read(text: str) -> Encoded:
            return loaded.encoded(text, lambda: encode_sdxl(pipe, text))

        wanted, negative = read(frame_prompt(request.prompt, request.style)), self.negative_of(request) or ""
        if not negative and pipe.config.force_zeros_for_empty_prompt:
            unwanted: Encoded = {name: torch.zeros_like(value) for name, value in wanted.items()}
        else:
            unwanted = read(negative)
        length = max(wanted["embeds"].shape[1], unwanted["embeds"].shape[1])
        return {
            "prompt_embeds": pad_sdxl(pipe, wanted["embeds"], length),
            "negative_prompt_embeds": pad_sdxl(pipe, unwanted["embeds"], length),
            "pooled_prompt_embeds": wanted["pooled"],
            "negative_pooled_prompt_embeds": unwanted["pooled"],
        }

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import CLIPTokenizer

        return CLIPTokenizer.from_pretrained(self.checkpoint.folder / "tokenizer", local_files_only=True)
