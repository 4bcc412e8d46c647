"""Contract tests that any renderer, planner or judge can run."""

from __future__ import annotations

import io
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, get_args, get_type_hints

import numpy as np
from PIL import Image

from katha.eval_bridge.packets.instructions import reply_schema
from katha.jsonio import digest
from katha.planners.checks import validate_plan
from katha.protocols import (
    BoardContext,
    Capabilities,
    Evidence,
    FrameRequest,
    Judge,
    JudgePrompt,
    Planner,
    PlanRequest,
    Renderer,
)
from katha.schema import CONDITIONS, AnswerStatus, Character, Condition, StoryRecord
from katha.testing.doubles import picture

# ---
# What the contract tests share: checks that are all run, random numbers that are watched, and specifications.


class ContractError(AssertionError):
    """A plug-in breaks its contract; the message has a line for each thing."""


class _Broken(Exception):
    """One thing that is wrong."""


def need(fine: bool, sentence: str) -> None:
    """Note `sentence` as broken unless `fine`."""
    if not fine:
        raise _Broken(sentence)


def run_checks(what: str, checks: Sequence[tuple[str, Callable[[], None]]]) -> list[str]:
    """Run every check; the names of all.

    Raises:
        ContractError: at least one failed; each has its line.
    """
    broken = []
    for name, check in checks:
        try:
            check()
        except _Broken as error:
            broken.append(f"  {name}: {error}")
        except Exception as error:
            broken.append(f"  {name}: {type(error).__name__}: {error}")
    if broken:
        raise ContractError(
            "\n".join([f"{what} breaks {len(broken)} of {len(checks)} parts of its contract:", *broken])
        )
    return [name for name, _ in checks]


def require_spec(first: Any, second: Any) -> None:
    """`spec()` has to be JSON with a name, the same in two instances and in two calls."""
    spec = first.spec()
    need(isinstance(spec, Mapping), "spec() has to give a mapping")
    name = spec.get("name")
    need(isinstance(name, str) and bool(name), "spec() has to hold a `name`")
    try:
        hashed = digest(dict(spec))
    except (TypeError, ValueError) as error:
        raise _Broken(f"spec() has to be JSON, so that it can be hashed: {error}") from error
    need(digest(dict(first.spec())) == hashed, "spec() gives something else when it is called again")
    need(digest(dict(second.spec())) == hashed, "spec() of two instances made alike differs")


def _torch() -> Any:
    """torch, if somebody has imported it."""
    return sys.modules.get("torch")


def _states() -> list[Any]:
    torch = _torch()
    return [
        random.getstate(),
        [value.tolist() if isinstance(value, np.ndarray) else value for value in np.random.get_state()],
        torch.get_rng_state().tolist() if torch is not None else None,
    ]


@contextmanager
def same_random_numbers() -> Iterator[None]:
    """The global random numbers of Python, numpy and torch have to be where they were when the block ends."""
    known = _torch() is not None
    before = _states()
    yield
    names = ("random", "numpy.random", "torch")
    moved = [
        name
        for name, old, new in zip(names, before, _states(), strict=True)
        if old != new and (known or name != "torch")
    ]
    need(not moved, f"the global random numbers of {', '.join(moved)} were used or set; use a generator of your own")


@contextmanager
def other_random_numbers(seed: int) -> Iterator[None]:
    """Inside the block the global random numbers start from `seed`; afterwards they are where they were."""
    python, legacy, torch = random.getstate(), np.random.get_state(), _torch()
    tensors = torch.get_rng_state() if torch is not None else None
    random.seed(seed)
    np.random.seed(seed)
    if torch is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)
        if torch is not None and tensors is not None:
            torch.set_rng_state(tensors)


# ---
# The contract of a renderer as a test: what the state machine relies on, tried with a few small frames.


_SCENES = (
    "A red fox walks through the forest by day.",
    "A red fox looks up at a crow in a tree. The crow holds a cheese.",
    "A red fox eats a cheese. The crow is sad.",
)
_FOX = Character(name="fox", kind="fox", appearance="a red fox", anchor_prompt="a red fox, alone")


def sample_requests(size: tuple[int, int], seed: int = 42) -> list[FrameRequest]:
    """Three scenes with one character, as the state machine would ask for them."""
    width, height = size
    return [
        FrameRequest(prompt, seed, width, height, scene=place, characters=(_FOX,), story_id="contract")
        for place, prompt in enumerate(_SCENES, 1)
    ]


def check_renderer(
    make: Callable[[], Renderer], *, requests: Sequence[FrameRequest] | None = None, size: tuple[int, int] | None = None
) -> list[str]:
    """Try everything that katha expects of a renderer; the names of the checks.

    make: gives a renderer, a new one each time (a heavy one may share its weights). requests: a board to draw, three
    sample scenes unless told. size: of the sample scenes, the renderer's default unless told. Draws about 16 frames.

    Raises:
        ContractError: the renderer breaks its contract; the message lists how.
    """
    renderer = make()
    wanted = list(requests or sample_requests(size or renderer.capabilities.default_size))
    trial = _Trial(make, renderer, wanted)
    checks = [
        ("capabilities", trial.declares),
        ("spec", trial.names_itself),
        ("board", trial.draws),
        ("random numbers", trial.leaves_random_numbers_alone),
        ("repetition", trial.repeats),
        ("order", trial.minds_the_order),
        ("sizes", trial.draws_another_size),
        ("insertion", trial.inserts),
    ]
    return run_checks(f"The renderer {type(renderer).__name__}", checks)


@dataclass
class _Trial:
    """One renderer under test."""

    make: Callable[[], Renderer]
    renderer: Renderer
    requests: list[FrameRequest]
    able: Capabilities = field(init=False)

    def __post_init__(self) -> None:
        self.able = self.renderer.capabilities

    @cached_property
    def board(self) -> list[bytes]:
        """The board as drawn first."""
        return list(self.renderer.render_board(list(self.requests)))

    @property
    def drawn(self) -> bool:
        return self.able.source == "drawn"

    @property
    def repeatable(self) -> bool:
        return self.able.deterministic

    def declares(self) -> None:
        able = self.able
        need(isinstance(able, Capabilities), "`capabilities` has to be a katha.protocols.Capabilities")
        hints = get_type_hints(Capabilities)
        for name in ("identity", "insertion", "source"):
            known = get_args(hints[name])
            need(getattr(able, name) in known, f"{name} {getattr(able, name)!r} is none of {', '.join(known)}")
        need(able.size_multiple > 0, "size_multiple has to be positive")
        if able.sizes is not None:
            need(able.default_size in able.sizes, f"the default size {able.default_size} is none of `sizes`")
        else:
            fits = all(side > 0 and side % able.size_multiple == 0 for side in able.default_size)
            need(fits, f"the default size {able.default_size} is no multiple of {able.size_multiple}")

    def names_itself(self) -> None:
        require_spec(self.renderer, self.make())

    def draws(self) -> None:
        need(len(self.board) == len(self.requests), f"{len(self.requests)} requests gave {len(self.board)} frames")
        for request, png in zip(self.requests, self.board, strict=True):
            self._check(png, request, f"scene {request.scene}")
        if len({request.prompt for request in self.requests}) > 1:
            need(len(set(self.board)) > 1, "every scene is the same picture, so the prompt is not drawn")
        before = dict(self.renderer.spec())
        need(before == dict(self.make().spec()), "spec() changed by drawing; what is drawn first must not change it")

    def leaves_random_numbers_alone(self) -> None:
        first = self.requests[:1] if self.able.identity in ("none", "bank") else self.requests
        with other_random_numbers(3), same_random_numbers():
            list(self.renderer.render_board(first))

    def repeats(self) -> None:
        if not self.repeatable:
            return
        with other_random_numbers(1):
            again = list(self.make().render_board(list(self.requests)))
        if again == self.board:
            return
        with other_random_numbers(2):
            third = list(self.make().render_board(list(self.requests)))
        why = "with other global random numbers" if third != again else "in another instance"
        need(False, f"the same requests gave other bytes {why}; fix it, or declare deterministic=False")

    def minds_the_order(self) -> None:
        if not self.repeatable or self.able.identity not in ("none", "bank") or len(self.requests) < 2:
            return
        turned = list(self.make().render_board(self.requests[::-1]))
        need(turned == self.board[::-1], "frames asked for in another order are not the same frames in that order")
        alone = list(self.make().render_board(self.requests[-1:]))
        need(
            alone == self.board[-1:],
            "a frame drawn alone differs from the same one in a board; declare identity='batch'",
        )

    def draws_another_size(self) -> None:
        if not self.drawn:
            return
        first = self.requests[0]
        if self.able.sizes is not None:
            others = [size for size in self.able.sizes if size != (first.width, first.height)]
        else:
            others = [(first.width + self.able.size_multiple, first.height)]
        for width, height in others[:1]:
            request = replace(first, width=width, height=height)
            for png in self.renderer.render_board([request]):
                self._check(png, request, f"{width}x{height}")

    def inserts(self) -> None:
        first = self.requests[0]
        request = replace(first, prompt=f"{_SCENES[1]} {_SCENES[2]}", scene=None, kind="bridge")
        around = BoardContext(tuple(self.requests), tuple(self.board), 1)
        if self.able.insertion == "none":
            self._refuses(request, around)
            return
        with other_random_numbers(4), same_random_numbers():
            png = self.renderer.insert_frame(request, around)
        self._check(png, request, "the inserted frame")
        if not self.repeatable:
            return
        need(
            list(self.renderer.render_board(list(self.requests))) == self.board, "after an insertion the board changed"
        )
        rebuilt = self.make().insert_frame(request, around)
        need(rebuilt == png, "an instance that did not draw the board inserts another frame; rebuild what it needs")
        if self.able.insertion == "alone":
            moved = self.renderer.insert_frame(request, BoardContext((), (), 0))
            need(moved == png, "the inserted frame depends on the board; declare insertion='bank' or 'reference'")

    def _refuses(self, request: FrameRequest, around: BoardContext) -> None:
        from katha.errors import KathaError

        try:
            self.renderer.insert_frame(request, around)
        except KathaError:
            return
        need(False, "insertion is declared as 'none', but insert_frame does not raise a KathaError")

    def _check(self, png: object, request: FrameRequest, what: str) -> None:
        need(isinstance(png, bytes), f"{what} is {type(png).__name__}, not bytes")
        if not isinstance(png, bytes):
            return
        with Image.open(io.BytesIO(png)) as image:
            need(image.format == "PNG", f"{what} is {image.format}, not PNG")
            image.load()
            found, flat = image.size, all(low == high for low, high in image.convert("RGB").getextrema())  # type: ignore[misc]
        wanted = (request.width, request.height)
        need(not self.drawn or found == wanted, f"{what} has {found} pixels, not {wanted}")
        need(not flat, f"{what} is of one colour; the state machine would take it for a failure")


# ---
# The contract of a planner as a test.


def check_planner(make: Callable[[], Planner], story: StoryRecord, request: PlanRequest | None = None) -> list[str]:
    """Try everything that katha expects of a planner on `story`; the names of the checks.

    Raises:
        ContractError: the planner breaks its contract; the message lists how.
    """
    wanted = request or PlanRequest(panels=len(story.scenes) or 5)
    planner, before = make(), digest(story.model_dump(mode="json"))

    def names_itself() -> None:
        require_spec(planner, make())

    def plans() -> None:
        with other_random_numbers(3), same_random_numbers():
            plan = planner.plan(story, wanted)
        validate_plan(plan, story)
        need(len(plan.panels) == wanted.panels, f"{wanted.panels} panels were asked for, {len(plan.panels)} came")
        need(digest(story.model_dump(mode="json")) == before, "the story was changed")

    def repeats() -> None:
        first, again = planner.plan(story, wanted), make().plan(story, wanted)
        need(first == again, "the same story gave another plan")

    checks = [("spec", names_itself), ("plan", plans), ("repetition", repeats)]
    return run_checks(f"The planner {type(planner).__name__}", checks)


# ---
# The contract of a judge as a test.


_OPTIONS = ("The fox asks for the cheese.", "The crow sleeps.", "The fox runs away.", "Unclear")
_TEXT = "A fox saw a crow with a cheese. The fox asked for the cheese, and the crow let it fall."


def _prompt(number: int, condition: Condition, options: tuple[str, ...] | None) -> JudgePrompt:
    question = ("What does the fox do?", "What comes of it?")[number]
    return JudgePrompt(question, "action_visibility", "Answer.", options, reply_schema(condition, options))


def check_judge(make: Callable[[], Judge], images: tuple[bytes, ...] | None = None) -> list[str]:
    """Try everything that katha expects of a judge; the names of the checks. `images`: PNGs, two samples unless told.

    Raises:
        ContractError: the judge breaks its contract; the message lists how.
    """
    judge = make()
    shown = images or (picture("one", (96, 64)), picture("two", (96, 64)))

    def names_itself() -> None:
        require_spec(judge, make())

    def answers(condition: Condition, options: tuple[str, ...] | None) -> None:
        evidence = Evidence(condition, () if condition == "text" else shown, None if condition == "image" else _TEXT)
        replies = list(judge.ask(evidence, [_prompt(number, condition, options) for number in (0, 1)]))
        need(len(replies) == 2, f"two questions under {condition} gave {len(replies)} replies")
        for reply in replies:
            need(reply.status in get_args(AnswerStatus), f"{reply.status!r} is no status")
            need(reply.status != "ok" or bool(reply.answer), "a reply is `ok` and has no answer")
            if options is not None and reply.status == "ok":
                need(reply.answer in options, f"the answer {reply.answer!r} is none of the options")

    def chooses() -> None:
        for condition in CONDITIONS:
            answers(condition, _OPTIONS)

    def answers_freely() -> None:
        if not getattr(judge, "always_chooses", False):
            answers("text", None)

    checks = [("spec", names_itself), ("choice", chooses), ("free answers", answers_freely)]
    return run_checks(f"The judge {type(judge).__name__}", checks)
