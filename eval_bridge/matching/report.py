"""How good a matching rule is, measured on labelled pairs of an answer and an accepted set."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import sqrt
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from katha.errors import InputFileError, RecordError
from katha.eval_bridge.bench.files import FileProblem, stream
from katha.eval_bridge.matching.match import Matching, Pair, Rule, literal_verdict, match_text, word_rule
from katha.eval_bridge.matching.rules import ModelRule, prepare
from katha.schema import Question

_LABELS = ("right", "wrong")
_Z95 = 1.959963984540054
"""The normal deviate that 2.5% lie beyond."""
Row = tuple[int, Mapping[str, Any]]
"""The number of a line and the pair on it."""


class KindReport(BaseModel, frozen=True):
    """Pairs of one kind: counts, precision, recall and F1 of accepting, and 95% intervals (Wilson's, each pair by
    itself) of the shares of wrong pairs accepted and of right ones rejected; None where nothing can be divided."""

    n: int
    right: int
    false_accept: int
    false_reject: int
    precision: float | None
    recall: float | None
    f1: float | None
    false_accept_ci95: tuple[float, float] | None = None
    false_reject_ci95: tuple[float, float] | None = None


class Confusion(BaseModel, frozen=True):
    """A pair that the rule judges against its label, and why."""

    line: int
    kind: str
    label: Literal["right", "wrong"]
    answer: str
    gold_answer: str
    reason: str


class MatchingReport(BaseModel, frozen=True):
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
    recall: float | None
    f1: float | None
    confusions: list[Confusion]
    false_accept_ci95: tuple[float, float] | None = None
    false_reject_ci95: tuple[float, float] | None = None


def measure_pairs(pairs: Iterable[Mapping[str, Any]], matching: Matching) -> MatchingReport:
    """Judge every pair by a rule. A pair has question, gold_answer, accepted_answers, answer, label and maybe a kind.

    Raises:
        UsageError: unknown rule. RecordError: a pair is not one (its number is named).
    """
    rule, rows = word_rule(matching), list(_questions(enumerate(pairs, 1)))
    prepare(rule, _doubtful(rows))
    return _measure(rows, rule)


def measure_file(path: Path, matching: Matching) -> MatchingReport:
    """Judge the pairs of a JSON Lines file as `measure_pairs` does.

    Raises:
        UsageError: unknown rule. InputFileError, RecordError: a line is not a pair; file and line are named.
    """
    rule = word_rule(matching)
    if isinstance(rule, ModelRule):
        rule.settle(_doubtful(_questions(_rows(path), path)))
        rule.tidy()
    prepare(rule, _doubtful(_questions(_rows(path), path)))
    report = _measure(_questions(_rows(path), path), rule)
    if not report.n:
        raise InputFileError(f"{str(path)!r} holds no pair.", hint="Give one JSON object a line.")
    return report


def _doubtful(rows: Iterable[tuple[int, Mapping[str, Any], Question]]) -> Iterator[Pair]:
    """Yield the pairs whose verdict is a matter of the rule."""
    for _, pair, question in rows:
        if literal_verdict(pair["answer"], question) is None:
            yield Pair(pair["answer"], question)


def _rows(path: Path) -> Iterator[Row]:
    for row in stream(path):
        if isinstance(row, FileProblem):
            raise InputFileError(f"{str(path)!r}, line {row.line}: {row.message}")
        yield row.line, row.value


def _questions(rows: Iterable[Row], path: Path | None = None) -> Iterator[tuple[int, Mapping[str, Any], Question]]:
    """Yield each row with its pair as a question; an error names the line of `path`."""
    for number, (line, pair) in enumerate(rows, 1):
        try:
            yield line, pair, _question(pair, number)
        except RecordError as error:
            raise error if path is None else RecordError(f"{str(path)!r}, line {line}: {error.message}") from error


def _question(pair: Mapping[str, Any], number: int) -> Question:
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


def _measure(rows: Iterable[tuple[int, Mapping[str, Any], Question]], rule: Rule) -> MatchingReport:
    kinds: dict[str, Counter[tuple[str, bool]]] = defaultdict(Counter)
    wrong: dict[str, list[bool]] = defaultdict(list)
    confusions: list[Confusion] = []
    undecided = 0
    for line, pair, question in rows:
        verdict, label, kind = match_text(pair["answer"], question, rule), pair["label"], str(pair.get("kind", ""))
        if verdict.right is None:
            undecided += 1
            continue
        kinds[kind][label, verdict.right] += 1
        if label == "wrong":
            wrong[question.question_id].append(verdict.right)
        if verdict.right != (label == "right"):
            confusions.append(
                Confusion(
                    line=line,
                    kind=kind,
                    label=label,
                    answer=pair["answer"],
                    gold_answer=pair["gold_answer"],
                    reason=verdict.reason,
                )
            )
    whole = _kind(sum(kinds.values(), Counter()))
    return MatchingReport(
        rule=rule.name,
        version=rule.version,
        n=whole.n,
        undecided=undecided,
        false_accept=_ratio(whole.false_accept, whole.n - whole.right),
        false_reject=_ratio(whole.false_reject, whole.right),
        precision=whole.precision,
        worst_question=max((sum(cell) / len(cell) for cell in wrong.values()), default=None),
        by_kind={kind: _kind(kinds[kind]) for kind in sorted(kinds)},
        recall=whole.recall,
        f1=whole.f1,
        confusions=confusions,
        false_accept_ci95=whole.false_accept_ci95,
        false_reject_ci95=whole.false_reject_ci95,
    )


def _kind(cells: Counter[tuple[str, bool]]) -> KindReport:
    hits, missed, false = cells["right", True], cells["right", False], cells["wrong", True]
    return KindReport(
        n=cells.total(),
        right=hits + missed,
        false_accept=false,
        false_reject=missed,
        precision=_ratio(hits, hits + false),
        recall=_ratio(hits, hits + missed),
        f1=_ratio(2 * hits, 2 * hits + false + missed),
        false_accept_ci95=_wilson(false, cells.total() - hits - missed),
        false_reject_ci95=_wilson(missed, hits + missed),
    )


def _wilson(part: int, whole: int) -> tuple[float, float] | None:
    """Return Wilson's 95% score interval of a share."""
    if not whole:
        return None
    middle, z2 = part / whole, _Z95**2
    centre = (middle + z2 / (2 * whole)) / (1 + z2 / whole)
    half = _Z95 * sqrt(middle * (1 - middle) / whole + z2 / (4 * whole**2)) / (1 + z2 / whole)
    return (max(0.0, centre - half), min(1.0, centre + half))


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None
