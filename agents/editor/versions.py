"""The versions of a finished run's board: go back and forth between them, list them, and tell them apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from katha.agents.editor.edit_session import Edited, claimed, measured_of, state_of
from katha.agents.editor.names import caption_of, name_frames
from katha.agents.editor.talk import beside, comments_of, status_of
from katha.agents.folder import RunFolder, RunRecord
from katha.agents.pictures import reference_of
from katha.errors import InputFileError, UsageError
from katha.schema import Board, Character, Frame, Plan, Prop

_FIELDS = ("prompt", "negative_prompt", "caption", "characters", "must_show", "place", "time_of_day", "shot_size")
_MORE = ("shot_angle", "camera_move", "weather", "light", "sound", "dialogue", "action", "notes", "duration")


@dataclass(frozen=True)
class Version:
    """One state of the board. `says` is what was done to get it from `parent`; `score` Eq. 24's total, None where
    nobody judged."""

    name: str
    parent: str | None
    says: str
    frames: tuple[Frame, ...]
    score: float | None
    current: bool


@dataclass(frozen=True)
class VersionChange:
    """One difference between two versions.

    what: "frame 3", "panel 2, prompt", "character fox, appearance". before, after: in words; None where there is
    nothing on that side. pictures: the hashes of a frame's, or a character's, picture before and after.
    """

    what: str
    before: str | None
    after: str | None
    pictures: tuple[str | None, str | None] | None = None


def undo(run: Path) -> Edited:
    """Go back to the version that the current one was made from.

    Raises:
        UsageError: the board is as it was drawn.
    """
    with claimed(run) as folder:
        parent = _parent(state_of(folder))
        if parent is None:
            raise UsageError("There is nothing to undo: the board is as it was drawn.", hint="See --list.")
        return _enter(folder, parent)


def forward(run: Path) -> Edited:
    """Go forth to the version that was made last from the current one.

    Raises:
        UsageError: nothing was made from it.
    """
    with claimed(run) as folder:
        here = state_of(folder).version
        later = _made_from(folder, here)
        if later is None:
            raise UsageError(f"Nothing was made from version {here}.", hint="See --list.")
        return _enter(folder, later)


def neighbours(run: Path) -> tuple[str | None, str | None]:
    """Return the version that `undo` goes to and the one that `forward` goes to, None where there is none; of each
    version its `run.json` alone is read.

    Raises:
        UsageError: `run` holds no run.
    """
    folder = RunFolder(run)
    here = folder.pending_version() or state_of(folder).version
    return _parent(_at(folder, here)), _made_from(folder, here)


def _made_from(folder: RunFolder, here: str) -> str | None:
    """The version that was made last from version `here`."""
    made = [name for name in folder.version_names() if name != here and _parent(_at(folder, name)) == here]
    return made[-1] if made else None


def go_to(run: Path, version: str) -> Edited:
    """Go to any version.

    Raises:
        UsageError: there is none of that name.
    """
    with claimed(run) as folder:
        return _enter(folder, version)


def _enter(folder: RunFolder, name: str) -> Edited:
    """Put version `name` into the folder; the one that stands there is kept."""
    state = state_of(folder)
    if folder.edited_plan(state) is not None:
        raise UsageError(
            f"{str(folder.plan)!r} was edited, and nobody has drawn it yet.",
            hint=f"Draw it first (`katha redo {folder.path}`), or put the file elsewhere and undo then.",
        )
    folder.version_folder(name)
    if name != state.version:
        folder.keep_version(state)
        folder.enter_version(name)
        if state.spent:  # money does not come back
            folder.write(state_of(folder).model_copy(update={"spent": state.spent}))
        folder.commit_version()
    result = folder.load_result(reused=name == state.version)
    name_frames(folder, result.board, folder.load_plan())
    return Edited(name, result)


def _at(folder: RunFolder, name: str) -> RunRecord:
    return state_of(RunFolder(folder.version_folder(name)))


def _parent(state: RunRecord) -> str | None:
    return str(state.redone[-1]["version"]) if state.redone else None


def _says(state: RunRecord) -> str:
    if not state.redone:
        return "as it was drawn"
    last = state.redone[-1]
    return str(last.get("says") or f"frame {last.get('frame')} was drawn with seed {last.get('seed')}")


def list_versions(run: Path) -> tuple[Version, ...]:
    """Return every version in the order in which they were made; one that cannot be read is left out.

    Raises:
        UsageError: `run` holds no run.
    """
    folder, found = RunFolder(run), []
    here = folder.pending_version() or state_of(folder).version
    for name in folder.version_names():
        place = RunFolder(folder.version_folder(name))
        try:
            state, result = state_of(place), place.load_result(reused=True)
        except (InputFileError, ValueError):
            continue
        score = measured_of(result.candidates).score
        frames = tuple(result.board.frames)
        found.append(
            Version(
                name,
                _parent(state),
                _says(state),
                frames,
                score.total if score.measured else None,
                current=name == here,
            )
        )
    return tuple(found)


def diff_versions(run: Path, before: str | None = None, after: str | None = None) -> tuple[VersionChange, ...]:
    """Return what differs between two versions: unless told, the current one and the one that it was made from.

    Raises:
        UsageError: there is no such version, or nothing to compare with.
    """
    folder = RunFolder(run)
    late = after or folder.pending_version() or state_of(folder).version
    early = before or _parent(_at(folder, late))
    if early is None:
        raise UsageError("The board is as it was drawn.", hint="Name two versions; --list has them.")
    one, two = (RunFolder(folder.version_folder(name)) for name in (early, late))
    plans, results = (one.load_plan(), two.load_plan()), (one.load_result(reused=True), two.load_result(reused=True))
    scores = [measured_of(item.candidates).score for item in results]
    found = [*_frame_changes(results[0].board, results[1].board, plans), *_plan_changes(*plans)]
    if all(item.measured for item in scores) and scores[0].total != scores[1].total:
        found.append(VersionChange("score", f"{scores[0].total:.3f}", f"{scores[1].total:.3f}"))
    return tuple(found)


def _frame_changes(old: Board, new: Board, plans: tuple[Plan, Plan]) -> Iterator[VersionChange]:
    """Pictures that came, went, or moved, by the number of the frame."""
    was = {frame.sha256: frame for frame in old.frames}
    now = {frame.sha256: frame for frame in new.frames}
    gone = {frame.index: frame for frame in old.frames if frame.sha256 not in now}
    for frame in new.frames:
        if frame.sha256 not in was:
            before = gone.pop(frame.index, None)
            said = caption_of(before, plans[0]) if before is not None else None
            pictures = (before.sha256 if before is not None else None, frame.sha256)
            yield VersionChange(f"frame {frame.index}", said, caption_of(frame, plans[1]), pictures)
    for frame in gone.values():
        yield VersionChange(f"frame {frame.index}", caption_of(frame, plans[0]), None, (frame.sha256, None))
    stayed = [frame.sha256 for frame in old.frames if frame.sha256 in now]
    order = [frame.sha256 for frame in new.frames if frame.sha256 in was]
    for sha256 in order if stayed != order else ():
        if was[sha256].index != now[sha256].index:
            told = f"number {was[sha256].index}", f"number {now[sha256].index}"
            yield VersionChange(f"frame {now[sha256].index}", *told, (sha256, sha256))
    for frame in new.frames:
        before, after = (
            (item.model_extra or {}).get("locked", False) for item in (was.get(frame.sha256, frame), frame)
        )
        if before != after:
            yield VersionChange(f"frame {frame.index}, lock", _word(before), _word(after))
        known = was.get(frame.sha256)
        if known is not None:
            yield from _fields(f"frame {frame.index}", _own(known), {**dict.fromkeys(_own(known)), **_own(frame)})


def _own(frame: Frame) -> dict[str, object]:
    """Return what a frame keeps itself: its status, how many comments, and the words of an inserted one."""
    several = comments_of(frame)
    told = [f"{len(several)} comment{'s' if len(several) > 1 else ''}"] if several else []
    return {"status": status_of(frame), "comments": told, **beside(frame)}


def _plan_changes(old: Plan, new: Plan) -> Iterator[VersionChange]:
    """Yield what is said in another way: the title, the cast, panels with the same place, transitions."""
    yield from _fields("title", {"": old.title}, {"": new.title})
    yield from _fields("style", {"": old.style}, {"": new.style})
    yield from _looks("character", old.characters, new.characters)
    yield from _looks("prop", *(plan.visual.props if plan.visual is not None else [] for plan in (old, new)))
    if len(old.panels) == len(new.panels):
        for one, two in zip(old.panels, new.panels, strict=True):
            known, now = one.model_dump(), two.model_dump()
            names = [name for name in (*_FIELDS, *_MORE) if known.get(name) or now.get(name)]
            yield from _fields(
                f"panel {two.index}", {name: known.get(name) for name in names}, {name: now.get(name) for name in names}
            )
    known_pairs = {item.pair: item for item in old.transitions}
    for step in new.transitions:
        before = known_pairs.get(step.pair)
        if before is not None and before != step:
            yield from _fields(f"transition {step.pair[0]} to {step.pair[1]}", before.model_dump(), step.model_dump())


def _looks(kind: str, old: Sequence[Character | Prop], new: Sequence[Character | Prop]) -> Iterator[VersionChange]:
    """Yield what is said in another way of characters, or of props, and their other pictures."""
    before = {item.name: item for item in old}
    for item in new:
        was = before.get(item.name)
        told, now = (
            one.model_dump(exclude={"name", "reference", "first_look"}) if one is not None else {}
            for one in (was, item)
        )
        names = [name for name in {**told, **now} if told.get(name) or now.get(name)]
        yield from _fields(f"{kind} {item.name}", told, {name: now.get(name) for name in names})
        shown = (reference_of(was) if was is not None else None, reference_of(item))
        if shown[0] != shown[1]:
            words = [None if one is None else "a picture" for one in shown]
            yield VersionChange(f"{kind} {item.name}, reference", words[0], words[1], shown)


def _fields(what: str, old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[VersionChange]:
    for name, value in new.items():
        if old.get(name) != value:
            yield VersionChange(
                f"{what}, {name.replace('_', ' ')}" if name else what, _word(old.get(name)), _word(value)
            )


def _word(value: object) -> str | None:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(str, value)) or None
    return str(value) if value not in (None, "", False) else None
