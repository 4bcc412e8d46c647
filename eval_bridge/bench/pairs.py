"""How good a matching rule is on a file of labelled pairs: per kind of pair, and which pairs it gets wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from katha.errors import InputFileError, RecordError
from katha.eval_bridge.bench.files import Problem, ReleaseFile, stream
from katha.eval_bridge.matching import Matching, Rule, literal_verdict, match_text, word_rule
from katha.eval_bridge.matching_report import measure_pairs, pair_question
from katha.eval_bridge.verdicts import ModelRule, Pair

__all__ = ["measure_file"]


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
