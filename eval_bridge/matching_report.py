"""How good a matching rule is, measured on labelled pairs of an answer and an accepted set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from pydantic import ValidationError

from katha.errors import RecordError
from katha.eval_bridge.matching import Matching, match_text, word_rule
from katha.schema import Question

__all__ = ["MatchingReport", "measure_pairs", "pair_question"]

_LABELS = ("right", "wrong")


class KindReport(TypedDict):
    """Counts of one kind of pair: how many, and how many of them were judged against their label."""

    n: int
    false_accept: int
    false_reject: int


class MatchingReport(TypedDict):
    """Rates in 0..1: `false_accept` of the pairs labelled wrong, `false_reject` of those labelled right.

    precision: of what was accepted, the share labelled right. worst_question: the highest false-accept rate of a single
    question. The rules have no fitted parameters, so leaving a question out of the pairs changes no verdict. A rate
    without pairs is None. undecided: pairs that the rule's model gave no verdict on; they count nowhere else.
    """

    rule: str
    version: str
    n: int
    undecided: int
    false_accept: float | None
    false_reject: float | None
    precision: float | None
    worst_question: float | None
    by_kind: dict[str, KindReport]


def pair_question(pair: Mapping[str, Any], number: int) -> Question:
    """The question of a labelled pair, the `number`-th of its file.

    Raises:
        RecordError: it is no labelled pair; the number and the field are named.
    """
    try:
        if pair["label"] not in _LABELS or not isinstance(pair["answer"], str):
            raise RecordError(f"Pair {number}: a pair needs an `answer` and a `label` that is right or wrong.")
        return Question(
            question_id=str(pair.get("question_id", number)),
            question_type=pair.get("question_type", "causal"),
            question=pair["question"],
            gold_answer=pair["gold_answer"],
            accepted_answers=pair.get("accepted_answers", []),
        )
    except KeyError as error:
        raise RecordError(f"Pair {number} has no field {error.args[0]!r}.") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise RecordError(f"Pair {number}, field {first['loc'][0]!r}: {first['msg']}.") from error


def _rate(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def measure_pairs(pairs: Iterable[Mapping[str, Any]], matching: Matching) -> MatchingReport:
    """Judge every pair by a rule. A pair has question, gold_answer, accepted_answers, answer, label and maybe a kind.

    Raises:
        UsageError: unknown rule. RecordError: a pair is not one (its number is named).
    """
    rule = word_rule(matching)
    kinds: dict[str, KindReport] = {}
    totals: dict[str, int] = dict.fromkeys(_LABELS, 0)
    wrong: dict[str, list[bool]] = defaultdict(list)
    undecided = 0
    for number, pair in enumerate(pairs, 1):
        question = pair_question(pair, number)
        accepted, right = match_text(pair["answer"], question, rule).right, pair["label"] == "right"
        if accepted is None:
            undecided += 1
            continue
        totals[pair["label"]] += 1
        kind = kinds.setdefault(str(pair.get("kind", "")), {"n": 0, "false_accept": 0, "false_reject": 0})
        kind["n"] += 1
        kind["false_accept"] += accepted and not right
        kind["false_reject"] += right and not accepted
        if not right:
            wrong[question.question_id].append(accepted)
    accepts = sum(kind["false_accept"] for kind in kinds.values())
    rejects = sum(kind["false_reject"] for kind in kinds.values())
    hits = totals["right"] - rejects
    return {
        "rule": rule.name,
        "version": rule.version,
        "n": sum(totals.values()),
        "undecided": undecided,
        "false_accept": _rate(accepts, totals["wrong"]),
        "false_reject": _rate(rejects, totals["right"]),
        "precision": _rate(hits, hits + accepts),
        "worst_question": max((sum(cell) / len(cell) for cell in wrong.values()), default=None),
        "by_kind": dict(sorted(kinds.items())),
    }
