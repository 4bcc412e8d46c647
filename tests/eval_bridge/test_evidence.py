"""What docs/research/evidence.md says, recomputed from the answers that it rests on (tests/data/evidence)."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from katha.eval_bridge.matching.match import match
from katha.eval_bridge.matching.rules import ModelRule
from katha.eval_bridge.scoring.scores import score
from katha.schema import DIMENSIONS, Answer, StoryRecord

DATA = Path(__file__).parents[1] / "data" / "evidence"
PAGE = Path(__file__).parents[2] / "docs" / "research" / "evidence.md"
Key = tuple[str | None, str, str, str]


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / name).read_text(encoding="utf-8").splitlines()]


STORIES = [StoryRecord.model_validate(row) for row in rows("stories.jsonl")]
FABLES = [
    StoryRecord.model_validate_json(path.read_text(encoding="utf-8"))
    for path in sorted((Path(__file__).parents[2] / "examples").glob("*.json"))
]
ASKED = {(story.story_id, item.question_id): item for story in STORIES for item in story.recoverability_questions}


@pytest.fixture(scope="module")
def rule() -> ModelRule:
    return ModelRule("llm:openai:matcher", [DATA / "verdicts.jsonl"])


@pytest.fixture(scope="module")
def right(rule: ModelRule) -> dict[Key, bool]:
    """Return every answer as right or wrong, by method (None without a board), story, question and condition."""
    found: dict[Key, bool] = {}
    for name, shown in (("answers.jsonl", None), ("blank.jsonl", "blank")):
        for row in rows(name):
            answer = Answer.model_validate({"method": None, **row})
            verdict = match(answer, ASKED[answer.story_id, answer.question_id], rule).right
            assert verdict is not None
            found[shown or answer.method, answer.story_id, answer.question_id, answer.condition] = verdict
    return found


def share(
    right: dict[Key, bool], method: str | None, condition: str, *, of: set[tuple[str, str]] | None = None
) -> float:
    kept = [
        value
        for (name, story, question, under), value in right.items()
        if (name, under) == (method, condition) and (of is None or (story, question) in of)
    ]
    return 100 * sum(kept) / len(kept)


def drawn(right: dict[Key, bool], method: str) -> set[tuple[str, str]]:
    return {(story, question) for name, story, question, _ in right if name == method}


def test_the_figures_are_those_of_the_page(right: dict[Key, bool]) -> None:
    page, good = PAGE.read_text(encoding="utf-8"), drawn(right, "vector")
    told = {
        "the text": share(right, None, "text"),
        "nothing": share(right, None, "none", of=good),
        "vector": share(right, "vector", "image"),
        "blank": share(right, "blank", "image"),
        "sketch": share(right, "sketch", "image"),
        "damaged": share(right, "damaged", "image"),
        "mixed": 100 * sum(row["first"] for row in rows("guesses.jsonl")) / len(ASKED),
        "three guesses": 100 * sum(row["grade"] == "same" for row in rows("guesses.jsonl")) / len(ASKED),
    }
    assert all(f"{value:.1f}%" in page for value in told.values()), told
    assert told["the text"] >= 97
    assert told["mixed"] <= 5
    assert told["vector"] - told["nothing"] >= 60
    assert told["blank"] <= told["nothing"]


def test_what_the_pictures_tell_goes_with_what_viewers_recognise(right: dict[Key, bool]) -> None:
    seen = defaultdict(list)
    for row in rows("viewers.jsonl"):
        seen[row["method"], row["story_id"]] += [verdict == "y" for verdict in row["frames"]]
    boards = []
    for (method, story), frames in seen.items():
        own = [name for name in drawn(right, method) if name[0] == story]
        unguessed = [name for name in own if not right[None, *name, "none"]]
        boards.append((np.mean([right[method, *name, "image"] for name in unguessed]), np.mean(frames)))
    assert len(boards) == 36
    rho = float(spearmanr(*zip(*boards, strict=True)).statistic)
    assert f"{rho:.2f}" in PAGE.read_text(encoding="utf-8")
    assert rho >= 0.5


def test_known_fables_are_answered_without_any_evidence() -> None:
    rule = ModelRule("llm:openai:matcher", [DATA / "examples_verdicts.jsonl"])
    answers = [Answer.model_validate({"method": None, **row}) for row in rows("examples_answers.jsonl")]
    page = PAGE.read_text(encoding="utf-8")
    for name, entry in score(FABLES, answers, matching=rule, questions="all").methods["drawn"].judges.items():
        block = entry.raw
        assert block.n == 121
        assert block.none is not None
        assert block.none > 60
        if name != "ensemble":
            low, high = block.ci95.gain_image or (0.0, 0.0)
            told = f"{block.text:.1f} | {block.none:.1f} | {block.image:.1f} | {block.gain_image:.1f} ("
            assert told in page
            assert f"{low:.1f} to {high:.1f}" in page


def test_scores_are_what_plain_loops_make_of_the_answers(right: dict[Key, bool], rule: ModelRule) -> None:
    good = drawn(right, "vector")
    told = [Answer.model_validate({"method": None, **row}) for row in rows("answers.jsonl")]
    kept = [row for row in told if row.method in (None, "vector")]
    scores = score(STORIES, kept, matching=rule, questions="all", resamples=0)
    block = scores.methods["vector"].judges["openai:judge"].common_valid

    def macro(method: str | None, condition: str) -> float:
        means = []
        for dimension in DIMENSIONS:
            own = {name for name in good if ASKED[name].question_type == dimension}
            means.append(share(right, method, condition, of=own))
        return float(np.mean(means))

    assert block.n == len(good) == 192, "every question is valid"
    assert block.image == pytest.approx(macro("vector", "image"))
    assert block.none == pytest.approx(macro(None, "none"))
    assert block.gain_image == pytest.approx(macro("vector", "image") - macro(None, "none"))
    unguessed = {name for name in good if not right[None, *name, "none"]}
    rest = scores.methods["vector"].judges["openai:judge"].unguessed
    assert rest is not None
    assert rest.n == len(unguessed)


@pytest.mark.parametrize(
    ("name", "answers", "verdicts"),
    [
        ("examples", "examples_answers.jsonl", "examples_verdicts.jsonl"),
        ("ordinary", "answers.jsonl", "verdicts.jsonl"),
    ],
)
def test_an_archive_of_three_conditions_scores_as_it_did_before_the_fourth(
    name: str, answers: str, verdicts: str
) -> None:
    """`three_conditions.json` holds what katha of 2026-11-29 (commit 595c50da), which knew no `none`, made of them."""
    told = [Answer.model_validate({"method": None, **row}) for row in rows(answers) if row["condition"] != "none"]
    records = STORIES if name == "ordinary" else FABLES
    scores = score(records, told, matching=ModelRule("llm:openai:matcher", [DATA / verdicts]), questions="all")
    found: dict[str, list[float | None]] = {}
    for method, entry in scores.methods.items():
        for judge, own in entry.judges.items():
            for block in ("raw", "filtered", "common_valid"):
                made = getattr(own, block)
                points = [made.text, made.image, made.text_image, made.stg, made.latent_gap]
                found[f"{method} {judge} {block}"] = [made.n, *points]
            assert own.unguessed is None
            assert not {"guessable", "guesses", "unguessed"} & set(own.model_dump(mode="json", by_alias=True))
    for row in scores.comparisons:
        p = [row.p_bootstrap, row.wilcoxon.p, row.p_corrected]
        found[f"{row.a} {row.b} {row.judge} {row.block}"] = [row.n_stories, row.difference, *p]
    before = json.loads((DATA / "three_conditions.json").read_text(encoding="utf-8"))[name]
    assert list(found) == list(before)
    for key, values in before.items():
        assert found[key] == [value if value is None else pytest.approx(value, abs=1e-8) for value in values], key
