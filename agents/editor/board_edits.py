"""A board being edited: nothing here draws, asks or writes.

`Draft.of` lays a board out as spots, edits change the spots, and `Draft.settled` numbers them again: what became of
every panel, transition and picture is then known, and what a person has to know about it. A spot is known by its key,
which stays whatever its number becomes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from katha.agents.editor.edits import (
    AddCharacter,
    AddFrame,
    AmendFrame,
    ChangeCharacter,
    ChangeFrame,
    ChangeProp,
    ChangeTransition,
    DuplicateFrame,
    Edit,
    GivePicture,
    InsertBridge,
    LockFrame,
    MakeMove,
    MergeCharacters,
    MoveFrame,
    Pair,
    RemoveCharacter,
    RemoveFrame,
    ReplacePlan,
    SplitFrame,
    TakeFrame,
    TalkFrame,
)
from katha.agents.editor.rewording import (
    SETTING,
    WORDS,
    called,
    listed,
    recalled,
    recast,
    redressed,
    renamed,
    resettled,
    reworded,
    spoken,
    swapped,
)
from katha.agents.editor.splitting import divided, named
from katha.agents.editor.talk import BESIDE, comments_of, joined, kept, status_of
from katha.agents.requests import named_props
from katha.composing import LOOK_FIELDS
from katha.errors import UsageError
from katha.schema import Board, Character, Frame, FrameKind, Panel, Plan, Prop, Transition, Visual

# A board needs a transition, so two panels; 200 is what a plan may have (`planners.base`).
_FEWEST, _MOST = 2, 200


def is_locked(frame: Frame) -> bool:
    """Return whether a person holds the picture of this frame."""
    return (frame.model_extra or {}).get("locked") is True


def is_own(frame: Frame) -> bool:
    """Return whether a person brought the picture of this frame."""
    return (frame.model_extra or {}).get("own") is True


@dataclass(frozen=True)
class FrameSlot:
    """One place on the board.

    key: what it is known by; of a scene that was there, its number. frame: what stands there now. panel: of a scene.
    between: of an inserted frame, the keys of its scenes. words: what its picture was drawn from. fresh: the picture is
    to be drawn although the words are the same. told: its transitions are to be read again. mask: the sha256 of the
    picture inside whose white the frame is drawn anew. given: that of a person's own picture. amended: the words and
    the part that its drawing is changed by. beside: what the frame itself is to keep, by name: talk, and the words of
    an inserted one; None takes a thing away.
    """

    key: int
    kind: FrameKind
    seed: int
    frame: Frame | None = None
    panel: Panel | None = None
    between: Pair | None = None
    prompt: str = ""
    words: tuple[Any, ...] = ()
    fresh: bool = False
    told: bool = False
    locked: bool = False
    mask: str | None = None
    given: str | None = None
    amended: tuple[str, str] | None = None
    beside: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class EditResult:
    """An edited board with new numbers.

    plan: its panels and transitions numbered. spots: in order. scenes: the new number of each scene that was there and
    still is. draw: the positions (from 0) whose picture is to be drawn. reread: pairs whose transition is to be read
    again, or for the first time. given: pairs whose transition a person wrote. remarks: what a person is to be told.
    """

    plan: Plan
    spots: tuple[FrameSlot, ...]
    scenes: Mapping[int, int]
    draw: tuple[int, ...]
    reread: tuple[Pair, ...]
    given: tuple[Pair, ...]
    remarks: tuple[str, ...]


@dataclass
class BoardDraft:
    """A board as spots, and its transitions by the keys of their scenes."""

    plan: Plan
    seed: int
    spots: list[FrameSlot]
    transitions: dict[Pair, Transition]
    given: set[Pair] = field(default_factory=set)
    remarks: list[str] = field(default_factory=list)
    count: int = 0

    @classmethod
    def of(cls, plan: Plan, board: Board, transitions: Sequence[Transition]) -> BoardDraft:
        """Return `board` of `plan` laid out."""
        panels = {panel.index: panel for panel in plan.panels}
        own = (frame for frame in board.frames if frame.panel is not None and frame.kind == "scene")
        panels |= {frame.scene: frame.panel for frame in own if frame.scene is not None and frame.panel is not None}
        draft = cls(plan, board.seed, [], {item.pair: item for item in transitions})
        draft.count = max((*panels, 0))
        for frame in board.frames:
            panel = panels.get(frame.scene) if frame.scene is not None else None
            spot = FrameSlot(
                key=frame.scene if panel is not None and frame.scene is not None else draft._next(),
                kind=frame.kind,
                seed=frame.seed,
                frame=frame,
                panel=panel,
                between=frame.transition if frame.kind != "scene" else None,
                prompt=frame.prompt,
                locked=is_locked(frame),
            )
            draft.spots.append(replace(spot, words=_drawn_from(draft.plan, spot, frame.prompt)))
        return draft

    def _next(self) -> int:
        self.count += 1
        return self.count

    def apply(self, edit: Edit) -> None:
        """Do one edit.

        Raises:
            UsageError: it cannot be done: no such frame, a locked one, or nothing to see.
        """
        match edit:
            case ChangeFrame():
                self._change(edit)
            case TakeFrame():
                self._take(edit)
            case GivePicture():
                self._give(edit)
            case AmendFrame():
                self._amend(edit)
            case LockFrame():
                self._lock(edit)
            case TalkFrame():
                self._talk(edit)
            case AddFrame():
                self._add(edit)
            case SplitFrame():
                self._split(edit)
            case DuplicateFrame():
                self._duplicate(edit)
            case RemoveFrame():
                self._remove(edit)
            case MoveFrame():
                self._move(edit)
            case ChangeCharacter():
                self._character(edit)
            case AddCharacter():
                self._new_character(edit)
            case ChangeProp():
                self._prop(edit)
            case RemoveCharacter():
                self._drop_character(edit)
            case MergeCharacters():
                self._merge_characters(edit)
            case ChangeTransition():
                self._transition(edit)
            case InsertBridge():
                self._bridge(edit)
            case MakeMove():
                self._repair(edit)
            case ReplacePlan():
                replace_plan(self, edit.plan)

    def _place(self, number: int) -> int:
        if not 1 <= number <= len(self.spots):
            raise UsageError(f"There is no frame {number}.", hint=f"The storyboard has frames 1 to {len(self.spots)}.")
        return number - 1

    def _open(self, number: int) -> int:
        """The position of a frame whose picture may change."""
        place = self._place(number)
        if self.spots[place].locked:
            raise UsageError(f"Frame {number} is locked.", hint="Unlock it first.")
        return place

    def _change(self, edit: ChangeFrame) -> None:
        place = self._place(edit.frame)
        spot = self.spots[place]
        if edit.prompt is not None and not edit.prompt.strip():
            raise UsageError(f"The new prompt of frame {edit.frame} is empty.", hint="Say what the frame is to show.")
        if spot.panel is None:
            told = {name: value for name in WORDS if (value := getattr(edit, name)) is not None}
            if given := [name for name in told if name not in BESIDE]:
                raise UsageError(f"Frame {edit.frame} was inserted and has no {given[0]!r}.", hint="Change its prompt.")
            prompt = edit.prompt if edit.prompt is not None else spot.prompt
            spot = replace(spot, prompt=prompt, beside={**spot.beside, **{name: told[name] or None for name in told}})
        else:
            panel = reworded(spot.panel, edit)
            self._known(panel.characters, edit.frame)
            spot = replace(spot, panel=panel, told=spot.told or panel.prompt != spot.panel.prompt)
        if edit.seed is not None and edit.seed != spot.seed:
            self._open(edit.frame)
            spot = replace(spot, seed=edit.seed, fresh=True)
        self.spots[place] = spot

    def _known(self, names: Iterable[str], number: int) -> None:
        known = {item.name for item in self.plan.characters}
        stranger = next((name for name in names if name not in known), None)
        if stranger is not None:
            hint = f"Known: {', '.join(sorted(known)) or 'none'}."
            raise UsageError(f"Frame {number} names the unknown character {stranger!r}.", hint=hint)

    def _take(self, edit: TakeFrame) -> None:
        place = self._open(edit.frame)
        if edit.prompt is not None:
            self._change(ChangeFrame(frame=edit.frame, prompt=edit.prompt))
        spot = self.spots[place]
        if edit.mask is not None and spot.frame is None:
            raise UsageError(f"Frame {edit.frame} has no picture yet.", hint="A mask needs one that was drawn before.")
        fresh = spot.fresh or edit.seed != spot.seed or edit.mask is not None
        self.spots[place] = replace(spot, seed=edit.seed, fresh=fresh, mask=edit.mask)

    def _give(self, edit: GivePicture) -> None:
        place = self._open(edit.frame)
        self.spots[place] = replace(self.spots[place], fresh=True, given=edit.picture)

    def _amend(self, edit: AmendFrame) -> None:
        place = self._open(edit.frame)
        if not edit.words.strip():
            raise UsageError(f"The change of frame {edit.frame} is empty.", hint="Say what is to be another way.")
        if self.spots[place].frame is None:
            raise UsageError(f"Frame {edit.frame} has no picture yet.", hint="Draw it first.")
        self.spots[place] = replace(self.spots[place], fresh=True, amended=(edit.words.strip(), edit.part))

    def _lock(self, edit: LockFrame) -> None:
        place = self._place(edit.frame)
        self.spots[place] = replace(self.spots[place], locked=edit.locked)

    def _talk(self, edit: TalkFrame) -> None:
        place = self._place(edit.frame)
        spot, told = self.spots[place], dict(self.spots[place].beside)
        known = comments_of(spot.frame) if spot.frame is not None else ()
        if edit.comments:
            told["comments"] = kept(joined(known, edit.comments)) or None
        if edit.status is not None and (spot.frame is None or edit.status != status_of(spot.frame)):
            told["status"] = edit.status or None
        self.spots[place] = replace(spot, beside=told)

    def _add(self, edit: AddFrame) -> None:
        if not 1 <= edit.at <= len(self.spots) + 1:
            raise UsageError(
                f"A frame cannot be number {edit.at}.", hint=f"Name a place from 1 to {len(self.spots) + 1}."
            )
        text, shot = spoken(edit.prompt or edit.caption or "")
        if not text.strip():
            raise UsageError("The new frame has no prompt.", hint="Say what it is to show.")
        if len(self.spots) >= _MOST:
            raise UsageError(f"A board has at most {_MOST} frames.", hint="Begin another one.")
        told: dict[str, Any] = {name: value for name in WORDS if (value := listed(getattr(edit, name))) is not None}
        negative = next((spot.panel.negative_prompt for spot in self.spots if spot.panel is not None), "")
        told = {"index": 1, "prompt": text, "negative_prompt": negative, **shot, **told}
        panel = Panel.model_validate(told)
        self._known(panel.characters, edit.at)
        if edit.characters is None:
            panel = panel.model_copy(update={"characters": named(text, self.plan.characters)})
        seed = self.seed if edit.seed is None else edit.seed
        self.spots.insert(edit.at - 1, FrameSlot(self._next(), "scene", seed, panel=panel, told=True))

    def _split(self, edit: SplitFrame) -> None:
        place = self._place(edit.frame)
        panel = self.spots[place].panel
        if panel is None:
            raise UsageError(f"Frame {edit.frame} was inserted and cannot be split.", hint="Split a scene.")
        first = edit.first if edit.first is not None else panel.prompt
        kept, given = divided(panel, first, edit.second, self.plan.characters)
        if edit.first is not None:
            self._change(ChangeFrame(frame=edit.frame, prompt=edit.first))
        self._add(AddFrame(at=edit.frame + 1, prompt=edit.second))
        one, two = self.spots[place], self.spots[place + 1]
        if one.panel is None or two.panel is None:
            raise AssertionError("both halves of a scene are scenes")
        given = {**given, **{name: said for name in SETTING if (said := getattr(two.panel, name))}}
        self.spots[place] = replace(one, panel=one.panel.model_copy(update=kept), told=True)
        self.spots[place + 1] = replace(two, panel=two.panel.model_copy(update=given))
        if gone := [name for name in panel.characters if name not in kept["characters"]]:
            self.remarks.append(f"{' and '.join(gone)} left frame {edit.frame}, whose words do not name them any more.")

    def _duplicate(self, edit: DuplicateFrame) -> None:
        spot = self.spots[self._place(edit.frame)]
        if spot.panel is None or spot.frame is None:
            said = "was inserted" if spot.panel is None else "has no picture yet"
            raise UsageError(f"Frame {edit.frame} {said} and cannot be doubled.", hint="Double a scene that is drawn.")
        if len(self.spots) >= _MOST:
            raise UsageError(f"A board has at most {_MOST} frames.", hint="Begin another one.")
        frame = spot.frame.model_copy(update={"scene": None})  # its scene is the first one's
        self.spots.insert(edit.frame, replace(spot, key=self._next(), frame=frame, told=True, locked=False))

    def _remove(self, edit: RemoveFrame) -> None:
        place = self._open(edit.frame)
        if self.spots[place].panel is not None and sum(spot.panel is not None for spot in self.spots) <= _FEWEST:
            raise UsageError(f"A board needs {_FEWEST} panels, and it has no more.", hint="Add one first.")
        del self.spots[place]

    def _move(self, edit: MoveFrame) -> None:
        place, to = self._place(edit.frame), self._place(edit.to)
        self.spots.insert(to, self.spots.pop(place))

    def _character(self, edit: ChangeCharacter) -> None:
        old = self._member(edit.name)
        new = recast(old, edit)
        if new.name != old.name and any(item.name.casefold() == new.name.casefold() for item in self.plan.characters):
            raise UsageError(f"There is a character {new.name!r} already.", hint="Give it another name.")
        listed = [new if item is old else item for item in self.plan.characters]
        self.plan = self.plan.model_copy(update={"characters": listed})
        unsaid = []
        for place, spot in enumerate(self.spots):
            if spot.panel is not None and old.name in spot.panel.characters:
                same = self._redress(place, spot.panel, old, new)
                unsaid += [str(place + 1)] if same and called(old) != called(new) and not _names(spot, new) else []
        if unsaid:
            where = f"frame{'s' if len(unsaid) > 1 else ''} {', '.join(unsaid)}"
            self.remarks.append(f"No word for {new.name} was found in the prompt of {where}: write it there yourself.")

    def _member(self, name: str) -> Character:
        found = next((item for item in self.plan.characters if item.name == name), None)
        if found is None:
            known = ", ".join(item.name for item in self.plan.characters)
            raise UsageError(f"There is no character {name!r}.", hint=f"Known: {known or 'none'}.")
        return found

    def _new_character(self, edit: AddCharacter) -> None:
        name = " ".join(edit.name.split())
        if not name:
            raise UsageError("The new character has no name.", hint="Give it one.")
        if any(item.name.casefold() == name.casefold() for item in self.plan.characters):
            raise UsageError(f"There is a character {name!r} already.", hint="Give it another name.")
        blank = Character(name=name, kind=" ".join(edit.kind.split()) or name, appearance="")
        told = edit.model_dump(include={"age", "color", *LOOK_FIELDS, "appearance", "reference"})
        change = ChangeCharacter(name=name, **{key: value for key, value in told.items() if value})
        new = recast(blank, change)
        new = new.model_copy(update={"appearance": new.appearance or called(new), "anchor_prompt": called(new)})
        self.plan = self.plan.model_copy(update={"characters": [*self.plan.characters, new]})
        shown = [
            str(at)
            for at, spot in enumerate(self.spots, 1)
            if spot.panel and new.name in named(spot.prompt, self.plan.characters)
        ]
        if shown:
            where = f"frame{'s' if len(shown) > 1 else ''} {', '.join(shown)}"
            self.remarks.append(f"The prompt of {where} names {new.name}: tick it there if it is meant.")

    def _drop_character(self, edit: RemoveCharacter) -> None:
        old, said = self._member(edit.name), []
        for place, spot in enumerate(self.spots):
            if spot.panel is None or old.name not in spot.panel.characters:
                continue
            who = [name for name in spot.panel.characters if name != old.name]
            self.spots[place] = replace(spot, panel=spot.panel.model_copy(update={"characters": who}))
            said += [str(place + 1)]
        self.plan = self.plan.model_copy(update={"characters": [one for one in self.plan.characters if one is not old]})
        if said:
            where = f"frame{'s' if len(said) > 1 else ''} {', '.join(said)}"
            self.remarks.append(f"The prompt of {where} may still name {old.name}: change it there.")

    def _prop(self, edit: ChangeProp) -> None:
        visual = self.plan.visual or Visual()
        old = next((item for item in visual.props if item.name.casefold() == edit.name.strip().casefold()), None)
        name = " ".join((edit.new_name or (old.name if old is not None else edit.name)).split())
        if not name:
            raise UsageError("The prop has no name.", hint="Give it one.")
        if any(item is not old and item.name.casefold() == name.casefold() for item in visual.props):
            raise UsageError(f"There is a prop {name!r} already.", hint="Give it another name.")
        new = _changed_prop(old, name, edit)
        props = [new if item is old else item for item in visual.props] + ([] if old is not None else [new])
        self.plan = self.plan.model_copy(update={"visual": visual.model_copy(update={"props": props})})
        if old is None:
            shown = [str(at) for at, spot in enumerate(self.spots, 1) if new in _props_of(self.plan, spot)]
            where = f"frame{'s' if len(shown) > 1 else ''} {', '.join(shown)}" if shown else "no frame"
            self.remarks.append(f"{name} is a new prop of this board; the prompt of {where} names it.")

    def _merge_characters(self, edit: MergeCharacters) -> None:
        old, into = self._member(edit.name), self._member(edit.into)
        if old is into:
            raise UsageError(f"{old.name} cannot be made one with itself.", hint="Name two characters.")
        unsaid = []
        for place, spot in enumerate(self.spots):
            if spot.panel is None or old.name not in spot.panel.characters:
                continue
            before = spot.panel.prompt
            named = spot.panel.model_copy(update={"prompt": renamed(before, old.name, into.name)})
            self._redress(place, named, old, into)
            panel = self.spots[place].panel
            same = panel is not None and panel.prompt == before
            unsaid += [str(place + 1)] if same and called(old) != called(into) else []
            if panel is not None:
                once = list(dict.fromkeys(panel.characters))
                self.spots[place] = replace(self.spots[place], panel=panel.model_copy(update={"characters": once}))
        self.plan = self.plan.model_copy(update={"characters": [one for one in self.plan.characters if one is not old]})
        if unsaid:
            where = f"frame{'s' if len(unsaid) > 1 else ''} {', '.join(unsaid)}"
            self.remarks.append(f"No word for {old.name} was found in the prompt of {where}: write {into.name} there.")

    def _redress(self, place: int, panel: Panel, old: Character, new: Character) -> bool:
        """Put a character as it is now into a panel; whether its prompt stays as it is."""
        spot, prompt = self.spots[place], redressed(panel.prompt, old, new)
        shown = [recalled(item, old, new) for item in panel.must_show]
        if old.name.casefold() != old.kind.casefold():  # "the lion" is not a name, and its prompts say what it is
            prompt, shown = swapped(prompt, old.name, new.name), [swapped(item, old.name, new.name) for item in shown]
        who = [new.name if name == old.name else name for name in panel.characters]
        told = {"prompt": prompt, "must_show": shown, "characters": who}
        told_anew = spot.told or new.kind != old.kind or (new.name != old.name and prompt != panel.prompt)
        self.spots[place] = replace(spot, panel=panel.model_copy(update=told), told=told_anew)
        return prompt == panel.prompt

    def _transition(self, edit: ChangeTransition) -> None:
        pair = self._keys(edit.pair)
        told = edit.model_dump(exclude={"op", "pair"}, exclude_none=True)
        known = self.transitions.get(pair)
        blank = Transition(story_id=self.plan.story_id, from_scene=edit.pair[0], to_scene=edit.pair[1])
        self.transitions[pair] = (known or blank).model_copy(update=told)
        self.given.add(pair)

    def _keys(self, pair: Pair) -> Pair:
        """The keys of two scenes by their numbers as they are now."""
        keys = [spot.key for spot in self.spots if spot.panel is not None]
        if not (1 <= pair[0] < len(keys) and pair[1] == pair[0] + 1):
            hint = f"Name two neighbours of the scenes 1 to {len(keys)}."
            raise UsageError(f"Scenes {pair[0]} and {pair[1]} are no neighbours.", hint=hint)
        return keys[pair[0] - 1], keys[pair[1] - 1]

    def _bridge(self, edit: InsertBridge) -> None:
        pair = self._keys(edit.pair)
        if any(spot.between == pair for spot in self.spots):
            hint = "Take it away first, or draw it again."
            raise UsageError(f"There is a frame between scenes {edit.pair[0]} and {edit.pair[1]} already.", hint=hint)
        place = next(at for at, spot in enumerate(self.spots) if spot.key == pair[1])
        seed = self.seed if edit.seed is None else edit.seed
        spot = FrameSlot(self._next(), "bridge", seed, between=pair, prompt=(edit.prompt or "").strip())
        self.spots.insert(place, spot)

    def _repair(self, edit: MakeMove) -> None:
        move, seed = edit.repair, self.seed if edit.seed is None else edit.seed
        if move.kind == "bridge":
            self._bridge(InsertBridge(pair=move.pair, seed=seed, prompt=move.panels[0].prompt))
            return
        for panel in move.panels:
            number = next((at for at, spot in enumerate(self.spots, 1) if spot.panel and spot.key == panel.index), 0)
            place = self._open(number)
            self._known(panel.characters, number)
            self.spots[place] = replace(self.spots[place], panel=panel, seed=seed, told=True, fresh=True)

    def settled(self) -> EditResult:
        """Return the board with its frames and scenes numbered anew."""
        self._drop_stray()
        scenes = [spot for spot in self.spots if spot.panel is not None]
        number = {spot.key: at for at, spot in enumerate(scenes, 1)}
        panels = [spot.panel.model_copy(update={"index": number[spot.key]}) for spot in scenes if spot.panel]
        was = {spot.key: spot.frame.scene for spot in scenes if spot.frame is not None}
        joined = {(one.key, two.key): (number[one.key], number[two.key]) for one, two in pairwise(scenes)}
        told = {spot.key for spot in scenes if spot.told}
        kept = [_between(item, joined[keys]) for keys, item in self.transitions.items() if keys in joined]
        had = bool(self.transitions)
        reread = [
            pair
            for keys, pair in joined.items()
            if had and keys not in self.given and (keys not in self.transitions or not told.isdisjoint(keys))
        ]
        plan = self.plan.model_copy(update={"panels": panels, "transitions": sorted(kept, key=lambda item: item.pair)})
        draw = [at for at, spot in enumerate(self.spots) if self._must_draw(at, spot)]
        return EditResult(
            plan=plan,
            spots=tuple(self._numbered(number)),
            scenes={old: number[key] for key, old in was.items() if old is not None},
            draw=tuple(draw),
            reread=tuple(sorted(reread)),
            given=tuple(sorted(joined[keys] for keys in self.given if keys in joined)),
            remarks=tuple(self.remarks),
        )

    def _drop_stray(self) -> None:
        """Take out inserted frames whose two scenes do not stand around them any more."""
        keys = [(spot.key if spot.panel is not None else None) for spot in self.spots]
        left: list[FrameSlot] = []
        for place, spot in enumerate(self.spots):
            before = next((key for key in reversed(keys[:place]) if key is not None), None)
            after = next((key for key in keys[place + 1 :] if key is not None), None)
            if spot.panel is not None or (before, after) == spot.between:
                left.append(spot)
                continue
            number = f" (it was frame {spot.frame.index})" if spot.frame is not None else ""
            self.remarks.append(
                f"A {spot.kind} frame was taken off{number}: its two scenes are no neighbours any more."
            )
        self.spots = left

    def _must_draw(self, place: int, spot: FrameSlot) -> bool:
        changed = spot.frame is None or spot.fresh or spot.words != _drawn_from(self.plan, spot, _prompt(spot))
        if changed and spot.locked and spot.frame is not None:
            self.remarks.append(f"Frame {place + 1} is locked: its picture stays, although its words have changed.")
            return False
        if changed and not spot.fresh and spot.frame is not None and is_own(spot.frame):
            self.remarks.append(
                f"Frame {place + 1} is a picture of your own: it stays, although its words have changed."
            )
            return False
        return changed

    def _numbered(self, number: Mapping[int, int]) -> Iterable[FrameSlot]:
        for spot in self.spots:
            if spot.panel is not None:
                yield replace(spot, panel=spot.panel.model_copy(update={"index": number[spot.key]}))
            elif spot.between is not None:
                yield replace(spot, between=(number[spot.between[0]], number[spot.between[1]]))


def _names(spot: FrameSlot, member: Character) -> bool:
    """Return whether a frame's prompt names a character: who draws it knows what it looks like."""
    return re.search(rf"\b{re.escape(member.name)}\b", spot.prompt, re.IGNORECASE) is not None


def _changed_prop(old: Prop | None, name: str, edit: ChangeProp) -> Prop:
    """A prop with what an edit says of it, and the looks that a cast sheet was drawn from."""
    told = {key: value for key in ("looks", "reference") if (value := getattr(edit, key)) is not None}
    given = {**(old.model_dump() if old is not None else {}), **told, "name": name}
    first = str(given.get("first_look") or (old.looks if old is not None else ""))
    given["first_look"] = first if first != given.get("looks", "") else ""
    return Prop.model_validate({key: value for key, value in given.items() if value or key in Prop.model_fields})


def _prompt(spot: FrameSlot) -> str:
    return spot.panel.prompt if spot.panel is not None else spot.prompt


def _drawn_from(plan: Plan, spot: FrameSlot, prompt: str) -> tuple[Any, ...]:
    """Return what a picture depends on, its seed apart."""
    if spot.panel is None:
        return (prompt, plan.style)
    shown = [item.model_dump_json() for item in plan.characters if item.name in spot.panel.characters]
    fields = [str(getattr(spot.panel, name)) for name in (*SETTING, "must_show")]
    things = [item.model_dump_json() for item in _props_of(plan, spot, prompt)]
    return (prompt, spot.panel.negative_prompt, plan.style, *fields, *shown, *things)


def _props_of(plan: Plan, spot: FrameSlot, prompt: str | None = None) -> tuple[Prop, ...]:
    """The props that a frame shows."""
    panel = spot.panel
    told = (*panel.must_show, *panel.contacts) if panel is not None else ()
    return named_props(plan, " ".join((_prompt(spot) if prompt is None else prompt, *told)))


def _between(item: Transition, pair: Pair) -> Transition:
    return item.model_copy(update={"from_scene": pair[0], "to_scene": pair[1]})


# A plan that was edited as a file.


def replace_plan(draft: BoardDraft, plan: Plan) -> None:
    """Lay `draft` out by another plan, panel by panel.

    Raises:
        UsageError: it is not of this story, or names an unknown character.
    """
    old = draft.plan
    if plan.story_id != old.story_id:
        raise UsageError(f"The plan of {plan.story_id!r} is not of the story {old.story_id!r}.")
    if not _FEWEST <= len(plan.panels) <= _MOST:
        raise UsageError(f"The plan has {len(plan.panels)} panels; {_FEWEST} to {_MOST} can be drawn.")
    spots = {spot.key: spot for spot in draft.spots if spot.panel is not None}
    taken = _matched(plan.panels, spots)
    cast = {item.name: item for item in old.characters}
    changed_cast = [
        (cast[item.name], item) for item in plan.characters if item.name in cast and cast[item.name] != item
    ]
    draft.plan = plan.model_copy(update={"transitions": []})
    laid: list[FrameSlot] = []
    for panel, key in zip(plan.panels, taken, strict=True):
        draft._known(panel.characters, panel.index)
        spot = spots[key] if key is not None else FrameSlot(draft._next(), "scene", draft.seed)
        before = spot.panel
        if before is not None and before.prompt == panel.prompt:
            changed = {name: str(new) for name in SETTING if (new := getattr(panel, name)) != getattr(before, name)}
            panel = panel.model_copy(update={"prompt": resettled(before, changed)})
            for one, two in changed_cast:
                if one.name in panel.characters:
                    panel = panel.model_copy(update={"prompt": redressed(panel.prompt, one, two)})
        elif before is not None:
            panel = _spoken(panel, before)
        told = spot.told or before is None or before.prompt != panel.prompt
        laid.append(replace(spot, panel=panel, told=told))
    _rejoined(draft, old, plan, laid)
    draft.spots = _with_inserted(draft.spots, laid)


def _spoken(panel: Panel, before: Panel) -> Panel:
    """A panel whose prompt a person wrote anew: the words of the camera at its head go to the fields left alone."""
    prompt, shot = spoken(panel.prompt, before.place)
    told = {name: value for name, value in shot.items() if getattr(panel, name) == getattr(before, name)}
    return panel.model_copy(update={**told, "prompt": prompt or before.prompt})


def _matched(panels: Sequence[Panel], spots: Mapping[int, FrameSlot]) -> list[int | None]:
    """The key of the spot that each panel stands for: the one with its words, else the one with its number."""
    free = dict(spots)
    found: dict[int, int] = {}
    for exact in (True, False):
        for place, panel in enumerate(panels):
            same = [
                key
                for key, spot in free.items()
                if spot.panel is not None and (spot.panel.prompt == panel.prompt if exact else key == panel.index)
            ]
            if place not in found and same:
                found[place] = min(same, key=lambda key: (key != panel.index, key))
                del free[found[place]]
    return [found.get(place) for place in range(len(panels))]


def _rejoined(draft: BoardDraft, old: Plan, plan: Plan, laid: Sequence[FrameSlot]) -> None:
    """Take over the transitions that the file changed; those it left alone are moved with their scenes."""
    before = {item.pair: item for item in old.transitions}
    for item in plan.transitions:
        one, two = item.pair
        if before.get(item.pair) == item:
            continue
        if not (1 <= one < len(laid) and two == one + 1):
            raise UsageError(f"The plan has a transition {one} to {two}, which joins no adjacent panels.")
        keys = laid[one - 1].key, laid[two - 1].key
        draft.transitions[keys] = item
        draft.given.add(keys)
    if not plan.transitions:
        draft.transitions.clear()


def _with_inserted(spots: Sequence[FrameSlot], laid: Sequence[FrameSlot]) -> list[FrameSlot]:
    """`laid` with every inserted frame after the scene that it came after; a removed one's frames go with it."""
    after: dict[int, list[FrameSlot]] = {}
    last = 0
    for spot in spots:
        if spot.panel is not None:
            last = spot.key
        else:
            after.setdefault(last, []).append(spot)
    return [item for spot in laid for item in (spot, *after.get(spot.key, ()))]
