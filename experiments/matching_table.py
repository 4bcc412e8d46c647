"""Matching rules side by side (Table 61): false accepts and rejects on labelled pairs, and agreement with people."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from katha.eval_bridge.matching.match import require_rule
from katha.eval_bridge.matching.report import measure_file
from katha.eval_bridge.matching.rules import make_decider, open_rule, settle
from katha.eval_bridge.people.agreement import alignment
from katha.eval_bridge.people.judgments import Judgment
from katha.eval_bridge.scoring.robustness import Measured
from katha.experiments.robustness import Study
from katha.schema.robustness import MatchingRow

LETTER_RULES = ("exact-string", "keyword", "exact-set", "lemma-set")
"""The rules that need no model: every row of Table 61 but the embedding's and the language model's, and `lemma-set`."""


def matching_rows(
    study: Study,
    rules: Sequence[str] = (),
    *,
    pairs: Path | None = None,
    judgments: Sequence[Judgment] = (),
    verdicts: Path | None = None,
    base_url: str | None = None,
) -> list[MatchingRow]:
    """Return a row for each rule that needs no model and for those of `rules` (`embedding:MODEL`, `llm:JUDGE`).

    pairs: labelled pairs of an answer and an accepted set. judgments: people's, with `human_score`. verdicts: where a
    model's verdicts are kept and found again.

    Raises:
        UsageError: a rule is unknown, or its model cannot be had. InputFileError, RecordError: a line is no pair.
    """
    names = [require_rule(name) for name in dict.fromkeys([*LETTER_RULES, *rules])]
    scored = [row for row in judgments if "story_id" in row and "human_score" in row]
    found = []
    for name in names:
        archives = [verdicts] if verdicts is not None else []
        rule = open_rule(name, archives, decider=make_decider(name, base_url), keep=verdicts)
        measured = measure_file(pairs, rule) if pairs is not None else None
        settle(rule, study.records, study.answers())
        outcomes = study.outcomes_by(rule)
        judge = Measured(outcomes, study.members(outcomes)).judge
        aligned = (
            alignment(study.records, study.answers(), scored, matching=rule, questions=study.questions, resamples=0)
            if scored
            else None
        )
        person = aligned.judges[judge].human_score if aligned is not None else None
        found.append(
            MatchingRow(
                rule=name,
                n_pairs=measured.n if measured is not None else 0,
                false_accept=_percent(measured.false_accept if measured is not None else None),
                false_reject=_percent(measured.false_reject if measured is not None else None),
                n_boards=person.n if person is not None else 0,
                human_correlation=person.spearman if person is not None else None,
            )
        )
    return found


def _percent(value: float | None) -> float | None:
    return None if value is None else 100.0 * value
