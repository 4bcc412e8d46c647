"""Repair by moves: what was missed reaches the writer, reporting questions never do, and what is kept was measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from drawn_boards import Scripted, frame, plan, story, usual

from katha.agents.asking import placing
from katha.agents.context import Plugins, prepare_story
from katha.agents.editor.editing import edit_board, propose_moves, try_move
from katha.agents.editor.edits import ChangeFrame, MakeMove
from katha.agents.run import run_story
from katha.agents.state import ReviewChoice, ReviewRequest, RunResult
from katha.app.reports.run_page import write_report
from katha.compass.moves import drawn_again, move_faults, seed_of, told_by_fields, within
from katha.compass.unmeasured import NoSimilarity
from katha.compass.writer import FieldsWriter, ModelWriter
from katha.config import Settings
from katha.models.base import Completion, Turn
from katha.pictures import decode
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply, PlainPrompt
from katha.renderers.vector import VectorRenderer
from katha.schema import Move, StoryRecord
from katha_sketch.planner.rule import RulePlanner

GREEN = "#22aa44"
"""The background of a frame that answers what is asked of it."""


class Looks(Judge):
    """A judge that says "steam rises" where the last picture is green, and describes what it sees."""

    def __init__(self, misses: str = "no such words") -> None:
        self._misses = misses

    def spec(self) -> Mapping[str, Any]:
        return {"name": "looks", "misses": self._misses}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt in prompts:
            green = any(_is_green(png) for png in evidence.images)
            told = evidence.text is not None or (green and self._misses not in prompt.instruction)
            yield JudgeReply("ok", answer="steam rises" if told else "Unclear")

    def ask_plainly(self, evidence: Evidence, prompts: Sequence[PlainPrompt]) -> Iterator[JudgeReply]:
        for _ in prompts:
            yield JudgeReply("ok", answer="A girl looks at a kettle, twice.")


def _is_green(png: bytes) -> bool:
    red, green, blue = decode(png).getpixel((4, 4))  # type: ignore[misc]
    return bool(green > red and green > blue)


class Writes:
    """A model that writes moves, and remembers what it was asked."""

    def __init__(self, *replies: str) -> None:
        self.replies, self.asked = list(replies), list[str]()

    def spec(self) -> Mapping[str, Any]:
        return {"name": "writes"}

    def complete(self, turns: Sequence[Turn], schema: Mapping[str, Any] | None, heard: object = None) -> Completion:
        assert schema is not None
        self.asked.append(turns[0].text)
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        return Completion("ok", reply, usage={"model": "writes"})


def written(*moves: tuple[str, int, str]) -> str:
    rows = [
        {
            "kind": kind,
            "device": "one prop two states" if kind == "device" else "",
            "reason": f"A viewer sees {prompt}",
            "panels": [
                {
                    "panel": panel,
                    "prompt": prompt,
                    "characters": ["Mila"],
                    "must_show": ["the red kettle"],
                    "shot_size": "close-up",
                    "shot_angle": "eye level",
                    "state": [],
                }
            ],
        }
        for kind, panel, prompt in moves
    ]
    return json.dumps({"moves": rows})


@pytest.fixture
def draws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Scripted:
    """A draughtsman who draws what is asked: green where steam is asked for."""
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))

    def answer(turns: Sequence[Turn]) -> str:
        last = turns[-1].text
        if last.startswith(("Draw frame", "Draw a frame")):
            told = last.partition("What is seen:")[2].partition("\n")[0]
            place = 200 + sum(map(ord, last)) % 700
            return f"```svg\n{frame(place, GREEN if 'steam' in told else '#88aacc')}\n```"
        return usual(turns)

    made = Scripted(answer)
    monkeypatch.setattr("katha.renderers.vector.renderer.make_model", lambda *_, **__: made)
    return made


def run(
    out: Path,
    writer: Writes | None,
    mode: str = "agentic_equal",
    judge: Judge | None = None,
    record: StoryRecord | None = None,
    review: Callable[[ReviewRequest], ReviewChoice] | None = None,
    **changes: Any,
) -> RunResult:
    config = Settings(
        renderer="vector:openai:any",
        seeds=(42,),
        answers="free",
        matching="exact-set",
        size=(640, 360),
        mode=mode,
        review=review is not None,
        **changes,
    )
    return run_story(record or story(), config, out, plan=plan(), plugins=plugins_of(writer, judge), review=review)


def plugins_of(writer: Writes | None, judge: Judge | None = None) -> Plugins:
    proposes = ModelWriter(writer) if writer is not None else FieldsWriter()
    drawer, judges = VectorRenderer("openai:any"), {"looks": judge or Looks()}
    return Plugins(RulePlanner(), drawer, judges, NoSimilarity(), writer=proposes)


def test_what_was_missed_reaches_the_writer_and_its_move_is_kept(draws: Scripted, tmp_path: Path) -> None:
    writer = Writes(written(("redraw_before", 1, "no change"), ("redraw_after", 2, "steam at last")))
    result = run(tmp_path / "run", writer)
    decision = result.candidates.decision
    assert decision.accepted, decision.reason
    assert [item.question for item in decision.evidence[0].missed] == ["What, 1?", "What, 2?"]
    assert decision.evidence[0].missed[0].answered == {"looks": "Unclear"}
    assert decision.evidence[0].seen == {"looks": "A girl looks at a kettle, twice."}
    (asked,) = writer.asked
    for told in ("What, 1?", "steam rises", "Unclear", "A girl looks at a kettle, twice."):
        assert told in asked
    assert "What, 3?" not in asked
    assert "What, 4?" not in asked
    kept = [item for item in decision.tried if item.accepted]
    assert [(item.move.kind, item.answered, item.lost) for item in kept] == [
        ("redraw_after", ["kettle_q1", "kettle_q2"], [])
    ]
    assert [item.move.kind for item in decision.tried] == ["redraw_before", "redraw_after"]
    assert decision.tried[0].reason.startswith("Not kept")
    frames, before = result.board.frames, result.candidates.candidates[0].board.frames
    assert [item.kind for item in frames] == ["scene", "scene"]
    assert frames[0].sha256 == before[0].sha256
    assert frames[1].sha256 != before[1].sha256
    assert frames[1].panel is not None
    assert frames[1].panel.prompt == frames[1].prompt == "steam at last"
    page = (tmp_path / "run" / "report.html").read_text("utf-8") if (tmp_path / "run" / "report.html").exists() else ""
    page = page or write_report(tmp_path / "run").read_text("utf-8")
    for told in ("What, 1?", "A viewer sees steam at last", "Scene 2 drawn anew", "not kept", "Now answered"):
        assert told in page
    answered = [json.loads(line) for line in (tmp_path / "run" / "answers.jsonl").read_text("utf-8").splitlines()]
    assert {row["question_id"] for row in answered} == {f"kettle_q{number}" for number in range(1, 5)}


def test_a_second_run_finds_everything_and_another_draws_the_same(draws: Scripted, tmp_path: Path) -> None:
    writer = Writes(written(("redraw_after", 2, "steam at last")))
    run(tmp_path / "run", writer)
    asked = len(draws.asked)
    assert run(tmp_path / "run", writer).reused
    run(tmp_path / "again", writer)
    assert len(draws.asked) == asked, "frames come from the cache"
    for name in ("storyboard.json", "candidates.json", "scores.json", "plan.json"):
        assert (tmp_path / "run" / name).read_bytes() == (tmp_path / "again" / name).read_bytes()


def test_the_blind_twin_is_told_the_plan_alone(draws: Scripted, tmp_path: Path) -> None:
    writer = Writes(written(("redraw_after", 2, "nothing new")))
    result = run(tmp_path / "run", writer, mode="agentic_equal_blind", moves=2)
    assert not result.candidates.decision.accepted
    assert len(writer.asked) == 2, "the second round is proposed, too"
    for asked in writer.asked:
        for told in ("What, 1?", "steam rises", "Unclear", "looks at a kettle", "not kept"):
            assert told not in asked
    assert "Proposed before" in writer.asked[1]


def test_a_bridge_is_a_move_and_the_board_gets_one_at_most(draws: Scripted, tmp_path: Path) -> None:
    writer = Writes(written(("bridge", 2, "steam between")), written(("bridge", 2, "more steam")))
    result = run(tmp_path / "run", writer, mode="agentic", judge=Looks("without thinking"))
    # One of the two variants sees it: the rise is no more than the noise.
    assert not result.candidates.decision.accepted
    assert "no more than its noise" in result.candidates.decision.reason
    result = run(tmp_path / "other", Writes(written(("bridge", 2, "steam between"))), mode="agentic")
    assert [item.kind for item in result.board.frames] == ["scene", "bridge", "scene"]
    assert result.board.frames[1].panel is not None
    assert [len(item.move.panels) for item in result.candidates.decision.tried] == [1]


def test_best_of_n_draws_the_same_frames_with_further_seeds(draws: Scripted, tmp_path: Path) -> None:
    result = run(tmp_path / "run", None, mode="best_of_n", moves=4)
    tried = result.candidates.decision.tried
    assert [item.move.kind for item in tried] == ["again"] * 4
    assert [item.move.panels[0].index for item in tried] == [2, 1, 2, 1]
    seeds = [item.board.frames for item in result.candidates.candidates[1:]]
    assert len({tuple(frame.seed for frame in frames) for frames in seeds}) == 4


def test_nothing_is_proposed_where_nothing_was_missed(draws: Scripted, tmp_path: Path) -> None:
    class Knows(Looks):
        def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
            yield from (JudgeReply("ok", answer="steam rises") for _ in prompts)

    writer = Writes(written(("redraw_after", 2, "steam")))
    result = run(tmp_path / "run", writer, judge=Knows())
    assert writer.asked == []
    assert result.candidates.decision.reason == "Nothing to repair: no steering question is missed."


def test_a_writer_that_writes_nothing_usable_costs_the_repair_and_no_more(draws: Scripted, tmp_path: Path) -> None:
    result = run(tmp_path / "run", Writes(written(("redraw_after", 1, "the wrong frame"))))
    decision = result.candidates.decision
    assert not decision.accepted
    assert "cannot draw frames [1]" in decision.reason
    assert decision.tried == []
    assert len(result.board.frames) == 2


def test_a_person_decides_among_all_moves(draws: Scripted, tmp_path: Path) -> None:
    seen: list[ReviewRequest] = []

    def review(request: ReviewRequest) -> ReviewChoice:
        seen.append(request)
        other = next(name for name, move in request.moves.items() if move.kind == "redraw_before")
        return ReviewChoice("choose", candidate=other)

    writer = Writes(written(("redraw_before", 1, "no change"), ("redraw_after", 2, "steam at last")))
    result = run(tmp_path / "run", writer, review=review)
    assert sorted(move.kind for move in seen[0].moves.values()) == ["redraw_after", "redraw_before"]
    assert seen[0].prompt == "steam at last"
    assert result.candidates.decision.reviewed
    assert result.board.frames[0].prompt == "no change"


def test_questions_that_name_no_place_are_told_with_the_whole_board(draws: Scripted, tmp_path: Path) -> None:
    record = story()
    free = [
        item.model_copy(update={"target_transition": None}) if item.question_id == "kettle_q2" else item
        for item in record.recoverability_questions
    ]
    writer = Writes(written(("redraw_after", 2, "steam at last")))
    result = run(tmp_path / "run", writer, record=record.model_copy(update={"recoverability_questions": free}))
    evidence = result.candidates.decision.evidence[0]
    assert [item.question_id for item in evidence.missed] == ["kettle_q1"]
    assert [item.question_id for item in evidence.elsewhere] == ["kettle_q2"]
    assert "Asked of the whole board: What, 2?" in writer.asked[0]


def test_a_person_asks_for_moves_tries_one_and_takes_it(draws: Scripted, tmp_path: Path) -> None:
    out, writer = tmp_path / "run", Writes(written(("redraw_after", 2, "steam at last"), ("bridge", 2, "more steam")))
    before = run(out, None, mode="base").board
    made = plugins_of(writer)
    moves = propose_moves(out, plugins=made)
    assert [move.kind for move in moves] == ["redraw_after", "bridge"]
    assert "What, 1?" in writer.asked[0]
    tried = [try_move(out, move, plugins=made)[0] for move in moves]
    assert [item.accepts for item in tried] == [True, True]
    assert run(out, None, mode="base").board.frames == before.frames, "nothing has changed yet"
    drawn = len(draws.asked)
    done = edit_board(out, [MakeMove(repair=moves[0], seed=tried[0].seed)], plugins=made)
    assert len(draws.asked) == drawn, "what was tried is not drawn again"
    assert [item.sha256 for item in done.result.board.frames] == [before.frames[0].sha256, tried[0].sha256]
    assert done.result.board.frames[1].prompt == "steam at last"
    assert json.loads((out / "plan.json").read_text("utf-8"))["panels"][1]["prompt"] == "steam at last"
    # A board that a repair has redrawn is edited like any other: its own words are the plan's then.
    repaired = run(tmp_path / "other", writer)
    assert repaired.board.frames[1].panel is not None
    done = edit_board(tmp_path / "other", [ChangeFrame(frame=1, prompt="Mila waits.")], plugins=made)
    frames = done.result.board.frames
    assert [frames[1].sha256, frames[1].prompt] == [repaired.board.frames[1].sha256, "steam at last"]
    assert frames[1].panel is None


def test_a_record_s_own_questions_are_placed_when_the_plan_is_made() -> None:
    record = story()
    bare = [
        item.model_copy(update={"target_transition": None, "role": None, "gold_answer": f"steam rises, {number}"})
        for number, item in enumerate(record.recoverability_questions)
    ]
    record = record.model_copy(update={"recoverability_questions": bare})
    writer = Writes(json.dumps({"places": [{"question": 1, "frame": 1}, {"question": 2, "frame": None}]}))
    planner = RulePlanner()
    planner.question_writer = writer
    made = placing(planner, record, plan())
    asked = {item.question_id: item for item in prepare_story(record, made).recoverability_questions}
    steering = [item for item in asked.values() if item.role == "steering"]
    assert len(steering) == 2
    assert [item.target_transition for item in steering] == [(1, 2), None]
    (prompt,) = writer.asked
    told = {item.question_id: item.question in prompt for item in asked.values()}
    assert told == {name: item.role == "steering" for name, item in asked.items()}, "reporting questions stay unseen"
    placed = record.model_copy(update={"recoverability_questions": list(asked.values())})
    assert placing(planner, placed, plan()) == plan(), "whoever names places is not asked"
    assert len(writer.asked) == 1


def test_moves_are_cut_to_what_may_be_drawn() -> None:
    board = plan()
    again = drawn_again(board, (1, 2), 3)
    assert [seed_of(move, number, 42) for number, move in enumerate(again, 1)] == [49, 56, 63]
    two = replace_panels(again[0], 2)
    assert within([two, again[1]], 2) == [two]
    assert within([two, again[1]], 1) == [again[1]]
    told = told_by_fields(board, board.transitions[0], ("bridge", "redraw_after", "reframe"), 4)
    assert [move.kind for move in told] == ["bridge", "redraw_after", "reframe"]
    assert not list(move_faults(told, ("bridge", "redraw_after", "reframe"), board))
    assert [move.kind for move in told_by_fields(board, board.transitions[0], ("reframe",), 4)] == ["reframe"]
    stranger = again[0].model_copy(update={"panels": [board.panels[1].model_copy(update={"characters": ["Ana"]})]})
    assert "'Ana'" in next(move_faults([stranger], ("again",), board))
    assert "not allowed" in next(move_faults([again[0]], ("bridge",), board))


def replace_panels(move: Move, count: int) -> Move:
    return move.model_copy(update={"kind": "device", "panels": plan().panels[:count]})
