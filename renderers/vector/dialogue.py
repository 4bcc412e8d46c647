"""The conversation in which a model draws a board: the cast, frames as branches from it, looks, and the whole sheet.

Nothing is kept here: a turn is asked for again with the same bytes, and a call that was made before is found by them
(`katha.models.recordings`). So a bridge or a redraw of another day goes on from the same cast.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from io import BytesIO
from typing import Any

from katha.composing.words import within
from katha.configs import load_config, load_prompt
from katha.errors import RefusedFrameError, RenderError, TransientRenderError
from katha.lettering import WordScanner
from katha.models.base import Completion, TextModel, Turn
from katha.pictures import as_png, decode, is_blank
from katha.protocols import FrameRequest
from katha.renderers.vector.brief import Brief, groups_of
from katha.renderers.vector.checks import Gap, cast_faults, filled, frame_faults
from katha.renderers.vector.faces import Doubt
from katha.renderers.vector.patches import Patched, apply_patches, find_svg, put_together, split_frames
from katha.renderers.vector.raster import SECONDS_PASSED, rasterise
from katha.renderers.vector.svg import Drawing, DrawingFault, read_svg, self_contained
from katha.renderers.vector.views import GROUND, TALL, WIDE, asked_views, view_id, view_parts
from katha.schema import Character

_CAST_SIDE = (1600, 1240)
_PICTURED = re.compile(r"\bonly in\b", re.IGNORECASE)
"""In the state of whoever is in a frame as a picture: "only in the photograph"."""
_COLUMNS = 3
_LOOKS = {
    "cast": "are people told apart by outline and colour, do the moods of each head differ, is anything broken, "
    "detached, missing, or out of scale?",
    "frame": "is everything that must be seen there, large, uncovered and plainly what it is? Do hands reach what they "
    "hold, do feet stand, do eyes look where they should? Is it clear who does what?",
}


@dataclass
class ConversationCost:
    """What a conversation has cost: calls, tokens by kind, dollars (None where a price is unknown), who answered; paid:
    dollars of the calls that were made now, not found again."""

    calls: int = 0
    tokens: Counter[str] = field(default_factory=Counter)
    cost: float | None = 0.0
    model: str = ""
    paid: float | None = 0.0

    def add(self, usage: Mapping[str, Any]) -> None:
        """Count one call."""
        self.calls += 1
        self.tokens.update({name: int(count) for name, count in dict(usage.get("tokens", {})).items()})
        cost = usage.get("cost")
        self.cost = _sum(self.cost, cost)
        self.paid = _sum(self.paid, 0.0 if usage.get("replayed") else cost)
        self.model = str(usage.get("model") or self.model)

    def __add__(self, other: ConversationCost) -> ConversationCost:
        return ConversationCost(
            self.calls + other.calls,
            self.tokens + other.tokens,
            _sum(self.cost, other.cost),
            self.model or other.model,
            _sum(self.paid, other.paid),
        )


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + float(other)


@dataclass(frozen=True)
class CheckedDrawing:
    """A drawing that passed: its own code, read; what a program still finds wrong, doubts included; what it cost."""

    source: str
    drawing: Drawing
    faults: tuple[str, ...] = ()
    spent: ConversationCost = field(default_factory=ConversationCost, compare=False)
    mended: int = 0
    """How often the checks sent it back."""
    notes: tuple[str, ...] = ()
    """What the program made right by itself."""

    @property
    def certain(self) -> tuple[str, ...]:
        """The faults for which a drawing is sent back."""
        return tuple(fault for fault in self.faults if not isinstance(fault, Doubt))


Check = Callable[[str], CheckedDrawing]
"""Reads a source and finds its faults; raises `DrawingFault` for one that cannot be drawn."""


class Dialogue:
    """One plan drawn by one model."""

    def __init__(
        self,
        model: TextModel,
        brief: Brief,
        who: str,
        *,
        rounds: int,
        eyes: bool,
        sparing: bool = False,
        letters: WordScanner | None = None,
        shares: int = 1,
    ) -> None:
        """who: the model's name in messages. rounds: looks at most. eyes: whether the model is shown pictures. sparing:
        a drawing that could not be read has used up a round, because a person carries every reply. letters: finds
        what can be read in a frame, where nothing may be. shares: in how many the cast is drawn, side by side."""
        self._model, self.brief, self._who, self._rounds, self._eyes = model, brief, who, rounds, eyes
        self._sparing, self._letters, self._shares = sparing, letters, shares

    def cast(self) -> CheckedDrawing:
        """Return the cast sheet.

        Raises:
            RenderError: the model drew none that can be used.
        """
        what, side = "The cast sheet", load_config("vector.yaml")["look_side"]
        show = partial(self._raster, size=_side(_CAST_SIDE, side))
        asked = [[Turn("user", text)] for text in self.brief.shares(self._shares)]
        if len(asked) == 1:
            return self._settle(asked[0], self._cast_check, show, "cast", what)
        with ThreadPoolExecutor(len(asked)) as pool:
            shares = list(pool.map(lambda turns: self._readable(turns, self._share_check, what), asked))
        spent = sum((share.spent for share in shares), ConversationCost())
        whole = replace(
            self._cast_check(put_together([(share.source, share.drawing.view) for share in shares])),
            spent=spent,
            mended=sum(share.mended for share in shares),
        )
        width, height = map(round, whole.drawing.view[2:])
        show = partial(self._raster, size=_side((width, height), round(side * len(shares) ** 0.5)))
        return self._looked(self._cast_turns(whole), whole, self._cast_check, show, "cast", what)

    def frame(
        self,
        cast: CheckedDrawing,
        request: FrameRequest,
        variation: str = "",
        *,
        earlier: Sequence[Turn] = (),
        before: str = "",
        after: str = "",
        heard: Callable[[FrameRequest, bytes], None] | None = None,
    ) -> CheckedDrawing:
        """Return one frame. earlier: turns about frames before it. before, after: the neighbours of an added one.
        heard: is given each picture that the model looks at.

        Raises:
            RenderError: the model drew none that can be used.
        """
        asked = Turn("user", self.brief.asks(request, variation, before, after) + self.brief.relooked(request))
        show = self._shower(cast)

        def shown(drawn: CheckedDrawing) -> bytes:
            png = show(drawn)
            if heard is not None:
                heard(request, png)
            return png

        what = f"Frame {request.scene}" if request.scene is not None else f"The {request.kind} frame"
        turns = [*self._cast_turns(cast), *earlier, asked]
        return self._settle(turns, partial(self._frame_check, cast, request), shown, "frame", what)

    def amend(
        self, cast: CheckedDrawing, request: FrameRequest, source: str, words: str, part: str = ""
    ) -> CheckedDrawing:
        """Return a finished frame with the change that a person asks for. source: its own code. part: the id of the
        group that the words are about.

        Raises:
            RenderError: the model gave no change that can be used.
        """
        check, spent = partial(self._frame_check, cast, request), ConversationCost()
        what = f"The change of frame {request.scene}" if request.scene is not None else "The change"
        text = load_prompt("renderers/vector/change").render(source=source, words=words, part=part)
        turns = [*self._cast_turns(cast), Turn("user", text)]
        reply = self._ask(turns, spent, what)
        whole = find_svg(reply)
        after = whole if whole is not None else apply_patches(source, reply).source
        try:
            if after == source:
                raise DrawingFault("it names no lines that are in the drawing.")
            best = check(after)
        except DrawingFault as fault:
            raise RenderError(
                f"{self._who} gave no change that can be used: {fault}", hint="Say it in other words."
            ) from None
        turns = [*turns, Turn("assistant", reply)]
        return self._looked(turns, replace(best, spent=spent), check, self._shower(cast), "frame", what)

    def views(self, cast: CheckedDrawing, character: Character, views: Mapping[str, str]) -> CheckedDrawing:
        """Return one of the cast from several sides, in one drawing. views: how each side is said, by its name.

        Raises:
            RenderError: the model drew none that can be used.
        """
        text = load_prompt("renderers/vector/views").render(
            name=character.name,
            looks=character.appearance or character.kind,
            prefix=self.brief.prefixes[character.name],
            views=asked_views(views),
            part=WIDE,
            width=WIDE * len(views),
            height=TALL,
            ground=GROUND,
        )

        def check(source: str) -> CheckedDrawing:
            drawing = read_svg(source, most_bytes=self.brief.limits["frame_bytes"] * 2)
            for name, svg in view_parts(drawing, cast.drawing, list(views)).items():
                if is_blank(decode(rasterise(svg, 64, 128), "It")):
                    raise DrawingFault(f"Nothing is seen of the group {view_id(name)} in its part of the drawing.")
            return CheckedDrawing(source, drawing)

        what = f"The views of {character.name}"
        return self._readable([*self._cast_turns(cast), Turn("user", text)], check, what)

    def _shower(self, cast: CheckedDrawing) -> Callable[[CheckedDrawing], bytes]:
        """Return what makes the picture of a frame that the model looks at."""
        size = _side(self.brief.canvas, load_config("vector.yaml")["look_side"])
        return lambda drawn: rasterise(self_contained(drawn.drawing, cast.drawing), *size, seconds=SECONDS_PASSED)

    def packed(
        self, cast: CheckedDrawing, requests: Sequence[FrameRequest], variation: str = ""
    ) -> list[CheckedDrawing]:
        """Return frames, several in one reply; those that are missing or faulty are asked for again, so often at most
        as there are rounds, and what can be drawn is taken.

        Raises:
            RenderError: a frame cannot be drawn.
        """
        most = int(load_config("vector.yaml")["packed_frames"])
        parts = [requests[start : start + most] for start in range(0, len(requests), most)]
        return [drawn for part in parts for drawn in self._pack(cast, part, variation)]

    def _pack(self, cast: CheckedDrawing, requests: Sequence[FrameRequest], variation: str) -> list[CheckedDrawing]:
        spent, mended = ConversationCost(), 0
        wanted = {request.scene or place: request for place, request in enumerate(requests, 1)}
        asks = [
            {"number": number, "asked": self.brief.asks(request, variation, alone=False)}
            for number, request in wanted.items()
        ]
        what = f"frames {', '.join(map(str, wanted))}"
        turns = [*self._cast_turns(cast), Turn("user", self._packed_turn(asks=asks))]
        best: dict[int, CheckedDrawing] = {}
        problems: dict[int, list[str]] = {}
        open_ones = list(wanted)
        for left in range(self._rounds + 1, 0, -1):
            reply = self._ask(turns, spent, what)
            given = split_frames(reply)
            if not given and len(open_ones) == 1:
                given = {open_ones[0]: reply}
            for number in open_ones:
                found, problems[number] = self._frame_of(cast, wanted[number], given.get(number))
                known = best.get(number)
                if found is not None and (known is None or len(found.certain) <= len(known.certain)):
                    best[number] = found
            open_ones = [number for number in open_ones if problems[number]]
            if not open_ones or left == 1:
                break
            mended += 1
            faults = [{"number": number, "faults": problems[number]} for number in open_ones]
            turns = [*turns, Turn("assistant", reply), Turn("user", self._packed_turn(faults=faults))]
        missing = [number for number in wanted if number not in best]
        if missing:
            raise RenderError(
                f"{self._who} drew no usable SVG for frame {missing[0]}: {problems[missing[0]][0]}",
                hint="Take its last reply away and give the same command again, or try another model.",
            )
        first = min(wanted)
        return [
            replace(
                best[number],
                spent=spent if number == first else ConversationCost(),
                mended=mended if number == first else 0,
            )
            for number in wanted
        ]

    def _packed_turn(
        self, asks: Sequence[Mapping[str, object]] = (), faults: Sequence[Mapping[str, object]] = ()
    ) -> str:
        width, height = self.brief.canvas
        return load_prompt("renderers/vector/packed").render(
            again=bool(faults), asks=list(asks), faults=list(faults), width=width, height=height
        )

    def _frame_of(
        self, cast: CheckedDrawing, request: FrameRequest, reply: str | None
    ) -> tuple[CheckedDrawing | None, list[str]]:
        """Return a frame out of a reply that has several, and what is wrong with it."""
        source = find_svg(reply) if reply is not None else None
        if source is None:
            return None, ["It is not in the reply, or its code has no end."]
        try:
            drawn = self._frame_check(cast, request, source)
        except DrawingFault as fault:
            return None, [str(fault)]
        return drawn, list(drawn.certain)

    def turns_of(self, request: FrameRequest, variation: str, drawn: CheckedDrawing) -> list[Turn]:
        """Return a finished frame as turns, for those that are drawn after it."""
        asked = self.brief.asks(request, variation) + self.brief.relooked(request)
        return [Turn("user", asked), Turn("assistant", _fenced(drawn.source))]

    def sheet(
        self, cast: CheckedDrawing, requests: Sequence[FrameRequest], frames: Sequence[CheckedDrawing]
    ) -> tuple[list[CheckedDrawing], ConversationCost]:
        """Let the model look at the whole board once; return the frames, patched where the patches hold."""
        spent = ConversationCost()
        if not self._eyes or len(frames) < 2:
            return list(frames), spent
        side = load_config("vector.yaml")["sheet_side"] // _COLUMNS
        size = _side(self.brief.canvas, side)
        shown = [rasterise(self_contained(one.drawing, cast.drawing), *size, seconds=SECONDS_PASSED) for one in frames]
        numbers = [request.scene or place for place, request in enumerate(requests, 1)]
        text = load_prompt("renderers/vector/sheet").render(
            numbers=numbers,
            sources=[{"number": at, "source": one.source} for at, one in zip(numbers, frames, strict=True)],
        )
        turns = [*self._cast_turns(cast), Turn("user", text, (contact_sheet(shown),))]
        try:
            reply = self._ask(turns, spent, "the sheet")
        except RenderError:  # the frames are there: the last look is worth no board
            return list(frames), spent
        mended = list(frames)
        for number, part in split_frames(reply).items():
            if number in numbers:
                at = numbers.index(number)
                after, lost = self._patched(mended[at], part, partial(self._frame_check, cast, requests[at]))
                mended[at] = _noted(after, lost)
        return mended, spent

    # One drawing: asked for, checked, looked at, patched.

    def _settle(
        self, turns: list[Turn], check: Check, show: Callable[[CheckedDrawing], bytes], kind: str, what: str
    ) -> CheckedDrawing:
        best = self._readable(turns, check, what)
        return self._looked([*turns, Turn("assistant", _fenced(best.source))], best, check, show, kind, what)

    def _readable(self, turns: list[Turn], check: Check, what: str) -> CheckedDrawing:
        """Have a drawing made that can be read; one that cannot goes back with the fault."""
        spent, best, mended = ConversationCost(), None, 0
        reply = self._ask(turns, spent, what)
        source = find_svg(reply) or reply
        for _ in range(self._rounds + 1):
            try:
                best = check(source)
                break
            except DrawingFault as fault:
                mended += 1
                turns = [*turns, Turn("assistant", _fenced(source)), Turn("user", self._look(what, [str(fault)], ""))]
                reply = self._ask(turns, spent, what)
                source = find_svg(reply) or apply_patches(source, reply).source
        if best is None:
            hint = "Give the same command again, or a larger model: `katha doctor` tries whether one can draw."
            raise RenderError(f"{self._who} drew no usable SVG for {what.lower()}.", hint=hint)
        return replace(best, spent=spent, mended=mended)

    def _looked(
        self,
        turns: list[Turn],
        best: CheckedDrawing,
        check: Check,
        show: Callable[[CheckedDrawing], bytes],
        kind: str,
        what: str,
    ) -> CheckedDrawing:
        """Have the model look at a drawing that its last turn gave, and patch it."""
        spent, mended = best.spent, best.mended
        lost: tuple[str, ...] = ()
        for number in range(self._rounds - (mended if self._sparing else 0)):
            faults = [*best.faults, *lost]
            pending = best.faults if self._eyes else best.certain  # who looks anyway hears the doubts, too
            if not (pending or lost) and (number or not self._eyes):
                break
            mended += bool(best.certain)
            image = (show(best),) if self._eyes else ()
            turns = [*turns, Turn("user", self._look(what, faults, _LOOKS[kind] if self._eyes else ""), image)]
            reply = self._ask(turns, spent, what)
            before = best.source
            best, lost = self._patched(best, reply, check)
            if best.source == before and not lost:
                break
            turns = [*turns, Turn("assistant", _fenced(best.source))]
        return replace(_noted(best, lost), spent=spent, mended=mended)

    def _look(self, what: str, faults: Sequence[str], question: str) -> str:
        return load_prompt("renderers/vector/look").render(
            seen=bool(question),
            what=what[0].lower() + what[1:],
            faults=list(faults),
            question=question,
            last_whole=False,
        )

    def _patched(self, drawn: CheckedDrawing, reply: str, check: Check) -> tuple[CheckedDrawing, tuple[str, ...]]:
        """Return the drawing with the patches that match, and why others were not taken; the old one where the new one
        is no better than broken."""
        whole = find_svg(reply)
        patched = Patched(whole) if whole is not None else apply_patches(drawn.source, reply)
        if patched.source == drawn.source:
            return drawn, patched.problems
        try:
            after = check(patched.source)
        except DrawingFault as fault:
            return drawn, (f"Nothing of that reply was taken: {fault}",)
        if len(after.faults) > len(drawn.faults):
            brought = next((fault for fault in after.faults if fault not in drawn.faults), after.faults[0])
            return _noted(drawn, [f"A look's patches were left out, as they bring a fault. {brought}"]), ()
        notes = tuple(dict.fromkeys((*drawn.notes, *after.notes)))
        return replace(after, spent=drawn.spent, mended=drawn.mended, notes=notes), patched.problems

    def _share_check(self, source: str) -> CheckedDrawing:
        return CheckedDrawing(source, read_svg(source, most_bytes=self.brief.limits["cast_bytes"] * 2))

    def _cast_check(self, source: str) -> CheckedDrawing:
        drawing = read_svg(source, most_bytes=self.brief.limits["cast_bytes"] * 2)
        faults = cast_faults(drawing, prefixes=self.brief.prefixes, moods=self.brief.moods, things=self.brief.things)
        return CheckedDrawing(source, drawing, tuple(faults), notes=drawing.mended)

    def _frame_check(self, cast: CheckedDrawing, request: FrameRequest, source: str) -> CheckedDrawing:
        drawing = read_svg(source, most_bytes=self.brief.limits["frame_bytes"] * 2)
        names = [one.name for one in request.characters]
        if request.scene is None:  # between two panels not everybody of both has to be
            names = [name for name in names if within(name).lower() in request.prompt.lower()]
        find = partial(
            frame_faults,
            cast=cast.drawing,
            size=self.brief.canvas,
            characters={name: prefix for name, prefix in self.brief.prefixes.items() if name in names},
            groups=[group.id for group in groups_of(request.must_show)],
            shot=request.shot_size,
            pictured={one.name for one in request.state if _PICTURED.search(one.state)},
        )
        faults, notes = find(drawing), list(drawing.mended)
        gap = next((fault for fault in faults if isinstance(fault, Gap)), None)
        if gap is not None:
            source = filled(source, drawing, cast.drawing)
            drawing = read_svg(source, most_bytes=self.brief.limits["frame_bytes"] * 2)
            faults = find(drawing)
            notes.append(f"{gap.partition(':')[0]}; it was closed with a ground in the colour of what is round it.")
        whole = self_contained(drawing, cast.drawing)
        rasterise(whole, *_side(self.brief.canvas, 320))
        if self._letters is not None:
            words = self._letters.words(
                rasterise(whole, *_side(self.brief.canvas, load_config("vector.yaml")["look_side"]))
            )
            faults += [f'Something can be read as "{word}": no letters and nothing like them.' for word in words]
        return CheckedDrawing(source, drawing, tuple(faults), notes=tuple(notes))

    def _cast_turns(self, cast: CheckedDrawing) -> list[Turn]:
        """Return the beginning of every branch: the same bytes, so that a vendor's prompt cache holds it."""
        return [Turn("user", self.brief.opening()), Turn("assistant", _fenced(cast.source))]

    def _raster(self, drawn: CheckedDrawing, size: tuple[int, int]) -> bytes:
        return rasterise(self_contained(drawn.drawing, None), *size, seconds=SECONDS_PASSED)

    def _ask(self, turns: Sequence[Turn], spent: ConversationCost, what: str) -> str:
        reply = self._model.complete(turns, None)
        spent.add(reply.usage)
        if reply.status == "ok":
            return reply.text
        raise _failure(reply, f"{self._who} did not draw {what[0].lower() + what[1:]}")


def _noted(drawn: CheckedDrawing, said: Sequence[str]) -> CheckedDrawing:
    """Return a drawing with more said of it in the record."""
    return replace(drawn, notes=(*drawn.notes, *said)) if said else drawn


def _failure(reply: Completion, said: str) -> RenderError:
    told = f"{said} ({reply.status}): {reply.error or 'no reason given'}."
    if reply.status == "refused":
        return RefusedFrameError(told, hint="Change what it is to show in the plan.")
    if reply.status == "truncated":
        return RenderError(told, hint="Raise --renderer-option max_tokens=N.")
    return TransientRenderError(told, hint="What is drawn is kept: give the same command again to go on.")


def _fenced(source: str) -> str:
    return f"```svg\n{source}\n```"


def _side(size: tuple[int, int], longest: int) -> tuple[int, int]:
    """Return `size` scaled so that its longer side is `longest` pixels."""
    scale = longest / max(size)
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def contact_sheet(pictures: Sequence[bytes]) -> bytes:
    """Return PNGs of one size as one PNG, three in a row, on white."""
    from PIL import Image

    frames = [Image.open(BytesIO(png)).convert("RGB") for png in pictures]
    width, height = frames[0].size
    rows = -(-len(frames) // _COLUMNS)
    sheet = Image.new("RGB", (width * min(len(frames), _COLUMNS) + 8 * (_COLUMNS - 1), (height + 8) * rows), "white")
    for place, frame in enumerate(frames):
        sheet.paste(frame, (place % _COLUMNS * (width + 8), place // _COLUMNS * (height + 8)))
    return as_png(sheet)
