"""One process, and models that each need the whole device: all is drawn, then all is judged, with the same bytes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import crews
import pytest
from crews import Resident, ResidentJudge, ResidentPlanner, ResidentRenderer
from doubles import BlockRenderer, PixelJudge, PixelSimilarity, ScenePlanner, prepare, story, tale

from katha.agents.context import Plugins
from katha.compass.modes import load_suite
from katha.config import Settings
from katha.errors import RefusedFrameError
from katha.experiments.ablate import story as suites
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.experiments.cluster.progress import Standing
from katha.experiments.comparison.compare import run_comparison
from katha.experiments.comparison.job import CompareJob
from katha.experiments.comparison.methods import cross_methods
from katha.protocols import BoardContext, FrameRequest

LOOSE = ("command", "seconds", "files", "sizes", "config", "kept", "calls")
CONFIG = Settings(
    planner="scenes", renderer="block", judges=("pixel",), compass={"repair_threshold": 1.0}, seeds=(42, 7)
)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Each command of a test has a cache of its own; see `fresh`."""
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    return monkeypatch


def fresh(patch: pytest.MonkeyPatch, tmp: Path, name: str) -> Path:
    patch.setenv("KATHA_CACHE", str(tmp / f"{name}.cache"))
    return tmp / name


def resident(loads: list[str], work: Path | None = None, **dies: Any) -> Plugins:
    """A renderer and a judge that each need the whole device."""
    log = {name: work / name for name in ("frames", "answers")} if work is not None else {}
    return Plugins(
        planner=ScenePlanner(),
        renderer=ResidentRenderer(Resident("renderer", loads), log=log.get("frames"), dies_at=dies.get("renderer")),
        judges={
            "pixel": ResidentJudge(Resident("judge", loads), log=log.get("answers"), dies_at=dies.get("judge")),
        },
        similarity=PixelSimilarity(),
    )


def plain() -> Plugins:
    """The same, that fill nothing: a story after the other."""
    return Plugins(ScenePlanner(), BlockRenderer(), {"pixel": PixelJudge()}, PixelSimilarity())


def ablation(records: Sequence[Any], given: Plugins, rows: tuple[str, ...] = ("base", "full")) -> AblationJob:
    return AblationJob(records, load_suite("length").only(rows), CONFIG, given=given, resamples=20)


def results(out: Path) -> dict[str, object]:
    """Every result of a folder, without what the process says of itself."""
    found: dict[str, object] = {}
    for path in sorted(out.rglob("*")):
        if path.suffix == ".json":
            row, loose = (
                json.loads(path.read_bytes()),
                (*LOOSE, *(("boards", "fingerprint") if path.name == "eval.json" else ())),
            )
            found[str(path.relative_to(out))] = {name: value for name, value in row.items() if name not in loose}
        elif path.suffix in (".jsonl", ".png"):
            found[str(path.relative_to(out))] = path.read_bytes()
    return found


def test_a_suite_loads_each_model_once_a_round_and_not_once_a_story(tmp_path: Path, cache: pytest.MonkeyPatch) -> None:
    records = [tale(f"s{at}", 3) for at in range(3)]
    before: list[str] = []
    for record in records:  # story by story, as it was: each draws, is judged, gets a bridge, is judged
        run_ablation(ablation([record], resident(before)), fresh(cache, tmp_path, record.story_id))
    loads: list[str] = []
    told: list[Standing] = []
    job = ablation(records, resident(loads))
    run_ablation(job, fresh(cache, tmp_path, "turns"), heard=lambda standing, said: told.append(standing))
    assert before == ["renderer", "judge"] * 2 * len(records)
    assert loads == ["renderer", "judge"] * 2
    assert told[-1].done == Counter({"judge pixel": len(records)})
    run_ablation(ablation(records, plain()), fresh(cache, tmp_path, "plain"))
    assert results(tmp_path / "turns") == results(tmp_path / "plain")


def test_a_long_suite_takes_its_stories_some_at_a_time(tmp_path: Path, cache: pytest.MonkeyPatch) -> None:
    cache.setattr(suites, "_AT_ONCE", 2)
    loads: list[str] = []
    done: list[tuple[str, int]] = []
    job = ablation([story(f"s{at}", 2) for at in range(3)], resident(loads), ("base",))
    run_ablation(job, tmp_path / "out", on_story=lambda name, count: done.append((name, len(loads))))
    assert done == [("s0", 2), ("s1", 2), ("s2", 2)]  # the third has the pictures of the others


@pytest.mark.parametrize("dies", [{"renderer": 13}, {"judge": 9}])
def test_a_suite_that_is_ended_goes_on_and_pays_for_nothing_twice(
    tmp_path: Path, cache: pytest.MonkeyPatch, dies: dict[str, int]
) -> None:
    records = [tale("s0", 3), tale("s1", 3)]
    run_ablation(ablation(records, resident([], tmp_path)), fresh(cache, tmp_path, "whole"))
    paid = {name: Counter(crews.lines(tmp_path / name)) for name in ("frames", "answers")}
    work = tmp_path / "work"
    work.mkdir()
    out = fresh(cache, tmp_path, "ended")
    with pytest.raises(KeyboardInterrupt):
        run_ablation(ablation(records, resident([], work, **dies)), out)
    run_ablation(ablation(records, resident([], work)), out)
    assert results(out) == results(tmp_path / "whole")
    again = {name: Counter(crews.lines(work / name)) for name in ("frames", "answers")}
    assert again["frames"] == paid["frames"]
    assert (again["answers"] - paid["answers"]).total() <= 1  # what was on its way


class Together(ResidentRenderer):
    """Draws the bridges of all seeds at once."""

    def insert_frames(self, requests: Sequence[FrameRequest], around: BoardContext) -> Iterator[bytes]:
        for request in requests:
            yield self._draw(request)


def test_bridges_that_are_drawn_at_once_are_drawn_where_their_model_is(
    tmp_path: Path, cache: pytest.MonkeyPatch
) -> None:
    loads: list[str] = []
    # Two stories whose first boards the judge finds weak: it answers by a hash of pixels and options.
    records, made = [tale(f"s{at}", 3) for at in (8, 9)], resident(loads)
    work = replace(made, renderer=Together(Resident("renderer", loads), log=tmp_path / "frames"))
    run_ablation(ablation(records, work, ("full",)), fresh(cache, tmp_path, "together"))
    assert loads == ["renderer", "judge"] * 2
    drawn = crews.lines(tmp_path / "frames")
    assert sum(line.startswith("bridge") for line in drawn) == 2 * len(records)  # each with both seeds
    assert len(set(drawn)) == len(drawn)


class Refuses(ResidentRenderer):
    """Refuses one story's fourth scene."""

    def _draw(self, request: FrameRequest) -> bytes:
        if "s1" in request.story_id and request.scene == 4:
            raise RefusedFrameError("Not this one.")
        return super()._draw(request)


def test_a_comparison_loads_each_model_once_a_round(tmp_path: Path, cache: pytest.MonkeyPatch) -> None:
    """A planner, two renderers and a judge; a mode that repairs asks the judge for its bridges."""
    records = [tale(f"s{at}", 4) for at in range(3)]
    config = CONFIG.model_copy(update={"mode": "base", "planner": "crews:ResidentPlanner"})

    def compare(name: str, some: Sequence[Any], loads: list[str]) -> Path:
        methods = cross_methods(config, modes=["base", "full"])
        made = Plugins(
            ResidentPlanner(Resident("planner", loads)),
            Refuses(Resident("renderer", loads)),
            {"pixel": ResidentJudge(Resident("judge", loads))},
            PixelSimilarity(),
        )
        given = {method.name: made for method in methods}
        out = fresh(cache, tmp_path, name)
        run_comparison(CompareJob(some, methods, config, prepare, resamples=20, given=given), out)
        return out

    before: list[str] = []
    for record in records:
        compare(record.story_id, [record], before)
    loads: list[str] = []
    found = results(compare("all", records, loads))
    assert loads == ["planner", "renderer", "judge", "renderer", "judge"]
    assert before.count("planner") == len(records)
    table: Any = found["table.json"]
    assert {row["story_id"]: row["reason"] for row in table["invalid"]} == {"s1": "Not this one."}
    with cache.context() as patch:  # the order of before: methods and stories one after the other
        patch.setattr("katha.experiments.comparison.compare.stages_of", lambda config, made: set[str]())
        direct = results(compare("direct", records, []))
    for name in direct.keys() - {name for name in direct if name.endswith("run.json")}:  # these hold timings
        assert (name, found.get(name)) == (name, direct[name])
