"""What a person can change on a board: one record an edit, which names a frame by its number on the board, from 1."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from katha.agents.editor.talk import Comment, Status
from katha.schema import Move, Plan

Pair = tuple[int, int]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1)]
Words = Annotated[str, Field(max_length=4000)]
Short = Annotated[str, Field(max_length=200)]
Names = Annotated[tuple[Short, ...], Field(max_length=64)]
Sha256 = Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]


class _Edit(BaseModel):
    """Base of the edits: what is left out (None) stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class EditedWords(_Edit):
    """Everything that is said of one panel. `duration` is in seconds. The words that are offered for a shot are in
    `katha.shots`, and a prompt that begins with such a word ("Bird's eye view of the park") gives it to its field."""

    prompt: Words | None = None
    negative_prompt: Words | None = None
    caption: Words | None = None
    characters: Names | None = None
    must_show: Names | None = None
    place: Short | None = None
    time_of_day: Short | None = None
    shot_size: Short | None = None
    shot_angle: Short | None = None
    camera_move: Short | None = None
    weather: Short | None = None
    light: Short | None = None
    sound: Words | None = None
    dialogue: Words | None = None
    action: Words | None = None
    notes: Words | None = None
    camera: Short | None = None
    duration: Annotated[float, Field(gt=0, le=3600)] | None = None


class ChangeFrame(EditedWords):
    """Change what frame `frame` shows or says; of an inserted frame its prompt, caption, dialogue, action, notes,
    sound and duration. `seed`: draw it with that one."""

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
    (`katha.agents.editor.editing.keep_drawing`, `keep_own`). It stays whatever is said of the frame later, until the
    frame is drawn again with a seed."""

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


class TalkFrame(_Edit):
    """Say something about frame `frame`, or decide about it; its picture stays. comments: said beside those that are
    there, each once. status: "" takes it away."""

    op: Literal["talk"] = "talk"
    frame: int
    comments: Annotated[tuple[Comment, ...], Field(max_length=1000)] = ()
    status: Status | Literal[""] | None = None


class AddFrame(EditedWords):
    """Put a new panel before frame `at`; one more than there are frames puts it last."""

    op: Literal["add"] = "add"
    at: int
    prompt: Words = ""
    seed: Seed | None = None


class SplitFrame(_Edit):
    """Make two panels of frame `frame`: the first shows `first` (its prompt, unless told), the second `second`.

    The sentences of its caption and of its piece of the story are divided between them. The first loses who and what
    its words name no more, and keeps its picture where that leaves all that is drawn as it was; the second has its
    place, hour, light, weather and shot, and whom its own words name.
    """

    op: Literal["split"] = "split"
    frame: int
    second: Words
    first: Words | None = None


class DuplicateFrame(_Edit):
    """Put a copy of frame `frame`, a scene, behind it: the same panel and the same picture."""

    op: Literal["duplicate"] = "duplicate"
    frame: int


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

    age, color: words ("old", "red") that every prompt says before the character's kind. build, skin, hair, clothing:
    what its look says of them, in the place of what it said. reference: the sha256 of a picture of it that the run
    keeps (`editing.keep_picture`), for renderers that draw from pictures.
    """

    op: Literal["character"] = "character"
    name: str
    new_name: Short | None = None
    kind: Short | None = None
    age: Short | None = None
    color: Short | None = None
    build: Short | None = None
    skin: Short | None = None
    hair: Short | None = None
    clothing: Short | None = None
    appearance: Words | None = None
    anchor_prompt: Words | None = None
    reference: Sha256 | None = None


class AddCharacter(_Edit):
    """Put a new character on the cast; frames show it once they name it (`ChangeFrame.characters`, or their prompt).

    kind: what it is in plain words ("lion"); its name unless told. The other fields are those of `ChangeCharacter`.
    """

    op: Literal["new_character"] = "new_character"
    name: Short
    kind: Short = ""
    age: Short = ""
    color: Short = ""
    build: Short = ""
    skin: Short = ""
    hair: Short = ""
    clothing: Short = ""
    appearance: Words = ""
    reference: Sha256 = ""


class ChangeProp(_Edit):
    """Change how prop `name` looks in every frame that names it; a name that no prop has puts a new one on the board.

    looks: said in every prompt that names it; an empty text says nothing. reference: the sha256 of a picture of it that
    the run keeps (`editing.keep_picture`), for renderers that draw from pictures.
    """

    op: Literal["prop"] = "prop"
    name: Short
    new_name: Short | None = None
    looks: Words | None = None
    reference: Sha256 | None = None


class RemoveCharacter(_Edit):
    """Take character `name` off the cast and out of every frame's list; prompts keep their words."""

    op: Literal["drop_character"] = "drop_character"
    name: str


class MergeCharacters(_Edit):
    """Make two characters one: every frame of `name` is one of `into`, in its words, and `name` leaves the cast."""

    op: Literal["merge_characters"] = "merge_characters"
    name: str
    into: str


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


class MakeMove(_Edit):
    """Do what a repair proposes (`editing.propose_moves`): a frame between, or scenes drawn from other words. seed: of
    what is drawn; that of the board unless told."""

    op: Literal["repair"] = "repair"
    repair: Move
    seed: Seed | None = None

    @property
    def pair(self) -> tuple[int, int]:
        """The two scenes whose transition it is about."""
        return self.repair.pair


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
    | TalkFrame
    | AddFrame
    | SplitFrame
    | DuplicateFrame
    | RemoveFrame
    | MoveFrame
    | ChangeCharacter
    | AddCharacter
    | ChangeProp
    | RemoveCharacter
    | MergeCharacters
    | ChangeTransition
    | InsertBridge
    | MakeMove
    | ReplacePlan,
    Field(discriminator="op"),
]
"""Any edit; its JSON form names it by `op`."""

EDIT: TypeAdapter[Edit] = TypeAdapter(Edit)
