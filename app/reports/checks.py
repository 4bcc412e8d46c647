"""What a person can check of a board, in sentences: what of the story has no picture, what is drawn plainly, what a
model that was asked could not answer, and what a bridge changed by itself.

Nothing here is a grade. The judge that comes with the stand-in reads no language: what it says of its own pictures is
not told as what a viewer understands.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, ConfigDict

from katha.app.reports.page import AnswersOnPage, PageColumn, Run, own_numbers
from katha.compass.effects import is_stale
from katha.composing.words import as_sentence
from katha.composing.words import said as says
from katha.protocols import Judge, can
from katha.registry import default_registry
from katha.schema import Candidate, Coverage, Plan

Name = Literal["sentences", "stand-ins", "left-out", "asked", "bridge"]


class Point(BaseModel):
    """One thing that is wanting; `scene`: where, if it is one scene's."""

    model_config = ConfigDict(frozen=True)

    words: str
    scene: int | None = None


class Check(BaseModel):
    """One sentence that can be checked, and what it is about. `good`: nothing is wanting."""

    model_config = ConfigDict(frozen=True)

    name: Name
    said: str
    points: tuple[Point, ...] = ()
    good: bool = True


def stand_in(judge: str) -> bool:
    """Return whether a judge reads pictures back and no language, so that its numbers are no viewer's."""
    known = default_registry("judges")
    name = judge.partition(":")[0]
    return name in known.names() and can(known.load(name)[0], Judge.read_back)


def viewers(run: Run) -> list[str]:
    """Return the judges that were asked about a run's pictures and can answer for a viewer."""
    return [judge for judge in sorted({row.judge for row in run.answers}) if judge != "none" and not stand_in(judge)]


def edited(run: Run) -> bool:
    """Return whether a person has changed the board since it was drawn, so that it is compared with none of before."""
    return bool(run.info.redone)


def planned_checks(plan: Plan, *, looked: bool = False) -> tuple[Check, ...]:
    """Return what can be checked before a board is finished: the sentences and the plain shapes; looked: a model that
    can answer for a viewer was asked about the pictures."""
    return (*_sentences(plan.coverage, looked=looked), *_plain(plan), *_left_out(plan))


def checks_of(run: Run) -> tuple[Check, ...]:
    """Return what can be checked of a finished board."""
    return (*planned_checks(run.plan, looked=bool(viewers(run))), *_asked(run), *_bridges(run))


def _sentences(known: Coverage | None, *, looked: bool) -> Iterable[Check]:
    if known is None or not known.visible:
        return
    lost = (*known.not_drawn, *known.in_part)
    said = f"{known.whole} of {known.visible} sentences that can be shown were given a frame"
    if known.in_part:
        said += f" for all of it; {len(known.in_part)} in part"
    said += "." if looked else ". Nobody has checked whether the pictures show them: look."
    yield Check(name="sentences", said=said, points=tuple(Point(words=one) for one in lost), good=not lost)


def _plain(plan: Plan) -> Iterable[Check]:
    found = [Point(words=word, scene=panel.index) for panel in plan.panels for word in panel.not_drawn]
    if found:
        words = "1 word is" if len(found) == 1 else f"{len(found)} words are"
        said = f"{words} not drawn as such: a plain shape stands there."
        yield Check(name="stand-ins", said=said, points=tuple(found), good=False)


def _left_out(plan: Plan) -> Iterable[Check]:
    told = [panel.prompt for panel in plan.panels]  # a caption is the story's own text, drawn or not
    left = plan.visual.left_out if plan.visual is not None else []
    # A frame that a person has made since may say it.
    points = tuple(Point(words=one) for one in left if not any(says(one, prompt) for prompt in told))
    if points:
        what = "one thing" if len(points) == 1 else f"{len(points)} things"
        said = f"The planner left {what} of the story out of every frame."
        yield Check(name="left-out", said=said, points=points, good=False)


def _asked(run: Run) -> Iterable[Check]:
    """Yield what each model could not answer from the pictures of the board as it is, of the questions that chose
    nothing."""
    method = run.board.mode if run.board.mode in run.scores.methods else "base"
    questions = [item for item in run.story.recoverability_questions if item.role == "reporting"]
    for judge in viewers(run):
        table = AnswersOnPage(run.answers, [judge], run.matching).table(
            run.story.story_id, questions, [PageColumn("", method, "image")]
        )
        given = [(row.question, row.cells[0][0]) for row in table.rows if row.cells[0][0].answer != "not asked"]
        if not given:
            continue
        missed = [(question, cell) for question, cell in given if cell.verdict != "right"]
        points = [
            Point(
                words=f"{question.question} The story says: {as_sentence(question.gold_answer)} "
                f"It said: {as_sentence(cell.answer or 'nothing')}"
            )
            for question, cell in missed
        ]
        said = f"{judge} was asked {len(given)} questions about the pictures, and answered {len(given) - len(missed)}."
        yield Check(name="asked", said=said, points=tuple(points), good=not missed)


def _bridges(run: Run) -> Iterable[Check]:
    stale = set(stale_bridges(run))
    for frame in run.board.frames:
        if frame.kind != "scene" and frame.transition is not None:
            said = own_effect(run, frame.transition)
            if frame.transition in stale:
                said += " Its neighbours have changed since it was drawn: draw it again, or take it out."
            good = frame.transition not in stale
            yield Check(name="bridge", said=said, points=(Point(words="", scene=frame.transition[0]),), good=good)


def own_effect(run: Run, pair: tuple[int, int]) -> str:
    """Return what a bridge changed by itself: the same pictures without it and with it, about its own cut."""
    where = f"between scenes {pair[0]} and {pair[1]}"
    decision, judges = run.candidates.decision, viewers(run)
    before, after = _candidate(run, decision.selected), _candidate(run, decision.inserted)
    questions = [
        item
        for item in run.story.recoverability_questions
        if item.role == "steering" and item.target_transition == pair
    ]
    if not judges or before is None or after is None or before.name == after.name or not questions:
        return f"The bridge {where}: no viewer was asked whether it helps."
    columns = [PageColumn("", f"{name}/transition:{pair[0]}-{pair[1]}", "image") for name in (before.name, after.name)]
    rows = AnswersOnPage(run.answers, judges, run.matching).table(run.story.story_id, questions, columns).rows
    given = [row for row in rows if all(cell.answer != "not asked" for cells in row.cells for cell in cells)]
    if not given:
        return f"The bridge {where}: no viewer was asked whether it helps."
    without, beside = (sum(cell.verdict == "right" for row in given for cell in row.cells[at]) for at in (0, 1))
    asked = len(given) * len(judges)
    what = "helps" if beside > without else "changes nothing" if beside == without else "harms"
    many = f"{asked} question{'s' if asked > 1 else ''} about this cut"
    return f"The bridge {where} {what}: of {many} {without} were answered without it, {beside} with it."


def _candidate(run: Run, name: str | None) -> Candidate | None:
    return next((item for item in run.candidates.candidates if item.name == name), None)


def stale_bridges(run: Run) -> list[tuple[int, int]]:
    """Return the bridges whose neighbours have another picture than when they were drawn, by their scenes."""
    return [frame.transition for frame in run.board.frames if frame.transition is not None and is_stale(frame)]


def graded(run: Run) -> bool:
    """Return whether the board has numbers that a model gave which can answer for a viewer."""
    method = run.board.mode if run.board.mode in run.scores.methods else "base"
    found = own_numbers(run.scores, method)
    return found.image is not None and bool(viewers(run))
