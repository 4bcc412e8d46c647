"""For the tests of plug-ins: contract tests that any plug-in can run, and scripted doubles of all three kinds.

A contract test needs no test framework: it raises `ContractError` (an `AssertionError`) that lists everything the
plug-in breaks, and returns the names of the checks that it passed. A double inherits the real base and fails
loudly when its script is used up.
"""

from __future__ import annotations

import hashlib
import io
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Generic, TypeVar, get_args, get_type_hints

import numpy as np
from PIL import Image

from katha.errors import JudgeError, KathaError, PlanError, RenderError, TransientRenderError
from katha.eval_bridge.bench.boards import JudgedFrame
from katha.eval_bridge.metrics import Features, Metric, MetricBoard, MetricContext, measure_board
from katha.eval_bridge.packets.instructions import UNCLEAR, reply_schema
from katha.jsonio import digest
from katha.planners.base import validate_plan
from katha.protocols import (
    BoardContext,
    Capabilities,
    Evidence,
    FrameRequest,
    Judge,
    JudgePrompt,
    JudgeReply,
    PlainPrompt,
    Planner,
    PlanRequest,
    Renderer,
)
from katha.schema import ASKED, AnswerStatus, Character, Condition, Plan, Scene, StoryRecord
from katha.schema.metrics import MetricCard, MetricValue

__all__ = [
    "ContractError",
    "ScriptedJudge",
    "ScriptedPlanner",
    "ScriptedRenderer",
    "check_judge",
    "check_metric",
    "check_planner",
    "check_renderer",
    "picture",
    "sample_requests",
    "scripted_words",
]

E = TypeVar("E")


def picture(key: str, size: tuple[int, int]) -> bytes:
    """Return a PNG of 4x3 blocks of colour that depend on `key` alone."""
    blocks = Image.frombytes("RGB", (4, 3), hashlib.shake_128(key.encode("utf-8")).digest(36))
    out = io.BytesIO()
    blocks.resize(size, Image.Resampling.NEAREST).save(out, "PNG")
    return out.getvalue()


class _Scripted(Generic[E]):
    """What all doubles do: hand out the entries of a script, one after the other, and raise those that are errors."""

    def __init__(self, script: Iterable[E | BaseException], **spec: str) -> None:
        self._queue, self._spec = deque(script), spec

    def spec(self) -> Mapping[str, Any]:
        """Return the name as given (and the revision of a judge)."""
        return dict(self._spec)

    def remaining(self) -> int:
        """Return how many entries are left."""
        return len(self._queue)

    def _next(self, used_up: KathaError) -> E:
        if not self._queue:
            raise used_up
        entry = self._queue.popleft()
        if isinstance(entry, BaseException):
            raise entry
        return entry


class ScriptedRenderer(_Scripted[bytes | str], Renderer):
    """Draws each frame with the next entry of `script`: PNG bytes, a text (a picture that depends on it), or an error
    to raise. `asked` keeps the requests, `contexts` the boards around inserted frames."""

    def __init__(
        self,
        script: Iterable[bytes | str | BaseException],
        *,
        capabilities: Capabilities | None = None,
        name: str = "scripted",
    ) -> None:
        super().__init__(script, name=name)
        self.capabilities = capabilities or Capabilities(default_size=(96, 64))
        self.asked: list[FrameRequest] = []
        self.contexts: list[BoardContext] = []

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield the next entry for each request.

        Raises:
            RenderError: the script is used up.
        """
        yield from map(self._drawn, requests)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return the next entry.

        Raises:
            RenderError: the script is used up.
        """
        self.contexts.append(context)
        return self._drawn(request)

    def _drawn(self, request: FrameRequest) -> bytes:
        self.asked.append(request)
        entry = self._next(RenderError(f"The scripted renderer has no frame left for {request.prompt!r}."))
        return picture(entry, (request.width, request.height)) if isinstance(entry, str) else entry


class ScriptedPlanner(_Scripted[Plan], Planner):
    """Gives the next plan of `script`, or raises the next error. `asked` keeps what was asked."""

    def __init__(self, script: Iterable[Plan | BaseException], *, name: str = "scripted") -> None:
        super().__init__(script, name=name)
        self.asked: list[tuple[StoryRecord, PlanRequest]] = []

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Return the next plan.

        Raises:
            PlanError: the script is used up.
        """
        self.asked.append((story, request))
        return self._next(PlanError(f"The scripted planner has no plan left for {story.story_id!r}."))


_Reply = JudgeReply | str
_Asked = JudgePrompt | PlainPrompt


class ScriptedJudge(_Scripted[_Reply], Judge):
    """Answers each question with the next entry of `script`: an answer's text, a whole reply, or an error to raise.

    Instead of a queue, `script` may be a function of the evidence and the prompt. `asked` keeps what was asked, unless
    `keep` is False (of a whole benchmark it would be every picture).
    """

    metered = True

    def __init__(
        self,
        script: Iterable[_Reply | BaseException] | Callable[[Evidence, Any], _Reply | BaseException],
        *,
        name: str = "scripted",
        revision: str = "1",
        keep: bool = True,
    ) -> None:
        super().__init__(() if callable(script) else script, name=name, revision=revision)
        self._rule = script if callable(script) else None
        self._keep = keep
        self.asked: list[tuple[Evidence, Any]] = []

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield the next entry for each prompt.

        Raises:
            JudgeError: the queue is empty.
        """
        return self._replies(evidence, prompts)

    def ask_plainly(self, evidence: Evidence, prompts: Sequence[PlainPrompt]) -> Iterator[JudgeReply]:
        """Yield the next entry for each prompt of a metric; `scripted_words` makes entries with probabilities.

        Raises:
            JudgeError: the queue is empty.
        """
        return self._replies(evidence, prompts)

    def _replies(self, evidence: Evidence, prompts: Sequence[_Asked]) -> Iterator[JudgeReply]:
        for prompt in prompts:
            if self._keep:
                self.asked.append((evidence, prompt))
            words = prompt.text if isinstance(prompt, PlainPrompt) else prompt.question
            used_up = JudgeError(f"The scripted judge has no answer left for {words!r}.")
            entry = self._next(used_up) if self._rule is None else self._rule(evidence, prompt)
            if isinstance(entry, BaseException):
                raise entry
            yield JudgeReply("ok", entry) if isinstance(entry, str) else entry


def scripted_words(**probabilities: float) -> JudgeReply:
    """Return a reply to a plain prompt that gives first-token probabilities (`Yes=0.8`), and the likeliest as text."""
    likeliest = max(probabilities, key=lambda word: probabilities[word])
    return JudgeReply("ok", answer=likeliest, raw=likeliest, usage={"probabilities": probabilities})


_SCENES = (
    "A red fox sleeps under a large tree in the forest.",
    "The red fox walks along the river at night.",
    "The red fox looks at a crow with a piece of cheese.",
)
_FOX = Character(name="fox", kind="fox", appearance="a red fox", anchor_prompt="a red fox, alone")
_CROW = Character(name="crow", kind="crow", appearance="a black crow", anchor_prompt="a black crow, alone")
_OPTIONS = ("The fox asks for the cheese.", "The crow sleeps.", "The fox runs away.", "Unclear")
_QUESTIONS = ("What does the fox do?", "What comes of it?")
_TEXT = "A fox saw a crow with a cheese. The fox asked for the cheese, and the crow let it fall."


_TRIES = 4
_REST = 0.25
"""Seconds before the second try of what was worth one; twice as long before each further one."""


class ContractError(AssertionError):
    """A plug-in breaks its contract; the message has a line for each thing."""


class _Broken(Exception):
    """One thing that is wrong."""


def _need(fine: bool, sentence: str) -> None:
    """Note `sentence` as broken unless `fine`."""
    if not fine:
        raise _Broken(sentence)


def _run_checks(what: str, checks: Mapping[str, Callable[[], None]]) -> list[str]:
    """Run every check, also after one has failed; return the names of all.

    Raises:
        ContractError: at least one failed; each has its line.
    """
    broken = []
    for name, check in checks.items():
        try:
            _patiently(check)
        except _Broken as error:
            broken.append(f"  {name}: {error}")
        except Exception as error:
            broken.append(f"  {name}: {type(error).__name__}: {error}")
    if broken:
        heading = f"{what} breaks {len(broken)} of {len(checks)} parts of its contract:"
        raise ContractError("\n".join([heading, *broken]))
    return list(checks)


def _patiently(check: Callable[[], None]) -> None:
    """Run a check, and again from its beginning while a plug-in says that another try is worth it, as a run does."""
    for attempt in range(_TRIES):
        try:
            return check()
        except TransientRenderError:
            if attempt == _TRIES - 1:
                raise
            time.sleep(_REST * 2**attempt)


def _check_spec(first: Any, second: Any) -> None:
    """Check that `spec()` is JSON with a name, the same in two instances and in two calls."""
    spec = first.spec()
    _need(isinstance(spec, Mapping), "spec() has to give a mapping")
    name = spec.get("name")
    _need(isinstance(name, str) and bool(name), "spec() has to hold a `name`")
    try:
        hashed = digest(dict(spec))
    except (TypeError, ValueError) as error:
        raise _Broken(f"spec() has to be JSON, so that it can be hashed: {error}") from error
    _need(digest(dict(first.spec())) == hashed, "spec() gives something else when it is called again")
    _need(digest(dict(second.spec())) == hashed, "spec() of two instances made alike differs")


def _random_states() -> dict[str, Any]:
    """Return where the global random numbers are; torch's only if it is imported."""
    state = [value.tolist() if isinstance(value, np.ndarray) else value for value in np.random.get_state()]
    states: dict[str, Any] = {"random": random.getstate(), "numpy.random": state}
    torch = sys.modules.get("torch")
    return states if torch is None else {**states, "torch": torch.get_rng_state().tolist()}


@contextmanager
def _same_random_numbers() -> Iterator[None]:
    """Context manager: the global random numbers have to be where they were when the block ends."""
    before = _random_states()
    yield
    after = _random_states()
    moved = [name for name, state in before.items() if after[name] != state]
    _need(not moved, f"the global random numbers of {', '.join(moved)} were used or set; use a generator of your own")


@contextmanager
def _other_random_numbers(seed: int) -> Iterator[None]:
    """Context manager: the global random numbers start from `seed`; afterwards they are where they were."""
    torch: Any = sys.modules.get("torch")
    python, legacy, tensors = random.getstate(), np.random.get_state(), torch and torch.get_rng_state()
    random.seed(seed)
    np.random.seed(seed)
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
        if torch is not None:
            torch.set_rng_state(tensors)


def sample_requests(size: tuple[int, int], seed: int = 42) -> list[FrameRequest]:
    """Return three scenes, the last with a second character, as the state machine would ask for them."""
    width, height = size
    return [
        FrameRequest(
            prompt,
            seed,
            width,
            height,
            scene=place,
            characters=(_CROW, _FOX) if "crow" in prompt else (_FOX,),
            story_id="contract",
        )
        for place, prompt in enumerate(_SCENES, 1)
    ]


def check_renderer(
    make: Callable[[], Renderer], *, requests: Sequence[FrameRequest] | None = None, size: tuple[int, int] | None = None
) -> list[str]:
    """Try everything that katha expects of a renderer, with about 20 frames; return the names of the checks.

    Args:
        make: gives a renderer, a new one each time (a heavy one may share its weights).
        requests: a board to draw, three sample scenes unless told.
        size: of the sample scenes, the renderer's default unless told.

    Raises:
        ContractError: the renderer breaks its contract; the message lists how.
    """
    renderer = make()
    wanted = list(requests or sample_requests(size or renderer.capabilities.default_size))
    trial = _Trial(make, renderer, wanted)
    checks = {
        "capabilities": trial.declares,
        "spec": lambda: _check_spec(renderer, make()),
        "board": trial.draws,
        "random numbers": trial.leaves_random_numbers_alone,
        "repetition": trial.repeats,
        "order": trial.minds_the_order,
        "sizes": trial.draws_another_size,
        "insertion": trial.inserts,
        "panel": trial.draws_the_panel,
        "pictures": trial.draws_from_pictures,
        **({"layout": trial.follows_layouts} if getattr(renderer.capabilities, "guide", False) else {}),
    }
    return _run_checks(f"The renderer {type(renderer).__name__}", checks)


@dataclass
class _Trial:
    """One renderer under test."""

    make: Callable[[], Renderer]
    renderer: Renderer
    requests: list[FrameRequest]

    @property
    def able(self) -> Capabilities:
        return self.renderer.capabilities

    @property
    def stands_alone(self) -> bool:
        """Return whether a frame does not depend on the others of its board."""
        return self.able.identity in ("none", "bank")

    @cached_property
    def board(self) -> list[bytes]:
        """The board as drawn first."""
        return self._draw(self.renderer, self.requests)

    def declares(self) -> None:
        able = self.able
        _need(isinstance(able, Capabilities), "`capabilities` has to be a katha.protocols.Capabilities")
        hints = get_type_hints(Capabilities)
        for name, given in (("identity", able.identity), ("insertion", able.insertion), ("source", able.source)):
            known = get_args(hints[name])
            _need(given in known, f"{name} {given!r} is none of {', '.join(known)}")
        _need(able.size_multiple > 0, "size_multiple has to be positive")
        if able.sizes is not None:
            _need(able.default_size in able.sizes, f"the default size {able.default_size} is none of `sizes`")
        else:
            fits = all(side > 0 and side % able.size_multiple == 0 for side in able.default_size)
            _need(fits, f"the default size {able.default_size} is not a multiple of {able.size_multiple}")

    def draws(self) -> None:
        _need(len(self.board) == len(self.requests), f"{len(self.requests)} requests gave {len(self.board)} frames")
        for request, png in zip(self.requests, self.board, strict=True):
            self._check(png, request, f"scene {request.scene}")
        if len({request.prompt for request in self.requests}) > 1:
            _need(len(set(self.board)) > 1, "every scene is the same picture, so the prompt is not drawn")
        before = dict(self.renderer.spec())
        _need(before == dict(self.make().spec()), "spec() changed by drawing; what is drawn first must not change it")

    def leaves_random_numbers_alone(self) -> None:
        with _other_random_numbers(3), _same_random_numbers():
            self._draw(self.renderer, self.requests[:1] if self.stands_alone else self.requests)

    def repeats(self) -> None:
        if not self.able.deterministic:
            return
        with _other_random_numbers(1):
            again = self._draw(self.make(), self.requests)
        if again == self.board:
            return
        with _other_random_numbers(2):
            third = self._draw(self.make(), self.requests)
        why = "with other global random numbers" if third != again else "in another instance"
        raise _Broken(f"the same requests gave other bytes {why}; fix it, or declare deterministic=False")

    def minds_the_order(self) -> None:
        if not self.able.deterministic or not self.stands_alone or len(self.requests) < 2:
            return
        turned = self._draw(self.make(), self.requests[::-1])
        _need(turned == self.board[::-1], "frames asked for in another order are not the same frames in that order")
        alone = self._draw(self.make(), self.requests[-1:])
        sentence = "a frame drawn alone differs from the same one in a board; declare identity='batch'"
        _need(alone == self.board[-1:], sentence)

    def draws_another_size(self) -> None:
        first = self.requests[0]
        others = [(first.width + self.able.size_multiple, first.height)]
        if self.able.sizes is not None:
            others = [size for size in self.able.sizes if size != (first.width, first.height)]
        for width, height in others[:1] if self.able.source == "drawn" else ():
            request = replace(first, width=width, height=height)
            for png in self.renderer.render_board([request]):
                self._check(png, request, f"{width}x{height}")

    def inserts(self) -> None:
        request = replace(self.requests[0], prompt=f"{_SCENES[1]} {_SCENES[2]}", scene=None, kind="bridge")
        around = BoardContext(tuple(self.requests), tuple(self.board), 1)
        if self.able.insertion == "none":
            with suppress(KathaError):
                self.renderer.insert_frame(request, around)
                raise _Broken("insertion is declared as 'none', but insert_frame does not raise a KathaError")
            return
        with _other_random_numbers(4), _same_random_numbers():
            png = self.renderer.insert_frame(request, around)
        self._check(png, request, "the inserted frame")
        if not self.able.deterministic:
            return
        _need(self._draw(self.renderer, self.requests) == self.board, "after an insertion the board changed")
        rebuilt = self.make().insert_frame(request, around)
        _need(rebuilt == png, "an instance that did not draw the board inserts another frame; rebuild what it needs")
        if self.able.insertion == "alone":
            moved = self.renderer.insert_frame(request, BoardContext((), (), 0))
            _need(moved == png, "the inserted frame depends on the board; declare insertion='bank' or 'reference'")

    def draws_the_panel(self) -> None:
        """Without `panel` the prompt is composed, and says these fields already."""
        if not self.able.deterministic or self.able.source != "drawn":
            return
        first = replace(self.requests[0], composed=not self.able.panel)
        told = replace(
            first, place="a cave", time_of_day="night", shot_size="close-up", shot_angle="low", must_show=("a lantern",)
        )
        same = self._draw(self.renderer, [first]) == self._draw(self.renderer, [told])
        if self.able.panel and self.able.sky:
            sky = replace(first, weather="snow", light="moonlight")
            _need(
                self._draw(self.renderer, [first]) != self._draw(self.renderer, [sky]),
                "weather and light change nothing; declare sky=False",
            )
        if self.able.panel:
            _need(not same, "place, hour, shot and what must be seen change nothing; declare panel=False")
        else:
            _need(same, "place, hour, shot or what must be seen change the picture; declare panel=True")

    def draws_from_pictures(self) -> None:
        if not self.able.deterministic or self.able.source != "drawn":
            return
        size, first = (self.requests[0].width, self.requests[0].height), self.requests[0]
        shown = [
            replace(first, pictures=tuple((who.name, picture(f"{key} {who.name}", size)) for who in first.characters))
            for key in ("one", "two")
        ]
        one, two = (self._draw(self.renderer, [request]) for request in shown)
        if self.able.pictures:
            _need(one != two, "two pictures of a character gave the same frame; declare pictures=False")
        else:
            _need(one == two, "a character's picture changes the frame; declare pictures=True")

    def follows_layouts(self) -> None:
        if not self.able.deterministic:
            return
        size = (self.requests[0].width, self.requests[0].height)
        asked = [[replace(self.requests[0], guide=picture(key, size))] for key in ("one", "two")]
        one, two = (self._draw(self.renderer, requests) for requests in asked)
        _need(one != two, "two layouts gave the same picture, so they are not followed; declare guide=False")
        _need(self._draw(self.make(), asked[0]) == one, "the same layout gave other bytes in another instance")

    def _draw(self, renderer: Renderer, requests: Sequence[FrameRequest]) -> list[bytes]:
        return list(renderer.render_board(list(requests)))

    def _check(self, png: object, request: FrameRequest, what: str) -> None:
        if not isinstance(png, bytes):
            raise _Broken(f"{what} is {type(png).__name__}, not bytes")
        with Image.open(io.BytesIO(png)) as image:
            _need(image.format == "PNG", f"{what} is {image.format}, not PNG")
            found, colours = image.size, image.convert("RGB").getcolors(1)
        wanted = (request.width, request.height)
        _need(self.able.source != "drawn" or found == wanted, f"{what} has {found} pixels, not {wanted}")
        _need(colours is None, f"{what} is of one colour; the state machine would take it for a failure")


def check_planner(make: Callable[[], Planner], story: StoryRecord, request: PlanRequest | None = None) -> list[str]:
    """Try everything that katha expects of a planner on `story`; return the names of the checks.

    Raises:
        ContractError: the planner breaks its contract; the message lists how.
    """
    wanted = request or PlanRequest(panels=len(story.scenes) or 5)
    planner, before = make(), digest(story.model_dump(mode="json"))

    def plans() -> None:
        with _other_random_numbers(3), _same_random_numbers():
            plan = planner.plan(story, wanted)
        validate_plan(plan, story)
        _need(len(plan.panels) == wanted.panels, f"{wanted.panels} panels were asked for, {len(plan.panels)} came")
        _need(digest(story.model_dump(mode="json")) == before, "the story was changed")

    def repeats() -> None:
        first, again = planner.plan(story, wanted), make().plan(story, wanted)
        _need(first == again, "the same story gave another plan")

    checks = {"spec": lambda: _check_spec(planner, make()), "plan": plans, "repetition": repeats}
    return _run_checks(f"The planner {type(planner).__name__}", checks)


def check_metric(make: Callable[[], Metric]) -> list[str]:
    """Try a metric of boards on a board of three pictures; return the names of the checks.

    A metric that needs a judge or pictures that a board has not got is to say so: nulls with reasons keep the contract.

    Raises:
        ContractError: it breaks the contract; each thing has a line.
    """
    images = [picture(str(at), (96, 64)) for at in range(3)]
    scenes = [Scene(scene_index=at, scene_text=text) for at, text in enumerate(_SCENES, 1)]
    record = StoryRecord(story_id="fox", title="The fox", story_text=_TEXT, scenes=scenes)
    frames = tuple(JudgedFrame(png, "scene", at, Path(f"{at}.png")) for at, png in enumerate(images, 1))
    board = MetricBoard("mine", record, frames)

    def describes() -> None:
        metric = make()
        _need(isinstance(metric, Metric), "it lacks `card`, `spec` or `measure`")
        _need(isinstance(metric.card, MetricCard), "`card` is not a MetricCard")
        _need(bool(metric.card.parts), "its card names no part")
        _check_spec(metric, make())

    def values() -> list[MetricValue]:
        metric = make()
        with TemporaryDirectory() as folder:
            context = MetricContext(mode=metric.card.modes[0], features=Features(Path(folder)))
            found = list(measure_board(metric, board, context))
            context.features.close()
        return found

    def measures() -> None:
        found, parts = values(), {part.name for part in make().card.parts}
        _need({value.part for value in found} == parts, f"it gives no value or reason of {sorted(parts)}")
        broken = next((value.reason for value in found if "Error:" in (value.reason or "")), None)
        _need(broken is None, f"it raises {broken}")

    def repeats() -> None:
        _need(values() == values(), "the same board gives other values")

    return _run_checks("metric", {"describes itself": describes, "measures a board": measures, "repeats": repeats})


def check_judge(make: Callable[[], Judge], images: tuple[bytes, ...] | None = None) -> list[str]:
    """Try everything that katha expects of a judge; return the names of the checks. images: PNGs, samples unless told.

    Raises:
        ContractError: the judge breaks its contract; the message lists how.
    """
    judge = make()
    shown = images or (picture("one", (96, 64)), picture("two", (96, 64)))

    def answers(condition: Condition, options: tuple[str, ...] | None, *, together: bool = False) -> None:
        if options is not None and condition == "none":
            options = tuple(option for option in options if option != UNCLEAR)  # a best guess is demanded
        evidence = Evidence(condition, shown if "image" in condition else (), _TEXT if "text" in condition else None)
        schema = reply_schema(condition, options)
        prompts = [JudgePrompt(question, "action_visibility", "Answer.", options, schema) for question in _QUESTIONS]
        replies = list((judge.ask_together if together else judge.ask)(evidence, prompts))
        _need(len(replies) == 2, f"two questions under {condition} gave {len(replies)} replies")
        for reply in replies:
            _need(reply.status in get_args(AnswerStatus), f"{reply.status!r} is not a status")
            _need(reply.status != "ok" or bool(reply.answer), "a reply is `ok` and has no answer")
            if options is not None and reply.status == "ok":
                _need(reply.answer in options, f"the answer {reply.answer!r} is none of the options")

    def chooses() -> None:
        for condition in ASKED:
            answers(condition, _OPTIONS)

    def answers_freely() -> None:
        if not judge.always_chooses:
            answers("text", None)

    def answers_together() -> None:
        for options in (_OPTIONS, *(() if judge.always_chooses else (None,))) if judge.asks_together else ():
            answers("image", options, together=True)

    checks = {
        "spec": lambda: _check_spec(judge, make()),
        "choice": chooses,
        "free answers": answers_freely,
        "questions in one call": answers_together,
    }
    return _run_checks(f"The judge {type(judge).__name__}", checks)
