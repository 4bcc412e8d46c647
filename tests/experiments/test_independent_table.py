"""`table.json` of an ablation once more from its `answers.jsonl`, by plain loops without katha's statistics."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from doubles import plugins, story
from independent_scorer import DIMENSIONS, difference_span, gap_span, right, share_span, signed_ranks
from numpy.typing import NDArray

from katha.compass.modes import load_suite
from katha.config import Settings
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.schema import StoryRecord

NEAR, RESAMPLES, FAMILY = 1e-6, 200, load_suite("length").secondary
"""FAMILY: what the suite `length` declares beside its primary contrast, whichever of its rows are run."""
Cells = dict[str, dict[tuple[str, str], dict[str, bool]]]


def forest(number: int) -> StoryRecord:
    text = story(f"story{number}").model_dump_json().replace("tree number", f"tree of wood {number}, number")
    return StoryRecord.model_validate_json(text)


class Table:
    """Counts by row and block, of shape (stories, dimensions, 3): questions, right by text, right by images."""

    def __init__(self, out: Path, rows: tuple[str, ...]) -> None:
        self.asked: dict[tuple[str, str], dict[str, Any]] = {}
        for line in (out / "stories.jsonl").read_text().splitlines():
            record = json.loads(line)
            for item in record["recoverability_questions"]:
                if item["role"] == "reporting":
                    self.asked[record["story_id"], item["question_id"]] = item
        told: Cells = defaultdict(lambda: defaultdict(dict))
        answers = [json.loads(line) for line in (out / "answers.jsonl").read_text().splitlines()]
        boards = sorted({row["method"] for row in answers if row["method"] is not None})
        self.guessed: dict[tuple[str, str], bool | None] = {}
        for row in answers:
            name = (row["story_id"], row["question_id"])
            if row["condition"] == "none":
                self.guessed[name] = right(row, self.asked[name])
                continue
            for board in boards if row["method"] is None else [row["method"]]:
                verdict = right(row, self.asked[name])
                if verdict is not None:
                    told[board][name][row["condition"]] = verdict
        self.told, self.stories = told, sorted({story for story, _ in self.asked})
        self.boards = {row: [name for name in boards if name.partition("@")[0] == row] for row in rows}
        self.draws = np.random.default_rng(42).integers(0, len(self.stories), (RESAMPLES, len(self.stories)))

    def kept(self, board: str, block: str) -> list[tuple[str, str]]:
        scored = [name for name in self.asked if len(self.told[board][name]) == 3]
        among = [board] if block == "own" else [one for boards in self.boards.values() for one in boards]
        if block == "raw":
            return scored
        valid = [name for name in scored if all(self.told[one][name].get("text+image") for one in among)]
        return [name for name in valid if self.guessed[name] is False] if block == "unguessed" else valid

    def counts(self, row: str, block: str) -> NDArray[np.float64]:
        made = np.zeros((len(self.stories), len(DIMENSIONS), 3))
        for board in self.boards[row]:
            for name in self.kept(board, block):
                cell = self.told[board][name]
                place = (self.stories.index(name[0]), DIMENSIONS.index(self.asked[name]["question_type"]))
                made[place] += (1, cell["text"], cell["image"])
        return made


def averages(counts: NDArray[np.float64]) -> tuple[float, float]:
    """Text and image: the mean over the dimensions that have a question, 0 to 1."""
    rates = [dimension[1:] / dimension[0] for dimension in counts if dimension[0]]
    text, image = np.mean(rates, axis=0)
    return float(text), float(image)


def gap(counts: NDArray[np.float64]) -> float | None:
    if not counts[:, 0].sum():
        return None
    text, image = averages(counts)
    return text - image


def test_every_number_of_a_table_agrees_with_plain_loops(tmp_path: Path) -> None:
    rows = ("base", "random_frame", "rerank_only", "full")
    config = Settings(
        planner="doubles:ScenePlanner", renderer="doubles:BlockRenderer", judges=("pixel",), seeds=(42, 123)
    )
    stories = [forest(number) for number in range(7)]
    made = AblationJob(stories, load_suite("length").only(rows), config, given=plugins(), resamples=RESAMPLES)
    out = tmp_path / "out"
    run_ablation(made, out)
    told, mine = json.loads((out / "table.json").read_text()), Table(out, rows)
    found = {row["mode"]: row for row in told["rows"]}
    for name in rows:
        for block, entry in (
            ("own", found[name]),
            ("common", found[name]["common_valid"]),
            ("unguessed", found[name]["unguessed"]),
            ("raw", found[name]["raw"]),
        ):
            counts = mine.counts(name, block)
            text, image = averages(counts.sum(axis=0))
            assert entry["image"] == pytest.approx(100 * image, abs=NEAR)
            assert entry["stg"] == pytest.approx(100 * (text - image), abs=NEAR)
            each = [averages(counts.sum(axis=0) - own) for own in counts if own[:, 0].any()]
            left = [{"text": t, "image": i} for t, i in each]
            means = {"text": text, "image": image}
            assert entry["stg_ci95"] == pytest.approx(gap_span(means, left, "text", "image"), abs=NEAR)
            assert entry["image_ci95"] == pytest.approx(share_span(image, [i for _, i in each]), abs=NEAR)
        assert found[name]["valid"] == sum(len(mine.kept(board, "own")) for board in mine.boards[name])
        assert found[name]["common_valid"]["n"] == sum(len(mine.kept(board, "common")) for board in mine.boards[name])
        assert found[name]["scored"] == sum(len(mine.kept(board, "raw")) for board in mine.boards[name])
    assert len(told["comparisons"]) >= 4
    for row in told["comparisons"]:
        for block, entry in (("own", row), ("common", row["common_valid"]), ("raw", row["raw"])):
            one, two = (mine.counts(row[side], block) for side in "ab")
            spread = [
                a - b
                for places in mine.draws
                if (a := gap(one[places].sum(axis=0))) is not None and (b := gap(two[places].sum(axis=0))) is not None
            ]
            whole = [gap(item.sum(axis=0)) for item in (one, two)]
            assert entry["difference"] == pytest.approx(100 * (whole[0] - whole[1]), abs=NEAR)
            sums = [item.sum(axis=0) for item in (one, two)]
            either = [at for at in range(len(one)) if one[at][:, 0].any() or two[at][:, 0].any()]
            rest = [(gap(sums[0] - one[at]), gap(sums[1] - two[at])) for at in either]
            changes = [None if a is None or b is None else a - b for a, b in rest]
            both = sum(bool(one[at][:, 0].any() and two[at][:, 0].any()) for at in range(len(one)))
            assert entry["n_stories"] == both
            if both < 6:
                assert entry["ci95"] is None
                assert entry["p_bootstrap"] is None
                continue
            assert entry["ci95"] == pytest.approx(difference_span(whole[0] - whole[1], changes), abs=NEAR)
            signs = [round(value, 12) for value in spread]
            tail = min(sum(value <= 0 for value in signs), sum(value >= 0 for value in signs))
            p = min(1.0, 2 * (1 + tail) / (1 + len(spread)))
            pairs = [(gap(a), gap(b)) for a, b in zip(one, two, strict=True)]
            ranks = signed_ranks([a - b for a, b in pairs if a is not None and b is not None])
            assert entry["p_bootstrap"] == pytest.approx(p, abs=NEAR)
            assert entry["wilcoxon"] == pytest.approx(ranks, abs=NEAR)
            assert entry["family"] == FAMILY
    for block in ("own", "common_valid", "raw"):
        tested = [row if block == "own" else row[block] for row in told["comparisons"] if row["same"] != "all"]
        for plain, corrected in (("p_bootstrap", "p_bootstrap_corrected"), ("p", "p_corrected")):
            ps = [item[plain] if plain != "p" else item["wilcoxon"]["p"] for item in tested]
            assert [item[corrected] for item in tested] == pytest.approx(holm(ps), abs=NEAR)
    kept = [row for row in json.loads((out / "scores.json").read_text())["comparisons"] if row["judge"] == "pixel"]
    for block in ("filtered", "common_valid"):
        own = [row for row in kept if row["block"] == block]
        assert {row["family"] for row in own} == {FAMILY}
        assert [row["p_corrected"] for row in own] == pytest.approx(holm([row["wilcoxon"]["p"] for row in own]))
        assert [row["p_bootstrap_corrected"] for row in own] == pytest.approx(holm([row["p_bootstrap"] for row in own]))


def holm(ps: list[float | None]) -> list[float | None]:
    """Each p times what is still to be tested when it is its turn, and no smaller than the one before it."""
    known = sorted(p for p in ps if p is not None)
    steps = [min(1.0, (FAMILY - at) * p) for at, p in enumerate(known)]
    return [None if p is None else max(steps[: known.index(p) + 1]) for p in ps]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
