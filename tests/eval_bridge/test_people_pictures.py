"""Choices between two pictures of a scene, and ViStoryBench's scales: pages, files, and numbers by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import comb
from pathlib import Path

import pytest
from raters import attentive, hand_in
from study_material import pack
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import RecordError, UsageError
from katha.eval_bridge.people.analysis import Analysis
from katha.eval_bridge.people.judgments import Judgment
from katha.eval_bridge.people.pictures import picture_choices
from katha.eval_bridge.people.study import Screen, StudyItem
from katha.experiments.people import read_study

Choose = Callable[[Screen, StudyItem], int]


def told(choices: dict[str, list[int]]) -> list[Judgment]:
    """Choices of each rater about the scenes 1, 2 and on of two stories."""
    return [
        {
            "rater": rater,
            "story_id": "ab"[at % 2],
            "scene": 1 + at // 2,
            "line": at,
            "method": "x",
            "against": "y",
            "task": "pictures",
            "picture": value,
        }
        for rater, given in choices.items()
        for at, value in enumerate(given)
    ]


def test_win_rate_and_kappa_are_those_by_hand() -> None:
    one, other = [1, 1, 0, -1, 1, 1, -1, 0], [1, -1, 0, -1, 1, 0, -1, 1]
    found = picture_choices(("x", "y"), told({"p": one, "q": other}))
    assert (found.pairs, found.responses, found.undecided) == (8, 16, 4)
    assert (found.chosen_a, found.chosen_b) == (7, 5)
    assert (found.rate, found.chance) == (43.75, 37.5)
    share = (1 - 4 / 16) / 2
    tail = sum(comb(16, k) * share**k * (1 - share) ** (16 - k) for k in range(7, 17))
    assert found.p == pytest.approx(tail, abs=1e-9)
    cost = sum(abs(a - b) / 2 for a, b in zip(one, other, strict=True)) / 8
    expected = sum(abs(a - b) / 2 for a in one for b in other) / 64
    assert found.kappa == pytest.approx(1 - cost / expected, abs=1e-9)


def test_somebody_chooses_once_of_the_same_two() -> None:
    rows = told({"p": [1, 1]})
    with pytest.raises(RecordError, match="repeats line"):
        Analysis("here").whole([*rows, {**rows[0], "line": 9}])


def test_a_study_asks_for_them_where_it_is_told_to(tmp_path: Path) -> None:
    made = pack(tmp_path, raters=4, per_item=2, tasks="pictures,vistory", repeats=0)
    study, _ = read_study(made.out)
    screens = [screen for page in study.pages for screen in page.screens]
    chosen = [screen for screen in screens if screen.task == "pictures"]
    assert len(chosen) == 2 * 3 * 5  # twice, three stories, five scenes of both methods
    assert {len({board.scene for board in screen.boards}) for screen in chosen} == {1}
    assert len({tuple(board.method for board in screen.boards) for screen in chosen}) == 2  # sides change
    page = made.pages[0].read_text()
    assert "Picture A" in page
    assert "fixed" not in page.split("</style>")[1]

    def steady(screen: Screen, item: StudyItem) -> int:
        if screen.task == "vistory":
            return 3
        return [board.method for board in screen.boards].index("fixed") * 2

    hand_in(tmp_path / "back", study, [attentive(steady)] * 4)
    words = ["people", "score", str(tmp_path / "back"), "--study", str(made.out), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "fixed's pictures are chosen over plain's in 100.0% of 30 responses" in done.output
    scores = json.loads((tmp_path / "out/people.json").read_text())
    assert (scores["pictures"][0]["rate"], scores["pictures"][0]["pairs"]) == (100.0, 15)
    for method in ("fixed", "plain"):
        rated = scores["methods"][method]
        assert [rated[name]["mean"] for name in ("identity", "environment", "aesthetics")] == [3.0] * 3
    assert "Which picture shows a scene better" in (tmp_path / "out/report.html").read_text()
    assert (tmp_path / "out/pictures.csv").is_file()


def test_the_five_questions_of_vinabench_have_means_spreads_and_agreement(tmp_path: Path) -> None:
    made = pack(tmp_path, raters=4, per_item=2, tasks="vinabench", repeats=0)
    study, _ = read_study(made.out)
    names = [f"vina-{name}" for name in ("alignment", "style", "content", "character", "quality")]
    screens = [screen for page in study.pages for screen in page.screens]
    asked = [[item.criterion for item in screen.items if item.expected is None] for screen in screens]
    assert all(own == names for own in asked)
    assert len(screens) == 2 * 2 * 3  # twice, two methods, three stories

    def rated(screen: Screen, item: StudyItem) -> int:
        return names.index(item.criterion or "") if screen.boards[0].method == "fixed" else 0

    hand_in(tmp_path / "back", study, [attentive(rated)] * 4)
    words = ["people", "score", str(tmp_path / "back"), "--study", str(made.out), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "out/people.json").read_text())["methods"]
    assert [found["fixed"]["criteria"][name]["mean"] for name in names] == [1.0, 2.0, 3.0, 4.0, 5.0]
    assert [found["plain"]["criteria"][name]["mean"] for name in names] == [1.0] * 5
    assert "vina-alignment" in (tmp_path / "out/report.html").read_text()


def test_they_are_not_asked_unless_told(tmp_path: Path) -> None:
    made = pack(tmp_path, raters=8, per_item=1)
    assert set(read_study(made.out)[0].tasks) == {"questions", "rating", "pairs", "bridge", "scores"}
    with pytest.raises(UsageError, match="there are not two methods"):
        pack(tmp_path / "one", raters=2, per_item=1, tasks="pictures", methods=("plain",))
