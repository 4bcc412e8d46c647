"""Story by story: run every row, judge its boards, keep the result; then the table. After a kill it goes on."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from katha import __version__
from katha.agents.ablation.bench import StoryBench
from katha.agents.ablation.folder import HELD_OUT, AblationFolder, protocol_of
from katha.agents.ablation.job import AblationJob, AblationResult
from katha.agents.ablation.records import RowBoard, StoryResult
from katha.agents.ablation.table import write_table
from katha.agents.graph import Graph, build_graph
from katha.agents.record import prompt_hashes
from katha.agents.types import OF_ONE_STORY, Emit, unheard
from katha.config import cache_folder
from katha.errors import (
    MissingExtraError,
    OutputFolderError,
    TransientRenderError,
    UnknownPluginError,
    UsageError,
)
from katha.eval_bridge.matching import Rule
from katha.eval_bridge.separation import require_separate
from katha.jsonio import digest, read_json, write_json
from katha.schema import Answer, StoryRecord
from katha.store import Store

__all__ = ["run_ablation"]

OnStory = Callable[[str, int], None]


def run_ablation(
    job: AblationJob, out: Path, *, on_story: OnStory | None = None, on_event: Emit | None = None
) -> AblationResult:
    """Run the suite of `job` into the folder `out` and leave `table.json` there.

    The same call again does nothing (with other judgments by people, it makes the table again); after a kill it goes
    on, pays for nothing twice and ends with the same bytes.

    Raises:
        UsageError: something is wrong with the input, before any work (OutputFolderError: with `out`).
        JudgeError, StoreError: the work failed; call again to go on.
    """
    job.settle()
    folder = AblationFolder(out)
    with folder.claim():
        state = _begin(job, folder)
        human = job.people.mark() if job.people is not None else None
        if state["status"] == "finished" and folder.table.is_file() and state.get("human") == human:
            return AblationResult(out, read_json(folder.table), reused=True)
        with Store(cache_folder(), owner=state["identity"]) as store:
            graph, rule = build_graph(reports=False), folder.rule(job.config.matching)
            for place, record in enumerate(job.records, 1):
                if folder.finished(record.story_id, job.story_identity(record)) is None:
                    _run_story(job, folder, store, (graph, rule), record, on_event or unheard)
                if on_story is not None:
                    on_story(record.story_id, place)
            store.flush()
        table = write_table(job, folder)
        write_json(folder.state, {**state, "status": "finished", "human": human})
        return AblationResult(out, table, reused=False)


def _begin(job: AblationJob, folder: AblationFolder) -> dict[str, Any]:
    """Write down what is about to run, or find that it is what ran here before.

    Raises:
        OutputFolderError: the folder holds another ablation.
    """
    stories = digest([record.model_dump(mode="json") for record in job.records])
    known = folder.read_state()
    fresh = {
        "format": 1,
        "katha": __version__,
        "identity": job.identity,
        "stories_sha256": stories,
        "status": "running",
        "suite": job.suite.model_dump(mode="json"),
        "config": job.config.model_dump(mode="json"),
        "lock": dict(job.lock) if job.lock else None,
        "stories": [record.story_id for record in job.records],
        "plugins": {row.name: job.plugins(row).specs() for row in job.suite.rows},
        "prompts": prompt_hashes(),
        "command": list(job.command),
    }
    if known is not None:
        if known["identity"] != fresh["identity"]:
            raise OutputFolderError(
                f"{str(folder.path)!r} holds another ablation (suite {known['suite']['name']!r}, or other settings).",
                hint="Choose another --out: what both have in common is in the cache and is not paid for again.",
            )
        if known["stories_sha256"] == stories:
            return known
    write_json(folder.state, fresh)
    return fresh


def _run_story(
    job: AblationJob,
    folder: AblationFolder,
    store: Store,
    machine: tuple[Graph, Rule],
    record: StoryRecord,
    emit: Emit,
) -> None:
    """Every row of one story. A row that has no board is invalid with its reason and stops nothing."""
    started = time.perf_counter()
    bench = StoryBench(record, job, store, folder.story(record.story_id), *machine)
    boards: list[RowBoard] = []
    invalid: dict[str, str] = {}
    answers: dict[str, list[Answer]] = {}
    story: StoryRecord | None = None
    try:
        story = bench.story()
    except (MissingExtraError, UnknownPluginError):
        raise
    except UsageError as error:
        invalid = {bench.method(row, seeds): error.message for row in job.suite.rows for seeds in bench.seeds(row)}
    for row in job.suite.rows if story is not None else ():
        for seeds in bench.seeds(row):
            try:
                made = bench.run(row, seeds, emit)
            except TransientRenderError:
                raise
            except OF_ONE_STORY as error:
                invalid[bench.method(row, seeds)] = error.message
                continue
            answers.setdefault(protocol_of(row), []).extend(bench.judge(made, row, emit))
            boards.append(made)
    if story is not None:
        lengths = {len(item.board.frames) for item in boards}
        require_separate(story, answers.get(HELD_OUT, []), bench.steering, lengths)
    result = StoryResult(
        identity=job.story_identity(record),
        story_id=record.story_id,
        title=record.title,
        boards=boards,
        invalid=invalid,
        seconds=round(time.perf_counter() - started, 3),
    )
    kept = {protocol: _once(rows) for protocol, rows in answers.items()}
    folder.keep(result, story, kept, bench.steering, bench.pictures([item.board for item in boards]))


def _once(rows: list[Answer]) -> list[Answer]:
    """Text-only rows hold for every method and are kept once."""
    seen: dict[tuple[str | None, str, str, str], Answer] = {}
    for row in rows:
        seen[row.method, row.judge, row.question_id, row.condition] = row
    return list(seen.values())
