"""Prompts to embeddings: each distinct prompt goes through the text encoders once, whatever the number of seeds."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from katha.errors import UsageError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["PromptCache", "chunk_tokens", "encode_sdxl", "frame_prompt", "refuse_long"]

Encoded = Mapping[str, "Tensor"]


class PromptCache:
    """Encoded prompts on the CPU, the most recent `limit` of them. `encoded` counts how often an encoder was asked."""

    def __init__(self, limit: int = 512) -> None:
        self._known: OrderedDict[str, Encoded] = OrderedDict()
        self._limit = limit
        self.encoded = 0

    def get(self, prompt: str, encode: Callable[[str], Encoded]) -> Encoded:
        """The embeddings of `prompt`, from `encode` the first time."""
        if prompt not in self._known:
            self._known[prompt] = {name: value.cpu() for name, value in encode(prompt).items()}
            self.encoded += 1
            while len(self._known) > self._limit:
                self._known.popitem(last=False)
        self._known.move_to_end(prompt)
        return self._known[prompt]


def frame_prompt(prompt: str, style: str) -> str:
    """What is drawn: the prompt, then the board's style."""
    return f"{prompt.rstrip().rstrip('.,')}, {style}" if style else prompt


def refuse_long(tokenizer: Any, prompt: str, limit: int, what: str) -> None:
    """Refuse a prompt that the encoder would cut.

    Raises:
        UsageError: it has more than `limit` tokens; both numbers are named.
    """
    count = len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
    if count > limit:
        raise UsageError(
            f"The prompt of {what} has {count} tokens; the model reads {limit}.",
            hint=f"Shorten it; it begins {prompt[:60]!r}.",
        )


def chunk_tokens(pieces: Sequence[str], size: int) -> Iterator[tuple[int, int]]:
    """Ranges of at most `size` pieces that make up the whole, broken at word ends (`</w>`) where there is one."""
    start = 0
    while len(pieces) - start > size:
        ends = (at for at in range(start + size, start, -1) if pieces[at - 1].endswith("</w>"))
        stop = next(ends, start + size)
        yield start, stop
        start = stop
    yield start, len(pieces)


def encode_sdxl(pipe: Any, prompt: str) -> Encoded:
    """SDXL's two encoders: `embeds` of shape (1, 77 k, 2048) and `pooled` of shape (1, 1280).

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
            _read(encoder, [*ids, *[_empty(tokenizer)] * (count - len(ids))])
            for tokenizer, encoder, ids in zip(
                (pipe.tokenizer, pipe.tokenizer_2), (pipe.text_encoder, pipe.text_encoder_2), parts, strict=True
            )
        ]
        embeds = torch.cat([states for states, _ in read], dim=-1)
        return {"embeds": embeds.reshape(1, -1, embeds.shape[-1]), "pooled": read[1][1][:1]}


def pad_sdxl(pipe: Any, embeds: Tensor, length: int) -> Tensor:
    """`embeds` of shape (1, S, D) continued with the embedding of an empty prompt to (1, `length`, D)."""
    import torch

    missing = (length - embeds.shape[1]) // pipe.tokenizer.model_max_length
    if missing <= 0:
        return embeds
    empty = encode_sdxl(pipe, "")["embeds"].to(embeds)
    return torch.cat([embeds, *[empty] * missing], dim=1)


def _chunks(tokenizer: Any, prompt: str) -> list[list[int]]:
    """The prompt's ids in pieces, each with start, end and padding, of the tokenizer's full length."""
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    pieces = tokenizer.convert_ids_to_tokens(ids)
    room = tokenizer.model_max_length - 2
    return [_framed(tokenizer, ids[start:stop]) for start, stop in chunk_tokens(pieces, room)]


def _framed(tokenizer: Any, ids: Sequence[int]) -> list[int]:
    padding = [tokenizer.pad_token_id] * (tokenizer.model_max_length - 2 - len(ids))
    return [tokenizer.bos_token_id, *ids, tokenizer.eos_token_id, *padding]


def _empty(tokenizer: Any) -> list[int]:
    return _framed(tokenizer, [])


def _read(encoder: Any, rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    """Hidden states of the last layer but one, of shape (k, 77, D), and the first output (pooled, for the second)."""
    import torch
    from diffusers.utils.torch_utils import get_module_execution_device

    out = encoder(torch.tensor(rows, device=get_module_execution_device(encoder)), output_hidden_states=True)
    return out.hidden_states[-2], out[0]
