"""`flux`: FLUX.1 dev and schnell, FLUX.2 dev and klein, Z-Image."""

from __future__ import annotations

import bisect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from katha.errors import UsageError
from katha.jsonio import sha256_hex
from katha.protocols import Capabilities, FrameRequest
from katha.renderers.diffusion.checkpoint import Checkpoint
from katha.renderers.diffusion.memory import Encoded, Loaded, load_tokenizer, sibling, unwarned
from katha.renderers.diffusion.options import DiffusionOptions, between, one_of
from katha.renderers.diffusion.renderer import DiffusionRenderer, DrawingJob, frame_prompt, token_count
from katha.renderers.diffusion.speed import Shortcuts, Speed, one_frame, shortcuts_of, take_shortcuts

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor


_CLIP_WORDS = 75
"""Tokens of a prompt that CLIP holds beside those for start and end."""


class PromptReader(ABC):
    """How one kind of pipeline reads a prompt of at most `limit` tokens: what its encoders hold, and the pipeline's
    arguments they make. sees: the text encoder reads the pictures together with the prompt."""

    sees = False
    tokenizer_folder = "tokenizer"

    def __init__(self, checkpoint: Checkpoint, limit: int) -> None:
        self.limit, self._checkpoint = limit, checkpoint

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer of the encoder that reads the whole prompt; no weights are loaded for it."""
        from transformers import AutoTokenizer

        return load_tokenizer(AutoTokenizer, self._checkpoint, self.tokenizer_folder)

    def count(self, prompt: str) -> int:
        """Return how many tokens the prompt takes."""
        return token_count(self.tokenizer, prompt)

    @abstractmethod
    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Encoded:
        """Return the pipeline's arguments for the prompt, each of shape (1, ...)."""


class T5Reader(PromptReader):
    """FLUX.1: T5 reads the whole prompt; CLIP gives one vector of its beginning, of as many whole words as it holds."""

    tokenizer_folder = "tokenizer_2"

    def count(self, prompt: str) -> int:
        """Return T5's tokens, the end included."""
        return super().count(prompt) + 1

    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Encoded:
        """Return `prompt_embeds` of shape (1, limit, D) and `pooled_prompt_embeds` of shape (1, P)."""
        import torch

        with torch.no_grad():
            embeds, pooled, _ = pipe.encode_prompt(
                prompt=first_words(pipe.tokenizer, prompt, _CLIP_WORDS), prompt_2=prompt, max_sequence_length=self.limit
            )
        return {"prompt_embeds": embeds, "pooled_prompt_embeds": pooled}


class ChatReader(PromptReader):
    """FLUX.2 klein: a language model reads the prompt as a user's turn; the turn's own tokens count."""

    thinking: ClassVar[bool] = False

    def count(self, prompt: str) -> int:
        """Return the tokens of the whole turn."""
        text = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            tokenize=False,
            add_generation_prompt=True,
            enable_thinking=self.thinking,
        )
        return len(self.tokenizer(text)["input_ids"])

    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Encoded:
        """Return `prompt_embeds` of shape (1, limit, 3 D): three layers' hidden states side by side."""
        import torch

        with torch.no_grad(), unwarned("transformers"):  # about how diffusers calls the processor
            embeds, _ = pipe.encode_prompt(prompt=prompt, max_sequence_length=self.limit)
        return {"prompt_embeds": embeds}


class TurnReader(ChatReader):
    """Z-Image: the same kind of turn; only the tokens of the prompt at hand go on, without padding."""

    thinking = True

    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Encoded:
        """Return `prompt_embeds` of shape (1, S, D)."""
        import torch

        with torch.no_grad():
            (embeds,), _ = pipe.encode_prompt(
                prompt=prompt, do_classifier_free_guidance=False, max_sequence_length=self.limit
            )
        return {"prompt_embeds": embeds[None]}


class SystemReader(ChatReader):
    """FLUX.2 dev: Mistral reads the pipeline's own instruction and the prompt; the tokens of both count."""

    @cached_property
    def tokenizer(self) -> Any:
        """The processor, which holds the tokenizer."""
        from transformers import AutoProcessor

        return load_tokenizer(AutoProcessor, self._checkpoint, self.tokenizer_folder)

    def count(self, prompt: str) -> int:
        """Return the tokens of instruction and prompt."""
        from diffusers.pipelines.flux2.pipeline_flux2 import format_input

        turns = format_input(prompts=[prompt])
        return len(self.tokenizer.apply_chat_template(turns, tokenize=True, return_dict=True)["input_ids"][0])


class SeeingReader(PromptReader):
    """Qwen-Image-Edit-Plus: Qwen2.5-VL reads the pictures, then the prompt, whole; the prompt's tokens count."""

    sees = True
    unseeing = "QwenImagePipeline"

    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Encoded:
        """Return `prompt_embeds` of shape (1, S, D), S with the pictures' tokens, and a mask of ones, (1, S).

        Without pictures it is read in the words of the pipeline that will draw it: the editing pipeline's speak of an
        input image and of how to change it.
        """
        import torch
        from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as theirs

        shown = []
        for picture in pictures:
            width, height = theirs.calculate_dimensions(theirs.CONDITION_IMAGE_SIZE, picture.width / picture.height)
            shown.append(pipe.image_processor.resize(picture, height, width))
        with torch.no_grad():
            if shown:
                embeds, _ = pipe.encode_prompt(prompt=prompt, image=shown)
            else:
                embeds, _ = sibling(pipe, self.unseeing).encode_prompt(prompt, max_sequence_length=self.limit)
        return {"prompt_embeds": embeds, "prompt_embeds_mask": torch.ones(embeds.shape[:2], dtype=torch.long)}


_READERS: Mapping[str, Callable[[Checkpoint, int], PromptReader]] = {
    "FluxPipeline": T5Reader,
    "FluxKontextPipeline": T5Reader,
    "Flux2Pipeline": SystemReader,
    "Flux2KleinPipeline": ChatReader,
    "Flux2KleinKVPipeline": ChatReader,
    "ZImagePipeline": TurnReader,
    "QwenImageEditPlusPipeline": SeeingReader,
}


def reader_of(checkpoint: Checkpoint, limit: int) -> PromptReader:
    """Return what reads prompts of at most `limit` tokens for the checkpoint's pipeline."""
    return _READERS[checkpoint.pipeline](checkpoint, limit)


def first_words(tokenizer: Any, text: str, limit: int) -> str:
    """Return as many whole words from the beginning of `text` as `limit` tokens hold."""
    if token_count(tokenizer, text) <= limit:
        return text
    words = text.split()
    low = bisect.bisect_right(
        range(1, len(words) + 1), limit, key=lambda count: token_count(tokenizer, " ".join(words[:count]))
    )
    return " ".join(words[:low])


@dataclass(frozen=True, kw_only=True)
class FluxOptions(DiffusionOptions):
    """The options of `flux`."""

    scheduler: str | None = field(default=None, init=False)
    true_cfg: float = 1.0
    """Guidance away from the negative prompt, for FLUX.1: above 1 the model is asked twice a step."""
    prompt_tokens: int | None = None
    """A lower limit than the model's own, which saves time."""
    speed: Speed = "exact"
    """`fast` takes shortcuts that change the picture a little."""
    strength: float | None = None
    """With --guide, the share of the steps that are drawn over the layout, between 0 and 1: less keeps more of it."""

    def __post_init__(self) -> None:
        super().__post_init__()
        between(strength=self.strength)
        one_of("speed", self.speed, get_args(Speed))
        if self.speed == "fast" and self.batch > 1:
            raise UsageError(
                "speed=fast draws one frame at a time.", hint="In a batch a frame would depend on those beside it."
            )


class FluxRenderer(DiffusionRenderer):
    """FLUX.1, FLUX.2 and Z-Image from prompts alone: `flux:FOLDER`, `flux:FILE.safetensors` or `flux:OWNER/NAME`."""

    family_name = "flux"
    renderer_name = "flux"
    options_class: ClassVar[type[FluxOptions]] = FluxOptions
    options: FluxOptions
    capabilities = Capabilities(default_size=(1024, 1024), size_multiple=16, prompt_tokens=512, guide=True)
    wording_tokens: ClassVar[int] = 0
    """Tokens that a renderer keeps free for words of its own around a plan's prompt."""

    def __init__(self, argument: str | None = None, options: FluxOptions | None = None) -> None:
        """Find the checkpoint; nothing is loaded. An option that would change nothing is refused, too."""
        super().__init__(argument, options)
        wanted, own = self.options.prompt_tokens, self.prompt_tokens
        if wanted is not None and not 1 <= wanted <= own:
            raise UsageError(f"prompt_tokens is 1 to {own} for this model, not {wanted}.")
        self.prompt_tokens = wanted or own
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
        self.reader = reader_of(self.checkpoint, self.prompt_tokens)

    def spec(self) -> Mapping[str, Any]:
        """Return weights, adapters, settings and versions: everything that can change the pixels."""
        spec = {name: value for name, value in super().spec().items() if name != "speed"}
        fast = {} if self.shortcuts is None else {"speed": dict(self.shortcuts.spec())}
        return {**spec, "prompt_tokens": self.prompt_tokens, **fast}

    @property
    def strength(self) -> float | None:
        """The share of the steps that are drawn over a layout."""
        return self.options.strength

    @cached_property
    def shortcuts(self) -> Shortcuts | None:
        """Return what `speed=fast` does on this machine; None where every calculation is made."""
        options = self.options
        if options.speed == "exact":
            return None
        changed = bool(self.loras or self.packings)
        found = shortcuts_of(self.calling, self.device, options.memory, adapted=changed, steps=self.steps)
        if found == Shortcuts():
            raise UsageError(
                f"speed=fast would change nothing for {self.checkpoint.pipeline} with {self.steps} steps here.",
                hint="Leave it out.",
            )
        return found

    def prepare(self, pipe: Any) -> None:
        """Take the shortcuts that were asked for."""
        if self.shortcuts is not None:
            take_shortcuts(getattr(pipe, self.family.denoiser), self.shortcuts)

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

        wanted, negative = read(frame_prompt(request)), self.negative_of(request)
        if negative is None:
            return wanted
        return {**wanted, **{f"negative_{name}": value for name, value in read(negative).items()}}

    def negative_of(self, request: FrameRequest) -> str | None:
        """Return what the frame shall not show, None where the model is not asked a second time at each step."""
        negative = super().negative_of(request)
        return (negative or self.calling.blank) if self._guided_away(negative) else None

    def guiding(self, jobs: Sequence[DrawingJob]) -> dict[str, float]:
        """Return the pipeline's arguments for guidance, and for that away from the negative prompt."""
        twice = "negative_pooled_prompt_embeds" in jobs[0].encoded
        own = {self.calling.scale: self.guidance} if self.calling.scale else {}
        return own | ({"true_cfg_scale": self.options.true_cfg} if twice else {})

    def stacked(self, jobs: Sequence[DrawingJob], device: Any) -> dict[str, object]:
        """Return the pipeline's arguments for the jobs' embeddings: tensors, or lists of one for each job."""
        if not self.calling.listed:
            return super().stacked(jobs, device)
        return {name: [job.encoded[name][0].to(device) for job in jobs] for name in jobs[0].encoded}

    def call(self, pipe: Any, jobs: Sequence[DrawingJob], **more: object) -> Tensor:
        """Return what the pipeline makes of the jobs, images of shape (B, 3, H, W)."""
        with one_frame(pipe, getattr(pipe, self.family.denoiser)):
            return super().call(pipe, jobs, **more)

    def _guided_away(self, negative: str | None) -> bool:
        away = self.calling.away
        if away == "true_cfg":
            return self.options.true_cfg > 1 and bool(negative)
        return away == "guidance" and self.guidance > 1 and not self.facts["is_distilled"]
