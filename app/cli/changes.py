"""What `katha redo` can be asked to change on a board, and the edits that it comes to."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from pydantic import BaseModel, ConfigDict, Field

from katha.agents.editor.editing import copied_from, find_frames, keep_drawing, keep_own, keep_picture, read_board
from katha.agents.editor.edits import (
    AmendFrame,
    ChangeCharacter,
    ChangeFrame,
    ChangeProp,
    DuplicateFrame,
    Edit,
    GivePicture,
    RemoveFrame,
    TakeFrame,
    TalkFrame,
)
from katha.agents.editor.talk import Comment
from katha.agents.folder import RunFolder
from katha.agents.frames import next_seed
from katha.agents.pictures import rectangle
from katha.composing import LOOK_FIELDS
from katha.config import Flag
from katha.errors import UsageError
from katha.jsonio import read_bytes
from katha.photographs import PictureEdit, read_crop, read_levels
from katha.pictures import read_picture
from katha.renderers.references import CharacterPictures

_RECTANGLE = re.compile(r"\s*,\s*".join([r"(\d{1,3}(?:\.\d+)?)"] * 4))
_SPAN = re.compile(r"(\d{1,4})(?:\s*-\s*(\d{1,4}))?")
WORDS = (
    *("caption", "place", "time_of_day", "shot_size", "shot_angle", "camera_move", "weather", "light", "sound"),
    *("dialogue", "action", "notes", "duration"),
)
"""What is said of a frame beside its prompt, and can be said of several at once."""


class ChangeRequest(BaseModel):
    """What is to be changed, and how."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    frame: int | None = Field(default=None, ge=1, description="Which frame of the storyboard, counted from 1.")
    frames: str | None = Field(default=None, description="Several frames, for the words of a shot: 3-9 or 2,5-7.")
    find: str | None = Field(
        default=None, description="The frames of which these words are said: to list them, or to change them."
    )
    seed: int | None = Field(default=None, ge=0, lt=2**32, description="The seed to draw it with.")
    prompt: str | None = Field(default=None, description="Draw it from these words instead.")
    caption: str | None = Field(default=None, description="The words under it; its picture stays.")
    place: str | None = Field(default=None, description="Where it is: kitchen.")
    time_of_day: Annotated[str | None, Flag("--time")] = Field(default=None, description="When it is: night.")
    shot_size: Annotated[str | None, Flag("--shot")] = Field(
        default=None, description="Its shot size: wide, medium, close-up, insert, two-shot, or another word."
    )
    shot_angle: Annotated[str | None, Flag("--angle")] = Field(
        default=None, description="Its angle: low angle, bird's eye, over the shoulder, point of view, or another word."
    )
    camera_move: Annotated[str | None, Flag("--move")] = Field(
        default=None, description="How the camera moves: pan left, tilt up, push in, track right, or another word."
    )
    weather: str | None = Field(default=None, description="Its weather: rain, snow, fog, or another word.")
    light: str | None = Field(default=None, description="Its light: moonlight, silhouette, or another word.")
    sound: str | None = Field(default=None, description="What is heard in it and not spoken.")
    dialogue: str | None = Field(default=None, description="What is spoken in it.")
    action: str | None = Field(default=None, description="What is done in it, for exports.")
    notes: str | None = Field(default=None, description="Notes on it, for exports.")
    duration: float | None = Field(default=None, gt=0, le=3600, description="How long it stands, in seconds.")
    mask: str | None = Field(
        default=None,
        description="Draw only this part of it anew: LEFT,TOP,WIDTH,HEIGHT in percent of the picture; or a picture "
        "that is white there.",
    )
    picture: Path | None = Field(
        default=None, description="Put this picture of your own into it: PNG, JPEG, a photograph of a drawing."
    )
    crop: str | None = Field(
        default=None, description="Of --picture only this part: LEFT,TOP,WIDTH,HEIGHT in percent of it."
    )
    levels: str | None = Field(
        default=None,
        description="Of --picture what becomes black and white: two numbers in percent, 15,80; or auto, which also "
        "evens the light on photographed paper.",
    )
    fill: bool = Field(default=False, description="Cut what of --picture the frame has no room for; no white border.")
    svg: Path | None = Field(default=None, description="Put this drawing of your own (SVG) into it.")
    change: str | None = Field(
        default=None, description="Have the model that drew it change its drawing as these words say, and nothing else."
    )
    part: str = Field(default="", description="The id of the group in its SVG that --change is about.")
    comment: str | None = Field(
        default=None, min_length=1, max_length=4000, description="Say this about it; its picture stays."
    )
    by: str = Field(default="", max_length=200, description="Who says --comment.")
    status: Literal["open", "changes", "approved", "none"] | None = Field(
        default=None, description="Decide about it: open, changes (it is to be changed), approved; none takes it away."
    )
    cast: str | None = Field(default=None, description="Whose looks --set changes: a character's name.")
    prop: str | None = Field(
        default=None, description="Which thing's looks --set changes; a name that no prop has is a new one."
    )
    changed: Annotated[tuple[str, ...], Flag("--set", many=True)] = Field(
        default=(),
        description="FIELD=WORDS. Of --cast: name, kind, age, color, build, skin, hair, clothing, look, picture (a "
        "file); of --prop: name, looks, picture. No words (hair=) take it away.",
    )
    remove: str | None = Field(default=None, description="Take these frames off the board, a bridge too: 3 or 2,5-7.")
    duplicate: bool = Field(default=False, description="Put a copy of --frame behind it.")
    copy_of: Annotated[str | None, Flag("--copy")] = Field(
        default=None, description="Put a frame of another board on this one: OTHER_RUN:3."
    )
    at: int | None = Field(default=None, ge=1, description="Where --copy goes: before this frame; last unless told.")


def flag_of(name: str) -> str:
    """Return the flag of a field of `ChangeRequest`."""
    told = next((item for item in ChangeRequest.model_fields[name].metadata if isinstance(item, Flag)), None)
    return told.names[0] if told is not None else f"--{name.replace('_', '-')}"


_ALONE: Mapping[str, Collection[str]] = {
    "--svg": ("--frame",),
    "--picture": ("--frame", "--crop", "--levels", "--fill"),
    "--mask": ("--frame", "--seed", "--prompt"),
    "--change": ("--frame", "--part"),
    "--comment": ("--frame", "--by", "--status"),
    "--status": ("--frame", "--by", "--comment"),
    "--cast": ("--set",),
    "--prop": ("--set",),
    "--remove": (),
    "--duplicate": ("--frame",),
    "--copy": ("--at",),
}
"""What makes one change by itself, and the options that belong to it."""
_OF = {
    "--part": "--change",
    "--crop": "--picture",
    "--levels": "--picture",
    "--fill": "--picture",
    "--at": "--copy",
    "--by": "--comment",
}
_CAST = ("--cast", "--prop")
_SHEET: Mapping[str, Mapping[str, str]] = {
    "cast": {name: name for name in ("kind", "age", "color", *LOOK_FIELDS)}
    | {"name": "new_name", "look": "appearance", "picture": "reference"},
    "prop": {"name": "new_name", "looks": "looks", "picture": "reference"},
}
"""What --set can change of a character and of a prop, and the edit's field for it."""
_WHICH = ("--frame", "--frames", "--find")


def require_followed(ways: Sequence[str], changes: Sequence[str]) -> None:
    """Refuse options that cannot be followed together: one of them would be left out without a word.

    Raises:
        UsageError: two ways at once, a change beside a way that makes none, or a change of no frame.
    """
    if len(ways) > 1:
        raise UsageError(f"{ways[0]} and {ways[1]} are two commands.", hint="Give one of them.")
    allowed = changes if not ways else ["--frame", "--prompt"] if list(ways) == ["--takes"] else []
    stray = [flag for flag in changes if flag not in allowed]
    if "--mask" in stray and list(ways) == ["--takes"]:
        raise UsageError("--takes draws whole frames, and --mask a part of one.", hint="Leave one of them out.")
    _require_one_change(changes)
    if stray:
        raise UsageError(f"{ways[0]} takes no {stray[0]}.", hint="Give one command for each.")
    which = [flag for flag in changes if flag in _WHICH]
    if len(which) > 1:
        raise UsageError(f"{which[0]} and {which[1]} both name frames.", hint="Give one of them.")
    made = [flag for flag in changes if flag in _FRAMED]
    if made and not which and not ways:
        raise UsageError(f"{made[0]} needs a frame.", hint=f"Name it: --frame 3 {made[0]} ...")
    single = next((flag for flag in changes if flag in _SINGLE), None)
    if single is not None and which and which != ["--frame"]:
        raise UsageError(f"{single} is for one frame.", hint=f"Name it: --frame 3 {single} ...")


def _require_one_change(changes: Sequence[str]) -> None:
    """Refuse an option beside a change that it does not belong to."""
    if "--svg" in changes and len(changes) > 2:
        raise UsageError("--svg is a picture as it is.", hint="Give --frame and --svg alone.")
    if "--set" in changes and not set(_CAST) & set(changes):
        raise UsageError("--set goes with --cast or --prop.", hint="Name whose looks: --cast Mia --set hair=red.")
    orphan = next((flag for flag in changes if flag in _OF and _OF[flag] not in changes), None)
    if orphan is not None:
        raise UsageError(f"{orphan} goes with {_OF[orphan]}.", hint=f"Add {_OF[orphan]} ...")
    redrawn = next((flag for flag in changes if flag in ("--seed", "--prompt", "--mask")), None)
    if "--change" in changes and redrawn is not None:
        raise UsageError(f"--change alters a drawing, and {redrawn} makes a new one.", hint="Leave one of them out.")
    alone = next((flag for flag in changes if flag in _ALONE), None)
    beside = next((flag for flag in changes if alone is not None and flag not in (alone, *_ALONE[alone])), None)
    if beside is not None:
        raise UsageError(f"{alone} takes no {beside}.", hint="Give one command for each.")


_SINGLE = ("--prompt", "--mask", "--svg", "--picture", "--change", "--comment", "--status", "--duplicate")
_FRAMED = (*(flag_of(name) for name in ("seed", *WORDS)), *_SINGLE)


def edits_of(run: Path, asked: ChangeRequest) -> list[Edit]:
    """Return the edits that are asked for, in order; none where no frame is named.

    Raises:
        UsageError: there is no such frame, or nothing is to change.
    """
    if asked.remove is not None:
        numbers = read_numbers(asked.remove, len(read_board(run).board.frames))
        return [RemoveFrame(frame=number) for number in reversed(numbers)]
    if asked.copy_of is not None:
        other, colon, number = asked.copy_of.rpartition(":")
        if not (colon and other and number.isdecimal()):
            said = f"--copy {asked.copy_of!r} names no frame of a board."
            raise UsageError(said, hint="Write the other run's folder and the number: --copy out/fox:3.")
        return list(copied_from(run, Path(other), int(number), asked.at))
    if asked.cast is not None or asked.prop is not None:
        return [_sheet(run, asked)]
    if asked.frame is not None and (own := _own(run, asked, asked.frame)) is not None:
        return [own]
    return _reworded(run, asked)


def _sheet(run: Path, asked: ChangeRequest) -> Edit:
    """The edit that changes what a character or a prop looks like.

    Raises:
        UsageError: nothing is set, or it is nothing that can be.
    """
    which, name = ("cast", asked.cast) if asked.cast is not None else ("prop", asked.prop or "")
    known = _SHEET[which]
    if not asked.changed:
        raise UsageError(f"Nothing is to change of {name}.", hint=f"Say what: --set {list(known)[-2]}=...")
    told: dict[str, str] = {}
    for item in asked.changed:
        field, equals, words = item.partition("=")
        if not equals or field.strip() not in known:
            said = f"--set {item!r} says nothing that --{which} can change."
            raise UsageError(said, hint=f"Known: {', '.join(f'{one}=...' for one in known)}.")
        told[field.strip()] = words.strip()
    if told.get("picture"):
        path = Path(told["picture"])
        told["picture"] = keep_picture(
            run, read_picture(path, f"The picture {str(path)!r}"), f"The picture {str(path)!r}"
        )
    given = {"name": name, **{known[field]: words for field, words in told.items()}}
    return (ChangeCharacter if which == "cast" else ChangeProp).model_validate(given)


def _own(run: Path, asked: ChangeRequest, number: int) -> Edit | None:
    """The edit of one frame that is not a change of its words alone; None where that is asked for."""
    if asked.svg is not None:
        return GivePicture(frame=number, picture=keep_drawing(run, read_bytes(asked.svg), number))
    if asked.picture is not None:
        what = f"The picture {str(asked.picture)!r}"
        crop = read_crop(asked.crop) if asked.crop is not None else None
        levels = read_levels(asked.levels) if asked.levels is not None else None
        kept = keep_own(run, read_picture(asked.picture, what), PictureEdit(crop, levels, asked.fill), what)
        return GivePicture(frame=number, picture=kept)
    if asked.mask is not None:
        return _part(run, number, asked.seed, asked.prompt, asked.mask)
    if asked.change is not None:
        return AmendFrame(frame=number, words=asked.change, part=asked.part)
    if asked.comment is not None or asked.status is not None:
        return _talk(asked, number)
    return DuplicateFrame(frame=number) if asked.duplicate else None


def _talk(asked: ChangeRequest, number: int) -> Edit:
    """Return the edit that says something about a frame, now."""
    when = datetime.now(UTC).isoformat(timespec="seconds")
    comments = (Comment(text=asked.comment, by=asked.by, at=when),) if asked.comment is not None else ()
    return TalkFrame(frame=number, comments=comments, status="" if asked.status == "none" else asked.status)


def _reworded(run: Path, asked: ChangeRequest) -> list[Edit]:
    """The edits that say something else of frames, or draw them with another seed."""
    told: dict[str, Any] = {name: value for name in WORDS if (value := getattr(asked, name)) is not None}
    told |= {"prompt": asked.prompt} if asked.prompt is not None else {}
    numbers, frames = targets(run, asked), read_board(run).board.frames
    if not numbers:
        return []
    if not told and asked.seed is None:
        raise UsageError(
            f"Nothing is to change in frame {numbers[0]}.",
            hint="Give --seed, --prompt, words of a shot (--place, --shot), --change, --takes, --mask, --picture or "
            "--svg.",
        )
    if not told:
        return [TakeFrame(frame=number, seed=asked.seed or 0) for number in numbers]
    several = asked.frame is None
    left = [number for number in numbers if several and frames[number - 1].kind != "scene"]
    if left and len(left) < len(numbers):
        listed = ", ".join(map(str, left))
        typer.echo(
            f"Left as {'it is' if len(left) == 1 else 'they are'}: frame {listed}, inserted and without a scene."
        )
        numbers = [number for number in numbers if number not in left]
    return [ChangeFrame(frame=number, seed=asked.seed, **told) for number in numbers]


def targets(run: Path, asked: ChangeRequest) -> list[int]:
    """Return the numbers of the frames that are named, by number or by what is said of them.

    Raises:
        UsageError: there is no such frame.
    """
    if asked.find is not None:
        found = list(find_frames(run, asked.find))
        if not found:
            raise UsageError(f"No frame says {asked.find!r}.", hint="Give fewer words, or other ones.")
        return found
    if asked.frames is not None:
        return read_numbers(asked.frames, len(read_board(run).board.frames))
    return [asked.frame] if asked.frame is not None else []


def read_numbers(text: str, most: int) -> list[int]:
    """Return the numbers of frames that `3-9` or `2,5-7` stands for, in order.

    Raises:
        UsageError: it stands for none, or for one that is not there.
    """
    found: set[int] = set()
    for part in text.split(","):
        span = _SPAN.fullmatch(part.strip())
        first, last = (int(span[1]), int(span[2] or span[1])) if span is not None else (1, 0)
        if last < first:
            raise UsageError(f"{text!r} names no frames.", hint="Write 3, 3-9 or 2,5-7.")
        found.update(range(first, last + 1))
    stray = next((number for number in sorted(found) if not 1 <= number <= most), None)
    if stray is not None:
        raise UsageError(f"There is no frame {stray}.", hint=f"The storyboard has frames 1 to {most}.")
    return sorted(found)


def _part(run: Path, number: int, seed: int | None, prompt: str | None, mask: str) -> Edit:
    """The edit that draws a part of a frame anew; the mask is kept in the run, as the desk keeps it."""
    frames, found = read_board(run).board.frames, _RECTANGLE.fullmatch(mask.strip())
    if number > len(frames):
        raise UsageError(f"There is no frame {number}.", hint=f"The storyboard has frames 1 to {len(frames)}.")
    if found is not None:
        png = RunFolder(run).panel(frames[number - 1].sha256)
        if png is None:
            raise UsageError(f"The picture of frame {number} is lost.", hint=f"Bring it back: katha run {run}.")
        left, top, width, height = map(float, found.groups())
        data = rectangle(png, left, top, width, height)
    elif Path(mask).is_file():
        data = read_picture(Path(mask), f"The mask {mask!r}")
    else:
        said = f"--mask {mask!r} is neither four numbers nor a picture."
        raise UsageError(said, hint="Write LEFT,TOP,WIDTH,HEIGHT in percent: --mask 50,0,50,100.")
    kept = keep_picture(run, data, "The mask")
    return TakeFrame(
        frame=number, seed=next_seed(frames[number - 1].seed) if seed is None else seed, prompt=prompt, mask=kept
    )


def sheets(run: Path, folder: Path | None) -> list[Edit]:
    """Return the edits that put the pictures of a folder on the sheets of the characters that they are named after."""
    if folder is None:
        return []
    cast, pictures = read_board(run).plan.characters, CharacterPictures(folder)
    if (stray := pictures.unused(cast)) is not None or not cast:
        raise UsageError(stray or "This board has no characters.", hint="Name each picture after its character.")
    kept = {item.name: keep_picture(run, pictures[item.name]) for item in cast if item.name in pictures}
    return [ChangeCharacter(name=name, reference=sha256) for name, sha256 in kept.items()]
