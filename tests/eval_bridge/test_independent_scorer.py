"""`katha score` against an independent slow scorer, number by number, through the files alone."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from independent_scorer import CONDITIONS, Independent, alignment, pair_scores
from typer.testing import CliRunner

from benchmarks.synthetic import stories, variants
from katha.app.cli.main import app

Row = dict[str, Any]
PAIR_FILES = ("variants", "stories", "answers")


def archive(folder: Path, seed: int) -> tuple[list[Row], list[Row], list[Row]]:
    """Records with roles, the rows of several judges and methods with every kind of failure, and variants."""
    draw = random.Random(seed)
    records = list(stories(9))
    for record in records:
        for question in record["recoverability_questions"]:
            question["role"] = draw.choice(["reporting", "reporting", "steering", None])
            question["accepted_answers"] = [*question["accepted_answers"], "Another, right one."]
    judges, methods = (
        [f"judge {at}" for at in range(draw.randint(1, 4))],
        [f"m{at}" for at in range(draw.randint(1, 3))],
    )
    rows = []
    for record in records:
        for question in record["recoverability_questions"]:
            for judge in judges:
                shared = draw.random() < 0.5
                for method in [None, *methods] if shared else methods:
                    for condition in CONDITIONS:
                        if (condition == "text") != (method is None) and shared:
                            continue
                        rows.append(answer(draw, record, question, judge, method, condition))
                if seed % 2 and draw.random() < 0.9:
                    rows.append(answer(draw, record, question, judge, None, "none"))
    rows += draw.sample(rows, 20)
    for row in rows[-20:]:
        row["answer"] = "Unclear"
    draw.shuffle(rows)
    return records, rows, pairs(draw, records, judges, methods, rows)


def answer(draw: random.Random, record: Row, question: Row, judge: str, method: str | None, condition: str) -> Row:
    likely = {"text": 0.85, "image": 0.5, "text+image": 0.8, "none": 0.2}[condition]
    accepted = [question["gold_answer"], *question["accepted_answers"]]
    said = (
        draw.choice(accepted).upper() + "!" if draw.random() < likely else draw.choice(["Unclear", "no", "Ambiguous"])
    )
    failed = draw.random() < 0.1
    return {
        "method": method,
        "judge": judge,
        "story_id": record["story_id"],
        "question_id": question["question_id"],
        "condition": condition,
        "status": draw.choice(["refused", "unparseable", "transport_failed", "truncated"]) if failed else "ok",
        "answer": None if failed else said,
        "evidence_status": draw.choice([None, "recoverable", "recoverable", "omitted"]),
        "image_support": draw.choice([None, "supported", "omitted", "contradicted", "ambiguous"]),
        "confidence": draw.choice([None, "low", "high"]),
    }


def pairs(draw: random.Random, records: list[Row], judges: list[str], methods: list[str], rows: list[Row]) -> list[Row]:
    twins = list(variants(len(records)))
    scenes = {record["story_id"]: {scene["scene_index"]: scene for scene in record["scenes"]} for record in records}
    for twin in twins:
        source = scenes[twin["base_story_id"]][twin["changed_scene_id"]]["scene_text"]
        for judge in judges:
            for method in methods:
                key = {"method": method, "judge": judge, "story_id": twin["base_story_id"], "condition": "image"}
                said = draw.choice([source, source, twin["contrastive_scene_text"], "Unclear"])
                status = draw.choice(["ok", "ok", "ok", "refused"])
                row = {"question_id": f"pair:{twin['variant_id']}", "status": status, "answer": said}
                rows.append(key | row | ({"answer": None} if status != "ok" else {}))
    return twins


def same(left: object, right: object, where: str = "") -> None:
    if isinstance(left, dict) and isinstance(right, dict):
        assert left.keys() == right.keys(), where
        for key in left:
            same(left[key], right[key], f"{where}/{key}")
    elif isinstance(left, list) and isinstance(right, list):
        assert len(left) == len(right), where
        for at, (one, two) in enumerate(zip(left, right, strict=True)):
            same(one, two, f"{where}/{at}")
    elif isinstance(left, float) or isinstance(right, float):
        assert left == pytest.approx(right, abs=1e-6), where
    else:
        assert left == right, where


def judgments(draw: random.Random, records: list[Row], methods: list[str]) -> list[Row]:
    """People's word on some boards: the dimension that fails, and a score."""
    return [
        {
            "method": method,
            "story_id": record["story_id"],
            "failing": draw.choice(["causal", "emotional", "consequence", "moral"]),
            "human_score": draw.randint(1, 5),
        }
        for record in records
        for method in methods
        if draw.random() < 0.8
    ]


def fitted(draw: random.Random, judges: list[str]) -> Row:
    """An ensemble as `katha bench ensemble` writes it; one of its judges is not in the archive."""
    names = [*judges, "elsewhere"]
    weights = [draw.uniform(0.2, 2.0) for _ in names]
    return {"judges": names, "weights": weights, "intercept": 0.1, "slope": 1.3, "offset": -0.2}


@pytest.mark.parametrize("seed", range(5))
def test_every_number_agrees_with_an_independent_scorer(tmp_path: Path, seed: int) -> None:
    records, rows, twins = archive(tmp_path, seed)
    judges, methods = sorted({row["judge"] for row in rows}), sorted({row["method"] for row in rows} - {None})
    lost = (methods[0], records[3]["story_id"])  # a board that was never judged
    rows = [row for row in rows if (row["method"], row["story_id"]) != lost]
    draw = random.Random(seed)
    paths = {}
    people = judgments(draw, records, methods)
    for name, items in (("stories", records), ("answers", rows), ("variants", twins), ("people", people)):
        paths[name] = tmp_path / f"{name}.jsonl"
        paths[name].write_text("".join(json.dumps(item) + "\n" for item in items), encoding="utf-8")
    (tmp_path / "ensemble.json").write_text(json.dumps(fitted(draw, judges)))
    words = ["score", paths["stories"], "--answers", paths["answers"], "--variants", paths["variants"]]
    words += ["--human", paths["people"], "--ensemble", tmp_path / "ensemble.json"]
    words += ["--matching", "exact-set", "--resamples", "60", "--seed", "42", "--out", tmp_path / "scores.json"]
    told = CliRunner().invoke(app, [str(word) for word in words])
    assert told.exit_code == 0, told.output
    scores = json.loads((tmp_path / "scores.json").read_text())
    mine = Independent(paths["stories"], paths["answers"], "reporting", 60, 42, tmp_path / "ensemble.json")
    wanted = mine.scores()
    assert sorted(scores["methods"]) == sorted(wanted["methods"])
    for method, entry in scores["methods"].items():
        for judge, told in entry["judges"].items():
            assert (told.pop("unmeasured", None) is not None) == mine.hidden(method, judge)
        same(entry["judges"], wanted["methods"][method], method)
        assert set(entry["invalid_stories"]) == mine.left_out(method)
        assert entry["stories"] == len(mine.stories) - len(mine.left_out(method))
    assert lost[1] in scores["methods"][lost[0]]["invalid_stories"]
    same(scores["comparisons"], wanted["comparisons"], "comparisons")
    assert mine.guessed == bool(seed % 2)
    same(scores["contrastive"]["methods"], pair_scores(*(paths[name] for name in PAIR_FILES)), "pairs")
    same(scores["alignment"]["judges"], alignment(mine, paths["people"]), "alignment")
