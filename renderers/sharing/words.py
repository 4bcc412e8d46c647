"""Where a character is named in a prompt, as positions in the text encoders' sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from katha.renderers.diffusion.prompts import chunk_tokens
from katha.schema import Character

__all__ = ["word_positions"]


def word_positions(tokenizer: Any, prompt: str, character: Character) -> tuple[int, ...]:
    """The positions of the words that name `character` in `prompt`; empty where it is not named.

    The words are its kind inside its appearance phrase, else its name, else its kind, else the last word of its kind. A
    prompt of several pieces (of 77 positions, each with a start token) is counted piece by piece.
    """
    ids = _ids(tokenizer, prompt)
    last = character.kind.split()[-1] if character.kind.split() else ""
    looks = _spans(ids, _ids(tokenizer, character.appearance))
    kinds = _spans(ids, _ids(tokenizer, character.kind))
    within = [span for span in kinds if any(set(span) <= set(look) for look in looks)]
    phrases = (character.name, character.kind, last)
    choices = [within, *(_spans(ids, _ids(tokenizer, phrase)) for phrase in phrases)]
    found = next((spans for spans in choices if spans), [])
    where = list(_layout(tokenizer, ids))
    return tuple(where[place] for span in found for place in span)


def _ids(tokenizer: Any, text: str) -> list[int]:
    ids: list[int] = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"] if text.strip() else []
    return ids


def _spans(ids: Sequence[int], wanted: Sequence[int]) -> list[range]:
    """Every place where `wanted` stands in `ids`."""
    size = len(wanted)
    starts = range(len(ids) - size + 1) if size else range(0)
    return [range(at, at + size) for at in starts if list(ids[at : at + size]) == list(wanted)]


def _layout(tokenizer: Any, ids: Sequence[int]) -> Iterator[int]:
    """The position in the sequence of each of `ids`."""
    length = tokenizer.model_max_length
    pieces = tokenizer.convert_ids_to_tokens(ids)
    for number, (start, stop) in enumerate(chunk_tokens(pieces, length - 2)):
        yield from range(number * length + 1, number * length + 1 + stop - start)
