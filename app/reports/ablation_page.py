"""`report.html` of an ablation: the table, what its differences support, what it costs, and the repair cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from katha.app.reports.charts import Axis
from katha.app.reports.page import DASH, Picture, panel_uri, read_record, write_page
from katha.jsonio import dumps, read_json
from katha.schema.tables import AblationRow, AblationTable, HumanColumns, RepairCase

_HUMAN = (
    ("human image", "recoverability", "image", ".1f"),
    ("human STG", "recoverability", "stg", ".1f"),
    ("HMR@1", "moral", "hmr1", ".1f"),
    ("HMR@3", "moral", "hmr3", ".1f"),
    ("NCS", "ncs", "mean", ".2f"),
    ("MAS", "mas", "mean", ".2f"),
    ("EES", "ees", "mean", ".2f"),
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


class PeopleTable(NamedTuple):
    """The columns that any row has of people's judgments, and each judged row's cells by column."""

    names: list[str]
    rows: list[tuple[str, dict[str, str]]]


class CaseGroup(NamedTuple):
    """Repair cases of one kind, each with the pictures of its board."""

    title: str
    what: str
    cases: list[tuple[RepairCase, list[Picture]]]


def write_ablation_report(out: Path) -> Path:
    """Write `out/report.html` and return its path.

    Raises:
        InputFileError: a file of the ablation is missing or broken.
    """
    table, state = read_record(out / "table.json", AblationTable), read_json(out / "ablation.json")
    rows = [row for row in table.rows if row.not_run is None]
    numbers = [value for row in table.rows for value in (row.delta_stg, *(row.ci95 or ())) if value is not None]
    return write_page(
        out / "report.html",
        "ablation.html.j2",
        table=table,
        rows=rows,
        not_run=[row for row in table.rows if row.not_run is not None],
        axis=Axis.around(numbers, -1.0, 1.0),
        same={row.mode for row in rows if _same(row, table)},
        tone=_TONES.get(table.conclusion.verdict, "open"),
        groups=_groups(table, out),
        repeat=_repeat(state),
        people=people_table(table.rows),
        measured=table.conclusion.verdict == "measured",
        moral=any(row.chance is not None for row in rows),
        apart=any(row.improved is not None for row in rows),
        uneven=any(row.stories not in (None, table.stories) for row in rows),
        leaks=any(row.ambiguity_leakage for row in rows),
        steered=any(row.steered for row in table.rows),
    )


def people_words(human: HumanColumns) -> list[str]:
    """Return what people say of one row's boards, one phrase a column that has a value."""
    return [f"{name} {value}" for name, value in _human(human).items()]


def people_table(rows: Sequence[AblationRow]) -> PeopleTable | None:
    """Return the report's table of judgments; None where there is none."""
    cells = [(row.mode, _human(row.human)) for row in rows if row.human is not None]
    names = [name for name, *_ in _HUMAN if any(name in found for _, found in cells)]
    if not names:
        return None
    return PeopleTable(names, [(mode, {name: found.get(name, DASH) for name in names}) for mode, found in cells])


def _human(human: HumanColumns) -> dict[str, str]:
    """The human columns that have a value, worded."""
    found = {}
    for name, section, key, form in _HUMAN:
        own = getattr(human, section)
        value = None if own is None else getattr(own, key)
        if value is not None:
            found[name] = format(value, form)
    return found


def _same(row: AblationRow, table: AblationTable) -> bool:
    """Whether the row has the baseline's boards, so that its change is neither gain nor loss."""
    pair = (row.mode, table.baseline)
    return any((item.a, item.b) == pair and item.same is not None for item in table.comparisons)


def _groups(table: AblationTable, out: Path) -> list[CaseGroup]:
    if table.cases is None:
        return []
    shown = [(case, _pictures(case, out)) for case in table.cases.cases]
    return [
        CaseGroup(title, what, [item for item in shown if item[0].group == group]) for group, title, what in _GROUPS
    ]


def _pictures(case: RepairCase, out: Path) -> list[Picture]:
    """The board after the repair; what was inserted is `new`."""
    found = []
    for frame in case.frames:
        new = frame.sha256 not in case.frames_before
        alt = f"Frame {frame.index}" + (", inserted" if new else "")
        found.append(Picture(panel_uri(out / "panels" / f"{frame.sha256}.png", small=True), "new" if new else "", alt))
    return found


def _repeat(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    shown = [("command", " ".join(state["command"])), ("katha", state["katha"])]
    return shown + [(name, dumps(state[name]).strip()) for name in ("config", "suite", "lock", "plugins", "prompts")]
