"""The models behind the matching rules `nli`, `embedding` and `llm` (Table 61)."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from katha.configs import load_config, load_prompt
from katha.errors import TransientJudgeError, UsageError
from katha.eval_bridge.judging.abilities import price_of
from katha.eval_bridge.judging.budget import STOPPED, Budget, estimate_tokens, expected_cost, require_prices
from katha.eval_bridge.matching.match import MatchReply, Pair, accepted_set, normalise
from katha.models.checkpoints import find_folder, folder_revision, load_pretrained, need, read_config
from katha.plugin_boundary import checked
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply, PlainPrompt, can
from katha.registry import default_registry, option_names
from katha.schema import Question


def claim(question: str, answer: str) -> str:
    """Return an answer in its question's context, as one text."""
    return load_prompt("match/claim").render(question=question, answer=answer)


def _accepted_texts(question: Question) -> list[str]:
    """Return the canonical answer and its paraphrases as they are written, each once, in a fixed order."""
    found = {normalise(text): text for text in (*question.accepted_answers, question.gold_answer)}
    return [found[key] for key in sorted(accepted_set(question))]


class EncoderDecider(ABC):
    """A transformers model from a folder or the local cache as a decider; its settings are in `configs/matching.yaml`.

    FAMILY: the rule. AUTO: the transformers class for its weights, which are read at the first use.
    """

    FAMILY: ClassVar[str]
    AUTO: ClassVar[str]

    def __init__(self, argument: str) -> None:
        """Find the files and check what they are.

        Raises:
            MissingExtraError: torch or transformers is missing. InputFileError: no such folder, or no model in it.
            ModelError: the model is not on this machine; the hint is the command that fetches it.
        """
        for module in ("torch", "transformers"):
            need(module, f"The matching rule {self.FAMILY!r}", "local")
        self._name, self._folder = argument, find_folder(argument)
        self._config = read_config(argument, self._folder)
        self._revision = folder_revision(self._folder)
        self._settings: Mapping[str, Any] = load_config("matching.yaml")[self.FAMILY]
        self._loaded: tuple[Any, Any] | None = None

    def spec(self) -> Mapping[str, Any]:
        """Return the model with its revision and settings: everything that can change a score."""
        return {
            "rule": self.FAMILY,
            "model": self._folder.name if Path(self._name).is_dir() else self._name,
            "revision": self._revision,
            "claim": load_prompt("match/claim").sha256,
            **self._settings,
            "versions": {name: version(name) for name in ("torch", "transformers")},
        }

    def decide(self, pairs: Sequence[Pair]) -> Iterator[MatchReply]:
        """Decide each pair by the accepted answer that scores best, right from the rule's threshold on."""
        for pair in pairs:
            texts = _accepted_texts(pair.question)
            scores = self._scores(pair, texts)
            best = max(range(len(scores)), key=scores.__getitem__)
            right = scores[best] >= float(self._settings["threshold"])
            yield MatchReply(right, self._reason(right, scores[best], texts[best]), scores[best])

    @abstractmethod
    def _scores(self, pair: Pair, texts: Sequence[str]) -> list[float]:
        """Return how near the answer is to each accepted one."""

    @abstractmethod
    def _reason(self, right: bool, score: float, text: str) -> str: ...

    def _load(self) -> tuple[Any, Any]:
        """Return tokenizer and model, ready; safetensors only, nothing is fetched and no code of the model's is run.

        Raises:
            InputFileError: the files cannot be loaded. UsageError: the model does not fit into memory.
        """
        if self._loaded is None:
            import transformers

            kinds = getattr(transformers, self.AUTO), transformers.AutoTokenizer
            hint = f"The rule {self.FAMILY!r} needs a model that was trained for it."
            try:
                model, tokenizer = load_pretrained(*kinds, self._folder, self._name, spare="pooler", untrained=hint)
            except MemoryError as error:
                raise UsageError(f"{self._name!r} does not fit into memory.", hint="Use a smaller model.") from error
            self._loaded = (tokenizer, model.float().eval())
        return self._loaded

    def _forward(self, *texts: Sequence[str]) -> tuple[Any, Any]:
        """Return the tokenizer's batch of one or two lists of texts, cut at the rule's `longest`, and the outputs."""
        import torch

        tokenizer, model = self._load()
        longest = int(self._settings["longest"])
        batch = tokenizer(*map(list, texts), padding=True, truncation=True, max_length=longest, return_tensors="pt")
        with torch.inference_mode():
            return batch, model(**batch)


class NliDecider(EncoderDecider):
    """`nli:MODEL`: any sequence-classification model that knows entailment; the score is its probability.

    An answer is right when, in its question's context, it entails one of the accepted answers: the premise is the
    question with the answer, the hypothesis the question with the accepted answer. More may be said than is accepted,
    not less.
    """

    FAMILY, AUTO = "nli", "AutoModelForSequenceClassification"

    def __init__(self, argument: str) -> None:
        """Find the model and its label for entailment.

        Raises:
            MissingExtraError, InputFileError, ModelError: see `EncoderDecider`. UsageError: no label means entailment.
        """
        super().__init__(argument)
        labels = dict(self._config.get("id2label") or {})
        found = [int(at) for at, label in labels.items() if str(label).lower().startswith("entail")]
        if len(found) != 1:
            shown = ", ".join(map(str, labels.values())) or "none"
            raise UsageError(
                f"{argument!r} has no label 'entailment' (its labels: {shown}).",
                hint="Use a model trained on natural language inference.",
            )
        self._entailment = found[0]

    def spec(self) -> Mapping[str, Any]:
        """Return the model with its revision, and the label that counts."""
        return {**super().spec(), "label": self._entailment}

    def _scores(self, pair: Pair, texts: Sequence[str]) -> list[float]:
        premise, size = claim(pair.question.question, pair.answer), int(self._settings["batch"])
        wanted = [claim(pair.question.question, text) for text in texts]
        scores: list[float] = []
        for start in range(0, len(wanted), size):
            part = wanted[start : start + size]
            _, output = self._forward([premise] * len(part), part)
            scores += output.logits.softmax(dim=-1)[:, self._entailment].tolist()
        return scores

    def _reason(self, right: bool, score: float, text: str) -> str:
        return f"{'entails' if right else 'does not entail'} {text!r} ({score:.2f})"


class EmbeddingDecider(EncoderDecider):
    """`embedding:MODEL`: a sentence encoder; the score is the cosine of mean-pooled vectors, for comparison."""

    FAMILY, AUTO = "embedding", "AutoModel"

    def spec(self) -> Mapping[str, Any]:
        """Return the model with its revision, and how vectors are made."""
        return {**super().spec(), "pooling": "mean"}

    def _scores(self, pair: Pair, texts: Sequence[str]) -> list[float]:
        import torch

        batch, output = self._forward([pair.answer, *texts])
        states = output.last_hidden_state
        mask = batch["attention_mask"].unsqueeze(-1).to(states.dtype)  # the mean over tokens that are no padding
        vectors = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1).clamp(min=1), dim=-1)
        scores: list[float] = (vectors[1:] @ vectors[0]).tolist()
        return scores

    def _reason(self, right: bool, score: float, text: str) -> str:
        return f"cosine {score:.2f} with {text!r}"


# `llm:JUDGE`: a language model decides, through the very judges that answer questions (`llm:openai:MODEL`, ...).
#
# It is told the questions, the accepted answers and one answer to each, many in one call, and says `same` or
# `different` of each. One of which it says neither is put to it alone, as a choice. What is no such choice (a refusal,
# prose, a dead connection) is not a verdict: the answer stays unscored and is asked for again.


_SAME, _DIFFERENT = "same", "different"
# Each call has its instruction to pay for, and one that fails costs the verdicts of all its pairs.
_AT_ONCE = 40
_VERDICT = re.compile(r"^\W*(\d+)\W+(same|different)\b", re.IGNORECASE | re.MULTILINE)
# A number, a word and a comma, as JSON.
_VERDICT_TOKENS = 12


class LlmDecider:
    """A judge as a decider. `judge` is named as on the command line; `base_url` goes to those that call a server."""

    def __init__(self, argument: str, *, base_url: str | None = None, budget: Budget | None = None) -> None:
        """Make the judge. budget: what its calls are paid from.

        Raises:
            UnknownPluginError, MissingExtraError, UsageError: it cannot be made, or reads no words; or the budget is in
            dollars and its price is unknown.
        """
        registry = default_registry("judges")
        takes_url = "base_url" in option_names(registry.load(argument)[0])
        made = registry.create(argument, **({"base_url": base_url} if base_url and takes_url else {}))
        self._judge: Judge = checked(made, Judge, f"judge {argument!r}")
        if self._judge.always_chooses or argument.partition(":")[0] == "recorded":
            raise UsageError(
                f"The judge {argument!r} cannot compare answers.", hint="Use llm:anthropic:..., openai: or local:."
            )
        require_prices({argument: self._judge}, budget or Budget())
        self._budget = budget if budget is not None and self._judge.metered else Budget()

    def spec(self) -> Mapping[str, Any]:
        """Return the judge's own specification and the wording."""
        prompts = [load_prompt(f"match/{name}").sha256 for name in ("same", "together")]
        return {"rule": "llm", "judge": dict(self._judge.spec()), "prompts": prompts}

    def decide(self, pairs: Sequence[Pair]) -> Iterator[MatchReply]:
        """Decide each pair; a transient failure of the judge leaves the rest of its batch undecided."""
        for start in range(0, len(pairs), _AT_ONCE):
            part = pairs[start : start + _AT_ONCE]
            known = self._together(part)
            alone = self._singly([pair for at, pair in enumerate(part) if at not in known])
            yield from (known[at] if at in known else next(alone) for at in range(len(part)))

    def _together(self, pairs: Sequence[Pair]) -> dict[int, MatchReply]:
        """Return by its place what one call says of each pair; nothing of those it does not name."""
        if len(pairs) < 2 or not can(self._judge, Judge.ask_plainly):
            return {}
        rows = [
            {"question": pair.question.question, "accepted": _accepted_texts(pair.question), "answer": pair.answer}
            for pair in pairs
        ]
        asked = load_prompt("match/together").render(pairs=rows)
        prompt = PlainPrompt((asked,), max_tokens=_VERDICT_TOKENS * len(pairs) + 1_000)
        each = self._expected(prompt, len(pairs))
        if not self._budget.grant(1, each):
            return {at: MatchReply(None, STOPPED) for at in range(len(pairs))}
        reply, cost = None, 0.0
        try:
            reply = next(iter(self._judge.ask_plainly(Evidence("text"), [prompt])), None)
            cost = _cost(reply)
        except TransientJudgeError:
            return {}
        finally:
            self._budget.settle(each, cost)
        said = reply.answer if reply is not None and reply.status == "ok" else None
        found = {int(number) - 1: word.lower() for number, word in _VERDICT.findall(said or "")}
        return {at: MatchReply(word == _SAME, f"judged {word}") for at, word in found.items() if 0 <= at < len(pairs)}

    def _singly(self, pairs: Sequence[Pair]) -> Iterator[MatchReply]:
        prompts = [_prompt(pair) for pair in pairs]
        each = max((self._expected(prompt, 1) for prompt in prompts), default=0.0)
        given, granted = 0, self._budget.grant(len(prompts), each)
        try:
            for reply in self._judge.ask(Evidence("text"), prompts[:granted]) if granted else ():
                given += 1
                self._budget.settle(each, _cost(reply))
                if reply.status == "ok" and reply.answer in (_SAME, _DIFFERENT):
                    yield MatchReply(reply.answer == _SAME, f"judged {reply.answer}")
                else:
                    yield MatchReply(None, reply.error or reply.status)
        except TransientJudgeError as error:
            yield from (MatchReply(None, error.message) for _ in prompts[given:granted])
        finally:
            self._budget.give_back(granted - given, each)
        yield from (MatchReply(None, STOPPED) for _ in prompts[granted:])

    def _expected(self, prompt: JudgePrompt | PlainPrompt, verdicts: int) -> float:
        """Return the dollars that one call is expected to cost."""
        written = verdicts * _VERDICT_TOKENS + self._judge.thoughts
        return expected_cost(price_of(self._judge), estimate_tokens(Evidence("text"), prompt), written)


def _cost(reply: JudgeReply | None) -> float:
    return float((reply.usage.get("cost") if reply is not None else None) or 0.0)


def _prompt(pair: Pair) -> JudgePrompt:
    asked = pair.question
    fields = {"answer": {"type": "string", "enum": [_SAME, _DIFFERENT]}}
    return JudgePrompt(
        question=f"{asked.question}\nThe answer to compare: {pair.answer}",
        dimension=asked.question_type,
        instruction=load_prompt("match/same").render(accepted=_accepted_texts(asked)),
        options=(_SAME, _DIFFERENT),
        schema={"type": "object", "properties": fields, "required": ["answer"], "additionalProperties": False},
    )
