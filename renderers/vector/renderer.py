"""`vector:MODEL`: a language model draws the board as SVG, from one cast, and resvg makes pictures of it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from katha.configs import config_text, load_config, load_prompt
from katha.errors import InputFileError, RenderError, UsageError
from katha.jsonio import digest, sha256_hex
from katha.lettering import WordScanner
from katha.models.base import TextModel, Turn
from katha.models.checkpoints import HoldsModel
from katha.models.client import ChatClient, TalksInBatches
from katha.models.registry import make_model
from katha.protocols import BoardContext, Capabilities, FrameRequest, Renderer
from katha.renderers.vector.brief import Brief
from katha.renderers.vector.dialogue import CheckedDrawing, ConversationCost, Dialogue
from katha.renderers.vector.entrance import DrawingTest, enter
from katha.renderers.vector.figures import figure
from katha.renderers.vector.options import VectorOptions
from katha.renderers.vector.raster import SECONDS_PASSED, rasterise
from katha.renderers.vector.svg import DrawingFault, own_part, read_svg, self_contained
from katha.renderers.vector.views import VIEW_PIXELS, view_parts
from katha.schema import Character, Panel, Plan

_PROMPTS = ("opening", "frame", "look", "sheet")
_VERSION = 1
# The first of katha's default seeds is the plain drawing; later ones vary it (`configs/vector.yaml`).
_FIRST_SEED = 42


class VectorRenderer(Renderer):
    """A language model draws a cast sheet once, then each frame as code that uses its parts.

    Its argument is `anthropic:MODEL`, `openai:MODEL`, `gemini:MODEL` or another language model (`katha doctor`). The
    cast stays the same by construction, a bridge is drawn from its neighbours' code, and every picture has its SVG
    beside it.
    """

    capabilities = Capabilities(
        identity="sources",
        insertion="neighbours",
        sizes=None,
        size_multiple=8,
        default_size=(1280, 720),
        deterministic=False,
        panel=True,
        sky=True,
    )

    options_class = VectorOptions
    metered = True

    def __init__(self, argument: str | None = None, *, options: VectorOptions | None = None) -> None:
        """Name the model; nothing is called yet.

        Raises:
            UsageError: no model is named, or its key is not set. InputFileError: the cast cannot be read.
        """
        asked = options or VectorOptions()
        if not argument:
            raise UsageError("The renderer 'vector' needs a model.", hint="For example vector:anthropic:MODEL.")
        by_hand = argument.partition(":")[0] in load_config("vector.yaml")["by_hand"]
        self.metered = not by_hand
        served = ":" in argument and argument.partition(":")[0] != "local" and not by_hand
        given: dict[str, Any] = {"base_url": asked.base_url, "timeout": asked.timeout} if served else {}
        if by_hand:
            given = {"timeout": asked.timeout}
        self._model: TextModel = make_model(argument, max_tokens=asked.max_tokens, **given)
        vendor = getattr(self._model, "vendor", None)
        # What one frame is expected to cost, its share of cast and looks included.
        self.frame_price = 0.0 if vendor is None else vendor.cost(load_config("vector.yaml")["tokens"])
        self.concurrency = max(1, asked.concurrency)
        self._name, self._draw = argument, asked.draw or ("packed" if by_hand else "together")
        self._rounds = 2 if asked.rounds is None else asked.rounds
        self._eyes = not by_hand if asked.eyes is None else asked.eyes
        self._sheet = asked.sheet
        self._seeing = asked.eyes
        self._letters = WordScanner("--renderer-option letters=true", shortest=2) if asked.letters else None
        self._shares = 1 if self._draw == "packed" else asked.shares or int(load_config("vector.yaml")["cast_shares"])
        self._contract = asked.contract or ("full" if served or by_hand else "tried")
        self._entered: DrawingTest | None = None
        self._given = _read_cast(asked.cast) if asked.cast is not None else None
        self._casts: dict[str, CheckedDrawing] = {}
        self._locks: dict[str, threading.Lock] = {}
        self._lock = threading.Lock()
        self._own = threading.local()
        self._remarks: list[str] = []

    def spec(self) -> Mapping[str, Any]:
        """Return the model, the prompts, the way of drawing and the cast that was given."""
        return {
            "name": "vector",
            "version": _VERSION,
            "model": dict(self._model.spec()),
            "prompts": {
                name: load_prompt(f"renderers/vector/{name}").sha256
                for name in (
                    *_PROMPTS,
                    *(["packed"] if self._draw == "packed" else []),
                    *(["shares"] if self._shares > 1 else []),
                    *(["entrance"] if self._contract == "tried" else []),
                )
            },
            "data": sha256_hex(config_text("vector.yaml").encode("utf-8")),
            "draw": self._draw,
            "looks": {"rounds": self._rounds, "eyes": self._eyes, "sheet": self._sheet},
            "contract": self._contract,
            **({"letters": True} if self._letters is not None else {}),
            **({"shares": self._shares} if self._shares > 1 else {}),
            "cast": sha256_hex(self._given.source.encode("utf-8")) if self._given is not None else None,
        }

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order, when the whole board has been looked at.

        Raises:
            RenderError: the model gave no drawing that can be used; what it gave is kept.
        """
        dialogue = self._dialogue(requests[0])
        cast = self._cast(dialogue)
        draw = {"in-order": self._in_turn, "packed": self._packed, "together": self._abreast}[self._draw]
        frames = draw(dialogue, cast, requests)
        shared = ConversationCost()
        if self._sheet:
            frames, shared = dialogue.sheet(cast, requests, frames)
        for place, (request, drawn) in enumerate(zip(requests, frames, strict=True)):
            spent = drawn.spent + shared + cast.spent if place == 0 else drawn.spent
            yield self._finished(cast, request, drawn, spent)

    def show_drafts(self, hear: Callable[[FrameRequest, bytes], None]) -> None:
        """Have `hear` called with each picture of a frame that the model looks at, while this thread draws a board."""
        self._own.hear = hear

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return one PNG, drawn from the code of the frames on both sides of its place."""
        dialogue = self._dialogue(request)
        cast = self._cast(dialogue) if context.cast is None else _known_cast(context.cast)
        sources = context.sources or (None,) * len(context.images)
        around = [sources[at] if 0 <= at < len(sources) else None for at in (context.position - 1, context.position)]
        before, after = ("" if source is None else own_part(source, cast.drawing) for source in around)
        drawn = dialogue.frame(cast, request, _variation(request.seed), before=before, after=after)
        return self._finished(cast, request, drawn, drawn.spent)

    def amend_frame(
        self, request: FrameRequest, source: bytes, cast: bytes | None, words: str, part: str = ""
    ) -> bytes:
        """Return one PNG: a finished frame with the change that a person asks for.

        source: its SVG. cast: the board's cast sheet. words: the change. part: the id of the group that they are about.

        Raises:
            RenderError: the model gave no change that can be used.
        """
        dialogue = self._dialogue(request)
        known = self._cast(dialogue) if cast is None else _known_cast(cast)
        drawn = dialogue.amend(known, request, own_part(source, known.drawing), words, part)
        return self._finished(known, request, drawn, drawn.spent)

    def source(self) -> bytes | None:
        """Return the SVG of this thread's last frame."""
        found: bytes | None = getattr(self._own, "source", None)
        return found

    def cast_source(self) -> bytes | None:
        """Return the cast sheet of this thread's last frame, as SVG."""
        found: bytes | None = getattr(self._own, "cast", None)
        return found

    def draw_cast(self, request: FrameRequest) -> bytes:
        """Return the cast sheet of a request's plan, as SVG; a board of the same plan and style is made of it.

        Raises:
            RenderError: the model gave no drawing that can be used.
        """
        cast = self._cast(self._dialogue(request))
        self._own.receipt = self._spent(cast, cast.spent)
        self._remarks += [f"The cast sheet: {said}" for said in (*cast.certain, *cast.notes)]
        return cast.source.encode("utf-8")

    def draw_views(
        self, character: Character, request: FrameRequest, cast: bytes | None, views: Mapping[str, str]
    ) -> Mapping[str, tuple[bytes, bytes]]:
        """Return a character from several sides, drawn in one answer from the cast that the board is made of.

        Raises:
            RenderError: the model gave no drawing that can be used.
        """
        dialogue = self._dialogue(request)
        known = self._cast(dialogue) if cast is None else _known_cast(cast)
        drawn = dialogue.views(known, character, views)
        self._own.receipt = self._spent(drawn, drawn.spent)
        parts = view_parts(drawn.drawing, known.drawing, list(views))
        try:
            return {
                name: (rasterise(svg, *VIEW_PIXELS, seconds=SECONDS_PASSED), svg.encode())
                for name, svg in parts.items()
            }
        except DrawingFault as fault:
            raise RenderError(f"The views of {character.name} cannot be made into pictures: {fault}") from None

    def figures(self, cast: bytes, plan: Plan) -> Mapping[str, bytes]:
        """Return a picture of each of the plan's characters, put together from a cast sheet's parts, by name."""
        source = cast.decode("utf-8")
        sheet = read_svg(source, most_bytes=1_000_000, lenient=True)
        prefixes = Brief(plan, (1, 1), "").prefixes  # the same for every canvas and style
        drawn = {name: figure(source, sheet, prefix) for name, prefix in prefixes.items()}
        return {name: png for name, png in drawn.items() if png is not None}

    def receipt(self) -> Mapping[str, Any]:
        """Return about this thread's last frame: model, date (UTC), calls, tokens, dollars, faults that were left."""
        return dict(getattr(self._own, "receipt", {}))

    def remarks(self) -> Sequence[str]:
        """Return which faults the checks still found in finished frames, and what the program made right in them."""
        said, self._remarks = list(dict.fromkeys(self._remarks)), []
        return said

    def batched_client(self) -> ChatClient | None:
        """Return the client of the model, where its vendor answers whole files of requests; None where an entrance test
        comes first, which counts a call that waits as one that failed."""
        if self._contract == "tried" or not isinstance(self._model, TalksInBatches):
            return None
        return self._model.batched_client()

    def close(self) -> None:
        """Let go of a local model and its memory."""
        if isinstance(self._model, HoldsModel):
            self._model.close()

    def _dialogue(self, request: FrameRequest) -> Dialogue:
        plan = request.plan or _plan_of(request)
        longest = load_config("vector.yaml")["canvas"]
        scale = longest / max(request.width, request.height)
        canvas = (round(request.width * scale), round(request.height * scale))
        contract, eyes = self._agreed()
        brief = Brief(plan, canvas, _style(request.style), contract)
        return Dialogue(
            self._model,
            brief,
            f"vector:{self._name}",
            rounds=self._rounds,
            eyes=eyes,
            sparing=self._draw == "packed",
            letters=self._letters,
            shares=self._shares,
        )

    def _agreed(self) -> tuple[str, bool]:
        """Return what is asked of the model, and whether it is shown pictures.

        Raises:
            RenderError: the entrance test shows that it cannot draw.
        """
        if self._contract != "tried":
            return self._contract, self._eyes
        with self._lock:
            if self._entered is None:
                self._entered = enter(self._model, eyes=self._eyes)
        found = self._entered
        if found.contract is None:
            raise RenderError(
                f"vector:{self._name} {found}",
                hint="Take a larger model, or give --renderer-option contract=small to have it try all the same.",
            )
        return found.contract, self._eyes if self._seeing is not None else found.sees is not False and self._eyes

    def _cast(self, dialogue: Dialogue) -> CheckedDrawing:
        """Return the cast of a plan, drawn once however many threads ask for it."""
        if self._given is not None:
            return self._given
        key = digest(dialogue.brief.opening())
        with self._lock:
            lock = self._locks.setdefault(key, threading.Lock())
        with lock:
            if key not in self._casts:
                self._casts[key] = dialogue.cast()
            return self._casts[key]

    def _abreast(
        self, dialogue: Dialogue, cast: CheckedDrawing, requests: Sequence[FrameRequest]
    ) -> list[CheckedDrawing]:
        """Draw all frames as branches from the cast; those that succeed are kept where one fails."""
        hear, drafts = self._hearing(), SimpleQueue[tuple[FrameRequest, bytes] | None]()

        def heard(request: FrameRequest, png: bytes) -> None:
            drafts.put((request, png))

        def draw(request: FrameRequest) -> CheckedDrawing:
            try:
                return dialogue.frame(
                    cast, request, _variation(request.seed), heard=heard if hear is not None else None
                )
            finally:
                drafts.put(None)

        with ThreadPoolExecutor(min(self.concurrency, len(requests))) as pool:
            asked = [pool.submit(draw, one) for one in requests]
            try:
                left = len(asked)
                while left:
                    draft = drafts.get()
                    if draft is None:
                        left -= 1
                    elif hear is not None:
                        hear(*draft)
            except BaseException:  # who hears it has stopped the work: what is not begun is not begun
                for one in asked:
                    one.cancel()
                raise
        return [one.result() for one in asked]

    def _hearing(self) -> Callable[[FrameRequest, bytes], None] | None:
        return getattr(self._own, "hear", None)

    def _packed(
        self, dialogue: Dialogue, cast: CheckedDrawing, requests: Sequence[FrameRequest]
    ) -> list[CheckedDrawing]:
        return dialogue.packed(cast, requests, _variation(requests[0].seed))

    def _in_turn(
        self, dialogue: Dialogue, cast: CheckedDrawing, requests: Sequence[FrameRequest]
    ) -> list[CheckedDrawing]:
        earlier: list[Turn] = []
        frames = []
        for request in requests:
            variation = _variation(request.seed)
            frames.append(dialogue.frame(cast, request, variation, earlier=earlier, heard=self._hearing()))
            earlier += dialogue.turns_of(request, variation, frames[-1])
        return frames

    def _finished(
        self, cast: CheckedDrawing, request: FrameRequest, drawn: CheckedDrawing, spent: ConversationCost
    ) -> bytes:
        svg = self_contained(drawn.drawing, cast.drawing)
        self._own.source, self._own.cast = svg.encode("utf-8"), cast.source.encode("utf-8")
        self._own.receipt = self._spent(drawn, spent)
        what = f"Frame {request.scene}" if request.scene is not None else f"The {request.kind} frame"
        self._remarks += [f"{what}: {said}" for said in (*drawn.certain, *drawn.notes)]
        try:
            return rasterise(svg, request.width, request.height, seconds=SECONDS_PASSED)
        except DrawingFault as fault:
            raise RenderError(f"{what} cannot be made into a picture: {fault}") from None

    def _spent(self, drawn: CheckedDrawing, spent: ConversationCost) -> dict[str, Any]:
        return {
            "service": "vector",
            "model": self._name,
            "served": spent.model,
            "date": datetime.now(UTC).date().isoformat(),
            "calls": spent.calls,
            "tokens": dict(spent.tokens),
            "cost": spent.cost,
            "paid": spent.paid,
            "mended": drawn.mended,
            "faults": list(drawn.certain),
            **({"doubts": doubts} if (doubts := [one for one in drawn.faults if one not in drawn.certain]) else {}),
            **({"notes": list(drawn.notes)} if drawn.notes else {}),
        }


def _read_cast(path: Path) -> CheckedDrawing:
    try:
        text = path.expanduser().read_text(encoding="utf-8")
        return CheckedDrawing(text, read_svg(text, most_bytes=1_000_000, lenient=True))
    except OSError as error:
        raise InputFileError(f"The cast {str(path)!r} cannot be read: {error.strerror}.") from error
    except (DrawingFault, UnicodeDecodeError) as error:
        raise InputFileError(f"The cast {str(path)!r} is not a drawing that can be used: {error}") from error


def _known_cast(source: bytes) -> CheckedDrawing:
    """Return the cast of a board that is there already."""
    text = source.decode("utf-8")
    return CheckedDrawing(text, read_svg(text, most_bytes=1_000_000))


def _style(wished: str) -> str:
    """Return the phrase of a style; one that has no name here is a phrase itself."""
    config = load_config("vector.yaml")
    name = wished or config["default_style"]
    return str(config["styles"].get(name, name))


def _variation(seed: int) -> str:
    """Return what a seed asks for beside the plan; the first seed asks for nothing more, and no two for the same."""
    if seed == _FIRST_SEED:
        return ""
    told, place = load_config("vector.yaml")["variations"][1:], seed - _FIRST_SEED - 1
    return str(told[place % len(told)]) + ("" if 0 <= place < len(told) else f" (Composition {seed}.)")


def _plan_of(request: FrameRequest) -> Plan:
    """Return a plan of one frame, for a request that brings none."""
    panel = Panel(
        index=request.scene or 1,
        prompt=request.prompt,
        characters=[person.name for person in request.characters],
        must_show=list(request.must_show),
        place=request.place,
        time_of_day=request.time_of_day,
        light=request.light,
    )
    return Plan(
        story_id=request.story_id or "frame", planner="none", characters=list(request.characters), panels=[panel]
    )
