"""`report.html` of an ablation, of a comparison and of a tuning, each made from its table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from katha.app.reports.charts import Axis, curve
from katha.app.reports.figures import people_figures, write_figures
from katha.app.reports.metrics_page import read_measures
from katha.app.reports.page import DASH, Picture, data_uri, panel_uri, pictures, worded, write_page
from katha.eval_bridge.people.preferences import criteria
from katha.eval_bridge.scoring.gate import CANNOT
from katha.experiments.ablate.conclusions import ALPHA, sentence_of
from katha.jsonio import read_json, read_record
from katha.schema import DIMENSIONS, Board
from katha.schema.people import BoardJudgments, PeopleScores, Rating
from katha.schema.scores import Comparison
from katha.schema.tables import (
    AblationRow,
    AblationTable,
    CompareTable,
    HumanColumns,
    MethodRow,
    RepairCase,
    TuningResult,
)

FIGURES = "figures"
_RATINGS = {
    "visual": "Visual quality",
    "ncs": "Narrative coherence (NCS)",
    "mas": "Moral alignment (MAS)",
    "ees": "Emotional expressiveness (EES)",
    "identity": "Same characters (ViStoryBench, 0 to 4)",
    "environment": "Same places (ViStoryBench, 0 to 4)",
    "aesthetics": "Aesthetics (ViStoryBench, 0 to 4)",
}


class _Figure(NamedTuple):
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
        figures=[_Figure(data_uri(item.svg, "image/svg+xml"), item.title, item.alt, item.name) for item in drawn],
    )


def _ratings(own: BoardJudgments) -> Mapping[str, Rating]:
    """The ratings of one method's boards by what they are called."""
    named = {word: getattr(own, name) for name, word in _RATINGS.items()}
    told = {item.name: f"{item.name} {item.question}" for item in criteria()}
    asked = {told.get(name, name): row for name, row in (own.criteria or {}).items()}
    return {word: row for word, row in {**named, **asked}.items() if row is not None}


_HUMAN = (
    ("human image", "recoverability", "image", ".1f"),
    ("human STG", "recoverability", "stg", ".1f"),
    ("HMR@1", "moral", "hmr1", ".1f"),
    ("HMR@3", "moral", "hmr3", ".1f"),
    ("NCS", "ncs", "mean", ".2f"),
    ("MAS", "mas", "mean", ".2f"),
    ("EES", "ees", "mean", ".2f"),
    ("visual", "visual", "mean", ".2f"),
    ("human score", "human_mean", "mean", ".2f"),
    ("localization", "localization", "right", ".1f"),
    ("Spearman", "human_score", "spearman", ".2f"),
    ("agreement", "agreement", "agreement", ".1f"),
    ("false accepts", "agreement", "false_accept", ".1f"),
    ("false rejects", "agreement", "false_reject", ".1f"),
    ("defects found", "ambiguity_detected", "detected", ".1f"),
)
"""The human columns: what each is called, its section and number, and how it is written."""
_TONES = {"shown": "better", "partly shown": "mixed", "refuted": "worse"}
_GROUPS = (
    ("success", "Successes", "The repairs that lowered the gap most."),
    ("boundary", "Boundaries", "Repairs that changed least."),
    ("harm", "Harms", "The repairs that raised the gap most."),
)
_REPEATED = ("command", "katha", "config", "suite", "lock", "plugins", "prompts")
_INLINE = 30
"""So many stories are shown with their pictures."""
_WORDS = {
    "candidates": "Candidates",
    "lambda_r": "Weight of recoverability",
    "lambda_t": "Weight of coverage",
    "lambda_p": "Weight of the copy penalty",
    "delta": "Coverage threshold δ",
    "gamma": "Copy threshold γ",
    "repair_threshold": "Repair threshold",
}


def write_ablation_report(out: Path) -> Path:
    """Write `out/report.html` of an ablation: the table, what its differences support and cost, and the repair cases.

    Raises:
        InputFileError: a file of the ablation is missing or broken.
    """
    table, state = read_record(out / "table.json", AblationTable), read_json(out / "ablation.json")
    shown = [row.headline for row in table.rows if row.headline is not None]
    numbers = [value for row in shown for value in (row.delta_stg, *(row.ci95 or ())) if value is not None]
    cases = table.cases.cases if table.cases is not None else []
    return write_page(
        out / "report.html",
        "ablation.html.j2",
        table=table,
        pairs=[sentence_of(row) for row in table.comparisons],
        axis=Axis.around(numbers, -1.0, 1.0),
        # Rows with the baseline's boards: their change is neither gain nor loss.
        same={item.a for item in table.comparisons if item.b == table.baseline and item.same is not None},
        tone=_TONES.get(table.conclusion.verdict, "open"),
        groups=_GROUPS,
        pictures={(case.story_id, case.after): _case_pictures(case, out) for case in cases},
        measures=read_measures(out),
        repeat=[(name, worded(name, state[name])) for name in _REPEATED],
        people=people_table(table.rows),
    )


def people_words(human: HumanColumns) -> dict[str, str]:
    """Return what people say of one row's boards: the human columns that have a value, worded."""
    found = {}
    for name, section, key, form in _HUMAN:
        own = getattr(human, section)
        value = getattr(own, key) if own is not None else None
        if value is not None:
            found[name] = format(value, form)
    return found


def people_table(rows: Sequence[AblationRow]) -> list[tuple[str, dict[str, str]]]:
    """Return the report's table of judgments: each judged row's cells by the columns that any of them has."""
    cells = [(row.mode, people_words(row.human)) for row in rows if row.human is not None]
    names = [name for name, *_ in _HUMAN if any(name in found for _, found in cells)]
    return [(mode, {name: found.get(name, DASH) for name in names}) for mode, found in cells if names]


def _case_pictures(case: RepairCase, out: Path) -> list[Picture]:
    """The board after the repair; what was inserted is `new`."""
    found = []
    for frame in case.frames:
        new = frame.sha256 not in case.frames_before
        alt = f"Frame {frame.index}" + (", inserted" if new else "")
        found.append(Picture(panel_uri(out / "panels" / f"{frame.sha256}.png", small=True), "new" if new else "", alt))
    return found


def write_compare_report(out: Path) -> Path:
    """Write `out/report.html` of a comparison: validity, gap, differences, stories side by side.

    Raises:
        InputFileError: a file of the comparison is missing or broken.
    """
    state, table = read_json(out / "compare.json"), read_record(out / "table.json", CompareTable)
    slugs = {method["name"]: method["slug"] for method in state["methods"]}
    shown = [story.story_id for story in table.stories[:_INLINE]]
    boards = {
        (row.name, story): _board_pictures(out / "boards" / slugs[row.name] / str(row.seeds[0]) / story, row)
        for row in table.methods
        for story in shown
    }
    return write_page(
        out / "report.html",
        "compare.html.j2",
        table=table,
        boards=boards,
        dimensions=DIMENSIONS,
        reading=_reading,
        measures=read_measures(out),
        repeat=[
            *((name, worded(name, state[name])) for name in ("command", "katha")),
            ("shared settings", worded("config", state["config"])),
            *((method["name"], worded("plugins", method["plugins"])) for method in state["methods"]),
        ],
    )


def _reading(row: Comparison) -> str:
    """Return what a difference supports: its interval and both its corrected p must say so."""
    apart = row.ci95 is not None and (row.ci95[0] > 0 or row.ci95[1] < 0)
    if not row.headline:
        return "beside the headline" + ("; the signs disagree" if row.disagree else "")
    if not apart or any(p is None or p >= ALPHA for p in (row.p_corrected, row.p_bootstrap_corrected)):
        return "no difference is shown"
    return f"{row.a if (row.difference or 0.0) < 0 else row.b} loses less"


def _board_pictures(folder: Path, row: MethodRow) -> list[Picture]:
    """The frames of the first seed's board; none where there is no board."""
    if not (folder / "storyboard.json").is_file():
        return []
    frames = read_record(folder / "storyboard.json", Board).frames
    return pictures(row.name, [(frame.index, frame.kind, folder / frame.image) for frame in frames])


def write_tuning_report(out: Path) -> Path:
    """Write `out/report.html` of a tuning: the choice, its gain, and the validation curve.

    Raises:
        InputFileError: `tuning.json` is missing or broken.
    """
    tuning = read_record(out / "tuning.json", TuningResult)
    return write_page(
        out / "report.html",
        "tuning.html.j2",
        tuning=tuning,
        curves={name: curve(tried) for name, tried in tuning.curve.items()},
        words=_WORDS,
        advice=advice(tuning),
    )


def advice(tuning: TuningResult) -> str:
    """Return a warning where the choice is not shown to be better than the settings before; nothing where it is."""
    unseen, before, span = tuning.cross_validated, tuning.default_stg, tuning.gain.ci95
    if tuning.unmeasured is not None:
        return f"These boards {CANNOT}: {tuning.unmeasured}. Nothing was chosen: the settings stay as they were."
    if tuning.setting == tuning.default:
        return "Nothing that was tried is better than the settings before."
    if unseen is not None and before is not None and unseen >= before:
        return (
            f"On unseen stories the choice is no better than the settings before ({before:.1f}): tune on more stories."
        )
    if span is None:
        return "There are too few stories to show that the choice is better than the settings before."
    if span[1] >= 0.0:
        return "That the choice is better than the settings before is not shown: the interval holds zero."
    return ""
