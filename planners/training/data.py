"""Examples as token ids: the chat format's prompt, then the reply, of which alone the loss is taken."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from katha.planners.training.examples import Example

__all__ = ["Collator", "encode"]

_IGNORED = -100
"""The label that transformers leaves out of the loss."""


def encode(examples: Sequence[Example], tokenizer: Any, longest: int) -> tuple[list[dict[str, list[int]]], list[str]]:
    """`input_ids` and `labels` of each example, and the stories that are longer than `longest` tokens."""
    rows: list[dict[str, list[int]]] = []
    too_long: list[str] = []
    for item in examples:
        asked = [{"role": "user", "content": item.prompt}]
        prompt = tokenizer.apply_chat_template(asked, add_generation_prompt=True, tokenize=False)
        start = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        reply = tokenizer(f"{item.reply}{_end(tokenizer)}", add_special_tokens=False)["input_ids"]
        if len(start) + len(reply) > longest:
            too_long.append(item.story_id)
            continue
        rows.append({"input_ids": [*start, *reply], "labels": [_IGNORED] * len(start) + list(reply)})
    return rows, too_long


def _end(tokenizer: Any) -> str:
    """What ends a turn: the chat format's own mark where the tokenizer has one."""
    mark = "<end_of_turn>"
    known = tokenizer.convert_tokens_to_ids(mark) not in {None, tokenizer.unk_token_id}
    return mark if known else str(tokenizer.eos_token)


@dataclass(frozen=True)
class Collator:
    """Rows to one batch, padded on the right. typed: the model asks which tokens are pictures (none are)."""

    pad: int
    typed: bool

    def __call__(self, rows: Sequence[Mapping[str, Sequence[int]]]) -> dict[str, Any]:
        """Tensors of shape (B, T)."""
        import torch

        longest = max(len(row["input_ids"]) for row in rows)

        def padded(name: str, fill: int) -> Any:
            return torch.tensor([[*row[name], *[fill] * (longest - len(row[name]))] for row in rows])

        batch = {"input_ids": padded("input_ids", self.pad), "labels": padded("labels", _IGNORED)}
        lengths = torch.tensor([[len(row["input_ids"])] for row in rows])
        batch["attention_mask"] = (torch.arange(longest)[None] < lengths).long()
        if self.typed:
            batch["token_type_ids"] = torch.zeros_like(batch["input_ids"])
        return batch
