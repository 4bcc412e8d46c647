"""`embedding:MODEL`: cosine of mean-pooled sentence vectors, right from a threshold on (Table 61, for comparison)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from katha.eval_bridge.deciders.encoder import Encoder, accepted_texts, settings
from katha.eval_bridge.verdicts import Decision, Pair

__all__ = ["EmbeddingDecider"]


class EmbeddingDecider:
    """A sentence encoder as a decider."""

    def __init__(self, argument: str) -> None:
        """Find the model; weights are not read yet.

        Raises:
            MissingExtraError, InputFileError, ModelError: see `Encoder`.
        """
        self._encoder = Encoder("embedding", argument, "AutoModel")

    def spec(self) -> Mapping[str, Any]:
        """The model with its revision, and how vectors are made."""
        return {**self._encoder.spec(), "pooling": "mean"}

    def decide(self, pairs: Sequence[Pair]) -> Iterator[Decision]:
        """Each pair by its nearest accepted answer; the score is the cosine, -1 to 1."""
        threshold = float(settings("embedding")["threshold"])
        for pair in pairs:
            texts = accepted_texts(pair.question)
            vectors = self._vectors([pair.answer, *texts])
            scores: list[float] = (vectors[1:] @ vectors[0]).tolist()
            best = max(range(len(scores)), key=scores.__getitem__)
            right = scores[best] >= threshold
            yield Decision(right, f"cosine {scores[best]:.2f} with {texts[best]!r}", scores[best])

    def _vectors(self, texts: Sequence[str]) -> Any:
        """Unit vectors of shape (texts, D): the mean over tokens that are no padding."""
        import torch

        _, model = self._encoder.load()
        batch = self._encoder.encode(texts)
        with torch.inference_mode():
            states = model(**batch).last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1).to(states.dtype)
        return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1).clamp(min=1), dim=-1)
