"""The models behind the matching rules `nli`, `embedding` and `llm` (Table 61)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from inspect import signature
from pathlib import Path
from typing import Any, TypeVar

from katha.configs import load_config, load_prompt
from katha.errors import InputFileError, TransientJudgeError, UsageError, first_line
from katha.eval_bridge.matching.match import accepted_set, normalise
from katha.eval_bridge.matching.verdicts import Decision, Pair
from katha.models.checkpoints import find_folder, folder_revision, need, read_config
from katha.protocols import Evidence, Judge, JudgePrompt
from katha.registry import default_registry
from katha.schema import Question

# ---
# What the two encoder rules share: a transformers model from a folder or the local cache, and its settings as data.


T = TypeVar("T")


def settings(family: str) -> Mapping[str, Any]:
    """The rule's section of `configs/matching.yaml`."""
    section: Mapping[str, Any] = load_config("matching.yaml")[family]
    return section


def claim(question: str, answer: str) -> str:
    """An answer in its question's context, as one text."""
    return load_prompt("match/claim").render(question=question, answer=answer)


def accepted_texts(question: Question) -> list[str]:
    """The canonical answer and its paraphrases as they are written, each once, in a fixed order."""
    found = {normalise(text): text for text in (*question.accepted_answers, question.gold_answer)}
    return [found[key] for key in sorted(accepted_set(question))]


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """`items` in pieces of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


@dataclass
class Encoder:
    """A model's folder and revision; weights are read at the first use. auto: the transformers class for them."""

    family: str
    name: str
    auto: str

    def __post_init__(self) -> None:
        """Find the files and check what they are.

        Raises:
            MissingExtraError: torch or transformers is missing. InputFileError: no such folder, or no model in it.
            ModelError: the model is not on this machine; the hint is the command that fetches it.
        """
        for module in ("torch", "transformers"):
            need(module, f"The matching rule {self.family!r}", "local")
        folder = find_folder(self.name)
        self.folder, self.config = folder, read_config(self.name, folder)
        self.revision = folder_revision(folder)
        self._loaded: tuple[Any, Any] | None = None

    def spec(self) -> dict[str, Any]:
        """Everything that can change a score."""
        return {
            "rule": self.family,
            "model": self.folder.name if Path(self.name).is_dir() else self.name,
            "revision": self.revision,
            "claim": load_prompt("match/claim").sha256,
            **settings(self.family),
            "versions": {name: version(name) for name in ("torch", "transformers")},
        }

    def load(self) -> tuple[Any, Any]:
        """Tokenizer and model, ready; safetensors only, nothing is fetched and no code of the model's is run.

        Raises:
            InputFileError: the files cannot be loaded.
        """
        if self._loaded is None:
            transformers = need("transformers", f"The matching rule {self.family!r}", "local")
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
                model, report = getattr(transformers, self.auto).from_pretrained(
                    self.folder, local_files_only=True, use_safetensors=True, output_loading_info=True
                )
            except Exception as error:  # from_pretrained raises many kinds, all meaning that these files are no model
                reason = first_line(error)
                raise InputFileError(f"{self.name!r} cannot be loaded: {reason}", hint="Download it again.") from error
            missing = [name for name in report["missing_keys"] if "pooler" not in name]
            if missing:
                raise InputFileError(
                    f"{self.name!r} lacks {len(missing)} weights, the first {sorted(missing)[0]!r}.",
                    hint=f"The rule {self.family!r} needs a model that was trained for it.",
                )
            self._loaded = (tokenizer, model.float().eval())
        return self._loaded

    def encode(self, *texts: Sequence[str]) -> Any:
        """The tokenizer's batch of one or two lists of texts, cut at the rule's `longest`."""
        tokenizer, _ = self.load()
        longest = int(settings(self.family)["longest"])
        return tokenizer(*map(list, texts), padding=True, truncation=True, max_length=longest, return_tensors="pt")


# ---
# `nli:MODEL`: any transformers sequence-classification model that knows entailment.
#
# An answer is right when, in its question's context, it entails one of the accepted answers: the premise is the
# question with the answer, the hypothesis the question with the accepted answer. More may be said than is accepted,
# not less.


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


# ---
# `embedding:MODEL`: cosine of mean-pooled sentence vectors, right from a threshold on (Table 61, for comparison).


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


# ---
# `llm:JUDGE`: a language model decides, through the very judges that answer questions (`llm:openai:MODEL`, ...).
#
# It is told the question, the accepted answers and one answer, and chooses `same` or `different`. What is no such
# choice (a refusal, prose, a dead connection) is no verdict: the answer stays unscored and is asked for again.


_SAME, _DIFFERENT = "same", "different"
_AT_ONCE = 64


class LlmDecider:
    """A judge as a decider. `judge` is named as on the command line; `base_url` goes to those that call a server."""

    def __init__(self, argument: str, *, base_url: str | None = None) -> None:
        """Make the judge.

        Raises:
            UnknownPluginError, MissingExtraError, UsageError: it cannot be made, or reads no words.
        """
        registry = default_registry("judges")
        takes_url = "base_url" in signature(registry.load(argument)[0]).parameters
        self._judge: Judge = registry.create(argument, **({"base_url": base_url} if base_url and takes_url else {}))
        if getattr(self._judge, "always_chooses", False) or argument.partition(":")[0] == "recorded":
            raise UsageError(
                f"The judge {argument!r} cannot compare answers.", hint="Use llm:anthropic:..., openai: or local:."
            )

    def spec(self) -> Mapping[str, Any]:
        """The judge's own specification and the wording."""
        return {"rule": "llm", "judge": dict(self._judge.spec()), "prompt": load_prompt("match/same").sha256}

    def decide(self, pairs: Sequence[Pair]) -> Iterator[Decision]:
        """One decision a pair; a transient failure of the judge leaves the rest of its batch undecided."""
        for part in chunks(pairs, _AT_ONCE):
            given = 0
            try:
                for reply in self._judge.ask(Evidence("text"), [_prompt(pair) for pair in part]):
                    given += 1
                    if reply.status == "ok" and reply.answer in (_SAME, _DIFFERENT):
                        yield Decision(reply.answer == _SAME, f"judged {reply.answer}")
                    else:
                        yield Decision(None, reply.error or reply.status)
            except TransientJudgeError as error:
                yield from (Decision(None, error.message) for _ in part[given:])


def _prompt(pair: Pair) -> JudgePrompt:
    asked = pair.question
    fields = {"answer": {"type": "string", "enum": [_SAME, _DIFFERENT]}}
    return JudgePrompt(
        question=f"{asked.question}\nThe answer to compare: {pair.answer}",
        dimension=asked.question_type,
        instruction=load_prompt("match/same").render(accepted=accepted_texts(asked)),
        options=(_SAME, _DIFFERENT),
        schema={"type": "object", "properties": fields, "required": ["answer"], "additionalProperties": False},
    )
