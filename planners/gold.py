"""The planners that draw from annotations: `scene` and `oracle`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from katha.errors import PlanError
from katha.planners.base import ARTICLE, NEGATIVE_PROMPT, LadderPlanner, as_sentence, capital, covered, fit, named
from katha.protocols import PlanRequest
from katha.schema import Character, Panel, Plan, Scene, StoryRecord, Transition
from katha_sketch.english import Reading, read_story
from katha_sketch.english.phrases import Figure, bare, read_phrase
from katha_sketch.english.words import load_words
from katha_sketch.planner.moments import scene_texts
from katha_sketch.vocabulary import load_vocabulary

_EXCLUSIVE: tuple[frozenset[str], ...] = (
    frozenset({"small", "big"}),
    frozenset({"thin", "fat"}),
    frozenset({"white", "black", "brown", "grey", "red", "golden", "green", "blue"}),
    frozenset({"red_scarf", "blue_scarf", "green_cap", "yellow_hat", "crowned"}),
    frozenset({"spotted", "striped"}),
)
"""Looks that exclude each other: a character is not small and big, nor grey and white."""
_WHERE = ("on", "at", "by", "near", "under", "behind", "beside")


@dataclass(frozen=True)
class Sheets:
    """The characters of a record, and the place and time of each of its scenes: by index, "In the forest at night."."""

    characters: tuple[Character, ...]
    actors: Mapping[str, Figure]
    places: Mapping[int, str]

    def shown(self, prompt: str, listed: Sequence[str]) -> list[str]:
        """Return who is in a panel: whoever its prompt names, and whoever the scene lists."""
        keys = {name.strip().lower() for name in listed}
        concepts = read_phrase(prompt).concepts.get("character", ())
        return [
            item.name
            for item in self.characters
            if item.name.lower() in keys
            or re.search(rf"\b{re.escape(item.name)}\b", prompt, re.IGNORECASE)
            or (item.name in self.actors and self.actors[item.name].concept in concepts)
        ]

    def seen_in(self, panels: Sequence[Panel]) -> list[Character]:
        """Return the characters that at least one panel shows."""
        seen = {name for panel in panels for name in panel.characters}
        return [item for item in self.characters if item.name in seen]

    def with_looks(self, sentences: Sequence[str]) -> list[str]:
        """Return the sentences with each character's look at its first mention, where they do not say it yet."""
        found = list(sentences)
        for name, actor in self.actors.items():
            told = [one for one in read_phrase(" ".join(found)).figures if one.concept == actor.concept]
            alike = [one for one in self.actors.values() if one.concept == actor.concept]
            if not actor.attributes or len(told) != 1 or len(alike) != 1:
                continue
            missing = set(actor.attributes) - set(told[0].attributes)
            if missing and not _clash(told[0].attributes, actor.attributes):
                mention = re.compile(rf"\b(?:the|an?) {re.escape(name)}\b", re.IGNORECASE)
                described = f"the {_described(actor, name)}"
                at = next((at for at, text in enumerate(found) if mention.search(text)), None)
                if at is not None:
                    found[at] = capital(mention.sub(described, found[at], count=1))
        return found


def sheets_of(story: StoryRecord) -> Sheets:
    """Return one sheet for each character that the scenes list, or else that their texts name.

    Looks are those that the texts and prompts tell, as far as the vocabulary reads them; a name that it does not know
    is its own look. The place and the time of a scene hold until another is told.
    """
    texts = [f"{text} {scene.generation_prompt}" for text, scene in zip(scene_texts(story), story.scenes, strict=True)]
    told = [figure for text in texts for figure in read_phrase(text).figures]
    names = [name.strip() for scene in story.scenes for name in scene.characters if name.strip()]
    if not names:
        names = [load_vocabulary().get("character", actor.concept).words[0] for actor in told]
    # Of names that differ in their capitals alone, the first counts.
    names = list({name.lower(): name for name in reversed(list(dict.fromkeys(names)))}.values())[::-1]
    known = {name: _looks(name, told) for name in names}
    actors = {name: actor for name, actor in known.items() if actor is not None}
    return Sheets(tuple(_sheet(name, actor) for name, actor in known.items()), actors, _places(texts))


def _in_order(looks: Iterable[str]) -> tuple[str, ...]:
    """Looks in the vocabulary's order."""
    order = {concept.id: at for at, concept in enumerate(load_vocabulary().concepts("attribute"))}
    return tuple(sorted(looks, key=order.__getitem__))


def _clash(first: Sequence[str], second: Sequence[str]) -> bool:
    """Whether two sets of looks cannot be the same character's."""
    pairs = ((group.intersection(first), group.intersection(second)) for group in _EXCLUSIVE)
    return any(one and two and not one & two for one, two in pairs)


def _looks(name: str, told: Sequence[Figure]) -> Figure | None:
    """Return the character as the vocabulary knows it, with every look told that does not clash with an earlier one."""
    known = read_phrase(f"{capital(named(name))} stands.").figures
    if len(known) != 1:
        return None
    looks = known[0].attributes
    for figure in told:
        if figure.concept == known[0].concept and (figure.count != 1) == (known[0].count != 1):
            looks += tuple(look for look in figure.attributes if look not in looks and not _clash(looks, (look,)))
    return Figure(known[0].concept, _in_order(looks), known[0].count)


def _described(figure: Figure, noun: str) -> str:
    """Return who somebody is, with every look: "small grey mouse with a red scarf", "three crows"."""
    vocabulary = load_vocabulary()
    words = [vocabulary.get("attribute", look).words for look in figure.attributes]
    adjectives = [word[0] for word in words if " " not in word[0]]
    if adjectives and f"{adjectives[-1]} {noun}" in vocabulary.senses and len(words[-1]) > 1:
        adjectives[-1] = words[-1][1]  # an aged man is not "old man", which is a concept of its own
    number = next((word for word, count in vocabulary.numbers.items() if count == figure.count > 1), "")
    plural = vocabulary.inflector.plural(noun) if figure.count != 1 else noun
    worn = " and ".join(f"a {word[0]}" for word in words if " " in word[0])
    phrase = " ".join(part for part in (number, *adjectives, plural) if part)
    return f"{phrase} with {worn}" if worn else phrase


def _sheet(name: str, actor: Figure | None) -> Character:
    if actor is None:
        return Character(name=name, kind=name, appearance=name, anchor_prompt=f"{named(name).capitalize()} alone.")
    noun = load_vocabulary().get("character", actor.concept).words[0]
    looks = _described(actor, noun)
    article = "" if actor.count != 1 else "an " if looks[0] in "aeio" else "a "
    stand = "stand" if actor.count != 1 else "stands"
    return Character(name=name, kind=noun, appearance=f"{article}{looks}", anchor_prompt=f"The {looks} {stand} nearby.")


def _places(texts: Sequence[str]) -> dict[int, str]:
    """Return the place and the time of each scene, which hold until others are told: "In the forest at night."."""
    readings = [read_story(text) for text in texts]
    where = next((place for reading in readings if (place := _place(reading))), "")
    when = ""
    found: dict[int, str] = {}
    for index, reading in enumerate(readings, 1):
        where, when = _place(reading) or where, _time(reading) or when
        found[index] = as_sentence(" ".join(part for part in (where, when) if part))
    return found


def _place(reading: Reading) -> str:
    """The place where something happens, else one that is flown over or looked at."""
    words = load_words()
    roles = [role for event in reading.events for role in event.all("place", "goal") if role.preposition != "to"]
    open_air = (role for role in roles if words.is_place(role.head) or words.group("weather", role.head))
    named = [(role.preposition, role.head) for role in open_air]
    named += [
        (one.place.preposition, bare(one.place.text)) for one in reading.sentences if one.place and one.place.sort
    ]
    preposition, noun = next(((how, noun) for how, noun in named if words.sort(noun) != "thing"), ("", ""))
    return f"{preposition if preposition in _WHERE else 'in'} the {noun}" if noun else ""


def _time(reading: Reading) -> str:
    """The time of day that holds, else one that a line without a verb names ("Forest by day.")."""
    words, told = load_words(), [one.time for one in reading.sentences if one.time is not None]
    told += [
        part
        for one in reading.sentences
        if not one.events
        for word in one.text.lower().rstrip(".").split()
        if (part := words.group("times", word))
    ]
    return {"": "", "night": "at night", "day": "by day"}.get(time := next(iter(told), ""), f"in the {time}")


class ScenePlanner(LadderPlanner):
    """Structured scene prompts: each scene's characters, objects, action, state and feeling, as the record has them.

    It needs a record with scenes, and sees no transition, no prompt and no list of what must be visible.
    """

    name = "scene"
    needs_scenes = True

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Return a plan of one structured prompt a scene."""
        seen, information = self.seen(story, request)
        sheets, limit = sheets_of(seen), request.prompt_tokens
        panels = [_panel(scene, sheets, _structured(scene, sheets), [], limit) for scene in seen.scenes]
        return self.made(story, request, information, panels, characters=sheets.seen_in(panels))


class OraclePlanner(LadderPlanner):
    """The gold annotation drawn: prompts, what must be visible, and what each transition must make readable.

    An upper bound, not a planner to deploy: it needs a record with scenes and transitions.
    """

    name = "oracle"
    needs_scenes = True

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Return a plan of one panel a scene, with the record's transitions and questions."""
        seen, information = self.seen(story, request)
        if not seen.transitions:
            raise PlanError(
                f"Record {story.story_id!r} has no transitions, which planner 'oracle' draws.",
                hint="Annotate them, or use --planner scene.",
            )
        sheets = sheets_of(seen)
        transitions = sorted(seen.transitions, key=lambda item: item.pair)
        panels = [self._drawn(scene, sheets, transitions, request.prompt_tokens) for scene in seen.scenes]
        questions, characters = seen.recoverability_questions, sheets.seen_in(panels)
        return self.made(
            story, request, information, panels, characters=characters, transitions=transitions, questions=questions
        )

    def _drawn(self, scene: Scene, sheets: Sheets, transitions: Sequence[Transition], limit: int | None) -> Panel:
        """Return the scene's own prompt, and what the transitions on both sides of it need to be seen in it.

        The deed that leads into the scene comes first: a renderer that draws one deed a character draws that one.
        """
        given = as_sentence(scene.generation_prompt)
        sentences = [given] if given else _structured(scene, sheets)
        into = [item for item in transitions if item.to_scene == scene.scene_index]
        deeds = [item.action for item in into if item.action.strip()]
        sentences = [*(as_sentence(deed) for deed in deeds if not covered(deed, " ".join(sentences))), *sentences]
        _complete(sentences, [*scene.visual_must_show, *scene.characters, *scene.objects])
        for item in into:
            _add_feeling(sentences, feeling_of(item.emotion or "", after=True))
        for item in transitions:
            if item.from_scene == scene.scene_index:
                _add_feeling(sentences, feeling_of(item.emotion or "", after=False))
        seen = [*deeds, *(item.consequence for item in into if item.consequence.strip())]
        _complete(sentences, seen)
        return _panel(scene, sheets, sentences, [*scene.visual_must_show, *seen], limit)


def _structured(scene: Scene, sheets: Sheets) -> list[str]:
    """Return place, action, state, who and what else is there, and the feeling: a sentence each."""
    action = _read_deed(scene.action, scene.characters) or scene.scene_text
    told = (sheets.places.get(scene.scene_index, ""), as_sentence(action), as_sentence(scene.state))
    sentences = [text for text in told if text]
    _complete(sentences, [*scene.characters, *scene.objects])
    _add_feeling(sentences, feeling_of(scene.emotion or "", after=True, who=_feeler(scene)))
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


_LONGEST_MOOD = 3


@dataclass(frozen=True)
class Feeling:
    """Who feels what, as one sentence. `who` and `emotion` are concept ids, None where the vocabulary knows neither."""

    who: str | None
    emotion: str | None
    sentence: str


def _read_deed(action: str, characters: Sequence[str]) -> str:
    """Return an action as a clause with its doer, "the lion hugs the mouse" of "hugs the mouse"; may be empty."""
    text = action.strip()
    claims = read_phrase(text).events
    if not text or not characters or not claims or claims[0].actor is not None:
        return text
    return f"{named(characters[0])} {text}"


def feeling_of(text: str, *, after: bool, who: Sequence[str] = ()) -> Feeling | None:
    """Return the feeling in an annotation: after the change that it tells of, or before it; None where it has none.

    who: the name of whoever feels it where the text names nobody.
    """
    clean = text.strip()
    reading = read_phrase(clean)
    vocabulary = load_vocabulary()
    found = reading.concepts.get("emotion", ())
    change = reading.change or (None, found[-1] if found else vocabulary.find(clean.lower(), "emotion"))
    emotion = change[1] if after else change[0]
    kinds = reading.concepts.get("character", ())
    name = vocabulary.get("character", kinds[0]).words[0] if kinds else who[0] if who else None
    concept = kinds[0] if kinds else vocabulary.find(ARTICLE.sub("", name), "character") if name else None
    if emotion is not None and name is not None:
        word = vocabulary.get("emotion", emotion).words[0]
        return Feeling(concept, emotion, as_sentence(f"{named(name)} is {word}"))
    if not clean or not after or emotion is not None:
        return None
    if name is not None and not kinds and len(clean.split()) <= _LONGEST_MOOD:
        return Feeling(concept, None, as_sentence(f"{named(name)} is {clean.lower()}"))
    return Feeling(concept, None, as_sentence(clean))


def _feeler(scene: Scene) -> list[str]:
    """Return whose feeling a scene's is: whoever its text says feels so, else its doer, else the first it lists."""
    vocabulary = load_vocabulary()
    emotion = vocabulary.find(scene.emotion or "", "emotion")
    felt = [who for who, feeling in read_phrase(scene.scene_text).felt if who is not None and feeling == emotion]
    doers = [event.actor for event in read_phrase(scene.action).events if event.actor]
    kinds = {name: vocabulary.find(ARTICLE.sub("", name), "character") for name in scene.characters}
    chosen = [name for concept in (*felt, *doers) for name, kind in kinds.items() if kind == concept]
    return (chosen or scene.characters)[:1]


def _add_feeling(sentences: list[str], feeling: Feeling | None) -> None:
    """Add a feeling, unless the sentences show one of that character (of anybody, where it is not known who feels)."""
    text = " ".join(sentences)
    if feeling is None or (feeling.emotion is None and feeling.sentence.lower() in text.lower()):
        return
    felt = feeling.emotion is not None and any(feeling.who in {None, who} for who, _ in read_phrase(text).felt)
    if not felt:
        sentences.append(feeling.sentence)
