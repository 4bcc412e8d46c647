"""The embedded reader: pixels in, concepts out, by two small ONNX networks on the CPU."""

from __future__ import annotations

import ctypes
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from importlib.resources import files
from threading import Lock
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageStat

from katha.errors import KathaError
from katha.jsonio import loads, sha256_hex
from katha.pictures import decoded

Array = NDArray[np.float32]
Pixels = NDArray[np.uint8]
_BLAS = Lock()

# What the reader's outputs mean: class order, thresholds, and what it was trained on (`concepts.json`).


@dataclass(frozen=True)
class Concepts:
    """Class names in output order, and the peak that a character or a prop needs to count as present.

    Characters are what the sketch draws by a rig: creatures, people by trade or by sex and age. Props are pictograms,
    named by the gallery. `actions` are deeds, then what an actor without a rig does ("act:run"); `emotions` begins with
    "none", `settings` ends with it. `sharpness` makes cosines to the gallery probabilities. `acting` are the props that
    are looked at for what they do and feel. `alike` are actions that are drawn so alike that one is taken for another.
    `trained_on` names the drawings' version.
    """

    characters: tuple[str, ...]
    actions: tuple[str, ...]
    emotions: tuple[str, ...]
    settings: tuple[str, ...]
    times: tuple[str, ...]
    acting: tuple[str, ...] = ()
    sharpness: float = 16.0
    alike: tuple[tuple[str, ...], ...] = ()
    thresholds: Mapping[str, float] = field(default_factory=dict)
    sketch_threshold: float = 0.5
    version: str = "untrained"
    trained_on: Mapping[str, Any] = field(default_factory=dict)

    @property
    def named(self) -> tuple[tuple[str, ...], ...]:
        """The classes of a figure, in the order of the namer's outputs."""
        return (self.characters, self.actions, self.emotions)

    @cached_property
    def index(self) -> Mapping[str, Mapping[str, int]]:
        """Class numbers by kind and name."""
        kinds = {
            "character": self.characters,
            "action": self.actions,
            "emotion": self.emotions,
            "setting": self.settings,
            "time": self.times,
        }
        return {kind: {name: nth for nth, name in enumerate(names)} for kind, names in kinds.items()}

    def threshold(self, kind: str) -> float:
        """Return the peak from which a concept of `kind` ("character" or "prop") counts as present."""
        return self.thresholds.get(kind, 0.35)


@cache
def load_concepts() -> Concepts:
    """Return the class list that ships with the reader's weights, read once.

    Raises:
        KathaError: it is missing from the installation.
    """
    try:
        text = files("katha_sketch.reader").joinpath("concepts.json").read_text(encoding="utf-8")
    except OSError as error:
        raise KathaError(
            "The reader's concepts.json is missing.", hint="Install katha again, or run `make reader`."
        ) from error
    fields: Any = {key: tuple(item) if isinstance(item, list) else item for key, item in loads(text).items()}
    return Concepts(**fields)


@dataclass(frozen=True)
class Gallery:
    """What each pictogram looks like to the namer: `names`, and `vectors` of shape (n, d) and length 1, one row a view.

    A name can have several rows. It is computed from the drawings, by the namer, without any training: a new pictogram
    is a few more rows.
    """

    names: tuple[str, ...]
    vectors: Array

    @cached_property
    def words(self) -> tuple[str, ...]:
        """Each name once, in order."""
        return tuple(dict.fromkeys(self.names))

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        starts = [0]
        for nth in range(1, len(self.names)):
            if self.names[nth] != self.names[nth - 1]:
                starts.append(nth)
        return np.array(starts)

    def likeness(self, seen: Array) -> Array:
        """Return the cosines of (m, d) seen things to the nearest view of each of `words`, shape (m, len(words))."""
        if not len(seen) or not self.names:
            return np.zeros((len(seen), len(self.words)), np.float32)
        length = np.linalg.norm(seen, axis=1, keepdims=True)
        with _one_thread():
            cosines = (seen / np.maximum(length, 1e-6)) @ self.vectors.T
        return np.asarray(np.maximum.reduceat(cosines, self._rows, axis=1), dtype=np.float32)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Have numpy's BLAS work alone: for a third of a millisecond's work it would wake a thread for each core, and they
    then wait 17 ms of processor time each for more."""
    told = _blas_threads()
    if told is None:
        yield
        return
    with _BLAS:
        get, tell = told
        before = get()
        tell(1)
        try:
            yield
        finally:
            tell(before)


@cache
def _blas_threads() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """Return what gets and what sets how many threads numpy's own OpenBLAS has; None where numpy has another BLAS."""
    try:
        library = ctypes.CDLL(import_module("numpy._core._multiarray_umath").__file__)
        return library.scipy_openblas_get_num_threads64_, library.scipy_openblas_set_num_threads64_
    except (ImportError, OSError, AttributeError):
        return None


def read_gallery(data: bytes) -> Gallery:
    """Return the gallery in a `gallery.npz`: `names` and `vectors` (half precision), rows of a name together."""
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        vectors = held["vectors"].astype(np.float32)
        names = tuple(str(name) for name in held["names"])
    return Gallery(names, vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


# From the finder's maps to places: peaks, and the shapes read at them.
#
# `shapes` are nine numbers a cell. Of a head: where its middle is in the cell (x, y, in cells from the cell's
# middle), the logarithm of its radius in cells, the middle of its figure's box (x, y, from the head's middle, in
# radii), the logarithm of half of the box's longer side in radii. Of a thing: its middle in the cell, the logarithm
# of half its side in cells.

STRIDE = 8
ACT = "act:"
"""What begins the names of actions of actors without a rig."""
MOST_HEADS, MOST_THINGS = 8, 14
_MOST_NAMES = 12
"""So many names are kept of each."""
"""So many of each are looked at more closely; a frame that shows more has no room for faces."""
_FAINT = 0.2
"""What is lower than this is no peak: no name can lift it over the threshold."""
_FARTHEST, _LARGEST = 8.0, 4.0


@dataclass(frozen=True)
class Head:
    """One head: probability, middle and radius, and the square around its figure (middle, half a side), in pixels."""

    p: float
    x: float
    y: float
    radius: float
    body: tuple[float, float, float]


@dataclass(frozen=True)
class Thing:
    """One thing: probability, middle and half of its longer side, in pixels."""

    p: float
    x: float
    y: float
    half: float


def sigmoid(x: Array) -> Array:
    """Return the logistic function."""
    return np.asarray(1.0 / (1.0 + np.exp(-x)), dtype=np.float32)


def softmax(x: Array) -> Array:
    """Return probabilities along the last axis."""
    e = np.exp(x - x.max(axis=-1, keepdims=True)) if x.size else x
    return np.asarray(e / e.sum(axis=-1, keepdims=True), dtype=np.float32)


def _peaks(heat: Array) -> Iterator[tuple[float, int, int]]:
    """Yield local maxima of one map as (p, row, column), highest first."""
    padded = np.pad(heat, 1)
    around = np.max([padded[i : i + heat.shape[0], j : j + heat.shape[1]] for i in range(3) for j in range(3)], axis=0)
    found = np.argwhere((heat >= _FAINT) & (heat >= around))
    yield from sorted(((float(heat[r, c]), int(r), int(c)) for r, c in found), key=lambda one: (-one[0], *one[1:]))


def _middle(shape: Array, row: int, column: int) -> tuple[float, float]:
    x, y = np.clip(shape[:2], -1.5, 1.5)
    return (column + 0.5 + float(x)) * STRIDE, (row + 0.5 + float(y)) * STRIDE


def _length(logarithm: np.float32) -> float:
    return float(np.exp(np.clip(logarithm, -_LARGEST, _LARGEST)))


def find_heads(heat: Array, shapes: Array) -> list[Head]:
    """Return heads from one map (h, w) of probabilities and `shapes` (9, h, w), likeliest first, none twice."""
    heads: list[Head] = []
    for p, r, c in _peaks(heat):
        shape = shapes[:6, r, c]
        x, y = _middle(shape, r, c)
        radius = STRIDE * _length(shape[2])
        dx, dy = np.clip(shape[3:5], -_FARTHEST, _FARTHEST) * radius
        if all(np.hypot(x - one.x, y - one.y) > max(STRIDE, 0.5 * max(radius, one.radius)) for one in heads):
            heads.append(Head(p, x, y, radius, (x + float(dx), y + float(dy), radius * _length(shape[5]))))
    return heads[:MOST_HEADS]


def find_things(heat: Array, shapes: Array) -> list[Thing]:
    """Return things from one map (h, w) of probabilities and `shapes` (9, h, w), likeliest first, none twice."""
    things: list[Thing] = []
    for p, r, c in _peaks(heat):
        shape = shapes[6:, r, c]
        x, y = _middle(shape, r, c)
        half = STRIDE * _length(shape[2])
        if all(np.hypot(x - one.x, y - one.y) > max(STRIDE, 0.25 * min(half, one.half)) for one in things):
            things.append(Thing(p, x, y, half))
    return things[:MOST_THINGS]


@dataclass(frozen=True)
class FigureReading:
    """One character: what it is, how sure, where its head is (input pixels), and what it does and feels.

    `actions` and `emotions` are probabilities by name; "none" stands for standing still or a neutral face. `names` are
    those of all that it may be, the likeliest (`concept`, `p`) first; the least likely are left out.
    """

    concept: str
    p: float
    x: float
    y: float
    actions: Mapping[str, float]
    emotions: Mapping[str, float]
    names: Mapping[str, float] = field(default_factory=dict)

    @property
    def action(self) -> str:
        """The likeliest action."""
        return max(self.actions, key=lambda name: self.actions[name])

    @property
    def emotion(self) -> str:
        """The likeliest emotion."""
        return max(self.emotions, key=lambda name: self.emotions[name])


@dataclass(frozen=True)
class PropReading:
    """One pictogram, how sure, where its middle is and half of its longer side (input pixels).

    `actions` and `emotions` are probabilities for those that act (a robot, a ghost); others have none. `names` as of a
    figure.
    """

    concept: str
    p: float
    x: float
    y: float
    half: float = 0.0
    actions: Mapping[str, float] = field(default_factory=dict)
    emotions: Mapping[str, float] = field(default_factory=dict)
    names: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class FrameReading:
    """One frame. figures and props are above their thresholds, from left to right; `is_sketch` is a probability.

    `peaks` holds the highest peak of every character and prop that was thought of ("character/lion": 0.02). `faint` are
    those below their thresholds: evidence for one who compares, none for one who counts.
    """

    figures: tuple[FigureReading, ...]
    props: tuple[PropReading, ...]
    settings: Mapping[str, float]
    times: Mapping[str, float]
    is_sketch: float
    peaks: Mapping[str, float] = field(default_factory=dict)
    faint: tuple[FigureReading | PropReading, ...] = ()

    @property
    def setting(self) -> str:
        """The likeliest place; "none" for plain paper."""
        return max(self.settings, key=lambda name: self.settings[name])

    @property
    def time(self) -> str:
        """The likeliest time of day."""
        return max(self.times, key=lambda name: self.times[name])


_Reading = TypeVar("_Reading", FigureReading, PropReading)


def _named(values: Array, names: tuple[str, ...]) -> dict[str, float]:
    return {name: float(value) for name, value in zip(names, values, strict=True)}


def nothing(concepts: Concepts) -> FrameReading:
    """Return the reading of an empty sheet: a sketch in which nothing is drawn; no time of day is likelier."""
    settings = dict.fromkeys(concepts.settings, 0.0) | {concepts.settings[-1]: 1.0}
    times = dict.fromkeys(concepts.times, 1 / max(1, len(concepts.times)))
    return FrameReading((), (), settings, times, 1.0)


class _Named(NamedTuple):
    """What was named. Probabilities of characters, actions and emotions, a row a head; for each thing its likeliest
    names, and the rows of actions and emotions where it acts."""

    characters: Array
    actions: Array
    emotions: Array
    things: Sequence[Mapping[str, float]]
    acts: Mapping[int, tuple[Array, Array]]


def assemble(
    heads: Sequence[Head], things: Sequence[Thing], named: _Named, scene: Array, concepts: Concepts
) -> FrameReading:
    """One frame's reading. scene: logits of settings, times and is-sketch. A figure's p is that of a head there times
    that of its name."""
    figures = [
        FigureReading(
            *_first(names),
            head.x,
            head.y,
            _named(named.actions[nth], concepts.actions),
            _named(named.emotions[nth], concepts.emotions),
            names,
        )
        for nth, head in enumerate(heads)
        for names in [_times(head.p, _likeliest(named.characters[nth], concepts.characters))]
    ]
    props = [
        PropReading(*_first(names), thing.x, thing.y, thing.half, *_acting(named.acts.get(nth), concepts), names)
        for nth, thing in enumerate(things)
        for names in [_times(thing.p, named.things[nth])]
    ]
    people, faint_people = _parted(figures, concepts.threshold("character"))
    seen, faint_things = _parted(props, concepts.threshold("prop"))
    settings, times = len(concepts.settings), len(concepts.times)
    highest: dict[str, float] = {}
    for kind, found in (("character", figures), ("prop", props)):
        for one in found:
            highest[f"{kind}/{one.concept}"] = max(one.p, highest.get(f"{kind}/{one.concept}", 0.0))
    return FrameReading(
        figures=people,
        props=seen,
        settings=_named(softmax(scene[:settings]), concepts.settings),
        times=_named(softmax(scene[settings : settings + times]), concepts.times),
        is_sketch=float(sigmoid(scene[-1:])[0]),
        peaks=highest,
        faint=(*faint_people, *faint_things),
    )


def _first(names: Mapping[str, float]) -> tuple[str, float]:
    """The likeliest of `names`, which are in that order."""
    return next(iter(names.items()))


def _times(p: float, names: Mapping[str, float]) -> dict[str, float]:
    return {name: p * chance for name, chance in names.items()}


def _parted(found: Sequence[_Reading], limit: float) -> tuple[tuple[_Reading, ...], tuple[_Reading, ...]]:
    """What reaches `limit` and what does not, each from left to right."""
    ordered = sorted(found, key=lambda one: one.x)
    return tuple(one for one in ordered if one.p >= limit), tuple(one for one in ordered if one.p < limit)


def _acting(rows: tuple[Array, Array] | None, concepts: Concepts) -> tuple[dict[str, float], dict[str, float]]:
    """What an actor without a rig does, of what such actors can do, and how it feels."""
    if rows is None:
        return {}, {}
    acts = {name: p for name, p in _named(rows[0], concepts.actions).items() if name.startswith(ACT)}
    total = max(1e-6, sum(acts.values()))
    return {name: p / total for name, p in acts.items()}, _named(rows[1], concepts.emotions)


def _likeliest(chances: Array, names: Sequence[str]) -> dict[str, float]:
    """Return the likeliest names with their probabilities, in that order."""
    best = chances.argsort()[::-1][:_MOST_NAMES]
    return {names[at]: float(chances[at]) for at in best}


# From a picture's bytes to the reader's two views of it: fitted into a fixed frame, and windows cut out of that.

WIDTH, HEIGHT = 336, 224
FINER = 2
"""How much finer the picture that windows are cut from is than the one in which things are looked for."""
_PAPER = (251, 246, 234)
_FLAT = 3.0
"""The most that a colour of an empty sheet varies (standard deviation, 0..255)."""


@dataclass(frozen=True)
class Fit:
    """How a picture lies in the reader's input: input = picture * scale + (left, top)."""

    scale: float
    left: float
    top: float

    def point(self, x: float, y: float) -> tuple[float, float]:
        """Return a picture's point in input pixels."""
        return (x * self.scale + self.left, y * self.scale + self.top)


def fit_into(width: int, height: int) -> Fit:
    """Return the fit of a `width` x `height` picture into WIDTH x HEIGHT: as large as possible, centred."""
    scale = min(WIDTH / width, HEIGHT / height)
    return Fit(scale, (WIDTH - width * scale) / 2, (HEIGHT - height * scale) / 2)


def to_input(data: bytes) -> Pixels:
    """Decode any picture that Pillow reads into shape (FINER * HEIGHT, FINER * WIDTH, 3), the rest filled with paper.

    Raises:
        InputFileError: the bytes are no picture.
    """
    picture = decoded(data, "A panel")
    fit = fit_into(*picture.size)
    size = (max(1, round(picture.width * fit.scale * FINER)), max(1, round(picture.height * fit.scale * FINER)))
    inside = picture.resize(size, Image.Resampling.BILINEAR)
    if is_blank(inside):
        return np.asarray(inside.resize((FINER * WIDTH, FINER * HEIGHT)))
    canvas = Image.new("RGB", (FINER * WIDTH, FINER * HEIGHT), _PAPER)
    canvas.paste(inside, (round(fit.left * FINER), round(fit.top * FINER)))
    return np.asarray(canvas)


def coarse(pixels: Pixels) -> Pixels:
    """The (HEIGHT, WIDTH, 3) picture in which things are looked for: means of FINER x FINER pixels of the input."""
    return np.asarray(Image.fromarray(pixels).reduce(FINER))


def cut(picture: Image.Image, x: float, y: float, half: float, side: int) -> Pixels:
    """The square window around (x, y) that reaches `half` to each side, both in pixels of `coarse`, out of a decoded
    input, as (side, side, 3). What lies outside of the picture is black."""
    x, y, half = FINER * x, FINER * y, max(1.0, FINER * half)
    left, top = int(np.floor(x - half)) - 1, int(np.floor(y - half)) - 1
    size = int(np.ceil(2 * half)) + 3
    inner = (x - half - left, y - half - top, x + half - left, y + half - top)
    window = picture.crop((left, top, left + size, top + size))
    return np.asarray(window.resize((side, side), Image.Resampling.BILINEAR, box=inner))


def is_blank(picture: Image.Image) -> bool:
    """Return whether a picture is an empty sheet of one colour."""
    return max(ImageStat.Stat(picture).stddev) < _FLAT


# The windows through which the reader looks closer: a figure's head, the whole figure, a prop.
#
# All lengths are in pixels of the coarse picture; a window is its middle and half a side. A place in a window is
# three numbers: a middle (x, y) in half sides from the window's, and the logarithm of a half side over the window's.
# The namer says by it how the window should have been cut.

CLOSE_SIDE, BODY_SIDE = 64, 80
"""Pixels a side that the network sees of a head or prop, and of a whole figure."""
_REACH = {"head": 2.0, "body": 1.3, "prop": 1.25}
"""How far a window reaches, for the size of what it shows: what is around it counts (ears, a hat, a sign)."""
_SMALLEST = 6.0


@dataclass(frozen=True)
class Window:
    """The square around (x, y) that reaches `half` to each side."""

    x: float
    y: float
    half: float


def window_on(kind: Literal["head", "body", "prop"], x: float, y: float, size: float) -> Window:
    """Return the window on something, given its middle and a head's radius, or half of the longer side of its box."""
    return Window(x, y, max(_SMALLEST, _REACH[kind] * size))


def acting_windows(x: float, y: float, half: float) -> tuple[Window, Window]:
    """Return the windows through which a pictogram is looked at as a figure: where its face may be, and all of it."""
    return window_on("head", x, y - 0.5 * half, 0.35 * half), window_on("body", x, y, half)


def moved(window: Window, place: Array, times: float = 1.0) -> Window:
    """The window that `place` (3,) describes inside of `window`, `times` as wide; at most a half side away, and no
    smaller than half and no larger than double."""
    x, y = np.clip(place[:2], -1, 1) * window.half
    wider = times * float(np.exp(np.clip(place[2], -0.7, 0.7)))
    return Window(window.x + float(x), window.y + float(y), window.half * wider)


def mark(head: Window, body: Window) -> tuple[float, float, float]:
    """Return where a head lies in its figure's window: middle and radius as shares of the window's side."""
    side = 2 * body.half
    return ((head.x - body.x) / side + 0.5, (head.y - body.y) / side + 0.5, head.half / _REACH["head"] / side)


def discs(marks: Array, side: int) -> Array:
    """Return (n, 3) marks as (n, side, side) soft discs: 1 on the marked head, to tell whose figure it is."""
    at = (np.arange(side, dtype=np.float32) + 0.5) / side
    x, y, r = (marks[:, i, None, None] for i in range(3))
    distance = np.sqrt((at[None, None, :] - x) ** 2 + (at[None, :, None] - y) ** 2)
    return np.clip(1.5 - distance / np.maximum(r, 1 / side), 0, 1).astype(np.float32)


# The finder looks over the whole picture and says where heads and things are, and where and when the scene is; the
# namer looks through a window at each of them and says who it is, what it does, how it feels, and how the window
# should have been cut, for the finder may have misjudged the size. Where it is not sure it looks again through
# windows set right.

FINDER_OUTPUTS = ("maps", "shapes", "scene")
NAMER_INPUTS = ("heads", "bodies", "things")
NAMER_OUTPUTS = ("characters", "actions", "emotions", "figure_places", "looks", "prop_places")
VECTOR = 128
"""Length of a thing's vector (`looks`)."""
_SURE = 0.7
_AGAIN = (1.0,)
"""What is named with less certainty is looked at again, where the namer has put it and so many times as wide."""


class _Seen(NamedTuple):
    """Probabilities and places of n figures; vectors and places of m things; in the order of `NAMER_OUTPUTS`."""

    characters: Array
    actions: Array
    emotions: Array
    figure_places: Array
    looks: Array
    prop_places: Array

    @property
    def of_figures(self) -> tuple[Array, ...]:
        """What is asked of a figure."""
        return self.characters, self.actions, self.emotions


class Reader:
    """Reads panels. It receives pixels and nothing else; the same bytes always give the same reading."""

    def __init__(self, finder: bytes, namer: bytes, concepts: Concepts, gallery: Gallery, *, threads: int = 1) -> None:
        self._finder, self._namer = _session(finder, threads), _session(namer, threads)
        self._sha256 = sha256_hex(finder + namer + gallery.vectors.tobytes() + "\n".join(gallery.names).encode())
        self.concepts, self.gallery = concepts, gallery

    def spec(self) -> Mapping[str, Any]:
        """Return version and hash of weights and gallery: everything that can change a reading."""
        return {"name": "sketch-reader", "version": self.concepts.version, "weights": self._sha256}

    def figures(self, heads: Array, bodies: Array) -> tuple[Array, Array, Array]:
        """Return the logits of characters, actions and emotions of n figures, given their windows in 0..1: heads
        (n, 3, side, side), bodies (n, 4, side, side) with the mark of the head."""
        none = np.zeros((1, 3, CLOSE_SIDE, CLOSE_SIDE), np.float32)
        seen = self._namer.run(list(NAMER_OUTPUTS[:3]), dict(zip(NAMER_INPUTS, (heads, bodies, none), strict=True)))
        return seen[0], seen[1], seen[2]

    def vectors(self, windows: Array) -> Array:
        """Return what things look like to the namer, (m, VECTOR), given their windows (m, 3, side, side) in 0..1."""
        none = (
            np.zeros((1, 3, CLOSE_SIDE, CLOSE_SIDE), np.float32),
            np.zeros((1, 4, BODY_SIDE, BODY_SIDE), np.float32),
        )
        seen = self._namer.run(["looks"], dict(zip(NAMER_INPUTS, (*none, windows), strict=True)))
        return np.asarray(seen[0], dtype=np.float32)

    def read(self, picture: bytes) -> FrameReading:
        """Return what is in one picture (any format that Pillow reads, any size).

        Raises:
            InputFileError: the bytes are no picture.
        """
        return self.read_pixels(to_input(picture))

    def read_many(self, pictures: Iterable[bytes]) -> list[FrameReading]:
        """Return what is in each picture, in order."""
        return [self.read(picture) for picture in pictures]

    def read_pixels(self, pixels: Pixels) -> FrameReading:
        """Return what is in one picture as `to_input` decodes it."""
        small = coarse(pixels)
        if is_blank(Image.fromarray(small)):
            return nothing(self.concepts)
        batch = small.transpose(2, 0, 1)[None].astype(np.float32) / 255
        maps, shapes, scene = self._finder.run(None, {"pixels": batch})
        heat = sigmoid(maps[0])
        heads, things = find_heads(heat[0], shapes[0]), find_things(heat[1], shapes[0])
        return assemble(heads, things, self._named(pixels, heads, things), scene[0], self.concepts)

    def _named(self, pixels: Pixels, heads: Sequence[Head], things: Sequence[Thing]) -> _Named:
        """Return what each head and thing is, in order."""
        picture = Image.fromarray(pixels)
        figures = [(window_on("head", head.x, head.y, head.radius), window_on("body", *head.body)) for head in heads]
        props = [window_on("prop", thing.x, thing.y, thing.half) for thing in things]
        first = self._look(picture, figures, props)
        chances = softmax(self.concepts.sharpness * self.gallery.likeness(first.looks))
        unsure = [nth for nth, row in enumerate(first.characters) if row.max() < _SURE]
        unclear = [nth for nth, row in enumerate(chances) if row.max() < _SURE]
        again = self._look(
            picture,
            [
                (moved(figures[nth][0], place[:3], times), moved(figures[nth][1], place[3:], times))
                for nth, place in zip(unsure, first.figure_places[unsure], strict=True)
                for times in _AGAIN
            ],
            [
                moved(props[nth], place, times)
                for nth, place in zip(unclear, first.prop_places[unclear], strict=True)
                for times in _AGAIN
            ],
        )
        for rows, seen in zip(first.of_figures, again.of_figures, strict=True):
            rows[unsure] = _averaged(rows[unsure], seen)
        more = softmax(self.concepts.sharpness * self.gallery.likeness(again.looks))
        chances[unclear] = _averaged(chances[unclear], more)
        names = [_likeliest(row, self.gallery.words) for row in chances]
        return _Named(first.characters, first.actions, first.emotions, names, self._acts(picture, things, names))

    def _acts(
        self, picture: Image.Image, things: Sequence[Thing], names: Sequence[Mapping[str, float]]
    ) -> Mapping[int, tuple[Array, Array]]:
        """Return actions and emotions of the things that can act, by their place in `things`."""
        able = set(self.concepts.acting)
        which = [nth for nth, likely in enumerate(names) if _first(likely)[0] in able]
        seen = self._look(picture, [acting_windows(things[n].x, things[n].y, things[n].half) for n in which], [])
        return {nth: (seen.actions[row], seen.emotions[row]) for row, nth in enumerate(which)}

    def _look(self, picture: Image.Image, figures: Sequence[tuple[Window, Window]], props: Sequence[Window]) -> _Seen:
        """Take one look through the windows of each head and its body, and of each thing; rows in order."""
        if not figures and not props:
            sizes = (*(len(names) for names in self.concepts.named), 6, VECTOR, 3)
            return _Seen._make(np.zeros((0, size), np.float32) for size in sizes)
        marks = np.array([mark(close, body) for close, body in figures], dtype=np.float32).reshape(-1, 3)
        disc = discs(marks, BODY_SIDE)[:, None] if figures else np.zeros((1, 1, BODY_SIDE, BODY_SIDE), np.float32)
        views = (
            _stacked(picture, [close for close, _ in figures], CLOSE_SIDE),
            np.concatenate([_stacked(picture, [body for _, body in figures], BODY_SIDE), disc], axis=1),
            _stacked(picture, props, CLOSE_SIDE),
        )
        seen = _Seen._make(self._namer.run(None, dict(zip(NAMER_INPUTS, views, strict=True))))
        n, m = len(figures), len(props)
        chances = (softmax(part[:n]) for part in seen.of_figures)
        return _Seen._make([*chances, seen.figure_places[:n], seen.looks[:m], seen.prop_places[:m]])


def _averaged(first: Array, more: Array) -> Array:
    """Return means of the rows of `first` (n, classes) and the looks that follow each in `more`."""
    looks = more.reshape(len(first), len(_AGAIN), first.shape[1])
    return np.asarray((first + looks.sum(axis=1)) / (1 + len(_AGAIN)), dtype=np.float32)


def _stacked(picture: Image.Image, windows: Sequence[Window], side: int) -> Array:
    """Windows as (n, 3, side, side) in 0..1; one black window where there are none, for the network takes no less."""
    if not windows:
        return np.zeros((1, 3, side, side), np.float32)
    views = np.stack([cut(picture, window.x, window.y, window.half, side) for window in windows])
    return np.asarray(views.transpose(0, 3, 1, 2).astype(np.float32) / 255, dtype=np.float32)


def _session(model: bytes, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@cache
def load_reader() -> Reader:
    """Return the reader that ships with katha, loaded once per process.

    Raises:
        KathaError: its weights are missing from the installation.
    """
    folder = files("katha_sketch.reader")
    try:
        finder, namer, gallery = (
            folder.joinpath(name).read_bytes() for name in ("finder.onnx", "namer.onnx", "gallery.npz")
        )
    except OSError as error:
        raise KathaError(
            "The reader's weights are missing.", hint="Install katha again, or run `make reader`."
        ) from error
    return Reader(finder, namer, load_concepts(), read_gallery(gallery))
