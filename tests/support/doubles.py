"""Small real plug-ins for the tests of the state machine: they draw pictures, read pixels, and count what they did."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from katha.agents.context import Plugins
from katha.errors import TransientJudgeError, TransientRenderError
from katha.eval_bridge.questions.build import fill_options
from katha.eval_bridge.questions.halves import assign_roles
from katha.protocols import (
    BoardContext,
    Capabilities,
    Evidence,
    FrameRequest,
    Judge,
    JudgePrompt,
    JudgeReply,
    Planner,
    PlanRequest,
    Renderer,
    Similarity,
)
from katha.schema import Answer, Character, Panel, Plan, Question, Scene, StoryRecord, Transition


def _hash(*parts: object) -> bytes:
    return hashlib.sha256("\x1f".join(map(str, parts)).encode()).digest()


def note(path: Path | None, line: str) -> None:
    """Append one line to a file that outlives a killed process."""
    if path is not None:
        with path.open("a") as file:
            file.write(line + "\n")


@dataclass
class BlockRenderer(Renderer):
    """Draws 4x4 blocks of colour that depend on prompt and seed; `log` gets a line for every frame drawn."""

    capabilities: Capabilities = field(default_factory=lambda: Capabilities(default_size=(64, 48)))
    log: Path | None = None
    failures: int = 0
    version: int = 1
    drawn: list[FrameRequest] = field(default_factory=list)

    def spec(self) -> Mapping[str, Any]:
        return {"name": "block", "version": self.version}

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        for request in requests:
            yield self._draw(request)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        assert len(context.images) == len(context.requests)
        return self._draw(request)

    def inpaint_frame(self, request: FrameRequest, picture: bytes, mask: bytes) -> bytes:
        """Draws the whole frame anew: what is outside of the mask is for the caller to keep."""
        sizes = [Image.open(io.BytesIO(png)).size for png in (picture, mask)]
        assert sizes == [(request.width, request.height)] * 2
        return self._draw(request)

    def _draw(self, request: FrameRequest) -> bytes:
        if self.failures:
            self.failures -= 1
            raise TransientRenderError("The paint is wet.")
        self.drawn.append(request)
        note(self.log, f"{request.kind} {request.scene} {request.seed} {request.prompt}")
        blocks = np.frombuffer(_hash(request.prompt, request.seed) + _hash(request.prompt), np.uint8)[:48]
        image = Image.fromarray(blocks.reshape(4, 4, 3)).resize(
            (request.width, request.height), Image.Resampling.NEAREST
        )
        buffer = io.BytesIO()
        image.save(buffer, "PNG")
        return buffer.getvalue()


def _pixels(png: bytes) -> NDArray[np.float64]:
    with Image.open(io.BytesIO(png)) as image:
        small = image.convert("RGB").resize((4, 4), Image.Resampling.NEAREST)
    return np.asarray(small, np.float64).ravel()


def _told(question: str, options: Sequence[str]) -> str | None:
    """Return the option that the text of `story` gives: most of its questions are understood by who reads it."""
    kind, number = question.partition(" ")[0], question.rpartition(" ")[2].rstrip("?")
    begins = {"action_visibility": "The lion runs to tree", "emotional": "The lion is happy at tree"}
    for text in options:
        plain = text.rstrip(".")
        if kind == "causal" and plain == "The lion is hungry":
            return text
        if kind in begins and plain.startswith(begins[kind]) and plain.endswith(f" {number}"):
            return text
    return None


@dataclass
class PixelJudge(Judge):
    """Chooses an option by the pixels it is shown, and by the text where there is one (seven of eight questions)."""

    always_chooses = True
    metered = True

    name: str = "pixel"
    log: Path | None = None
    failures: int = 0
    broken: bool = False
    asked: list[str] = field(default_factory=list)

    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name, "version": 1}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        seen = [_pixels(png).astype(int).tolist() for png in evidence.images]
        for prompt in prompts:
            if self.failures:
                self.failures -= 1
                raise TransientJudgeError("The line is busy.")
            if self.broken:
                yield JudgeReply("refused", error="out of order")
                continue
            self.asked.append(prompt.question)
            note(self.log, f"{evidence.condition} {_hash(seen).hex()} {prompt.question} {prompt.instruction!r}")
            options = prompt.options or ("a", "b")
            # Half of the questions are answered by the text where there is one: boards have valid ones in common.
            told = evidence.text is not None and _hash(prompt.question)[0] % 2
            number = _hash(self.name, evidence.text is not None, [] if told else seen, prompt.question)[0]
            support = "supported" if evidence.condition == "text+image" else None
            answer = options[number % len(options)]
            if evidence.text is not None and _hash(prompt.question)[1] % 8:
                answer = _told(prompt.question, options) or answer
            yield JudgeReply("ok", answer, image_support=support, confidence="medium")


@dataclass
class BuggyJudge(PixelJudge):
    """Raises what its author did not think of, while it is broken."""

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        if self.broken:
            raise ValueError("the judge is out")
        yield from super().ask(evidence, prompts)


@dataclass
class BuggyRenderer(BlockRenderer):
    """Raises `error` at the stories whose id has `at` in it, until it is mended. Its specification stays."""

    error: Exception | None = field(default_factory=lambda: ValueError("half a brush"))
    at: str = ""

    def _draw(self, request: FrameRequest) -> bytes:
        if self.error is not None and self.at in request.story_id:
            raise self.error
        return super()._draw(request)


class KeptAnswers(dict[str, Answer]):
    """The cache that an engine shares answers through, gone with the test."""

    @property
    def answers(self) -> KeptAnswers:
        return self

    def put(self, key: str, answer: Answer) -> None:
        self[key] = answer

    def claim(self, work: str) -> AbstractContextManager[None]:
        return nullcontext()


class PixelSimilarity(Similarity):
    """Unit vectors of shape (48,): a picture's blocks, a text's hash."""

    def spec(self) -> Mapping[str, Any]:
        return {"name": "pixel-similarity"}

    def encode_image(self, png: bytes) -> NDArray[np.float64]:
        values = _pixels(png)
        return values / np.linalg.norm(values)

    def encode_text(self, text: str) -> NDArray[np.float64]:
        values = np.frombuffer(_hash(text) + _hash(text, 2), np.uint8)[:48].astype(np.float64)
        return values / np.linalg.norm(values)


@dataclass
class ScenePlanner(Planner):
    """Plans the scenes that the record brings; `calls` counts."""

    calls: int = 0

    def spec(self) -> Mapping[str, Any]:
        return {"name": "scenes"}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        self.calls += 1
        return Plan(
            story_id=story.story_id,
            title=story.title,
            planner="scenes",
            characters=[Character(name="lion", kind="lion", appearance="a lion")],
            panels=[
                Panel(index=item.scene_index, prompt=item.scene_text, caption=item.scene_text, characters=["lion"])
                for item in story.scenes
            ],
            transitions=story.transitions,
        )


def plugins(**replace: Any) -> Plugins:
    """All the doubles together; `renderer=`, `judges=` and so on replace one."""
    made: dict[str, Any] = {
        "planner": ScenePlanner(),
        "renderer": BlockRenderer(),
        "judges": {"pixel": PixelJudge()},
        "similarity": PixelSimilarity(),
        **replace,
    }
    return Plugins(**made)


def story(story_id: str = "lion", scenes: int = 5) -> StoryRecord:
    """A story of `scenes` scenes with three questions a transition."""
    texts = [f"The lion walks past tree number {number}." for number in range(1, scenes + 1)]
    transitions = [
        Transition(
            from_scene=number,
            to_scene=number + 1,
            action=f"The lion runs to tree number {number + 1}.",
            causality="The lion is hungry.",
            emotion="The lion changes from calm to happy.",
            consequence=f"The lion rests at tree number {number + 1}.",
        )
        for number in range(1, scenes)
    ]
    return StoryRecord(
        story_id=story_id,
        title="The Lion",
        story_text=" ".join(texts),
        moral_label="patience",
        scenes=[Scene(scene_index=number, scene_text=text) for number, text in enumerate(texts, 1)],
        transitions=transitions,
        recoverability_questions=[
            _question(story_id, item, kind)
            for item in transitions
            for kind in ("action_visibility", "causal", "emotional")
        ],
    )


def _question(story_id: str, transition: Transition, kind: str) -> Question:
    gold = {
        "action_visibility": transition.action,
        "causal": transition.causality,
        "emotional": f"The lion is happy at tree {transition.to_scene}.",
    }[kind]
    return Question(
        question_id=f"{story_id}_{kind}_{transition.from_scene}",
        story_id=story_id,
        question_type=kind,
        question=f"{kind} between scenes {transition.from_scene} and {transition.to_scene}?",
        gold_answer=gold,
        accepted_answers=[gold],
        target_transition=transition.pair,
        evidence_scenes=list(transition.pair),
    )


def prepare(records: Sequence[StoryRecord]) -> list[StoryRecord]:
    """The stories with halves and options, as a comparison needs them."""
    ready = []
    for record in records:
        asked = record.recoverability_questions
        questions = [fill_options(item, asked, [], [], 42) for item in assign_roles(asked, 42)]
        ready.append(record.model_copy(update={"recoverability_questions": questions}))
    return ready


def tale(name: str, scenes: int = 5) -> StoryRecord:
    """A story whose scenes are no other story's."""
    made = story(name, scenes)
    own = [item.model_copy(update={"scene_text": f"{name}: {item.scene_text}"}) for item in made.scenes]
    return made.model_copy(update={"scenes": own, "story_text": f"{name}: {made.story_text}"})
