"""How a pipeline reads a prompt: what its text encoders can hold, and the pipeline's arguments they make."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from katha.renderers.diffusion.logs import unwarned

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

    from katha.renderers.diffusion.checkpoint import Checkpoint

__all__ = ["Reader", "reader_for", "token_count"]

_CLIP_WORDS = 75


class Reader(Protocol):
    """Prompts of one kind of pipeline."""

    @property
    def sees(self) -> bool:
        """Whether the text encoder reads the pictures together with the prompt."""
        ...

    def count(self, prompt: str) -> int:
        """How many tokens the prompt takes; only the tokenizer is loaded."""
        ...

    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Mapping[str, Tensor]:
        """The pipeline's arguments for the prompt, each of shape (1, ...)."""
        ...


def token_count(tokenizer: Any, text: str) -> int:
    """How many tokens `text` has, without start and end tokens."""
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


class T5Reader:
    """FLUX.1: T5 reads the whole prompt (one token is the end); CLIP gives one vector of the prompt's beginning.

    CLIP holds 75 tokens. It is given as many whole words as that is, so that nothing is cut inside it; every word of
    the prompt is in T5's embeddings.
    """

    sees = False

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit = folder, limit

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self._folder / "tokenizer_2", local_files_only=True)

    def count(self, prompt: str) -> int:
        """T5's tokens, the end included."""
        return token_count(self._tokenizer, prompt) + 1

    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Mapping[str, Tensor]:
        """`prompt_embeds` of shape (1, limit, D) and `pooled_prompt_embeds` of shape (1, P)."""
        import torch

        with torch.no_grad():
            embeds, pooled, _ = pipe.encode_prompt(
                prompt=first_words(pipe.tokenizer, prompt, _CLIP_WORDS),
                prompt_2=prompt,
                max_sequence_length=self._limit,
            )
        return {"prompt_embeds": embeds, "pooled_prompt_embeds": pooled}


class ChatReader:
    """FLUX.2 klein: a language model reads the prompt as a user's turn; the turn's own tokens count."""

    sees = False

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder, self._limit = folder, limit

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self._folder / "tokenizer", local_files_only=True)

    def count(self, prompt: str) -> int:
        """Tokens of the whole turn."""
        text = self._tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        return len(self._tokenizer(text)["input_ids"])

    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Mapping[str, Tensor]:
        """`prompt_embeds` of shape (1, limit, 3 D): three layers' hidden states side by side."""
        import torch

        with torch.no_grad(), unwarned("transformers"):  # about how diffusers calls the processor
            embeds, _ = pipe.encode_prompt(prompt=prompt, max_sequence_length=self._limit)
        return {"prompt_embeds": embeds}


class SystemReader(ChatReader):
    """FLUX.2 dev: Mistral reads the pipeline's own instruction and the prompt; the tokens of both count."""

    @cached_property
    def _processor(self) -> Any:
        from transformers import AutoProcessor

        return AutoProcessor.from_pretrained(self._folder / "tokenizer", local_files_only=True)

    def count(self, prompt: str) -> int:
        """Tokens of instruction and prompt."""
        from diffusers.pipelines.flux2.pipeline_flux2 import format_input

        turns = format_input(prompts=[prompt])
        return len(self._processor.apply_chat_template(turns, tokenize=True, return_dict=True)["input_ids"][0])


class SeeingReader:
    """Qwen-Image-Edit-Plus: Qwen2.5-VL reads the pictures, then the prompt, whole; the prompt's tokens count."""

    sees = True

    def __init__(self, folder: Path, limit: int) -> None:
        self._folder = folder

    @cached_property
    def _tokenizer(self) -> Any:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self._folder / "tokenizer", local_files_only=True)

    def count(self, prompt: str) -> int:
        """The prompt's tokens."""
        return token_count(self._tokenizer, prompt)

    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Mapping[str, Tensor]:
        """`prompt_embeds` of shape (1, S, D), S with the pictures' tokens, and a mask of ones of shape (1, S)."""
        import torch
        from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as theirs

        shown = []
        for picture in pictures:
            width, height = theirs.calculate_dimensions(theirs.CONDITION_IMAGE_SIZE, picture.width / picture.height)
            shown.append(pipe.image_processor.resize(picture, height, width))
        with torch.no_grad():
            embeds, _ = pipe.encode_prompt(prompt=prompt, image=shown or None)
        return {"prompt_embeds": embeds, "prompt_embeds_mask": torch.ones(embeds.shape[:2], dtype=torch.long)}


_READERS: Mapping[str, Callable[[Path, int], Reader]] = {
    "FluxPipeline": T5Reader,
    "FluxKontextPipeline": T5Reader,
    "Flux2Pipeline": SystemReader,
    "Flux2KleinPipeline": ChatReader,
    "QwenImageEditPlusPipeline": SeeingReader,
}


def reader_for(checkpoint: Checkpoint, limit: int) -> Reader:
    """The reader of the checkpoint's pipeline, for prompts of at most `limit` tokens."""
    return _READERS[checkpoint.pipeline](checkpoint.folder, limit)


def first_words(tokenizer: Any, text: str, limit: int) -> str:
    """As many whole words from the beginning of `text` as `limit` tokens hold; `text` itself when all fit."""
    if token_count(tokenizer, text) <= limit:
        return text
    words = text.split()
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if token_count(tokenizer, " ".join(words[:middle])) <= limit else (low, middle - 1)
    return " ".join(words[:low])
