"""Framing as storyboard artists do it: pure rules from boxes on the stage to a camera.

Faces are whole, the verb's object is in the frame, headroom is about a tenth, eyes are in the upper third. Wide shows
where, medium what is done, close what is felt. No two neighbours are the same picture, and who looked to one side in
the last frame looks there again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Literal

from katha_sketch.drawing.pictograms import Picture
from katha_sketch.drawing.scenes.record import SceneThing
from katha_sketch.drawing.svg import group, number

__all__ = ["FEW", "Box", "Framing", "Shot", "Subject", "Taste", "careless_framing", "choose_framing", "keep_direction",
           "several", "side_by_side", "union"]  # fmt: skip

Box = tuple[float, float, float, float]
Shot = Literal["wide", "medium", "close"]

_SIZES: Mapping[Shot, float] = {"wide": 0.58, "medium": 0.74, "close": 1.15}
"""Height of the tallest actor beside the frame's."""
_THINGS = 0.76
"""The same where nobody is there: the things are what the sentence is about."""
_LEAST = 0.22
"""No actor is smaller than this share of the frame's height unless a wide shot was asked for."""
_HEADROOM, _SIDES, _EYES = 0.09, 0.05, 0.4
_GROUND: Mapping[Shot, float] = {"wide": 0.88, "medium": 0.94, "close": 1.0}
_ZOOM: Mapping[Shot, float] = {"wide": 1.0, "medium": 1.12, "close": 1.5}
_SAME_SIZE, _STEP = 0.12, 1.28
"""Two frames of one shot are alike when their sizes differ by less than the first; then one changes by the second."""
_BROAD = 0.85
_JITTER, _ASIDE, _WIDER, _FARTHER = 0.1, 0.22, 0.1, 0.5
"""How much smaller and how far aside a seed may make a picture, and how often it takes the wider shot."""
_KNEES, _SHORTEST = 0.2, 0.32
"""How much of the tallest body is below its knees, and the most that may be cut of the shortest."""
_NEXT: Mapping[Shot, Shot] = {"wide": "medium", "medium": "close", "close": "medium"}


@dataclass(frozen=True)
class Subject:
    """Something on the stage (units of the stage, y down, the ground at 0).

    face: circle of a face that must be whole. acts: whether it is an actor. key: whether the sentence is about it, so
    that it must be in the frame. facing: 1 right, -1 left, 0 neither.
    """

    id: str
    box: Box
    face: tuple[float, float, float] | None = None
    acts: bool = False
    key: bool = False
    facing: int = 0


@dataclass(frozen=True)
class Taste:
    """What a seed decides: the shot (`shot`, 0 to 1), how near the camera is and how far it stands aside (-1 to 1)."""

    shot: float = 0.5
    size: float = 0.0
    side: float = 0.0


@dataclass(frozen=True)
class Framing:
    """A camera: pixels of a unit `k`, the pixel (`left`, `ground`) of the stage's origin, the backdrop's `zoom`.

    `cast` and `facing` are what the next frame is compared with.
    """

    shot: Shot
    k: float
    left: float
    ground: float
    zoom: float = 1.0
    cast: tuple[str, ...] = ()
    facing: Mapping[str, int] = field(default_factory=dict)

    def box(self, box: Box) -> Box:
        """A box of the stage in pixels."""
        x0, y0, x1, y1 = box
        return (self.left + self.k * x0, self.ground + self.k * y0, self.left + self.k * x1, self.ground + self.k * y1)


def choose_framing(
    subjects: Sequence[Subject],
    width: float,
    height: float,
    *,
    asked: Shot | None = None,
    felt: bool = False,
    stand: float | None = None,
    previous: Framing | None = None,
    taste: Taste | None = None,
    hands: bool = False,
) -> Framing:
    """The camera for what stands on the stage.

    `asked` is the shot that the plan names; `felt` says that the moment is about a feeling; `stand` is where feet are
    in the place (a share of the height); `previous` is the frame before this one. `taste` is
    what the seed decides within these rules. `hands`: what is done is done with the hands, so that a medium shot ends
    at the knees where nothing that matters is lower.
    """
    cast = tuple(sorted(subject.id for subject in subjects if subject.acts))
    facing = {subject.id: subject.facing for subject in subjects if subject.acts and subject.facing}
    shot = asked or (_usual(subjects, felt) if taste is None else _tasted(subjects, felt, taste, stand))
    if asked is None and previous is not None and previous.cast == cast and previous.shot == shot:
        shot = _NEXT[shot]
    cut = _knees(subjects) if hands and asked is None and shot == "medium" else 0.0
    subjects = [_lowered(subject, cut) for subject in subjects] if cut else subjects
    k = _scale(subjects, shot, width, height, asked)
    if (
        previous is not None
        and previous.cast == cast
        and previous.shot == shot
        and abs(k / previous.k - 1) < _SAME_SIZE
    ):
        k = k / _STEP
    if taste is not None and asked is None:
        k *= 1 - _JITTER * (1 + taste.size) / 2
    left, ground = _aim(subjects, shot, k, width, height, stand)
    if taste is not None:
        left = _aside(subjects, shot, k, left, width, taste.side)
    ground += k * cut
    return Framing(shot, k, left, ground, _ZOOM[shot], cast, facing)


def _knees(subjects: Sequence[Subject]) -> float:
    """How far above the ground a picture of one or two people's hands may end, 0 where something lower matters."""
    tall = [_height(subject) for subject in subjects if subject.acts]
    cut = _KNEES * max(tall, default=0.0)
    upright = all(_upright(subject) for subject in subjects if subject.acts)
    low = [subject for subject in subjects if subject.key and not subject.acts and subject.box[3] > -cut]
    return cut if 0 < len(tall) <= 2 and upright and not low and cut < _SHORTEST * min(tall) else 0.0


def _height(subject: Subject) -> float:
    return subject.box[3] - subject.box[1]


def _lowered(subject: Subject, cut: float) -> Subject:
    """The subject with the ground at the height of the knees."""
    x0, y0, x1, y1 = subject.box
    face = None if subject.face is None else (subject.face[0], subject.face[1] + cut, subject.face[2])
    return replace(subject, box=(x0, min(y0 + cut, -1.0), x1, min(y1 + cut, 0.0)), face=face)


def keep_direction(name: str, wanted: int | None, previous: Framing | None) -> int | None:
    """Which way an actor looks: as asked, else as in the frame before, else free."""
    if wanted is not None:
        return wanted
    return previous.facing.get(name) if previous is not None else None


def _usual(subjects: Sequence[Subject], felt: bool) -> Shot:
    actors = [subject for subject in subjects if subject.acts]
    if not actors or len(actors) > 3:
        return "wide"
    keyed = any(subject.key and not subject.acts for subject in subjects)
    return "close" if felt and len(actors) <= 2 and not keyed and all(map(_upright, actors)) else "medium"


def _upright(subject: Subject) -> bool:
    """Whether a close shot of the face says who it is: a body wider than tall would be cut off."""
    x0, y0, x1, y1 = subject.box
    return subject.face is not None and x1 - x0 < _BROAD * (y1 - y0)


def _tasted(subjects: Sequence[Subject], felt: bool, taste: Taste, stand: float | None) -> Shot:
    """A shot near the usual one: now and then the whole place around a deed, or the faces of a feeling."""
    usual = _usual(subjects, felt)
    if usual == "medium":
        return (
            "wide"
            if taste.shot < _WIDER and stand is not None and len([one for one in subjects if one.acts]) > 1
            else "medium"
        )
    if usual == "close":
        return "medium" if taste.shot < _FARTHER else "close"
    return usual


def _aside(subjects: Sequence[Subject], shot: Shot, k: float, left: float, width: float, side: float) -> float:
    """The picture moved a little to one side, as far as everything needed stays inside."""
    x0, _, x1, _ = _needed(subjects, shot)
    least, most = _SIDES * width - k * x0, (1 - _SIDES) * width - k * x1
    if least >= most:
        return left
    return min(max(left + _ASIDE * side * (most - least), least), most)


def _needed(subjects: Sequence[Subject], shot: Shot) -> Box:
    """What must be in the frame: from afar everything; in between actors and key things; near faces and key things."""
    if shot == "wide":
        chosen = [subject.box for subject in subjects]
    else:
        chosen = [subject.box for subject in subjects if subject.acts or subject.key]
    if shot == "close":
        heads = [_around(subject.face) for subject in subjects if subject.face is not None and subject.acts]
        things = [subject.box for subject in subjects if subject.key and not subject.acts]
        chosen = heads + things or chosen
    return union(chosen or [subject.box for subject in subjects] or [(-100.0, -100.0, 100.0, 0.0)])


def _extent(box: Box) -> float:
    """How large somebody is, lying or standing."""
    return max(box[3] - box[1], 0.8 * (box[2] - box[0]))


def _around(face: tuple[float, float, float]) -> Box:
    """A head with its hair, hat and shoulders."""
    cx, cy, r = face
    return (cx - 1.5 * r, cy - 1.5 * r, cx + 1.5 * r, cy + 1.9 * r)


def _people(subjects: Sequence[Subject]) -> Box | None:
    """The box around everybody who acts."""
    boxes = [subject.box for subject in subjects if subject.acts]
    return union(boxes) if boxes else None


def _scale(subjects: Sequence[Subject], shot: Shot, width: float, height: float, asked: Shot | None) -> float:
    x0, y0, x1, y1 = _needed(subjects, shot)
    actors = [_extent(subject.box) for subject in subjects if subject.acts]
    tall = max(actors or [y1 - y0, 30.0])
    wanted = (_SIZES[shot] if actors else _THINGS) * height / max(tall, 36.0)
    if shot == "close":
        radii = [subject.face[2] for subject in subjects if subject.face is not None and subject.acts]
        wanted = 0.18 * height / max(radii) if radii else wanted
    floor = 0.0 if shot == "close" else min(y0, -1.0)
    tallest = (1 - _HEADROOM - (1 - _GROUND[shot]) - 0.01) * height
    fits = (1 - 2 * _SIDES) * width / max(x1 - x0, 1.0)
    fits = min(fits, 0.84 * height / max(y1 - y0, 1.0) if shot == "close" else tallest / -floor)
    k = min(wanted, fits)
    least = _LEAST * height / max(min(actors or [tall]), 30.0)
    people = _people(subjects) or (x0, y0, x1, y1)
    roomy = (1 - 2 * _SIDES) * width / max(people[2] - people[0], 1.0)
    return k if asked == "wide" or shot == "wide" else max(k, min(least, roomy, tallest / max(-people[1], 1.0)))


def _aim(
    subjects: Sequence[Subject], shot: Shot, k: float, width: float, height: float, stand: float | None
) -> tuple[float, float]:
    box = _needed(subjects, shot)
    middle = (box[0] + box[2]) / 2
    free = max(0.0, width - k * (box[2] - box[0]))
    looks = sum(subject.facing for subject in subjects if subject.acts)
    actors = sum(subject.acts for subject in subjects)
    lead = -0.16 * free * looks / actors if actors == 1 and shot != "wide" else 0.0
    left = width / 2 - k * middle + lead
    people = _people(subjects)
    if people is not None and not free:
        # What is too large for the frame (a house, a mountain) may be cut; those who act may not.
        least, most = _SIDES * width - k * people[0], (1 - _SIDES) * width - k * people[2]
        left = min(max(left, least), most) if least <= most else (least + most) / 2
    if shot != "close":
        ground = (stand if stand is not None and shot == "wide" else _GROUND[shot]) * height
        ground = min(ground, 0.95 * height - k * max(box[3], 0.0))
        top = ground + k * box[1]
        return left, ground if top >= _HEADROOM * height else min(0.97 * height, ground + _HEADROOM * height - top)
    heads = [subject.face for subject in subjects if subject.face is not None and subject.acts]
    if not heads:
        return left, height / 2 - k * (box[1] + box[3]) / 2
    eyes = sum(face[1] for face in heads) / len(heads)
    ground = _EYES * height - k * eyes
    over, under = 0.04 * height - (ground + k * box[1]), ground + k * box[3] - 0.97 * height
    return left, ground + max(over, 0.0) - (max(under, 0.0) if over < 0 else 0.0)


def union(boxes: Sequence[Box]) -> Box:
    """The smallest box around `boxes` (at least one)."""
    x0s, y0s, x1s, y1s = zip(*boxes, strict=True)
    return (min(x0s), min(y0s), max(x1s), max(y1s))


_SHOTS: Mapping[Shot, float] = {"wide": 0.25, "medium": 0.45, "close": 0.30}
"""How often the seed takes each shot when none is asked for."""

_CARELESS: Mapping[Shot, tuple[float, float]] = {"wide": (0.17, 0.23), "medium": (0.5, 0.6)}
"""Height of the tallest actor beside the frame's, from and to."""
_CARELESS_ZOOMS: Mapping[Shot, float] = {"wide": 1.0, "medium": 1.1, "close": 1.4}


def careless_framing(
    subjects: Sequence[Subject], asked: Shot | None, rng: Random, width: float, height: float
) -> Framing:
    """The camera of `sketch:loose`: as careless as a text-to-image model's, for experiments that need broken pictures.

    A wide shot shows everybody too small to read and to one side; a close shot is of one face, or of two, and cuts
    bodies and things off. `rng` alone chooses.
    """
    shot = asked or rng.choices(list(_SHOTS), weights=list(_SHOTS.values()))[0]
    size, pan, tilt, focus = rng.random(), rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0), rng.random()
    acting = [subject for subject in subjects if subject.acts] or list(subjects)
    faces = [subject.face for subject in acting if subject.face is not None]
    if not acting:
        return Framing("wide", height / 300, width / 2, height * 0.9)
    if shot == "close" and faces:
        cx, cy, r = faces[min(int(focus * len(faces)), len(faces) - 1)]
        k = (0.225 + 0.08 * size) * height / r
        return Framing(
            shot, k, width * (0.5 + 0.13 * pan) - k * cx, height * (0.45 + 0.05 * tilt) - k * cy, _CARELESS_ZOOMS[shot]
        )
    shot = "medium" if shot == "close" else shot
    x0, y0, x1, _ = union([subject.box for subject in acting])
    low, high = _CARELESS[shot]
    k = min((low + (high - low) * size) * height / max(38.0, -y0), 0.93 * width / max(x1 - x0, 1.0))
    free = max(0.0, (width - k * (x1 - x0)) / 2)
    ground = (0.8 + 0.1 * tilt if shot == "wide" else 0.88 + 0.04 * tilt) * height
    return Framing(shot, k, width / 2 - k * (x0 + x1) / 2 + 0.8 * pan * free, ground, _CARELESS_ZOOMS[shot])


if TYPE_CHECKING:
    from katha_sketch.drawing.scenes.things import Sprite

FEW, _A_ROW, _STAGGERED, _BEHIND, _CROWDED = 3, 5, 0.94, 0.62, 0.5
"""More of the same than the first are one picture, with so many in a row, so far apart and one row behind the other
beside their size; how small things are drawn at least to lie side by side."""


def several(picture: Picture, count: int, least: int = 4, rise: float = _BEHIND) -> Picture:
    """So many of the same as one picture, in rows one behind the other; fewer than `least` stay one."""
    if count < least:
        return picture
    x0, y0, x1, y1 = picture.bbox
    rows = 1 if count <= _A_ROW else 2 if count <= 2 * _A_ROW else 3
    across = -(-count // rows)
    wide, up = _STAGGERED * (x1 - x0), rise * (y1 - y0)
    put: list[tuple[float, float]] = []
    for nth in range(count):
        row, column = divmod(nth, across)
        many = min(across, count - row * across)
        put.append(((column - 0.5 * (many - 1) + (0.25 if row % 2 else 0.0)) * wide, -up * (rows - 1 - row)))
    svg = "".join(group(picture.svg, transform=f"translate({number(x)} {number(y)})") for x, y in put)
    box = union([(x0 + x, y0 + y, x1 + x, y1 + y) for x, y in put])
    return Picture(svg, box, box, picture.head)


def side_by_side(sprites: Sequence[Sprite], things: Sequence[SceneThing]) -> list[Sprite]:
    """The sprites with all that lies on or in the same thing in a row, smaller where there is no room."""
    found = {sprite.id: sprite for sprite in sprites}
    laid: dict[tuple[str, str], list[str]] = {}
    for thing in things:
        if thing.at in found and thing.id in found and thing.where in ("on", "in") and not found[thing.at].acts:
            laid.setdefault((thing.at, thing.where), []).append(thing.id)
    moved: dict[str, Sprite] = {}
    for (host, _), ids in laid.items():
        if len(ids) < 2:
            continue
        left, _, right, _ = found[host].box
        wide = sum(found[one].box[2] - found[one].box[0] for one in ids)
        by = min(1.0, max(_CROWDED, (right - left) / wide))
        x = (left + right) / 2 - 0.5 * by * wide
        for one in ids:
            x0, y0, x1, y1 = (by * value for value in found[one].local)
            svg = group(found[one].svg, transform=f"scale({by:.3f})") if by < 1 else found[one].svg
            moved[one] = replace(found[one], svg=svg, local=(x0, y0, x1, y1), x=x - x0)
            x += x1 - x0
    return [moved.get(sprite.id, sprite) for sprite in sprites]
