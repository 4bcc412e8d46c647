"""The records that every part of katha passes on."""

from katha.schema.board import Board, Frame, FrameKind
from katha.schema.compass import (
    Candidate,
    Candidates,
    CandidateScore,
    CompassSettings,
    Decision,
    TransitionScore,
)
from katha.schema.events import Event, Stage
from katha.schema.judging import CONDITIONS, Answer, AnswerStatus, Condition, Confidence, Packet
from katha.schema.plan import PLAN_FORMAT, Character, Link, Panel, Plan
from katha.schema.story import (
    DIMENSIONS,
    LATENT_DIMENSIONS,
    MORAL_LABELS,
    ContrastiveVariant,
    Dimension,
    Question,
    Record,
    Role,
    Scene,
    StoryRecord,
    Transition,
    TransitionType,
)

__all__ = [
    "CONDITIONS",
    "DIMENSIONS",
    "LATENT_DIMENSIONS",
    "MORAL_LABELS",
    "PLAN_FORMAT",
    "Answer",
    "AnswerStatus",
    "Board",
    "Candidate",
    "CandidateScore",
    "Candidates",
    "Character",
    "CompassSettings",
    "Condition",
    "Confidence",
    "ContrastiveVariant",
    "Decision",
    "Dimension",
    "Event",
    "Frame",
    "FrameKind",
    "Link",
    "Packet",
    "Panel",
    "Plan",
    "Question",
    "Record",
    "Role",
    "Scene",
    "Stage",
    "StoryRecord",
    "Transition",
    "TransitionScore",
    "TransitionType",
]
