"""Who is who: entities of the text as actors, by the plan's sheet of characters and by what the words say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from katha.protocols import FrameRequest
from katha.schema import Character
from katha_sketch.drawing.deeds import Look, base_of, by_rig, people
from katha_sketch.drawing.figures.data import drawings
from katha_sketch.drawing.pictograms import find_noun
from katha_sketch.drawing.scenes.record import SceneActor, SceneThing
from katha_sketch.drawing.scenes.senses import (
    attributes_in,
    concept_of,
    features_of,
    hair_of,
    how_many,
    in_table,
    mood_of,
    near_noun,
    noun_of,
)
from katha_sketch.english.types import Entity, Reading
from katha_sketch.english.words import load_words

__all__ = ["COUNTS", "NUMBERS", "Cast", "actor_of", "bare", "has", "nature_of", "thing_of"]


def actor_of(
    name: str, word: str, *, base: str | None = None, kind_of: str = "animal", cm: float | None = None
) -> SceneActor:
    """The actor called `name` that is a `word` (teacher, dog, robot), doing nothing yet.

    `base` is what the story says of sex and age (an id of people.yaml's bases) and goes before the word's own. What the
    table does not have is a plain shape of `kind_of` and `cm`.
    """
    noun = find_noun(word)
    if noun is None:
        return SceneActor(name, "pictogram", kind_of=kind_of, cm=cm)
    if noun.kind != "person" or not by_rig(noun.pictogram):
        return SceneActor(name, "pictogram", pictogram=noun.pictogram, kind_of=noun.kind, cm=cm or noun.cm)
    outfit = noun.pictogram if noun.pictogram in people()["outfits"] else None
    usual = base_of(noun.pictogram)
    if usual in ("man", "woman", "person") and noun.cm < 150:
        usual = {"man": "boy", "woman": "girl", "person": "child"}[usual]
    return SceneActor(name, "person", look=Look(base or usual, outfit), cm=noun.cm)


def thing_of(
    name: str,
    word: str,
    *,
    held_by: str | None = None,
    role: Literal["object", "instrument", "scenery"] = "scenery",
    kind: str = "thing",
    cm: float = 30.0,
) -> SceneThing:
    """The thing `word`; a plain shape of `kind` and `cm` when the table does not have it."""
    noun = find_noun(word)
    if noun is None:
        return SceneThing(name, word, None, kind, cm, "ground", role, held_by)
    return SceneThing(name, word, noun.pictogram, noun.kind, noun.cm, noun.stands, role, held_by)


_TITLED = re.compile(r"(?:miss|mrs|mr|ms|dr|sir|madam|sergeant|officer|professor|aunt|uncle)\b", re.IGNORECASE)
"""How the name of somebody begins who is a person."""
_MALE = frozenset({"king", "thief", "woodcutter", "fisherman", "shepherd", "hunter", "merchant", "sage", "soldier"})

_ROYAL = frozenset({"king", "queen"})

_BASES = {("male", "teen"): "teen_boy", ("female", "teen"): "teen_girl", (None, "teen"): "teen",
          ("male", "child"): "boy", ("female", "child"): "girl", (None, "child"): "child", ("male", "old"): "old_man",
          ("female", "old"): "old_woman", ("male", None): "man", ("female", None): "woman"}  # fmt: skip

_OWN = {base: nature for nature, base in _BASES.items()}

NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 4, "six": 4, "seven": 4, "many": 4, "several": 3, "some": 3}

COUNTS = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
    "twelve": 12, "dozen": 12,
}  # fmt: skip
"""Numbers as they are told of things."""

_HE, _SHE = frozenset({"he", "his", "him", "male"}), frozenset({"she", "her", "female"})

_CROWD = 8

_HAIR = r"\b%s's hair (?:is|turns|goes|grows|has turned) ((?:[a-z-]+ )?[a-z]+)"
"""What a prompt tells of somebody's hair."""
_THE_ONE = r"(?i)^(?:the|a|an|his|her|their|its|my|our) (?:[\w-]+ )*%s$"
"""A noun in the singular, whatever the parser made of its number."""
_OWNER = re.compile(r"[\w-]+['\u2019]s ")
"""Whose somebody is says nothing of them: the boy's father is no boy."""


class Cast:
    """The characters of a request and of the text of its prompt; what is not known goes into `missing`."""

    def __init__(
        self,
        request: FrameRequest,
        reading: Reading | None,
        missing: list[str],
        stood: Mapping[str, Character] | None = None,
    ) -> None:
        """stood: characters by the names that stand for theirs in the reading."""
        self.request, self.reading, self.missing, self.stood = request, reading, missing, stood or {}
        self.named = self._match()

    def _match(self) -> dict[str, Character]:
        """Which character of the plan each entity is, by name; "he" alone is the one character that is left."""
        found: dict[str, Character] = {}
        if self.reading is None:
            return found
        for entity in self.reading.entities:
            for name in (entity.name, *entity.aliases):
                if name in self.stood:
                    found.setdefault(entity.id, self.stood[name])
        for entity in self.reading.entities:
            names = {bare(name) for name in (entity.name, *entity.aliases)} | {entity.noun}
            for character in self.request.characters:
                if {bare(character.name), bare(character.name).rstrip("s")} & names:
                    found.setdefault(entity.id, character)
        for entity in self.reading.entities:
            names = {bare(name) for name in (entity.name, *entity.aliases)} | {entity.noun}
            for character in self.request.characters:
                if bare(character.kind) in names and entity.id not in found and not has(found, character):
                    found[entity.id] = character
        for entity in self.reading.entities:
            alike = [
                one for one in self.request.characters if not has(found, one) and _same_kind(one.kind, entity.noun)
            ]
            if entity.id not in found and entity.noun and len(alike) == 1 and not entity.named:
                found[entity.id] = alike[0]
        for entity in self.reading.entities:
            rest = [one for one in self.request.characters if not has(found, one)]
            if entity.id not in found and entity.character and not entity.noun and not entity.named and rest:
                sexes = [(one, nature_of(f"{one.kind} {one.appearance} {one.name}")[0]) for one in rest]
                fits = [one for one, sex in sexes if entity.sex is None or sex in (None, entity.sex)]
                if fits:
                    found[entity.id] = fits[0]
        return found

    def actor(self, entity: Entity) -> SceneActor:
        """The actor that an entity is, doing nothing yet."""
        character = self.named.get(entity.id)
        phrases = [character.kind, entity.noun] if character is not None else [entity.noun]
        if character is not None and entity.noun and character.kind.endswith(f" {entity.noun}"):
            phrases = [character.kind]  # a team captain is no captain
        called = f"{entity.name} {character.name}" if character else entity.name
        if entity.noun and character is None and not entity.named and noun_of(entity.noun) is None:
            phrases = [entity.name, *phrases]  # the spaceship Orion
        whole = find_noun(bare(entity.name))
        if whole is not None and entity.noun and bare(entity.name).endswith(f" {entity.noun}"):
            named = whole.kind == "person" and character is None  # a team captain is no captain
            phrases = [bare(entity.name), *([] if named else phrases)]  # the cuckoo clock, the fox cub
        looks = " ".join([*entity.looks, character.appearance if character else "", called])
        name = bare(character.name if character else entity.name)
        if (hair := re.search(_HAIR % re.escape(name), self.request.prompt.lower())) is not None:
            looks = f"{hair.group(1)} hair {looks}"
        count = entity.count if entity.count else 3
        if entity.kind == "group" and count == 1 and load_words().has("group", entity.noun):
            count = 3
        if character is not None and entity.name == character.name and entity.name.istitle():
            count = 1
        if (
            entity.count == 0
            and entity.noun
            and not load_words().has("group", entity.noun)
            and re.search(_THE_ONE % re.escape(entity.noun), entity.name)
        ):
            count = 1
        if character is not None and entity.count == 1:
            count = NUMBERS.get(character.appearance.lower().split(" ")[0], count)
        many = how_many(entity.noun) or (how_many(f"{entity.noun}s") if entity.count == 0 and count > 1 else None)
        count = self._told(entity) or many or count
        actor = self.one(name, [phrase for phrase in phrases if phrase], looks, entity)
        mood = mood_of(entity.looks) or next(
            (load_words().feelings[w] for w in entity.looks if w in load_words().feelings), None
        )
        return replace(actor, count=min(count, _CROWD), mood=actor.mood or mood)

    def _told(self, entity: Entity) -> int:
        """The number that the text tells before a noun of people ("two people"), 0 where it tells none."""
        named = [one for one in entity.name.lower().split()[-1:] if entity.noun]
        nouns = dict.fromkeys(one for one in (*named, entity.noun) if one)
        for noun in sorted(nouns, key=len, reverse=True):
            # Two fishermen are no fish.
            pattern = rf"\b({'|'.join(COUNTS)}) (?:[\w-]+ ){{0,2}}{re.escape(noun)}(?:e?s|ren)?\b"
            found = re.search(pattern, self.request.prompt.lower())
            if found is not None and entity.count != 1:
                return COUNTS[found.group(1)]
        return 0

    def one(self, name: str, phrases: Sequence[str], looks: str, entity: Entity | None) -> SceneActor:
        """Somebody called `name` that is one of `phrases`, by the vocabulary's figures, the rig, or a pictogram."""
        words = f"{' '.join(phrases)} {looks}"
        sex, age = nature_of(words)
        character = self.named.get(entity.id) if entity is not None else None
        if entity is not None and character is not None:
            # The plan's sheet is the story's; a sentence by itself may be read wrongly.
            told = nature_of(f"{character.kind} {character.appearance} {character.name}")
            sex, age = told[0] or entity.sex, told[1] or entity.age
        elif entity is not None:
            sex, age = entity.sex or sex, age if age == "teen" else entity.age or age
        concept, noun = concept_of(*phrases), noun_of(*phrases)
        if concept is None and noun is None and phrases and not (entity is not None and entity.kind == "person"):
            noun = near_noun(phrases[-1])
        if noun is not None and noun.acts == "no" and _TITLED.match(name):
            noun, phrases = None, ()  # Miss Okafor is no dish, whatever the plan took her for
        trade = noun is not None and noun.kind == "person" and noun.pictogram in people()["outfits"]
        if concept is not None and not (sex == "female" and concept in _MALE) and (not trade or concept in _ROYAL):
            return SceneActor(name, "figure", concept=concept, attributes=_attributes(words))
        people_of = entity is None or (entity.kind in ("person", "group") and entity.sort != "animal")
        human = noun is None and (people_of or not phrases)
        if (noun is not None and noun.kind != "person") or not (human or noun):
            if noun is None:
                self.missing.append(phrases[-1])
            kind = entity.kind if entity is not None and entity.kind in ("animal", "person") else "animal"
            return actor_of(name, noun.word if noun else " ".join(phrases), kind_of=kind, cm=None if noun else 70.0)
        if noun is None and phrases and not _plain(phrases[-1]):
            self.missing.append(phrases[-1])
        usual = actor_of(name, noun.word if noun else "person")
        return replace(usual, look=_dressed(usual, sex, age, words)) if usual.kind == "person" else usual


def _plain(word: str) -> bool:
    """Whether a word says no more of a person than that it is one, or several."""
    return word in ("narrator", "person", "i", "someone") or load_words().has("group", word)


def _same_kind(kind: str, noun: str) -> bool:
    """Whether two words are one kind of person or animal: grandpa, grandfather."""
    one, other = noun_of(kind), noun_of(noun) if noun else None
    return one is not None and other is not None and one.pictogram == other.pictogram != "person"


def bare(name: str) -> str:
    return re.sub(r"^(the|a|an|my|his|her|their|our) ", "", name.strip().lower())


def has(found: dict[str, Character], character: Character) -> bool:
    return any(one.name == character.name for one in found.values())


def nature_of(phrase: str) -> tuple[Literal["male", "female"] | None, Literal["child", "teen", "adult", "old"] | None]:
    """Sex and age that the words of a phrase tell ("old woman", "Mrs Lee, a teacher")."""
    words, tables = re.findall(r"[a-z-]+", _OWNER.sub("", phrase.lower())), load_words()
    sex: Literal["male", "female"] | None = None
    age: Literal["child", "teen", "adult", "old"] | None = None
    for word in words:
        if any(tables.has(name, word) for name in ("male", "kin.male", "titles.male")) or word in _HE:
            sex = sex or "male"
        if any(tables.has(name, word) for name in ("female", "kin.female", "titles.female")) or word in _SHE:
            sex = sex or "female"
        if in_table("teen", word):
            age = "teen"
        if tables.has("child", word):
            age = age or "child"
        if tables.has("old", word) or tables.has("old_looks", word) or tables.has("kin_old", word):
            age = age or "old"
    return sex, age


def _dressed(usual: SceneActor, sex: str | None, age: str | None, words: str) -> Look:
    """The look of a person: the noun's own, corrected by what the story says of sex, age, clothes and hair."""
    base = usual.look.base
    if base != "baby":
        own_sex, own_age = _OWN.get(base, (None, None))
        years = age if age in ("child", "teen", "old") else (own_age if age is None else None)
        base = _BASES.get((sex or own_sex, years), "child" if years == "child" else "person")
    return replace(usual.look, base=base, hair=hair_of(words), features=features_of(words))


def _attributes(looks: str) -> tuple[str, ...]:
    known = drawings("attributes")
    return tuple(name for name in attributes_in(looks.replace(",", " ").replace(".", " ")) if name in known)
