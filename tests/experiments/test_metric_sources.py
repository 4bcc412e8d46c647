"""Runs and ablations as what `katha metrics` measures: their boards, plans, stories, and STG beside."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from doubles import plugins, prepare, story, tale

from katha.agents.run import run_story
from katha.app.exports.archives import JudgedFolder
from katha.compass.modes import load_suite
from katha.config import Settings
from katha.errors import InputFileError
from katha.eval_bridge.bench.boards import BoardProblem
from katha.eval_bridge.metrics.continuity import Continuity
from katha.eval_bridge.metrics.encoders import StructuralSimilarity
from katha.eval_bridge.metrics.general import NeighbourSsim
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.experiments.metrics.job import MetricsJob, measure
from katha.experiments.metrics.relation import board_gaps
from katha.experiments.metrics.sources import Beside, BoardSource, find_sources
from katha.experiments.offline.robustness import read_study
from katha.schema.metrics import MetricTable

CONFIG = Settings(planner="scenes", renderer="block", judges=("pixel",), compass={"repair_threshold": 1.0})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def measured(folder: Path, out: Path) -> tuple[BoardSource, MetricTable]:
    (source,) = find_sources([str(folder)], None, Beside())
    metrics = {metric.card.name: metric for metric in (NeighbourSsim(), Continuity())}
    return source, measure(MetricsJob([source], metrics), out).table


def similarity(images: list[bytes]) -> float:
    return float(np.mean(StructuralSimilarity().compare(list(pairwise(images)))))


def test_a_run_is_a_source_with_its_plan_and_stg(tmp_path: Path) -> None:
    run = run_story(story(), CONFIG, tmp_path / "run", plugins=plugins())
    source, table = measured(tmp_path / "run", tmp_path / "out")
    (place,) = source.boards
    board = place.read()
    assert (place.method, place.record.story_id) == (run.board.method, story().story_id)
    assert [frame.kind for frame in board.frames] == [frame.kind for frame in run.board.frames]
    assert board.images == [(run.out / frame.image).read_bytes() for frame in run.board.frames]
    assert board.plan is not None
    assert board.plan.story_id == story().story_id
    (row,) = table.rows
    assert row.cells["ssim/similarity"].value == pytest.approx(similarity(board.images))
    for gap in table.gaps:  # none where the judge of so few questions measures nothing
        assert gap.method == place.method
        assert gap.raw is not None

    victim = run.out / run.board.frames[0].image
    (tmp_path / "run" / "panels" / victim.name).write_bytes((run.out / run.board.frames[1].image).read_bytes())
    with pytest.raises(BoardProblem, match="is not the picture that was drawn"):
        place.read()
    (tmp_path / "run" / "storyboard.json").unlink()
    with pytest.raises(InputFileError, match="has no storyboard"):
        find_sources([str(tmp_path / "run")], None, Beside())


def test_an_ablation_is_a_source_of_every_row_s_boards(tmp_path: Path) -> None:
    stories = prepare([tale("s1"), tale("s2")])
    suite = load_suite("length").only(("base", "full"))
    run_ablation(AblationJob(stories, suite, CONFIG, given=plugins(), resamples=10), tmp_path / "ablation")
    source, table = measured(tmp_path / "ablation", tmp_path / "out")
    methods = {place.method for place in source.boards}
    assert {name.partition("@")[0] for name in methods} == {"base", "full"}
    assert {place.record.story_id for place in source.boards} == {"s1", "s2"}
    assert {(gap.method, gap.story_id) for gap in board_gaps(source)} == {
        (place.method, place.record.story_id) for place in source.boards
    }
    by_method = {row.method: row for row in table.rows}
    for method in methods:
        values = [similarity(place.read().images) for place in source.boards if place.method == method]
        assert by_method[method].cells["ssim/similarity"].value == pytest.approx(float(np.mean(values)))
    (chosen,) = find_sources([str(tmp_path / "ablation")], stories[:1], Beside())
    assert {place.record.story_id for place in chosen.boards} == {"s1"}


@pytest.mark.parametrize("state", ["eval.json", "ablation.json", "compare.json"])
def test_a_folder_whose_state_is_none_is_named(tmp_path: Path, state: str) -> None:
    """As one that was received, or is of another version."""
    (tmp_path / state).write_text('{"format": 1, "status": 7}')
    (tmp_path / "table.json").write_text('{"rows": "many"}')
    with pytest.raises(InputFileError, match=r"(eval|ablation|table)\.json', field '|has not come to its end"):
        find_sources([str(tmp_path)], None, Beside())
    with pytest.raises(InputFileError, match=r"(eval|table)\.json', field '"):
        read_study(tmp_path)
    (tmp_path / "answers.jsonl").write_text("")
    (tmp_path / "scores.json").write_text("[]")
    with pytest.raises(InputFileError, match=r"scores\.json', field '': Input should be"):
        JudgedFolder(tmp_path)
