"""The contract tests of `katha.testing`: what ships keeps them, and every breach is named."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from doubles import BlockRenderer, PixelJudge, ScenePlanner, story

import katha.testing as testing
from katha.errors import PlanError, RenderError, TransientRenderError, UsageError
from katha.protocols import (
    BoardContext,
    Capabilities,
    Evidence,
    FrameRequest,
    JudgePrompt,
    JudgeReply,
    Planner,
    PlanRequest,
    Renderer,
    can,
)
from katha.schema import Plan, StoryRecord
from katha.testing import ContractError, ScriptedJudge, ScriptedPlanner, ScriptedRenderer, picture
from katha_sketch.drawing import SketchRenderer
from katha_sketch.planner.rule import RulePlanner

SIZE = (96, 64)


class Good(Renderer):
    """A renderer of twenty lines."""

    capabilities = Capabilities(default_size=SIZE)

    def spec(self) -> Mapping[str, Any]:
        return {"name": "good"}

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        for request in requests:
            yield self.draw(request)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        return self.draw(request)

    def draw(self, request: FrameRequest) -> bytes:
        return picture(f"{request.seed} {request.prompt}", (request.width, request.height))


class Unnamed(Good):
    def spec(self) -> Mapping[str, Any]:
        return {"version": 1}


class NotJson(Good):
    def spec(self) -> Mapping[str, Any]:
        return {"name": "x", "model": object()}


class OtherInstance(Good):
    def spec(self) -> Mapping[str, Any]:
        return {"name": "x", "id": id(self)}


class Drifts(Good):
    def __init__(self) -> None:
        self.count = 0

    def spec(self) -> Mapping[str, Any]:
        return {"name": "x", "count": self.count}

    def draw(self, request: FrameRequest) -> bytes:
        self.count += 1
        return super().draw(request)


class OneTooFew(Good):
    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        yield from list(super().render_board(requests))[:-1]


class Jpeg(Good):
    def draw(self, request: FrameRequest) -> bytes:
        import io

        from PIL import Image

        out = io.BytesIO()
        Image.open(io.BytesIO(super().draw(request))).save(out, "JPEG")
        return out.getvalue()


class SameSize(Good):
    def draw(self, request: FrameRequest) -> bytes:
        return picture(request.prompt, SIZE)


class Blind(Good):
    def draw(self, request: FrameRequest) -> bytes:
        return picture("always", (request.width, request.height))


class Flat(Good):
    def draw(self, request: FrameRequest) -> bytes:
        import io

        from PIL import Image

        colour = tuple(hashlib.sha256(request.prompt.encode()).digest()[:3])
        out = io.BytesIO()
        Image.new("RGB", (request.width, request.height), colour).save(out, "PNG")
        return out.getvalue()


class ReadsGlobal(Good):
    def draw(self, request: FrameRequest) -> bytes:
        return picture(f"{request.prompt} {random.random()}", (request.width, request.height))


class SetsGlobal(Good):
    def draw(self, request: FrameRequest) -> bytes:
        np.random.seed(request.seed)
        return super().draw(request)


class Counts(Good):
    made = 0

    def __init__(self) -> None:
        Counts.made += 1
        self.mine = Counts.made

    def draw(self, request: FrameRequest) -> bytes:
        return picture(f"{request.prompt} {self.mine}", (request.width, request.height))


class Neighbours(Good):
    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        for request in requests:
            key = f"{request.prompt} {[item.prompt for item in requests]}"
            yield picture(key, (request.width, request.height))


class LooksAround(Good):
    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        key = f"{request.prompt} {context.position} {len(context.images)}"
        return picture(key, (request.width, request.height))


class Remembers(Good):
    def __init__(self) -> None:
        self.bank = ""

    def draw(self, request: FrameRequest) -> bytes:
        self.bank = self.bank or "seen"
        return super().draw(request)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        return picture(request.prompt + self.bank, (request.width, request.height))


class Spoils(Good):
    def __init__(self) -> None:
        self.more = ""

    def draw(self, request: FrameRequest) -> bytes:
        return picture(request.prompt + self.more, (request.width, request.height))

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        self.more = "!"
        return picture(request.prompt, (request.width, request.height))


class WrongWord(Good):
    capabilities = Capabilities(identity="sometimes", default_size=SIZE)  # type: ignore[arg-type]


class OddDefault(Good):
    capabilities = Capabilities(size_multiple=64, default_size=SIZE)


class InsertsAnyway(Good):
    capabilities = Capabilities(insertion="none", default_size=SIZE)


class FollowsNothing(Good):
    capabilities = Capabilities(guide=True, default_size=SIZE)


class DrawsAnHour(Good):
    def draw(self, request: FrameRequest) -> bytes:
        return picture(f"{request.seed} {request.prompt} {request.time_of_day}", (request.width, request.height))


class IdlePanel(Good):
    capabilities = Capabilities(panel=True, default_size=SIZE)


class DrawsPictures(Good):
    def draw(self, request: FrameRequest) -> bytes:
        return picture(f"{request.seed} {request.prompt} {request.pictures!r}", (request.width, request.height))


class IdlePictures(Good):
    capabilities = Capabilities(pictures=True, default_size=SIZE)


class ColoursByBoard(Good):
    """The first who comes onto the board is red, the second blue."""

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        known: dict[str, int] = {}
        for request in requests:
            numbers = [known.setdefault(who.name, len(known)) for who in request.characters]
            yield self.draw(replace(request, prompt=f"{request.prompt} {numbers}"))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (DrawsAnHour, "panel: .*declare panel=True"),
        (IdlePanel, "panel: .*declare panel=False"),
        (DrawsPictures, "pictures: .*declare pictures=True"),
        (IdlePictures, "pictures: .*declare pictures=False"),
        (ColoursByBoard, "order: "),
        (Unnamed, "spec: .*`name`"),
        (NotJson, "spec: .*has to be JSON"),
        (OtherInstance, "spec: .*two instances"),
        (Drifts, "board: spec.. changed by drawing"),
        (OneTooFew, "board: 3 requests gave 2 frames"),
        (Jpeg, "board: scene 1 is JPEG, not PNG"),
        (SameSize, r"sizes: 104x64 has \(96, 64\) pixels"),
        (Blind, "board: every scene is the same picture"),
        (Flat, "board: scene 1 is of one colour"),
        (ReadsGlobal, "repetition: .*with other global random numbers"),
        (SetsGlobal, r"random numbers: the global random numbers of numpy.random were"),
        (Counts, "repetition: .*"),
        (Neighbours, "order: .*(another order|identity='batch')"),
        (LooksAround, "insertion: .*declare insertion='bank'"),
        (Remembers, "insertion: an instance that did not draw the board"),
        (Spoils, "insertion: after an insertion the board changed"),
        (WrongWord, "capabilities: identity 'sometimes' is none of none, batch"),
        (OddDefault, "capabilities: the default size"),
        (InsertsAnyway, "insertion: .*does not raise"),
        (FollowsNothing, "layout: two layouts gave the same picture"),
    ],
)
def test_every_breach_is_named(make: Callable[[], Renderer], words: str) -> None:
    with pytest.raises(ContractError, match=words):
        testing.check_renderer(make)


def test_what_ships_and_what_is_small_keeps_the_contract() -> None:
    names = ["capabilities", "spec", "board", "random numbers", "repetition", "order", "sizes", "insertion"]
    names += ["panel", "pictures"]
    assert testing.check_renderer(Good) == names
    assert testing.check_renderer(SketchRenderer, size=(192, 128)) == names
    assert testing.check_renderer(BlockRenderer) == names


class Shortest(Renderer):
    """What a renderer has to have, and nothing more."""

    capabilities = Capabilities(default_size=SIZE)

    def spec(self) -> Mapping[str, Any]:
        return {"name": "shortest"}

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        return iter([picture(f"{one.seed} {one.prompt}", (one.width, one.height)) for one in requests])


class AddsNothing(Shortest):
    capabilities = Capabilities(default_size=SIZE, insertion="none")


def test_what_a_base_gives_is_enough_and_what_it_only_names_is_refused() -> None:
    assert testing.check_renderer(Shortest) == testing.check_renderer(AddsNothing) == testing.check_renderer(Good)
    request, shortest = testing.sample_requests(SIZE)[0], Shortest()
    both = list(shortest.insert_frames([request] * 2, BoardContext((), (), 0)))
    assert both == [shortest.insert_frame(request, BoardContext((), (), 0))] * 2
    assert (shortest.frame_price, shortest.metered, shortest.count_tokens("a red fox")) == (0.0, False, 4)
    assert not can(shortest, Renderer.inpaint_frame)
    assert can(BlockRenderer(), Renderer.inpaint_frame)
    for refused in (
        lambda: shortest.inpaint_frame(request, b"", b""),
        lambda: shortest.amend_frame(request, b"", None, "larger"),
        lambda: shortest.draw_cast(request),
        lambda: AddsNothing().insert_frame(request, BoardContext((), (), 0)),
        lambda: PixelJudge().ask_plainly(Evidence("text"), []),
        lambda: PixelJudge().ask_together(Evidence("text"), []),
    ):
        with pytest.raises(UsageError, match=r"^(Shortest|AddsNothing|PixelJudge) \w+ .*\.$"):
            refused()


class Busy(Good):
    """A server that is busy at each of some calls."""

    calls = 0

    def draw(self, request: FrameRequest) -> bytes:
        Busy.calls += 1
        if Busy.calls in (2, 9, 10) or Busy.calls > self.until:
            raise TransientRenderError("The server is busy.")
        return super().draw(request)

    until = 10_000


def test_a_busy_server_is_asked_again_and_one_that_stays_busy_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "_REST", 0.0)
    testing.check_renderer(Busy)
    assert Busy.calls > 10
    monkeypatch.setattr(Busy, "until", 0)
    with pytest.raises(ContractError, match="board: TransientRenderError: The server is busy"):
        testing.check_renderer(Busy)


def test_all_breaches_are_listed_at_once() -> None:
    class Both(Unnamed, Flat):
        pass

    with pytest.raises(ContractError) as caught:
        testing.check_renderer(Both)
    assert "breaks 4 of 10 parts" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 5


def test_planners_have_a_contract(record: StoryRecord) -> None:
    assert testing.check_planner(ScenePlanner, record) == ["spec", "plan", "repetition"]
    plain = StoryRecord(story_id="x", story_text=record.story_text)
    assert testing.check_planner(RulePlanner, plain, PlanRequest(panels=3))

    class Shorter(ScenePlanner):
        def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
            made = super().plan(story, request)
            return made.model_copy(update={"panels": made.panels[:3], "transitions": []})

    class Rewrites(ScenePlanner):
        def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
            made = super().plan(story, request)
            story.scenes[0].scene_text = "changed"
            return made

    class Dice(ScenePlanner):
        def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
            return super().plan(story, request).model_copy(update={"style": str(random.random())})

    breaches: list[tuple[Callable[[], Planner], str]] = [
        (Shorter, "plan: 5 panels were asked for, 3 came"),
        (Rewrites, "plan: the story was changed"),
        (Dice, "random numbers of random were"),
    ]
    for make, words in breaches:
        with pytest.raises(ContractError, match=words):
            testing.check_planner(make, record.model_copy(deep=True))


@pytest.fixture
def record() -> StoryRecord:
    return story()


def test_judges_have_a_contract() -> None:
    assert testing.check_judge(PixelJudge) == ["spec", "choice", "free answers", "questions in one call"]
    with pytest.raises(ContractError, match="choice: the answer 'blue' is none of the options"):
        testing.check_judge(lambda: ScriptedJudge(lambda evidence, prompt: "blue"))
    with pytest.raises(ContractError, match="choice: a reply is `ok` and has no answer"):
        testing.check_judge(lambda: ScriptedJudge(lambda evidence, prompt: JudgeReply("ok")))
    with pytest.raises(ContractError, match="has no answer left"):
        testing.check_judge(lambda: ScriptedJudge([]))
    with pytest.raises(ContractError, match="choice: the answer 'Unclear' is none of the options"):
        testing.check_judge(lambda: ScriptedJudge(lambda evidence, prompt: "Unclear"))  # no guess under `none`


class _AnswersOne(PixelJudge):
    """Takes all questions in one call and answers the first."""

    asks_together = True

    def ask_together(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        yield from self.ask(evidence, prompts[:1])


def test_questions_in_one_call_are_part_of_a_judges_contract() -> None:
    with pytest.raises(ContractError, match="questions in one call: two questions under image gave 1 replies"):
        testing.check_judge(_AnswersOne)


def test_doubles_follow_their_script_and_fail_when_it_is_used_up(record: StoryRecord) -> None:
    renderer = ScriptedRenderer(["one", picture("two", SIZE), RenderError("no paint")])
    requests = testing.sample_requests(SIZE)
    drawn = renderer.render_board(requests)
    assert [next(drawn), next(drawn)] == [picture("one", SIZE), picture("two", SIZE)]
    with pytest.raises(RenderError, match="no paint"):
        next(drawn)
    with pytest.raises(RenderError, match="no frame left"):
        renderer.insert_frame(requests[0], BoardContext((), (), 0))
    assert [item.scene for item in renderer.asked] == [1, 2, 3, 1]
    assert renderer.remaining() == 0
    plan = ScenePlanner().plan(record, PlanRequest())
    planner = ScriptedPlanner([plan])
    assert planner.plan(record, PlanRequest()) is plan
    with pytest.raises(PlanError, match="no plan left"):
        planner.plan(record, PlanRequest())


def test_the_public_names_are_there() -> None:
    assert all(hasattr(testing, name) for name in testing.__all__)
