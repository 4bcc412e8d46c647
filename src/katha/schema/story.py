"""Stories in KathaBench-25K's released fields (Tables 7, 8, 13, 15, 16 of the KathaTrace paper).

Scene indices count from 1. Unknown keys are kept, not dropped, so a released record survives a round trip.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints

Dimension = Literal["action_visibility", "causal", "emotional", "consequence", "temporal_order", "moral"]
TransitionType = Literal["cause_effect", "moral_choice", "consequence_reveal"]
Role = Literal["steering", "reporting"]
Text = Annotated[str, StringConstraints(strip_whitespace=True)]

DIMENSIONS: tuple[Dimension, ...] = (
    "action_visibility",
    "causal",
    "emotional",
    "consequence",
    "temporal_order",
    "moral",
)
"""The six scored QA dimensions (Eq. 5, Table 14)."""

LATENT_DIMENSIONS: tuple[Dimension, ...] = ("causal", "emotional", "consequence", "moral")
"""The dimensions of latent-transition analysis (Eq. 13)."""

MORAL_LABELS: tuple[str, ...] = (
    "compassion",
    "courage",
    "generosity",
    "gratitude",
    "honesty",
    "humility",
    "kindness",
    "patience",
    "perseverance",
    "responsibility",
    "self_control",
    "wisdom",
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


class Transition(Record):
    """What changes between two adjacent scenes and why (Table 8, Eq. 4)."""

    story_id: str = ""
    from_scene: int = Field(ge=1)
    to_scene: int = Field(ge=1)
    transition_type: TransitionType = "cause_effect"
    action: str = ""
    causality: str = ""
    intention: str | None = None
    emotion: str | None = None
    consequence: str = ""
    expected_change: str = ""
    moral_target: str | None = None
    recoverability_target: str = ""

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
