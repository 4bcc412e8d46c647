"""The desk behind the page: one folder of runs, the run that lies open, and what a person does to it."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field

from katha.agents.context import Plugins, load_plugins, make_bridge, make_renderer
from katha.agents.editor import editing, versions
from katha.agents.editor.editing import FrameTake, Proposal
from katha.agents.editor.edits import Edit, LockFrame, TalkFrame
from katha.agents.editor.versions import Version
from katha.agents.fitting import unfit_judge
from katha.agents.folder import CAST, RunFolder
from katha.agents.requests import frame_request
from katha.agents.state import Emit, ReviewChoice
from katha.app.desk.boards import Listed, RunLibrary
from katha.app.desk.choices import chosen, proposed, reads_only
from katha.app.desk.done import said_of
from katha.app.desk.job import Progress, Reviewer, Worker, WorkerQueue
from katha.app.desk.typed import Typed
from katha.app.desk.view import DeskBoard, Review, asked_of, in_frames, planned, view_of
from katha.app.drawing import plan_story, resume_run, run_story, settings_for
from katha.app.imports import import_board, name_of_files, put_files
from katha.app.needs import needs_of_run
from katha.app.presets import choose_countable
from katha.app.reports.run_page import write_report
from katha.compass.moves import told_kind
from katha.config import MOST_PANELS, Settings, cache_folder, read_settings, refuse_code
from katha.configs import load_config
from katha.errors import InputFileError, KathaError, StoreError, UsageError
from katha.eval_bridge.judging.budget import Budget
from katha.experiments.needs import Needs
from katha.jsonio import read_bytes, write_bytes_atomic
from katha.models.paste import PastedExchange, awaited, bring, give_up, usual_folder, waiting
from katha.photographs import PictureEdit
from katha.protocols import FrameRequest, Renderer, can
from katha.renderers.vector.svg import DrawingFault, read_svg, write_svg
from katha.schema import Board, Event, Move, Plan, StoryRecord
from katha.store import Store
from katha.stories import MAX_STORY_BYTES, story_of_text

# As many as `app.desk.boards` removes under one name.
_SAME_NAME = 1000
Work = Literal["edit", "takes", "bridge", "moves", "try"]
"""What is done to a finished board and may be paid for."""
STORY = "story"
"""The form of a new story, among those that were typed into."""
# Three fit side by side on a laptop, and each costs what a frame costs.
_TAKES = 3
_MOST_DRAWING = 4_000_000


class StaleError(UsageError):
    """The board was changed since the page that asks has read it: in another tab, or by another katha."""


class PastedStory(BaseModel):
    """A story as it is pasted into the page, and who draws it and looks at it; empty: the desk's own."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(default="", max_length=200)
    text: str = Field(max_length=MAX_STORY_BYTES)
    panels: int | None = Field(default=None, ge=2, le=MOST_PANELS)
    style: str = Field(default="", max_length=200)
    renderer: str = Field(default="", max_length=400)
    judge: str = Field(default="", max_length=400)
    size: str = Field(default="", pattern=r"^([0-9]{2,4}x[0-9]{2,4})?$")


class File(BaseModel):
    """One file of a board that is brought along, by the name that it had there."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=1000)
    data: Base64Bytes


class Brought(BaseModel):
    """A board that is drawn already. text: the story that it tells; its own words unless told. pages: "2-9". order: as
    `katha.ordering` takes it."""

    model_config = ConfigDict(extra="forbid")

    files: Annotated[list[File], Field(min_length=1, max_length=500)]
    title: str = Field(default="", max_length=200)
    text: str = Field(default="", max_length=MAX_STORY_BYTES)
    pages: str = Field(default="", max_length=200)
    order: str = Field(default="", max_length=200)


class Cost(BaseModel):
    """What drawing a story would take at most. `dollars` is None where a price is unknown. `by_hand`: a person carries
    some of it to a chat window and back."""

    model_config = ConfigDict(frozen=True)

    dollars: float | None
    pictures: int
    answers: int
    lines: tuple[str, ...] = ()
    by_hand: bool = False

    @property
    def free(self) -> bool:
        """Return whether nothing of it is paid for."""
        return self.dollars == 0.0


class Price(BaseModel):
    """Whether a change of a run is free, and what one picture of it and the whole run cost at most; None where nobody
    knows. `judging`: whether answers about it cost something. `words`: what is asked before it is paid."""

    model_config = ConfigDict(frozen=True)

    free: bool
    picture: float | None = 0.0
    whole: float | None = 0.0
    judging: bool = False
    words: str = ""

    def of(self, pictures: int, *, judged: bool) -> Price:
        """Return the price of a change that draws so many pictures. judged: whether what it changes is judged again."""
        judging = judged and self.judging
        if not judging and (not pictures or self.picture == 0.0):
            return self.model_copy(update={"free": True})
        drawn = f"{pictures} picture{'s are' if pictures != 1 else ' is'} drawn" if pictures else "No picture is drawn"
        if pictures and self.picture is None:
            drawn += "; what a picture costs is not known"
        elif pictures and self.picture:
            drawn += f", for about ${pictures * self.picture:.2f}"
        again = "; the board is judged again" if judging else ""
        return self.model_copy(update={"free": False, "words": f"{drawn}{again}. What is in the cache costs nothing."})


_UNKNOWN = Price(free=False, picture=None, whole=None, judging=True)


class Unfit(BaseModel):
    """Why a story is not drawn so: its judge cannot read what its renderer draws. `proposed` can, for `dollars` at
    most (None: not known)."""

    model_config = ConfigDict(frozen=True)

    said: str
    proposed: str
    dollars: float | None


class StoryDraft(BaseModel):
    """A story that was read and not drawn yet: what would be drawn, what it would cost, and why it cannot be."""

    model_config = ConfigDict(frozen=True)

    told: PastedStory
    board: DeskBoard
    cost: Cost
    unfit: Unfit | None = None


class Offered(BaseModel):
    """A move that could be drawn: what it changes in words, why, and dollars for its pictures; None: not known."""

    model_config = ConfigDict(frozen=True)

    kind: str
    reason: str
    prompts: tuple[str, ...]
    dollars: float | None


class DeskPage(BaseModel):
    """What the page shows of the open run. `version` names the board that a change is made on; empty while it works.
    `masks`: its renderer draws a part of a frame anew inside a mask. `amends`: it changes a finished drawing in words.
    `draft`: the story that was read last, where no run lies open. `said`: what the last change did; `remarks`: what a
    person has to know of it; `details`: what became of its transitions and questions."""

    model_config = ConfigDict(frozen=True)

    board: DeskBoard | None = None
    review: Review | None = None
    version: str = ""
    back: bool = False
    forth: bool = False
    takes: tuple[FrameTake, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    moves: tuple[Offered, ...] = ()
    remarks: tuple[str, ...] = ()
    said: str = ""
    details: tuple[str, ...] = ()
    price: Price = Price(free=True)
    masks: bool = False
    amends: bool = False
    sheet: bool = False
    """Whether the cast was drawn as a sheet of its own."""
    draft: StoryDraft | None = None


@dataclass
class PluginCache:
    """The plug-ins of the run that was changed last: the next change of it does not wait for a model to be read again,
    and no two runs' models stand in memory."""

    known: tuple[Path, Plugins] | None = None
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)


@dataclass
class Desk:
    """A folder of runs, and the one of them that lies open on it.

    home: the folder of the runs. settings: what a new story is drawn with. budget: over everything that is paid for.
    turn, shelf, exchanged: those of the desks that stand beside it (`katha.app.desk.room`).
    """

    home: Path
    settings: Settings
    budget: Budget | None = None
    run: Path | None = None
    turn: WorkerQueue = field(default_factory=WorkerQueue, repr=False)
    shelf: PluginCache = field(default_factory=PluginCache, repr=False)
    exchanged: set[str] = field(default_factory=set, repr=False)
    """The numbers of the prompts whose replies were brought by hand, at this desk and those beside it."""
    worker: Worker = field(init=False)
    typed: Typed = field(init=False)
    begun: str = field(default="", init=False)
    """The name of the run whose first work was begun here."""
    takes: tuple[FrameTake, ...] = field(default=(), init=False)
    proposals: tuple[Proposal, ...] = field(default=(), init=False)
    moves: tuple[Move, ...] = field(default=(), init=False)
    remarks: tuple[str, ...] = field(default=(), init=False)
    said: str = field(default="", init=False)
    details: tuple[str, ...] = field(default=(), init=False)
    _prices: dict[Path, Price] = field(default_factory=dict, init=False)
    _able: dict[Path, tuple[bool, bool]] = field(default_factory=dict, init=False)
    _viewed: tuple[Path, tuple[tuple[int, int, int], ...], DeskBoard] | None = field(default=None, init=False)
    _draft: tuple[Settings, StoryDraft] | None = field(default=None, init=False)
    _portraits: dict[tuple[str, str], bytes] = field(default_factory=dict, init=False, repr=False)
    _ticks: int = field(default=1, init=False)
    _asks: tuple[str, str] | None = field(default=None, init=False)
    _prepared: Path | None = field(default=None, init=False)
    _taking: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self.worker = Worker(self._tick, self.turn)
        self.typed = Typed(self.home)

    def beside(self, run: Path | None = None) -> Desk:
        """Return another desk on the same folder, with `run` open on it; what was read here is known there."""
        made = Desk(self.home, self.settings, self.budget, run, self.turn, self.shelf, self.exchanged)
        made._draft = self._draft
        return made

    @property
    def ticks(self) -> int:
        """A number that is another whenever a page has something new to show."""
        asks = awaited(usual_folder()) if self.worker.works else None
        if asks != self._asks:
            self._asks = asks
            self._tick()
        return self._ticks

    def stop(self) -> None:
        """Ask the work to stop when its step is done, or at once where it waits for a chat window's reply."""
        works = self.worker.works
        self.worker.stop()
        if works:
            give_up(usual_folder())

    def exchange(self) -> PastedExchange | None:
        """Return the prompt that the work waits for a person to carry to a chat window (`paste`); None: it does not."""
        return waiting(usual_folder()) if self.worker.works else None

    def bring(self, number: str, text: str) -> None:
        """Bring the reply of a chat window to the prompt that waits.

        Raises:
            UsageError: it is empty, or another prompt waits by now.
        """
        bring(usual_folder(), number, text)
        self.exchanged.add(number)

    def prompt_picture(self, name: str) -> bytes | None:
        """Return a picture of the prompt that waits, by its name; None where it has none of that name."""
        asked = self.exchange()
        return read_bytes(usual_folder() / name) if asked is not None and name in asked.pictures else None

    def _tick(self) -> None:
        self._ticks += 1

    # What is shown.

    def runs(self) -> list[Listed]:
        """Return the runs in the desk's folder, the last changed first."""
        return RunLibrary(self.home).listed()

    def page(self) -> DeskPage:
        """Return everything that the page shows of the open run.

        Raises:
            KathaError: a file of the run cannot be read.
        """
        run = self.run
        if run is not None and not run.is_dir() and not self.worker.progress.running:
            self.run, self.remarks = None, (f"There is no board in the folder {str(run)!r}.",)
            self._tick()
        if self.run is None or run is None:
            return DeskPage(remarks=self.remarks, draft=self._draft[1] if self._draft is not None else None)
        request, price = self.worker.request, self.price()
        review = asked_of(request, run) if request is not None else None
        finished, working = RunFolder(run).storyboard.is_file(), self.worker.progress.running
        if finished and not working:
            version, (before, after) = editing.version_of(run), versions.neighbours(run)
            masks, amends = self._abilities(run)
            return DeskPage(
                board=self._view(run),
                version=version,
                back=before is not None,
                forth=after is not None,
                takes=self.takes,
                proposals=self.proposals,
                moves=self._offers(run, price),
                remarks=self.remarks,
                said=self.said,
                details=self.details,
                price=price,
                masks=masks,
                amends=amends,
                sheet=RunFolder(run).source(CAST) is not None,
            )
        known = self._viewed
        if finished and request is None and known is not None and known[0] == run:
            return DeskPage(board=known[2], price=price)  # the board that is being changed, as it was
        drawn = request.selected.board if request is not None else None
        return DeskPage(board=view_of(run, board=drawn), review=review, price=price)

    def _offers(self, run: Path, price: Price) -> tuple[Offered, ...]:
        """The moves that could be drawn, in words that count frames as the cards do."""
        if not self.moves:
            return ()
        board, seeds = editing.read_board(run).board, len(self._seeds(run))
        return tuple(_offered(move, price, seeds, board) for move in self.moves)

    def _view(self, run: Path) -> DeskBoard:
        """A finished run as it is shown, made once while its files stay as they are."""
        stamp, known = RunFolder(run).stamp(), self._viewed
        if known is None or known[:2] != (run, stamp):
            known = self._viewed = (run, stamp, view_of(run))
        return known[2]

    def drawing(self, name: str) -> str | None:
        """Return the SVG of a picture of the open run by its hash, or its cast's, with nothing in it but what may be
        drawn: the run may come from elsewhere. None where there is none.

        Raises:
            InputFileError: it is not a drawing that can be used.
        """
        data = RunFolder(self.run).source(name) if self.run is not None else None
        try:
            return None if data is None else write_svg(read_svg(data, most_bytes=_MOST_DRAWING, lenient=True).root)
        except DrawingFault as fault:
            raise InputFileError(f"This drawing cannot be edited: {fault}") from None

    def portrait(self, name: str) -> bytes | None:
        """Return a picture of a character alone, as the open run's renderer draws it now; None where there is no such
        character, or where the renderer is paid for, holds a model, or keeps characters by the frames around.

        Raises:
            KathaError: it cannot be drawn.
        """
        run = self.run
        if run is None or not RunFolder(run).plan.is_file():
            return None
        plan, state = RunFolder(run).load_plan(), RunFolder(run).read()
        member = next((one for one in plan.characters if one.name == name), None)
        if member is None or state is None:
            return None
        key = (member.model_dump_json(), plan.style)
        if key not in self._portraits:
            refuse_code(state.config, f"The run in {str(run)!r}", received=True)
            renderer = make_renderer(read_settings(Settings, state.config))
            able = renderer.capabilities
            simple = able.identity == "none" and able.source == "drawn" and able.panel
            if not simple or renderer.exclusive or renderer.frame_price != 0.0:
                return None
            prompt = f"{member.anchor_prompt or member.appearance or member.kind}".strip().rstrip(".") + " stands."
            asked = FrameRequest(prompt, 42, 384, 384, style=plan.style, characters=(member,), shot_size="medium")
            self._portraits[key] = next(iter(renderer.render_board([asked])))
        return self._portraits[key]

    def picture(self, sha256: str) -> bytes | None:
        """Return a picture of the open run, or a first version of one that it is drawing; None where there is none."""
        found = RunFolder(self.run).panel(sha256) if self.run is not None else None
        if found is not None or sha256 not in self.worker.progress.scenes.values():
            return found
        with suppress(StoreError), Store(cache_folder()) as store:
            return store.blobs.get(sha256)
        return None

    @property
    def progress(self) -> Progress:
        """Return how far the work is."""
        return self.worker.progress

    def price(self) -> Price:
        """Return what a change of the open run may cost; told once for each run, before anything is paid."""
        run = self.run
        if run is None:
            return Price(free=True)
        known = self._prices.get(run)
        if known is None:
            files = RunFolder(run)
            known = _price_of(files)
            if files.story.is_file():  # before that nobody knows
                self._prices[run] = known
        return known

    def _abilities(self, run: Path) -> tuple[bool, bool]:
        """Return whether a run's renderer draws inside a mask, and changes a finished drawing; looked up once for each
        run."""
        if run not in self._able:
            try:
                state = RunFolder(run).read()
                refuse_code(state.config if state is not None else {}, f"The run in {str(run)!r}", received=True)
                config = read_settings(Settings, state.config if state is not None else {})
                renderer = make_renderer(config)
                self._able[run] = (can(renderer, Renderer.inpaint_frame), can(renderer, Renderer.amend_frame))
            except KathaError:
                self._able[run] = (False, False)
        return self._able[run]

    def price_of(self, what: Work, edits: Sequence[Edit] = (), number: int = 0) -> Price:
        """Return what one piece of work on the open board may cost. number: of the move that is tried.

        Raises:
            UsageError: no run is open, or an edit does not fit the board.
        """
        run, price = self._open_run(), self.price()
        if price.free or what == "moves":
            return price
        if what == "edit":
            judged = not all(isinstance(edit, (LockFrame, TalkFrame)) for edit in edits)
            return price.of(editing.count_drawn(run, edits), judged=judged)
        if what == "takes":
            return price.of(_TAKES, judged=False)
        panels = len(self.moves[number].panels) if what == "try" and 0 <= number < len(self.moves) else 1
        return price.of(panels * len(self._seeds(run)), judged=True)

    def forget_draft(self) -> None:
        """Forget the story that was read last: it is being drawn."""
        self._draft = None
        self._tick()

    def look_again(self) -> None:
        """Forget how the open run was shown: its title is another."""
        self._viewed = None
        self._tick()

    # What a person does.

    def open(self, name: str) -> None:
        """Open the run of that name in the desk's folder.

        Raises:
            UsageError: work is under way. InputFileError: there is no such run.
        """
        self._idle()
        path = RunLibrary(self.home).place(name)
        if path is None:
            raise InputFileError("There is no run of that name here.")
        self.run = path
        self._remember(())
        self._tick()

    def read(self, told: PastedStory) -> StoryDraft:
        """Read a story as a piece of work, told and stopped as any other, and return what was read. It stays on the
        page until it is drawn, or another is read.

        Raises:
            UsageError: the story cannot be read, a setting is wrong, it was stopped, or work is under way.
        """
        text_of(told)
        read: list[StoryDraft] = []
        refused: list[KathaError] = []

        def work(emit: Emit, ask: Reviewer) -> None:
            try:
                read.append(self.draft(told, emit=emit))
            except KathaError as error:
                refused.append(error)
                raise

        self.worker.start("Reading the story", work)
        self.worker.join()
        if read:
            return read[0]
        failed = self.worker.progress.failed
        raise refused[0] if refused and str(refused[0]) == failed else UsageError(failed or "Reading broke off.")

    def draft(self, told: PastedStory, settings: Settings | None = None, emit: Emit | None = None) -> StoryDraft:
        """Return what would be drawn of a story, and what it would cost; nothing is drawn, asked or written.

        settings: others than the desk's own. emit: hears how far it is.

        Raises:
            UsageError: the story cannot be read, or a setting is wrong.
        """
        base, known = settings or self.settings, self._draft
        if known is not None and known[0] == base and known[1].told == told:
            return known[1]

        def say(words: str) -> None:
            if emit is not None:
                emit(Event(stage="plan", kind="progress", message=words))

        def hear(event: Event) -> None:
            if event["kind"] == "progress":
                say(event["message"])

        record = story_of_text(text_of(told), self.name_of(told)[0])
        changes = self._changes(told)
        say(f"Reading {len(record.story_text.split()):,} words.")
        plan = plan_story(record, base, on_event=hear, **changes)
        say("Counting what is drawn and asked.")
        unfit = self._unfit(record, plan, base, changes)
        fits = chosen(base, "", unfit.proposed, "") if unfit is not None else {}
        needs = needs_of_run(record, base, seen=plan, **{**changes, **fits})
        made = StoryDraft(told=told, board=planned(record, plan, record.story_id), cost=_cost_of(needs), unfit=unfit)
        say("Read.")
        self._draft = (base, made)
        return made

    def _unfit(self, record: StoryRecord, plan: Plan, settings: Settings, changes: Mapping[str, Any]) -> Unfit | None:
        """Return why a story is not drawn with these settings, and who could judge it."""
        config = settings_for(settings, changes, choose=choose_countable)
        judge = unfit_judge(config)
        if judge is None:
            return None
        other = proposed(config)
        needs = needs_of_run(record, settings, seen=plan, **{**changes, **chosen(settings, "", other, "")})
        answers = [need.cost for need in needs.needs if need.kind == "answers"]
        known = [cost for cost in answers if cost is not None]
        said = f"{judge} reads the pictures of {reads_only(judge)} alone, and {config.renderer} draws these."
        return Unfit(said=said, proposed=other, dollars=sum(known) if len(known) == len(answers) else None)

    def draw(self, told: PastedStory, *, agreed: bool, review: bool = True, settings: Settings | None = None) -> None:
        """Keep the story as a text file, and draw and repair it beside it.

        review: stop before the repair and ask. settings: others than the desk's own.

        Raises:
            UsageError: the story cannot be read, it would be paid for and nobody has agreed, or work is under way.
        """
        self._idle()
        draft = self.draft(told, settings)
        if draft.unfit is not None:
            raise UsageError(draft.unfit.said, hint=f"Choose another judge, {draft.unfit.proposed} for one.")
        if not draft.cost.free and not agreed:
            raise UsageError("This story's pictures or answers are paid for.", hint="Agree to the price first.")
        name, folder = self.name_of(told)
        story = self.home / f"{name}.txt"
        self.home.mkdir(parents=True, exist_ok=True)
        kept = () if story.exists() else (story,)
        write_bytes_atomic(story, text_of(told).encode("utf-8"))
        changes = {**self._changes(told), "review": review}
        self._begin(f"Drawing {draft.board.title}", folder, story, settings or self.settings, changes, kept)

    def take_in(self, brought: Brought, *, agreed: bool) -> Cost:
        """Keep a board that is drawn already in the desk's folder, and begin to judge it and to propose a bridge, which
        the desk's renderer draws. What costs something is not begun until a person has `agreed`.

        Returns:
            What it costs at most.

        Raises:
            UsageError: the board or its story cannot be read, or work is under way. Nothing is kept then.
        """
        with self._taking:
            return self._take_in(brought, agreed)

    def _take_in(self, brought: Brought, agreed: bool) -> Cost:
        self._idle()
        title = brought.title.strip() or name_of_files([item.name for item in brought.files])
        name, folder = self._free(story_of_text("-", title).story_id, lambda place: False)
        place = self.home / f"{name}_board"
        drawer = {"bridge_renderer": self.settings.renderer, "bridge_renderer_options": self.settings.renderer_options}
        own = {} if self.settings.bridge_renderer is not None else drawer
        base = self.settings.model_copy(update={"size": None, "renderer_options": {}, **own})
        changes = {"renderer_options": {"pages": brought.pages.strip()}} if brought.pages.strip() else {}
        try:
            board = put_files(place, [(item.name, item.data) for item in brought.files], brought.order.strip() or None)
            told = PastedStory(title=brought.title, text=brought.text)
            story = story_of_text(text_of(told), name) if told.text.strip() else None
            taken = import_board(board, story, base, changes)
            cost = _cost_of(needs_of_run(taken.story, base, **taken.changes))
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise
        if cost.free or agreed:
            reviewed = {**taken.changes, "review": True}
            self._begin(f"Looking at {taken.story.title}", folder, taken.story, base, reviewed, (place,))
        else:
            shutil.rmtree(place)
        return cost

    def _begin(
        self,
        what: str,
        folder: Path,
        story: StoryRecord | Path,
        settings: Settings,
        changes: Mapping[str, Any],
        kept: Sequence[Path],
    ) -> None:
        """Open the folder of a new run, and draw and repair its story there.

        kept: what was put beside it; a run that is refused before it made anything takes it away again.
        """

        pending = f"{STORY} {folder.name}"

        def opening() -> None:
            self.run, self._draft, self.begun = folder, None, folder.name
            self._remember(())
            self.typed.move(STORY, pending)  # the form is free for another story

        def work(emit: Emit, ask: Reviewer) -> None:
            try:
                run_story(story, settings, out=folder, budget=self.budget, on_event=emit, reviewer=ask, **changes)
            except UsageError:
                if not folder.exists():
                    self.run = None
                    _take_away(kept)
                raise

        def whole(emit: Emit, ask: Reviewer) -> None:
            try:
                work(emit, ask)
            finally:
                if RunFolder(folder).plan.is_file():  # before that the form is all that there is of the story
                    self.typed.keep(pending, None)
                else:
                    self.typed.move(pending, STORY)

        self.worker.start(what, whole, opening)
        self._tick()

    def go_on(self, *, agreed: bool = False) -> None:
        """Go on with the open run where it was stopped, whoever began it.

        Raises:
            UsageError: no run is open, it would be paid for and nobody has agreed, or work is under way.
        """
        run = self._open_run()
        if not agreed and not self.price().free:
            raise UsageError("This run's pictures or answers are paid for.", hint="Agree to the price first.")

        def work(emit: Emit, ask: Reviewer) -> None:
            resume_run(run, on_event=emit, reviewer=ask, budget=self.budget)

        self.worker.start(f"Going on with {run.name}", work)

    def choose(self, choice: ReviewChoice) -> None:
        """Answer the review that waits.

        Raises:
            UsageError: nothing waits, or the choice cannot be followed.
        """
        self.worker.choose(choice)

    def keep_picture(self, data: bytes) -> str:
        """Keep a picture of a character in the open run and return its sha256; the board does not change.

        Raises:
            UsageError: no run is open. InputFileError: it is not a picture that can be used.
        """
        return editing.keep_picture(self._open_run(), data)

    def keep_own(self, data: bytes, how: PictureEdit) -> str:
        """Keep a picture of a person's own in the open run and return its sha256; the board does not change.

        Raises:
            UsageError: no run is open. InputFileError: it is not a picture that can be used.
        """
        return editing.keep_own(self._open_run(), data, how)

    def prepared(self, data: bytes, how: PictureEdit) -> bytes:
        """Return a picture of a person's own as a frame would show it; nothing is kept.

        Raises:
            UsageError, InputFileError: as for `keep_own`.
        """
        return editing.prepared_own(self._open_run(), data, how)

    def found(self, words: str) -> tuple[int, ...]:
        """Return the numbers of the frames that say all of these words.

        Raises:
            UsageError: no run is open.
        """
        return editing.find_frames(self._open_run(), words)

    def keep_drawing(self, svg: str, frame: int) -> str:
        """Keep a drawing for a frame in the open run and return its picture's sha256; the board does not change.

        Raises:
            UsageError: no run is open, or there is no such frame. InputFileError: it is not a drawing that can be used.
        """
        return editing.keep_drawing(self._open_run(), svg.encode("utf-8"), frame)

    # What a person changes on a finished board. Each is one version of it.

    def edit(self, edits: Sequence[Edit], base: str, *, agreed: bool = False) -> None:
        """Begin to do edits as one step on the version `base` of the board; what they change is drawn and judged.

        Raises:
            StaleError: the board is another by now. UsageError: it would be paid for and nobody has agreed.
        """
        run = self._ready(base, agreed, lambda: self.price_of("edit", edits))

        def work(emit: Emit, ask: Reviewer) -> None:
            done = editing.edit_board(run, edits, base=base, on_event=emit, plugins=self._plugins_of(run))
            write_report(run)
            self._remember(tuple(said for said in done.remarks if said not in done.reread))
            board = editing.read_board(run).board
            self.said, self.details = said_of(edits, done.drawn), tuple(in_frames(line, board) for line in done.reread)

        self.worker.start("Changing the board", work)

    def copy_in(self, other: Path, frames: Sequence[int], *, agreed: bool = False) -> Price | None:
        """Begin to put copies of the frames of another board at the end of this one, as one step; the price, where
        it is paid for and nobody has agreed.

        Raises:
            UsageError: there is no such frame, or work is under way.
        """
        run = self._open_run()
        self._idle()
        end = len(editing.read_board(run).board.frames)
        edits = [
            edit for at, frame in enumerate(frames, end + 1) for edit in editing.copied_from(run, other, frame, at)
        ]
        price = self.price_of("edit", edits)
        if not (agreed or price.free):
            return price
        self.edit(edits, editing.version_of(run), agreed=agreed)
        return None

    def draw_takes(self, frame: int, prompt: str | None, base: str, *, agreed: bool = False) -> None:
        """Begin to draw three takes of a frame; the board stays as it is until one is chosen.

        Raises:
            StaleError, UsageError: as for `edit`.
        """
        run = self._ready(base, agreed, lambda: self.price_of("takes"))

        def work(emit: Emit, ask: Reviewer) -> None:
            self.takes = editing.draw_takes(
                run, frame, count=_TAKES, prompt=prompt, on_event=emit, plugins=self._plugins_of(run)
            )

        self.takes, self.proposals = (), ()
        self.worker.start(f"Drawing takes of frame {frame}", work)

    def propose(self, pair: tuple[int, int] | None, prompt: str | None, base: str, *, agreed: bool = False) -> None:
        """Begin to draw and measure bridges for a cut (None: the weakest without one); the board stays as it is.

        Raises:
            StaleError, UsageError: as for `edit`.
        """
        run = self._ready(base, agreed, lambda: self.price_of("bridge"))

        def work(emit: Emit, ask: Reviewer) -> None:
            self.proposals = editing.propose_bridge(
                run, pair, prompt=prompt, on_event=emit, plugins=self._plugins_of(run)
            )

        self.takes, self.proposals = (), ()
        where = f"between scenes {pair[0]} and {pair[1]}" if pair is not None else "for the weakest cut"
        self.worker.start(in_frames(f"Drawing bridges {where}", editing.read_board(run).board), work)

    def ask_moves(self, base: str, *, agreed: bool = False) -> None:
        """Begin to have moves proposed for the weakest cut, from what viewers could not tell; nothing is drawn.

        Raises:
            StaleError, UsageError: as for `edit`.
        """
        run = self._ready(base, agreed, lambda: self.price_of("moves"))

        def work(emit: Emit, ask: Reviewer) -> None:
            self.moves = editing.propose_moves(run, on_event=emit, plugins=self._plugins_of(run))

        self.takes, self.proposals, self.moves = (), (), ()
        self.worker.start("Asking what could be drawn", work)

    def try_move(self, number: int, base: str, *, agreed: bool = False) -> None:
        """Begin to draw and measure one of the moves that were proposed, from 0; the board stays as it is.

        Raises:
            StaleError, UsageError: as for `edit`; or there is no such move.
        """
        run, moves = self._ready(base, agreed, lambda: self.price_of("try", number=number)), self.moves
        if not 0 <= number < len(moves):
            raise UsageError("That move is not proposed any more.", hint="Ask again what could be drawn.")

        def work(emit: Emit, ask: Reviewer) -> None:
            self.proposals = editing.try_move(run, moves[number], on_event=emit, plugins=self._plugins_of(run))

        self.takes, self.proposals = (), ()
        self.worker.start("Drawing what was proposed", work)

    def _seeds(self, run: Path) -> tuple[int, ...]:
        """Return the seeds that a move of the run is drawn with."""
        state = RunFolder(run).read()
        return read_settings(Settings, state.config).seeds if state is not None else self.settings.seeds

    def go(self, where: Literal["back", "forth"] | None, version: str | None, base: str) -> None:
        """Begin to go back or forth by one version, or to a version by its name.

        Raises:
            StaleError, UsageError: as for `edit`.
        """
        run = self._ready(base, True, self.price)

        def work(emit: Emit, ask: Reviewer) -> None:
            if version is not None:
                done = versions.go_to(run, version)
            else:
                done = versions.undo(run) if where == "back" else versions.forward(run)
            write_report(run)
            self._remember(done.remarks)

        self.worker.start("Going to another version", work)

    def versions(self) -> tuple[Version, ...]:
        """Return every version of the open board, in the order in which they were made."""
        return versions.list_versions(self._open_run())

    def _ready(self, base: str, agreed: bool, price: Callable[[], Price]) -> Path:
        run = self._open_run()
        self._idle()
        if editing.version_of(run) != base:
            raise StaleError(
                "The board was changed in the meantime, in another tab or by another katha.",
                hint="Here it is as it is now; what you typed is still in its fields: look, and save again.",
            )
        if not agreed and not price().free:
            raise UsageError("This run's pictures or answers are paid for.", hint="Agree to the price first.")
        self.remarks, self.said, self.details = (), "", ()
        return run

    def _plugins_of(self, run: Path) -> Plugins:
        """The plug-ins of a run, made once: a second change does not wait for a model to be read again."""
        with self.shelf.lock:
            known = self.shelf.known
            if known is None or known[0] != run:
                state = RunFolder(run).read()
                config = {} if state is None else state.config
                refuse_code(config, f"The run in {str(run)!r}", received=True)
                known = self.shelf.known = (run, load_plugins(read_settings(Settings, config), self.budget))
            return known[1]

    def prepare(self) -> None:
        """Begin to make the open run's plug-ins beside the page, and have a renderer that reads prompts read one, so
        that the first change waits for neither. Nothing is drawn, asked or paid for; a finished run is prepared once.
        """
        run = self.run
        if run is None or run == self._prepared or self.worker.progress.running or not RunFolder(run).whole():
            return
        self._prepared = run
        threading.Thread(target=self._prepare, args=(run,), name="desk-prepare").start()

    def _prepare(self, run: Path) -> None:
        with suppress(Exception):  # what is wrong here is told by the change that needs it
            renderer = self._plugins_of(run).renderer
            if can(renderer, Renderer.not_drawn):
                stands = editing.read_board(run)
                first = frame_request(stands.plan, stands.board.frames[0], renderer.capabilities.default_size)
                renderer.not_drawn(first)

    def _remember(self, remarks: tuple[str, ...]) -> None:
        run = self.run
        board = editing.read_board(run).board if remarks and run is not None else None
        self.takes, self.proposals, self.moves = (), (), ()
        self.said, self.details = "", ()
        self.remarks = remarks if board is None else tuple(in_frames(said, board) for said in remarks)

    def _open_run(self) -> Path:
        run = self.run
        if run is None:
            raise UsageError("No run is open.", hint="Open one, or begin a story.")
        return run

    def _idle(self) -> None:
        if self.worker.progress.running:
            raise UsageError(f"{self.worker.progress.name} is under way.", hint="Wait for it, or stop it.")

    def _changes(self, told: PastedStory) -> dict[str, Any]:
        changes = {"panels": told.panels, "style": told.style.strip() and told.style}
        picked = chosen(self.settings, told.renderer, told.judge, told.size)
        return {**picked, **{name: value for name, value in changes.items() if value}}

    def name_of(self, told: PastedStory) -> tuple[str, Path]:
        """A name that is free in the desk's folder, or that of the same story, and the folder of its run."""
        text = text_of(told)
        same = text.encode("utf-8")
        return self._free(
            story_of_text(text, told.title.strip() or None).story_id,
            lambda file: file.is_file() and file.read_bytes() == same,
        )

    def _free(self, stem: str, known: Callable[[Path], bool]) -> tuple[str, Path]:
        """A name that begins with `stem` and is free, and the folder of its run; `known`: a text file is its own."""
        for number in range(1, _SAME_NAME):
            name = stem if number == 1 else f"{stem}_{number}"
            file, folder, board = self.home / f"{name}.txt", self.home / name, self.home / f"{name}_board"
            if not folder.exists() and not board.exists() and (not file.exists() or known(file)):
                return name, folder
        raise UsageError("There are a thousand stories of that name here.", hint="Give it another title.")


def _take_away(places: Sequence[Path]) -> None:
    for place in places:
        if place.is_dir():
            shutil.rmtree(place, ignore_errors=True)
        else:
            place.unlink(missing_ok=True)


def _offered(move: Move, price: Price, seeds: int, board: Board) -> Offered:
    each = 0.0 if price.free else price.picture
    return Offered(
        kind=in_frames(told_kind(move), board),
        reason=in_frames(move.reason, board),
        prompts=tuple(panel.prompt for panel in move.panels),
        dollars=None if each is None else each * len(move.panels) * seeds,
    )


def _price_of(files: RunFolder) -> Price:
    """Return what a run's own settings make a picture cost; a price that cannot be found out is not called free."""
    try:
        state = files.read()
        if state is None or not files.story.is_file():
            return _UNKNOWN
        refuse_code(state.config, f"The run in {str(files.path)!r}", received=True)
        config = read_settings(Settings, state.config)
        renderer = make_renderer(config)
        if renderer.capabilities.source == "found":
            renderer = make_bridge(config) or renderer
        needs = needs_of_run(files.load_story(), config)
        judging = any(need.calls and need.cost != 0.0 for need in needs.needs if need.kind in ("answers", "verdicts"))
        return Price(free=needs.cost == 0.0, picture=renderer.frame_price, whole=needs.cost, judging=judging)
    except KathaError:
        return _UNKNOWN


def _cost_of(needs: Needs) -> Cost:
    """The needs of a story as the page shows them, before anything is paid."""
    calls = {kind: sum(need.calls for need in needs.needs if need.kind == kind) for kind in ("pictures", "answers")}
    lines = []
    for need in needs.needs:
        price = (
            "by hand"
            if _by_hand(need.name)
            else "free"
            if need.cost == 0.0
            else "price unknown"
            if need.cost is None
            else f"about ${need.cost:.2f}"
        )
        lines.append(
            f"{need.kind} by {need.name}: at most {need.calls:,}, {price}" + (f" ({need.note})" if need.note else "")
        )
    by_hand = any(need.calls and _by_hand(need.name) for need in needs.needs)
    return Cost(dollars=needs.cost, lines=tuple(lines), by_hand=by_hand, **calls)


def _by_hand(name: str) -> bool:
    """Return whether a plug-in's replies are carried by a person, by its name: `vector:paste`."""
    return name.partition(":")[2].partition(":")[0] in load_config("vector.yaml")["by_hand"]


def text_of(told: PastedStory) -> str:
    """Return the story as its text file holds it, the title first.

    Raises:
        UsageError: there are no words.
    """
    text, title = told.text.replace("\r\n", "\n").strip(), " ".join(told.title.split())
    if not text:
        raise UsageError("The story is empty.", hint="Paste a story of a few sentences.")
    return f"{title}\n\n{text}\n" if title else f"{text}\n"
