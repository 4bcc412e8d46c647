"""What a planner may see (Table 41), what cannot be planned, and switches of what makes a plan drawable."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar

from katha.errors import PlanError, UsageError
from katha.language import load_vocabulary
from katha.language.tokens import Sentence, split_sentences
from katha.protocols import PlanRequest
from katha.schema import Plan, Scene, StoryRecord

LONGEST_STORY = 200_000
_LETTERS = re.compile(r"[^\W\d_]+")
_FEWEST_KNOWN = 0.3


def check_text(record: StoryRecord, planner: str) -> None:
    """Refuse a story that is empty, one word long, or longer than `LONGEST_STORY` characters.

    Raises:
        PlanError: it is.
    """
    text = record.story_text
    if len(text) > LONGEST_STORY:
        raise PlanError(
            f"Story {record.story_id!r} has {len(text):,} characters; planner {planner!r} reads at most "
            f"{LONGEST_STORY:,}.",
            hint="Shorten it, or give one chapter.",
        )
    words = _LETTERS.findall(text)
    if len(words) < 2:
        said = "is empty" if not words else f"has one word ({words[0][:40]!r})"
        raise PlanError(f"Story {record.story_id!r} {said}.", hint="Tell who does what in a few sentences.")


def check_language(record: StoryRecord) -> None:
    """Refuse a text that is not English.

    Raises:
        PlanError: it is not; another planner is suggested.
    """
    if not reads_as_english(record):
        raise PlanError(
            f"Story {record.story_id!r} does not read as English, the only language planner 'rule' knows.",
            hint="Translate it, or use a planner that reads its language: --planner gemma-st (see `katha planners`).",
        )


def reads_as_english(record: StoryRecord) -> bool:
    """Whether enough of the text's words are English function words or in the vocabulary."""
    vocabulary = load_vocabulary()
    closed = frozenset().union(*vocabulary.grammar.words.values(), vocabulary.grammar.pronouns)
    sentences: tuple[Sentence, ...] = split_sentences(record.story_text)
    words = [word.lower for sentence in sentences for word in sentence.words if word.text[0].isalpha()]
    function = sum(word in closed for word in words)
    known = sum(word in closed or word in vocabulary.senses for word in words)
    foreign = sum(1 for word in _LETTERS.findall(record.story_text) if not word.isascii())
    few = known < _FEWEST_KNOWN * len(words) or (len(words) >= 12 and function < 0.12 * len(words))
    return bool(words) and not few and foreign <= len(words)


def check_scenes(record: StoryRecord, panels: int) -> None:
    """Refuse annotations that do not fit: another number of scenes than panels, gaps, transitions missing or foreign.

    Raises:
        PlanError: they do not fit; the field is named.
    """
    name, count = record.story_id, len(record.scenes)
    indices = [scene.scene_index for scene in record.scenes]
    if count != panels:
        raise PlanError(
            f"Record {name!r} has {count} scenes, but {panels} panels are asked for.",
            hint=f"Use --panels {count}, or remove 'scenes' and 'transitions' to plan from the text.",
        )
    if sorted(indices) != list(range(1, count + 1)):
        raise PlanError(f"Record {name!r}: 'scenes' must be numbered 1 to {count} by 'scene_index', not {indices}.")
    given = [transition.pair for transition in record.transitions]
    wanted = [(at, at + 1) for at in range(1, count)]
    if not given:
        return
    missing = [pair for pair in wanted if pair not in given]
    if missing:
        first, second = missing[0]
        raise PlanError(
            f"Record {name!r}: 'transitions' has none from scene {first} to scene {second}.",
            hint="Add it, or remove all transitions to have them derived.",
        )
    surplus = [pair for pair in given if pair not in wanted or given.count(pair) > 1]
    if surplus:
        first, second = surplus[0]
        raise PlanError(
            f"Record {name!r}: the transition from scene {first} to scene {second} is given twice or does not join "
            "two adjacent scenes."
        )


def validate_plan(plan: Plan, record: StoryRecord) -> None:
    """Refuse a plan that does not fit `record` or does not hold together.

    Raises:
        PlanError: the field is named: `story_id`, `panels`, `panels[2].prompt`, `panels[2].characters`, `transitions`.
    """
    name = record.story_id
    if plan.story_id != name:
        raise PlanError(
            f"Plan field 'story_id' is {plan.story_id!r}, but the story is {name!r}.",
            hint="Give the plan that was made for this story, or change its 'story_id'.",
        )
    indices = [panel.index for panel in plan.panels]
    if len(indices) < 2 or indices != list(range(1, len(indices) + 1)):
        raise PlanError(
            f"Plan of {name!r}: field 'panels' must hold at least two panels with 'index' 1, 2, 3 ... in order, "
            f"not {indices}."
        )
    known = {character.name for character in plan.characters}
    if len(known) != len(plan.characters):
        raise PlanError(
            f"Plan of {name!r}: field 'characters' has a name twice.", hint="Give each character its own name."
        )
    for panel in plan.panels:
        where = f"Plan of {name!r}: field 'panels[{panel.index}]"
        if not panel.prompt.strip():
            raise PlanError(f"{where}.prompt' is empty.", hint="Say what is to be seen.")
        strangers = [who for who in panel.characters if who not in known]
        if strangers:
            raise PlanError(
                f"{where}.characters' names {strangers[0]!r}, who is not in 'characters'.",
                hint=f"Known: {', '.join(sorted(known)) or 'nobody'}.",
            )
    _check_transitions(plan, len(indices))


def _check_transitions(plan: Plan, panels: int) -> None:
    """All of them, or none: planners that know no transitions leave the field empty."""
    pairs = [transition.pair for transition in plan.transitions]
    wanted = [(at, at + 1) for at in range(1, panels)]
    for first, second in pairs:
        if (first, second) not in wanted:
            raise PlanError(
                f"Plan of {plan.story_id!r}: field 'transitions' joins panels {first} and {second}, which are not "
                f"adjacent panels of 1 to {panels}."
            )
    if len(set(pairs)) != len(pairs):
        raise PlanError(f"Plan of {plan.story_id!r}: field 'transitions' joins the same two panels twice.")
    missing = [pair for pair in wanted if pair not in pairs]
    if missing and pairs:
        first, second = missing[0]
        raise PlanError(
            f"Plan of {plan.story_id!r}: field 'transitions' has none from panel {first} to panel {second}.",
            hint="Add it, with at least an action and a consequence.",
        )


# Every planner restricts its record before it reads a word of it, so that what it must not see cannot reach its plan,
# and names in `Plan.information` what was there to be seen.

_SCENES = ("scene_text",)
_STRUCTURE = (*_SCENES, "characters", "objects", "action", "state", "emotion")
_GOLD = (*_STRUCTURE, "visual_evidence", "visual_must_show", "generation_prompt")

ALLOWED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "direct": ("story_text", "scene_count"),
        "rule": ("story_text", "scene_count", *_SCENES),
        "caption": ("story_text", "scene_count", *_SCENES),
        "scene": ("story_text", "scene_count", *_STRUCTURE),
        "gemma-st": ("story_text", "scene_count", *_SCENES),
        "oracle": ("story_text", "scene_count", *_GOLD, "transitions", "moral_label", "recoverability_questions"),
    }
)
"""The fields of a record that a planner may see. `scene_count` is their number and order, and nothing in them."""

_OF_STORY: Mapping[str, Callable[[StoryRecord], Any]] = MappingProxyType(
    {
        "transitions": lambda record: record.transitions,
        "moral_label": lambda record: record.moral_label,
        "recoverability_questions": lambda record: record.recoverability_questions,
    }
)


def restrict(record: StoryRecord, planner: str) -> tuple[StoryRecord, list[str]]:
    """`record` with nothing in it but what `planner` may see, and the names of what there was to see.

    Keys that the schema does not know are never passed on. Without `scene_text` among the allowed fields the record has
    no scenes; their number is the request's `panels`.
    """
    allowed = ALLOWED[planner]
    scenes = [_scene(scene, allowed) for scene in record.scenes] if "scene_text" in allowed else []
    story = {name: take(record) for name, take in _OF_STORY.items() if name in allowed}
    kept = StoryRecord(
        story_id=record.story_id, title=record.title, story_text=record.story_text, scenes=scenes, **story
    )
    found = [name for name in allowed if _present(record, name)]
    return kept, found


def _scene(scene: Scene, allowed: tuple[str, ...]) -> Scene:
    fields = {name: getattr(scene, name) for name in _GOLD if name in allowed}
    return Scene(story_id=scene.story_id, scene_index=scene.scene_index, **fields)


def _present(record: StoryRecord, name: str) -> bool:
    if name == "story_text":
        return True
    if name == "scene_count":
        return bool(record.scenes)
    if name in _OF_STORY:
        return bool(_OF_STORY[name](record))
    return any(getattr(scene, name) for scene in record.scenes)


ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "sheets": "a sheet and an anchor prompt for each character",
        "look": "the same look in every prompt that names the character",
        "place": "place and time of day of each scene",
        "links": "a visible sign for each abstract phrase",
        "shots": "shot size and angle chosen for what must be read",
        "questions": "recoverability questions with accepted answers",
    }
)
"""Each switch and what it adds."""


@dataclass(frozen=True)
class Switches:
    """Which parts of a plan are made. `look` needs `sheets`."""

    sheets: bool = True
    look: bool = True
    place: bool = True
    links: bool = True
    shots: bool = True
    questions: bool = True

    @classmethod
    def without(cls, names: Iterable[str]) -> Switches:
        """Everything but `names`.

        Raises:
            UsageError: there is no such switch.
        """
        off = set(names)
        unknown = sorted(off - ABOUT.keys())
        if unknown:
            raise UsageError(f"A plan has no part {unknown[0]!r}.", hint=f"Known: {', '.join(ABOUT)}.")
        if "sheets" in off:
            off.add("look")
        return cls(**dict.fromkeys(off, False))

    def off(self) -> list[str]:
        """The names of what is turned off."""
        return [item.name for item in fields(self) if not getattr(self, item.name)]


class LadderPlanner:
    """The base of the planners that take no argument: each has a name, a version, and sees what Table 41 allows it."""

    name: ClassVar[str]
    version: ClassVar[int] = 1

    def __init__(self, argument: str | None = None) -> None:
        if argument is not None:
            raise UsageError(
                f"Planner {self.name!r} takes no argument, but was given {argument!r}.",
                hint=f"Use --planner {self.name}.",
            )

    def spec(self) -> Mapping[str, Any]:
        """Return name and version."""
        return {"name": self.name, "version": self.version}

    def seen(self, story: StoryRecord, request: PlanRequest) -> tuple[StoryRecord, list[str]]:
        """Return what of a checked `story` this planner may see, and the names of it.

        Raises:
            PlanError: the story is empty or too long, or its scenes do not fit the number of panels.
        """
        check_text(story, self.name)
        if story.scenes:
            check_scenes(story, request.panels)
        return restrict(story, self.name)
