"""Whether an answer is right: normalisation, the evidence-status rules, and the rule that compares with the set.

Rules (`RULES`), each named with its version in every score:

- `exact-set`: the paper's letter (Sec. E.6, Eqs. 50 and 51): lower case, punctuation and extra blanks removed,
  then membership.
- `lemma-set`: the same meaning in other words (see `lemma_set`). Choices and moral labels are matched literally
  by both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from katha.errors import UsageError
from katha.eval_bridge.normal import normalise
from katha.schema import Answer, Question

__all__ = ["RULES", "Verdict", "accepted_set", "match", "match_text", "require_rule"]

_UNCERTAIN = frozenset(("unclear", "ambiguous"))
_BAD_EVIDENCE = frozenset(("unclear", "omitted", "contradicted"))
_BAD_SUPPORT = frozenset(("contradicted", "ambiguous"))


@dataclass(frozen=True)
class Verdict:
    """Right or wrong, and why in one phrase."""

    right: bool
    reason: str


def _exact(answer: str, question: Question) -> Verdict:
    right = normalise(answer) in accepted_set(question)
    return Verdict(right, "in the accepted set" if right else "not in the accepted set")


def _lemma(answer: str, question: Question) -> Verdict:
    from katha.eval_bridge.lemma_set import same_meaning

    if normalise(answer) in accepted_set(question):
        return Verdict(True, "in the accepted set")
    right, reason = same_meaning(answer, (question.gold_answer, *question.accepted_answers), question.question)
    return Verdict(right, reason)


RULES: Mapping[str, tuple[str, Callable[[str, Question], Verdict]]] = {
    "exact-set": ("1", _exact),
    "lemma-set": ("1", _lemma),
}
"""Each rule's version and function."""


def accepted_set(question: Question) -> frozenset[str]:
    """The normalised canonical answer and paraphrases."""
    return frozenset(map(normalise, (question.gold_answer, *question.accepted_answers))) - {""}


def require_rule(rule: str) -> str:
    """`rule` if it exists.

    Raises:
        UsageError: no matching rule of that name.
    """
    if rule not in RULES:
        raise UsageError(f"No matching rule is called {rule!r}.", hint=f"Known: {', '.join(sorted(RULES))}.")
    return rule


def match_text(answer: str, question: Question, rule: str) -> Verdict:
    """The verdict on an answer's words alone, whatever the judge said about the evidence."""
    spoken = normalise(answer)
    accepted = accepted_set(question)
    if not spoken:
        return Verdict(False, "empty answer")
    if spoken in _UNCERTAIN:
        right = spoken in accepted
        return Verdict(right, "uncertainty is accepted here" if right else f"answered {answer.strip()!r}")
    if spoken in {normalise(option) for option in question.options or ()}:
        right = spoken in accepted
        return Verdict(right, "chose the accepted option" if right else "chose another option")
    if question.question_type == "moral":
        return _exact(answer, question)
    return RULES[require_rule(rule)][1](answer, question)


def match(answer: Answer, question: Question, rule: str) -> Verdict:
    """The verdict on one answer (its status must be `ok`: a failure has no verdict).

    An evidence status `unclear`, `omitted` or `contradicted` is wrong under text and image. Under text+image only the
    image supports `contradicted` and `ambiguous` are wrong: `omitted` is the very loss that STG measures.

    Raises:
        UsageError: unknown rule, or the answer is a failure.
    """
    require_rule(rule)
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
