"""Every command that writes a folder, at toy size with doubles: for the tests of what all folders have in common."""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any, ClassVar

from doubles import BlockRenderer, PixelJudge, note, plugins, prepare, story, tale
from study_material import draw_boards, records

import katha.agents.graph
import katha.eval_bridge.scoring.scores  # noqa: F401 - with the graph, what commands import when they begin
from katha.agents.context import Plugins
from katha.agents.editor.editing import redo_frame
from katha.agents.run import run_story
from katha.app.people import pack_study, score_study
from katha.compass.modes import load_suite
from katha.config import Settings
from katha.eval_bridge.bench.boards import MethodBoards
from katha.eval_bridge.metrics import MetricBoard, MetricContext, share_of
from katha.experiments.ablate.job import AblationJob
from katha.experiments.ablate.story import run_ablation
from katha.experiments.comparison.compare import CompareJob, run_comparison
from katha.experiments.comparison.methods import cross_methods
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, evaluate
from katha.experiments.metrics.job import MetricsJob, measure
from katha.experiments.metrics.sources import Beside, find_sources
from katha.experiments.people import PeopleOptions, PeopleStudyOptions
from katha.experiments.tune import TuneJob, tune
from katha.jsonio import sha256_hex
from katha.protocols import Evidence, JudgeReply, PlainPrompt
from katha.schema import Scene, StoryRecord, Transition
from katha.schema.metrics import MetricCard, MetricPart, MetricValue
from katha.store import Store
from katha.testing import ScriptedJudge, scripted_words

CONFIG = Settings(planner="scenes", renderer="block", judges=("pixel",), compass={"repair_threshold": 1.0})
KILLED = -signal.SIGKILL
ASKED = "Is it good?"

Go = Callable[[Path, Path, bool], object]
"""Run a command into the folder OUT, with logs and inputs in the folder WORK; or another one of its kind."""


@dataclass(frozen=True)
class Command:
    """A command: how its folder is called, its state file, and the files that hold times or what a process did."""

    kind: str
    state: str
    go: Go
    loose: frozenset[str] = frozenset()
    in_flight: int = 1
    """How many frames, and how many answers, a kill may find on their way to the cache."""
    apart: str = "."
    """A folder in it that is no result."""


def doubles(work: Path, **changes: Any) -> Plugins:
    """Plug-ins that log what they do into files that outlive them."""
    work.mkdir(parents=True, exist_ok=True)
    made = {"renderer": BlockRenderer(log=work / "frames"), "judges": {"pixel": PixelJudge(log=work / "answers")}}
    return plugins(**{**made, **changes})


def _run(out: Path, work: Path, other: bool) -> object:
    return run_story(story("stag" if other else "lion"), CONFIG, out, plugins=doubles(work))


def _repair(out: Path, work: Path, other: bool) -> object:
    config = CONFIG.model_copy(update={"mode": "agentic", "seeds": (42, 123), "moves": 3 if other else 4})
    return run_story(story("lion"), config, out, plugins=doubles(work))


def _redo(out: Path, work: Path, other: bool) -> object:
    made = doubles(work, renderer=BlockRenderer(version=2)) if other else doubles(work)
    return redo_frame(out, 1, 7, plugins=made)


def _drawn(work: Path) -> tuple[Sequence[StoryRecord], Path]:
    """Two stories and the folder of their boards, drawn where they are not there."""
    stories, boards = prepare([tale("s1"), tale("s2")]), work / "boards"
    base = CONFIG.model_copy(update={"mode": "base"})
    for record in () if boards.exists() else stories:
        result = run_story(record, base, work / record.story_id, plugins=plugins())
        place = boards / record.story_id
        place.mkdir(parents=True)
        for frame in result.board.frames:
            (place / f"{frame.index}.png").write_bytes((result.out / frame.image).read_bytes())
    return stories, boards


def _eval(out: Path, work: Path, other: bool) -> object:
    stories, boards = _drawn(work)
    judges = dict(doubles(work).judges)
    settings = EvalSettings(resamples=20, seed=43 if other else 42, controls=("blank",))
    job = EvalJob(stories, [MethodBoards("boards", boards)], judges, settings)
    with Store(Path(os.environ["KATHA_CACHE"])) as store:
        return evaluate(job, out, store)


def _ablate(out: Path, work: Path, other: bool) -> object:
    suite = load_suite("length").only(("base", "rerank_only") if other else ("base", "full"))
    job = AblationJob([story("first"), story("second")], suite, CONFIG, given=doubles(work), resamples=10)
    return run_ablation(job, out)


def _compare(out: Path, work: Path, other: bool) -> object:
    config = CONFIG.model_copy(update={"mode": "base", "seeds": (42, 7) if other else (42, 123)})
    methods = cross_methods(config, modes=["base", "full"])
    given = {method.name: doubles(work) for method in methods}
    return run_comparison(
        CompareJob([tale("s1"), tale("s2")], methods, config, prepare, resamples=20, given=given), out
    )


def _tune(out: Path, work: Path, other: bool) -> object:
    config = CONFIG.model_copy(update={"seeds": (42, 7) if other else (42, 123)})
    records = [tale(f"v{number}").model_copy(update={"split": "validation"}) for number in range(2)]
    job = TuneJob(records, [], config, settings=20, resamples=10, given=doubles(work), keep=True)
    return tune(job, out, work / "compass.lock.yaml")


def _annotated(who: str, other: str) -> StoryRecord:
    """A story of two scenes with the fields that a planner learns from."""
    texts = {f"The {who} runs.": who, f"The {other} hides.": other}
    scenes = [
        Scene(scene_index=at, scene_text=text, characters=[name], generation_prompt=text, visual_must_show=[name])
        for at, (text, name) in enumerate(texts.items(), 1)
    ]
    step = Transition(
        from_scene=1,
        to_scene=2,
        action=f"The {other} hides.",
        causality=f"The {who} runs.",
        intention=f"The {other} wants to live.",
        emotion=f"The {other} is afraid.",
        consequence=f"The {who} is alone.",
    )
    return StoryRecord(story_id=who, story_text=" ".join(texts), scenes=scenes, transitions=[step])


def _train(out: Path, work: Path, other: bool) -> object:
    from tiny_gemma import build_gemma

    from katha.planners.training import load_settings, train_planner
    from katha.planners.training_data import make_examples

    records = [_annotated("fox", "hen"), _annotated("lion", "mouse")]
    base = work / "gemma"
    if not base.exists():
        build_gemma(base, [item.prompt + item.reply for item in make_examples(records).kept], size=900)
    settings = load_settings(None, {"steps": 2, "batch": 1, "accumulation": 1, "save_every": 1, "rank": 4 + other})
    return train_planner(records, [], out, settings, base=str(base), device="cpu")


class Liked:
    """A metric that asks a judge of plain prompts about every frame."""

    card: ClassVar[MetricCard] = MetricCard(
        name="liked",
        title="Liked",
        paper="none",
        formula="P(Yes)",
        level="frame",
        parts=(MetricPart(name="yes", about="P(Yes)"),),
        needs=("judge", "probabilities"),
    )

    def spec(self) -> Mapping[str, Any]:
        return {"name": self.card.name}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        for number, image in enumerate(board.images, 1):
            name = str(number)
            asked = {name: PlainPrompt((0, ASKED))}
            answer = context.ask(self.card.name, board.story_id, board.method, [image], asked)[name]
            yield board.value("yes", share_of(answer, ("Yes",)), frame=number)


def _metrics(out: Path, work: Path, other: bool) -> object:
    stories, boards = _drawn(work)

    def liked(evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
        share = evidence.images[0][-20] / 255.0
        note(work / "answers", sha256_hex(evidence.images[0]))
        return scripted_words(Yes=share, No=1.0 - share)

    job = MetricsJob(
        sources=find_sources([f"boards={boards}"], stories, Beside()),
        metrics={"liked": Liked()},
        judge=ScriptedJudge(liked),
        judge_name="scripted",
        seed=43 if other else 42,
    )
    return measure(job, out)


def _pack(out: Path, work: Path, other: bool) -> object:
    stories = work / "stories.jsonl"
    if not stories.exists():
        draw_boards(work / "boards")
        stories.write_text("".join(record.model_dump_json() + "\n" for record in records()))
    options = PeopleStudyOptions(raters=6, per_item=1, criteria="Q1,Q14", seed=43 if other else 42)
    return pack_study(str(stories), [f"{name}={work / 'boards' / name}" for name in ("fixed", "plain")], out, options)


def _people(out: Path, work: Path, other: bool) -> object:
    given = work / "judgments.jsonl"
    if not given.exists():
        places = itertools.product(range(3), ("s1", "s2"), ("plain", "fixed"))
        rows = [{"rater": f"r{r}", "story_id": s, "method": m, "human_score": (r + len(m)) % 5} for r, s, m in places]
        given.parent.mkdir(parents=True, exist_ok=True)
        given.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return score_study([given], out, PeopleOptions(seed=43 if other else 42))


_MEASURED = frozenset(("metrics.json", "measured.jsonl"))
"""The second is a log, whose keys name the folders that boards are in."""
_RUN = frozenset(("run.json", "graph.sqlite", "graph.sqlite-wal", "graph.sqlite-shm"))

COMMANDS = {
    "run": Command("run", "run.json", _run, _RUN),
    "repair": Command("run", "run.json", _repair, _RUN),
    "redo": Command("run", "run.json", _redo, _RUN),
    "eval": Command("evaluation", "eval.json", _eval, frozenset(("eval.json",))),
    "ablate": Command("ablation", "ablation.json", _ablate, frozenset(("ablation.json", "result.json"))),
    "compare": Command("comparison", "compare.json", _compare, frozenset(("compare.json", "eval.json", *_RUN))),
    "tune": Command("tuning", "ablation.json", _tune, frozenset(("ablation.json", "tuning.json"))),
    "metrics": Command("measurement", "metrics.json", _metrics, _MEASURED),
    "pack": Command("study with people", "study.json", _pack),
    "people": Command("scoring of people", "people.json", _people),
    "train": Command("training", "train.json", _train, frozenset(("train.json", "README.md")), apart="checkpoints"),
}


def each(without: tuple[str, ...] = ()) -> list[str]:
    """Every command but those `without`, for a test's parameter."""
    return [name for name in COMMANDS if name not in without]


def begin(name: str, out: Path, work: Path) -> None:
    """Do what a command needs to have done before: a redo needs a finished run, an evaluation its boards."""
    if name == "redo":
        _run(out, work, False)
    if name == "eval":
        _eval(work / "begun", work, False)
    if name == "metrics":
        _drawn(work)


def results(name: str, out: Path) -> dict[str, bytes]:
    """Every file of a folder that must be the same after a kill, by its path."""
    loose = {".lock", *COMMANDS[name].loose}
    files = {str(path.relative_to(out)): path for path in out.rglob("*") if path.is_file() and path.name not in loose}
    apart = COMMANDS[name].apart
    files = {path: file for path, file in files.items() if not path.startswith(f"{apart}/")}
    here = str(out.parent).encode()  # an adapter names the folder of its base model
    return {path: _in_order(file).replace(here, b"") for path, file in sorted(files.items())}


def _in_order(file: Path) -> bytes:
    """A file's bytes; the lines of an ablation's steering answers come as its branches end."""
    data = file.read_bytes()
    return b"".join(sorted(data.splitlines(keepends=True))) if file.name == "steering.jsonl" else data


class Writes:
    """An audit hook that counts what is done to a folder, and kills the process before it does number `kill_at`."""

    def __init__(self, folder: Path, kill_at: int) -> None:
        self.folder, self.kill_at, self.count = str(folder), kill_at, 0

    def __call__(self, event: str, args: tuple[Any, ...]) -> None:
        writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if not writes and event not in ("os.mkdir", "os.rename", "os.remove", "os.rmdir"):
            return
        if str(args[0]).startswith(self.folder):
            self.count += 1
            if self.count == self.kill_at:
                os.kill(os.getpid(), signal.SIGKILL)


def child(name: str, out: str, work: str, cache: str, kill_at: int) -> None:
    """Run a command in this process and write into WORK/writes how often it changed OUT."""
    os.environ["KATHA_CACHE"] = cache
    writes = Writes(Path(out), kill_at)
    sys.addaudithook(writes)
    COMMANDS[name].go(Path(out), Path(work), False)
    (Path(work) / "writes").write_text(json.dumps(writes.count))


def start(
    server: ForkServerContext, name: str, out: Path, work: Path, cache: Path, kill_at: int = 0
) -> ForkServerProcess:
    """A process of its own that runs a command, and is killed before its write number `kill_at` (0: never)."""
    process = server.Process(target=child, args=(name, str(out), str(work), str(cache), kill_at))
    process.start()
    return process


def finish(process: ForkServerProcess) -> int:
    """The exit code of a process; `KILLED` when it was."""
    process.join(timeout=240)
    code = process.exitcode
    process.close()
    assert code is not None
    return code
