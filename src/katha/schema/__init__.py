"""The records that every part of katha passes on: stories, plans, boards, what the compass decided, and answers.

Stories carry KathaBench-25K's released fields (Tables 7, 8, 13, 15 and 16 of the KathaTrace paper). Scene indices count
from 1. Unknown keys are kept, not dropped, so a released record survives a round trip. What scoring makes of answers is
in `katha.schema.scores`, the tables of experiments are in `katha.schema.tables`.

Imports: no other room.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Annotated, Any, Literal, Self, TypedDict, get_args

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    model_validator,
)

Dimension = Literal["action_visibility", "causal", "emotional", "consequence", "temporal_order", "moral"]
TransitionType = Literal["cause_effect", "moral_choice", "consequence_reveal"]
Role = Literal["steering", "reporting"]
Text = Annotated[str, StringConstraints(strip_whitespace=True)]

Blank = Annotated[str, BeforeValidator(lambda value: "" if value is None else value)]
"""A text that may be told by null: there is none."""

DIMENSIONS: tuple[Dimension, ...] = get_args(Dimension)
"""The six scored QA dimensions (Eq. 5, Table 14)."""

LATENT_DIMENSIONS: tuple[Dimension, ...] = ("causal", "emotional", "consequence", "moral")
"""The dimensions of latent-transition analysis (Eq. 13)."""

MORAL_LABELS: tuple[str, ...] = (
    *("compassion", "courage", "generosity", "gratitude", "honesty", "humility"),
    *("kindness", "patience", "perseverance", "responsibility", "self_control", "wisdom"),
)
"""The twelve moral targets (Table 11)."""


class Record(BaseModel):
    """Base of the records read from files: unknown keys are kept, NaN is refused."""

    model_config = ConfigDict(extra="allow", allow_inf_nan=False, populate_by_name=True)


class Scene(Record):
    """One scene of a story (Table 7)."""

    story_id: str = ""
    scene_index: int = Field(ge=1)
    scene_text: Text
    characters: list[str] = []
    objects: list[str] = []
    action: str = ""
    state: str = ""
    emotion: str | None = None
    visual_evidence: str | None = None
    visual_must_show: list[str] = []
    generation_prompt: str = ""
    place: str = Field(default="", exclude_if=lambda value: not value)
    time_of_day: str = Field(default="", exclude_if=lambda value: not value)


class Transition(Record):
    """What changes between two adjacent scenes and why (Table 8, Eq. 4)."""

    story_id: str = ""
    from_scene: int = Field(ge=1)
    to_scene: int = Field(ge=1)
    transition_type: TransitionType | None = None
    """What kind of step it is; None where nobody said and nothing was read that tells."""
    action: Blank = ""
    causality: Blank = ""
    intention: str | None = None
    emotion: str | None = None
    consequence: Blank = ""
    expected_change: Blank = ""
    moral_target: str | None = None
    recoverability_target: Blank = ""
    device: Blank = Field(default="", exclude_if=lambda value: not value)
    """By which of the visual grammar's means the change is seen without words (`Device`)."""
    shown: Blank = Field(default="", exclude_if=lambda value: not value)
    """One sentence: what in the two frames lets a viewer see it."""

    @property
    def pair(self) -> tuple[int, int]:
        """The two scene indices that this transition joins."""
        return (self.from_scene, self.to_scene)


class Question(Record):
    """A recoverability question with its frozen accepted answers (Table 13).

    `role` and `options` are added by a run: the half of the steering/reporting split that the question belongs to, and
    the fixed answer options shown to judges that choose (canonical answer, distractors and `Unclear`, in order).
    """

    question_id: str
    story_id: str = ""
    question_type: Dimension
    question: Text
    gold_answer: Text
    accepted_answers: list[str] = []
    target_scene: int | None = None
    target_transition: tuple[int, int] | None = None
    evidence_scenes: list[int] = []
    required_evidence: str = ""
    answerability: str = "answerable"
    role: Role | None = None
    options: list[str] | None = None


class ContrastiveVariant(Record):
    """A story with the same entities and one changed transition (Table 15)."""

    variant_id: str
    base_story_id: str
    variant_kind: str = ""
    subset: str = ""
    narrative_type: str = ""
    has_variant: bool = True
    pair_id: str = ""
    changed_scene_id: int | None = None
    change_type: str = ""
    original_moral: str | None = None
    contrastive_moral: str | None = None
    semantic_delta: str = ""
    contrastive_scene_text: str = ""
    contrastive_story_text: str = ""


class QuestionMaking(Record):
    """How a story's free questions were made: what each stage found, who wrote and read them, and with what.

    Of the questions as first written: guessed, by a reader without any evidence (partly: a part of the answer);
    unsettled, by a reader of the text; told, by their own words or another question's; invisible, in any picture. One
    may be several. What failed was written again once; `again` counts the same of that. lost: what was dropped.
    """

    written: int = 0
    guessed: int = 0
    partly: int = 0
    unsettled: int = 0
    told: int = 0
    invisible: int = 0
    rewritten: int = 0
    again: dict[str, int] = {}
    dropped: int = 0
    kept: int = 0
    lost: list[str] = []
    model: str = ""
    reader: str = ""
    prompts: dict[str, str] = {}
    """By name, the hash of each prompt."""

    def summary(self) -> str:
        """Return it in a sentence: "12 questions written, 2 guessed without evidence; 2 rewritten, 1 dropped."."""
        found = {
            "guessed without evidence": self.guessed,
            "not settled by the text": self.unsettled,
            "given away": self.told,
            "not to be seen in any picture": self.invisible,
        }
        first = [f"{self.written} questions written", *(f"{count} {what}" for what, count in found.items() if count)]
        return f"{', '.join(first)}; {self.rewritten} rewritten, {self.dropped} dropped."


class CastMember(Record):
    """A person whom a script names. look: what it says of their looks or age, in its own words."""

    name: str
    look: str = ""


class ScriptScene(Record):
    """A scene that a script's heading begins: from which paragraph of the story's text on (from 0), where and when."""

    paragraph: int = Field(ge=0)
    place: str = ""
    time_of_day: str = ""
    outdoors: bool = False
    number: str = ""


class Structure(Record):
    """What a file said besides its story's words: its kind, whom it names, and where its scenes begin."""

    kind: str
    cast: list[CastMember] = []
    scenes: list[ScriptScene] = []


class StoryRecord(Record):
    """One story: a plain text (title and text only) or a full KathaBench record."""

    story_id: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    title: Text = ""
    story_text: Text = Field(validation_alias=AliasChoices("story_text", "text", "story"))
    narrative_type: str | None = None
    moral_label: str | None = None
    split: str | None = None
    scenes: list[Scene] = []
    transitions: list[Transition] = []
    recoverability_questions: list[Question] = Field(
        default=[],
        validation_alias=AliasChoices("recoverability_questions", "questions", "qa_pairs", "recoverability_qa"),
    )
    provenance: dict[str, Any] = {}
    validation_status: str | None = None
    evidence_status: dict[str, Any] = {}
    structure: Structure | None = Field(default=None, exclude_if=lambda value: value is None)
    """Of a script, shot list or other structured file; None for prose."""

    @property
    def source_family(self) -> str | None:
        """The collection that the story comes from (A.16: `provenance.source_dataset`)."""
        told = self.provenance.get("source_dataset")
        return told if isinstance(told, str) and told.strip() else None


class Character(Record):
    """One character with a stable look.

    `kind` is what it is in plain words ("lion", "old woman"); `appearance` is the phrase that every prompt repeats so
    that it looks the same in every frame; `anchor_prompt` shows it alone (for renderers with an identity bank).
    `in_text` is how the story calls it, where the name is a label of the plan's own.
    """

    name: str
    kind: str
    appearance: str
    anchor_prompt: str = ""
    in_text: str = Field(default="", exclude_if=lambda value: not value)


class Link(Record):
    """A phrase of the story that cannot be seen, and what is seen in its place ("bad news": "a sad face")."""

    phrase: str
    visible: str


Device = Literal[
    "cause in frame",
    "presence before absence",
    "same path twice",
    "planted pivot",
    "one prop two states",
    "sky and light",
    "direction",
    "gaze",
    "cut-open",
    "trail",
    "pictured word",
    "sound mark",
    "costume change",
    "return",
]
"""The means of the visual grammar: how a transition is seen without words."""
SHOT_SIZES = ("close-up", "medium", "wide")
SHOT_ANGLES = ("eye level", "low angle", "high angle")
"""The shots that a language model may ask for."""


def _unsaid(value: object) -> bool:
    """Return whether a field says nothing; such fields are left out, so that older plans keep their bytes."""
    return not value


class Prop(Record):
    """A thing that matters, the same in every frame: how it looks, and the states that it goes through."""

    name: str
    looks: str = ""
    states: list[str] = []


class Seen(Record):
    """How a character or thing is in one frame: clothes, damage, what is held; and the mood of a face."""

    name: str
    state: str = ""
    mood: str = ""


class Gaze(Record):
    """Whom or what a character looks at in one frame, and what they are not to look at."""

    who: str
    at: str
    not_at: str = ""


class Visual(Record):
    """What holds for a whole board: which side is what, which way is forward, places that return, and the pivot.

    pivot: the one thing that the story turns on, and the colour that it alone has. left_out: what of the story no frame
    shows. added: what frames show that the text does not have. unseen: questions, asked of the planner, that no frame
    answers.
    """

    geography: str = ""
    direction: str = ""
    places: list[str] = []
    pivot: str = ""
    pivot_colour: str = ""
    props: list[Prop] = []
    order: Literal["", "telling", "time"] = ""
    left_out: list[str] = []
    added: list[str] = []
    unseen: list[str] = Field(default=[], exclude_if=_unsaid)


class Panel(Record):
    """What one frame shows. `index` is the scene, from 1; `must_show` lists what has to be visible in it.

    `source` is the piece of the story that the panel stands for, letter by letter, where the planner divided it.
    `place`, `time_of_day`, `shot_size`, `shot_angle` and `links` say how the prompt was made drawable; the words that
    are offered for a shot are in `configs/shots.yaml`. `not_drawn` are the words that the run's renderer has only a
    stand-in for.
    """

    index: int = Field(ge=1)
    prompt: str
    negative_prompt: str = ""
    caption: str = ""
    characters: list[str] = []
    must_show: list[str] = []
    source: str = ""
    place: str = ""
    time_of_day: str = ""
    shot_size: str = ""
    shot_angle: str = ""
    links: list[Link] = []
    light: str = Field(default="", exclude_if=_unsaid)
    weather: str = Field(default="", exclude_if=_unsaid)
    camera: str = Field(default="", exclude_if=_unsaid)
    """Where the eye is, and what it has in common with another frame: "as frame 1, closer"."""
    camera_move: str = Field(default="", exclude_if=_unsaid)
    """How the camera moves: "pan left". No still picture shows it; films and the player follow it, and every
    export has it in words."""
    sound: str = Field(default="", exclude_if=_unsaid)
    """What is heard and not spoken: "rain on the roof"."""
    state: list[Seen] = Field(default=[], exclude_if=_unsaid)
    gaze: list[Gaze] = Field(default=[], exclude_if=_unsaid)
    contacts: list[str] = Field(default=[], exclude_if=_unsaid)
    """Whose hand is on what."""
    causes_next: str = Field(default="", exclude_if=_unsaid)
    """What in this frame makes the next one happen."""
    not_drawn: list[str] = Field(default=[], exclude_if=lambda value: not value)


class Coverage(Record):
    """How much of a story's text a plan holds: of the sentences that tell something visible, how many were read, and
    how many are in a picture. `in_part` are those of them in whose picture something stands for what the renderer
    cannot draw (`stand_ins`): they count as lost. `silent` are the other sentences, which tell nothing to see. `note`
    says what kind of text it is where that is not a plain story."""

    visible: int = Field(ge=0)
    read: int = Field(ge=0)
    drawn: int = Field(ge=0)
    not_read: list[str] = []
    not_drawn: list[str] = []
    in_part: list[str] = []
    stand_ins: list[str] = []
    silent: list[str] = Field(default=[], exclude_if=lambda value: not value)
    note: str = ""

    @property
    def whole(self) -> int:
        """Return how many sentences are in a picture that shows all of what it is asked to."""
        return self.drawn - len(self.in_part)

    @property
    def share(self) -> float:
        """Return the sentences wholly in a picture, of those that tell something visible, in percentage points."""
        return 100.0 * self.whole / self.visible if self.visible else 100.0

    @property
    def low(self) -> bool:
        """Return whether so little is drawn that a headline has to say so."""
        return self.share < _LOW_COVERAGE

    def warning(self) -> str:
        """Return what a headline has to say of a board that leaves much of its story out; "" of any other."""
        how = "wholly in" if self.in_part else "in"
        return f"Only {self.whole} of {self.visible} sentences are {how} this board." if self.low else ""

    def told(self) -> str:
        """Return it in a sentence: "Read 13 of 14 sentences that can be shown; 12 drawn; not drawn: ..."."""
        some = f"{self.visible} sentence{'' if self.visible == 1 else 's'} that can be shown"
        said = f"Read {self.read} of {some}; {self.drawn} drawn"
        said += f", {len(self.in_part)} with a plain stand-in for {', '.join(self.stand_ins)}" if self.in_part else ""
        lost = f"; not drawn: {_listed(self.not_drawn)}" if self.not_drawn else ""
        silent = f"; nothing to see in {_listed(self.silent)}" if self.silent else ""
        return f"{said}{lost}{silent}."


_LOW_COVERAGE = 80.0
_FEW_SENTENCES = 3
_LONGEST_QUOTE = 60


def _listed(texts: Sequence[str]) -> str:
    """The first of some sentences, and how many more there are."""
    shown = [_quoted(text) for text in texts[:_FEW_SENTENCES]]
    rest = len(texts) - len(shown)
    return f"{', '.join(shown)}{f' and {rest} more' if rest else ''}"


def _quoted(text: str) -> str:
    """A sentence in quotes, cut where it is long; one that holds speech stands in the other quotes."""
    short = text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE].rsplit(" ", 1)[0] + " ..."
    return f"\u201c{short}\u201d" if '"' in short else f'"{short}"'


class PlanMarks(Record):
    """Marks of a plan's panels and transitions as the planner made them, so that changes by hand are seen."""

    panels: list[str] = []
    transitions: list[str] = []


class Plan(Record):
    """A drawable plan of one story.

    `information` names the fields of the record that the planner saw. `transitions_from` names who read the transitions
    where the planner itself knows none; empty, they are the planner's own. `renewed` says what was made again after
    the plan had been changed by hand, and what was kept. `question_making` counts how its questions were made.
    """

    format: Literal[1] = 1
    story_id: str
    title: str = ""
    planner: str
    information: list[str] = []
    style: str = ""
    characters: list[Character] = []
    panels: list[Panel]
    transitions: list[Transition] = []
    transitions_from: str = ""
    questions: list[Question] = []
    question_making: QuestionMaking | None = Field(default=None, exclude_if=lambda value: value is None)
    replanned: tuple[int, int] | None = None
    coverage: Coverage | None = Field(default=None, exclude_if=lambda value: value is None)
    made: PlanMarks | None = Field(default=None, exclude_if=lambda value: value is None)
    renewed: list[str] = Field(default=[], exclude_if=lambda value: not value)
    visual: Visual | None = Field(default=None, exclude_if=lambda value: value is None)

    @model_validator(mode="before")
    @classmethod
    def _numbered(cls, value: Any) -> Any:
        """Give a number to every panel that a person wrote without one, or copied from another."""
        rows = value.get("panels") if isinstance(value, Mapping) else None
        if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
            return value
        numbers = [row.get("index") for row in rows]
        free = (at for at in count(1) if at not in numbers)
        anew = [number is None or number in numbers[:at] for at, number in enumerate(numbers)]
        panels = [{**row, "index": next(free)} if new else row for row, new in zip(rows, anew, strict=True)]
        return {**value, "panels": panels}


# Images are files named by the sha256 of their bytes; records hold names, never pixels.
FrameKind = Literal["scene", "bridge", "extra"]


class Frame(Record):
    """One drawn frame. A scene frame has `scene`; a bridge or extra frame has the `transition` it stands in.

    `seed` is the one it was drawn with. `renderer` is set when another renderer than the board's drew it.
    """

    index: int = Field(ge=1)
    kind: FrameKind = "scene"
    scene: int | None = None
    transition: tuple[int, int] | None = None
    image: str
    sha256: str
    prompt: str
    seed: int
    renderer: str | None = None
    source: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The drawing that the picture was made from, beside it: `panels/<sha256>.svg`."""
    guide: str | None = Field(default=None, exclude_if=lambda value: value is None)
    """The layout that the picture follows, by another renderer: `panels/<sha256>.png`."""
    panel: Panel | None = Field(default=None, exclude_if=lambda value: value is None)
    """What a repair had drawn in the place of what the plan says of this scene, or between two."""

    @property
    def repaired(self) -> bool:
        """Return whether a repair put it here: a frame that was inserted, or a scene that was drawn anew."""
        return self.kind != "scene" or self.panel is not None


class Board(Record):
    """The ordered frames of one story, as written to `storyboard.json`."""

    story_id: str
    method: str
    mode: str
    planner: str
    renderer: str
    seed: int
    plan_sha256: str
    frames: list[Frame]

    @property
    def guided(self) -> bool:
        """Return whether a frame follows a layout."""
        return any(frame.guide is not None for frame in self.frames)


class CompassSettings(Record):
    """Weights and thresholds of Eqs. 24 to 27 and Algorithm 1.

    Recoverability enters Eq. 24 as a fraction (0 to 1), like coverage and copy penalty. `delta` and `gamma` are
    similarities (-1 to 1); a transition is repaired when it scores below `repair_threshold` (0 to 1).
    """

    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)

    lambda_r: float = Field(default=1.0, ge=0)
    lambda_t: float = Field(default=0.5, ge=0)
    lambda_p: float = Field(default=0.5, ge=0)
    delta: float = Field(default=0.5, ge=-1, le=1)
    gamma: float = Field(default=0.95, ge=-1, le=1)
    repair_threshold: float = Field(default=0.75, ge=0, le=1)


class ReadBack(Record):
    """How many of the pictures that were meant to show something a reader of pictures finds to show it.

    A picture counts where the reader finds in it what it was drawn from, and better than in the board's other pictures.
    A board whose pictures are exchanged has one of them on average.
    """

    found: int = Field(ge=0)
    meant: int = Field(ge=0)

    @classmethod
    def of(cls, found: Sequence[bool]) -> Self:
        """Return the count of pictures, each found or not."""
        return cls(found=sum(found), meant=len(found))

    @property
    def share(self) -> float:
        """The share found, in 0..1; 0 of no pictures."""
        return self.found / self.meant if self.meant else 0.0

    def told(self) -> str:
        """Return it in words: "11 of 14 pictures read back as meant"."""
        return f"{self.found} of {self.meant} picture{'s' if self.meant != 1 else ''} read back as meant"


class TransitionScore(Record):
    """One transition of one candidate, scored on its adjacent frames (Eq. 27). `recoverability` in 0..1, or None
    when it has no steering question; `similarity` is Eq. 25's maximum before thresholding; `adjacent` is the largest
    similarity of neighbouring frames in it (Eq. 26 before thresholding)."""

    pair: tuple[int, int]
    recoverability: float | None
    n_questions: int
    similarity: float
    covered: bool
    copied: bool
    adjacent: float = 0.0
    note: str | None = None
    read_back: ReadBack | None = Field(default=None, exclude_if=_unsaid)
    """Of its frames, where a reader of pictures measured the board in place of questions."""


class CandidateScore(Record):
    """Eq. 24 for one candidate, every term in 0..1. `recoverability` is None when no steering question was scored.

    read_back: where nobody could be asked, how many pictures read back as meant; its share then stands in the place of
    recoverability in `total`.
    """

    recoverability: float | None
    coverage: float
    copy_penalty: float
    total: float
    read_back: ReadBack | None = Field(default=None, exclude_if=_unsaid)
    noise: float | None = Field(default=None, exclude_if=lambda value: value is None)
    """Half of what recoverability differs by between two steering prompt variants, where both were asked."""

    @property
    def measured(self) -> bool:
        """Return whether a judge could say anything of the board's pictures; else `total` is of the terms that need
        none."""
        return self.recoverability is not None or self.read_back is not None


class Candidate(Record):
    """A board that was considered: a seed's base board, or the selected board with a frame inserted or redrawn."""

    name: str
    kind: Literal["base", "inserted", "redrawn"]
    board: Board
    score: CandidateScore
    transitions: list[TransitionScore]


MoveKind = Literal["bridge", "redraw_after", "redraw_before", "reframe", "device", "again"]
"""What a repair changes: a frame between; the frame after or before, drawn from other words; the same content in
another shot; the same frames with what makes the step readable planted in them; or, with nothing changed, another
drawing."""


class Move(Record):
    """A change to a board that may make one transition readable.

    panels: the frames to draw: of a bridge the one that goes between, else each in the place of the scene of its index.
    device: how the change comes to be seen, as in a plan. reason: one sentence by who proposed it.
    """

    kind: MoveKind
    pair: tuple[int, int]
    panels: list[Panel] = Field(min_length=1)
    device: str = Field(default="", exclude_if=_unsaid)
    reason: str = ""


class Missed(Record):
    """A steering question that the pictures did not answer: what a viewer should say, and what each judge said."""

    question_id: str
    question: str
    dimension: Dimension
    wanted: str
    answered: dict[str, str]


class RepairEvidence(Record):
    """What judges could not tell from a board, and so what its repair is about.

    asked: how many steering questions of the transition were asked on its frames. missed: those of them that were
    missed. elsewhere: others that were missed on the whole board. seen: by judge, what it says it sees in the frames.
    """

    pair: tuple[int, int]
    asked: int = Field(ge=0)
    missed: list[Missed] = []
    elsewhere: list[Missed] = []
    seen: dict[str, str] = {}


class Tried(Record):
    """One move that was drawn and measured: its round, its boards by seed, the best of them, and what came of it.

    gain: by how much the best board's score (Eq. 24) is above that of the board before. answered: the ids of the
    steering questions that the best board answers and the board before did not; lost: the other way round.
    """

    round: int = Field(ge=1)
    move: Move
    candidates: list[str]
    best: str
    gain: float
    accepted: bool
    reason: str
    answered: list[str] = []
    lost: list[str] = []


class Decision(Record):
    """The outcome of Algorithm 1 in words and numbers. `weakest` is None unless the mode goes there.

    evidence, tried: of a mode that repairs by moves, what each round began with, and every move with its figures.
    """

    selected: str
    weakest: tuple[int, int] | None = None
    weakest_reason: str | None = None
    inserted: str | None = None
    accepted: bool = False
    reason: str
    reviewed: bool = False
    evidence: list[RepairEvidence] = Field(default=[], exclude_if=_unsaid)
    tried: list[Tried] = Field(default=[], exclude_if=_unsaid)


class Candidates(Record):
    """`candidates.json`: every board considered, its score, and the decision."""

    format: Literal[1] = 1
    story_id: str
    mode: str
    settings: CompassSettings
    candidates: list[Candidate] = Field(min_length=1)
    decision: Decision


Stage = Literal["plan", "render", "critique", "select", "localize", "propose", "bridge", "decide", "judge", "report"]


class Event(TypedDict, total=False):
    """One event. `kind`: a stage `started` or `finished`, a `frame` drawn, an `answer` given, a `decision` taken, or
    `progress` within a step, which `message` tells.

    `total` is the number of steps of this stage that are known, `reused` says that nothing was paid for the step,
    `sha256` is the picture of a frame, `scene` the one that it shows where it is not an inserted frame; of `progress`
    it is a first version of it, which the cache has and the board may not come to have.
    """

    stage: Stage
    kind: Literal["started", "finished", "frame", "answer", "decision", "progress"]
    message: str
    total: int
    reused: bool
    sha256: str
    scene: int


Condition = Literal["text", "image", "text+image", "none"]
"""What a judge is shown beside a question; under `none` nothing, and its best guess is asked for."""
ASKED: tuple[Condition, ...] = get_args(Condition)
CONDITIONS: tuple[Condition, ...] = ("text", "image", "text+image")
"""The conditions with evidence (Table 34), under all of which a question needs an outcome to be scored."""
AnswerStatus = Literal["ok", "unparseable", "refused", "truncated", "transport_failed", "budget_stopped", "not_asked"]
Confidence = Literal["low", "medium", "high"]


class Packet(Record):
    """The evidence a judge may see: ordered image hashes (of re-encoded pixels) and, unless image-only, the story."""

    story_id: str
    condition: Condition
    images: tuple[str, ...] = ()
    text: str | None = None


class Answer(Record):
    """One line of `answers.jsonl`. Only `status == "ok"` is an answer; every other status is a typed failure.

    `method` names the board that was judged (None: a text-only answer that holds for every method). Steering answers
    are kept under their candidate's name (`candidate:42`, and `candidate:42/transition:2-3` for an adjacent pair; in a
    suite `candidate:42#MARK`, by the board's mark), so their keys never collide with reporting answers.
    """

    method: str | None
    judge: str
    story_id: str
    question_id: str
    condition: Condition
    status: AnswerStatus
    answer: str | None = None
    evidence_status: Literal["recoverable", "unclear", "omitted", "contradicted"] | None = None
    image_support: Literal["supported", "omitted", "contradicted", "ambiguous"] | None = None
    confidence: Confidence | None = None
    role: Role | None = None
    prompt_sha256: str = ""
    packet_sha256: str = ""
    raw: str | None = None
    error: str | None = None
    usage: dict[str, Any] = {}
