"""Say whether an answer is right: normalisation, the evidence-status rules, and the rules that words decide."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Any, Protocol

from katha.configs import load_config
from katha.errors import UsageError
from katha.installing import stand_in_line
from katha.jsonio import digest
from katha.plugin_boundary import checked
from katha.registry import default_registry
from katha.schema import MORAL_LABELS, Answer, Question
from katha.usual import usual_rule as usual_rule

_ASCII_MARKS = frozenset(string.punctuation)
_WORD = re.compile(r"[a-z]+")


@lru_cache(maxsize=65536)
def normalise(text: str) -> str:
    """Return `text` in lower case, without punctuation (removed, not replaced), blanks collapsed to one.

    "The King's wedding." becomes "the kings wedding", and the label `self_control` becomes "selfcontrol".
    """
    composed = unicodedata.normalize("NFKC", text).lower()
    kept = (char for char in composed if char not in _ASCII_MARKS and not unicodedata.category(char).startswith("P"))
    return " ".join("".join(kept).split())


# Rules, each named with its version in every score. Decided by the words alone:
#
# - `exact-set`: the paper's letter (Sec. E.6, Eqs. 50 and 51), membership after normalisation
# - `exact-string`, `keyword`: rows of the matching ablation (Table 61)
# - those of installed plug-ins of the group `katha.matchers`
#
# Decided by a model, whose verdicts are archived: `nli:MODEL`, `embedding:MODEL`, `llm:JUDGE`. Under
# every rule choices and moral labels are matched literally, and a member of the accepted set is right.

UNCERTAIN = frozenset(("unclear", "ambiguous"))
_BAD_EVIDENCE = frozenset(("unclear", "omitted", "contradicted"))
_BAD_SUPPORT = frozenset(("contradicted", "ambiguous"))
_LABELS = {normalise(label): label for label in MORAL_LABELS}

MODEL_RULES: tuple[str, ...] = ("embedding", "llm", "nli")
"""The families of rules that a model decides; a rule's name is `FAMILY:ARGUMENT`."""


@dataclass(frozen=True)
class Verdict:
    """Right or wrong, and why in one phrase. `right` is None where the rule's model gave no verdict: not scored."""

    right: bool | None
    reason: str


class Rule(Protocol):
    """A matching rule. `version` changes with anything that can change a verdict."""

    @property
    def name(self) -> str:
        """Return how the rule was asked for; it stands in the scores."""
        ...

    @property
    def version(self) -> str:
        """The version that stands beside the name."""
        ...

    def verdict(self, answer: str, question: Question) -> Verdict:
        """Return the verdict on an answer's words that are no option, label or statement of uncertainty."""
        ...


ACCEPTED = Verdict(True, "in the accepted set")

Matching = str | Rule
"""A rule, or the name of one that words alone decide."""


@dataclass(frozen=True)
class WordRule:
    """A rule that is a function of the words: what a plug-in of the group `katha.matchers` makes.

    version: another one where a verdict may be another. decide: an answer that is not an option, label or statement of
    uncertainty, and the question. ahead: what is faster for many answers than for one; it changes no verdict. changing:
    later versions may decide otherwise, so that verdicts are kept beside the scores.
    """

    name: str
    version: str
    decide: Callable[[str, Question], Verdict]
    ahead: Callable[[Iterable[Pair]], None] | None = None
    changing: bool = False

    def verdict(self, answer: str, question: Question) -> Verdict:
        """Return what the function says."""
        return self.decide(answer, question)

    def prepare(self, pairs: Iterable[Pair]) -> None:
        """Do what is faster for many answers than for one, before their verdicts are asked for; it changes none."""
        if self.ahead is not None:
            self.ahead(pairs)


def _exact(answer: str, question: Question) -> Verdict:
    return ACCEPTED if normalise(answer) in accepted_set(question) else Verdict(False, "not in the accepted set")


def _string(answer: str, question: Question) -> Verdict:
    right = normalise(answer) == normalise(question.gold_answer)
    return Verdict(right, "the canonical answer" if right else "not the canonical answer")


def content_words(text: str) -> frozenset[str]:
    """Return the words of `text` in lower case that say something by themselves."""
    return frozenset(_WORD.findall(text.lower().replace("\u2019", "'").replace("'s", "").replace("'", ""))) - _small()


@cache
def _small() -> frozenset[str]:
    return frozenset(str(load_config("matching.yaml")["small"]).split())


def _keyword(answer: str, question: Question) -> Verdict:
    said = content_words(answer)
    for text in (question.gold_answer, *question.accepted_answers):
        wanted = content_words(text)
        if wanted and wanted <= said:
            return Verdict(True, f"holds {', '.join(sorted(wanted))}")
    return Verdict(False, "holds the keywords of no accepted answer")


_LETTER = (
    WordRule("exact-set", "1", _exact),
    WordRule("exact-string", "1", _string),
    WordRule("keyword", "1", _keyword),
)


def rule_names() -> list[str]:
    """Return the names of the rules that words alone decide: the paper's, and those of installed matchers."""
    return sorted({*(rule.name for rule in _LETTER), *default_registry("matchers").names()})


def named_rule(name: str) -> WordRule | None:
    """Return the rule of that name that words alone decide; None where there is none.

    Raises:
        UnknownPluginError: the matcher of that name cannot be made.
    """
    registry = default_registry("matchers")
    if name in registry.names():
        made: WordRule = checked(registry.create(name), WordRule, f"matcher {name!r}")
        return made
    return next((rule for rule in _LETTER if rule.name == name), None)


def moral_label(text: str | None) -> str | None:
    """Return which of the twelve moral labels `text` names; None if it names none."""
    return _LABELS.get(normalise(text or ""))


def accepted_set(question: Question) -> frozenset[str]:
    """Return the normalised canonical answer and paraphrases."""
    return frozenset(map(normalise, (question.gold_answer, *question.accepted_answers))) - {""}


def require_rule(name: str) -> str:
    """Return `name` if it can be the name of a rule; whether its model is there is not looked at.

    Raises:
        UsageError: no matching rule of that name, or a model's rule without its model.
    """
    family, _, argument = name.partition(":")
    if named_rule(name) is not None or (family in MODEL_RULES and argument):
        return name
    if family in MODEL_RULES:
        wanted = "llm:JUDGE, for example llm:openai:gpt-4o" if family == "llm" else f"{family}:MODEL or {family}:FOLDER"
        raise UsageError(f"The matching rule {family!r} needs a model.", hint=f"Write {wanted}.")
    raise UsageError(f"No matching rule is called {name!r}.", hint=not_installed())


def not_installed() -> str:
    """Return what to do about a rule that is not known here."""
    known = [*rule_names(), "embedding:MODEL", "llm:JUDGE", "nli:MODEL"]
    return f"Known: {', '.join(known)}; lemma-set is the stand-in's: {stand_in_line()}."


def word_rule(matching: Matching) -> Rule:
    """Return `matching` as a rule.

    Raises:
        UsageError: no such rule, or the name of one that a model decides (it has to be opened with its verdicts).
    """
    if not isinstance(matching, str):
        return matching
    rule = named_rule(require_rule(matching))
    if rule is None:
        raise UsageError(
            f"The rule {matching!r} is decided by a model, and its verdicts are not here.",
            hint="Score with `katha score --matching`, which reads verdicts.jsonl.",
        )
    return rule


def literal_verdict(answer: str, question: Question) -> Verdict | None:
    """Return the verdict that all rules share: nothing said, uncertainty, an option, a moral label; None otherwise."""
    spoken, accepted = normalise(answer), accepted_set(question)
    if not spoken:
        return Verdict(False, "empty answer")
    if spoken in UNCERTAIN:
        right = spoken in accepted
        return Verdict(right, "uncertainty is accepted here" if right else f"answered {answer.strip()!r}")
    if spoken in {normalise(option) for option in question.options or ()}:
        right = spoken in accepted
        return Verdict(right, "chose the accepted option" if right else "chose another option")
    labelled = question.question_type == "moral" and moral_label(question.gold_answer) is not None
    return _exact(answer, question) if labelled else None


def match_text(answer: str, question: Question, matching: Matching) -> Verdict:
    """Return the verdict on an answer's words alone, whatever the judge said about the evidence."""
    rule = word_rule(matching)
    literal = literal_verdict(answer, question)
    return literal if literal is not None else rule.verdict(answer, question)


def match(answer: Answer, question: Question, matching: Matching) -> Verdict:
    """Return the verdict on one answer (its status must be `ok`: a failure has no verdict).

    An evidence status `unclear`, `omitted` or `contradicted` is wrong under text and image. Under text+image only the
    image supports `contradicted` and `ambiguous` are wrong: `omitted` is the very loss that STG measures.

    Raises:
        UsageError: unknown rule, or the answer is a failure.
    """
    rule = word_rule(matching)
    if answer.status != "ok" or answer.answer is None:
        raise UsageError(f"Question {answer.question_id!r}: a row with status {answer.status!r} has no verdict.")
    verdict = match_text(answer.answer, question, rule)
    if not verdict.right or normalise(answer.answer) in UNCERTAIN:
        return verdict
    if answer.condition == "text+image":
        if answer.image_support in _BAD_SUPPORT:
            return Verdict(False, f"image support {answer.image_support}")
    elif answer.evidence_status in _BAD_EVIDENCE:
        return Verdict(False, f"evidence status {answer.evidence_status}")
    return verdict


# What a rule that a model decides asks of it.

Key = tuple[str, str]


@dataclass(frozen=True)
class Pair:
    """An answer (as it was said) and the question that it is held against."""

    answer: str
    question: Question

    @cached_property
    def key(self) -> Key:
        """Return what a verdict depends on: the question's words with its accepted set, and the normalised answer."""
        accepted = sorted(accepted_set(self.question))
        return digest([self.question.question_type, self.question.question, accepted]), normalise(self.answer)


@dataclass(frozen=True)
class MatchReply:
    """What a model said of a pair: `right` is None where it gave no verdict, and `reason` says why."""

    right: bool | None
    reason: str
    score: float | None = None


class Decider(Protocol):
    """A model that says whether an answer means what one of the accepted answers means."""

    def spec(self) -> Mapping[str, Any]:
        """Return model, revision, wording, threshold: everything that can change a decision."""
        ...

    def decide(self, pairs: Sequence[Pair]) -> Iterator[MatchReply]:
        """Yield one decision a pair, in order, each as soon as it is there."""
        ...
