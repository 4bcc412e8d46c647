"""`report.html` of a study with people: who took part, what they recovered, preferred and rated, and judges beside
them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from katha.app.reports.figures import people_figures, write_figures
from katha.app.reports.page import data_uri, write_page
from katha.eval_bridge.people.preferences import criteria
from katha.schema import DIMENSIONS
from katha.schema.people import BoardJudgments, PeopleScores, Rating

FIGURES = "figures"
_RATINGS = {
    "visual": "Visual quality",
    "ncs": "Narrative coherence (NCS)",
    "mas": "Moral alignment (MAS)",
    "ees": "Emotional expressiveness (EES)",
}


class Picture(NamedTuple):
    """A figure on the page."""

    uri: str
    title: str
    alt: str
    name: str


def write_people_report(out: Path, scores: PeopleScores) -> Path:
    """Write `out/report.html` and `out/figures`, and return the page's path.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    drawn = people_figures(scores)
    write_figures(out / FIGURES, drawn)
    methods = scores.methods or {"": scores}
    return write_page(
        out / "report.html",
        "people.html.j2",
        scores=scores,
        methods=methods,
        ratings={name: _ratings(own) for name, own in methods.items()},
        dimensions=DIMENSIONS,
        questions={item.name: item for item in criteria()},
        figures=[Picture(data_uri(item.svg, "image/svg+xml"), item.title, item.alt, item.name) for item in drawn],
    )


def _ratings(own: BoardJudgments) -> Mapping[str, Rating]:
    """The ratings of one method's boards by what they are called."""
    named = {word: getattr(own, name) for name, word in _RATINGS.items()}
    told = {item.name: f"{item.name} {item.question}" for item in criteria()}
    asked = {told.get(name, name): row for name, row in (own.criteria or {}).items()}
    return {word: row for word, row in {**named, **asked}.items() if row is not None}
