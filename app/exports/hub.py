"""Results for the Hugging Face Hub: `.eval_results` for the repository of each model whose boards were judged."""

from __future__ import annotations

from pathlib import Path

import yaml

from katha.app.exports.archives import JudgedFolder, safe_name
from katha.app.exports.board import ExportOptions
from katha.configs import load_config
from katha.errors import UsageError
from katha.eval_bridge.bench.publish import require_repository
from katha.eval_bridge.scoring.outcomes import ENSEMBLE
from katha.jsonio import write_bytes_atomic
from katha.schema.scores import JudgeScores


def write_hub_results(folder: JudgedFolder, target: Path, options: ExportOptions) -> None:
    """Write `BOARD/.eval_results/katha.yaml` for each board: one entry a leaderboard of `eval.yaml`, in the form of
    https://huggingface.co/docs/hub/eval-results. Nothing is sent.

    Values are percentage points on the board's own valid questions, by the ensemble or the only judge.

    Raises:
        UsageError: the benchmark's repository is not named, or the answers are steering answers.
    """
    if options.dataset is None:
        raise UsageError("The export 'hub-results' needs the benchmark.", hint="Give --dataset ORGANISATION/NAME.")
    if folder.scores.questions == "steering":
        raise UsageError("Steering answers are no results.", hint="Score the reporting questions.")
    benchmark, tasks = require_repository(options.dataset), load_config("hub.yaml")["benchmark"]["tasks"]
    target.mkdir()
    for method, entry in folder.scores.methods.items():
        judge = ENSEMBLE if ENSEMBLE in entry.judges else next(iter(entry.judges), None)
        if judge is None:
            continue
        told, names = entry.judges[judge], [name for name in entry.judges if not name.startswith(ENSEMBLE)]
        rows = [
            {
                "dataset": {"id": benchmark, "task_id": task},
                "value": round(value, 4),
                "date": folder.created,
                "notes": _notes(told, names, folder.scores.matching, entry.stories),
            }
            for task, name in tasks.items()
            if (value := getattr(told.filtered, name)) is not None
        ]
        place = target / safe_name(method) / ".eval_results"
        place.mkdir(parents=True)
        write_bytes_atomic(place / "katha.yaml", yaml.safe_dump(rows, sort_keys=False).encode("utf-8"))


def _notes(told: JudgeScores, judges: list[str], matching: str, stories: int) -> str:
    span = told.filtered.ci95.stg
    beside = f" (95% {span[0]:.1f} to {span[1]:.1f})" if span is not None else ""
    return (
        f"Judged by {', '.join(judges)}; {stories} stories, {told.n_valid} valid of {told.n_questions} questions; "
        f"STG {told.filtered.stg:.1f}{beside}; matching {matching}."
    )
