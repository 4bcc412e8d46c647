"""What planners share: what each may see (Table 41), what cannot be planned, and how a prompt is worded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, ClassVar

from katha.errors import PlanError, UsageError
from katha.models.base import PaidModel, Purse, TextModel
from katha.models.checkpoints import HoldsModel
from katha.protocols import WIDE, Planner, PlanRequest, tokens_of
from katha.schema import Panel, Plan, Scene, StoryRecord

# A novella; of a novel a chapter is given.
_LONGEST_STORY = 200_000
WORD = re.compile(r"[^\W\d_]+")
ARTICLE = re.compile(r"^(?:the|an?)\s+", re.IGNORECASE)


def _check_text(record: StoryRecord, planner: str) -> None:
    """Refuse a story that is empty, one word long, or longer than `_LONGEST_STORY` characters."""
    text = record.story_text
    if len(text) > _LONGEST_STORY:
        size = f"{len(text):,} characters; planner {planner!r} reads at most {_LONGEST_STORY:,}"
        raise PlanError(f"Story {record.story_id!r} has {size}.", hint="Shorten it, or give one chapter.")
    words = WORD.findall(text)
    if len(words) < 2:
        said = "is empty" if not words else f"has one word ({words[0][:40]!r})"
        raise PlanError(f"Story {record.story_id!r} {said}.", hint="Tell who does what in a few sentences.")


def _check_scenes(record: StoryRecord, panels: int) -> None:
    """Refuse annotations that do not fit: as many scenes as panels, no gaps, no transition missing or foreign."""
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
    missing = [pair for pair in wanted if pair not in given]
    if missing and given:
        raise PlanError(
            f"Record {name!r}: 'transitions' has none from scene {missing[0][0]} to scene {missing[0][1]}.",
            hint="Add it, or remove all transitions to have them derived.",
        )
    for first, second in given:
        if (first, second) not in wanted or given.count((first, second)) > 1:
            raise PlanError(
                f"Record {name!r}: the transition from scene {first} to scene {second} is given twice or does not "
                "join two adjacent scenes."
            )


_MOST_PANELS, _LONGEST_PROMPT = 200, 20_000


def require_readable(plan: Plan) -> None:
    """Refuse a plan that would be read for hours.

    Raises:
        PlanError: it has too many panels, or a prompt that is too long.
    """
    if len(plan.panels) > _MOST_PANELS:
        said = f"Plan field 'panels' has {len(plan.panels):,}; {_MOST_PANELS} can be drawn."
        raise PlanError(said, hint="Make a board of each part of the story.")
    for at, panel in enumerate(plan.panels, 1):
        if len(panel.prompt) > _LONGEST_PROMPT:
            said = f"Plan field 'panels[{at}].prompt' holds {len(panel.prompt):,} characters"
            raise PlanError(f"{said}; at most {_LONGEST_PROMPT:,} are read.", hint="Say briefly what is to be seen.")


def validate_plan(plan: Plan, record: StoryRecord) -> None:
    """Refuse a plan that does not fit `record` or does not hold together.

    Raises:
        PlanError: the field is named: `story_id`, `panels`, `panels[2].prompt`, `panels[2].characters`, `transitions`.
    """
    if plan.story_id != record.story_id:
        raise PlanError(
            f"Plan field 'story_id' is {plan.story_id!r}, but the story is {record.story_id!r}.",
            hint="Give the plan that was made for this story, or change its 'story_id'.",
        )
    require_readable(plan)
    for problem, hint in _plan_problems(plan):
        raise PlanError(f"Plan of {record.story_id!r}: field {problem}", hint=hint)


def _plan_problems(plan: Plan) -> Iterator[tuple[str, str | None]]:
    """Yield what is wrong, the field first, and what to do about it."""
    indices = [panel.index for panel in plan.panels]
    count = len(indices)
    if count < 2 or indices != list(range(1, count + 1)):
        yield f"'panels' must hold at least two panels with 'index' 1, 2, 3 ... in order, not {indices}.", None
    known = {character.name for character in plan.characters}
    if len(known) != len(plan.characters):
        yield "'characters' has a name twice.", "Give each character its own name."
    for panel in plan.panels:
        if not panel.prompt.strip():
            yield f"'panels[{panel.index}].prompt' is empty.", "Say what is to be seen."
        for who in panel.characters:
            if who not in known:
                hint = f"Known: {', '.join(sorted(known)) or 'nobody'}."
                yield f"'panels[{panel.index}].characters' names {who!r}, who is not in 'characters'.", hint
    # All transitions, or none: planners that know no transitions leave the field empty.
    pairs = [transition.pair for transition in plan.transitions]
    wanted = [(at, at + 1) for at in range(1, count)]
    for first, second in pairs:
        if (first, second) not in wanted:
            where = f"panels {first} and {second}, which are not adjacent panels of 1 to {count}"
            yield f"'transitions' joins {where}.", None
    if len(set(pairs)) != len(pairs):
        yield "'transitions' joins the same two panels twice.", None
    for first, second in wanted:
        if pairs and (first, second) not in pairs:
            hint = "Add it, with at least an action and a consequence."
            yield f"'transitions' has none from panel {first} to panel {second}.", hint


# Every planner restricts its record before it reads a word of it, so that what it must not see cannot reach its plan,
# and names in `Plan.information` what was there to be seen.

_SCENES = ("scene_text", "place", "time_of_day")
_STRUCTURE = (*_SCENES, "characters", "objects", "action", "state", "emotion")
_GOLD = (*_STRUCTURE, "visual_evidence", "visual_must_show", "generation_prompt")
_OF_STORY = ("transitions", "moral_label", "recoverability_questions")

SEES_TEXT: tuple[str, ...] = ("story_text", "scene_count")
"""The steps of Table 41, as names of a record's fields. `scene_count` is the scenes' number and order, and nothing in
them."""
SEES_SCENES: tuple[str, ...] = (*SEES_TEXT, *_SCENES)
SEES_STRUCTURE: tuple[str, ...] = (*SEES_TEXT, *_STRUCTURE)
SEES_GOLD: tuple[str, ...] = (*SEES_TEXT, *_GOLD, *_OF_STORY)


def restrict(record: StoryRecord, allowed: Sequence[str]) -> tuple[StoryRecord, list[str]]:
    """Return `record` with nothing in it but the `allowed` fields, and the names of those that there were to see.

    Keys that the schema does not know are never passed on. Without `scene_text` among the allowed fields the record has
    no scenes; their number is the request's `panels`. Scenes are in order of their index.
    """
    scenes = sorted(record.scenes, key=lambda scene: scene.scene_index)
    of_scene = ("story_id", "scene_index", *(name for name in (*_SCENES, *_GOLD) if name in allowed))
    shown = scenes if "scene_text" in allowed else []
    kept = StoryRecord(
        story_id=record.story_id,
        title=record.title,
        story_text=record.story_text,
        structure=record.structure,  # of the text: whom a script names, and where its scenes begin
        scenes=[Scene.model_validate({name: getattr(scene, name) for name in of_scene}) for scene in shown],
        **{name: getattr(record, name) for name in _OF_STORY if name in allowed},
    )
    there = {name for name in _OF_STORY if getattr(record, name)}
    there |= {name for name in _GOLD if any(getattr(scene, name) for scene in scenes)}
    there |= {"story_text", "scene_count"} if scenes else {"story_text"}
    return kept, [name for name in allowed if name in there]


ABOUT: Mapping[str, str] = MappingProxyType(
    {
        "sheets": "a sheet and an anchor prompt for each character",
        "place": "place and time of day of each scene",
        "links": "a visible sign for each abstract phrase",
        "shots": "shot size and angle chosen for what must be read",
        "visual": "how each change is seen without words: devices, pivot, props, states, gazes, light",
        "questions": "recoverability questions with accepted answers",
    }
)
"""Each part of a plan that can be switched off, and what it adds."""


def parts_without(names: Iterable[str]) -> frozenset[str]:
    """Return the parts of a plan that are made where `names` are switched off.

    Raises:
        UsageError: there is no such part.
    """
    off = set(names)
    unknown = sorted(off - ABOUT.keys())
    if unknown:
        raise UsageError(f"A plan has no part {unknown[0]!r}.", hint=f"Known: {', '.join(ABOUT)}.")
    return frozenset(ABOUT.keys() - off)


class LadderPlanner(Planner):
    """The base of the planners: each has a name, a version, and `sees` the fields of a record that Table 41 allows."""

    name: ClassVar[str]
    sees: ClassVar[tuple[str, ...]] = SEES_SCENES
    version: ClassVar[int] = 1
    needs_scenes: ClassVar[bool] = False

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
            PlanError: the story is empty or too long, or its scenes do not fit the number of panels or are missing.
        """
        _check_text(story, self.name)
        if self.needs_scenes and not story.scenes:
            raise PlanError(
                f"Story {story.story_id!r} is a plain text; planner {self.name!r} draws annotated scenes.",
                hint="Give a record with 'scenes', or use another planner: see `katha planners`.",
            )
        if story.scenes:
            _check_scenes(story, request.panels)
        return restrict(story, self.sees)

    def made(
        self, story: StoryRecord, request: PlanRequest, information: list[str], panels: list[Panel], **more: Any
    ) -> Plan:
        """Return the plan; `characters` and what else it has are given by name."""
        return Plan(
            story_id=story.story_id,
            title=story.title,
            planner=self.name,
            information=information,
            style=request.style,
            panels=panels,
            **more,
        )


class ModelPlanner(LadderPlanner):
    """The base of the planners whose plans a language model writes, `_model`."""

    _model: TextModel

    def cost(self, tokens: Mapping[str, int]) -> float | None:
        """Return US dollars for tokens by kind; None where the price is unknown, 0 for a model of one's own."""
        vendor = getattr(self._model, "vendor", None)
        found: float | None = 0.0 if vendor is None else vendor.cost(tokens)
        return found

    def pay_from(self, purse: Purse, each: float) -> None:
        """Ask `purse` before every call from now on."""
        self._model = PaidModel(self._model, purse, each)

    def close(self) -> None:
        """Let go of a local model and its memory; the next plan loads it again."""
        model = self._model.model if isinstance(self._model, PaidModel) else self._model
        if isinstance(model, HoldsModel):
            model.close()


NEGATIVE_PROMPT = "text, letters, speech bubbles, watermark, extra limbs"
"""What no panel may hold. Words in the picture would tell the story instead of the drawing."""
# Five letters join "running" and "runner", and hardly ever two words of different meaning.
_STEM = 5
SMALL = frozenset(("a", "an", "the", "of", "in", "on", "at", "with", "and", "over", "to", "is", "are", "by"))
"""Words that say nothing by themselves."""


def fits(text: str, limit: int | None) -> bool:
    """Return whether `text` is within `limit` tokens; None is no limit."""
    return limit is None or tokens_of(text) <= limit


def capital(text: str) -> str:
    """Return `text` with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def as_sentence(text: str) -> str:
    """Return `text` with a capital at its beginning and a full stop at its end; empty stays empty."""
    clean = capital(" ".join(text.split()))
    return clean if not clean or clean[-1] in ".!?\"'\u3002" else f"{clean}."


def clip(text: str, limit: int | None) -> str:
    """Return `text`, cut at the end of a word where it is longer than `limit` tokens."""
    if fits(text, limit):
        return text
    words = text.split(" ")
    while len(words) > 1 and not fits(" ".join(words), limit):
        words.pop()
    return " ".join(words).rstrip(" ,;:")


def fit(sentences: Sequence[str], limit: int | None, *, first: Iterable[int] = ()) -> str:
    """Return the sentences in their order, without those that `limit` leaves no room for.

    first: the places of the sentences that are kept before all others; the rest is kept from the beginning. The very
    first stays, clipped where it alone is too long.
    """
    order = list(dict.fromkeys([*first, *range(len(sentences))]))
    if sentences and not fits(sentences[order[0]], limit):
        return clip(sentences[order[0]], limit)
    kept: list[int] = []
    for at in order:
        trial = " ".join(sentences[place] for place in sorted([*kept, at]))
        if fits(trial, limit):
            kept.append(at)
    return " ".join(sentences[place] for place in sorted(kept))


def worded(item: str, text: str) -> bool:
    """Return whether `text` has every content word of `item`, whatever their endings."""
    told = {word[:_STEM] for word in WORD.findall(text.lower())}
    return all(word[:_STEM] in told for word in _content(item))


def covered(item: str, text: str) -> bool:
    """Return whether `text` already says `item`: literally, or every content word of it, whatever their endings."""
    if literal([item.strip(" .")]).search(text):
        return True
    return bool(_content(item)) and worded(item, text)


def literal(items: Iterable[str]) -> re.Pattern[str]:
    """Return what finds any of `items` as whole words, whatever their capitals; anywhere where blanks part no words."""
    rows = [re.escape(item) for item in items]
    ends = [("", "") if any(ord(letter) >= WIDE for letter in row) else (r"(?<!\w)", r"(?!\w)") for row in rows]
    return re.compile(
        "|".join(f"{left}{row}{right}" for row, (left, right) in zip(rows, ends, strict=True)), re.IGNORECASE
    )


def _content(text: str) -> list[str]:
    return [word for word in WORD.findall(text.lower()) if word not in SMALL]
