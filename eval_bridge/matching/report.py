"""How good a matching rule is, measured on labelled pairs of an answer and an accepted set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from pydantic import ValidationError

from katha.errors import InputFileError, RecordError
from katha.eval_bridge.bench.files import Problem, ReleaseFile, stream
from katha.eval_bridge.matching.match import Matching, Rule, literal_verdict, match_text, word_rule
from katha.eval_bridge.matching.verdicts import ModelRule, Pair
from katha.schema import Question

# ---
# How good a matching rule is, measured on labelled pairs of an answer and an accepted set.


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


# ---
# How good a matching rule is on a file of labelled pairs: per kind of pair, and which pairs it gets wrong.


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


class _Tally:
    """Right and wrong decisions of one kind of pair."""

    def __init__(self) -> None:
        self.cells = {(label, accepted): 0 for label in ("right", "wrong") for accepted in (True, False)}

    def rates(self) -> dict[str, Any]:
        """Counts, and precision, recall and F1 of accepting; None where there is nothing to divide by."""
        hits, missed = self.cells["right", True], self.cells["right", False]
        false = self.cells["wrong", True]
        return {
            "n": sum(self.cells.values()),
            "right": hits + missed,
            "false_accept": false,
            "false_reject": missed,
            "precision": _ratio(hits, hits + false),
            "recall": _ratio(hits, hits + missed),
            "f1": _ratio(2 * hits, 2 * hits + false + missed),
        }


class _Pairs:
    """Streams the pairs of a file and, once each is known to be sound, judges it."""

    def __init__(self, path: Path, rule: Rule) -> None:
        self.path, self.rule, self.line = path, rule, 0
        self.kinds: dict[str, _Tally] = {}
        self.confusions: list[dict[str, Any]] = []

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        for pair in self._rows():
            yield pair
            self._judge(pair)

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        for row in stream(ReleaseFile(self.path, "stories")):
            if isinstance(row, Problem):
                raise InputFileError(f"{str(self.path)!r}, line {row.line}: {row.message}")
            self.line = row.line
            yield row.value

    def undecided(self) -> Iterator[Pair]:
        """The pairs whose verdict is a matter of the rule."""
        for pair in self._rows():
            question = pair_question(pair, self.line)
            if literal_verdict(pair["answer"], question) is None:
                yield Pair(pair["answer"], question)

    def _judge(self, pair: Mapping[str, Any]) -> None:
        verdict = match_text(pair["answer"], pair_question(pair, self.line), self.rule)
        if verdict.right is None:
            return
        kind = str(pair.get("kind", ""))
        self.kinds.setdefault(kind, _Tally()).cells[pair["label"], verdict.right] += 1
        if verdict.right != (pair["label"] == "right"):
            self.confusions.append(
                {
                    "line": self.line,
                    "kind": kind,
                    "label": pair["label"],
                    "answer": pair["answer"],
                    "gold_answer": pair["gold_answer"],
                    "reason": verdict.reason,
                }
            )


def measure_file(path: Path, matching: Matching) -> dict[str, Any]:
    """`measure_pairs` of a JSON Lines file, with precision, recall and F1 of each kind and the `confusions`.

    Raises:
        UsageError: unknown rule. InputFileError, RecordError: a line is no pair; file and line are named.
    """
    rule = word_rule(matching)
    pairs = _Pairs(path, rule)
    try:
        if isinstance(rule, ModelRule):
            rule.settle(pairs.undecided())
            rule.tidy()
        report = measure_pairs(pairs, rule)
    except RecordError as error:
        raise RecordError(f"{str(path)!r}, line {pairs.line}: {error.message}") from error
    if not report["n"]:
        raise InputFileError(f"{str(path)!r} holds no pair.", hint="Give one JSON object a line.")
    whole = _Tally()
    for tally in pairs.kinds.values():
        for cell, count in tally.cells.items():
            whole.cells[cell] += count
    rates = whole.rates()
    return {
        **report,
        "recall": rates["recall"],
        "f1": rates["f1"],
        "by_kind": {kind: pairs.kinds[kind].rates() for kind in sorted(pairs.kinds)},
        "confusions": pairs.confusions,
    }
