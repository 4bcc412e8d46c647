"""`--review`: the machine stops before the decision, and each of the four choices is followed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from doubles import PixelJudge, plugins, story
from services import PostgresServer

from katha.agents import graph, run
from katha.agents.run import resume_run, run_story
from katha.agents.state import ReviewChoice, ReviewRequest, RunResult
from katha.config import Settings
from katha.errors import UsageError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def review_run(out: Path, review: Callable[[ReviewRequest], ReviewChoice], **changes: Any) -> RunResult:
    config = Settings(
        planner="scenes", renderer="block", judges=("pixel",), seeds=(42, 123), review=True, mode="full_always"
    )
    return run_story(story(), config, out, review=review, plugins=plugins(**changes))


def test_accept_takes_the_proposal(tmp_path: Path) -> None:
    asked: list[ReviewRequest] = []

    def accept(request: ReviewRequest) -> ReviewChoice:
        asked.append(request)
        for candidate in request.inserted:
            for frame in candidate.board.frames:
                assert (request.panels / f"{frame.sha256}.png").is_file()
        return ReviewChoice("accept")

    result = review_run(tmp_path / "out", accept)
    (request,) = asked
    decision = result.candidates.decision
    assert (decision.accepted, decision.reviewed, decision.inserted) == (True, True, request.proposal)
    assert request.reason in decision.reason
    assert "a person's choice" in decision.reason
    assert [frame.kind for frame in result.board.frames].count("bridge") == 1
    scores = [item.score.total for item in request.inserted]
    assert scores[0] == max(scores)
    assert request.inserted[0].name == request.proposal
    assert request.weakest == decision.weakest


def test_reject_keeps_the_board(tmp_path: Path) -> None:
    result = review_run(tmp_path / "out", lambda request: ReviewChoice("reject"))
    assert not result.candidates.decision.accepted
    assert result.candidates.decision.reviewed
    assert {frame.kind for frame in result.board.frames} == {"scene"}


def test_choose_takes_another_seed_s_bridge(tmp_path: Path) -> None:
    def other(request: ReviewRequest) -> ReviewChoice:
        assert [item.name for item in request.inserted if item.name != request.proposal]
        return ReviewChoice("choose", candidate=request.inserted[-1].name)

    result = review_run(tmp_path / "out", other)
    decision = result.candidates.decision
    chosen = next(item for item in result.candidates.candidates if item.name == decision.inserted)
    assert decision.accepted
    assert result.board.frames == chosen.board.frames
    assert "instead of" in decision.reason


def test_edit_draws_the_new_prompt_with_every_seed_and_asks_again(tmp_path: Path) -> None:
    prompts: list[str] = []

    def edit(request: ReviewRequest) -> ReviewChoice:
        prompts.append(request.prompt)
        if len(prompts) == 1:
            return ReviewChoice("edit", prompt="The lion roars at the moon.")
        shown = {frame.prompt for item in request.inserted for frame in item.board.frames if frame.kind == "bridge"}
        assert shown == {"The lion roars at the moon."}
        return ReviewChoice("accept")

    result = review_run(tmp_path / "out", edit)
    assert len(prompts) == 2
    assert prompts[1] == "The lion roars at the moon."
    bridge = next(frame for frame in result.board.frames if frame.kind == "bridge")
    assert bridge.prompt == "The lion roars at the moon."


def test_a_person_who_leaves_is_asked_again_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    def leave(request: ReviewRequest) -> ReviewChoice:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        review_run(tmp_path / "out", leave)
    judge = PixelJudge()
    result = review_run(tmp_path / "out", lambda request: ReviewChoice("reject"), judges={"pixel": judge})
    assert result.candidates.decision.reviewed
    reporting = {row.question_id for row in _reporting(tmp_path / "out")}
    asked = {question.rsplit(" between ")[0] for question in judge.asked}
    assert reporting
    assert asked
    roles = _roles(tmp_path / "out")
    assert {roles[question] for question in judge.asked} == {"reporting"}


_ELSEWHERE = """
import os, sys
from pathlib import Path
from test_graph_review import review_run
from katha.agents.state import ReviewChoice
seen = []
def choose(request):
    seen.append(request.proposal)
    if sys.argv[2] == "die":
        os._exit(9)
    return ReviewChoice("choose", candidate=request.inserted[-1].name)
result = review_run(Path(sys.argv[1]), choose)
print(len(seen), result.candidates.decision.reviewed, result.candidates.decision.inserted)
"""


def test_a_review_that_one_machine_began_is_answered_from_another(tmp_path: Path, postgres: PostgresServer) -> None:
    """They share the run's folder, the database and a folder of pictures, and no cache folder."""
    database = postgres.fresh()
    paths = os.pathsep.join(str(Path(__file__).parents[1] / name) for name in ("support", "agents"))
    shared = {"KATHA_STORE": database, "KATHA_OBJECTS": str(tmp_path / "pictures"), "PYTHONPATH": paths}

    def on_machine(name: str, then: str) -> subprocess.CompletedProcess[str]:
        known = {**os.environ, **shared, "KATHA_CACHE": str(tmp_path / name)}
        words = [sys.executable, "-c", _ELSEWHERE, str(tmp_path / "out"), then]
        return subprocess.run(words, env=known, capture_output=True, text=True, timeout=60)

    assert on_machine("one", "die").returncode == 9
    with psycopg.connect(database) as connection:
        before = connection.execute("SELECT COUNT(*) FROM katha_entries WHERE kind = 'frame'").fetchone()
        assert connection.execute("SELECT COUNT(*) > 3 FROM checkpoints").fetchone() == (True,)
    assert not list((tmp_path / "out").glob("graph.sqlite*"))
    done = on_machine("two", "answer")
    assert done.stdout.startswith("1 True bridge:"), done.stderr
    with psycopg.connect(database) as connection:
        after = connection.execute("SELECT COUNT(*) FROM katha_entries WHERE kind = 'frame'").fetchone()
        assert after == before  # the second machine drew nothing
        assert connection.execute("SELECT COUNT(*) FROM checkpoints").fetchone() == (0,)
        assert connection.execute("SELECT COUNT(*) FROM katha_claims").fetchone() == (0,)
    assert on_machine("three", "answer").stdout.startswith("0 True bridge:")


def _reporting(out: Path) -> list[Any]:
    from katha.agents.folder import RunFolder

    return [row for row in RunFolder(out).read_answers() if row.role == "reporting"]


def _roles(out: Path) -> dict[str, str | None]:
    from katha.schema import StoryRecord

    record = StoryRecord.model_validate_json((out / "story.jsonl").read_bytes())
    return {item.question: item.role for item in record.recoverability_questions}


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (ReviewChoice("choose", candidate="bridge:7"), r"'bridge:7'.*bridge:42"),
        (ReviewChoice("edit", prompt=" "), "prompt is empty"),
    ],
)
def test_a_choice_that_cannot_be_followed_is_refused_and_asked_again(
    tmp_path: Path, choice: ReviewChoice, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        review_run(tmp_path / "out", lambda request: choice)
    assert review_run(tmp_path / "out", lambda request: ReviewChoice("reject")).candidates.decision.reviewed


def test_a_review_needs_a_person(tmp_path: Path) -> None:
    config = Settings(planner="scenes", renderer="block", judges=("pixel",), review=True)
    with pytest.raises(UsageError, match="needs a person"):
        run_story(story(), config, tmp_path / "out", plugins=plugins())
    assert not (tmp_path / "out").exists()


def test_the_interrupt_carries_the_schema_of_its_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    original = graph.interrupt

    def noted(value: Any, *, response_schema: Any = None) -> Any:
        seen.append(response_schema)
        return original(value, response_schema=response_schema)

    monkeypatch.setattr(graph, "interrupt", noted)
    names: list[str] = []

    def accept(request: ReviewRequest) -> ReviewChoice:
        names.extend(item.name for item in request.inserted)
        return ReviewChoice("accept")

    review_run(tmp_path / "out", accept)
    properties = seen[0]["properties"]
    assert properties["action"]["enum"] == ["accept", "reject", "choose", "edit", "seed"]
    assert properties["candidate"]["enum"] == [*names, None]
    assert properties["prompt"]["default"]


def test_a_run_goes_on_from_its_folder_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Left(Exception):
        pass

    def leave(request: ReviewRequest) -> ReviewChoice:
        raise Left

    with pytest.raises(Left):
        review_run(tmp_path / "out", leave)
    monkeypatch.setattr(run, "load_plugins", lambda config, budget: plugins())
    with pytest.raises(UsageError, match="needs a person"):
        resume_run(tmp_path / "out")
    resumed = resume_run(tmp_path / "out", review=lambda request: ReviewChoice("accept"))
    whole = review_run(tmp_path / "whole", lambda request: ReviewChoice("accept"))
    assert resumed.board == whole.board
    assert resumed.scores == whole.scores
    assert resume_run(tmp_path / "out", review=leave).reused
    with pytest.raises(UsageError, match="holds no run"):
        resume_run(tmp_path / "nothing")
