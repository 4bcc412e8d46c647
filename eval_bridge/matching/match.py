"""Say whether an answer is right: normalisation, the evidence-status rules, and the rules that words decide."""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, Protocol

from katha.errors import UsageError
from katha.jsonio import digest
from katha.schema import MORAL_LABELS, Answer, Question

_ASCII_MARKS = frozenset(string.punctuation)


@lru_cache(maxsize=65536)
def normalise(text: str) -> str:
    """Return `text` in lower case, without punctuation (removed, not replaced), blanks collapsed to one.

    "The King's wedding." becomes "the kings wedding", and the label `self_control` becomes "selfcontrol".
    """
    composed = unicodedata.normalize("NFKC", text).lower()
    kept = (char for char in composed if char not in _ASCII_MARKS and not unicodedata.category(char).startswith("P"))
    return " ".join("".join(kept).split())


# Rules, each named with its version in every score. Decided by the words alone (`RULES`):
#
# - `exact-set`: the paper's letter (Sec. E.6, Eqs. 50 and 51), membership after normalisation
# - `lemma-set`: the same meaning in other words, decided on the parse (see `meaning`)
# - `lemma-set:3`: its version 3, on stems and word lists (see `lemma_set`), for archives that were scored with it
# - `exact-string`, `keyword`: rows of the matching ablation (Table 61)
#
# Decided by a model, whose verdicts are archived: `nli:MODEL`, `embedding:MODEL`, `llm:JUDGE`. Under
# every rule choices and moral labels are matched literally, and a member of the accepted set is right.

_UNCERTAIN = frozenset(("unclear", "ambiguous"))
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
        """How the rule was asked for; it stands in the scores."""
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
    """A rule that is a function of the words."""

    name: str
    version: str
    decide: Callable[[str, Question], Verdict]
    ahead: Callable[[Iterable[Pair]], None] | None = None

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


def _in_words(answer: str, question: Question, same: Callable[[str, Sequence[str], str], tuple[bool, str]]) -> Verdict:
    accepted = accepted_set(question)
    if normalise(answer) in accepted:
        return ACCEPTED
    options = set(map(normalise, question.options or ()))
    if normalise(answer) in options and options & accepted:
        return Verdict(False, "another of the options")
    return Verdict(*same(answer, (question.gold_answer, *question.accepted_answers), question.question))


def _meaning(answer: str, question: Question) -> Verdict:
    # Not at the top: it loads the parser's tables, which only free answers need.
    from katha_sketch.matching.meaning import same_meaning

    return _in_words(answer, question, same_meaning)


def _parse(pairs: Iterable[Pair]) -> None:
    from katha_sketch.matching.meaning import prepare

    doubtful = (pair for pair in pairs if normalise(pair.answer) not in accepted_set(pair.question))
    while batch := [(pair.question.question, pair.answer) for pair in islice(doubtful, 1024)]:
        prepare(batch)


def _lemma(answer: str, question: Question) -> Verdict:
    from katha_sketch.matching.lemma_set import same_meaning

    return _in_words(answer, question, same_meaning)


def _keyword(answer: str, question: Question) -> Verdict:
    from katha_sketch.matching.lemmas import read_words

    said = {word.surface for word in read_words(answer)}
    for text in (question.gold_answer, *question.accepted_answers):
        wanted = {word.surface for word in read_words(text) if word.content}
        if wanted and wanted <= said:
            return Verdict(True, f"holds {', '.join(sorted(wanted))}")
    return Verdict(False, "holds the keywords of no accepted answer")


RULES: Mapping[str, WordRule] = {
    rule.name: rule
    for rule in (
        WordRule("exact-set", "1", _exact),
        WordRule("exact-string", "1", _string),
        WordRule("keyword", "1", _keyword),
        WordRule("lemma-set", "4", _meaning, _parse),
        WordRule("lemma-set:3", "3", _lemma),
    )
}
"""The rules that words alone decide, by name."""


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
    if name in RULES or (family in MODEL_RULES and argument):
        return name
    if family in MODEL_RULES:
        wanted = "llm:JUDGE, for example llm:openai:gpt-4o" if family == "llm" else f"{family}:MODEL or {family}:FOLDER"
        raise UsageError(f"The matching rule {family!r} needs a model.", hint=f"Write {wanted}.")
    known = [*sorted(RULES), "embedding:MODEL", "llm:JUDGE", "nli:MODEL"]
    raise UsageError(f"No matching rule is called {name!r}.", hint=f"Known: {', '.join(known)}.")


def word_rule(matching: Matching) -> Rule:
    """Return `matching` as a rule.

    Raises:
        UsageError: no such rule, or the name of one that a model decides (it has to be opened with its verdicts).
    """
    if not isinstance(matching, str):
        return matching
    if require_rule(matching) not in RULES:
        raise UsageError(
            f"The rule {matching!r} is decided by a model, and its verdicts are not here.",
            hint="Score with `katha score --matching`, which reads verdicts.jsonl.",
        )
    return RULES[matching]


def literal_verdict(answer: str, question: Question) -> Verdict | None:
    """Return the verdict that all rules share: nothing said, uncertainty, an option, a moral label; None otherwise."""
    spoken, accepted = normalise(answer), accepted_set(question)
    if not spoken:
        return Verdict(False, "empty answer")
    if spoken in _UNCERTAIN:
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
    if not verdict.right or normalise(answer.answer) in _UNCERTAIN:
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
        """What a verdict depends on: the question's words with its accepted set, and the normalised answer."""
        accepted = sorted(accepted_set(self.question))
        return digest([self.question.question_type, self.question.question, accepted]), normalise(self.answer)


@dataclass(frozen=True)
class Decision:
    """What a model said of a pair: `right` is None where it gave no verdict, and `reason` says why."""

    right: bool | None
    reason: str
    score: float | None = None


class Decider(Protocol):
    """A model that says whether an answer means what one of the accepted answers means."""

    def spec(self) -> Mapping[str, Any]:
        """Return model, revision, wording, threshold: everything that can change a decision."""
        ...

    def decide(self, pairs: Sequence[Pair]) -> Iterator[Decision]:
        """Yield one decision a pair, in order, each as soon as it is there."""
        ...
