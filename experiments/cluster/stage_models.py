"""The models of one stage in the hands of a station; those of other stages are seen and not touched.

A station runs the command's own code over a story. Where that code comes to a model that is held elsewhere, it ends
with `WrongStage`: the item goes to that stage and begins again. What was drawn and asked so far is found in the cache;
what no cache keeps (a plan, a picture of one colour, a refusal) is in the memory that travels with the item.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from katha.agents.context import Plugins, load_plugins
from katha.agents.frames import together
from katha.config import Settings
from katha.errors import KathaError, UnknownPluginError
from katha.eval_bridge.judging.abilities import threads_of
from katha.experiments.cluster.work import HERE, HOME, Done, Ending, FailedItem, NextStage
from katha.jsonio import sha256_hex
from katha.models.client import keyless
from katha.protocols import (
    BoardContext,
    Evidence,
    FrameRequest,
    Judge,
    JudgeReply,
    PlanRequest,
    Renderer,
    can,
)
from katha.registry import Family, default_registry, option_names
from katha.schema import StoryRecord
from katha.store import Store

T = TypeVar("T")
Memory = dict[str, Any]
"""What models gave that no cache keeps, by what they were given: plans, hashes of pictures, replies that are no answer,
and errors."""

_HOSTED = ("anthropic:", "openai:", "gemini:", "vllm:", "sglang:")
# An item that comes to so many stages goes in a circle.
_HOPS = 40


class WrongStage(KathaError):
    """The model that is needed next is not held by this station; `stage` is where it is."""

    def __init__(self, stage: str) -> None:
        super().__init__(f"This worker does not hold {stage!r}.")
        self.stage = stage


@dataclass(frozen=True)
class ItemLoad:
    """What travels with an item. of: what it is about. hops: how often it went on to another stage."""

    of: Any
    memory: Memory = field(default_factory=dict)
    hops: int = 0


def judged_at(name: str, judge: Judge) -> str:
    """Return the stage of a judge: its own where it fills the memory, the command's where it waits for a server."""
    return f"judge {name}" if judge.exclusive else HOME if threads_of(judge) > 1 else HERE


def drawn_at(spec: str, renderer: Renderer) -> str:
    """Return the stage of a renderer: the command's where pictures cost money, its own where it keeps a model."""
    if renderer.metered:
        return HOME
    return f"draw {spec}" if renderer.exclusive or "memory" in _options("renderers", spec) else HERE


def planned_at(config: Settings) -> str:
    """Return the stage of a planner: its own where it has a model, the command's where that is a service."""
    if "model" not in _options("planners", config.planner):
        return HERE
    asked = str(config.planner_options.get("model", config.planner.partition(":")[2]))
    return HOME if asked.startswith(_HOSTED) else f"plan {config.planner}"


def _options(family: Family, spec: str) -> set[str]:
    """Return the options of a plug-in; none where it was given under a name that no registry has."""
    try:
        return set(option_names(default_registry(family).load(spec)[0]))
    except UnknownPluginError:
        return set()


def stages_of(config: Settings, made: Plugins) -> set[str]:
    """Return the stages of what `made` for `config` holds in this machine's memory."""
    others = ((str(config.bridge_renderer), made.bridge), (str(config.guide), made.guide))
    drawn = {drawn_at(name, renderer) for name, renderer in others if renderer is not None}
    judged = {judged_at(name, judge) for name, judge in made.judges.items()}
    return {planned_at(config), drawn_at(config.renderer, made.renderer), *drawn, *judged} - {HERE, HOME}


def load_for(config: Settings) -> Plugins:
    """Return the plug-ins of `config` as a worker makes them: without keys, since a worker calls no service."""
    with keyless():
        return load_plugins(config)


class StageModels:
    """The plug-ins of one station: `held` are its stages. `memory` is that of the item it works on, and `before`
    what came with it: what a judge refused once is not asked again."""

    def __init__(self, stage: str, store: Store) -> None:
        self.stage, self.held, self.store = stage, frozenset((stage, HERE)), store
        self.memory: Memory = {}
        self.before: frozenset[str] = frozenset()
        self._seen: dict[int, tuple[object, object]] = {}

    def plugins(self, config: Settings, made: Plugins) -> Plugins:
        """Return `made` for `config` as this station has them."""
        bridge, guide = made.bridge, made.guide

        def judging(name: str, judge: Judge) -> Judge:
            return self._as(judge, lambda: judged_at(name, judge), self._judging)

        return replace(
            made,
            planner=self._as(made.planner, lambda: planned_at(config), self._planning),
            renderer=self._as(made.renderer, lambda: drawn_at(config.renderer, made.renderer), self._drawing),
            bridge=bridge and self._as(bridge, lambda: drawn_at(str(config.bridge_renderer), bridge), self._drawing),
            guide=guide and self._as(guide, lambda: drawn_at(str(config.guide), guide), self._drawing),
            judges={name: judging(name, judge) for name, judge in made.judges.items()},
        )

    def work(self, load: ItemLoad, do: Callable[[Any], object]) -> Ending:
        """Return what `do` makes of an item, or where the item goes on."""
        self.memory, self.before = load.memory, frozenset(load.memory)
        try:
            return Done(do(load.of))
        except WrongStage as error:
            if load.hops >= _HOPS:
                return FailedItem(f"it came to {error.stage!r} again and again.")
            return NextStage(error.stage, ItemLoad(load.of, self.memory.copy(), load.hops + 1))

    def _as(
        self, plugin: T, held_at: Callable[[], str], verbs: Callable[[T, str], Mapping[str, Callable[..., object]]]
    ) -> T:
        """Return a plug-in that remembers what it gives, and refuses to work where it is not held.

        It is of a class of its own below the plug-in's, so that everything that the plug-in says of itself stays.
        held_at: asked once for each plug-in, since the registry looks through everything that is installed.
        """
        if id(plugin) not in self._seen:
            stage = held_at()
            self._seen[id(plugin)] = (plugin, plugin if stage == HERE else _remembering(plugin, verbs(plugin, stage)))
        found: Any = self._seen[id(plugin)][1]
        return found  # type: ignore[no-any-return]

    # What a kind of plug-in does, remembered.

    def _once(self, key: str, stage: str, do: Callable[[], Any]) -> Any:
        """Return what `do` gives here, or gave where its model is held."""
        if stage not in self.held:
            if key not in self.memory:
                raise WrongStage(stage)
            if isinstance(self.memory[key], Exception):
                raise self.memory[key]
        else:
            try:
                self.memory[key] = do()
            except Exception as error:
                self.memory[key] = error
                raise
        return self.memory[key]

    def _planning(self, plugin: Any, stage: str) -> dict[str, Callable[..., object]]:
        kind = type(plugin)

        def plan(own: Any, story: StoryRecord, request: PlanRequest) -> object:
            key = _key("plan", kind, own.spec(), story, request)
            return self._once(key, stage, lambda: kind.plan(own, story, request))

        return {"plan": plan}

    def _drawing(self, plugin: Any, stage: str) -> dict[str, Callable[..., object]]:
        kind, blobs = type(plugin), self.store.blobs

        def keep(png: object) -> object:
            return blobs.put(png) if isinstance(png, bytes) else png

        def render_board(own: Any, requests: Sequence[FrameRequest]) -> Iterator[object]:
            batch = list(requests) if together(own) else None
            keys = [
                _key("frame", kind, own.spec(), item, batch, at if batch else 0) for at, item in enumerate(requests)
            ]
            frames = iter(kind.render_board(own, requests)) if stage in self.held else iter(())
            for key in keys:
                found = self._once(key, stage, lambda: keep(next(frames, None)))
                if found is None:
                    return
                yield blobs.get(found) if isinstance(found, str) else found
            yield from frames

        def inserted(own: Any, request: FrameRequest, around: BoardContext) -> str:
            shown = [sha256_hex(png) for png in around.images]
            return _key("insert", kind, own.spec(), request, around.requests, shown, around.position)

        def insert_frame(own: Any, request: FrameRequest, around: BoardContext) -> object:
            key = inserted(own, request, around)
            found = self._once(key, stage, lambda: keep(kind.insert_frame(own, request, around)))
            return blobs.get(found) if isinstance(found, str) else found

        def insert_frames(own: Any, requests: Sequence[FrameRequest], around: BoardContext) -> Iterator[object]:
            frames = iter(kind.insert_frames(own, requests, around)) if stage in self.held else iter(())
            for request in requests:
                found = self._once(inserted(own, request, around), stage, lambda: keep(next(frames, None)))
                if found is None:
                    return
                yield blobs.get(found) if isinstance(found, str) else found

        several = {"insert_frames": insert_frames} if can(plugin, Renderer.insert_frames) else {}
        return {"render_board": render_board, "insert_frame": insert_frame, **several}

    def _judging(self, plugin: Any, stage: str) -> dict[str, Callable[..., object]]:
        kind = type(plugin)

        def asking(verb: str) -> Callable[..., Iterator[object]]:
            def ask(own: Any, evidence: Evidence, prompts: Sequence[object]) -> Iterator[object]:
                shown = [sha256_hex(png) for png in evidence.images]
                keys = [
                    _key(verb, kind, own.spec(), evidence.condition, evidence.text, shown, item) for item in prompts
                ]
                known = {key: self.memory[key] for key in keys if key in self.before}
                if stage not in self.held and len(known) < len(set(keys)):
                    raise WrongStage(stage)
                open_ones = [item for key, item in zip(keys, prompts, strict=True) if key not in known]
                replies = iter(getattr(kind, verb)(own, evidence, open_ones) if open_ones else ())
                for key in keys:
                    reply = known.get(key) or next(replies, None)
                    if reply is None:
                        return
                    if isinstance(reply, JudgeReply) and reply.status != "ok":
                        self.memory[key] = reply
                    yield reply
                yield from replies  # one beyond the prompts is the engine's to refuse

            return ask

        verbs = ["ask", *(["ask_plainly"] if can(plugin, Judge.ask_plainly) else [])]
        return {verb: asking(verb) for verb in verbs}


def _remembering(plugin: T, verbs: Mapping[str, Callable[..., object]]) -> T:
    kind: Any = type(plugin)
    about = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__slots__": ()}
    seen = copy.copy(plugin)
    object.__setattr__(seen, "__class__", type(kind.__name__, (kind,), {**about, **verbs}))
    return seen


def _key(*of: object) -> str:
    return sha256_hex(repr(of).encode("utf-8", "backslashreplace"))
