"""Plug-ins that fill a process or a device, so that every one has a stage of its own, and die when told to."""

from __future__ import annotations

import json
import os
import resource
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from doubles import BlockRenderer, PixelJudge, ScenePlanner, _pixels, note

from katha.config import Settings
from katha.errors import ModelError, PlanError, RefusedFrameError
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.metrics import MetricBoard, MetricContext
from katha.models.checkpoints import device_models
from katha.protocols import BoardContext, Evidence, FrameRequest, JudgePrompt, JudgeReply, PlanRequest
from katha.schema import Plan, StoryRecord
from katha.schema.metrics import MetricCard, MetricPart, MetricValue

LOOSE = ("command", "config", "files", "sizes", "seconds", "kept", "calls", "environment")
"""What a state file or a story's result says of the process: when, how long, where its logs are."""


def is_first(mark: Path | None) -> bool:
    """Whether nobody has come here before; never without a mark."""
    try:
        if mark is not None:
            mark.touch(exist_ok=False)
    except FileExistsError:
        return False
    return mark is not None


def die_once(mark: Path | None) -> None:
    """End the process as a kill does, the first time that anybody comes here."""
    if is_first(mark):
        os._exit(9)


class FullJudge(PixelJudge):
    """log: gets a line an answer. dies: a file that the first process to ask makes before it dies. refused: of five
    questions, how many are refused whenever they are asked. absent: a file that the first process to come makes; it
    lacks the model. gate: a file without which no packet gets a second answer."""

    exclusive = True

    def __init__(
        self,
        *,
        log: Path | None = None,
        dies: Path | None = None,
        refused: int = 0,
        absent: Path | None = None,
        gate: Path | None = None,
    ) -> None:
        super().__init__(name="full", log=log)
        self.dies, self.refused, self.gate = dies, refused, gate
        if is_first(absent):
            raise ModelError("The model is not on this machine.")

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for number, reply in enumerate(super().ask(evidence, prompts)):
            if number == 1:
                die_once(self.dies)
                while self.gate is not None and not self.gate.exists():
                    threading.Event().wait(0.05)
            refused = sum(prompts[number].question.encode()) % 5 < self.refused
            yield JudgeReply("refused", error="no") if refused else reply


class ServedJudge(PixelJudge):
    """Waits for a server, so that only the command's own process may ask it: it notes which one did."""

    concurrency = 4

    def __init__(self, *, log: Path | None = None, asked_by: Path | None = None) -> None:
        super().__init__(name="served", log=log)
        self.asked_by = asked_by

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        note(self.asked_by, str(os.getpid()))
        yield from super().ask(evidence, prompts)


class CountedJudge(OpenAIJudge):
    """A service at `base_url`, asked a few questions at once."""

    AT_ONCE: ClassVar[int] = 4

    def __init__(self, *, base_url: str) -> None:
        super().__init__("counted", base_url=base_url, concurrency=self.AT_ONCE)


class FullRenderer(BlockRenderer):
    """log: gets a line a frame. dies: a file that the first process to draw a second frame makes before it dies.
    refused: a text; a scene with it in its prompt, in small or capital letters, is never drawn. full: a file that the
    first process to draw makes; its disk takes no file of more than 20 kB from then on."""

    exclusive = True

    def __init__(
        self,
        *,
        log: Path | None = None,
        dies: Path | None = None,
        refused: str | None = None,
        full: Path | None = None,
    ) -> None:
        super().__init__(log=log)
        self.dies, self.refused, self.full = dies, refused, full

    def _draw(self, request: FrameRequest) -> bytes:
        if self.refused is not None and self.refused.casefold() in request.prompt.casefold():
            raise RefusedFrameError("Not this one.")
        if is_first(self.full):
            resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
        if self.drawn:
            die_once(self.dies)
        return super()._draw(request)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        return super().insert_frame(request, context)


class FullPlanner(ScenePlanner):
    """Holds a model. log: gets a line a plan, with the process's number. dies: a file that the first process to plan a
    second story makes before it dies. refused: a story that it gives no plan of."""

    def __init__(
        self, *, model: str = "toy", log: Path | None = None, dies: Path | None = None, refused: str = ""
    ) -> None:
        self.model, self.log, self.dies, self.refused = model, log, dies, refused

    def spec(self) -> Mapping[str, Any]:
        return {"name": "full", "model": self.model}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        if self.calls:
            die_once(self.dies)
        note(self.log, f"{os.getpid()} {story.story_id}")
        if story.story_id == self.refused:
            raise PlanError("No plan of this.")
        return super().plan(story, request)


class Bright:
    """How bright a board is. log: gets a line a board, with the process's number. fails: a story that has no value."""

    card: ClassVar[MetricCard] = MetricCard(
        name="crews:Bright",
        title="Brightness",
        paper="none",
        formula="mean",
        level="board",
        parts=(MetricPart(name="mean", about="mean", high=255.0),),
    )

    def __init__(self, *, log: Path, fails: str = "") -> None:
        self.log, self.fails = log, fails

    def spec(self) -> Mapping[str, Any]:
        return {"name": "bright"}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        note(self.log, f"{os.getpid()} {board.method} {board.story_id}")
        if board.story_id == self.fails:
            raise ValueError("too dark")
        yield board.value("mean", float(sum(_pixels(data).mean() for data in board.images) / len(board.images)))


def lines(log: Path) -> list[str]:
    """What was done, as it was noted."""
    return log.read_text().splitlines() if log.exists() else []


def results(out: Path) -> dict[str, object]:
    """Every result of a folder, without what the process says of itself."""
    found: dict[str, object] = {}
    for path in sorted(out.rglob("*")):
        if path.parent.name == "workers":
            continue
        if path.suffix == ".json":
            row = json.loads(path.read_bytes())
            found[str(path.relative_to(out))] = {name: value for name, value in row.items() if name not in LOOSE}
        elif path.name == "steering.jsonl":  # a service answers when it likes
            found[str(path.relative_to(out))] = sorted(path.read_bytes().splitlines())
        elif path.suffix in (".jsonl", ".png"):
            found[str(path.relative_to(out))] = path.read_bytes()
    return found


def settings(work: Path, **options: Any) -> Settings:
    """A renderer and a judge that each fill a process, and log what they do."""
    drawing = {"log": str(work / "frames"), **options.pop("drawing", {})}
    return Settings(
        planner="doubles:ScenePlanner",
        renderer="crews:FullRenderer",
        renderer_options=drawing,
        judges=options.pop("judges", ("crews:FullJudge",)),
        judge_options={"log": str(work / "answers"), **options.pop("judging", {})},
        similarity="doubles:PixelSimilarity",
        compass={"repair_threshold": 1.0},
        seeds=(42, 7),
        **options,
    )


class Resident:
    """A model that needs the whole device: each load has the others let go, and is noted in `loads`."""

    def __init__(self, name: str, loads: list[str]) -> None:
        self.name, self.loads, self.there = name, loads, False

    def use(self) -> None:
        if not self.there:
            device_models().make_room("resident", self)
            device_models().register("resident", self)
            self.loads.append(self.name)
            self.there = True

    def close(self) -> None:
        self.there = False


class ResidentPlanner(ScenePlanner):
    """Plans with a model of its own."""

    def __init__(self, resident: Resident, *, model: str = "of its own") -> None:
        super().__init__()
        self.resident = resident

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        self.resident.use()
        return super().plan(story, request)


class ResidentRenderer(BlockRenderer):
    """Draws with a model of its own. dies_at: with so many frames drawn a person ends the command."""

    exclusive = True

    def __init__(self, resident: Resident, *, log: Path | None = None, dies_at: int | None = None) -> None:
        super().__init__(log=log)
        self.resident, self.dies_at = resident, dies_at

    def _draw(self, request: FrameRequest) -> bytes:
        self.resident.use()
        if len(self.drawn) == self.dies_at:
            raise KeyboardInterrupt
        return super()._draw(request)


class ResidentJudge(PixelJudge):
    """Answers with a model of its own. dies_at: with so many answers a person ends the command."""

    exclusive = True

    def __init__(
        self, resident: Resident, *, name: str = "pixel", log: Path | None = None, dies_at: int | None = None
    ) -> None:
        super().__init__(name=name, log=log)
        self.resident, self.dies_at = resident, dies_at

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        self.resident.use()
        for reply in super().ask(evidence, prompts):
            if len(self.asked) == self.dies_at:
                raise KeyboardInterrupt
            yield reply
