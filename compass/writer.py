"""Who proposes moves: a language model that is told what was missed, its blind twin, or a plan's fields where no model
is there.

A writer sees the story, the plan, what judges missed of the *steering* questions, and what was tried before. Reporting
questions and their answers are in nothing that it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, get_args

from pydantic import BaseModel, ConfigDict, Field

from katha.compass.moves import move_faults, told_by_fields
from katha.configs import load_prompt
from katha.eval_bridge.packets.instructions import object_schema
from katha.eval_bridge.questions.writing import write_one
from katha.models.base import TextModel
from katha.schema import (
    SHOT_ANGLES,
    SHOT_SIZES,
    Device,
    Move,
    MoveKind,
    Panel,
    Plan,
    RepairEvidence,
    Seen,
    StoryRecord,
    Transition,
    Tried,
)

_PROMPT = "repair/moves"


@dataclass(frozen=True)
class Task:
    """What moves are asked for.

    kinds: the moves that may be proposed. count: how many at most. evidence: what was missed; None: the writer is told
    the plan alone. tried: the moves of earlier rounds at this transition. panels: what each scene shows now, where an
    accepted move has changed it.
    """

    record: StoryRecord
    plan: Plan
    transition: Transition
    kinds: tuple[MoveKind, ...]
    count: int
    evidence: RepairEvidence | None = None
    tried: tuple[Tried, ...] = ()
    panels: tuple[Panel, ...] = ()

    @property
    def shown(self) -> tuple[Panel, ...]:
        """Return what each scene of the board shows."""
        return self.panels or tuple(self.plan.panels)


class Writer(Protocol):
    """Proposes moves."""

    def spec(self) -> Mapping[str, Any]:
        """Return everything that can change a proposal."""

    def propose(self, task: Task) -> list[Move]:
        """Return up to `task.count` moves of the kinds that the task allows.

        Raises:
            ReplyError: nothing that can be used was written. ModelError: the model gave no answer.
        """


class FieldsWriter:
    """Tells moves from a plan's fields, the same with evidence and without."""

    def spec(self) -> Mapping[str, Any]:
        """Return its name."""
        return {"name": "fields", "version": 1}

    def propose(self, task: Task) -> list[Move]:
        """Return the moves that the fields tell."""
        plan = task.plan.model_copy(update={"panels": list(task.shown)})
        return told_by_fields(plan, task.transition, task.kinds, task.count)


class _WrittenPanel(BaseModel):
    model_config = ConfigDict(extra="ignore")

    panel: int
    prompt: str = Field(min_length=1)
    characters: list[str] = []
    must_show: list[str] = []
    shot_size: str = ""
    shot_angle: str = ""
    state: list[Seen] = []


class _WrittenMove(BaseModel):
    model_config = ConfigDict(extra="ignore")

    kind: MoveKind
    reason: str = Field(min_length=1)
    device: str = ""
    panels: list[_WrittenPanel] = Field(min_length=1, max_length=2)


class _WrittenMoves(BaseModel):
    moves: list[_WrittenMove]


class ModelWriter:
    """Has a language model propose moves."""

    def __init__(self, model: TextModel) -> None:
        self._model = model

    def spec(self) -> Mapping[str, Any]:
        """Return the model and the prompt."""
        return {"name": "model", "model": dict(self._model.spec()), "prompt": load_prompt(_PROMPT).sha256}

    def propose(self, task: Task) -> list[Move]:
        """Return what can be drawn of what the model proposes, asked once more where nothing can."""
        prompt = load_prompt(_PROMPT).render(
            title=task.record.title,
            story=task.record.story_text,
            cast=task.plan.characters,
            visual=task.plan.visual,
            panels=task.shown,
            transition=task.transition,
            before=task.transition.from_scene,
            after=task.transition.to_scene,
            evidence=task.evidence,
            tried=task.tried if task.evidence is not None else (),
            proposed=[] if task.evidence is not None else [one.move for one in task.tried],
            kinds=task.kinds,
            count=task.count,
            devices=get_args(Device),
        )

        def wrong(made: _WrittenMoves) -> str | None:
            faults = [list(move_faults([move], task.kinds, task.plan)) for move in _moves(made, task)]
            return next((first for first, *_ in faults), "There is no move.") if all(faults) else None

        made = write_one(self._model, prompt, _schema(task), _WrittenMoves, "moves", wrong)
        moves = [move for move in _moves(made, task) if not any(move_faults([move], task.kinds, task.plan))]
        return moves[: task.count]


def _moves(made: _WrittenMoves, task: Task) -> list[Move]:
    pair = task.transition.pair
    return [
        Move(
            kind=one.kind,
            pair=pair,
            panels=[_panel(panel, one.kind, task) for panel in one.panels],
            device=one.device if one.kind == "device" else "",
            reason=" ".join(one.reason.split()),
        )
        for one in made.moves
    ]


def _panel(told: _WrittenPanel, kind: MoveKind, task: Task) -> Panel:
    """The panel that was written: what it does not say stays as it is; another shot changes nothing else."""
    index = task.transition.to_scene if kind == "bridge" else told.panel
    was = next((panel for panel in task.shown if panel.index == index), None)
    base = was or Panel(index=max(1, index), prompt=told.prompt)
    shot = {
        "shot_size": told.shot_size or base.shot_size,
        "shot_angle": told.shot_angle or base.shot_angle,
        "camera": "",
    }
    if kind == "reframe" and was is not None:
        return base.model_copy(update=shot)
    words = {
        "prompt": told.prompt,
        "characters": list(dict.fromkeys(told.characters)),
        "must_show": list(told.must_show),
        "state": list(told.state),
        "gaze": [],
        "contacts": [],
        "causes_next": "",
        "links": [],
        "not_drawn": [],
    }
    bridged = {"caption": "", "source": ""} if kind == "bridge" else {}
    return base.model_copy(update={**words, **shot, **bridged})


def _schema(task: Task) -> dict[str, Any]:
    """Return the form of the reply."""
    names = [character.name for character in task.plan.characters]
    who: dict[str, Any] = {"type": "string", "enum": names} if names else {"type": "string"}
    state = object_schema({"name": who, "state": {"type": "string"}, "mood": {"type": "string"}})
    panel = object_schema(
        {
            "panel": {"type": "integer", "minimum": 1, "maximum": len(task.plan.panels)},
            "prompt": {"type": "string", "minLength": 1, "maxLength": 600},
            "characters": {"type": "array", "items": who},
            "must_show": {"type": "array", "items": {"type": "string", "maxLength": 120}, "maxItems": 5},
            "shot_size": {"type": "string", "enum": list(SHOT_SIZES)},
            "shot_angle": {"type": "string", "enum": list(SHOT_ANGLES)},
            "state": {"type": "array", "items": state},
        }
    )
    move = object_schema(
        {
            "kind": {"type": "string", "enum": list(task.kinds)},
            "panels": {"type": "array", "items": panel, "minItems": 1, "maxItems": 2},
            "device": {"type": "string", "enum": ["", *get_args(Device)]},
            "reason": {"type": "string", "minLength": 1, "maxLength": 240},
        }
    )
    return object_schema({"moves": {"type": "array", "items": move, "minItems": 1, "maxItems": task.count}})
