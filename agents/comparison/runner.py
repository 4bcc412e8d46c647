"""Draw every method's boards, judge them all alike, and make the table. After a kill it goes on where it stopped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from katha import __version__
from katha.agents.comparison.drawing import Artist
from katha.agents.comparison.job import CompareJob, CompareResult
from katha.agents.comparison.table import build_table
from katha.agents.types import Emit, unheard
from katha.config import cache_folder
from katha.errors import InputFileError, OutputFolderError, RecordError
from katha.eval_bridge import iter_answers, require_rule, score
from katha.eval_bridge.boards import Boards
from katha.eval_bridge.eval_folder import EvalFolder
from katha.eval_bridge.evaluate import EvalSettings
from katha.eval_bridge.evaluation import EvalJob, EvalResult, evaluate
from katha.eval_bridge.rules import make_decider, open_rule
from katha.jsonio import canonical, iter_lines, read_json, write_bytes_atomic, write_json
from katha.schema import StoryRecord
from katha.store import LockTaken, Store, file_lock

__all__ = ["run_comparison"]

OnStory = Callable[[str, str], None]
_FILE, _LOCK, _HINT = "compare.json", ".lock", "Choose another --out."


def run_comparison(
    job: CompareJob,
    out: Path,
    *,
    on_story: OnStory | None = None,
    on_event: Emit | None = None,
) -> CompareResult:
    """Compare into the folder `out`: boards, answers, `scores.json` and `table.json`.

    The same call again does nothing; after a kill it goes on, draws and asks nothing twice. A story that a method
    cannot draw is invalid for it, with the reason, and stops nothing. A budget that is used up leaves the comparison
    unfinished: what was paid for is kept, and the same call with a larger one goes on.

    Raises:
        UsageError: something is wrong with the input, before any work (OutputFolderError: with `out`); or a service
        refuses the key. JudgeError, StoreError: the work failed; call again to go on.
    """
    require_rule(job.config.matching)
    _check_ids(job)
    identity, _ = job.identity(), job.judges
    with _claim(out):
        state = _state(out, job, identity)
        if state["status"] == "finished" and (out / "table.json").is_file():
            return CompareResult(out, read_json(out / "table.json"), reused=True)
        records = _prepared(job, out)
        with Store(cache_folder(), owner=identity[:32]) as store:
            artist = Artist(job, out, store, on_event or unheard, state["failures"])
            write_json(out / _FILE, state)
            for method in job.methods:
                for record in records:
                    artist.draw(method, record)
                    write_json(out / _FILE, {**state, "failures": artist.failures})
                    if on_story is not None:
                        on_story(method.name, record.story_id)
            judged = _judge(job, artist, records, store)
            store.flush()
            services = _services(job, artist, records, store)
        table = _finish(job, artist, records, judged, services)
        again = any(failure["again"] for found in artist.failures.values() for failure in found.values())
        status = "incomplete" if again or judged.state["status"] != "finished" else "finished"
        table["status"] = status
        write_json(out / "table.json", table)
        write_json(out / _FILE, {**state, "failures": artist.failures, "status": status})
        return CompareResult(out, table, reused=False)


def _check_ids(job: CompareJob) -> None:
    """A story's id becomes the name of a folder: refuse what is none."""
    for record in job.records:
        if re.fullmatch(r"[^/\\\x00]{1,200}", record.story_id) is None or set(record.story_id) == {"."}:
            raise RecordError(f"The story id {record.story_id!r} cannot be the name of a folder.", hint="Rename it.")


@contextmanager
def _claim(out: Path) -> Iterator[None]:
    try:
        out.mkdir(parents=True, exist_ok=True)
        entries = {entry.name for entry in out.iterdir()}
    except OSError as error:
        raise OutputFolderError(f"Cannot use {str(out)!r}: {error.strerror}.", hint=_HINT) from error
    if entries - {_LOCK} and _FILE not in entries:
        named = sorted(entries - {_LOCK})[0]
        raise OutputFolderError(f"{str(out)!r} holds files of something else, {named!r} for one.", hint=_HINT)
    try:
        with file_lock(out / _LOCK, wait=False):
            yield
    except LockTaken as error:
        raise OutputFolderError(f"Another katha is working in {str(out)!r}.", hint=f"Wait for it. {_HINT}") from error


def _state(out: Path, job: CompareJob, identity: str) -> dict[str, Any]:
    """What the folder says of itself, or a new state.

    Raises:
        OutputFolderError: it holds another comparison.
    """
    path = out / _FILE
    if path.is_file():
        try:
            known = read_json(path)
        except InputFileError as error:
            raise OutputFolderError(error.message, hint=_HINT) from error
        if not isinstance(known, dict) or known.get("identity") != identity:
            raise OutputFolderError(
                f"{str(out)!r} holds a comparison of other stories, methods or settings.", hint=_HINT
            )
        return known
    return {
        "format": 1,
        "katha": __version__,
        "identity": identity,
        "status": "running",
        "command": list(job.command),
        "config": job.config.model_dump(mode="json"),
        "methods": [
            {
                "name": method.name,
                "slug": method.slug,
                "config": method.config.model_dump(mode="json"),
                **_specs(job, method.name),
            }
            for method in job.methods
        ],
        "failures": {},
    }


def _specs(job: CompareJob, name: str) -> dict[str, Any]:
    return {"plugins": job.plugins[name].specs()}


def _prepared(job: CompareJob, out: Path) -> list[StoryRecord]:
    """The stories with the questions that every method is asked, made once."""
    path = out / "stories.jsonl"
    if path.is_file():
        return [StoryRecord.model_validate_json(line) for _, line in iter_lines(path)]
    records = job.prepare(job.records)
    write_bytes_atomic(path, b"".join(canonical(record.model_dump(mode="json")) + b"\n" for record in records))
    return records


def _judge(job: CompareJob, artist: Artist, records: Sequence[StoryRecord], store: Store) -> EvalResult:
    config = job.config
    boards = [
        Boards(name, artist.folder(method, seed)) for method in job.methods for name, seed in job.boards(method).items()
    ]
    for board in boards:
        board.folder.mkdir(parents=True, exist_ok=True)
    settings = EvalSettings(
        answers=config.answers,
        variant=config.variant,
        matching=config.matching,
        questions=job.selection,
        resamples=0,
        seed=job.seed,
    )
    made = EvalJob(
        records=records,
        methods=boards,
        judges=job.judges,
        settings=settings,
        decider=make_decider(config.matching, config.base_url),
        command=tuple(job.command),
    )
    return evaluate(made, artist.out / "judging", store, budget=job.budget)


def _services(job: CompareJob, artist: Artist, records: Sequence[StoryRecord], store: Store) -> dict[str, Any]:
    """By method, which services drew its frames: model, served version, dates, frames and dollars (G.5)."""
    from katha.agents.record import by_service

    found = {}
    for method in job.methods:
        panels = [
            path.stem
            for seed in job.boards(method).values()
            for record in records
            for path in sorted((artist.folder(method, seed) / record.story_id / "panels").glob("*.png"))
        ]
        drawn = by_service(store, panels)
        if drawn:
            found[method.name] = drawn
    return found


def _finish(
    job: CompareJob, artist: Artist, records: Sequence[StoryRecord], judged: EvalResult, services: dict[str, Any]
) -> dict[str, Any]:
    """Write `scores.json`, where a method's seeds count together, and make the table."""
    folder = EvalFolder(artist.out / "judging")
    reasons = _reasons(judged.state["invalid"], artist)
    boards = {method.name: list(job.boards(method)) for method in job.methods}
    missing = {
        name: {
            record.story_id: reasons[members[0]][record.story_id]
            for record in records
            if all(record.story_id in reasons.get(member, {}) for member in members)
        }
        for name, members in boards.items()
    }
    rule = open_rule(job.config.matching, [folder.verdicts])
    scores = score(
        records,
        iter_answers(folder.answers),
        matching=rule,
        questions=job.selection,
        resamples=job.resamples,
        seed=job.seed,
        invalid=missing,
        pooled=boards,
    )
    for name, found in missing.items():
        if name not in scores["methods"]:
            scores["methods"][name] = {"stories": 0, "invalid_stories": found, "judges": {}}
            scores["notes"].append(f"{name}: no story has a board that can be judged.")
    write_json(artist.out / "scores.json", scores)
    return build_table(job, records, scores, reasons, lambda: iter_answers(folder.answers), rule, services)


def _reasons(invalid: dict[str, dict[str, str]], artist: Artist) -> dict[str, dict[str, str]]:
    """Why a board is not there or cannot be judged: what its renderer said, else what the reader of boards found."""
    merged = {name: dict(found) for name, found in invalid.items()}
    for name, failures in artist.failures.items():
        merged.setdefault(name, {}).update({story: failure["reason"] for story, failure in failures.items()})
    return merged
