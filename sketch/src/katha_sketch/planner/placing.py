"""How likely a story is in each place of places.yaml in each of its sentences.

Two tell it: the words of the table, as `heard` counts them, and the network of `english.context`, by how near what
it makes of a sentence, of those around it, of the whole text and of the title is to what it makes of the table's words
for a place. So it knows a place as well that no story was in from which it learned. A small network of its own weighs
the two, the same for all places, and a chain joins the sentences: to be elsewhere than before costs something.
`training/text/placing.py` makes `placing.npz`.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from katha_sketch.english.context import rows_of
from katha_sketch.planner.heard import ELSEWHERE, GONE, Heard, Said
from katha_sketch.planner.moments import Story
from katha_sketch.planner.settings import Setting, settings

__all__ = ["CLUES", "STEPS", "Chance", "clues", "likeliest", "likely", "near", "rows_in", "steps"]

Floats = np.ndarray[Any, np.dtype[np.float64]]
Chance = tuple[Setting | None, float]
FILE = "placing.npz"
CLUES = ("here", "story", "firm", "unfirm", "none", "usual", "often", "around", "next")
"""What the words of the text tell of a place, in the order of the weights."""
STEPS = ("always", "paragraph", "elsewhere", "gone", "firm", "said")
"""What tells whether a sentence is elsewhere than the one before."""
_ENTERS = ("firm", "unfirm", "here")
_AROUND = 2
"""How many sentences before and after one are read with it."""


def likely(story: Story, told: Sequence[Heard]) -> Floats:
    """Return the likelihood of each of `settings()` (a column; the last is any other place) in each sentence."""
    held = _held()
    words, rows = clues(told), rows_in(story)
    among = np.concatenate([words, near(rows, held["centre"], held["described"])], axis=2)
    inner = np.maximum(among @ held["inner"].T + held["inner_bias"], 0.0)
    speaks = among @ held["clues"] + inner @ held["outer"]
    speaks[:, :-1] += _unit(rows - held["centre"]).reshape(len(rows), -1) @ held["rows"].T @ held["places"].T
    enters = words[:, :, [CLUES.index(name) for name in _ENTERS]] @ held["enters"]
    moves = (steps(story, told) @ held["steps"])[:, None] + enters - np.log(speaks.shape[1])
    ahead, back = [speaks[0]], [np.zeros(speaks.shape[1])]
    for at in range(1, len(told)):
        ahead.append(np.logaddexp(ahead[-1], _whole(ahead[-1]) + moves[at]) + speaks[at])
    for at in range(len(told) - 1, 0, -1):
        after = back[-1] + speaks[at]
        back.append(np.logaddexp(after, _whole(after + moves[at])))
    both = np.array(ahead) + np.array(back[::-1])
    found: Floats = np.exp(both - np.array([_whole(one) for one in both])[:, None])
    return found


def likeliest(story: Story, told: Sequence[Heard]) -> list[Chance]:
    """Return the likeliest place of each sentence, None for one that the table does not have, and how likely it is."""
    places: list[Setting | None] = [*settings(), None]
    return [(places[int(row.argmax())], round(float(row.max()), 3)) for row in likely(story, told)]


def _whole(logs: Floats) -> float:
    return float(np.logaddexp.reduce(logs))


def rows_in(story: Story) -> Floats:
    """Return what the network makes of each sentence: four rows."""
    sentences = story.reading.sentences
    return rows_of(story.reading.text, story.title, [(one.start, one.end) for one in sentences]).astype(float)


def clues(told: Sequence[Heard]) -> Floats:
    """Return what the words of each sentence tell of each place: sentence, place, clue."""
    known = {one: at for at, one in enumerate(settings())}
    found = np.zeros((len(told), len(known) + 1, len(CLUES)))
    part = {name: found[:, :, at] for at, name in enumerate(CLUES)}
    speaks = np.zeros((len(told), len(known)))
    for at, one in enumerate(told):
        for key, value in one.speaks.items():
            if isinstance(key, Setting):
                speaks[at, known[key]] = value
        if one.said is not None:
            own = len(known) if isinstance(one.said, Said) else known[one.said]
            part["firm" if one.firm else "unfirm"][at, own] = 1.0
            part["often"][:, own] += one.firm and not part["often"][0, own]
    part["here"][:, :-1] = speaks / 3
    part["story"][:, :-1] = np.log1p(np.maximum(speaks, 0).sum(axis=0))
    part["none"][:, -1] = 1.0
    part["usual"][:, :-1] = np.log([one.usual for one in settings()])
    for at in range(len(told)):
        part["around"][at, :-1] = np.maximum(speaks, 0)[max(0, at - _AROUND) : at + _AROUND + 1].sum(axis=0) / 6
        part["next"][at, :-1] = np.maximum(speaks, 0)[at : at + 2].sum(axis=0) / 6
    return found


def steps(story: Story, told: Sequence[Heard]) -> Floats:
    """Return for each sentence what tells whether it is elsewhere than the one before."""
    paragraphs = [one.paragraph for one in story.reading.sentences]
    return np.array(
        [
            (1, at > 0 and paragraphs[at] != paragraphs[at - 1], one.step <= ELSEWHERE, one.step <= GONE,
             one.said is not None and one.firm, one.said is not None)
            for at, one in enumerate(told)
        ],
        dtype=float,
    )  # fmt: skip


def near(rows: Floats, centre: Floats, described: Floats) -> Floats:
    """Return how near each sentence is to each place: by its rows and by those around it, to each description."""
    heard, alike, whole, title = np.moveaxis(_unit(rows - centre), 1, 0)
    spans = [slice(max(0, at - _AROUND), at + _AROUND + 1) for at in range(len(rows))]
    around = _unit(np.stack([alike[span].mean(axis=0) for span in spans]))
    found = [5 * one @ places.T for one in (heard, alike, whole, around, title) for places in described]
    return np.pad(np.stack(found, axis=2), ((0, 0), (0, 1), (0, 0)))


def _unit(rows: Floats) -> Floats:
    found: Floats = rows / (np.linalg.norm(rows, axis=-1, keepdims=True) + 1e-6)
    return found


@cache
def _held() -> Mapping[str, Floats]:
    """What was learned; of a place that is new in the table nothing is known but its words."""
    with np.load(io.BytesIO(files("katha_sketch.planner").joinpath(FILE).read_bytes()), allow_pickle=False) as read:
        names = read["names"].tobytes().decode().split("\n")
        held: dict[str, Floats] = {name: read[name].astype(float) for name in read.files if name != "names"}
    rows = [names.index(one.place) if one.place in names else len(names) for one in settings()]
    for name in ("described", "places"):
        more = np.zeros((*held[name].shape[:-2], 1, held[name].shape[-1]))
        held[name] = np.concatenate([held[name], more], axis=-2)[..., rows, :]
    return held
