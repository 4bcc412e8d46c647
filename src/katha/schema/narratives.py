"""VinaBench's annotations of a narrative: its global profile and what constrains each scene, read and written out.

Field names in files are VinaBench's (`narrative`, `global_profile`, `scene_characters`, `time`, `location`,
`linked_entities`). A plan has the same in other words: `narrative_of` reads its constraints off it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from katha.errors import InputFileError
from katha.jsonio import MOST_KEPT_JSON, read_json
from katha.schema import CastMember, Panel, Plan, Scene, StoryRecord, Structure
from katha.schema.scores import Result

UNCLEAR = "unclear"
DayTime = Literal["early morning", "morning", "noon", "afternoon", "evening", "night"]
_TIMES: Mapping[str, str] = {"day": UNCLEAR, "": UNCLEAR}
_UNSAFE = re.compile(r"[/\\\x00\s]+")


class SceneConstraints(Result):
    """One scene: its line of the narrative and what a picture of it has to keep.

    entities: phrases of the line that the gold picture shows. linked: by phrase of the caption, what of the narrative
    it stands for ("A woman": "Samantha"). characters: who is present; number: how many, None where nobody says. time,
    location: `unclear` where there is none. caption: of the gold picture.
    """

    text: str = ""
    entities: tuple[str, ...] = ()
    linked: dict[str, str] = {}
    characters: tuple[str, ...] = ()
    number: int | None = None
    time: str = UNCLEAR
    location: str = UNCLEAR
    caption: str = ""


class Narrative(Result):
    """The constraints of a story. profile: attributes ("adult female, wife") by character. scenes: one a frame."""

    profile: dict[str, str] = {}
    scenes: tuple[SceneConstraints, ...] = ()


class _Present(BaseModel):
    present: list[str] = []
    num_present: int | str | None = None


class _Row(BaseModel):
    """One narrative of a VinaBench file; the three data sets name their ids and pictures in their own ways."""

    model_config = ConfigDict(extra="ignore")

    narrative: list[str] = Field(min_length=1)
    global_profile: dict[str, str] = {}
    scene_characters: list[_Present] = []
    time: list[str] = []
    location: list[str] = []
    linked_entities: list[str] = []
    caption: list[str] = []
    scene_full_id: str | None = None
    story_id: int | str | None = None
    movie_id: str | None = None
    global_id: int | str | None = None
    portion: str | None = None
    sid: str | None = None

    @property
    def name(self) -> str:
        """The id by which VinaBench's code names a narrative's pictures."""
        parts = ((self.scene_full_id, self.story_id), (self.movie_id, self.global_id), (self.portion, self.sid))
        found = next((pair for pair in parts if pair[0] is not None), (self.story_id,))
        return _UNSAFE.sub("_", "_".join(str(part) for part in found if part is not None))

    def read(self) -> Narrative:
        """Return the narrative as a record."""
        scenes = []
        for at, text in enumerate(self.narrative):
            there = self.scene_characters[at] if at < len(self.scene_characters) else _Present()
            scenes.append(
                SceneConstraints(
                    text=text,
                    entities=tuple(part for part in _at(self.linked_entities, at, "").split("; ") if part),
                    characters=tuple(there.present),
                    number=int(there.num_present) if there.num_present is not None else None,
                    time=_at(self.time, at, UNCLEAR),
                    location=_at(self.location, at, UNCLEAR),
                    caption=_at(self.caption, at, ""),
                )
            )
        return Narrative(profile=self.global_profile, scenes=tuple(scenes))


def _at(items: list[str], at: int, otherwise: str) -> str:
    return items[at] if at < len(items) else otherwise


def read_narratives(path: Path) -> dict[str, Narrative]:
    """Return the narratives of one of VinaBench's annotation files (a JSON list), by id.

    The id is that by which its code names pictures: `SCENE_STORY` of VWP, `MOVIE_GLOBAL` of Storyboard20K,
    `PORTION_SID` of StorySalon; a blank or a slash in it becomes an underscore.

    Raises:
        InputFileError: it is no such file, or a narrative has no id or one that is taken.
    """
    rows = read_json(path, limit=MOST_KEPT_JSON)
    if not isinstance(rows, list):
        raise InputFileError(f"{str(path)!r} is not a list of narratives.", hint="Give vwp_test.json of VinaBench.")
    found: dict[str, Narrative] = {}
    for number, row in enumerate(rows, 1):
        try:
            read = _Row.model_validate(row)
            name, narrative = read.name, read.read()
        except (ValidationError, ValueError) as error:
            first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
            where = ".".join(map(str, first["loc"])) or "the narrative"
            raise InputFileError(f"{str(path)!r}, narrative {number}, field {where!r}: {first['msg']}.") from error
        if not name or name in found:
            raise InputFileError(f"{str(path)!r}, narrative {number}: its id {name!r} is none, or is there twice.")
        found[name] = narrative
    return found


def records_of(narratives: Mapping[str, Narrative]) -> list[StoryRecord]:
    """Return the narratives as stories: a scene a line."""
    return [
        StoryRecord(
            story_id=name,
            title=name,
            story_text="\n".join(scene.text for scene in narrative.scenes),
            structure=Structure(
                kind="VinaBench narrative",
                cast=[CastMember(name=who, look=look) for who, look in narrative.profile.items()],
            ),
            scenes=[
                Scene(
                    story_id=name,
                    scene_index=at,
                    scene_text=scene.text or "-",
                    characters=list(scene.characters),
                    **_where(scene),
                )
                for at, scene in enumerate(narrative.scenes, 1)
            ],
        )
        for name, narrative in narratives.items()
    ]


def _where(scene: SceneConstraints) -> dict[str, Any]:
    told = {"place": scene.location, "time_of_day": scene.time}
    return {name: value for name, value in told.items() if value != UNCLEAR}


def narrative_of(plan: Plan) -> Narrative:
    """Return the constraints that a plan's fields say: what any planner of katha writes.

    The profile is each character's kind and appearance; a panel's `must_show` are its entities, but for characters.
    """
    profile = {one.name: one.appearance or one.kind for one in plan.characters}
    return Narrative(profile=profile, scenes=tuple(_constraints(panel, profile) for panel in plan.panels))


def _constraints(panel: Panel, profile: Mapping[str, str]) -> SceneConstraints:
    people = {name.casefold() for name in profile}
    time = panel.time_of_day.strip().lower()
    return SceneConstraints(
        text=panel.source or panel.caption or panel.prompt,
        entities=tuple(item for item in panel.must_show if item.casefold() not in people),
        linked={link.visible: link.phrase for link in panel.links},
        characters=tuple(name for name in panel.characters if name in profile),
        number=len(panel.characters),
        time=_TIMES.get(time, time),
        location=panel.place.strip() or UNCLEAR,
        caption=panel.prompt,
    )


def serialise(scene: SceneConstraints, profile: Mapping[str, str]) -> str:
    """Return a scene's constraints as VinaBench's Sec. S3 writes them into a prompt.

    The caption with each link's phrase in brackets behind what it stands for, then `[Characters] Samantha (adult
    female, wife) [Time of Day] afternoon [Location] kitchen`.
    """
    told = scene.caption
    for shown, phrase in scene.linked.items():
        found = re.search(rf"\b{re.escape(shown)}\b", told)
        told = f"{told[: found.end()]} ({phrase}){told[found.end() :]}" if found is not None else told
    people = [f"{name} ({profile[name]})" if profile.get(name) else name for name in scene.characters]
    parts = [told, f"[Characters] {', '.join(people) or 'none'}"]
    return " ".join(part for part in (*parts, f"[Time of Day] {scene.time}", f"[Location] {scene.location}") if part)


def shared(values: Iterable[Iterable[str]]) -> dict[str, list[int]]:
    """Return what occurs in two scenes or more, with the scenes' places from 0, in the order of occurrence."""
    places: dict[str, list[int]] = {}
    for at, items in enumerate(values):
        for item in dict.fromkeys(items):
            places.setdefault(item, []).append(at)
    return {item: found for item, found in places.items() if len(found) > 1}
