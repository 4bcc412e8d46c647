"""What a person can change on a board: one record an edit, which names a frame by its number on the board, from 1."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from katha.schema import Plan

Pair = tuple[int, int]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
Words = Annotated[str, Field(max_length=4000)]
Short = Annotated[str, Field(max_length=200)]
Names = Annotated[tuple[Short, ...], Field(max_length=64)]
Sha256 = Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]


class _Edit(BaseModel):
    """Base of the edits: what is left out (None) stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class PanelWords(_Edit):
    """Everything that is said of one panel. `duration` is in seconds."""

    prompt: Words | None = None
    negative_prompt: Words | None = None
    caption: Words | None = None
    characters: Names | None = None
    must_show: Names | None = None
    place: Short | None = None
    time_of_day: Short | None = None
    shot_size: Short | None = None
    shot_angle: Short | None = None
    dialogue: Words | None = None
    action: Words | None = None
    notes: Words | None = None
    duration: Annotated[float, Field(gt=0, le=3600)] | None = None


class ChangeFrame(PanelWords):
    """Change what frame `frame` shows or says; of an inserted frame the prompt alone. `seed`: draw it with that one."""

    op: Literal["change"] = "change"
    frame: int
    seed: Seed | None = None


class TakeFrame(_Edit):
    """Draw frame `frame` with `seed`, or choose that take of it; `prompt`: the one that the take was drawn from.

    mask: the sha256 of a picture that the run keeps (`editing.keep_picture`); the frame is drawn anew
    where it is white, and stays as it is where it is black.
    """

    op: Literal["take"] = "take"
    frame: int
    seed: Seed
    prompt: Words | None = None
    mask: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None


class GivePicture(_Edit):
    """Put a picture of a person's own into frame `frame`: the sha256 of one that the run keeps
    (`katha.agents.editor.editing.keep_drawing`), with its drawing beside it."""

    op: Literal["picture"] = "picture"
    frame: int
    picture: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class AmendFrame(_Edit):
    """Have frame `frame`'s drawing changed as `words` say, and nothing else of it; `part`: the id of the group in its
    SVG that the words are about. For a renderer that draws from its own sources (`vector`)."""

    op: Literal["amend"] = "amend"
    frame: int
    words: Words
    part: Short = ""


class LockFrame(_Edit):
    """Hold the picture of frame `frame` against every later edit, or let it go."""

    op: Literal["lock"] = "lock"
    frame: int
    locked: bool = True


class AddFrame(PanelWords):
    """Put a new panel before frame `at`; one more than there are frames puts it last."""

    op: Literal["add"] = "add"
    at: int
    prompt: Words = ""
    seed: Seed | None = None


class SplitFrame(_Edit):
    """Make two panels of frame `frame`: it keeps its picture unless `first` changes its prompt, `second` follows it."""

    op: Literal["split"] = "split"
    frame: int
    second: Words
    first: Words | None = None


class RemoveFrame(_Edit):
    """Take frame `frame`, a scene or an inserted one, off the board."""

    op: Literal["remove"] = "remove"
    frame: int


class MoveFrame(_Edit):
    """Move frame `frame` so that it is number `to`."""

    op: Literal["move"] = "move"
    frame: int
    to: int


class ChangeCharacter(_Edit):
    """Change what character `name` is and looks like in every panel; an empty text takes a thing away.

    age, color: words ("old", "red") that every prompt says before the character's kind. reference: the sha256 of a
    picture of it that the run keeps (`editing.keep_picture`), for renderers that draw from pictures.
    """

    op: Literal["character"] = "character"
    name: str
    new_name: Short | None = None
    kind: Short | None = None
    age: Short | None = None
    color: Short | None = None
    appearance: Words | None = None
    anchor_prompt: Words | None = None
    reference: Sha256 | None = None


class ChangeTransition(_Edit):
    """Change what happens between two scenes, from which the judge's questions are made."""

    op: Literal["transition"] = "transition"
    pair: Pair
    action: Words | None = None
    causality: Words | None = None
    intention: Words | None = None
    emotion: Words | None = None
    consequence: Words | None = None
    moral_target: Short | None = None


class InsertBridge(_Edit):
    """Put a bridge between two adjacent scenes; without `prompt` it shows their transition."""

    op: Literal["bridge"] = "bridge"
    pair: Pair
    seed: Seed | None = None
    prompt: Words | None = None


class ReplacePlan(_Edit):
    """Take another plan, an edited `plan.json` for one: panels that are there word for word keep their picture."""

    op: Literal["plan"] = "plan"
    plan: Plan


Edit = Annotated[
    ChangeFrame
    | TakeFrame
    | GivePicture
    | AmendFrame
    | LockFrame
    | AddFrame
    | SplitFrame
    | RemoveFrame
    | MoveFrame
    | ChangeCharacter
    | ChangeTransition
    | InsertBridge
    | ReplacePlan,
    Field(discriminator="op"),
]
"""Any edit; its JSON form names it by `op`."""

EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)
