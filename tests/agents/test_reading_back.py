"""Boards of a text without questions, by a judge that reads pictures back: nothing is asked, and nothing is scored."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from doubles import PixelJudge, plugins, story

from katha.agents.asking import require_measurable
from katha.agents.run import run_story
from katha.agents.state import RunResult
from katha.app.reports.page import own_numbers, read_back, unscored
from katha.config import Settings
from katha.errors import UsageError
from katha.jsonio import sha256_hex
from katha.schema import ReadBack, StoryRecord


@dataclass
class ReadingJudge(PixelJudge):
    """Finds one to three pictures of a board of five, by how it looks, and all but one of a longer; or reads none."""

    name: str = "reading"
    blind: bool = False
    meant: list[list[str]] = field(default_factory=list)

    def read_back(self, images: Sequence[bytes], meant: Sequence[str]) -> list[bool] | None:
        self.meant.append(list(meant))
        found = 1 + int(sha256_hex(images[0]), 16) % 3 if len(images) == 5 else len(images) - 1
        return None if self.blind else [at < found for at in range(len(images))]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def plain() -> StoryRecord:
    """The story, whose questions nobody wrote."""
    record = story()
    made = [item.model_copy(update={"made_from": "text"}) for item in record.recoverability_questions]
    return record.model_copy(update={"recoverability_questions": made})


def run(out: Path, judge: PixelJudge, record: StoryRecord, mode: str = "full", *more: PixelJudge) -> RunResult:
    steering = (judge.name,) if more else ()
    config = Settings(
        planner="scenes",
        renderer="block",
        judges=tuple(one.name for one in more) or (judge.name,),
        steering_judges=steering,
        mode=mode,
    )
    judges = {one.name: one for one in (judge, *more)}
    return run_story(record, config, out, plugins=plugins(judges=judges, steering=steering or None))


def found_of(result: RunResult, name: str) -> int:
    """How many pictures of a candidate read back."""
    back = next(item.score.read_back for item in result.candidates.candidates if item.name == name)
    return back.found if back is not None else 0


def test_nothing_is_asked_and_nothing_is_scored(tmp_path: Path) -> None:
    judge = ReadingJudge()
    result = run(tmp_path / "out", judge, plain())
    assert judge.asked == []
    assert (tmp_path / "out" / "answers.jsonl").read_text() == ""
    told = json.loads((tmp_path / "out" / "scores.json").read_text())
    assert told["methods"]["base"] == {
        "stories": 1,
        "invalid_stories": {},
        "judges": {},
        "read_back": {"found": found_of(result, "candidate:42"), "meant": 5},
    }
    assert set(told["methods"]) == {"base", "full"}
    note = "No recoverability and no STG: reading cannot measure them on questions made by rule. "
    assert told["notes"][0].startswith(note)
    assert not any("Held out" in one for one in told["notes"])
    for method in result.scores.methods:
        assert own_numbers(result.scores, method)[:4] == (None, None, None, None)
    assert unscored(result.scores) == told["notes"][:1]
    assert result.outcome.status() == "finished"


def test_the_board_that_reads_back_most_is_chosen_and_repaired(tmp_path: Path) -> None:
    judge = ReadingJudge()
    result = run(tmp_path / "out", judge, plain())
    candidates = {item.name: item for item in result.candidates.candidates}
    bases = [item for item in candidates.values() if item.kind == "base"]
    assert len({found_of(result, item.name) for item in bases}) > 1
    assert all(item.score.recoverability is None for item in candidates.values())
    for item in candidates.values():
        score, back = item.score, item.score.read_back
        assert back is not None
        assert score.total == pytest.approx(back.found / back.meant + 0.5 * score.coverage - 0.5 * score.copy_penalty)
    decision = result.candidates.decision
    assert decision.selected == max(bases, key=lambda item: item.score.total).name
    chosen = candidates[decision.selected]
    # The first pictures are found: the cuts behind them are the weakest, and the later has the lower similarity or not.
    found = found_of(result, chosen.name)
    told = [item.read_back.found for item in chosen.transitions if item.read_back is not None]
    assert told == [max(0, min(2, found - at)) for at in range(4)]
    assert decision.weakest is not None
    assert told[decision.weakest[0] - 1] == 0
    names = "scenes {} and {}".format(*decision.weakest)
    assert str(decision.weakest_reason).startswith(f"Of the frames of {names}, 0 of 2 pictures read back as meant")
    inserted = [item for item in candidates.values() if item.kind == "inserted"]
    assert [item.score.read_back for item in inserted] == [ReadBack(found=5, meant=6)] * 3
    assert decision.accepted
    assert read_back(result.scores) == {"base": bases[0].score.read_back, "full": ReadBack(found=5, meant=6)}


def test_it_is_told_what_each_picture_was_drawn_from(tmp_path: Path) -> None:
    judge = ReadingJudge()
    result = run(tmp_path / "out", judge, plain(), "base")
    assert judge.meant == [[frame.prompt for frame in result.board.frames]]


def test_the_questions_that_people_wrote_are_asked_as_ever(tmp_path: Path) -> None:
    judge = ReadingJudge()
    result = run(tmp_path / "out", judge, story())
    assert judge.asked
    assert not judge.meant
    assert set(result.scores.methods["full"].judges) == {"reading"}
    assert read_back(result.scores) is None
    assert '"read_back"' not in (tmp_path / "out" / "candidates.json").read_text()


def test_another_judge_reports_what_this_one_chose(tmp_path: Path) -> None:
    reading, pixel = ReadingJudge(), PixelJudge()
    result = run(tmp_path / "out", reading, plain(), "full", pixel)
    assert (reading.asked, bool(reading.meant), bool(pixel.asked)) == ([], True, True)
    assert set(result.scores.methods["full"].judges) == {"pixel"}
    assert found_of(result, "candidate:42") > 0


@pytest.mark.parametrize("mode", ["full", "weakest_only"])
def test_pictures_that_it_cannot_read_have_no_number_and_no_repair(tmp_path: Path, mode: str) -> None:
    result = run(tmp_path / "out", ReadingJudge(blind=True), plain(), mode)
    assert read_back(result.scores) == {"base": None, mode: None}
    assert result.candidates.decision.reason == "Nothing was repaired: no judge could read its pictures."


def test_a_study_refuses_a_story_without_questions() -> None:
    bare = StoryRecord(story_id="bare", story_text="A lion walks.")
    with pytest.raises(UsageError, match="'bare' brings no questions, and this judge cannot measure STG"):
        require_measurable([story(), bare], [ReadingJudge()])
    require_measurable([story()], [ReadingJudge()])
    require_measurable([bare], [ReadingJudge(), PixelJudge()])
