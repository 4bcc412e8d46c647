"""Commands on several workers, over Ray itself: the same bytes with any number of them, whoever of them dies."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crews
import pytest
from crews import results, settings
from doubles import prepare, story, tale
from evals import draw, records

from benchmarks.cluster import Recorded, forecast, makespan, read_logs
from katha.app.evaluator_tables import evaluate_table
from katha.compass.modes import load_suite
from katha.config import Settings
from katha.errors import UsageError
from katha.eval_bridge.metrics.continuity import Continuity
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.experiments.cluster.fleet import Fleet, WorkerPlace, join
from katha.experiments.cluster.judged import make_judge
from katha.experiments.cluster.progress import Standing
from katha.experiments.comparison.compare import run_comparison
from katha.experiments.comparison.job import CompareJob
from katha.experiments.comparison.methods import cross_methods
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, evaluate
from katha.experiments.metrics.job import MetricsJob, measure
from katha.experiments.metrics.sources import Beside, find_sources
from katha.experiments.offline.evaluator_tables import load_table
from katha.store import Store
from katha.stories import load_stories

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[None]:
    """One Ray for the module: two processors, workers that find the doubles, a small store of objects."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(crews.__file__).parent))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        quiet = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR", "namespace": "katha"}
        join(ray, {"address": "local", "num_cpus": 2, "object_store_memory": 100 * 2**20, **quiet})
        yield
        ray.shutdown()


@dataclass
class Told:
    """What the workers of one command said."""

    said: list[str]
    standing: Standing | None = None

    def __call__(self, standing: Standing, said: str) -> None:
        self.standing = standing
        self.said += [said] if said else []


@dataclass
class Bench:
    """A command in a folder and a cache of its own, alone or by workers."""

    tmp: Path
    patch: pytest.MonkeyPatch
    told: Told

    def run(self, name: str, workers: int, command: Callable[[Path, Path, Fleet | None], object]) -> Path:
        """Run `command(out, work, fleet)`; its folder."""
        work, out = self.tmp / f"{name}.work", self.tmp / name
        work.mkdir()
        self.patch.setenv("KATHA_CACHE", str(work / "cache"))
        fleet = Fleet(WorkerPlace("cpu", count=workers), self.told) if workers else None
        command(out, work, fleet)
        return out


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(tmp_path, monkeypatch, Told([]))


def same_specs(found: dict[str, object]) -> dict[str, object]:
    """Results without identities: where a judge logs is an option of it."""
    loose = {"identity", "fingerprint", "plugins", "judges", "methods"}
    return {
        name: {key: row[key] for key in row.keys() - loose - ({"boards"} if name.endswith("eval.json") else set())}
        if isinstance(row, dict)
        else row
        for name, row in found.items()
    }


def ablation(count: int = 2, **options: Any) -> Callable[[Path, Path, Fleet | None], object]:
    def command(out: Path, work: Path, fleet: Fleet | None) -> object:
        suite = load_suite("length").only(("base", "full"))
        made = {key: dict(value) if isinstance(value, dict) else value for key, value in options.items()}
        job = AblationJob([story(f"s{at}") for at in range(count)], suite, settings(work, **made), resamples=20)
        return run_ablation(job, out, fleet=fleet)

    return command


def evaluation(out: Path, work: Path, fleet: Fleet | None, **judging: Any) -> object:
    config = Settings(judges=("crews:FullJudge",), judge_options={"log": work / "answers", **judging})
    stories, judges = records(4), {"full": make_judge("crews:FullJudge", config)}
    boards = [draw(work / "flux", stories), draw(work / "kontext", stories, 1)]
    asked = EvalSettings(resamples=20, controls=("blank", "repeat"))
    with Store(Path(os.environ["KATHA_CACHE"])) as store:
        return evaluate(EvalJob(stories, boards, judges, asked, config=config), out, store, fleet=fleet)


def test_an_evaluation_by_workers_is_that_of_one_process(bench: Bench, tmp_path: Path) -> None:
    alone = bench.run("alone", 0, evaluation)
    for workers in (1, 2, 4):
        out = bench.run(f"by{workers}", workers, evaluation)
        assert same_specs(results(out)) == same_specs(results(alone))
        for name in ("answers.jsonl", "controls.jsonl", "scores.json"):
            assert (out / name).read_bytes() == (alone / name).read_bytes()
    asked = [sorted(crews.lines(tmp_path / f"{name}.work/answers")) for name in ("alone", "by1", "by2", "by4")]
    assert asked[0] == asked[1] == asked[2] == asked[3]
    assert not bench.told.said
    log = (tmp_path / "by2/workers/worker-1.log").read_text()
    assert re.search(r"^20\d\d-\S+\.\d{3}Z begins on \S+ with .* after \d+\.\d{3} s$", log, re.MULTILINE)
    recorded = read_logs(tmp_path / "by2/workers")
    assert list(recorded.loads) == ["judge full"]
    assert {stage for parts in recorded.stories.values() for stage, _ in parts} == {"judge full"}
    logs = [path.read_text() for path in (tmp_path / "by2/workers").glob("*.log")]
    assert len(recorded.stories) == sum(text.count(": done in ") for text in logs)


def test_the_evaluators_of_a_table_by_workers_are_those_of_one_process(bench: Bench, tmp_path: Path) -> None:
    def table(out: Path, work: Path, fleet: Fleet | None) -> object:
        config = Settings(judges=("crews:FullJudge",), judge_options={"log": work / "answers"})
        stories, workers = load_stories(str(EXAMPLES))[:2], "cpu:2" if fleet is not None else None
        flux = f"flux={draw(work / 'flux', stories).folder}"
        return evaluate_table(
            stories,
            [flux],
            out,
            config,
            table=60,
            resamples=20,
            no_entrance=True,
            workers=workers,
            on_workers=bench.told,
        )

    alone, ours = bench.run("alone", 0, table), bench.run("ours", 2, table)
    assert (ours / "table-60.json").read_bytes() == (alone / "table-60.json").read_bytes()
    assert same_specs(results(ours)) == same_specs(results(alone))
    asked = [sorted(crews.lines(tmp_path / f"{name}.work/answers")) for name in ("alone", "ours")]
    assert asked[0] == asked[1]
    assert bench.told.standing is not None  # the last evaluator's
    assert bench.told.standing.ended
    assert all((ours / name / "workers/job.json").is_file() for name in load_table(60).studies)


def test_an_evaluation_whose_worker_is_killed(bench: Bench, tmp_path: Path) -> None:
    alone = bench.run("alone", 0, evaluation)
    mark = tmp_path / "died"
    out = bench.run("killed", 2, lambda out, work, fleet: evaluation(out, work, fleet, dies=mark))
    assert mark.exists()
    assert same_specs(results(out)) == same_specs(results(alone))
    (said,) = bench.told.said
    assert "died while it worked on 's" in said
    assert said.endswith("Its work goes to another.")
    before, after = (crews.lines(tmp_path / f"{name}.work/answers") for name in ("alone", "killed"))
    assert set(before) == set(after)
    assert len(after) - len(before) <= 2  # what was in flight


def test_a_worker_without_the_model_is_told_of_and_the_others_go_on(bench: Bench, tmp_path: Path) -> None:
    alone, absent = bench.run("alone", 0, evaluation), tmp_path / "absent"

    def command(out: Path, work: Path, fleet: Fleet | None) -> object:
        made = settings(work)
        config = made.model_copy(update={"judge_options": {**made.judge_options, "absent": absent}})
        stories, boards = records(4), [draw(work / "flux", records(4)), draw(work / "kontext", records(4), 1)]
        judges = {"full": crews.FullJudge(log=work / "answers")}
        asked = EvalSettings(resamples=20, controls=("blank", "repeat"))
        with Store(Path(os.environ["KATHA_CACHE"])) as store:
            return evaluate(EvalJob(stories, boards, judges, asked, config=config), out, store, fleet=fleet)

    out = bench.run("lacking", 2, command)
    assert (out / "answers.jsonl").read_bytes() == (alone / "answers.jsonl").read_bytes()
    (said,) = bench.told.said
    assert "cannot be used for 'judge full': The model is not on this machine. The others go on." in said


@pytest.mark.parametrize("workers", [1, 2])
def test_a_suite_by_workers_is_that_of_one_process(bench: Bench, tmp_path: Path, workers: int) -> None:
    """The repair goes from stage to stage: drawn, judged, a frame more drawn, judged; and a judge refuses some."""
    command = ablation(judging={"refused": 1})
    alone, out = bench.run("alone", 0, command), bench.run("by", workers, command)
    assert same_specs(results(out)) == same_specs(results(alone))
    frames = [sorted(crews.lines(tmp_path / f"{name}.work/frames")) for name in ("alone", "by")]
    assert frames[0] == frames[1]
    answers = [set(crews.lines(tmp_path / f"{name}.work/answers")) for name in ("alone", "by")]
    assert answers[0] == answers[1]
    assert not bench.told.said


def test_a_service_is_asked_by_the_command_alone_and_once(bench: Bench, tmp_path: Path) -> None:
    judging = {"asked_by": str(tmp_path / "asked_by")}
    command = ablation(judges=("crews:ServedJudge",), judging=judging)
    alone, out = bench.run("alone", 0, command), bench.run("by", 1, command)
    assert same_specs(results(out)) == same_specs(results(alone))
    assert set(crews.lines(tmp_path / "asked_by")) == {str(os.getpid())}
    answers = [sorted(crews.lines(tmp_path / f"{name}.work/answers")) for name in ("alone", "by")]
    assert answers[0] == answers[1]


def test_a_suite_whose_worker_is_killed_and_whose_renderer_refuses(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "died"
    alone = bench.run("alone", 0, ablation(drawing={"refused": "number 4"}))
    out = bench.run("killed", 2, ablation(drawing={"refused": "number 4", "dies": str(mark)}))
    assert mark.exists()
    assert same_specs(results(out)) == same_specs(results(alone))
    assert any("died" in said for said in bench.told.said)
    frames = [crews.lines(tmp_path / f"{name}.work/frames") for name in ("alone", "killed")]
    assert set(frames[0]) == set(frames[1])


def test_a_worker_whose_disk_is_full_is_told_of_and_the_other_goes_on(bench: Bench, tmp_path: Path) -> None:
    """It would fail by one item after the other and soon have had them all."""
    mark = tmp_path / "full"
    alone, out = bench.run("alone", 0, ablation()), bench.run("by", 2, ablation(drawing={"full": str(mark)}))
    assert mark.exists()
    assert same_specs(results(out)) == same_specs(results(alone))
    (said,) = bench.told.said
    assert "cannot keep what it does (The cache " in said
    assert said.endswith("Its work goes to another.")
    assert bench.told.standing is not None
    assert not bench.told.standing.failed


def test_a_comparison_by_workers_is_that_of_one_process(bench: Bench, tmp_path: Path) -> None:
    def command(out: Path, work: Path, fleet: Fleet | None) -> object:
        config = settings(work, mode="base", drawing={"refused": "s1: The lion walks past tree number 3"})
        methods = cross_methods(config, modes=["base", "full"])
        job = CompareJob([tale("s0"), tale("s1")], methods, config, prepare, resamples=20)
        return run_comparison(job, out, fleet=fleet)

    alone, out = bench.run("alone", 0, command), bench.run("by", 2, command)
    ours, theirs = same_specs(results(out)), same_specs(results(alone))
    wanted = [name for name in theirs if not name.endswith("run.json")]  # timings
    assert any("Not this one" in str(row) for row in theirs.values())
    assert {name: ours.get(name) for name in wanted} == {name: theirs[name] for name in wanted}
    frames = [sorted(crews.lines(tmp_path / f"{name}.work/frames")) for name in ("alone", "by")]
    assert frames[0] == frames[1]


def test_a_measurement_by_workers_is_that_of_one_process(bench: Bench, tmp_path: Path) -> None:
    """What a worker has no value for is measured by the command, which says why."""

    def command(out: Path, work: Path, fleet: Fleet | None) -> object:
        stories = records(4)
        boards = [f"flux={draw(work / 'flux', stories).folder}", f"kontext={draw(work / 'kontext', stories, 1).folder}"]
        options: dict[str, Any] = {"crews:Bright": {"log": str(work / "measured"), "fails": "s1"}, "continuity": {}}
        metrics: dict[str, Any] = {
            "crews:Bright": crews.Bright(log=work / "measured", fails="s1"),
            "continuity": Continuity(),
        }
        job = MetricsJob(find_sources(boards, stories, Beside()), metrics, options=options)
        return measure(job, out, fleet=fleet)

    alone, out = bench.run("alone", 0, command), bench.run("by", 1, command)
    for name in ("table.json", "values.jsonl"):
        assert (out / name).read_bytes() == (alone / name).read_bytes()
    assert not bench.told.said
    by_whom = [line.split() for line in crews.lines(tmp_path / "by.work/measured")]
    here = [line for line in by_whom if line[0] == str(os.getpid())]
    assert len(by_whom) == 10  # eight boards, and two of them again
    assert {story for _, _, story in here} == {"s1"}


@pytest.mark.parametrize(
    ("workers", "cluster", "place"),
    [
        ("cuda:0-2,5", None, WorkerPlace("cuda", (0, 1, 2, 5), 4)),
        ("cpu:2", None, WorkerPlace("cpu", count=2)),
        ("12", "auto", WorkerPlace(None, count=12, address="auto")),
        (None, "host:6379", WorkerPlace(None, address="host:6379")),
        (None, None, None),
    ],
)
def test_workers_are_read(workers: str | None, cluster: str | None, place: WorkerPlace | None) -> None:
    assert WorkerPlace.read(workers, cluster) == place


@pytest.mark.parametrize("workers", ["", "cpu", "cpu:0", "cpu:1-2", "cuda", "cuda:2-1", "cuda:0,0", "tpu:1", "4"])
def test_workers_that_are_none_are_refused(workers: str) -> None:
    with pytest.raises(UsageError, match="--workers"):
        WorkerPlace.read(workers, None)


def test_a_cluster_that_is_not_there_is_refused() -> None:
    import ray

    ray.shutdown()
    with Fleet(WorkerPlace(None, address="127.0.0.1:9")) as fleet, pytest.raises(UsageError, match="no Ray cluster at"):
        fleet.connect()


def test_how_it_stands_is_told_in_one_line() -> None:
    now = [100.0]
    standing = Standing(total=10, clock=lambda: now[0])
    standing.done["judge a"] += 4
    standing.failed["no room"] += 1
    standing.working["judge a"] += 2
    now[0] += 10
    assert standing.line() == (
        "5 of 10 items (0.5/s, about 10 s left); stages: judge a 4 (0.4/s); "
        "workers: 2 at judge a; failed: 1 (1: no room)"
    )
    standing.memory |= {"worker 1": (3 * 10**9, 80 * 10**9), "worker 2": (61 * 10**9, 80 * 10**9)}
    standing.since["judge a"] = 108.0
    standing.dollars = lambda: 1.5
    assert "judge a 4 (2.0/s)" in standing.line()
    assert standing.line().endswith("GPU memory: 61.0 of 80.0 GB at most; $1.50 spent, about $3.00 in all")
    assert (standing.record().left, standing.record().cost) == (10.0, 3.0)
    assert standing.summary() == ["1 items were left to this command: no room"]
    for number in range(1_000):
        standing.fail(f"story {number} cannot be drawn")
    assert len(standing.record().failed) == 101  # what a person reads; memory and job.json stay small
    assert standing.failed.total() == 1_001


def test_a_simulated_cluster_takes_as_long_as_by_hand(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path))
    story = [("draw", 10.0), ("judge", 4.0)]
    loads = {"draw": 5.0, "judge": 1.0}
    assert makespan([story, story], 1, loads) == 5 + 10 + 10 + 1 + 4 + 4
    assert makespan([story, story], 2, loads) == 5 + 10 + 1 + 4
    found = forecast(Recorded({"s": story}, loads), count=8, devices=(1, 8))["devices"]
    assert found["8"] == {"seconds": 20.0, "lower_bound": 14.0, "ratio": 1.43}
    assert found["1"]["lower_bound"] == 8 * 14
