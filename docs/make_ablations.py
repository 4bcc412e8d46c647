"""Runs every suite over a folder of stories and writes the measured tables into `docs/ablations.md`.

`python docs/make_ablations.py STORIES OUT`: one command a suite, one after another. The same call goes on after a kill;
a suite that is finished is only read. Processor time is taken from the run that did the work; after a kill it is what
the rest took, and says "at least".
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

from katha.compass.modes import suite_names
from katha.experiments.ablate.conclusions import p_words
from katha.schema.tables import AblationRow, AblationTable

PAGE = Path(__file__).parent / "ablations.md"
BEGIN, END = "<!-- measured: make_ablations.py -->", "<!-- measured: end -->"
_FIRST = ("length", "components")
"""The suites that draw most boards go first, so that the others find them in the cache."""


def run(suite: str, stories: Path, out: Path) -> tuple[AblationTable, str]:
    """Return the table of one suite and its seconds of processor time in words, kept in `OUT/SUITE.seconds`."""
    note = out / f"{suite}.seconds"
    begun = (out / suite / "ablation.json").exists()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", "from katha.app.cli.main import main; main()", "ablate", str(stories)]
    done = subprocess.run(
        [*command, "--suite", suite, "--out", str(out / suite), "--json"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"katha ablate --suite {suite} ended with {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    note.parent.mkdir(parents=True, exist_ok=True)
    if not note.exists():
        note.write_text(f"{'at least ' if begun else ''}{spent:,.0f}")
    return AblationTable.model_validate(json.loads(done.stdout)["table"]), note.read_text()


def markdown(table: AblationTable, seconds: str) -> str:
    """Return one suite's measured rows, budget, conclusion and pairs."""
    budget = table.budget
    lines = [
        f"### `{table.suite}`",
        "",
        f"{table.stories} stories; {budget.frames_distinct:,} frames (naively {budget.frames_naive:,}), "
        f"{budget.questions_distinct:,} questions (naively {budget.questions_naive:,}); {seconds} s "
        "of processor time with what other suites left in the cache.",
        "",
        f"| row | image | STG | change against `{table.baseline}` (95%) | corrected p | own STG | raw STG | valid "
        "| frames |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_line(row) for row in table.rows),
        "",
        f"{table.conclusion.text}",
        "",
    ]
    pairs = _pairs(table)
    return "\n".join([*lines, *pairs, ""] if pairs else lines)


def _pairs(table: AblationTable) -> list[str]:
    """What the intervals support of the pairs that the suite declares beside those with its baseline."""
    told = zip(table.comparisons, table.conclusion.sentences, strict=True)
    return [f"- {sentence}" for row, sentence in told if row.b != table.baseline and row.nothing is None]


def _line(row: AblationRow) -> str:
    name, shown = f"`{row.mode}`" + (" (steered)" if row.steered else ""), row.headline
    if shown is None or row.frames is None:
        why = "not run" if row.not_run is not None else "no story has a board"
        return f"| {name} | {why} | | | | | | | |"
    span = "" if shown.ci95 is None else f" ({shown.ci95[0]:+.1f} to {shown.ci95[1]:+.1f})"
    change = "-" if shown.delta_stg is None else f"{shown.delta_stg:+.1f}{span}"
    p = "-" if shown.p_corrected is None else p_words(shown.p_corrected)
    raw = _points(row.raw.stg if row.raw is not None else None)
    cells = [_points(shown.image), _points(shown.stg), change, p, _points(row.stg), raw]
    return f"| {' | '.join([name, *cells, f'{shown.n} of {row.scored}', f'{row.frames:.2f}'])} |"


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def put(page: str, measured: str) -> str:
    """`page` with `measured` between its marks."""
    head, rest = page.split(BEGIN, 1)
    return f"{head}{BEGIN}\n\n{measured}\n{END}{rest.split(END, 1)[1]}"


def main(stories: Path, out: Path) -> None:
    """Run every suite and write the page."""
    rest = [name for name in suite_names() if name not in _FIRST]
    parts = []
    for suite in (*_FIRST, *rest):
        parts.append(markdown(*run(suite, stories, out)))
        print(f"{suite}: done", flush=True)
    PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), "\n".join(parts)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
