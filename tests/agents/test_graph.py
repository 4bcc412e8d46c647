"""The state machine with real LangGraph, real SQLite, and doubles that draw and read real pictures."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from doubles import BlockRenderer, PixelJudge, plugins, story

from katha.agents import graph
from katha.agents.context import check_plan
from katha.agents.graph import build_graph
from katha.agents.run import run_story
from katha.agents.state import RunResult
from katha.compass.modes import load_modes, load_suite
from katha.config import Settings
from katha.errors import (
    OutputFolderError,
    PlanError,
    RenderError,
    StoreError,
    TransientRenderError,
    UsageError,
)
from katha.eval_bridge.scoring.scores import score
from katha.protocols import Capabilities
from katha.schema import Answer, Board, Event, StoryRecord


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(graph, "RETRY", graph.RETRY._replace(initial_interval=0.0, max_interval=0.0, jitter=False))
    return tmp_path / "cache"


def config(mode: str = "full", **changes: Any) -> Settings:
    return Settings(planner="scenes", renderer="block", judges=("pixel",), mode=mode, **changes)


def rows(out: Path) -> list[Answer]:
    return [Answer.model_validate_json(line) for line in (out / "answers.jsonl").read_text().splitlines()]


def results(out: Path) -> dict[str, bytes]:
    """The bytes that a resumed run must end with."""
    names = ["storyboard.json", "scores.json", "candidates.json", "answers.jsonl", "plan.json", "story.jsonl"]
    panels = {f"panels/{path.name}": path.read_bytes() for path in (out / "panels").iterdir()}
    return {name: (out / name).read_bytes() for name in names} | panels


def run(out: Path, mode: str = "full", record: StoryRecord | None = None, **changes: Any) -> RunResult:
    return run_story(record or story(), config(mode), out, plugins=plugins(), **changes)


def test_a_run_leaves_the_files_of_the_design(tmp_path: Path) -> None:
    out = tmp_path / "out"
    events: list[Event] = []
    result = run(out, on_event=events.append)
    assert {path.name for path in out.iterdir()} == {
        *(".lock", "answers.jsonl", "candidates.json", "graph.sqlite", "panels", "plan.json"),
        *("run.json", "scores.json", "story.jsonl", "storyboard.json", "frames", "versions"),
    }
    assert not result.reused
    assert result.board.method == result.board.mode == "full"
    state = json.loads((out / "run.json").read_text())
    assert state["status"] == "finished"
    assert state["paid"]["frames_rendered"] == 15 + 3
    assert set(state["timings"]) >= {"plan", "render", "critique", "select", "localize", "bridge", "decide", "judge"}
    assert {event["stage"] for event in events} == set(state["timings"])
    assert Counter(event["kind"] for event in events)["frame"] == 18


def test_the_scores_are_those_of_the_rows(tmp_path: Path) -> None:
    result = run(tmp_path / "out")
    record = StoryRecord.model_validate_json((tmp_path / "out" / "story.jsonl").read_bytes())
    reporting = [row for row in rows(tmp_path / "out") if row.role == "reporting"]
    again, (told,) = score([record], reporting, matching="lemma-set"), result.scores.notes[-1:]
    assert again.with_notes([told]) == result.scores
    assert told.startswith("Held out by question, not by judge: pixel chose the board and reports it")
    assert set(result.scores.methods) == {"base", "full"}
    assert result.scores.questions == "reporting"


def test_the_rows_are_named_by_board_and_role(tmp_path: Path) -> None:
    run(tmp_path / "out")
    record = StoryRecord.model_validate_json((tmp_path / "out" / "story.jsonl").read_bytes())
    roles = {item.question_id: item.role for item in record.recoverability_questions}
    assert set(roles.values()) == {"steering", "reporting"}
    found = rows(tmp_path / "out")
    assert all(row.role == roles[row.question_id] for row in found)
    methods = {(row.method, row.role) for row in found}
    assert {(None, "reporting"), ("base", "reporting"), ("full", "reporting")} <= methods
    assert ("candidate:42", "steering") in methods
    assert any(method and method.startswith("bridge:123/transition:") for method, _ in methods)
    assert {row.condition for row in found if row.role == "steering"} == {"image"}
    prompts = {role: {row.prompt_sha256 for row in found if row.role == role} for role in ("steering", "reporting")}
    assert not prompts["steering"] & prompts["reporting"]


def test_the_same_command_again_does_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = run(out)
    before = results(out) | {"run.json": (out / "run.json").read_bytes()}
    again = plugins()
    second = run_story(story(), config(), out, plugins=again)
    assert second.reused
    assert (second.scores, second.board) == (first.scores, first.board)
    assert again.renderer.drawn == again.judges["pixel"].asked == []
    assert results(out) | {"run.json": (out / "run.json").read_bytes()} == before


@pytest.mark.parametrize("mode", [*(row.mode for row in load_suite("length").rows), "weakest_only"])
def test_every_mode_runs_and_an_insertion_changes_no_other_frame(tmp_path: Path, mode: str) -> None:
    data = load_modes()[mode]
    result = run(tmp_path / "out", mode)
    decision = result.candidates.decision
    scenes = [frame for frame in result.board.frames if frame.kind == "scene"]
    added = [frame for frame in result.board.frames if frame.kind != "scene"]
    selected = next(item.board for item in result.candidates.candidates if item.name == decision.selected)
    assert [(frame.scene, frame.sha256) for frame in scenes] == [(item.scene, item.sha256) for item in selected.frames]
    assert len(added) == int(decision.accepted)
    assert [frame.index for frame in result.board.frames] == list(range(1, len(result.board.frames) + 1))
    assert (decision.weakest is not None) == (data.at == "weakest")
    if data.accept == "always":
        frame = added[0]
        assert frame.kind == data.insert
        assert result.board.frames[frame.index - 2].scene == frame.transition[0]
        assert result.board.frames[frame.index].scene == frame.transition[1]
    if data.select == "first":
        assert decision.selected == "candidate:42"
    names = [item.name for item in result.candidates.candidates]
    seeds = ["42", "123", "2026"]
    expected = [f"candidate:{seed}" for seed in (seeds if data.select == "best" else seeds[:1])]
    if data.insert != "none":
        expected += [f"{data.insert}:{seed}" for seed in (seeds if data.draws == "every" else seeds[:1])]
    assert names == expected


def test_modes_share_frames_and_answers(tmp_path: Path) -> None:
    run(tmp_path / "full", "full")
    made = plugins()
    run_story(story(), config("rerank_only"), tmp_path / "rerank", plugins=made)
    assert made.renderer.drawn == []
    assert made.judges["pixel"].asked == []
    paid = json.loads((tmp_path / "rerank" / "run.json").read_text())["paid"]
    assert paid["frames_rendered"] == 0
    assert paid["frames_reused"] == 15


def test_no_question_is_asked_twice(tmp_path: Path) -> None:
    made = plugins()
    run_story(story(), config("rerank_only"), tmp_path / "out", plugins=made)
    keys = {(row.packet_sha256, row.prompt_sha256) for row in rows(tmp_path / "out")}
    paid = json.loads((tmp_path / "out" / "run.json").read_text())["paid"]
    assert len(made.judges["pixel"].asked) == paid["questions_asked"] == len(keys)


def test_no_picture_is_in_the_state(tmp_path: Path) -> None:
    run(tmp_path / "out")
    data = (tmp_path / "out" / "graph.sqlite").read_bytes()
    assert b"\x89PNG" not in data
    assert len(data) < 1_000_000


def test_another_story_s_or_settings_folder_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(out)
    before = results(out)
    with pytest.raises(OutputFolderError, match=r"another story.*--out"):
        run(out, record=story("hare"))
    with pytest.raises(OutputFolderError, match="other settings"):
        run(out, "base")
    with pytest.raises(OutputFolderError, match="another renderer"):
        run_story(story(), config(), out, plugins=plugins(renderer=BlockRenderer(version=2)))
    assert results(out) == before


def test_a_transient_failure_is_tried_again_without_drawing_twice(tmp_path: Path) -> None:
    made = plugins(renderer=BlockRenderer(failures=2))
    run_story(story(), config("base"), tmp_path / "out", plugins=made)
    assert len(made.renderer.drawn) == 5


def test_a_lasting_failure_stops_and_the_same_call_goes_on(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(TransientRenderError, match="paint is wet"):
        run_story(story(), config("base"), out, plugins=plugins(renderer=BlockRenderer(failures=99)))
    assert json.loads((out / "run.json").read_text())["status"] == "running"
    made = plugins()
    assert not run_story(story(), config("base"), out, plugins=made).reused
    assert made.planner.calls == 0
    assert len(made.renderer.drawn) == 5


class BrokenRenderer(BlockRenderer):
    """Draws two frames and then raises what no plug-in should."""

    def _draw(self, request: Any) -> bytes:
        if len(self.drawn) == 2:
            raise ZeroDivisionError("of paint")
        return super()._draw(request)


class ShortRenderer(BlockRenderer):
    """Forgets the last frame."""

    def render_board(self, requests: Any) -> Any:
        return super().render_board(requests[:-1])


class TextRenderer(BlockRenderer):
    """Gives what is not a picture."""

    def _draw(self, request: Any) -> bytes:
        return b"a lion"


@pytest.mark.parametrize(
    ("renderer", "message"),
    [
        (BrokenRenderer, "ZeroDivisionError: of paint"),
        (ShortRenderer, "4 frames for 5 requests"),
        (TextRenderer, "no PNG"),
    ],
)
def test_a_broken_renderer_is_named(tmp_path: Path, renderer: type[BlockRenderer], message: str) -> None:
    with pytest.raises(RenderError, match=f"'block'.*{message}"):
        run_story(story(), config("base"), tmp_path / "out", plugins=plugins(renderer=renderer()))
    made = plugins()
    run_story(story(), config("base"), tmp_path / "out", plugins=made)
    kept = {BrokenRenderer: 2, ShortRenderer: 4, TextRenderer: 0}[renderer]
    assert len(made.renderer.drawn) == 5 - kept


def test_frames_of_a_batch_belong_together(tmp_path: Path) -> None:
    able = Capabilities(identity="batch", default_size=(64, 48))
    broken = plugins(renderer=BrokenRenderer(capabilities=able))
    with pytest.raises(RenderError):
        run_story(story(), config("base"), tmp_path / "out", plugins=broken)
    made = plugins(renderer=BlockRenderer(capabilities=able))
    run_story(story(), config("base"), tmp_path / "out", plugins=made)
    assert len(made.renderer.drawn) == 5
    again = plugins(renderer=BlockRenderer(capabilities=able))
    run_story(story(), config("base"), tmp_path / "again", plugins=again)
    assert again.renderer.drawn == []


class CrashingJudge(PixelJudge):
    """Raises what no plug-in should."""

    def ask(self, evidence: Any, prompts: Any) -> Any:
        raise ZeroDivisionError("of thought")


def test_a_crashing_judge_is_named_and_decides_nothing(tmp_path: Path) -> None:
    made = plugins(judges={"pixel": CrashingJudge()})
    outcome = run_story(story(), config(), tmp_path / "out", plugins=made).outcome
    assert (outcome.nothing, outcome.exit_code, outcome.status()) == (True, 1, "incomplete")
    assert str(outcome.first) == "ZeroDivisionError: of thought (pixel, transport_failed)"
    state = json.loads((tmp_path / "out" / "run.json").read_text())
    assert (state["status"], state["failures"][0]["count"]) == ("incomplete", outcome.failed)
    again = plugins()
    assert not run_story(story(), config(), tmp_path / "out", plugins=again).reused
    assert again.judges["pixel"].asked
    assert again.renderer.drawn == [] or {item.kind for item in again.renderer.drawn} == {"bridge"}


def test_a_judge_that_refuses_everything_leaves_numbers_empty_and_is_asked_again(tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run_story(story(), config(), out, plugins=plugins(judges={"pixel": PixelJudge(broken=True)}))
    assert result.candidates.candidates[0].score.recoverability is None
    assert all(item.note for item in result.candidates.candidates[0].transitions)
    assert {row.status for row in rows(out)} == {"refused"}
    assert (result.outcome.status(), result.outcome.exit_code, result.outcome.failed) == ("incomplete", 1, 0)
    assert run_story(story(), config(), out, plugins=plugins(judges={"pixel": PixelJudge()})).reused
    assert json.loads((out / "run.json").read_text())["paid"]["questions_asked"] == 0
    made = plugins()
    run_story(story(), config(), tmp_path / "again", plugins=made)
    assert made.judges["pixel"].asked


def test_several_judges_are_each_asked(tmp_path: Path) -> None:
    names = ("pixel", "other")
    made = plugins(judges={name: PixelJudge(name) for name in names})
    settings = config("base").model_copy(update={"judges": names})
    result = run_story(story(), settings, tmp_path / "out", plugins=made)
    assert set(result.scores.methods["base"].judges) == {"pixel", "other", "ensemble"}
    assert Counter(row.judge for row in rows(tmp_path / "out")).keys() == {"pixel", "other"}


def test_a_lost_panel_comes_back_from_the_cache(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(out)
    before = results(out)
    panels = sorted((out / "panels").iterdir())
    panels[0].unlink()
    panels[1].write_bytes(b"scribble")
    assert run(out).reused
    assert results(out) == before


def test_a_panel_that_is_lost_everywhere_is_drawn_again(tmp_path: Path, cache: Path) -> None:
    out = tmp_path / "out"
    run(out, "base")
    before = results(out)
    lost = sorted((out / "panels").iterdir())[0]
    blob = cache / "blobs" / lost.stem[:2] / lost.stem[2:]
    blob.write_bytes(b"torn")
    lost.unlink()
    made = plugins()
    result = run_story(story(), config("base"), out, plugins=made)
    assert not result.reused
    assert len(made.renderer.drawn) == 1
    assert results(out) == before
    assert (cache / "quarantine" / f"blob-{lost.stem}").read_bytes() == b"torn"


def test_a_finished_run_needs_no_cache(tmp_path: Path, cache: Path) -> None:
    run(tmp_path / "out")
    shutil.rmtree(cache)
    assert run(tmp_path / "out").reused


def test_a_broken_checkpoint_file_costs_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    run(out)
    before = results(out)
    (out / "graph.sqlite").write_bytes(b"no database at all " * 500)
    (out / "scores.json").unlink()
    made = plugins()
    run_story(story(), config(), out, plugins=made)
    assert made.renderer.drawn == made.judges["pixel"].asked == []
    assert results(out) == before


def test_a_full_disk_is_an_error_with_what_to_do_and_the_same_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import os

    out, room, real = tmp_path / "out", [12], os.fsync

    def fsync(handle: int) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(StoreError, match="Free some space"):
        run(out)
    monkeypatch.setattr(os, "fsync", real)
    resumed = run(out)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "other"))
    untouched = run(tmp_path / "untouched")
    assert results(out) == results(tmp_path / "untouched")
    assert resumed.scores == untouched.scores


def test_a_given_plan_is_drawn_and_checked(tmp_path: Path) -> None:
    made = plugins()
    plan = made.planner.plan(story(), None)
    plan.panels[2].prompt = "The lion reads a book."
    result = run_story(story(), config("base"), tmp_path / "out", plan=plan, plugins=made)
    assert result.board.frames[2].prompt == "The lion reads a book."
    assert made.planner.calls == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plan: plan.model_copy(update={"story_id": "hare"}), "not of the story"),
        (lambda plan: plan.model_copy(update={"panels": plan.panels[::-1]}), "numbers its panels"),
        (lambda plan: plan.model_copy(update={"characters": []}), "unknown character 'lion'"),
        (lambda plan: plan.model_copy(update={"transitions": plan.transitions * 2}), "transition twice"),
        (
            lambda plan: plan.model_copy(
                update={"transitions": [plan.transitions[0].model_copy(update={"to_scene": 4})]}
            ),
            "joins no adjacent panels",
        ),
        (
            lambda plan: plan.model_copy(
                update={"panels": [*plan.panels[:4], plan.panels[4].model_copy(update={"prompt": " "})]}
            ),
            "panel 5, has no prompt",
        ),
    ],
)
def test_a_plan_that_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, change: Any, message: str
) -> None:
    plan = change(plugins().planner.plan(story(), None))
    with pytest.raises(PlanError, match=message):
        check_plan(plan, story(), config())
    with pytest.raises(PlanError, match=message):
        run_story(story(), config(), tmp_path / "out", plan=plan, plugins=plugins())
    assert not (tmp_path / "out").exists()


def test_a_plan_has_as_many_panels_as_were_asked_for() -> None:
    plan = plugins().planner.plan(story(), None)
    check_plan(plan, story(), config())
    with pytest.raises(PlanError, match="has 5 panels, the run 4"):
        check_plan(plan, story(), config().model_copy(update={"panels": 4}))


def test_a_size_that_the_renderer_cannot_draw_is_refused(tmp_path: Path) -> None:
    for able, size in ((Capabilities(), (765, 512)), (Capabilities(sizes=((64, 48),)), (768, 512))):
        made = plugins(renderer=BlockRenderer(capabilities=able))
        with pytest.raises(UsageError, match="cannot draw"):
            run_story(story(), config(size=size), tmp_path / "out", plugins=made)


def test_the_graph_can_be_drawn() -> None:
    drawn = build_graph().get_graph()
    assert {"plan", "render", "critique", "select", "localize", "bridge", "review", "decide", "judge", "report"} <= set(
        drawn.nodes
    )
    edges = {(edge.source, edge.target) for edge in drawn.edges}
    assert {("plan", "render"), ("render", "critique"), ("localize", "bridge"), ("bridge", "critique_bridges")} <= edges
    assert {("select", "localize"), ("select", "decide"), ("review", "bridge"), ("decide", "judge")} <= edges
    assert build_graph().name == "katha"


def test_a_storyboard_is_a_board(tmp_path: Path) -> None:
    run(tmp_path / "out")
    board = Board.model_validate_json((tmp_path / "out" / "storyboard.json").read_bytes())
    for frame in board.frames:
        assert frame.image == f"panels/{frame.sha256}.png"
        assert (tmp_path / "out" / frame.image).is_file()


def test_a_busy_judge_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from functools import partial

    from katha.eval_bridge.judging import engine

    monkeypatch.setattr(engine, "Retry", partial(engine.Retry, first_wait=0.0))
    judge = PixelJudge(failures=2)
    result = run_story(story(), config("base"), tmp_path / "out", plugins=plugins(judges={"pixel": judge}))
    assert {row.status for row in rows(tmp_path / "out")} == {"ok"}
    assert result.scores.methods["base"].judges["pixel"].n_unscored == 0


def test_plain_text_gets_its_questions_from_the_transitions(tmp_path: Path) -> None:
    record = story().model_copy(update={"recoverability_questions": []})
    run(tmp_path / "out", "base", record)
    kept = StoryRecord.model_validate_json((tmp_path / "out" / "story.jsonl").read_bytes())
    assert {item.role for item in kept.recoverability_questions} == {"steering", "reporting"}
    assert all(item.options for item in kept.recoverability_questions)
    assert {row.question_id for row in rows(tmp_path / "out")} == {
        item.question_id for item in kept.recoverability_questions
    }


def test_a_plan_needs_no_judge() -> None:
    from katha.agents.context import make_plan

    plan = make_plan(story(), Settings(judges=("no-such-judge",)))
    assert [panel.index for panel in plan.panels] == [1, 2, 3, 4, 5]
