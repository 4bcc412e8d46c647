"""`flux`: FLUX.1 dev and schnell, FLUX.2 dev and klein."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from katha.errors import UsageError
from katha.jsonio import sha256_hex
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.diffusion.memory import Loaded
from katha.renderers.diffusion.options import Calling, DiffusionOptions, diffusion_data
from katha.renderers.diffusion.prompt_encoding import Encoded, frame_prompt, reader_for
from katha.renderers.diffusion.renderer import DiffusionRenderer, Job

if TYPE_CHECKING:
    from PIL.Image import Image


@dataclass(frozen=True, kw_only=True)
class FluxOptions(DiffusionOptions):
    """The options of `flux`."""

    scheduler: str | None = field(default=None, init=False)
    true_cfg: float = 1.0
    """Guidance away from the negative prompt, for FLUX.1: above 1 the model is asked twice a step."""
    prompt_tokens: int | None = None
    """A lower limit than the model's own, which saves time."""


class FluxRenderer(DiffusionRenderer):
    """FLUX.1 dev and schnell, FLUX.2 dev and klein: `flux:FOLDER`, `flux:FILE.safetensors` or `flux:OWNER/NAME`."""

    family_name = "flux"
    renderer_name = "flux"
    options_class: ClassVar[type[FluxOptions]] = FluxOptions
    options: FluxOptions
    capabilities = Capabilities(default_size=(1024, 1024), size_multiple=16, prompt_tokens=512)
    wording_tokens: ClassVar[int] = 0
    """Tokens that a renderer keeps free for words of its own around a plan's prompt."""

    def __init__(self, argument: str | None = None, options: FluxOptions | None = None) -> None:
        """Find the checkpoint; nothing is loaded. An option that would change nothing is refused, too."""
        super().__init__(argument, options)
        wanted, own = self.options.prompt_tokens, self.prompt_tokens
        if wanted is not None and not 1 <= wanted <= own:
            raise UsageError(f"prompt_tokens is 1 to {own} for this model, not {wanted}.")
        self.prompt_tokens = wanted or own
        self.calling: Calling = diffusion_data().calls[self.checkpoint.pipeline]
        if self.options.true_cfg != 1 and self.calling.away != "true_cfg":
            raise UsageError("true_cfg is for FLUX.1 models.", hint="This one has guidance only.")
        if (negative := self.options.negative) and not self._guided_away(negative):
            raise UsageError(
                "The option negative changes nothing with "
                f"guidance={self.guidance:g}, true_cfg={self.options.true_cfg:g}.",
                hint="FLUX.1 needs true_cfg above 1; distilled FLUX.2 models know no negative prompt.",
            )
        room = max(1, self.prompt_tokens - self.wording_tokens)
        self.capabilities = replace(self.capabilities, prompt_tokens=room)
        self.reader = reader_for(self.checkpoint, self.prompt_tokens)

    def spec(self) -> Mapping[str, Any]:
        """Return weights, adapters, settings and versions: everything that can change the pixels."""
        return {**super().spec(), "prompt_tokens": self.prompt_tokens}

    def count_tokens(self, text: str) -> int:
        """Return the tokens of the encoder that reads the whole prompt."""
        return self.reader.count(text)

    def encode(self, loaded: Loaded, request: FrameRequest) -> Encoded:
        """Return the pipeline's embeddings of the prompt and, where guidance uses it, of what shall not be seen."""
        return self.encode_with(loaded, request, ())

    def encode_with(self, loaded: Loaded, request: FrameRequest, pictures: Sequence[Image]) -> Encoded:
        """Return the same for a frame drawn from `pictures`, which some text encoders read too."""
        seen = pictures if self.reader.sees else ()
        marks = " ".join(sha256_hex(picture.tobytes()) for picture in seen)

        def read(text: str) -> Encoded:
            key = f"{self.prompt_tokens} {marks} {text}"
            return loaded.encoded(key, lambda: self.reader.read(loaded.pipe, text, seen))

        wanted, negative = read(frame_prompt(request.prompt, request.style)), self.negative_of(request)
        if negative is None:
            return wanted
        return {**wanted, **{f"negative_{name}": value for name, value in read(negative).items()}}

    def negative_of(self, request: FrameRequest) -> str | None:
        """Return what the frame shall not show, None where the model is not asked a second time at each step."""
        negative = super().negative_of(request)
        return (negative or self.calling.blank) if self._guided_away(negative) else None

    def guiding(self, jobs: Sequence[Job]) -> dict[str, float]:
        """Return the pipeline's arguments for guidance, and for that away from the negative prompt."""
        twice = "negative_pooled_prompt_embeds" in jobs[0].encoded
        return {self.calling.scale: self.guidance} | ({"true_cfg_scale": self.options.true_cfg} if twice else {})

    def _guided_away(self, negative: str | None) -> bool:
        away = self.calling.away
        if away == "true_cfg":
            return self.options.true_cfg > 1 and bool(negative)
        return away == "guidance" and self.guidance > 1 and not self.facts["is_distilled"]
