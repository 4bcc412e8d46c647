"""Figures as SVG and PNG: tables, and those of a study with people (Figs. 4 to 10), which are never pooled."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from katha.eval_bridge.people.preferences import criteria
from katha.jsonio import write_bytes_atomic
from katha.models.checkpoints import need
from katha.schema.people import PeopleScores, PreferencePair, PreferenceTest
from katha.tables import DataTable, NumberWithInterval, number_of

_COLOURS = ("#8a2c20", "#d98b6a", "#d9d3c4", "#7fa8c9", "#2f5f8f")
_INK, _SOFT, _GOOD = "#2b2a33", "#8d8794", "#2c7a4b"
_STYLE = {
    "svg.hashsalt": "katha",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": _SOFT,
}
_DPI = 160


class Figure(NamedTuple):
    """One figure: its file's name, what it is called, what it shows in words, and its bytes."""

    name: str
    title: str
    alt: str
    svg: bytes
    png: bytes


def people_figures(scores: PeopleScores) -> list[Figure]:
    """Return the figures that the scores have the numbers for.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    return [drawn for drawn in _figures(scores) if drawn is not None]


def write_figures(folder: Path, drawn: Sequence[Figure]) -> list[Path]:
    """Write each figure as SVG and PNG, take away the `fig*` of an earlier scoring, and return the files."""
    names = [f"{item.name}{end}" for item in drawn for end in (".svg", ".png")]
    for old in folder.glob("fig*"):
        if old.name not in names:
            old.unlink()
    for item in drawn:
        write_bytes_atomic(folder / f"{item.name}.svg", item.svg)
        write_bytes_atomic(folder / f"{item.name}.png", item.png)
    return [folder / name for name in names]


def _figures(scores: PeopleScores) -> Iterator[Figure | None]:
    for number, pair in enumerate(scores.preferences or (), 1):
        about = f"{pair.a} against {pair.b}"
        named = f"{pair.task}-{number}"
        ranked = sorted(pair.criteria.items(), key=lambda item: -(item[1].mean or 0.0))
        yield _drawn(f"fig04-distributions-{named}", f"Distribution of preferences, {about}", pair.criteria, _shares)
        yield _drawn(f"fig05-density-{named}", f"Preference density, {about}", _by_dimension(pair), _density)
        yield _drawn(f"fig06-dimensions-{named}", f"Mean preference by dimension, {about}", _by_dimension(pair), _means)
        yield _drawn(f"fig07-ranked-{named}", f"Criteria by mean preference, {about}", dict(ranked), _means)
        yield _drawn(f"fig08-significance-{named}", f"Corrected tests, {about}", pair.criteria, _significance)
        if len(pair.groups) > 1:
            yield _drawn(f"fig09-groups-{named}", f"Preference by participant group, {about}", pair.groups, _means)
    yield _calibration(scores)


Rows = dict[str, PreferenceTest]


def _by_dimension(pair: PreferencePair) -> Rows:
    """The dimensions in the order of Table 51."""
    order = list(dict.fromkeys(item.dimension for item in criteria()))
    return dict(sorted(pair.dimensions.items(), key=lambda item: order.index(item[0]) if item[0] in order else 99))


def _drawn(name: str, title: str, rows: Rows, draw: Callable[[Any, Rows], None]) -> Figure:
    alt = "; ".join(f"{row}: mean {test.mean:+.2f} of {test.n}" for row, test in rows.items() if test.mean is not None)
    return _rendered(name, title, alt, (7.2, 1.2 + 0.32 * len(rows)), lambda axes: draw(axes, rows))


def table_figure(table: DataTable) -> Figure | None:
    """Return a table's columns that have intervals, a panel each, and the rows with a number there from the top down;
    None without such a column.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    spans = [[isinstance(cell, NumberWithInterval) and cell.ci95 is not None for cell in row] for row in table.rows]
    shown = [at for at in range(len(table.columns)) if any(row[at] for row in spans)]
    if not shown:
        return None
    rows = [row for row in table.rows if any(number_of(row[at]) is not None for at in shown)]
    cells = list(zip(*rows, strict=True))
    texts = [own for own in cells if all(isinstance(cell, str) for cell in own)]
    labels = [", ".join(str(cell) for cell in row if cell) for row in zip(*texts, strict=True)]
    alt = "; ".join(
        f"{label}: {', '.join(f'{table.columns[at].heading} {value:.1f}' for at, value in told)}"
        for label, row in zip(labels, rows, strict=True)
        if (told := [(at, value) for at in shown if (value := number_of(row[at])) is not None])
    )

    def draw(panels: Any) -> None:
        places = np.arange(len(labels))[::-1]
        for axes, at in zip(np.atleast_1d(panels), shown, strict=True):
            for place, cell in zip(places, cells[at], strict=True):
                value, ends = number_of(cell), cell.ci95 if isinstance(cell, NumberWithInterval) else None
                if ends is not None:
                    axes.plot(ends, [place, place], color=_COLOURS[4], linewidth=2)
                if value is not None:
                    axes.plot([value], [place], "o", color=_COLOURS[4], markersize=5)
            axes.set_xlabel(table.columns[at].heading)
            axes.set_yticks(places, labels)
            axes.set_ylim(-0.6, len(labels) - 0.4)

    size = (4.2 + 2.6 * len(shown), 1.4 + 0.32 * len(labels))
    return _rendered(table.name, table.title, alt, size, draw, panels=len(shown))


def _rendered(
    name: str, title: str, alt: str, size: tuple[float, float], draw: Callable[[Any], None], *, panels: int = 1
) -> Figure:
    matplotlib, figures = need("matplotlib", "Drawing figures"), need("matplotlib.figure", "Drawing figures")
    with matplotlib.rc_context(_STYLE):
        figure = figures.Figure(figsize=size, layout="constrained")
        axes = figure.subplots(1, panels, sharey=True)
        draw(axes)
        if panels > 1:
            figure.suptitle(title, fontsize=10, x=0.01, ha="left", color=_INK)
        else:
            axes.set_title(title, fontsize=10, loc="left", color=_INK)
        svg, png = io.BytesIO(), io.BytesIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=_DPI)
    return Figure(name, title, alt, svg.getvalue(), png.getvalue())


def _named(axes: Any, rows: Rows) -> np.ndarray[Any, Any]:
    """Write the rows' names from the top down, and return their places."""
    places = np.arange(len(rows))[::-1]
    axes.set_yticks(places, list(rows))
    axes.set_ylim(-0.6, len(rows) - 0.4)
    return places


def _shares(axes: Any, rows: Rows) -> None:
    """Fig. 4: the share of each score, disagreement to the left of zero."""
    places = _named(axes, rows)
    counts = np.array([[test.counts.get(score, 0) for score in range(-2, 3)] for test in rows.values()])
    shares = 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    left = -(shares[:, 0] + shares[:, 1] + shares[:, 2] / 2)
    for at, score in enumerate(range(-2, 3)):
        label = f"{score:+d}" if score else "0"
        axes.barh(places, shares[:, at], left=left, color=_COLOURS[at], label=label, height=0.7)
        left = left + shares[:, at]
    axes.axvline(0, color=_INK, linewidth=0.8)
    axes.set_xlabel("per cent of judgments; positive scores to the right")
    axes.legend(ncols=5, loc="upper center", bbox_to_anchor=(0.5, -0.18 - 0.6 / len(rows)), frameon=False)


def _density(axes: Any, rows: Rows) -> None:
    """Fig. 5: violins; scores of one value only are a line."""
    places = _named(axes, rows)
    for place, test in zip(places, rows.values(), strict=True):
        values = np.repeat(list(test.counts), list(test.counts.values())).astype(float)
        if len(set(values.tolist())) > 1:
            drawn = axes.violinplot([values], [place], orientation="horizontal", widths=0.8, showextrema=False)
            (body,) = drawn["bodies"]
            body.set(facecolor=_COLOURS[3], edgecolor=_COLOURS[4], alpha=0.8)
        axes.plot([test.mean], [place], "o", color=_INK, markersize=4)
    _scale(axes, "preference score; the dot is the mean")


def _scale(axes: Any, words: str) -> None:
    axes.axvline(0, color=_INK, linewidth=0.8)
    axes.set_xlim(-2.2, 2.2)
    axes.set_xlabel(words)


def _means(axes: Any, rows: Rows) -> None:
    """Figs. 6, 7 and 9: means with intervals over participants."""
    for place, test in zip(_named(axes, rows), rows.values(), strict=True):
        _whisker(axes, place, test, test.ci95_raters, _COLOURS[4])
    _scale(axes, "mean preference, 95% over participants")


def _significance(axes: Any, rows: Rows) -> None:
    """Fig. 8: means with intervals over participants and stories, and corrected p-values."""
    for place, test in zip(_named(axes, rows), rows.values(), strict=True):
        _whisker(axes, place, test, test.ci95_both, _GOOD if test.shown else _SOFT)
        both = [value for value in (test.p_corrected, test.p_both_corrected) if value is not None]
        if both:
            axes.text(2.25, place, f"p {max(both):.3f}", va="center", fontsize=8, color=_INK)
    _scale(axes, "mean preference, 95% over participants and stories; p corrected, green: below 0.05")


def _whisker(axes: Any, place: float, test: PreferenceTest, ends: tuple[float, float] | None, colour: str) -> None:
    if test.mean is None:
        return
    if ends is not None:
        axes.plot(ends, [place, place], color=colour, linewidth=2)
    axes.plot([test.mean], [place], "o", color=colour, markersize=5)


def _calibration(scores: PeopleScores) -> Figure | None:
    """Fig. 10: each board's image recoverability by people and by a judge; a colour and a line of its own a method."""
    series = [
        (f"{method}, {judge}" + (f" (rho {row.image.spearman:.2f})" if row.image.spearman is not None else ""), row)
        for method, own in (scores.methods or {}).items()
        for judge, row in (own.judges or {}).items()
        if row.boards
    ]
    if not series:
        return None

    def draw(axes: Any) -> None:
        axes.plot([0, 100], [0, 100], color=_SOFT, linewidth=0.8, linestyle="--")
        for at, (label, row) in enumerate(series):
            human, judge = [one.human for one in row.boards], [one.judge for one in row.boards]
            axes.plot(human, judge, "os^Dv"[at % 5], color=f"C{at}", alpha=0.75, markersize=6, label=label)
        axes.set(xlim=(-3, 103), ylim=(-3, 103), xlabel="people, image recoverability", ylabel="judge")
        axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1.0, 1.0))

    alt = "; ".join(f"{label}: {len(row.boards)} boards" for label, row in series)
    return _rendered("fig10-calibration", "Judges beside people, board by board", alt, (7.2, 4.0), draw)
