"""The camera's moves over a still picture: what of it is seen at a time of its shot, by the words of `camera_move`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from katha.app.exports.board import ExportBoard, ExportOptions
from katha.shots import listed_word, offered

_CLOSE = 1.18
"""How much closer than the whole picture a move is that needs room at the edges."""
_SWAY = (1.05, 0.55, 0.37)
"""Of a camera in the hand: how close it is, and the shakes a second to the side and up and down."""
_SAMPLES = 24
NEARER = 1.25
"""How much more what is nearest moves than the picture as a whole, where the camera itself goes."""
_LEAST = 0.3
"""How much of a move is left at least, whatever it cuts."""
Box = tuple[float, float, float, float]
"""Left, upper, right and lower edge, in shares of the picture."""


@dataclass(frozen=True)
class View:
    """What is seen of a picture. zoom: how many times larger it is than the film. across, down: where in the room that
    this leaves, from -1 (the left or upper edge) to 1."""

    zoom: float = 1.0
    across: float = 0.0
    down: float = 0.0

    def window(self) -> tuple[float, float]:
        """Return the left upper corner of what is seen, in shares of the picture."""
        room = (1 - 1 / self.zoom) / 2
        return room * (1 + self.across), room * (1 + self.down)


@dataclass(frozen=True)
class CameraMove:
    """A move from one view to another in the time of a shot, slow at both ends.

    deep: the camera itself goes, so that near things move more than far ones. sways: it is held in the hand.
    """

    start: View
    end: View
    deep: bool = False
    sways: bool = False

    @property
    def straight(self) -> bool:
        """Return whether it goes towards something, or away from it, and not to a side."""
        views = (self.start, self.end)
        return not self.sways and all(view.across == 0 == view.down for view in views)

    @property
    def closest(self) -> float:
        """Return the largest zoom on the way."""
        return max(self.start.zoom, self.end.zoom)

    def at(self, second: float, seconds: float) -> View:
        """Return what is seen at a time of a shot of so many seconds."""
        share = min(1.0, max(0.0, second / seconds))
        eased = share * share * (3 - 2 * share)
        one, two = self.start, self.end
        parts = ((one.zoom, two.zoom), (one.across, two.across), (one.down, two.down))
        zoom, across, down = (first + (last - first) * eased for first, last in parts)
        if self.sways:
            turns = (2 * math.pi * rate * second for rate in _SWAY[1:])
            across, down = (0.6 * math.sin(turn) + 0.3 * math.sin(2.3 * turn) for turn in turns)
        return View(zoom, across, down)

    def samples(self, seconds: float) -> list[tuple[float, float, float]]:
        """Return the way in equal steps of time: the zoom, and the corner of what is seen, in shares of the picture."""
        steps = max(_SAMPLES, round(10 * seconds)) if self.sways else _SAMPLES
        views = [self.at(step * seconds / steps, seconds) for step in range(steps + 1)]
        corners = [(view.zoom, view.window()) for view in views]
        return [(round(zoom, 4), round(left, 4), round(top, 4)) for zoom, (left, top) in corners]


def _side(across: float = 0.0, down: float = 0.0, *, deep: bool) -> CameraMove:
    """A move from the edge of the picture that is opposite to where it goes."""
    return CameraMove(View(_CLOSE, -across, -down), View(_CLOSE, across, down), deep)


WHOLE, NEAR = View(), View(_CLOSE)
HELD = CameraMove(WHOLE, WHOLE)
MOVES: Mapping[str, CameraMove] = MappingProxyType(
    {
        "static": HELD,
        "pan left": _side(across=-1, deep=False),
        "pan right": _side(across=1, deep=False),
        "tilt up": _side(down=-1, deep=False),
        "tilt down": _side(down=1, deep=False),
        "push in": CameraMove(WHOLE, NEAR, deep=True),
        "pull out": CameraMove(NEAR, WHOLE, deep=True),
        "track left": _side(across=-1, deep=True),
        "track right": _side(across=1, deep=True),
        "follow": _side(across=1, deep=True),
        "crane up": _side(down=-1, deep=True),
        "crane down": _side(down=1, deep=True),
        "zoom in": CameraMove(WHOLE, NEAR),
        "zoom out": CameraMove(NEAR, WHOLE),
        "handheld": CameraMove(View(_SWAY[0]), View(_SWAY[0]), sways=True),
    }
)
"""Every word that is offered for the camera's move, as films follow it. A still says nothing of where whoever is
followed goes: that is the way of reading."""


def aimed(move: CameraMove, focus: tuple[float, float], kept: Box | None) -> CameraMove:
    """Return a move over a picture of which something is known: one that comes closer does so to the `focus`, in shares
    of the picture; and each goes so far only that what is `kept` stays inside, or a third of its way where even that
    is too far."""
    more, (left, top, right, bottom) = NEARER if move.deep else 1.0, kept or (0.5, 0.5, 0.5, 0.5)
    if move.straight:
        room = 1 - max(right - left, bottom - top)
    else:  # at one end of its way all of the room that it leaves is cut at the other end
        moved = [any(getattr(view, axis) for view in (move.start, move.end)) for axis in ("across", "down")]
        edges = zip(((left, 1 - right), (top, 1 - bottom)), moved, strict=True)
        room = min(min(edge) if moves or move.sways else 2 * min(edge) for edge, moves in edges)
    far = (move.closest - 1) * more
    share = min(1.0, max(_LEAST, (1 / (1 - min(room, 0.9)) - 1) / far)) if far else 1.0
    zoom = 1 + (move.closest - 1) * share * more
    room, seen = 1 - 1 / zoom, 1 / zoom

    def aim(middle: float, low: float, high: float) -> float:
        """Return where in its room a window is that has `middle` fixed, moved until what is kept is inside."""
        if room <= 0 or not move.straight:
            return 0.0
        at = min(max(middle, (high - seen) / room), max(low / room, (high - seen) / room))
        return 2 * min(1.0, max(0.0, at)) - 1

    across, down = aim(focus[0], left, right), aim(focus[1], top, bottom)

    def nearer(view: View) -> View:
        return View(1 + (view.zoom - 1) * share, view.across + across, view.down + down)

    return replace(move, start=nearer(move.start), end=nearer(move.end))


def move_of(words: str) -> CameraMove | None:
    """Return the move that is written ("slow push in on Mia"); None where it is none of the list."""
    name = listed_word("camera_move", words)
    return MOVES.get(name) if name is not None else None


def tell_moves(sheet: ExportBoard, options: ExportOptions) -> None:
    """Remark on the moves that nothing is known of: their frames stand still."""
    for shot in () if options.still else sheet.shots:
        if shot.camera_move and move_of(shot.camera_move) is None:
            known = ", ".join(offered("camera_move"))
            said = f"Frame {shot.number}: the camera move {shot.camera_move[:60]!r} is none that a film follows"
            sheet.remarks.append(f"{said} ({known}).")
