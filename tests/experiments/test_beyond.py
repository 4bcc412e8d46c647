"""The modes beyond the paper: what each does by its fields, and that its control shows and draws as much."""

from __future__ import annotations

from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest
from doubles import BlockRenderer, plugins, story

from katha.agents.context import Plugins, RunContext
from katha.agents.critique import _best, _edges
from katha.agents.folder import RunFolder
from katha.agents.run import run_story
from katha.agents.state import RunResult
from katha.app.reports.run_page import write_report
from katha.compass.modes import load_mode, load_suite
from katha.compass.repair import replan, weakest_prompts
from katha.config import Settings
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.protocols import Capabilities
from katha.schema import StoryRecord
from katha.store import Store

SEEDS = (42, 123, 2026)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def config(mode: str, **changes: Any) -> Settings:
    compass = {"repair_threshold": 1.0}
    return Settings(planner="scenes", renderer="block", judges=("pixel",), mode=mode, compass=compass, **changes)


def run(tmp_path: Path, mode: str, made: Plugins | None = None, record: StoryRecord | None = None) -> RunResult:
    return run_story(record or story(), config(mode), tmp_path / mode, plugins=made or plugins())


def wood(number: int) -> StoryRecord:
    text = story(f"story{number}").model_dump_json().replace("tree number", f"tree of wood {number}, number")
    return StoryRecord.model_validate_json(text)


def test_the_path_is_the_best_of_all_paths(tmp_path: Path) -> None:
    result = run(tmp_path, "path")
    candidates = [item for item in result.candidates.candidates if item.name.startswith("candidate:")]
    with Store(tmp_path / "cache") as store:
        context = RunContext.open(story(), config("path"), plugins(), store, RunFolder(tmp_path / "path"))
        steps = [_edges(context, candidates, place, lambda event: None) for place in range(4)]
        chosen = _best(context, candidates, lambda event: None)

    def worth(path: tuple[int, ...]) -> float:
        return sum(step[path[place], path[place + 1]] for place, step in enumerate(steps))

    paths = sorted(product(range(3), repeat=5), key=lambda path: (-round(worth(path), 9), switches(path), path))
    assert tuple(chosen) == paths[0]
    assert worth(paths[0]) > worth(paths[-1])
    shown = [candidates[at].board.frames[place].sha256 for place, at in enumerate(chosen)]
    assert [frame.sha256 for frame in result.board.frames] == shown
    assert len({frame.seed for frame in result.board.frames}) > 1
    assert result.candidates.decision.selected == "path"


def switches(path: tuple[int, ...]) -> int:
    return sum(a != b for a, b in pairwise(path))


@pytest.mark.parametrize("mode", ["path", "random_path"])
@pytest.mark.parametrize("identity", ["batch", "reference"])
def test_a_board_whose_characters_depend_on_its_seed_is_not_mixed(tmp_path: Path, mode: str, identity: str) -> None:
    able = Capabilities(default_size=(64, 48), identity=identity)  # type: ignore[arg-type]
    result = run(tmp_path, mode, plugins(renderer=BlockRenderer(capabilities=able)))
    assert len({frame.seed for frame in result.board.frames}) == 1


def test_two_bridges_stand_in_two_transitions_and_each_improves(tmp_path: Path) -> None:
    found = [run(tmp_path / str(number), "two_bridges", record=wood(number)) for number in range(6)]
    counts = [len(result.board.frames) for result in found]
    assert 5 < max(counts) <= 7
    for result in found:
        added = [frame for frame in result.board.frames if frame.kind == "bridge"]
        assert len({frame.transition for frame in added}) == len(added) <= 2
        assert [frame.index for frame in result.board.frames] == list(range(1, len(result.board.frames) + 1))
        scores = {item.name: item.score.total for item in result.candidates.candidates}
        decision = result.candidates.decision
        final = decision.inserted if decision.accepted else decision.selected
        assert scores[final or ""] >= scores[decision.selected]
        assert decision.selected.startswith("candidate:")
        scenes = [frame.sha256 for frame in result.board.frames if frame.kind == "scene"]
        base = next(item for item in result.candidates.candidates if item.name == decision.selected)
        assert scenes == [frame.sha256 for frame in base.board.frames]


def test_its_control_always_adds_two_frames(tmp_path: Path) -> None:
    result = run(tmp_path, "two_extra_frames")
    added = [frame for frame in result.board.frames if frame.kind == "extra"]
    assert len(added) == len({frame.transition for frame in added}) == 2
    assert (result.candidates.decision.inserted or "").startswith("extra.2:")
    assert " Then: " in result.candidates.decision.reason


@pytest.mark.parametrize("mode", ["replace_weaker", "replace_again"])
def test_a_replacement_keeps_the_length_and_the_other_frames(tmp_path: Path, mode: str) -> None:
    found = [run(tmp_path / str(number), mode, record=wood(number)) for number in range(6)]
    accepted = [result for result in found if result.candidates.decision.accepted]
    assert accepted
    for result in accepted:
        decision = result.candidates.decision
        base = next(item for item in result.candidates.candidates if item.name == decision.selected).board
        assert [frame.scene for frame in result.board.frames] == [1, 2, 3, 4, 5]
        fresh = [new for new, old in zip(result.board.frames, base.frames, strict=True) if new.sha256 != old.sha256]
        assert len(fresh) == 1
        assert fresh[0].transition == decision.weakest
        assert fresh[0].scene in (decision.weakest or ())


def test_replanning_tells_the_transition_that_the_prompts_tell_least(tmp_path: Path) -> None:
    plain, again = run(tmp_path, "base"), run(tmp_path, "replan")
    made = plugins()
    plan = made.planner.plan(story(), None)  # type: ignore[arg-type]
    weakest = weakest_prompts(plan, plan.transitions, made.similarity)
    assert weakest is not None
    changed = [
        new.scene
        for new, old in zip(again.board.frames, plain.board.frames, strict=True)
        if new.prompt != old.prompt or new.sha256 != old.sha256
    ]
    assert changed == [weakest[1]]
    frame = again.board.frames[weakest[1] - 1]
    assert frame.prompt.startswith(plain.board.frames[weakest[1] - 1].prompt)
    assert f"runs to tree number {weakest[1]}" in frame.prompt


def test_replanning_twice_changes_nothing_more_and_keeps_to_the_prompt_limit() -> None:
    made = plugins()
    plan = made.planner.plan(story(), None)  # type: ignore[arg-type]
    once = replan(plan, plan.transitions, load_mode("replan"), made.similarity, "s")
    assert once != plan
    assert replan(once, plan.transitions, load_mode("replan"), made.similarity, "s") == once
    short = replan(plan, plan.transitions, load_mode("replan"), made.similarity, "s", limit=8)
    assert [panel.prompt for panel in short.panels] == [panel.prompt for panel in plan.panels]
    pairs = {
        replan(plan, plan.transitions, load_mode("replan_random"), made.similarity, str(n)).replanned for n in range(40)
    }
    assert pairs == {step.pair for step in plan.transitions}


def test_equal_budgets_meet_equal_budgets_and_the_costs_are_exact(tmp_path: Path) -> None:
    made = plugins()
    suite = load_suite("beyond")
    job = AblationJob([wood(number) for number in range(3)], suite, config("full"), given=made, resamples=50)
    table = run_ablation(job, tmp_path / "out").table
    rows = {row.mode: row for row in table.rows}
    assert len(made.renderer.drawn) == table.budget.frames_distinct
    assert len(made.judges["pixel"].asked) == table.budget.questions_distinct
    for ours, theirs in (("path", "random_path"), ("path", "rerank_only"), ("replan", "replan_random")):
        assert rows[ours].frames == rows[theirs].frames == 5
        assert rows[ours].frames_rendered == rows[theirs].frames_rendered
    assert rows["replace_weaker"].frames == rows["replace_again"].frames == 5
    assert rows["replace_weaker"].frames_rendered == rows["replace_again"].frames_rendered
    assert rows["two_extra_frames"].frames == 7
    assert rows["full_always"].frames == rows["random_bridge"].frames == 6
    assert rows["path"].questions_asked > rows["rerank_only"].questions_asked


@pytest.mark.parametrize("mode", ["path", "two_bridges", "two_extra_frames", "replace_weaker", "replan"])
def test_a_run_s_report_shows_it(tmp_path: Path, mode: str) -> None:
    page = write_report(run(tmp_path, mode, record=wood(1)).out)
    assert "<img" in page.read_text()


def test_measured_boards_name_every_round(tmp_path: Path) -> None:
    result = run(tmp_path, "two_extra_frames")
    names = [item.name for item in result.candidates.candidates]
    base = [f"candidate:{seed}" for seed in SEEDS]
    assert names == [*base, *(f"extra:{seed}" for seed in SEEDS), *(f"extra.2:{seed}" for seed in SEEDS)]
