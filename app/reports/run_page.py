"""`report.html` of a run: the board before and after, the weakest transition, and every question and answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from katha.agents.editor.names import frame_names
from katha.agents.folder import RunFolder
from katha.agents.spending import spent_told
from katha.app.reports.checks import checks_of, edited
from katha.app.reports.page import (
    AnswersOnPage,
    PageColumn,
    Run,
    columns_of,
    guessed,
    load_run,
    own_numbers,
    panel_uri,
    read_back,
    template,
    unjudged,
    unscored,
    worded,
    write_page,
)
from katha.compass.effects import BY_HAND, effect_of, stale_told
from katha.compass.modes import load_modes
from katha.compass.moves import told_kind
from katha.schema import DIMENSIONS, Answer, Board, Candidate, Dimension, Frame, Panel, Plan, TransitionScore
from katha.schema.scores import DimensionScore

_REPEATED = (
    *("command", "katha", "seeds", "config", "planner", "renderer", "bridge_renderer", "services", "judges"),
    *("similarity", "matching", "prompts", "versions", "paid", "spent", "timings"),
)
"""What of `run.json` is shown, in this order, where it is there."""
_HANDS = 2
"""Threads that make thumbnails."""


class FrameCell(NamedTuple):
    """A frame of a strip. `bare`: what follows it, an inserted frame or one that nobody judged, has no ring."""

    frame: Frame
    name: str
    caption: str
    uri: str
    seed: int | None
    bare: bool = False
    score: None = None
    shot: str = ""
    """Its size, angle, move, weather, light and sound."""

    @property
    def alt(self) -> str:
        """Return what the picture shows, for those who do not see it."""
        return f"Frame {self.frame.index}, {self.name.lower()}: {self.caption}"


class GapCell(NamedTuple):
    """A ring between two frames, filled by how much of the transition was recovered; `tag` marks it."""

    score: TransitionScore
    tag: str


class Strips:
    """The boards of one run as a page shows them; each panel is read once for each size."""

    def __init__(self, run: Run) -> None:
        self._weakest = run.candidates.decision.weakest
        self._uri = cache(lambda sha256, small: panel_uri(run.folder / "panels" / f"{sha256}.png", small=small))
        self._judged = not unjudged(run.scores)
        self.drawn = RunFolder(run.folder).first_plan(run.info)
        """The plan that the board was drawn from, before a person changed it; None where it was not kept."""
        self._now, self._drawn = _panels(run.plan), _panels(self.drawn) if self.drawn is not None else {}
        spec = run.info.renderer or {}
        self.found_in = str(spec["path"]) if spec.get("name") == "folder" else None
        """Return the folder of a board made elsewhere; its scenes have no seed. None for a board drawn here."""

    def strip(self, board: Board, candidate: Candidate, tag: str) -> list[FrameCell | GapCell]:
        """Return frames and, between the frames of two scenes, the transition that joins them, if it was judged.

        tag: what the weakest transition is marked with.
        """
        scores = {score.pair: score for score in candidate.transitions}
        cells: list[FrameCell | GapCell] = []
        drawn = not candidate.name.startswith(BY_HAND)
        last: int | None = None
        for frame in board.frames:
            joined = (last, frame.scene) if last is not None and frame.scene is not None else None
            score = scores.pop(frame.transition or joined or (0, 0), None)
            if score is not None and self._judged:
                cells.append(GapCell(score, tag if self._weakest == score.pair else ""))
            bare = (frame.kind != "scene" or not self._judged) and frame is not board.frames[-1]
            cells.append(self.frame(frame, drawn=drawn)._replace(bare=bare))
            last = frame.scene if frame.scene is not None else last
        return cells

    def frames(self, frames: Iterable[Frame], *, drawn: bool = False) -> list[FrameCell]:
        """Return frames as thumbnails, which are made beside one another: Pillow works without Python's lock."""
        with ThreadPoolExecutor(_HANDS) as pool:
            return list(pool.map(lambda frame: self.frame(frame, small=True, drawn=drawn), frames))

    def frame(self, frame: Frame, *, small: bool = False, drawn: bool = False) -> FrameCell:
        """Return what is shown of one frame; `small` for a thumbnail, `drawn` with the words that it had when the board
        was drawn."""
        own = frame.panel if frame.panel is not None else (self._drawn if drawn else self._now).get(frame.scene or 0)
        if frame.kind == "scene" and frame.panel is not None:
            caption, name = _caption(frame.panel), f"Scene {frame.scene}, redrawn"
        elif frame.kind == "scene":
            caption, name = _caption(own) if own is not None else "", f"Scene {frame.scene}"
        else:
            caption, name = frame.prompt, "Bridge" if frame.kind == "bridge" else "Extra frame"
            name += f", drawn by {frame.renderer}" if frame.renderer else ""
        seed = None if frame.kind == "scene" and self.found_in is not None else frame.seed
        shot = shot_told(own) if own is not None else ""
        return FrameCell(frame, name, caption, self._uri(frame.sha256, small), seed, shot=shot)


def shot_told(panel: Panel) -> str:
    """Return what a panel says of its shot in a line: "close-up, low angle; pan left; snow"."""
    framed = ", ".join(part for part in (panel.shot_size, panel.shot_angle) if part)
    sound = f"sound: {panel.sound}" if panel.sound else ""
    return "; ".join(part for part in (framed, panel.camera_move, panel.weather, panel.light, sound) if part)


def _panels(plan: Plan) -> dict[int, Panel]:
    return {panel.index: panel for panel in plan.panels}


def _caption(panel: Panel) -> str:
    """A panel's caption, and the words that only a plain shape or pose stands for."""
    stand_ins = f" (A plain stand-in for: {', '.join(panel.not_drawn)}.)" if panel.not_drawn else ""
    return f"{panel.caption or panel.prompt}{stand_ins}"


@dataclass(frozen=True)
class Section:
    """One section of the page; `SECTIONS` has those that katha writes, in their order.

    anchor: the `id` of its element. link: its name in the list at the top of the page; empty for none. template: a file
    of `templates/`, or the path of one's own; it finds the run as `run`, and as `shown` what `view` returned.
    view: what is shown, read from the run's files; None leaves the section out. judged: it is about what a judge said,
    and left out where nobody judged.
    """

    anchor: str
    link: str
    template: str | Path
    view: Callable[[Run, Strips], object]
    judged: bool = False


def write_report(run: Path, sections: Sequence[Section] | None = None) -> Path:
    """Write `run/report.html` and return its path; `sections` in place of `SECTIONS`.

    Raises:
        InputFileError: a file of the run, or a section's template, is missing or broken.
    """
    found = load_run(run)
    strips, silent = Strips(found), unjudged(found.scores)
    wanted = [item for item in (SECTIONS if sections is None else sections) if not (item.judged and silent)]
    shown = [(item, item.view(found, strips)) for item in wanted]
    return write_page(
        run / "report.html",
        "run.html.j2",
        run=found,
        title=RunFolder(run).title(found.story),
        verdict=_verdict(found),
        effect=effect.told() if (effect := effect_of(found.candidates)) is not None and not silent else "",
        judged=not silent,
        stale=stale_told(found.board),
        spent=spent_told(found.info.spent),
        coverage=found.plan.coverage,
        found_in=strips.found_in,
        unscored=unscored(found.scores),
        guessed=guessed(found.scores),
        read_back=read_back(found.scores),
        checks=checks_of(found),
        edited=edited(found),
        method=_method(found),
        before=own_numbers(found.scores, "base"),
        after=own_numbers(found.scores, _method(found)),
        sections=[
            {"anchor": item.anchor, "link": item.link, "template": template(item.template), "shown": view}
            for item, view in shown
            if view is not None
        ],
    )


def _method(run: Run) -> str:
    """The method whose numbers are those of the accepted board."""
    return run.board.mode if run.board.mode in run.scores.methods else "base"


def _candidate(run: Run, *names: str | None) -> Candidate | None:
    """The first of the names that a candidate has, if any has one."""
    known = {item.name: item for item in run.candidates.candidates}
    return next((known[name] for name in names if name in known), None)


def _verdict(run: Run) -> str:
    redrawn = [frame.scene for frame in run.board.frames if frame.panel is not None and frame.kind == "scene"]
    if redrawn and len({frame.kind for frame in run.board.frames}) == 1:
        what = f"Scene {redrawn[0]} was" if len(redrawn) == 1 else f"Scenes {' and '.join(map(str, redrawn))} were"
        return f"{what} drawn anew, from what a viewer could not tell."
    inserted = next((frame for frame in run.board.frames if frame.kind != "scene"), None)
    if inserted is not None and inserted.transition is not None:
        first, second = inserted.transition
        what = "A bridge" if inserted.kind == "bridge" else "A frame"
        return f"{what} was inserted between scenes {first} and {second}."
    seeds = {item.board.seed for item in run.candidates.candidates if item.kind == "base"}
    chosen = _candidate(run, run.candidates.decision.selected)
    if chosen is None or len(seeds) < 2:
        return "The storyboard was kept without an inserted frame."
    return f"The board of seed {chosen.board.seed} was chosen out of {len(seeds)} and kept without an inserted frame."


def _after(run: Run, strips: Strips) -> object:
    decision = run.candidates.decision
    final = _candidate(run, decision.inserted if decision.accepted else decision.selected)
    tag = "repaired" if decision.accepted else "weakest"
    return strips.strip(run.board, final or run.candidates.candidates[0], tag)


def _before(run: Run, strips: Strips) -> object:
    base = _candidate(run, *(f"candidate:{seed}" for seed in run.info.seeds[:1])) or run.candidates.candidates[0]
    tag = "weakest" if base.name == run.candidates.decision.selected else ""
    if strips.drawn is None and edited(run):
        return None
    was = [strips.frame(frame, drawn=True) for frame in base.board.frames]
    now = [strips.frame(frame, drawn=not edited(run)) for frame in run.board.frames]
    same = [(one.uri, one.caption, one.shot) for one in was] == [(one.uri, one.caption, one.shot) for one in now]
    return {"cells": strips.strip(base.board, base, tag), "same": same}


def _dimensions(run: Run, strips: Strips) -> object:
    if read_back(run.scores) is not None:
        return None
    before, after = _blocks(run, "base"), _blocks(run, _method(run))
    return [(name, before.get(name), after.get(name)) for name in DIMENSIONS]


def _blocks(run: Run, method: str) -> Mapping[Dimension, DimensionScore]:
    judge = own_numbers(run.scores, method).judge
    return run.scores.methods[method].judges[judge].filtered.dimensions if judge is not None else {}


def _weakest(run: Run, strips: Strips) -> object:
    """Return what the story says of the weakest transition, its frames, and the prompt of the frame that was tried."""
    decision = run.candidates.decision
    if decision.weakest is None:
        return None
    told = next((item for item in run.story.transitions or run.plan.transitions if item.pair == decision.weakest), None)
    names = ("action", "causality", "intention", "emotion", "consequence", "moral_target") if told is not None else ()
    tried = _candidate(run, decision.inserted, decision.selected)
    board = tried.board if tried is not None else run.board
    around = [item for item in board.frames if item.scene in decision.weakest or item.transition == decision.weakest]
    return {
        "fields": [(name.replace("_", " ").capitalize(), text) for name in names if (text := getattr(told, name))],
        "frames": strips.frames(around, drawn=tried is not None and not tried.name.startswith(BY_HAND)),
        "prompt": next((frame.prompt for frame in around if frame.kind != "scene"), None),
    }


def _moves(run: Run, strips: Strips) -> object:
    """Return by round what was missed, what was tried, and what it changed; None where no moves were made."""
    decision, asked = run.candidates.decision, run.story.recoverability_questions
    words = {item.question_id: item.question for item in asked}
    rounds = []
    for number, evidence in enumerate(decision.evidence, 1):
        rows = []
        for tried in (item for item in decision.tried if item.round == number):
            best = _candidate(run, tried.best)
            fresh = [
                frame
                for frame in (best.board.frames if best is not None else [])
                if frame.panel is not None and frame.panel in tried.move.panels
            ]
            told = {name: [words.get(one, one) for one in getattr(tried, name)] for name in ("answered", "lost")}
            rows.append((tried, told_kind(tried.move), strips.frames(fresh), told))
        rounds.append((evidence, rows))
    mode = load_modes().get(run.candidates.mode)
    return {"rounds": rounds, "informed": mode is None or mode.informed} if rounds else None


def _candidates(run: Run, strips: Strips) -> object:
    """Every board that was considered: its title, what became of it, and its frames."""
    decision, rows = run.candidates.decision, []
    for item in run.candidates.candidates:
        scenes = sorted({frame.seed for frame in item.board.frames if frame.kind == "scene"})
        title = "The board as it was found" if strips.found_in else f"Seed {', '.join(map(str, scenes))}"
        for frame in [frame for frame in item.board.frames if frame.kind != "scene"][:1]:
            title += f", with {'a bridge' if frame.kind == 'bridge' else 'an extra frame'} of seed {frame.seed}"
        redrawn = [frame.scene for frame in item.board.frames if frame.panel is not None and frame.kind == "scene"]
        if redrawn:
            title += f", with scene{'s' * (len(redrawn) > 1)} {' and '.join(map(str, redrawn))} drawn anew"
        mark = "selected" if item.name == decision.selected else ""
        if item.name == decision.inserted:
            mark = "accepted" if decision.accepted else "tried"
        drawn = not item.name.startswith(BY_HAND)
        rows.append((item, title, mark, strips.frames(item.board.frames, drawn=drawn)))
    return rows


def _asked(run: Run, strips: Strips) -> object:
    """Reporting questions before and after, and steering questions of the selected board; None where none was asked."""
    if read_back(run.scores) is not None:
        return None
    answered = AnswersOnPage(run.answers, sorted({answer.judge for answer in run.answers}), run.matching)
    boards = [("before", "base")] + ([("after", run.board.mode)] if run.board.mode != "base" else [])
    guiding = [PageColumn("Images", run.candidates.decision.selected, "image")]
    questions, story = run.story.recoverability_questions, run.story.story_id
    reporting = [item for item in questions if item.role == "reporting"]
    steering = [item for item in questions if item.role == "steering"]
    return {
        "reporting": answered.table(story, reporting, columns_of(boards, guessed=_guessed(run.answers)), flags=True),
        "steering": answered.table(story, steering, guiding),
        "own": sum((item.model_extra or {}).get("made_from") in ("text", "sentence") for item in questions),
        "unread": sum((item.model_extra or {}).get("made_from") == "sentence" for item in questions),
    }


def _guessed(answers: Iterable[Answer]) -> bool:
    return any(row.condition == "none" for row in answers)


def _repeat(run: Run, strips: Strips) -> object:
    """Return what is needed to repeat the run: its frames with their prompts, rows of `run.json`, and notes."""
    info = run.info.model_dump(mode="json")
    known = [(name, info[name]) for name in _REPEATED if info.get(name) is not None]
    rows = [(name.replace("_", " "), worded(name, value)) for name, value in known]
    return {
        "frames": list(zip(map(strips.frame, run.board.frames), frame_names(run.board, run.plan), strict=True)),
        "rows": [*rows, ("plan sha256", run.board.plan_sha256)],
        "notes": [*(() if unjudged(run.scores) else run.scores.notes), *run.info.notes],
    }


SECTIONS = (
    Section("after", "Storyboard", "run_after.html.j2", _after),
    Section("before", "", "run_before.html.j2", _before),
    Section("weakest", "Weakest transition", "run_weakest.html.j2", _weakest, judged=True),
    Section("moves", "What was tried", "run_moves.html.j2", _moves, judged=True),
    Section("candidates", "Candidates", "run_candidates.html.j2", _candidates, judged=True),
    Section("dimensions", "Dimensions", "run_dimensions.html.j2", _dimensions, judged=True),
    Section("asked", "Questions", "run_asked.html.j2", _asked, judged=True),
    Section("repeat", "Repeat it", "run_repeat.html.j2", _repeat),
)
"""The page, section by section. One more is a function that returns what is shown, a template, and a line here."""
