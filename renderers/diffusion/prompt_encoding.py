"""Prompts to embeddings: each distinct prompt goes through the text encoders once, whatever the number of seeds."""

from __future__ import annotations

import bisect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from katha.renderers.diffusion.checkpoint import Checkpoint
from katha.renderers.diffusion.loading import unwarned

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

Encoded = Mapping[str, "Tensor"]
_CLIP_WORDS = 75
"""Tokens of a prompt that CLIP holds beside those for start and end."""


def frame_prompt(prompt: str, style: str) -> str:
    """Return what is drawn: the prompt, then the board's style."""
    return f"{prompt.rstrip().rstrip('.,')}, {style}" if style else prompt


def chunk_tokens(pieces: Sequence[str], size: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of at most `size` pieces that make up the whole, broken at word ends (`</w>`) where there is one."""
    start = 0
    while len(pieces) - start > size:
        ends = (at for at in range(start + size, start, -1) if pieces[at - 1].endswith("</w>"))
        stop = next(ends, start + size)
        yield start, stop
        start = stop
    yield start, len(pieces)


def encode_sdxl(pipe: Any, prompt: str) -> Encoded:
    """Encode with SDXL's two encoders: `embeds` of shape (1, 77 k, 2048) and `pooled` of shape (1, 1280).

    A prompt of at most 75 tokens takes diffusers' own way (k = 1). A longer one is read in k pieces of whole words,
    each between the start and end tokens, side by side along the sequence; the pooled vector is the first piece's.
    """
    import torch

    with torch.no_grad():
        parts = [_chunks(tokenizer, prompt) for tokenizer in (pipe.tokenizer, pipe.tokenizer_2)]
        count = max(map(len, parts))
        if count == 1:
            embeds, _, pooled, _ = pipe.encode_prompt(prompt, do_classifier_free_guidance=False)
            return {"embeds": embeds, "pooled": pooled}
        read = [
            _read(encoder, [*ids, *[_framed(tokenizer, [])] * (count - len(ids))])
            for tokenizer, encoder, ids in zip(
                (pipe.tokenizer, pipe.tokenizer_2), (pipe.text_encoder, pipe.text_encoder_2), parts, strict=True
            )
        ]
        embeds = torch.cat([states for states, _ in read], dim=-1)
        return {"embeds": embeds.reshape(1, -1, embeds.shape[-1]), "pooled": read[1][1][:1]}


def pad_sdxl(pipe: Any, embeds: Tensor, length: int) -> Tensor:
    """Return `embeds` of shape (1, S, D) continued with the embedding of an empty prompt to (1, `length`, D)."""
    import torch

    missing = (length - embeds.shape[1]) // pipe.tokenizer.model_max_length
    if missing <= 0:
        return embeds
    empty = encode_sdxl(pipe, "")["embeds"].to(embeds)
    return torch.cat([embeds, *[empty] * missing], dim=1)


def _chunks(tokenizer: Any, prompt: str) -> list[list[int]]:
    """Return the prompt's ids in pieces, each with start, end and padding, of the tokenizer's full length."""
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    pieces = tokenizer.convert_ids_to_tokens(ids)
    room = tokenizer.model_max_length - 2
    return [_framed(tokenizer, ids[start:stop]) for start, stop in chunk_tokens(pieces, room)]


def _framed(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    padding = [tokenizer.pad_token_id] * (tokenizer.model_max_length - 2 - len(ids))
    return [tokenizer.bos_token_id, *ids, tokenizer.eos_token_id, *padding]


def _read(encoder: Any, rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Return the last layer but one's hidden states, (k, 77, D), and the first output (pooled, for the second)."""
    import torch
    from diffusers.utils.torch_utils import get_module_execution_device

    out = encoder(torch.tensor(rows, device=get_module_execution_device(encoder)), output_hidden_states=True)
    return out.hidden_states[-2], out[0]


class PromptReader(ABC):
    """How one kind of pipeline reads a prompt: what its text encoders hold, and the pipeline's arguments they make.

    A prompt of at most `limit` tokens is read. sees: the text encoder reads the pictures together with the prompt.
    """

    sees = False
    tokenizer_folder = "tokenizer"

    def __init__(self, checkpoint: Checkpoint, limit: int) -> None:
        self.limit = limit
        self._folder = checkpoint.folder / self.tokenizer_folder

    @cached_property
    def tokenizer(self) -> Any:
        """The tokenizer of the encoder that reads the whole prompt; no weights are loaded for it."""
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(self._folder, local_files_only=True)

    def count(self, prompt: str) -> int:
        """Return how many tokens the prompt takes."""
        return token_count(self.tokenizer, prompt)

    @abstractmethod
    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Encoded:
        """Return the pipeline's arguments for the prompt, each of shape (1, ...)."""


class T5Reader(PromptReader):
    """FLUX.1: T5 reads the whole prompt; CLIP gives one vector of the prompt's beginning.

    CLIP is given as many whole words as it holds, so that nothing is cut inside it; every word of the prompt is in T5's
    embeddings.
    """

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

    def count(self, prompt: str) -> int:
        """Return the tokens of the whole turn."""
        text = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}], tokenize=False, add_generation_prompt=True, enable_thinking=False
        )
        return len(self.tokenizer(text)["input_ids"])

    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Encoded:
        """Return `prompt_embeds` of shape (1, limit, 3 D): three layers' hidden states side by side."""
        import torch

        with torch.no_grad(), unwarned("transformers"):  # about how diffusers calls the processor
            embeds, _ = pipe.encode_prompt(prompt=prompt, max_sequence_length=self.limit)
        return {"prompt_embeds": embeds}


class SystemReader(ChatReader):
    """FLUX.2 dev: Mistral reads the pipeline's own instruction and the prompt; the tokens of both count."""

    @cached_property
    def tokenizer(self) -> Any:
        """The processor, which holds the tokenizer."""
        from transformers import AutoProcessor

        return AutoProcessor.from_pretrained(self._folder, local_files_only=True)

    def count(self, prompt: str) -> int:
        """Return the tokens of instruction and prompt."""
        from diffusers.pipelines.flux2.pipeline_flux2 import format_input

        turns = format_input(prompts=[prompt])
        return len(self.tokenizer.apply_chat_template(turns, tokenize=True, return_dict=True)["input_ids"][0])


class SeeingReader(PromptReader):
    """Qwen-Image-Edit-Plus: Qwen2.5-VL reads the pictures, then the prompt, whole; the prompt's tokens count."""

    sees = True

    def read(self, pipe: Any, prompt: str, pictures: Sequence[Image]) -> Encoded:
        """Return `prompt_embeds` of shape (1, S, D), S with the pictures' tokens, and a mask of ones, (1, S)."""
        import torch
        from diffusers.pipelines.qwenimage import pipeline_qwenimage_edit_plus as theirs

        shown = []
        for picture in pictures:
            width, height = theirs.calculate_dimensions(theirs.CONDITION_IMAGE_SIZE, picture.width / picture.height)
            shown.append(pipe.image_processor.resize(picture, height, width))
        with torch.no_grad():
            embeds, _ = pipe.encode_prompt(prompt=prompt, image=shown or None)
        return {"prompt_embeds": embeds, "prompt_embeds_mask": torch.ones(embeds.shape[:2], dtype=torch.long)}


_READERS: Mapping[str, Callable[[Checkpoint, int], PromptReader]] = {
    "FluxPipeline": T5Reader,
    "FluxKontextPipeline": T5Reader,
    "Flux2Pipeline": SystemReader,
    "Flux2KleinPipeline": ChatReader,
    "QwenImageEditPlusPipeline": SeeingReader,
}


def reader_for(checkpoint: Checkpoint, limit: int) -> PromptReader:
    """Return the reader of the checkpoint's pipeline, for prompts of at most `limit` tokens."""
    return _READERS[checkpoint.pipeline](checkpoint, limit)


def token_count(tokenizer: Any, text: str) -> int:
    """Return how many tokens `text` has, without start and end tokens."""
    return len(tokenizer(text, add_special_tokens=False)["input_ids"])


def first_words(tokenizer: Any, text: str, limit: int) -> str:
    """Return as many whole words from the beginning of `text` as `limit` tokens hold."""
    if token_count(tokenizer, text) <= limit:
        return text
    words = text.split()
    low = bisect.bisect_right(
        range(1, len(words) + 1), limit, key=lambda count: token_count(tokenizer, " ".join(words[:count]))
    )
    return " ".join(words[:low])
