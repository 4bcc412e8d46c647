"""The entrance test: whether a language model can draw, how much may be asked of it, and whether it sees.

One reply with a small cast and one frame is checked as every drawing is; what fails is sent back once. A model whose
pictures are kept is then shown its own heads and hand and says what it sees.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from katha.configs import load_prompt
from katha.models.base import Completion, TextModel, Turn
from katha.pictures import decode
from katha.renderers.vector.checks import cast_faults, frame_faults
from katha.renderers.vector.dialogue import ConversationCost
from katha.renderers.vector.faces import Doubt
from katha.renderers.vector.patches import find_drawings
from katha.renderers.vector.raster import rasterise
from katha.renderers.vector.svg import Drawing, DrawingFault, read_svg, self_contained

Contract = Literal["full", "small"]

_MOST_BYTES = 40_000
_MOODS = {"ma": ("calm", "glad")}
_GROUPS = ("the-glad-face", "the-hand-on-the-cup")
_SIZE = (1280, 720)
_PARTS = ("hd-hold", "cu-cup")
_NEAR = 12
"""Units of the frame that a hand may be from what it holds."""
_SHOWN = (896, 300)


@dataclass(frozen=True)
class DrawingTest:
    """What a model showed. contract: what may be asked of it; None where it cannot draw. sees: whether it read its own
    picture rightly; None where it was shown none. faults: what was wrong with its last drawing."""

    contract: Contract | None
    sees: bool | None = None
    faults: tuple[str, ...] = ()
    spent: ConversationCost = field(default_factory=ConversationCost, compare=False)

    def __str__(self) -> str:
        if self.contract is None:
            return f"cannot draw: {self.faults[0] if self.faults else 'it gave no drawing.'}"
        able = "draws boards" if self.contract == "full" else "draws simple boards (contract=small)"
        sight = {True: "sees what it drew", False: "does not see what it drew (eyes=false)", None: ""}[self.sees]
        return ", ".join(part for part in (able, sight) if part)


def enter(model: TextModel, *, eyes: bool = True) -> DrawingTest:
    """Return what a model can be asked for. eyes: also show it what it drew. Two to three calls, about 4,000 tokens."""
    spent = ConversationCost()
    turns = [Turn("user", load_prompt("renderers/vector/entrance").render(again=False, shown=False))]
    contract: Contract = "full"
    for last in (False, True):
        reply = model.complete(turns, None)
        spent.add(reply.usage)
        if reply.status != "ok":
            return DrawingTest(None, faults=(_failed(reply),), spent=spent)
        pair, faults = _drawn(reply.text)
        if not faults and pair is not None:
            return DrawingTest(contract, _sees(model, pair[0], spent) if eyes else None, spent=spent)
        if last:
            break
        contract = "small"
        again = load_prompt("renderers/vector/entrance").render(again=True, shown=False, faults=faults)
        turns = [*turns, Turn("assistant", reply.text), Turn("user", again)]
    return DrawingTest(None, faults=tuple(faults), spent=spent)


def _failed(reply: Completion) -> str:
    return f"no answer ({reply.status}): {reply.error or 'no reason given'}."


def _drawn(text: str) -> tuple[tuple[Drawing, Drawing] | None, list[str]]:
    """Return the cast and the frame of a reply, and what is wrong with them."""
    found = find_drawings(text)
    if len(found) != 2:
        return None, [f"The reply has {len(found)} drawings in ```svg blocks, not two: the cast sheet and the frame."]
    try:
        cast, frame = (read_svg(source, most_bytes=_MOST_BYTES) for source in found)
        faults = cast_faults(cast, prefixes={"the man": "ma"}, moods=_MOODS)
        faults += [f'Nothing in the cast has id="{name}".' for name in _PARTS if name not in cast.ids]
        if not faults:
            found = frame_faults(frame, cast, size=_SIZE, characters={"the man": "ma"}, groups=_GROUPS)
            faults = [fault for fault in found if not isinstance(fault, Doubt)]
        if not faults:
            faults = list(_held(cast, frame))
    except DrawingFault as fault:
        return None, [str(fault)]
    return (cast, frame), faults


def _held(cast: Drawing, frame: Drawing) -> list[str]:
    """Return whether the frame uses the hand, the cup and the glad head, and whether the hand is at the cup."""
    source = self_contained(frame, cast)
    used = {name for name in ("ma-head-glad", *_PARTS) if f'href="#{name}"' in source}
    missing = [name for name in ("ma-head-glad", *_PARTS) if name not in used]
    if missing:
        return [f'The frame does not use the part "{missing[0]}" of the cast.']
    full = _pixels(source)
    masks = [np.abs(full - _pixels(_without(source, name))).max(axis=2) > 10 for name in _PARTS]
    boxes = [_box(mask) for mask in masks]
    if any(box is None for box in boxes):
        return ["The hand or the cup is hidden: nothing covers them."]
    (left, top, right, bottom), (its_left, its_top, its_right, its_bottom) = (box for box in boxes if box is not None)
    apart = max(left - its_right, its_left - right, top - its_bottom, its_top - bottom)
    return [f"The hand is {apart} units away from the cup that it holds."] if apart > _NEAR else []


def _without(source: str, name: str) -> str:
    """Return a drawing in which nothing is placed of a part."""
    return re.sub(rf'<use\b[^>]*href="#{name}"[^>]*/>', "", source)


def _pixels(source: str) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    return np.asarray(decode(rasterise(source, *_SIZE)).convert("RGB"), dtype=np.int16)


def _box(mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> tuple[int, int, int, int] | None:
    rows, columns = np.flatnonzero(mask.any(axis=1)), np.flatnonzero(mask.any(axis=0))
    if not rows.size:
        return None
    return int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1])


def _sees(model: TextModel, cast: Drawing, spent: ConversationCost) -> bool:
    """Return whether a model that is shown its heads and hand says which head is glad and what the hand holds."""
    uses = (
        ("ma-head-calm", "translate(260 260) scale(1.6)"),
        ("ma-head-glad", "translate(620 260) scale(1.6)"),
        ("cu-cup", "translate(1050 220) scale(2)"),
        ("hd-hold", "translate(980 200) scale(2)"),
    )
    body = "".join(f'<use href="#{name}" transform="{place}"/>' for name, place in uses)
    picture = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1280 430"><rect width="1280" height="430" fill="#eee"/>'
        f'<g color="#c98">{body}</g></svg>'
    )
    shown = rasterise(self_contained(read_svg(picture, most_bytes=_MOST_BYTES), cast), *_SHOWN)
    asked = load_prompt("renderers/vector/entrance").render(again=False, shown=True)
    reply = model.complete([Turn("user", asked, (shown,))], None)
    spent.add(reply.usage)
    said = reply.text.lower() if reply.status == "ok" else ""
    return "right" in said and "left" not in said.split("right")[0] and re.search(r"cup|mug", said) is not None
