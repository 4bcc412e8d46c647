"""What the page shows of a run, read from the files in its folder: sentences, cards, cast, the weakest cut."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from katha.agents.editor.board_edits import is_locked, is_own
from katha.agents.editor.talk import Comment, comments_of, status_of
from katha.agents.folder import RunFolder, RunRecord
from katha.agents.state import ReviewRequest
from katha.app.reports.checks import (
    Check,
    checks_of,
    edited,
    graded,
    own_effect,
    planned_checks,
    stale_bridges,
    stand_in,
    viewers,
)
from katha.app.reports.page import (
    AnswersOnPage,
    PageColumn,
    Run,
    ShownAnswer,
    finished_run,
    load_run,
    own_numbers,
    read_back,
    unscored,
)
from katha.compass.repair import weakest_transition
from katha.composing import LOOK_FIELDS
from katha.eval_bridge.matching.rules import VERDICTS, archived_rule
from katha.schema import (
    Board,
    Candidate,
    Character,
    Coverage,
    Frame,
    Panel,
    Plan,
    Question,
    StoryRecord,
    TransitionScore,
)
from katha.shots import SHOT_FIELDS

_BOUNDARY = re.compile(r"(?<=[.!?\u2026])[\"'\u201d\u2019)]*\s+(?=[\"'\u201c\u2018(]*[^\Wa-z_])|\n\s*\n")
_SMALL_WORDS = frozenset(
    (
        *(
            "the",
            "and",
            "but",
            "not",
            "for",
            "with",
            "from",
            "into",
            "onto",
            "then",
            "there",
            "all",
            "very",
            "who",
            "what",
        ),
        *(
            "was",
            "were",
            "are",
            "been",
            "being",
            "had",
            "has",
            "have",
            "did",
            "does",
            "would",
            "could",
            "when",
            "where",
        ),
        *("she", "her", "hers", "his", "him", "its", "they", "them", "their", "you", "your", "this", "that", "these"),
    )
)
_HALF, _FORWARD = 0.5, 0.25
"""A panel tells a sentence when its words hold at least this share of the sentence's."""


class ViewModel(BaseModel):
    """Base of what the page is sent."""

    model_config = ConfigDict(frozen=True)


class Sentence(ViewModel):
    """A sentence of the story and the scene whose panel tells it; None where no panel does. `also`: the scenes after it
    that tell the rest.

    lost: "not read" or "not drawn" where it tells something to see that no picture shows, "in part" where a picture
    has a plain stand-in for something of it.
    """

    text: str
    scene: int | None = None
    also: tuple[int, ...] = ()
    lost: Literal["", "not read", "not drawn", "in part"] = ""


class Card(ViewModel):
    """One frame of the board with everything that a person may change. `sha256` names its picture; empty: none yet.
    `drawing`: it was drawn as SVG, which is kept."""

    number: int
    kind: str
    scene: int | None
    transition: tuple[int, int] | None
    sha256: str
    seed: int | None
    prompt: str
    caption: str
    must_show: tuple[str, ...] = ()
    characters: tuple[str, ...] = ()
    place: str = ""
    time_of_day: str = ""
    shot_size: str = ""
    shot_angle: str = ""
    camera_move: str = ""
    weather: str = ""
    light: str = ""
    sound: str = ""
    dialogue: str = ""
    action: str = ""
    notes: str = ""
    duration: float | None = None
    locked: bool = False
    story: str = ""
    stand_ins: tuple[str, ...] = ()
    drawing: bool = False
    own: bool = False
    """A person brought its picture."""
    status: str = ""
    comments: tuple[Comment, ...] = ()
    stale: bool = False
    """It is a bridge whose neighbours have changed since it was drawn."""


class CharacterView(ViewModel):
    """A character of the cast. `reference` names its reference picture; empty: none."""

    name: str
    kind: str
    appearance: str
    age: str = ""
    color: str = ""
    build: str = ""
    skin: str = ""
    hair: str = ""
    clothing: str = ""
    reference: str = ""


class AskedQuestion(ViewModel):
    """A question about a cut: what the story says, and what a viewer of the pictures said before and after a repair."""

    question: str
    story: str
    before: str
    before_right: bool | None
    after: str = ""
    after_right: bool | None = None


class DeskCut(ViewModel):
    """What lies between two scenes: the share of its questions that the pictures answer, 0 to 100; or, where nobody was
    asked (`read_back`), of its pictures that read back as meant. `asked` questions were put to a model that can answer
    for a viewer, and `answered` of them right; None: to none."""

    pair: tuple[int, int]
    understood: float | None
    weakest: bool
    read_back: bool = False
    asked: int | None = None
    answered: int | None = None


class WeakestCut(ViewModel):
    """The weakest cut, between two pictures (and, where one was tried, the bridge between them)."""

    pair: tuple[int, int]
    reason: str
    left: str
    right: str
    bridge: str = ""
    asked: tuple[AskedQuestion, ...] = ()
    effect: str = ""
    """What the bridge changed by itself."""
    viewed: bool = True
    """Whether a model that can answer for a viewer was asked."""


class ReviewTake(ViewModel):
    """One way to go on from a review: a frame that can be inserted, with the board's score."""

    name: str
    sha256: str
    total: float
    proposed: bool


class Review(ViewModel):
    """What a person is asked before a frame goes in."""

    pair: tuple[int, int]
    reason: str
    left: str
    right: str
    takes: tuple[ReviewTake, ...]
    total: float
    accepts: bool
    rule: str
    prompt: str
    asked: tuple[AskedQuestion, ...] = ()
    viewed: bool = True


class Numbers(ViewModel):
    """What is understood from the pictures alone and from the text, in points of 100; None where nothing is known."""

    text: float | None
    image: float | None
    before: float | None
    lost: float | None
    valid: int
    questions: int
    judge: str
    read_back: tuple[str, str] | None = None
    """Where nobody was asked: how many pictures read back as meant, before and now ("5 of 8")."""


class DeskBoard(ViewModel):
    """A run as the page shows it."""

    name: str
    title: str
    status: str
    finished: bool
    story: tuple[Sentence, ...]
    cards: tuple[Card, ...]
    cast: tuple[CharacterView, ...]
    read: tuple[str, ...] = ()
    """How much of the story was read and drawn, in sentences; none where the planner cannot say."""
    before: tuple[str, ...] = ()
    cuts: tuple[DeskCut, ...] = ()
    weakest: WeakestCut | None = None
    numbers: Numbers | None = None
    graded: bool = False
    """Whether `numbers` are those of a model that can answer for a viewer."""
    checks: tuple[Check, ...] = ()
    decision: str = ""
    notes: tuple[str, ...] = ()


def view_of(folder: Path, board: Board | None = None) -> DeskBoard:
    """Return what is shown of the run in `folder`, finished or on its way; board: what of an unfinished run is drawn.

    Raises:
        InputFileError: a file of the run does not have its form.
    """
    files = RunFolder(folder)
    state = files.read()
    if files.storyboard.is_file() and files.scores.is_file() and files.candidates.is_file():
        return _finished(load_run(finished_run(folder)))
    if state is None or not (files.plan.is_file() and files.story.is_file()):
        return DeskBoard(
            name=folder.name,
            title=folder.name.replace("_", " "),
            status="running",
            finished=False,
            story=(),
            cards=(),
            cast=(),
        )
    story = files.load_story()
    return planned(story, files.load_plan(), folder.name, state, board, files.title(story))


def planned(
    story: StoryRecord,
    plan: Plan,
    name: str,
    state: RunRecord | None = None,
    board: Board | None = None,
    title: str = "",
) -> DeskBoard:
    """Return what is shown of a plan whose run is not finished; `board`: the frames that are drawn, if any are."""
    drawn = {frame.scene: frame for frame in board.frames} if board is not None else {}
    return DeskBoard(
        name=name,
        title=title or story.title or story.story_id,
        status=state.status if state is not None else "planned",
        finished=False,
        story=tuple(sentences(story.story_text, plan)),
        cards=tuple(_card(panel.index, panel, drawn.get(panel.index)) for panel in plan.panels),
        cast=tuple(map(_member, plan.characters)),
        read=_read(plan.coverage),
        checks=planned_checks(plan),
    )


def sentences(text: str, plan: Plan) -> Iterable[Sentence]:
    """Yield the story's sentences in order, each with the scene that tells it, found by the words of its panel.

    What the plan itself knows to be in no picture is told by none, whatever words a panel's piece of the story holds.
    """
    told = {panel.index: _words(f"{panel.source} {panel.caption} {panel.prompt}") for panel in plan.panels}
    captions = {panel.index: _flat(panel.caption) for panel in plan.panels}
    last = 0
    for sentence in _sentences(text):
        own, lost = _words(sentence), _lost(sentence, plan.coverage)
        if lost in ("not read", "not drawn"):
            yield Sentence(text=sentence, lost=lost)
            continue
        shares = {index: len(own & words) / len(own) for index, words in told.items()}
        likely = [index for index, share in shares.items() if share >= _HALF]
        # A story goes forward: of two panels that tell a sentence, the one that is not behind the last is meant; before
        # both comes the one whose caption has it, for a piece of the story may hold more than its panel says; then the
        # first whose caption is of it.
        said = {index for index in likely if _flat(sentence) in captions[index]}
        scene = max(
            said or likely,
            key=lambda index: (
                shares[index] + _FORWARD * (index >= last),
                2 * len(own & (caption := _words(captions[index]))) >= len(caption),
                -index,
            ),
            default=None,
        )
        also: list[int] = []
        after = (scene or 0) + 1
        while scene is not None and captions.get(after) and _words(captions[after]) < own:
            also.append(after)
            after += 1
        last = scene or last
        yield Sentence(text=sentence, scene=scene, also=tuple(also), lost=lost)


def _lost(sentence: str, known: Coverage | None) -> Literal["", "not read", "not drawn", "in part"]:
    """Return what the plan's coverage says of a sentence; the reader may have divided it otherwise."""
    if known is None:
        return ""
    own = _flat(sentence)

    def most_of_it(lost: Sequence[str]) -> bool:
        return any(own in text or (text in own and len(text) >= _HALF * len(own)) for text in map(_flat, lost))

    if most_of_it(known.not_drawn):
        return "not read" if most_of_it(known.not_read) else "not drawn"
    return "in part" if most_of_it(known.in_part) else ""


def _read(known: Coverage | None) -> tuple[str, ...]:
    """Return how much of the story was read and drawn, as the terminal and the report say it."""
    said = (known.warning(), known.told(), known.note) if known is not None else ()
    return tuple(filter(None, said))


def _sentences(text: str) -> Iterable[str]:
    """The sentences as they stand; speech stays with the words that say whose it is."""
    start = 0
    for found in _BOUNDARY.finditer(text):
        end = found.start() + len(found[0].rstrip())
        if _words(text[start:end]):
            yield text[start:end].strip()
            start = found.end()
    if _words(text[start:]):
        yield text[start:].strip()


def _flat(text: str) -> str:
    return " ".join(text.split())


def _words(text: str) -> set[str]:
    """The words that tell something; all of them where none does."""
    found = set(re.findall(r"[^\W_]+", text.lower()))
    return {word for word in found if len(word) > 2 and word not in _SMALL_WORDS} or found


def asked_of(request: ReviewRequest, folder: Path) -> Review:
    """Return what a person is asked by the machine that waits in `folder`."""
    files = RunFolder(folder)
    state = files.read()
    selected, pair = request.selected, request.weakest
    left, right = _around(selected.board, pair)
    takes = [
        ReviewTake(
            name=item.name,
            sha256=next(frame.sha256 for frame in item.board.frames if frame.transition == pair),
            total=item.score.total,
            proposed=item.name == request.proposal,
        )
        for item in request.inserted
    ]
    rows = files.read_answers()
    rule = archived_rule(state.matching if state is not None else "", [folder / VERDICTS], settled=True)
    answered = AnswersOnPage(rows, sorted({row.judge for row in rows}), rule)
    return Review(
        pair=pair,
        reason=request.weakest_reason,
        left=left,
        right=right,
        takes=tuple(takes),
        total=selected.score.total,
        accepts=request.accepts,
        rule=request.reason,
        prompt=request.prompt,
        asked=_asked(answered, files.load_story(), pair, (selected.name, request.proposal)),
        viewed=any(row.judge != "none" and not stand_in(row.judge) for row in rows),
    )


def _finished(run: Run) -> DeskBoard:
    decision, plan = run.candidates.decision, run.plan
    known = {item.name: item for item in run.candidates.candidates}
    final = known.get((decision.inserted if decision.accepted else decision.selected) or decision.selected)
    base = next((item for item in run.candidates.candidates if item.kind == "base"), None)
    panels = {panel.index: panel for panel in plan.panels}
    stale = stale_bridges(run)
    cards = [
        _card(
            frame.index, panels.get(frame.scene or 0), frame, locked=is_locked(frame), stale=frame.transition in stale
        )
        for frame in run.board.frames
    ]
    viewed = bool(viewers(run))
    after, before = own_numbers(run.scores, run.board.mode), own_numbers(run.scores, "base")
    return DeskBoard(
        name=run.folder.name,
        title=RunFolder(run.folder).title(run.story),
        status=run.info.status,
        finished=True,
        story=tuple(sentences(run.story.story_text, plan)),
        cards=tuple(cards),
        cast=tuple(map(_member, plan.characters)),
        read=_read(plan.coverage),
        before=tuple(frame.sha256 for frame in base.board.frames) if base is not None else (),
        cuts=tuple(_cuts(final.transitions, viewed=viewed)) if final is not None else (),
        weakest=_weakest(run, known, final),
        numbers=Numbers(
            text=after.text,
            image=after.image,
            before=before.image if not edited(run) else None,
            lost=after.stg,
            valid=after.n_valid,
            questions=after.n_questions,
            judge=after.judge or "",
            read_back=_read_back(run),
        ),
        graded=graded(run),
        checks=checks_of(run),
        decision=decision.reason,
        notes=(*unscored(run.scores), *run.info.notes),
    )


def _read_back(run: Run) -> tuple[str, str] | None:
    """Return how many pictures read back as meant, before and now; None where questions were asked."""
    found = read_back(run.scores)
    if found is None:
        return None
    told = (found.get("base"), found.get(run.board.mode))
    before, now = (f"{one.found} of {one.meant}" if one is not None else "cannot be read" for one in told)
    return before, now


def _cuts(transitions: Sequence[TransitionScore], *, viewed: bool) -> Iterable[DeskCut]:
    found = weakest_transition(transitions)
    for item in transitions:
        back = item.read_back
        share = item.recoverability if back is None else back.share
        asked = item.n_questions if viewed and item.recoverability is not None else None
        yield DeskCut(
            pair=item.pair,
            understood=None if share is None else 100 * share,
            read_back=back is not None,
            weakest=found is not None and item.pair == found.pair,
            asked=asked,
            answered=round(asked * (item.recoverability or 0.0)) if asked is not None else None,
        )


def _weakest(run: Run, known: Mapping[str, Candidate], final: Candidate | None) -> WeakestCut | None:
    """The cut that was repaired, or the weakest one of the board as it is."""
    decision = run.candidates.decision
    now = weakest_transition(final.transitions) if final is not None else None
    pair = decision.weakest or (now.pair if now is not None else None)
    if pair is None:
        return None
    bridge = next((frame.sha256 for frame in run.board.frames if frame.transition == pair), "")
    left, right = _around(run.board, pair)
    rows = run.answers
    answered = AnswersOnPage(rows, sorted({row.judge for row in rows}), run.matching)
    methods = (decision.selected, decision.inserted or "") if bridge else (decision.selected,)
    reason = decision.weakest_reason or (now.reason if now is not None else "")
    asked = _asked(answered, run.story, pair, methods)
    return WeakestCut(
        pair=pair,
        reason=reason,
        left=left,
        right=right,
        bridge=bridge,
        asked=asked,
        effect=own_effect(run, pair) if bridge else "",
        viewed=bool(viewers(run)),
    )


def _around(board: Board, pair: tuple[int, int]) -> tuple[str, str]:
    """The pictures of a cut's two scenes."""
    scenes = {frame.scene: frame.sha256 for frame in board.frames if frame.scene is not None}
    return scenes.get(pair[0], ""), scenes.get(pair[1], "")


def _asked(
    answered: AnswersOnPage, story: StoryRecord, pair: tuple[int, int], methods: Sequence[str]
) -> tuple[AskedQuestion, ...]:
    """The steering questions about a cut, answered from its frames in the boards before and after."""
    questions = [
        item for item in story.recoverability_questions if item.target_transition == pair and item.role == "steering"
    ]
    columns = [PageColumn(name, f"{name}/transition:{pair[0]}-{pair[1]}", "image") for name in methods]
    rows = answered.table(story.story_id, questions, columns).rows
    return tuple(_answers(row.question, row.cells) for row in rows if any(row.cells))


def _answers(question: Question, cells: Sequence[Sequence[ShownAnswer]]) -> AskedQuestion:
    verdicts = {"right": True, "wrong": False}

    def said(cell: Sequence[ShownAnswer]) -> tuple[str, bool | None]:
        words = "; ".join(dict.fromkeys(given.answer for given in cell if given.answer)) or "no answer"
        right = [verdicts[given.verdict] for given in cell if given.verdict in verdicts]
        return words, 2 * sum(right) > len(right) if right else None

    before, after = said(cells[0]), said(cells[1]) if len(cells) > 1 else ("", None)
    return AskedQuestion(
        question=question.question,
        story=question.gold_answer,
        before=before[0],
        before_right=before[1],
        after=after[0],
        after_right=after[1],
    )


def _card(number: int, panel: Panel | None, frame: Frame | None, *, locked: bool = False, stale: bool = False) -> Card:
    """A frame as a card; a bridge has no panel in the plan, and keeps its words itself."""
    scene = frame is None or frame.kind == "scene"
    holder = panel if panel is not None else frame
    told: Mapping[str, object] = holder.model_dump() if holder is not None else {}
    return Card(
        number=number,
        kind=frame.kind if frame is not None else "scene",
        scene=panel.index if panel is not None else None,
        transition=frame.transition if frame is not None else None,
        sha256=frame.sha256 if frame is not None else "",
        seed=frame.seed if frame is not None else None,
        prompt=panel.prompt if panel is not None and scene else frame.prompt if frame is not None else "",
        caption=_text(told, "caption"),
        must_show=tuple(panel.must_show) if panel is not None else (),
        characters=tuple(panel.characters) if panel is not None else (),
        place=panel.place if panel is not None else "",
        **{name: _text(told, name) for name in SHOT_FIELDS},
        dialogue=_text(told, "dialogue"),
        action=_text(told, "action"),
        notes=_text(told, "notes"),
        duration=_seconds(told),
        locked=locked,
        story=panel.source if panel is not None else "",
        stand_ins=tuple(panel.not_drawn) if panel is not None and scene else (),
        drawing=frame is not None and bool(frame.source),
        own=frame is not None and is_own(frame),
        status=status_of(frame) if frame is not None else "",
        comments=comments_of(frame) if frame is not None else (),
        stale=stale and not scene,
    )


def _member(character: Character) -> CharacterView:
    told = character.model_extra or {}
    return CharacterView(
        name=character.name,
        kind=character.kind,
        appearance=character.appearance,
        **{name: _text(told, name) for name in ("age", "color", *LOOK_FIELDS, "reference")},
    )


def _seconds(told: Mapping[str, object]) -> float | None:
    value = told.get("duration")
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _text(told: Mapping[str, object], key: str) -> str:
    value = told.get(key)
    return value if isinstance(value, str) else ""


def in_frames(said: str, board: Board) -> str:
    """Return a sentence that names scenes as one that names the frames which show them, as the cards count: scene 3 is
    frame 4 where a bridge stands before it."""
    numbers = {frame.scene: frame.index for frame in board.frames if frame.kind == "scene"}

    def named(found: re.Match[str]) -> str:
        word = ("Frame" if found[1] == "S" else "frame") + found[2]
        return word + re.sub(r"\d+", lambda one: str(numbers.get(int(one[0]), one[0])), found[3])

    return re.sub(r"\b([Ss])cene(s?)\b((?: \d+(?:(?: to | and |, )\d+)*)?)", named, said)
