"""The planners that draw from annotations: `scene` and `oracle`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from katha.errors import PlanError
from katha.language import Actor, SceneReading, describe_actor, describe_scene, load_vocabulary, read_scene
from katha.language.looks import clash
from katha.planners.checks import LadderPlanner, check_text
from katha.planners.moments import scene_texts
from katha.planners.prompts import (
    NEGATIVE_PROMPT,
    as_sentence,
    covered,
    feeler,
    feeling_in,
    feeling_of,
    fit,
    named,
    read_deed,
)
from katha.protocols import PlanRequest
from katha.schema import Character, Panel, Plan, Scene, StoryRecord, Transition


@dataclass(frozen=True)
class Sheets:
    """The characters of a record, and the place and time of each of its scenes (by index, as a sentence)."""

    characters: tuple[Character, ...]
    actors: Mapping[str, Actor]
    places: Mapping[int, str]

    def place(self, index: int) -> str:
        """Where and when scene `index` happens ("In the forest at night."); empty if nothing is told."""
        return self.places.get(index, "")

    def shown(self, prompt: str, listed: Sequence[str]) -> list[str]:
        """Who is in a panel: whoever its prompt names, and whoever the scene lists."""
        keys = {name.strip().lower() for name in listed}
        concepts = {actor.concept for actor in read_scene(prompt).actors}
        return [
            item.name
            for item in self.characters
            if item.name.lower() in keys
            or re.search(rf"\b{re.escape(item.name)}\b", prompt, re.IGNORECASE)
            or (item.name in self.actors and self.actors[item.name].concept in concepts)
        ]

    def with_looks(self, sentences: Sequence[str]) -> list[str]:
        """The sentences with each character's look at its first mention, where they do not say it yet."""
        found = list(sentences)
        for name, actor in self.actors.items():
            told = [one for one in read_scene(" ".join(found)).actors if one.concept == actor.concept]
            alike = [one for one in self.actors.values() if one.concept == actor.concept]
            if not actor.attributes or len(told) != 1 or len(alike) != 1:
                continue
            missing = set(actor.attributes) - set(told[0].attributes)
            if missing and not clash(told[0].attributes, actor.attributes):
                _say_looks(found, name, describe_actor(actor, "the", {actor.concept: name}))
        return found


def _say_looks(sentences: list[str], name: str, described: str) -> None:
    mention = re.compile(rf"\b(?:the|an?) {re.escape(name)}\b", re.IGNORECASE)
    for at, text in enumerate(sentences):
        if mention.search(text):
            whole = mention.sub(described, text, count=1)
            sentences[at] = whole[0].upper() + whole[1:]
            return


def sheets_of(story: StoryRecord) -> Sheets:
    """One sheet for each character that the scenes list, or else that their texts name.

    Looks are those that the texts and prompts tell, as far as the vocabulary reads them; a name that it does not know
    is its own look. The place and the time of a scene hold until another is told.
    """
    scenes = sorted(story.scenes, key=lambda scene: scene.scene_index)
    texts = scene_texts(story)
    readings = [read_scene(f"{text} {scene.generation_prompt}") for text, scene in zip(texts, scenes, strict=True)]
    told = [actor for reading in readings for actor in reading.actors]
    names = list(dict.fromkeys(name.strip() for scene in scenes for name in scene.characters if name.strip()))
    if not names:
        vocabulary = load_vocabulary()
        names = list(dict.fromkeys(vocabulary.get("character", actor.concept).words[0] for actor in told))
    actors: dict[str, Actor] = {}
    characters: list[Character] = []
    for name in _distinct(names):
        actor = _looks(name, told)
        if actor is not None:
            actors[name] = actor
        characters.append(_sheet(name, actor))
    return Sheets(tuple(characters), actors, _places(readings))


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, without those that differ from an earlier one in their capitals alone."""
    return list({name.lower(): name for name in reversed(names)}.values())[::-1]


def _looks(name: str, told: Sequence[Actor]) -> Actor | None:
    """The character as the vocabulary knows it, with every look told of it that does not clash with an earlier one."""
    known = read_scene(f"{named(name)[:1].upper()}{named(name)[1:]}.").actors
    if len(known) != 1:
        return None
    looks = known[0].attributes
    order = {concept.id: at for at, concept in enumerate(load_vocabulary().concepts("attribute"))}
    for actor in told:
        if actor.concept == known[0].concept and (actor.count > 1) == (known[0].count > 1):
            looks += tuple(look for look in actor.attributes if look not in looks and not clash(looks, (look,)))
    return Actor(known[0].concept, attributes=tuple(sorted(looks, key=order.__getitem__)), count=known[0].count)


def _sheet(name: str, actor: Actor | None) -> Character:
    if actor is None:
        return Character(name=name, kind=name, appearance=name, anchor_prompt=f"{named(name).capitalize()} alone.")
    words = {actor.concept: load_vocabulary().get("character", actor.concept).words[0]}
    return Character(
        name=name,
        kind=words[actor.concept],
        appearance=describe_actor(actor, "a", words),
        anchor_prompt=describe_scene(SceneReading((actor,)), words),
    )


def _places(readings: Sequence[SceneReading]) -> dict[int, str]:
    setting = next((reading.setting for reading in readings if reading.setting is not None), None)
    time: str | None = None
    found: dict[int, str] = {}
    for index, reading in enumerate(readings, 1):
        setting, time = reading.setting or setting, reading.time or time
        found[index] = describe_scene(SceneReading((), (), setting, time)).strip()
    return found


class AnnotationPlanner(LadderPlanner):
    """The base of the planners that need a record with scenes."""

    def seen(self, story: StoryRecord, request: PlanRequest) -> tuple[StoryRecord, list[str]]:
        """Return the record's allowed part with its scenes in order, and the names of what there was to see.

        Raises:
            PlanError: the record has no scenes, or they do not fit the number of panels.
        """
        check_text(story, self.name)
        if not story.scenes:
            raise PlanError(
                f"Story {story.story_id!r} is a plain text; planner {self.name!r} draws annotated scenes.",
                hint="Give a record with 'scenes', or use --planner rule.",
            )
        seen, information = super().seen(story, request)
        scenes = sorted(seen.scenes, key=lambda scene: scene.scene_index)
        return seen.model_copy(update={"scenes": scenes}), information


class ScenePlanner(AnnotationPlanner):
    """Structured scene prompts: each scene's characters, objects, action, state and feeling, as the record has them.

    It needs a record with scenes, and sees no transition, no prompt and no list of what must be visible.
    """

    name = "scene"

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """One structured prompt a scene.

        Raises:
            PlanError: the record has no scenes, or they do not fit the number of panels.
        """
        seen, information = self.seen(story, request)
        sheets = sheets_of(seen)
        drawn = [
            _panel(scene, sheets, [*_structured(scene, sheets)], [], request.prompt_tokens) for scene in seen.scenes
        ]
        return _plan(seen, "scene", information, sheets, drawn, request)


class OraclePlanner(AnnotationPlanner):
    """The gold annotation drawn: prompts, what must be visible, and what each transition must make readable.

    An upper bound, not a planner to deploy: it needs a record with scenes and transitions.
    """

    name = "oracle"

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """One panel a scene, with the record's transitions and questions.

        Raises:
            PlanError: the record has no scenes or no transitions, or they do not fit the number of panels.
        """
        seen, information = self.seen(story, request)
        if not seen.transitions:
            raise PlanError(
                f"Record {story.story_id!r} has no transitions, which planner 'oracle' draws.",
                hint="Annotate them, or use --planner scene.",
            )
        sheets = sheets_of(seen)
        transitions = sorted(seen.transitions, key=lambda item: item.pair)
        drawn = [self._drawn(scene, sheets, transitions, request.prompt_tokens) for scene in seen.scenes]
        plan = _plan(seen, "oracle", information, sheets, drawn, request)
        return plan.model_copy(update={"transitions": transitions, "questions": seen.recoverability_questions})

    def _drawn(self, scene: Scene, sheets: Sheets, transitions: Sequence[Transition], limit: int | None) -> Panel:
        """The scene's own prompt, and what the transitions on both sides of it need to be seen in it.

        The deed that leads into the scene comes first: a renderer that draws one deed a character draws that one.
        """
        given = as_sentence(scene.generation_prompt)
        sentences = [given] if given else [*_structured(scene, sheets)]
        deeds = [item.action for item in transitions if item.to_scene == scene.scene_index and item.action.strip()]
        sentences = [*(as_sentence(deed) for deed in deeds if not covered(deed, " ".join(sentences))), *sentences]
        _complete(sentences, [*scene.visual_must_show, *scene.characters, *scene.objects])
        into = [item for item in transitions if item.to_scene == scene.scene_index]
        out = [item for item in transitions if item.from_scene == scene.scene_index]
        feelings = [feeling_of(item.emotion or "", after=True) for item in into]
        feelings += [feeling_of(item.emotion or "", after=False) for item in out]
        for feeling in feelings:
            if feeling is not None and not feeling_in(" ".join(sentences), feeling):
                sentences.append(feeling.sentence)
        seen = [*deeds, *(item.consequence for item in into if item.consequence.strip())]
        _complete(sentences, seen)
        return _panel(scene, sheets, sentences, [*scene.visual_must_show, *seen], limit)


def _structured(scene: Scene, sheets: Sheets) -> list[str]:
    """Place, action, state, who and what else is there, and the feeling: a sentence each."""
    action = read_deed(scene.action, scene.characters) or scene.scene_text
    sentences = [text for text in (sheets.place(scene.scene_index), as_sentence(action)) if text]
    if scene.state.strip():
        sentences.append(as_sentence(scene.state))
    _complete(sentences, [*scene.characters, *scene.objects])
    feeling = feeling_of(scene.emotion or "", after=True, who=feeler(scene))
    if feeling is not None and not feeling_in(" ".join(sentences), feeling):
        sentences.append(feeling.sentence)
    return sentences


def _complete(sentences: list[str], items: Sequence[str]) -> None:
    """Add, a sentence each, what the sentences do not say yet."""
    for item in items:
        if item.strip() and not covered(item, " ".join(sentences)):
            sentences.append(as_sentence(item.strip()))


def _panel(scene: Scene, sheets: Sheets, sentences: Sequence[str], must_show: list[str], limit: int | None) -> Panel:
    prompt = fit(sheets.with_looks(sentences), limit)
    return Panel(
        index=scene.scene_index,
        prompt=prompt,
        negative_prompt=NEGATIVE_PROMPT,
        caption=scene.scene_text,
        characters=sheets.shown(prompt, scene.characters),
        must_show=list(dict.fromkeys(item.strip() for item in must_show if item.strip())),
    )


def _plan(
    story: StoryRecord,
    name: str,
    information: list[str],
    sheets: Sheets,
    panels: list[Panel],
    request: PlanRequest,
) -> Plan:
    shown = {who for panel in panels for who in panel.characters}
    return Plan(
        story_id=story.story_id,
        title=story.title,
        planner=name,
        information=information,
        style=request.style,
        characters=[item for item in sheets.characters if item.name in shown],
        panels=panels,
    )
