"""A plan: what is to be drawn, and the transitions that the drawing must make readable."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from katha.schema.story import Question, Record, Transition

PLAN_FORMAT = 1


class Character(Record):
    """One character with a stable look.

    `kind` is what it is in plain words ("lion", "old woman"); `appearance` is the phrase that every prompt repeats so
    that it looks the same in every frame; `anchor_prompt` shows it alone (for renderers with an identity bank).
    """

    name: str
    kind: str
    appearance: str
    anchor_prompt: str = ""


class Link(Record):
    """A phrase of the story that cannot be seen, and what is seen in its place ("bad news": "a sad face")."""

    phrase: str
    visible: str


class Panel(Record):
    """What one frame shows. `index` is the scene, from 1; `must_show` lists what has to be visible in it.

    `source` is the piece of the story that the panel stands for, letter by letter, where the planner divided it.
    `place`, `time_of_day`, `shot_size`, `shot_angle` and `links` say how the prompt was made drawable.
    """

    index: int = Field(ge=1)
    prompt: str
    negative_prompt: str = ""
    caption: str = ""
    characters: list[str] = []
    must_show: list[str] = []
    source: str = ""
    place: str = ""
    time_of_day: str = ""
    shot_size: str = ""
    shot_angle: str = ""
    links: list[Link] = []


class Plan(Record):
    """A drawable plan of one story.

    `information` names the fields of the record that the planner saw. `transitions_from` names who read the transitions
    where the planner itself knows none; empty, they are the planner's own.
    """

    format: Literal[1] = 1
    story_id: str
    title: str = ""
    planner: str
    information: list[str] = []
    style: str = ""
    characters: list[Character] = []
    panels: list[Panel]
    transitions: list[Transition] = []
    transitions_from: str = ""
    questions: list[Question] = []
    replanned: tuple[int, int] | None = None
