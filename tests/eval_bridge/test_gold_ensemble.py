"""The human-calibrated ensemble: it learns whom to believe, and is measured on stories it has not seen."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import InputFileError, RecordError
from katha.eval_bridge.people.ensemble import EnsembleReport, GoldEnsemble, fit_ensemble, read_ensemble
from katha.eval_bridge.scoring.outcomes import MISSING, RIGHT, WRONG, collect
from katha.schema import CONDITIONS, Answer, Question, StoryRecord

Row = dict[str, Any]
SKILL = {"good": 0.95, "fair": 0.6, "poor": 0.5}


def made(stories: int = 30, seed: int = 3) -> tuple[list[StoryRecord], list[Row], list[Row]]:
    """Stories, the rows of three judges of unequal skill, and people's labels (whether the answer can be found)."""
    draw = random.Random(seed)
    records, rows, gold = [], [], []
    for at in range(stories):
        asked = [
            Question(question_id=f"q{number}", question_type="causal", question="?", gold_answer="yes")
            for number in range(3)
        ]
        records.append(StoryRecord(story_id=f"s{at}", story_text="x", recoverability_questions=asked))
        for question in asked:
            for condition in CONDITIONS:
                key = {"story_id": f"s{at}", "question_id": question.question_id, "condition": condition}
                truth = draw.random() < 0.5
                gold.append(key | {"right": truth})
                for judge, skill in SKILL.items():
                    agrees = draw.random() < skill
                    rows.append(
                        key
                        | {"method": "m", "judge": judge, "status": "ok" if draw.random() < 0.95 else "refused"}
                        | {"answer": "yes" if truth == agrees else "no", "confidence": "high" if agrees else "low"}
                    )
    return records, rows, gold


def fitted(records: list[StoryRecord], rows: list[Row], gold: list[Row]) -> tuple[GoldEnsemble, EnsembleReport]:
    answers = [Answer.model_validate(row) for row in rows]
    return fit_ensemble(collect(records, answers, matching="exact-set", selection="all"), gold)


def test_the_judge_that_follows_people_gets_the_weight() -> None:
    records, rows, gold = made()
    found, report = fitted(records, rows, gold)
    weights = dict(zip(found.judges, found.weights, strict=True))
    assert weights["good"] > 1.5 * max(weights["fair"], weights["poor"], 0)
    measured = report.measured
    assert set(measured) == {"good", "fair", "poor", "majority", "ensemble-calibrated"}
    assert measured["ensemble-calibrated"].agreement > measured["majority"].agreement + 5
    assert measured["good"].agreement > 85
    assert measured["ensemble-calibrated"].ece is not None
    assert measured["ensemble-calibrated"].ece < 0.1
    assert (report.n, report.stories) == (270, 30)


def test_it_is_measured_on_stories_that_it_was_not_fitted_on() -> None:
    records, rows, gold = made()
    draw = random.Random(0)
    noise = [row | {"right": draw.random() < 0.5} for row in gold]
    _, report = fitted(records, rows, noise)
    assert 35 < report.measured["ensemble-calibrated"].agreement < 62


def test_order_of_judges_rows_and_stories_changes_nothing() -> None:
    records, rows, gold = made()
    one, _ = fitted(records, rows, gold)
    for seed in (1, 2):
        draw = random.Random(seed)
        mixed = [draw.sample(items, len(items)) for items in (records, rows, gold)]
        other, _ = fitted(*mixed)
        assert other == one


def test_votes_ties_and_missing_judges() -> None:
    found = GoldEnsemble(("a", "b", "c"), (1.0, 1.0, 3.0), 0.0, 1.0, 0.0)
    table = np.array(
        [[[RIGHT, RIGHT, RIGHT, MISSING, WRONG]], [[RIGHT, WRONG, MISSING, MISSING, WRONG]]], dtype=np.int8
    )
    table = np.concatenate([table, [[[WRONG, MISSING, MISSING, RIGHT, RIGHT]]]])[None, :, 0].astype(np.int8)
    sure = np.zeros_like(table)
    outcome = found.outcome(table, sure, ["a", "b", "c"])
    assert outcome.tolist() == [[WRONG, WRONG, MISSING, MISSING, RIGHT]]
    lone = found.outcome(table[:, 2:], sure[:, 2:], ["c"])
    assert set(lone[0].tolist()) == {MISSING}


def test_scores_hold_it_beside_the_majority(tmp_path: Path) -> None:
    records, rows, gold = made()
    told, given, people = (tmp_path / name for name in ("stories.jsonl", "answers.jsonl", "gold.jsonl"))
    told.write_text("".join(record.model_dump_json() + "\n" for record in records))
    given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    people.write_text("".join(json.dumps(row) + "\n" for row in gold))

    def katha(*words: object) -> Any:
        result = CliRunner().invoke(app, [*map(str, words), "--json"])
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return json.loads(result.stdout)

    file = tmp_path / "ensemble.json"
    report = katha("bench", "ensemble", told, "--answers", given, "--gold", people, "--out", file)
    assert list(report["measured"])[-1] == "ensemble-calibrated"
    words = ("score", told, "--answers", given, "--out", tmp_path / "s.json", "--resamples", 20)
    plain = katha(*words)["scores"]
    more = katha(*words, "--ensemble", file)["scores"]
    judges = more["methods"]["m"]["judges"]
    assert set(judges) == {"good", "fair", "poor", "ensemble", "ensemble-calibrated"}
    added = judges.pop("ensemble-calibrated")
    assert judges == plain["methods"]["m"]["judges"]
    assert added["raw"]["n"] > 0
    assert read_ensemble(file).judges == ("fair", "good", "poor")
    file.write_text('{"judges": ["a"], "weights": []}')
    with pytest.raises(InputFileError, match="not an ensemble"):
        katha(*words, "--ensemble", file)
    people.write_text('{"story_id": "s0", "question_id": "q0", "condition": "image", "right": true}\n')
    with pytest.raises(RecordError, match="1 labelled answers are too few"):
        katha("bench", "ensemble", told, "--answers", given, "--gold", people, "--out", file)
