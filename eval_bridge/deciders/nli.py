"""`nli:MODEL`: any transformers sequence-classification model that knows entailment.

An answer is right when, in its question's context, it entails one of the accepted answers: the premise is the question
with the answer, the hypothesis the question with the accepted answer. More may be said than is accepted, not less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from katha.errors import UsageError
from katha.eval_bridge.deciders.encoder import Encoder, accepted_texts, chunks, claim, settings
from katha.eval_bridge.verdicts import Decision, Pair

__all__ = ["NliDecider"]


class NliDecider:
    """An NLI model as a decider."""

    def __init__(self, argument: str) -> None:
        """Find the model and its label for entailment; weights are not read yet.

        Raises:
            MissingExtraError, InputFileError, ModelError: see `Encoder`. UsageError: no label means entailment.
        """
        self._encoder = Encoder("nli", argument, "AutoModelForSequenceClassification")
        labels = dict(self._encoder.config.get("id2label") or {})
        found = [int(at) for at, label in labels.items() if str(label).lower().startswith("entail")]
        if len(found) != 1:
            shown = ", ".join(map(str, labels.values())) or "none"
            raise UsageError(
                f"{argument!r} has no label 'entailment' (its labels: {shown}).",
                hint="Use a model trained on natural language inference.",
            )
        self._entailment = found[0]

    def spec(self) -> Mapping[str, Any]:
        """The model with its revision, and the label that counts."""
        return {**self._encoder.spec(), "label": self._entailment}

    def decide(self, pairs: Sequence[Pair]) -> Iterator[Decision]:
        """Each pair by its best accepted answer; the score is the probability of entailment."""
        threshold, size = float(settings("nli")["threshold"]), int(settings("nli")["batch"])
        for pair in pairs:
            texts = accepted_texts(pair.question)
            premise = claim(pair.question.question, pair.answer)
            wanted = [claim(pair.question.question, text) for text in texts]
            scores = [score for part in chunks(wanted, size) for score in self._entailed([premise] * len(part), part)]
            best = max(range(len(scores)), key=scores.__getitem__)
            right = scores[best] >= threshold
            words = "entails" if right else "does not entail"
            yield Decision(right, f"{words} {texts[best]!r} ({scores[best]:.2f})", scores[best])

    def _entailed(self, premises: Sequence[str], hypotheses: Sequence[str]) -> list[float]:
        import torch

        _, model = self._encoder.load()
        with torch.inference_mode():
            logits = model(**self._encoder.encode(premises, hypotheses)).logits
        scores: list[float] = logits.softmax(dim=-1)[:, self._entailment].tolist()
        return scores
