"""What plug-ins inherit: `Planner`, `Renderer`, `Judge`, `Similarity` and `StoryReader`. Twenty lines make a renderer.

A plug-in gives the methods that its base marks abstract; everything else has a default, and is overridden by those who
can do more. `spec()` returns everything that can change the result, as JSON: it is hashed into cache keys and written
into `run.json`. Where it matters whether a plug-in has an ability at all, the core asks `can`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from katha.errors import UsageError
from katha.schema import (
    AnswerStatus,
    Character,
    Condition,
    Confidence,
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

if TYPE_CHECKING:
    from katha.models.base import Purse, TextModel

_NOTHING: Mapping[str, Any] = MappingProxyType({})
# Tokens a word of English; a renderer that can count says `count_tokens`.
_PER_WORD = 4 / 3
WIDE = 0x2E80
"""The first letter of the scripts that put no blanks between words."""


def can(plugin: object, method: Callable[..., object]) -> bool:
    """Return whether a plug-in, or a class of plug-ins, overrides a method of its base: `can(renderer,
    Renderer.inpaint_frame)`."""
    kind = plugin if isinstance(plugin, type) else type(plugin)
    return getattr(kind, method.__name__, method) is not method


def tokens_of(text: str) -> int:
    """Return about how many tokens `text` has: 4/3 a word, one for every East Asian character."""
    wide = sum(ord(letter) >= WIDE for letter in text)
    return -int(-(len(text.split()) * _PER_WORD + wide) // 1)


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
    questions: what a viewer of the pictures will be asked, with the answers, written from the text by another model; a
    planner that can plans for them. heard: told in words how far a plan is that takes long.
    """

    panels: int = 5
    most_panels: int | None = None
    style: str = ""
    prompt_tokens: int | None = None
    questions: tuple[Question, ...] = ()
    heard: Callable[[str], None] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class Expected:
    """What a piece of work is reckoned at: calls of a model, and their tokens by kind."""

    calls: int
    tokens: Mapping[str, int]


class Planner(ABC):
    """Story to plan."""

    chooses_scenes: bool = False
    """Whether it divides a plain text itself: nobody else has to read it to know how many panels it calls for."""
    question_writer: TextModel | None = None
    """The language model that writes the story's questions, too; None where none is to be written."""

    @abstractmethod
    def spec(self) -> Mapping[str, Any]:
        """Return name and everything that can change the plan."""

    @abstractmethod
    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Return a plan of `story`.

        Raises:
            UsageError: the story cannot be planned (no event, too long, another language), with what to do.
        """

    def expected(self, story: StoryRecord, panels: int) -> Expected:
        """Return what planning `story` in so many panels is reckoned at, its questions included."""
        return Expected(1, {})

    def cost(self, tokens: Mapping[str, int]) -> float | None:
        """Return US dollars for tokens by kind; None where the price is unknown."""
        return 0.0

    def pay_from(self, purse: Purse, each: float) -> None:
        """Ask `purse` before every call from now on, each of which is expected to cost `each`."""
        return


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
    sky: its `weather` and `light` do, too; without it the prompt says the weather, and nothing the light.
    pictures: characters are drawn from the pictures of them that a request brings (`FrameRequest.pictures`); `things`:
    props are, too.
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
    sky: bool = False
    pictures: bool = False
    things: bool = False
    guide: bool = False
    prompt_family: str = "paragraph"


@dataclass(frozen=True)
class FrameRequest:
    """One frame to draw. `scene` is the scene index, or None for an inserted frame. `story_id` is for renderers that
    find pictures; what is drawn must not depend on it. `pictures` holds name and picture of each
    character and prop that has one: those that a person has given of them, where `Capabilities` say that they are drawn
    from, and those that a renderer asks for (`Renderer.picture_of`). `guide` is the layout that another renderer has
    drawn (PNG, of any size), where `Capabilities.guide` says that it is followed: who stands where, and not the style.

    `place`, `time_of_day`, `light`, `weather`, `shot_size`, `shot_angle`, `camera`, `must_show`, `state`, `gaze` and
    `contacts` are the panel's own, `props` the things of the board that matter in it; a renderer may leave them alone,
    as most draw from the prompt. `composed`: the prompt says all of these, the characters' looks and the style already
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
    weather: str = ""
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


@dataclass(frozen=True)
class PanelWords:
    """The words beside a found picture. duration: how long it stands, in seconds. sound: what is heard; place
    to light: as in a plan's panel."""

    dialogue: str = ""
    action: str = ""
    notes: str = ""
    duration: float | None = None
    caption: str = ""
    sound: str = ""
    place: str = ""
    time_of_day: str = ""
    shot_size: str = ""
    shot_angle: str = ""
    camera: str = ""
    camera_move: str = ""
    weather: str = ""
    light: str = ""


class Renderer(ABC):
    """Plan to frames. A frame depends on its request (and, where `capabilities` say so, its batch) and nothing else."""

    capabilities: Capabilities
    """What it can do; every renderer says so."""
    concurrency: int = 1
    """From how many threads a renderer that waits for a server may be asked: each frame is asked for apart then, and a
    receipt is that of the thread's last frame."""
    exclusive: bool = False
    """Whether it holds a model beside which no other fits into memory."""
    frame_price: float | None = 0.0
    """US dollars that one frame is expected to cost at most; None when unknown."""

    def price_of(self, pictures: int, size: tuple[int, int] | None = None) -> float | None:
        """Return the US dollars that one frame of `size`, drawn from so many pictures, is expected to cost at most;
        None when unknown. What it costs whatever it is drawn from is `frame_price`."""
        return self.frame_price

    @property
    def metered(self) -> bool:
        """Return whether its frames are calls that a budget counts, made by the command and not by its workers."""
        return self.frame_price != 0.0

    @abstractmethod
    def spec(self) -> Mapping[str, Any]:
        """Return name and everything that can change the pixels."""

    @abstractmethod
    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order, each as soon as it is ready.

        Raises:
            RenderError: a frame could not be made.
        """

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return the PNG of one frame added to a finished board, whose other frames do not change; one that stands
        alone, unless told."""
        if self.capabilities.insertion == "none":
            raise _unable(self, "adds no frame to a board")
        return next(iter(self.render_board([request])))

    def insert_frames(self, requests: Sequence[FrameRequest], context: BoardContext) -> Iterator[bytes]:
        """Yield for each of `requests`, which go to the same place, what `insert_frame` would give for it alone; with
        less work, where a renderer has such a method."""
        yield from (self.insert_frame(request, context) for request in requests)

    def inpaint_frame(self, request: FrameRequest, picture: bytes, mask: bytes) -> bytes:
        """Return a PNG of the request's size: `picture` with what `request` asks for where `mask` is white.

        picture, mask: PNGs of the same size, in RGB, and in grey with 0 and 255 alone. What comes back outside of the
        mask is not used.
        """
        raise _unable(self, "draws nothing inside a mask")

    def amend_frame(
        self, request: FrameRequest, source: bytes, cast: bytes | None, words: str, part: str = ""
    ) -> bytes:
        """Return a PNG of the request's size: the frame that `source` is, with the change that `words` ask for.

        source, cast: what the methods below gave for the frame and its board. part: the name of the part of `source`
        that the words are about; "" where they are about all of it.
        """
        raise _unable(self, "changes no finished drawing")

    def source(self) -> bytes | None:
        """Return the drawing (self-contained SVG) of the frame that this thread got last; None where there is none."""
        return None

    def vectors(self, request: FrameRequest) -> str | None:
        """Return the layered drawing (self-contained SVG) of a frame that `request` asks for, where it is drawn anew
        from the request alone; None where there is none."""
        return None

    def cast_source(self) -> bytes | None:
        """Return the sheet of the parts that this frame was made of; None where there is none."""
        return None

    def draw_cast(self, request: FrameRequest) -> bytes:
        """Return the sheet of the parts that the frames of a request's plan are made of, and draw no frame."""
        raise _unable(self, "draws from no cast sheet")

    def draw_views(
        self, character: Character, request: FrameRequest, cast: bytes | None, views: Mapping[str, str]
    ) -> Mapping[str, tuple[bytes, bytes]]:
        """Return a character of a request's plan from several sides, by the names of `views`: of each a PNG and the SVG
        that it was made of.

        cast: the board's cast sheet, if there is one. views: how each side is said. Renderers that draw from a prompt
        need not have this: they are asked for one picture a side.
        """
        raise _unable(self, "draws nobody from several sides")

    def figures(self, cast: bytes, plan: Plan) -> Mapping[str, bytes]:
        """Return a picture (PNG) of each of the plan's characters that the cast sheet has, by name."""
        return {}

    def picture_of(self, character: Character, request: FrameRequest) -> bytes | FrameRequest | None:
        """Return the user's own picture, or the request of a portrait for frames like `request`, or None for none.

        A renderer that has this method is handed a picture of every character with the request
        (`FrameRequest.pictures`): a portrait is drawn once, kept and paid for as any frame is.
        """
        return None

    def guided_spec(self) -> Mapping[str, Any]:
        """Return everything beside `spec()` that can change the pixels of a frame that follows a guide."""
        return {}

    def count_tokens(self, text: str) -> int:
        """Return how many of `Capabilities.prompt_tokens` a text takes; about four in three words, unless told."""
        return tokens_of(text)

    def not_drawn(self, request: FrameRequest) -> Sequence[str]:
        """Return the words of `request` that a stand-in or a neutral pose will stand for; asked before it draws, of
        those that have this method."""
        return ()

    def undrawn(self, character: Character) -> Sequence[str]:
        """Return what of the character's kind, age and colour no picture of it will show, in words as they stand."""
        return ()

    def show_drafts(self, hear: Callable[[FrameRequest, bytes], None]) -> None:
        """Have `hear` called with each frame's first picture (PNG, of any size), as long as this thread draws a board.

        It is called in the thread that asked for the board.
        """
        return

    def remarks(self) -> Sequence[str]:
        """Return what it has to say since it was last asked, a sentence each: that its model fits into memory, say."""
        return ()

    def receipt(self) -> Mapping[str, Any]:
        """Return how this thread's last frame came about, where its specification cannot know beforehand: `service`,
        `model`, `served` (the version that drew it), `date`, `tokens`, `cost` in US dollars or None."""
        return {}

    def require_served(self) -> None:
        """Refuse (UsageError) a model that its vendor is known to have taken away; nothing is called for this."""
        return

    def panel_words(self) -> Sequence[PanelWords]:
        """Return the words beside each found picture in order, for the plan's panels; nothing where there are none."""
        return ()

    def left_out(self, story_id: str) -> Sequence[str]:
        """Return a sentence that names what was found beside a board and is not a frame of it; nothing where all is."""
        return ()


@dataclass(frozen=True)
class Evidence:
    """What a judge sees: PNGs in order (re-encoded, no metadata) and, unless image-only, the story's text."""

    condition: Condition
    images: tuple[bytes, ...] = ()
    text: str | None = None


@dataclass(frozen=True)
class PictureLimits:
    """What a judge is shown of pictures: larger ones are made smaller before it is asked. None is no limit.

    side: longest side in pixels. bytes: of one picture, and request: of all of a call, as they are sent (base64).
    count: pictures of a call.
    """

    side: int | None = None
    bytes: int | None = None
    request: int | None = None
    count: int | None = None


@dataclass(frozen=True)
class JudgePrompt:
    """One question as it is put to a judge.

    instruction: the condition's and dimension's rendered prompt text. options: the fixed choices in order, or None for
    a free answer; the last is `Unclear`, but under the condition `none`, where a best guess is demanded.
    schema: the JSON schema of the reply (Sec. E.5).
    """

    question: str
    dimension: Dimension
    instruction: str
    options: tuple[str, ...] | None
    schema: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PromptExample:
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
    examples: tuple[PromptExample, ...] = ()
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


class Judge(ABC):
    """Evidence and questions to replies, each question answered on its own (one question a call, Sec. E.2)."""

    always_chooses: bool = False
    """Whether it can only choose: it is given options in every run."""
    ignores_instructions: bool = False
    """Whether it reads the question and its options alone, so that every prompt variant is one to it."""
    concurrency: int = 1
    """From how many threads a judge that waits for a server may be asked."""
    exclusive: bool = False
    """Whether it holds a model beside which no other fits into memory: such judges are asked one after the other."""
    price: Mapping[str, float] | None = _NOTHING
    """US dollars per million tokens by kind (`input`, `output`); empty where it is free, None when unknown."""
    thoughts: int = 0
    """Estimated thinking tokens of a call beside the answers, in `--dry-run`; they are paid for as output."""
    picture_side: int | None = None
    """The longest side in pixels of the pictures that it is sent; None: they go as they are."""
    picture_limits: PictureLimits | None = None
    """The pictures that its vendor takes; a packet is cut to them. None: all of them."""
    asks_together: bool = False
    """Whether all questions of a packet may be put to it in one call (`ask_together`), which carries the pictures once;
    otherwise each question is a call of its own."""
    caveat: str = ""
    """What there is to know of its answers, in a sentence that stands beside its numbers."""
    amended: Mapping[str, Any] = _NOTHING
    """Entries that replace those of `spec()` for calls from now on, where a server makes it ask in another way."""

    @property
    def metered(self) -> bool:
        """Return whether its calls are counted against a budget: those of one that calls a server or has a price."""
        return self.price is None or len(self.price) > 0

    @abstractmethod
    def spec(self) -> Mapping[str, Any]:
        """Return name, resolved revision, decoding and reuse mode: everything that can change a reply."""

    @abstractmethod
    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order, each as soon as it is there; failures are replies, not exceptions.

        Raises:
            TransientJudgeError: nothing could be asked, and the same call is worth another try.
        """

    def ask_together(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, in order, from one call. The first reply's usage is that of the call, the others'
        have neither cost nor tokens. A question that the call did not answer is a typed failure of its own.

        Raises:
            TransientJudgeError: nothing could be asked, and the same call is worth another try.
        """
        raise _unable(self, "answers one question a call")

    def ask_plainly(self, evidence: Evidence, prompts: Sequence[PlainPrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt that is put as it stands (what the metrics of other papers ask, word by word), in
        order, its text as `answer`; failures are replies, as in `ask`."""
        raise _unable(self, "answers katha's own questions only")

    def read_back(self, images: Sequence[bytes], meant: Sequence[str]) -> Sequence[bool] | None:
        """Return of each picture of a board whether it shows what it was drawn from (`meant`), and better than those
        that were drawn from something else; None where this is not read from pictures.

        A judge that has this method reads no language well enough to be asked questions that were made by rule: of a
        story without questions of its own the board is measured by this alone.
        """
        return None

    def recall(self, method: str | None, story_id: str, question_id: str, condition: Condition) -> JudgeReply | None:
        """Return the reply that an archive has to what was asked about whose board; None where it can only be told from
        what is shown."""
        return None

    def prefix_hits(self) -> tuple[int, int] | None:
        """Return tokens that its server's prefix cache had and tokens that were looked up, since its first question;
        None where that is not counted."""
        return None

    def require_served(self) -> None:
        """Refuse (UsageError) a model that its vendor is known to have taken away; nothing is called for this."""
        return

    def require_room(self) -> None:
        """Refuse (UsageError) a model that this machine's memory cannot hold, before anything is drawn for it; nothing
        is loaded for this."""
        return

    def close(self) -> None:
        """Give back what it holds, memory or connections; asking again takes it anew."""
        return


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
        """Return a feeling that a sentence tells, as a plain sentence; None where it tells none."""
        return None

    def accepts(self, text: str, question: Question) -> bool:
        """Return whether `text` could stand for an accepted answer, so that it can be no wrong option beside it."""
        said = (question.gold_answer, *question.accepted_answers)
        return " ".join(text.lower().split()) in {" ".join(one.lower().split()) for one in said}


class Similarity(ABC):
    """psi of Eqs. 25 and 26: unit vectors of shape (D,), so that the inner product is sim()."""

    @abstractmethod
    def spec(self) -> Mapping[str, Any]:
        """Return name, weights and revision."""

    @abstractmethod
    def encode_image(self, png: bytes) -> NDArray[np.float64]:
        """Return a unit vector of shape (D,) for one frame."""

    @abstractmethod
    def encode_text(self, text: str) -> NDArray[np.float64]:
        """Return a unit vector of shape (D,) for a transition's text; the zero vector when nothing in it is known."""

    def encode_images(self, pngs: Sequence[bytes]) -> NDArray[np.float64]:
        """Return what `encode_image` gives for each frame of a board, of shape (N, D); one by one, unless told."""
        return np.stack([self.encode_image(png) for png in pngs])

    def foresee(self, png: bytes) -> None:
        """Begin to encode a frame that `encode_image` will be asked for, and return at once; what fails, fails then."""
        return


def _unable(plugin: object, does: str) -> UsageError:
    return UsageError(f"{type(plugin).__name__} {does}.")
