"""The small interfaces that plug-ins implement. A renderer of twenty lines is enough.

All three are plain classes; nothing has to be inherited. `spec()` returns everything that can change the result, as
JSON: it is hashed into cache keys and written into `run.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from katha.schema import (
    AnswerStatus,
    Character,
    Condition,
    Confidence,
    ContrastiveVariant,
    Coverage,
    Dimension,
    FrameKind,
    Gaze,
    Panel,
    Plan,
    Prop,
    Question,
    Seen,
    StoryRecord,
    Transition,
)


class Span(int):
    """A range of numbers of panels: an int, the fewest, that knows the most. As text it is "4-8"."""

    most: int

    def __new__(cls, fewest: int, most: int | None = None) -> Self:
        """Return the range from `fewest` to `most`."""
        made = super().__new__(cls, fewest)
        made.most = fewest if most is None else most
        return made

    def __str__(self) -> str:
        """Return it as it is given on the command line."""
        return f"{int(self)}-{self.most}"

    __repr__ = __str__

    def __eq__(self, other: object) -> bool:
        """Return whether `other` is the same range; a number is none."""
        return isinstance(other, Span) and (int(self), self.most) == (int(other), other.most)

    def __hash__(self) -> int:
        """Return a hash of both ends."""
        return hash((int(self), self.most))

    def nearest(self, count: int) -> int:
        """Return `count`, or the end of the range that is nearest to it."""
        return min(max(count, int(self)), self.most)


def allows(panels: int, count: int) -> bool:
    """Return whether a board of `count` panels is what `panels`, a number or a `Span`, asks for."""
    return panels.nearest(count) == count if isinstance(panels, Span) else panels == count


@dataclass(frozen=True)
class PlanRequest:
    """What a plan is made for: the number of panels, a style phrase, and the renderer's prompt limit in tokens.

    most_panels: a planner that chooses its scenes may take from `panels` up to so many; None: exactly `panels`.
    questions: what a viewer of the pictures will be asked, with the answers, written from the text by somebody else; a
    planner that can plans for them. heard: told in words how far a plan is that takes long.
    """

    panels: int = 5
    most_panels: int | None = None
    style: str = ""
    prompt_tokens: int | None = None
    questions: tuple[Question, ...] = ()
    heard: Callable[[str], None] | None = field(default=None, compare=False, repr=False)


@runtime_checkable
class Planner(Protocol):
    """Story to plan."""

    def spec(self) -> Mapping[str, Any]:
        """Name and everything that can change the plan."""
        ...

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Plan `story`.

        Raises:
            UsageError: the story cannot be planned (no event, too long, another language), with what to do.
        """
        ...


@dataclass(frozen=True)
class Capabilities:
    """What a renderer can do; the state machine reads it instead of the renderer's name.

    identity: how characters stay the same (`sources`: frames are made of the same drawn parts, and requests bring the
    plan). insertion: what a frame drawn later needs (`alone`: its request only; `bank`, `reference`: the board around
    it; `neighbours`: the sources of the frames on both sides), or `none` when it cannot add one. source: `found` when
    the pictures are there already: a story has one board, of its own size, whatever the seed, and nothing is cached.
    sizes: allowed (width, height) pairs, or None for any multiple of `size_multiple`. prompt_tokens: the prompt limit,
    None for none.
    panel: the request's `place`, `time_of_day`, `shot_size`, `shot_angle` and `must_show` change what is drawn.
    pictures: characters are drawn from the pictures of them that a request brings (`FrameRequest.pictures`).
    guide: the composition follows the picture that a request brings (`FrameRequest.guide`).
    prompt_family: how its model reads a prompt (`configs/composing.yaml`); without `panel` prompts are composed for it.
    """

    identity: Literal["none", "batch", "bank", "reference", "sources"] = "none"
    insertion: Literal["alone", "bank", "reference", "neighbours", "none"] = "alone"
    source: Literal["drawn", "found"] = "drawn"
    sizes: tuple[tuple[int, int], ...] | None = None
    size_multiple: int = 8
    default_size: tuple[int, int] = (768, 512)
    prompt_tokens: int | None = None
    deterministic: bool = True
    panel: bool = False
    pictures: bool = False
    guide: bool = False
    prompt_family: str = "paragraph"


@dataclass(frozen=True)
class FrameRequest:
    """One frame to draw. `scene` is the scene index, or None for an inserted frame. `story_id` is for renderers that
    find pictures; what is drawn must not depend on it. `pictures` holds name and picture of each character that has
    one: those that a person has put on its sheet, where `Capabilities.pictures` says that they are drawn from, and
    those that a renderer asks for (`DrawsFromPictures`). `guide` is the layout that another renderer has drawn (PNG, of
    any size), where `Capabilities.guide` says that it is followed: who stands where, and not the style.

    `place`, `time_of_day`, `light`, `shot_size`, `shot_angle`, `camera`, `must_show`, `state`, `gaze` and `contacts`
    are the panel's own, `props` the things of the board that matter in it; a renderer may leave them alone, as most
    draw from the prompt. `composed`: the prompt says all of these, the characters' looks and the style already
    (`katha.composing`), but for what is `dropped`. `plan` is the whole plan, for renderers whose identity is `sources`,
    and `transition` the pair of scenes that an inserted frame stands between.
    """

    prompt: str
    seed: int
    width: int
    height: int
    negative_prompt: str = ""
    style: str = ""
    kind: FrameKind = "scene"
    scene: int | None = None
    characters: tuple[Character, ...] = ()
    story_id: str = ""
    pictures: tuple[tuple[str, bytes], ...] = ()
    guide: bytes | None = None
    place: str = ""
    time_of_day: str = ""
    shot_size: str = ""
    shot_angle: str = ""
    must_show: tuple[str, ...] = ()
    light: str = ""
    camera: str = ""
    state: tuple[Seen, ...] = ()
    gaze: tuple[Gaze, ...] = ()
    contacts: tuple[str, ...] = ()
    props: tuple[Prop, ...] = ()
    composed: bool = False
    dropped: tuple[str, ...] = ()
    plan: Plan | None = None
    transition: tuple[int, int] | None = None


@dataclass(frozen=True)
class BoardContext:
    """What an inserted frame may use: the board's requests and PNG bytes in order, and the position it goes before.

    sources: beside each picture the drawing that it was made from (SVG), None where there is none. cast: the sheet of
    the parts that the board's frames are made of.

    The board may be another renderer's: its pictures are what the new frame has to go with, and its requests say how
    an identity bank can be made again from their seed.
    """

    requests: tuple[FrameRequest, ...]
    images: tuple[bytes, ...]
    position: int
    sources: tuple[bytes | None, ...] = ()
    cast: bytes | None = None


@runtime_checkable
class Renderer(Protocol):
    """Plan to frames. A frame depends on its request (and, where `capabilities` say so, its batch) and nothing else."""

    capabilities: Capabilities

    def spec(self) -> Mapping[str, Any]:
        """Name and everything that can change the pixels."""
        ...

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order, each as soon as it is ready.

        Raises:
            RenderError: a frame could not be made.
        """
        ...

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """The PNG of one frame added to a finished board, whose other frames do not change."""
        ...


@runtime_checkable
class MakesRemarks(Protocol):
    """A renderer that has something to tell the person who waits: that its model fits into memory, for one."""

    def remarks(self) -> Sequence[str]:
        """What it has to say since it was last asked, a sentence each."""
        ...


@dataclass(frozen=True)
class PanelWords:
    """What somebody wrote beside a found picture. duration: how long it stands, in seconds."""

    dialogue: str = ""
    action: str = ""
    notes: str = ""
    duration: float | None = None


@runtime_checkable
class TellsPanels(Protocol):
    """A renderer whose found pictures may come with words, which go into the plan's panels."""

    def panel_words(self) -> Sequence[PanelWords]:
        """Return the words beside each picture in order; nothing where there are none."""
        ...


@runtime_checkable
class LeavesOut(Protocol):
    """A renderer of found pictures that may find some beside a board that are no frames of it."""

    def left_out(self, story_id: str) -> Sequence[str]:
        """Return a sentence that names them; nothing where there are none."""
        ...


@runtime_checkable
class DrawsFromPictures(Protocol):
    """A renderer that is to be handed a picture of every character with the request (`FrameRequest.pictures`), because
    it keeps none itself: a portrait is drawn once, kept and paid for as any frame is."""

    def picture_of(self, character: Character, request: FrameRequest) -> bytes | FrameRequest | None:
        """Return the user's own picture, or the request of a portrait for frames like `request`, or None for none."""
        ...


@runtime_checkable
class FollowsGuides(Protocol):
    """A renderer of whose ways with a guide `spec()` says nothing, so that frames without one have their old keys."""

    def guided_spec(self) -> Mapping[str, Any]:
        """Everything beside `spec()` that can change the pixels of a frame that follows a guide."""
        ...


@runtime_checkable
class DrawsFigures(Protocol):
    """A renderer whose cast sheet shows what each character looks like."""

    def figures(self, cast: bytes, plan: Plan) -> Mapping[str, bytes]:
        """Return a picture (PNG) of each of the plan's characters that the cast sheet has, by name."""
        ...


@runtime_checkable
class CountsTokens(Protocol):
    """A renderer that counts a prompt as its model does; of others about four tokens in three words are reckoned."""

    def count_tokens(self, text: str) -> int:
        """Return how many of `Capabilities.prompt_tokens` a text takes."""
        ...


@runtime_checkable
class KnowsItsLimits(Protocol):
    """A renderer that can tell what it has no picture for, before it draws."""

    def not_drawn(self, request: FrameRequest) -> Sequence[str]:
        """The words of `request` that a stand-in or a neutral pose will stand for, none where all of it is drawn."""
        ...


@runtime_checkable
class KnowsItsWords(Protocol):
    """A renderer that has drawings for some words only, and can say which of a character's it has none for."""

    def undrawn(self, character: Character) -> Sequence[str]:
        """Return what of the character's kind, age and colour no picture of it will show, in words as they stand."""
        ...


@runtime_checkable
class CostsMoney(Protocol):
    """A renderer whose frames are paid for, asked for one at a time."""

    @property
    def frame_price(self) -> float | None:
        """US dollars that one frame is expected to cost at most, or None when unknown."""
        ...


@runtime_checkable
class ShowsDrafts(Protocol):
    """A renderer that has a picture of a frame some time before the frame is finished."""

    def show_drafts(self, hear: Callable[[FrameRequest, bytes], None]) -> None:
        """Have `hear` called with each frame's first picture (PNG, of any size), as long as this thread draws a board.

        It is called in the thread that asked for the board.
        """
        ...


@runtime_checkable
class KeepsSources(Protocol):
    """A renderer whose pictures are made from drawings that people can edit."""

    def source(self) -> bytes | None:
        """Return the drawing (self-contained SVG) of the frame that this thread got last; None where there is none."""
        ...

    def cast_source(self) -> bytes | None:
        """Return the sheet of the parts that this frame was made of; None where there is none."""
        ...

    def draw_cast(self, request: FrameRequest) -> bytes:
        """Return the sheet of the parts that the frames of a request's plan are made of, and draw no frame."""
        ...


class DrawsVectors:
    """The base of renderers that draw a frame as vectors, and can do so again whenever they are asked."""

    def vectors(self, request: FrameRequest) -> str | None:
        """Return the layered drawing (self-contained SVG) of a frame that `request` asks for; None where there is
        none."""
        return None


@runtime_checkable
class InsertsTogether(Protocol):
    """A renderer that adds frames to a board with less work when it draws several of them at once."""

    def insert_frames(self, requests: Sequence[FrameRequest], context: BoardContext) -> Iterator[bytes]:
        """Yield for each of `requests`, which go to the same place, what `insert_frame` would give for it alone."""
        ...


@runtime_checkable
class Inpaints(Protocol):
    """A renderer that draws a part of a finished picture anew, inside a mask."""

    def inpaint_frame(self, request: FrameRequest, picture: bytes, mask: bytes) -> bytes:
        """Return a PNG of the request's size: `picture` with what `request` asks for where `mask` is white.

        picture, mask: PNGs of the same size, in RGB, and in grey with 0 and 255 alone. What comes back outside of the
        mask is not used.
        """
        ...


@runtime_checkable
class Amends(Protocol):
    """A renderer that changes a finished frame in its own source, as a person asks."""

    def amend_frame(
        self, request: FrameRequest, source: bytes, cast: bytes | None, words: str, part: str = ""
    ) -> bytes:
        """Return a PNG of the request's size: the frame that `source` is, with the change that `words` ask for.

        source, cast: what `KeepsSources` gave for the frame and its board. part: the name of the part of `source` that
        the words are about; "" where they are about all of it.
        """
        ...


@runtime_checkable
class KeepsReceipts(Protocol):
    """A renderer that can say how the frame it gave last came about, where its specification cannot know beforehand."""

    def receipt(self) -> Mapping[str, Any]:
        """`service`, `model`, `served` (the version that drew it), `date`, `tokens`, `cost` in US dollars or None."""
        ...


@dataclass(frozen=True)
class Evidence:
    """What a judge sees: PNGs in order (re-encoded, no metadata) and, unless image-only, the story's text."""

    condition: Condition
    images: tuple[bytes, ...] = ()
    text: str | None = None


@dataclass(frozen=True)
class JudgePrompt:
    """One question as it is put to a judge.

    instruction: the condition's and dimension's rendered prompt text. options: the fixed choices in order (the last is
    `Unclear`), or None for a free answer. schema: the JSON schema of the reply (Sec. E.5).
    """

    question: str
    dimension: Dimension
    instruction: str
    options: tuple[str, ...] | None
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Example:
    """One worked example that comes before a plain prompt: what was shown and asked, and the answer that is right."""

    parts: tuple[str | int, ...]
    answer: str


@dataclass(frozen=True)
class PlainPrompt:
    """A prompt that is put to a model as it stands, and answered in free text: no instruction or schema is added.

    parts: texts, and numbers of the evidence's pictures from 0, in the order in which the model sees them. examples:
    earlier turns of the same form. words: surface forms ("Yes", "yes") whose probability as the first token is wanted;
    a reply has them in `usage["probabilities"]` where the judge can give them. sample: which draw it is; equal prompts
    of different `sample` are asked anew. max_tokens: the longest reply.
    """

    parts: tuple[str | int, ...]
    examples: tuple[Example, ...] = ()
    system: str = ""
    words: tuple[str, ...] = ()
    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int = 64
    sample: int = 0

    @property
    def text(self) -> str:
        """Every text of it, for counts and messages; pictures are left out."""
        turns = [*(part for each in self.examples for part in (*each.parts, each.answer)), *self.parts]
        return "\n".join(part for part in (self.system, *turns) if isinstance(part, str) and part)


@dataclass(frozen=True)
class JudgeReply:
    """One reply. With options, `answer` is the chosen option's text."""

    status: AnswerStatus
    answer: str | None = None
    evidence_status: str | None = None
    image_support: str | None = None
    confidence: Confidence | None = None
    raw: str | None = None
    error: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)


@runtime_checkable
class Judge(Protocol):
    """Evidence and questions to replies, each question answered on its own (one question a call, Sec. E.2).

    What else a judge may be able to do is said by the small protocols below: `AlwaysChooses`, `AsksSideBySide`,
    `FillsTheMemory`, `LetsGo`, `HasAPrice`, `ChangesWhileAsked`. A judge that has none of them chooses or writes as it
    is asked to, is asked from one thread, keeps the machine to nobody, and is free.
    """

    def spec(self) -> Mapping[str, Any]:
        """Name, resolved revision, decoding and reuse mode: everything that can change a reply."""
        ...

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order, each as soon as it is there; failures are replies, not exceptions.

        Raises:
            TransientJudgeError: nothing could be asked, and the same call is worth another try.
        """
        ...


# Abilities of judges, each optional; `katha.eval_bridge.judging.abilities` fills in what a judge does not say.


@runtime_checkable
class IgnoresInstructions(Protocol):
    """A judge that reads the question and its options and no instruction, so that every prompt variant is one to it."""

    @property
    def ignores_instructions(self) -> bool:
        """Whether the instruction changes nothing."""


@runtime_checkable
class AlwaysChooses(Protocol):
    """A judge that can only choose: it is given options in every run."""

    @property
    def always_chooses(self) -> bool:
        """True where free answers cannot be had."""
        ...


@runtime_checkable
class AnswersPlainly(Protocol):
    """A judge that also takes prompts as they stand: what the metrics of other papers ask, word by word."""

    def ask_plainly(self, evidence: Evidence, prompts: Sequence[PlainPrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order, its text as `answer`; failures are replies, as in `Judge.ask`."""
        ...


@runtime_checkable
class AsksSideBySide(Protocol):
    """A judge or renderer that waits for a server, and may be asked from several threads at once. Of a renderer each
    frame is asked for apart (`render_board` with one request), and a receipt is that of the thread's last frame."""

    @property
    def concurrency(self) -> int:
        """From how many threads, from 1."""
        ...


@runtime_checkable
class FillsTheMemory(Protocol):
    """A judge that holds a model in memory: an evaluation asks such judges one after the other."""

    @property
    def exclusive(self) -> bool:
        """True while no other model fits beside it."""
        ...


@runtime_checkable
class LetsGo(Protocol):
    """A judge that can give back what it holds: memory, connections."""

    def close(self) -> None:
        """Give it back; asking again takes it anew."""
        ...


@runtime_checkable
class HasAPrice(Protocol):
    """A judge whose replies are paid for. One without a price is free."""

    @property
    def price(self) -> Mapping[str, float] | None:
        """US dollars per million tokens by kind (`input`, `output`), or None when unknown."""
        ...


@runtime_checkable
class AnswersByName(Protocol):
    """A judge that may know an answer by what was asked about whose board, whatever is shown: an archive."""

    def recall(self, method: str | None, story_id: str, question_id: str, condition: Condition) -> JudgeReply | None:
        """Return the reply; None where it can only be told from what is shown."""
        ...


@runtime_checkable
class ChangesWhileAsked(Protocol):
    """A judge whose server can make it ask in another way, which is then part of an answer's key."""

    @property
    def amended(self) -> Mapping[str, Any]:
        """What of `spec()` does not hold for calls from now on."""
        ...


@runtime_checkable
class MayBeWithdrawn(Protocol):
    """A judge or renderer whose model belongs to a vendor, who may take it away; what was kept of it stays."""

    def require_served(self) -> None:
        """Refuse (UsageError) a model that is known to be gone; nothing is called for this."""
        ...


@runtime_checkable
class CountsPrefixHits(Protocol):
    """A judge whose server keeps the beginnings of prompts, and counts how much of a prompt was there already."""

    def prefix_hits(self) -> tuple[int, int] | None:
        """Return tokens that were there and tokens that were looked up, since its first question; None: not told."""
        ...


class StoryReader:
    """A plug-in of the group `katha.readers`: what is read of plain texts where no language model reads them.

    Every method has a default that reads nothing, so a reader gives those that it can, and a program without a reader
    uses this class itself (`katha.reading.story_reader`).
    """

    def panels_for(self, text: str, usual: int) -> int:
        """Return how many panels a plain text calls for; `usual` where it cannot be read."""
        return usual

    def outline(self, story: StoryRecord, panels: int) -> Plan | None:
        """Return a plan of `story` in so many panels, whose transitions and size serve where no other plan has them.

        Returns:
            The plan, without a style; None where the text is not read here.

        Raises:
            PlanError: the text is read, and cannot be planned.
        """
        return None

    def captions(self, text: str, panels: int) -> list[str] | None:
        """Return what of a plain text each of so many panels shows, in its own words; None where it is not read."""
        return None

    def linked(self, story_id: str, texts: Sequence[str]) -> list[Transition]:
        """Return the transitions between pictures that are told in `texts`, one after the other; none where nothing in
        them can be read."""
        return []

    def acts(self, text: str) -> bool:
        """Return whether `text` tells of anybody who does or is something."""
        return False

    def covered(self, known: Coverage, record: StoryRecord, panels: Sequence[Panel]) -> Coverage:
        """Return the coverage of a plan whose panels were changed by hand; `known` is what it was."""
        return known

    def questions(self, record: StoryRecord, plan: Plan) -> list[Question]:
        """Return the questions that a story without any is asked, with `distractors` in each."""
        return []

    def distractors(self, question: Question, names: Sequence[str], seed: int) -> Iterator[str]:
        """Yield what could be a wrong option beside the question's answer: that answer with one thing changed.

        names: the other answers of the story, of whose people and things those are taken first.
        """
        return iter(())

    def characters(self, text: str) -> tuple[str, ...]:
        """Return whom a sentence tells of, each by one name whatever the sentence calls it."""
        return ()

    def felt(self, text: str) -> str | None:
        """Return how somebody feels in a sentence, as a plain sentence; None where it tells of no feeling."""
        return None

    def accepts(self, text: str, question: Question) -> bool:
        """Return whether `text` could stand for an accepted answer, so that it can be no wrong option beside it."""
        said = (question.gold_answer, *question.accepted_answers)
        return " ".join(text.lower().split()) in {" ".join(one.lower().split()) for one in said}

    def variants(self, record: StoryRecord, most: int) -> list[ContrastiveVariant]:
        """Return the record's story with one transition changed (Table 31), at most so many times; unchecked."""
        return []


@runtime_checkable
class Similarity(Protocol):
    """psi of Eqs. 25 and 26: unit vectors of shape (D,), so that the inner product is sim()."""

    def spec(self) -> Mapping[str, Any]:
        """Name, weights and revision."""
        ...

    def encode_image(self, png: bytes) -> NDArray[np.float64]:
        """A unit vector of shape (D,) for one frame."""
        ...

    def encode_text(self, text: str) -> NDArray[np.float64]:
        """A unit vector of shape (D,) for a transition's text; the zero vector when nothing in it is known."""
        ...


@runtime_checkable
class SeesAhead(Protocol):
    """A similarity that can encode a frame beside what the program does meanwhile."""

    def foresee(self, png: bytes) -> None:
        """Begin to encode a frame that `encode_image` will be asked for, and return at once; what fails, fails then."""
        ...


@runtime_checkable
class SeesTogether(Protocol):
    """A similarity that encodes the frames of a board in one go."""

    def encode_images(self, pngs: Sequence[bytes]) -> NDArray[np.float64]:
        """What `encode_image` gives for each frame, of shape (N, D)."""
        ...
