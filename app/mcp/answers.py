"""What a tool gives back: records for programs, sentences for whoever reads them, and thumbnails of the frames."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from pathlib import Path

from mcp_types import CallToolResult, ContentBlock, ImageContent, TextContent
from pydantic import BaseModel, ConfigDict

from katha.agents.folder import RunFolder
from katha.app.desk.desk import DeskPage, StoryDraft
from katha.app.desk.view import AskedQuestion, Card, DeskBoard, DeskCut, WeakestCut
from katha.app.reports.page import thumbnail
from katha.errors import InputFileError

_SIZE = 384


class _Told(BaseModel):
    model_config = ConfigDict(frozen=True)


class FrameTold(_Told):
    """One frame of a board. `scene` is None for an inserted one; `seed` None for one that is only planned."""

    frame: int
    scene: int | None
    kind: str
    caption: str
    prompt: str
    story: str
    seed: int | None = None
    locked: bool = False


class PlanTold(_Told):
    """A plan. `dollars` is what drawing and judging it would cost at most, None where a price is unknown."""

    title: str
    frames: tuple[FrameTold, ...]
    characters: tuple[str, ...]
    untold: tuple[str, ...]
    """Sentences of the story that no panel tells."""
    dollars: float | None
    costs: tuple[str, ...]


class CutTold(_Told):
    """The weakest cut: the two scenes, why it is the weakest, and what a viewer answers from the pictures alone."""

    scenes: tuple[int, int]
    reason: str
    questions: tuple[AskedQuestion, ...] = ()
    bridged: bool = False


class BoardTold(_Told):
    """A board as it stands. `understood` and `in_the_text` are shares of the questions in points of 100."""

    run: str
    version: str
    title: str
    frames: tuple[FrameTold, ...]
    understood: float | None = None
    in_the_text: float | None = None
    read_back: str = ""
    """How many pictures read back as meant, where nobody was asked ("6 of 9")."""
    weakest: CutTold | None = None
    cuts: tuple[DeskCut, ...] = ()
    decision: str = ""
    remarks: tuple[str, ...] = ()
    report: str = ""


class ProposalTold(_Told):
    """A bridge that could go in. `gain` is what the board's score would rise by, `accepts` what the rule says of it."""

    seed: int
    gain: float
    accepts: bool
    reason: str
    prompt: str


class ProposalsTold(_Told):
    """Bridges for one cut, best first; the board has not changed."""

    run: str
    version: str
    scenes: tuple[int, int]
    proposals: tuple[ProposalTold, ...]


class TakeTold(_Told):
    """One picture that a frame could have."""

    seed: int
    prompt: str
    on_the_board: bool


class TakesTold(_Told):
    """Takes of one frame; the board has not changed."""

    run: str
    version: str
    frame: int
    takes: tuple[TakeTold, ...]


class RedoTold(_Told):
    """What `redo` left: the takes to choose from, or the board with the one that was chosen."""

    takes: TakesTold | None = None
    board: BoardTold | None = None


class ExportTold(_Told):
    """Where an export was written."""

    path: str
    format: str


def give(told: BaseModel, text: str, pictures: Iterable[ContentBlock] = ()) -> CallToolResult:
    """Return a tool's result: sentences, then pictures, and the record beside them."""
    content: list[ContentBlock] = [TextContent(type="text", text=text), *pictures]
    return CallToolResult(content=content, structured_content=told.model_dump(mode="json"))


def refuse(sentence: str) -> CallToolResult:
    """Return a tool's result that says what was wrong; nothing else is in it."""
    return CallToolResult(content=[TextContent(type="text", text=sentence)], is_error=True)


def picture(run: Path, sha256: str, label: str) -> list[ContentBlock]:
    """Return a label and a thumbnail of one of the run's pictures; nothing where there is none yet.

    Raises:
        InputFileError: the run has no such picture, or it cannot be read.
    """
    if not sha256:
        return []
    data = RunFolder(run).panel(sha256)
    if data is None:
        raise InputFileError(f"A picture of the run {run.name!r} is missing.", hint="Run it again; it is drawn anew.")
    small = base64.b64encode(thumbnail(data, _SIZE)).decode("ascii")
    return [TextContent(type="text", text=label), ImageContent(type="image", data=small, mime_type="image/jpeg")]


def tell_plan(draft: StoryDraft) -> CallToolResult:
    """Return a plan that nothing was drawn of."""
    board, cost = draft.board, draft.cost
    told = PlanTold(
        title=board.title,
        frames=tuple(map(_frame, board.cards)),
        characters=tuple(f"{item.name}: {item.appearance or item.kind}" for item in board.cast),
        untold=tuple(item.text for item in board.story if item.scene is None),
        dollars=cost.dollars,
        costs=cost.lines,
    )
    lines = [f"{board.title}: {len(told.frames)} panels; nothing was drawn."]
    lines += [f"{item.frame}. {item.prompt}" for item in told.frames]
    lines += [f"No panel tells: {text}" for text in told.untold]
    return give(told, "\n".join([*lines, "It would take:", *cost.lines]))


def tell_board(run: Path, page: DeskPage, *, pictures: bool = True, also: str = "") -> CallToolResult:
    """Return the board of a run as it stands, with a thumbnail of each frame; `also` is a sentence that goes before."""
    told, board = _board(run, page), _shown(page)
    lines = [also] if also else []
    lines.append(f"{board.title} is the run {run.name!r}, version {page.version}, {len(told.frames)} frames.")
    if told.understood is not None:
        lines.append(
            f"From the pictures alone a viewer answers {told.understood:.0f} of 100 questions"
            + (f", from the text {told.in_the_text:.0f}." if told.in_the_text is not None else ".")
        )
    if told.read_back:
        lines.append(f"Pictures read back as meant: {told.read_back}.")
    if board.decision:
        lines.append(board.decision)
    if told.weakest is not None:
        lines.append(_cut_line(told.weakest))
    lines += told.remarks
    shown = [picture(run, card.sha256, _label(card)) for card in board.cards] if pictures else []
    return give(told, "\n".join(lines), [block for blocks in shown for block in blocks])


def tell_cut(run: Path, page: DeskPage) -> CallToolResult:
    """Return the weakest cut of a board: its two frames, its questions, and which one follows it after a repair."""
    board = _shown(page)
    if board.weakest is None:
        return give(_board(run, page), "No transition of this board has questions, so none is the weakest.")
    cut = board.weakest
    lines = [_cut_line(_cut(cut))]
    for item in cut.asked:
        answer = item.after or item.before
        lines.append(f"{item.question} The story says: {item.story} A viewer of the pictures says: {answer}")
    now = next((item for item in board.cuts if item.weakest and item.pair != cut.pair), None)
    if now is not None and now.understood is not None:
        left, right = now.pair
        what = "read back as meant" if now.read_back else "answered"
        lines.append(f"The weakest now is between scenes {left} and {right}: {now.understood:.0f} of 100 are {what}.")
    shown = [
        *picture(run, cut.left, f"Scene {cut.pair[0]}"),
        *picture(run, cut.bridge, "The frame between them"),
        *picture(run, cut.right, f"Scene {cut.pair[1]}"),
    ]
    return give(_board(run, page), "\n".join(lines), shown)


def tell_proposals(run: Path, page: DeskPage) -> CallToolResult:
    """Return the bridges that were drawn for a cut, best first."""
    proposals = page.proposals
    told = ProposalsTold(
        run=run.name,
        version=page.version,
        scenes=proposals[0].pair,
        proposals=tuple(
            ProposalTold(seed=item.seed, gain=item.gain, accepts=item.accepts, reason=item.reason, prompt=item.prompt)
            for item in proposals
        ),
    )
    left, right = told.scenes
    lines = [f"Bridges between scenes {left} and {right}, best first; the board is as it was. `accept` takes one."]
    lines += [f"Seed {item.seed}: {item.reason}" for item in proposals]
    shown = [block for item in proposals for block in picture(run, item.sha256, f"Seed {item.seed}")]
    return give(told, "\n".join(lines), shown)


def tell_takes(run: Path, page: DeskPage) -> CallToolResult:
    """Return takes of a frame, the one on the board first."""
    takes = tuple(TakeTold(seed=item.seed, prompt=item.prompt, on_the_board=item.chosen) for item in page.takes)
    told = TakesTold(run=run.name, version=page.version, frame=page.takes[0].frame, takes=takes)
    text = f"Takes of frame {told.frame}; the board is as it was. `redo` with a seed (and its prompt) puts one there."
    shown = [
        picture(run, item.sha256, f"Seed {item.seed}" + (", on the board now" if item.chosen else ""))
        for item in page.takes
    ]
    return give(RedoTold(takes=told), text, [block for blocks in shown for block in blocks])


def tell_redone(run: Path, page: DeskPage, frame: int) -> CallToolResult:
    """Return the board with a frame that was drawn again; of its pictures that one."""
    told = tell_board(run, page, pictures=False)
    cards = [card for card in _shown(page).cards if card.number == frame]
    shown = [block for card in cards for block in picture(run, card.sha256, _label(card))]
    return CallToolResult(
        content=[*told.content, *shown],
        structured_content=RedoTold(board=_board(run, page)).model_dump(mode="json"),
    )


def _board(run: Path, page: DeskPage) -> BoardTold:
    board = _shown(page)
    numbers, cut = board.numbers, board.weakest
    return BoardTold(
        run=run.name,
        version=page.version,
        title=board.title,
        frames=tuple(map(_frame, board.cards)),
        understood=numbers.image if numbers is not None else None,
        in_the_text=numbers.text if numbers is not None else None,
        read_back=numbers.read_back[1] if numbers is not None and numbers.read_back is not None else "",
        weakest=_cut(cut) if cut is not None else None,
        cuts=board.cuts,
        decision=board.decision,
        remarks=(*page.remarks, *board.notes),
        report=str(run / "report.html"),
    )


def _shown(page: DeskPage) -> DeskBoard:
    if page.board is None:
        raise InputFileError("There is no board yet.")
    return page.board


def _frame(card: Card) -> FrameTold:
    return FrameTold(
        frame=card.number,
        scene=card.scene,
        kind=card.kind,
        caption=card.caption,
        prompt=card.prompt,
        story=card.story,
        seed=card.seed,
        locked=card.locked,
    )


def _cut(cut: WeakestCut) -> CutTold:
    return CutTold(scenes=cut.pair, reason=cut.reason, questions=cut.asked, bridged=bool(cut.bridge))


def _cut_line(cut: CutTold) -> str:
    left, right = cut.scenes
    what = "The cut that was repaired" if cut.bridged else "The weakest cut"
    return f"{what} is between scenes {left} and {right}. {cut.reason}".strip()


def _label(card: Card) -> str:
    words: Sequence[str] = (card.caption, card.prompt)
    return f"Frame {card.number} ({card.kind}): {next(filter(None, words), '')}"
