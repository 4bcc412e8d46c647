"""What a plan tells the model that draws it: ids for its cast, moods for its heads, groups for what must be seen."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from katha.composing.words import looks_at
from katha.configs import load_config, load_prompt
from katha.protocols import FrameRequest
from katha.schema import Panel, Plan, Seen

_WORD = re.compile(r"[a-z]+")
_LONGEST_ID = 40
_TAKEN = ("hd", "rm", "fx", "f", "bg")
_COMMON = (("hd", "fx"), ("rm",))
"""What belongs to nobody and is drawn in one share: hands and signs, places."""
# Hands, signs and places weigh as three characters when the shares are made even.
_COMMON_WORK = 3
_SMALL = frozenset({"the", "a", "an", "of", "old", "young", "little"})


@dataclass(frozen=True)
class CastPart:
    """One of the cast or a prop: its name, the prefix of its ids, how it looks, its moods, its states."""

    name: str
    prefix: str
    looks: str
    heads: tuple[str, ...] = ()
    states: tuple[str, ...] = ()


@dataclass(frozen=True)
class DrawnGroup:
    """Something that must be seen, and the id of the group that shows it."""

    id: str
    what: str


def slug(text: str) -> str:
    """Return `text` as an id: small Latin letters, digits and hyphens, cut at a word."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    found = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    if len(found) > _LONGEST_ID:
        found = found[:_LONGEST_ID].rsplit("-", 1)[0]
    return found or "thing"


def groups_of(must_show: Sequence[str]) -> list[DrawnGroup]:
    """Return the groups of a frame, no id twice."""
    found: dict[str, DrawnGroup] = {}
    for what in must_show:
        name, number = slug(what), 2
        name = name if name[0].isalpha() else f"x-{name}"
        while name in found:
            name, number = f"{slug(what)}-{number}", number + 1
        found[name] = DrawnGroup(name, what)
    return list(found.values())


@dataclass(frozen=True)
class Brief:
    """A plan as it is drawn in one canvas and style."""

    plan: Plan
    canvas: tuple[int, int]
    style: str
    contract: str = "full"

    @property
    def limits(self) -> Mapping[str, Any]:
        """Bytes of cast and frames, and how many moods a head has, at most."""
        found: Mapping[str, Any] = load_config("vector.yaml")["contracts"][self.contract]
        return found

    @cached_property
    def parts(self) -> list[CastPart]:
        """The cast and the props, each with a prefix of its own."""
        prefixes = set(_TAKEN)
        found = []
        for person in self.plan.characters:
            prefix = _prefix(person.name, prefixes)
            found.append(CastPart(person.name, prefix, person.appearance or person.kind, self._moods(person.name)))
        known = {part.name.lower() for part in found}
        for prop in self.plan.visual.props if self.plan.visual is not None else ():
            if prop.name.lower() not in known:
                found.append(CastPart(prop.name, _prefix(prop.name, prefixes), prop.looks, (), tuple(prop.states)))
        return found

    @cached_property
    def prefixes(self) -> Mapping[str, str]:
        """The prefix of each character by its name."""
        names = {person.name for person in self.plan.characters}
        return {part.name: part.prefix for part in self.parts if part.name in names}

    @cached_property
    def moods(self) -> Mapping[str, tuple[str, ...]]:
        """The moods that are asked of each character's heads, by its prefix."""
        return {part.prefix: part.heads for part in self.parts if part.heads}

    @cached_property
    def things(self) -> frozenset[str]:
        """The prefixes of characters whom the plan gives no mood: a ladder may have no head."""
        moody = {seen.name for panel in self.plan.panels for seen in panel.state if seen.mood.strip()}
        return frozenset(prefix for name, prefix in self.prefixes.items() if name not in moody)

    def opening(self) -> str:
        """Return the first turn of the conversation: the craft, the plan, and the wish for a cast."""
        limits = self.limits
        return load_prompt("renderers/vector/opening").render(
            frames=len(self.plan.panels),
            width=self.canvas[0],
            height=self.canvas[1],
            style=self.style,
            plan=_told(self.plan),
            cast=self.parts,
            simple=self.contract == "small",
            cast_usual=limits["cast_usual"],
            cast_bytes=f"{limits['cast_bytes']:,}",
            frame_usual=limits["frame_usual"],
            frame_bytes=f"{limits['frame_bytes']:,}",
        )

    def shares(self, number: int) -> list[str]:
        """Return the first turn for each of several who draw the cast side by side: the same beginning, then whose
        parts. number: of shares, at most; each has a character or a prop at least."""
        number = min(number, len(self.parts))
        if number < 2:
            return [self.opening()]
        shares: list[list[str]] = [[] for _ in range(number)]
        loads = [0] * number
        for part in sorted(self.parts, key=_work, reverse=True):
            place = loads.index(min(loads))
            shares[place].append(part.prefix)
            loads[place] += _work(part)
        for names in _COMMON:
            place = loads.index(min(loads))
            shares[place] += names
            loads[place] += _COMMON_WORK
        told = load_prompt("renderers/vector/shares")
        return [f"{self.opening()}\n{told.render(prefixes=prefixes)}" for prefixes in shares]

    def relooked(self, request: FrameRequest) -> str:
        """Return what a turn for one frame says of those in it whose looks a person has changed since the cast sheet
        was drawn; "" where nobody's are."""
        props = self.plan.visual.props if self.plan.visual is not None else []
        shown = {*(item.name for item in request.characters), *(item.name for item in request.props)}
        first = {item.name: (item.model_extra or {}).get("first_look") for item in props}
        first |= {item.name: (item.model_extra or {}).get("first_look") for item in self.plan.characters}
        changed = [
            {"name": part.name, "prefix": part.prefix, "look": part.looks, "before": first[part.name]}
            for part in self.parts
            if part.name in shown and first.get(part.name)
        ]
        return f"\n{load_prompt('renderers/vector/relooked').render(changed=changed)}" if changed else ""

    def asks(
        self, request: FrameRequest, variation: str, before: str = "", after: str = "", *, alone: bool = True
    ) -> str:
        """Return the turn that asks for one frame. before, after: the code of its neighbours, for one that is added.
        alone: nothing else is asked for."""
        panel = self.panel_of(request)
        pair = request.transition
        place, time = (request.place, request.time_of_day) if panel is not None else self._shared(pair)
        return load_prompt("renderers/vector/frame").render(
            number=f"{pair[0]}b" if pair is not None and panel is None else request.scene,
            frames=len(self.plan.panels),
            bridge=panel is None,
            pair=pair or (0, 0),
            before=before,
            after=after,
            prompt=request.prompt,
            place=place,
            time=time,
            light="; ".join(filter(None, (panel.light if panel is not None else "", request.weather))),
            shot=", ".join(
                part for part in (request.shot_size, request.shot_angle, panel.camera if panel else "") if part
            ),
            state=list(_states(panel.state if panel is not None else request.state)),
            gaze=list(_gazes(panel)),
            contacts=list(panel.contacts) if panel is not None else [],
            causes_next=panel.causes_next if panel is not None else "",
            transitions=list(self._changes(panel, pair)),
            groups=groups_of(request.must_show),
            variation=variation,
            alone=alone,
        )

    def panel_of(self, request: FrameRequest) -> Panel | None:
        """Return the panel that a request draws; None for an inserted frame."""
        if request.scene is None:
            return None
        return next((panel for panel in self.plan.panels if panel.index == request.scene), None)

    def _shared(self, pair: tuple[int, int] | None) -> tuple[str, str]:
        """Return the place and the time of the two panels of a transition, each where they have the same."""
        around = [panel for panel in self.plan.panels if pair is not None and panel.index in pair]
        places, times = {panel.place for panel in around}, {panel.time_of_day for panel in around}
        return places.pop() if len(places) == 1 else "", times.pop() if len(times) == 1 else ""

    def _moods(self, name: str) -> tuple[str, ...]:
        moods = dict.fromkeys(
            slug(seen.mood)
            for panel in self.plan.panels
            for seen in panel.state
            if seen.name == name and seen.mood.strip()
        )
        return tuple(moods)[: self.limits["most_moods"]] or ("calm",)

    def _changes(self, panel: Panel | None, pair: tuple[int, int] | None) -> Iterator[str]:
        """Yield how the change into a panel and the one out of it are seen; of a bridge, the one that it stands in."""
        for item in self.plan.transitions:
            means = item.device or "any means"
            if panel is None:
                if item.shown and item.pair == pair:
                    yield f"How the change was to be seen without this frame ({means}): {item.shown}"
            elif item.shown and item.to_scene == panel.index:
                yield f"How the change from frame {item.from_scene} is seen ({means}): {item.shown}"
            elif item.shown and item.from_scene == panel.index:
                yield f"How the change to frame {item.to_scene} will be seen ({means}): {item.shown}"


def _work(part: CastPart) -> int:
    """Return about how many drawings a part of the cast is: heads and bodies of a character, states of a thing."""
    return len(part.heads) + 3 if part.heads else max(1, len(part.states))


def _states(states: Sequence[Seen]) -> Iterator[str]:
    for seen in states:
        mood = f"head {slug(seen.mood)}" if seen.mood.strip() else ""
        told = "; ".join(part for part in (seen.state, mood) if part)
        if told:
            yield f"{seen.name}: {told}"


def _gazes(panel: Panel | None) -> Iterator[str]:
    for gaze in panel.gaze if panel is not None else ():
        yield looks_at(gaze.who, gaze.at, gaze.not_at)


def _told(plan: Plan) -> str:
    """Return what of a plan the drawing rests on, as JSON without what is empty."""
    whole = plan.model_dump(mode="json", include={"title", "visual", "characters", "panels", "transitions"})
    for row in whole["panels"]:
        for name in ("negative_prompt", "source", "not_drawn", "links"):
            row.pop(name, None)
    for row in whole["transitions"]:
        for name in ("story_id", "transition_type", "expected_change", "recoverability_target"):
            row.pop(name, None)
    for row in whole["characters"]:
        for name in ("anchor_prompt", "reference", "first_look"):
            row.pop(name, None)
    for row in (whole.get("visual") or {}).get("props", ()):
        for name in ("reference", "first_look"):
            row.pop(name, None)
    return json.dumps(_filled(whole), ensure_ascii=False, indent=None, separators=(",", ":"))


def _filled(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {name: _filled(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in ("", None, [], {})}
    return [_filled(item) for item in value] if isinstance(value, list) else value


def _prefix(name: str, taken: set[str]) -> str:
    """Return two letters that no other part has: of its first words, else the next free ones."""
    words = [word for word in _WORD.findall(slug(name)) if word not in _SMALL] or ["x"]
    letters = "".join(words) + "xyz"
    wished = [letters[:2], *(letters[0] + letter for letter in letters[2:])]
    wished += [first + second for first in letters for second in "abcdefghijklmnopqrstuvwxyz"]
    found = next(one for one in wished if one not in taken and len(one) == 2)
    taken.add(found)
    return found
