"""Choose the compass's settings on validation stories and freeze them (Sec. G.4, Table 43).

The loop over settings asks no judge and draws no frame: every board that a setting could end with was measured before.
What is minimised is the STG of the boards on the validation stories' reporting questions; on test stories these
questions stay unseen.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from katha.agents.ablation.folder import AblationFolder
from katha.agents.ablation.job import AblationJob
from katha.agents.freezing import models_of, protocol_of_config
from katha.agents.record import prompt_hashes
from katha.agents.tuning.collect import TuningBench
from katha.agents.tuning.curve import choose
from katha.agents.types import OF_ONE_STORY, unheard
from katha.compass.lock import TEST_SPLITS, Lock, make_lock, text_sha256, write_lock
from katha.compass.suites import Row, Suite
from katha.compass.tuning_data import StoryData
from katha.config import RunConfig, cache_folder
from katha.errors import InputFileError, TransientRenderError, UsageError
from katha.jsonio import read_json, write_json
from katha.schema import StoryRecord
from katha.store import Store

__all__ = ["TuneJob", "TuneResult", "tune"]

OnStory = Callable[[str, int], None]
_MODE = "full"


@dataclass(frozen=True)
class TuneResult:
    """Where the lock is, and how it was chosen (`tuning.json`)."""

    lock: Path
    chosen: dict[str, Any]


@dataclass
class TuneJob:
    """Validation stories and what is tried on them; `others` are stories of the same file, frozen but never used."""

    records: Sequence[StoryRecord]
    others: Sequence[StoryRecord]
    config: RunConfig
    settings: int = 10_000
    resamples: int = 2_000
    seed: int = 42
    given: Any = None
    work: AblationJob = field(init=False)

    def __post_init__(self) -> None:
        self._require_apart()
        row = Row(name=_MODE, mode=_MODE)
        suite = Suite(name="tune", about="Tuning.", baseline=_MODE, rows=(row,))
        self.work = AblationJob(self.records, suite, self.config, given=self.given)

    def _require_apart(self) -> None:
        outside = {text_sha256(record): record.story_id for record in self.others}
        ids = set(outside.values())
        for record in self.records:
            name = record.story_id
            if name in ids:
                raise UsageError(f"The story {name!r} is in the tuning set and outside it.")
            if record.split in TEST_SPLITS:
                raise UsageError(
                    f"The story {name!r} is of the split {record.split!r}, so nothing may be chosen on it.",
                    hint="Tune on validation stories (--split validation).",
                )
            other = outside.get(text_sha256(record))
            if other is not None:
                raise UsageError(
                    f"The stories {name!r}, in the tuning set, and {other!r}, outside it, have the same words.",
                    hint="Remove one of them.",
                )

    @property
    def row(self) -> Row:
        """The one row: the full compass."""
        return self.work.suite.rows[0]


def tune(job: TuneJob, out: Path, lock: Path, *, on_story: OnStory | None = None) -> TuneResult:
    """Measure the stories into the folder `out`, choose, and write `lock`. After a kill it goes on.

    Raises:
        UsageError: something is wrong with the input, before any work. JudgeError, StoreError: the work failed.
    """
    job.work.settle()
    folder = AblationFolder(out)
    with folder.claim():
        if folder.read_state() is None:
            write_json(folder.state, {"format": 1, "suite": {"name": "tune"}, "identity": job.work.identity})
        stories, invalid = _measure(job, folder, on_story)
        if not stories:
            reason = next(iter(invalid.values()), "there is none")
            raise UsageError(f"No validation story could be measured: {reason}", hint="Check the stories.")
        started = time.perf_counter()
        chosen = choose(stories, job.config.seeds, job.config.compass, job.settings, job.resamples, job.seed)
        chosen |= {"invalid_stories": invalid, "seconds": round(time.perf_counter() - started, 2)}
        write_json(out / "tuning.json", chosen)
        write_lock(_lock(job, stories, chosen), lock)
    return TuneResult(lock, chosen)


def _lock(job: TuneJob, stories: Sequence[StoryData], chosen: Mapping[str, Any]) -> Lock:
    values = dict(chosen["setting"])
    count = values.pop("candidates")
    used = {item.story_id for item in stories}
    summary = {key: chosen[key] for key in ("stg", "ci95", "default_stg", "gain", "cross_validated", "tried")}
    return make_lock(
        settings=job.config.compass.model_validate(values),
        candidates=count,
        seeds=job.config.seeds,
        tuned_on=[record for record in job.records if record.story_id in used],
        others=job.others,
        protocol=protocol_of_config(job.config),
        models=models_of(job.work.plugins(job.row).specs()),
        prompts=prompt_hashes(),
        validation=summary,
    )


def _measure(job: TuneJob, folder: AblationFolder, on_story: OnStory | None) -> tuple[list[StoryData], dict[str, str]]:
    """Every story's features, from the folder where they are there; stories without a board are named."""
    found: list[StoryData] = []
    invalid: dict[str, str] = {}
    with Store(cache_folder(), owner=job.work.identity) as store:
        for place, record in enumerate(job.records, 1):
            path = folder.story(record.story_id) / "features.json"
            data = _known(path, job.work.story_identity(record))
            if data is None:
                try:
                    data = _one(job, folder, store, record)
                    write_json(path, data.model_dump(mode="json"))
                except TransientRenderError:
                    raise
                except OF_ONE_STORY as error:
                    invalid[record.story_id] = error.message
            found += [data] if data is not None else []
            if on_story is not None:
                on_story(record.story_id, place)
        store.flush()
    return found, invalid


def _known(path: Path, identity: str) -> StoryData | None:
    try:
        data = StoryData.model_validate(read_json(path))
    except (InputFileError, ValidationError):
        return None
    return data if data.identity == identity else None


def _one(job: TuneJob, folder: AblationFolder, store: Store, record: StoryRecord) -> StoryData:
    from katha.agents.graph import build_graph

    machine = build_graph(reports=False), folder.rule(job.config.matching)
    bench = TuningBench(record, job.work, store, folder.story(record.story_id), *machine)
    data = bench.data(job.row, job.config.seeds, unheard)
    return data.model_copy(update={"identity": job.work.story_identity(record)})
