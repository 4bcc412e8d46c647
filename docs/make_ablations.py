"""Tunes on the validation fables, runs suites over the test stories, writes both into `docs/ablations.md`.

`python docs/make_ablations.py OUT [tune] [SUITE ...] [--OPTION ...]`, from the root of a checkout; all of them unless
told, each with the options (`--seeds 42,123`). `tune` is
`katha tune` on `tests/data/fables_more/validation`. Then follows one `katha ablate` a suite on the ten examples and the
fables of `tests/data/fables` and `tests/data/fables_more/test`, under the lock where tuning was asked for and wrote
one. A fable that two of these folders tell is taken once, from the first. The same call goes on after a kill; what is
finished is only read. Processor time is taken from the run that did the work; after a kill it is what the rest took,
and says "at least".
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from katha.compass.modes import suite_names
from katha.experiments.ablate.conclusions import p_words
from katha.schema.tables import AblationRow, AblationTable, BlockNumbers, TuningResult

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "ablations.md"
BEGIN, END = "<!-- measured: make_ablations.py -->", "<!-- measured: end -->"
VALIDATION = ROOT / "tests" / "data" / "fables_more" / "validation"
TEST = (ROOT / "examples", ROOT / "tests" / "data" / "fables", ROOT / "tests" / "data" / "fables_more" / "test")
_FIRST = ("length", "components")
"""The suites that draw most boards go first, so that the others find them in the cache."""


def gather(out: Path) -> Path:
    """Return `OUT/stories`, a copy of each test story's text by its name; the first folder that has a name counts."""
    place = out / "stories"
    place.mkdir(parents=True, exist_ok=True)
    for folder in reversed(TEST):
        for text in folder.glob("*.txt"):
            shutil.copyfile(text, place / text.name)
    return place


def call(arguments: list[str], note: Path, begun: bool) -> tuple[dict[str, object], str]:
    """Return what a verb of `katha` prints with `--json`, and its processor seconds in words and its day, kept in
    `note`."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-c", "from katha.app.cli.main import main; main()", *arguments, "--json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"katha {' '.join(arguments)} ended with {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    note.parent.mkdir(parents=True, exist_ok=True)
    if not note.exists():
        day = datetime.now(UTC).date().isoformat()
        note.write_text(f"Measured on {day} in {'at least ' if begun else ''}{spent:,.0f} s of processor time")
    printed: dict[str, object] = json.loads(done.stdout)
    return printed, note.read_text()


def tuned(out: Path, options: Sequence[str] = ()) -> tuple[str, Path | None]:
    """Return what tuning on the validation stories found, in words, and the lock if it wrote one."""
    lock, folder = out / "compass.lock.yaml", out / "tune"
    asked = ["tune", str(VALIDATION), "--lock", str(lock), "--out", str(folder), *options]
    printed, spent = call(asked, out / "tune.measured", (folder / "ablation.json").exists())
    result = TuningResult.model_validate(printed["tuning"])
    return tuning_markdown(result, spent), lock if printed["lock"] else None


def tuning_markdown(result: TuningResult, spent: str) -> str:
    """Return what tuning chose, by how much it is better, and whether a lock was written."""
    changed = {name: value for name, value in result.setting.items() if value != result.default[name]}
    told = ", ".join(f"`{name}` {value:g} (was {result.default[name]:g})" for name, value in changed.items())
    gain = result.gain
    span = "too few for an interval" if gain.ci95 is None else f"95% {gain.ci95[0]:+.1f} to {gain.ci95[1]:+.1f}"
    verdict = (
        "The choice is shown to be better than the defaults, and a lock was written: the suites below are frozen."
        if result.better
        else "Nothing is shown to be better than the defaults, so `tune` wrote no lock: every suite below is unfrozen."
    )
    lines = [
        "### `katha tune`",
        "",
        f"{spent}. {result.stories} validation stories; {result.tried:,} settings tried.",
        f"Chosen: {told or 'the defaults'}.",
        f"STG on these stories {_points(result.stg)}, with the defaults {_points(result.default_stg)} (change "
        f"{_signed(gain.difference)}, {span}; this does not count the choosing).",
        f"STG on stories that the choice did not see ({result.folds} parts): {_points(result.cross_validated)}.",
        verdict,
        "",
    ]
    return "\n".join(lines)


def run(
    suite: str, stories: Path, out: Path, lock: Path | None, options: Sequence[str] = ()
) -> tuple[AblationTable, str]:
    """Return the table of one suite, and its seconds of processor time in words."""
    asked = ["ablate", str(stories), "--suite", suite, "--out", str(out / suite), *options]
    frozen = ["--lock", str(lock)] if lock is not None else []
    begun = (out / suite / "ablation.json").exists()
    printed, spent = call([*asked, *frozen], out / f"{suite}.measured", begun)
    return AblationTable.model_validate(printed["table"]), spent


def markdown(table: AblationTable, spent: str) -> str:
    """Return one suite's measured rows, budget, conclusion and pairs."""
    budget = table.budget
    lines = [
        f"### `{table.suite}`",
        "",
        f"{spent}. {table.stories} stories, {'frozen' if table.frozen else 'unfrozen'}; "
        f"{budget.frames_distinct:,} frames (naively {budget.frames_naive:,}), "
        f"{budget.questions_distinct:,} questions (naively {budget.questions_naive:,}).",
        "",
        f"| row | image | STG | change against `{table.baseline}` (95%) | corrected p | own STG | raw STG "
        "| valid, common | valid, own | given away | change on the rest (95%) | frames |",
        f"|{'---|' * 12}",
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
        return f"| {name} | {why} |{' |' * 10}"
    p = "-" if shown.p_corrected is None else p_words(shown.p_corrected)
    raw = _points(row.raw.stg if row.raw is not None else None)
    cells = [_points(shown.image), _points(shown.stg), _change(shown), p, _points(row.stg), raw]
    given = "-" if row.given_away is None else f"{row.given_away:.0f}%"
    counts = [_share(shown.n, row.scored), _share(row.valid, row.scored), given]
    return f"| {' | '.join([name, *cells, *counts, _change(row.rest), f'{row.frames:.2f}'])} |"


def _change(block: BlockNumbers | None) -> str:
    if block is None or block.delta_stg is None:
        return "-"
    return f"{block.delta_stg:+.1f}" + (
        "" if block.ci95 is None else f" ({block.ci95[0]:+.1f} to {block.ci95[1]:+.1f})"
    )


def _share(valid: int | None, scored: int | None) -> str:
    return "-" if valid is None or not scored else f"{valid:,} of {scored:,} ({100 * valid / scored:.0f}%)"


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.1f}"


def _points(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def put(page: str, measured: str) -> str:
    """`page` with `measured` between its marks."""
    head, rest = page.split(BEGIN, 1)
    return f"{head}{BEGIN}\n\n{measured}\n{END}{rest.split(END, 1)[1]}"


def main(out: Path, *given: str) -> None:
    """Tune if asked, run the suites, and write what was measured into the page; what the page had of others goes."""
    first = next((place for place, word in enumerate(given) if word.startswith("--")), len(given))
    asked, options = given[:first], given[first:]
    parts, lock = [], None
    if not asked or "tune" in asked:
        told, lock = tuned(out, options)
        parts.append(told)
    every = (*_FIRST, *(name for name in suite_names() if name not in _FIRST))
    stories = gather(out)
    for suite in [name for name in asked if name != "tune"] if asked else every:
        parts.append(markdown(*run(suite, stories, out, lock, options)))
        print(f"{suite}: done", flush=True)
    PAGE.write_text(put(PAGE.read_text(encoding="utf-8"), "\n".join(parts)), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
