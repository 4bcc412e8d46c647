"""Characters as a plan describes them: one look each, written once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from katha.schema import Character
from katha_sketch.english import Entity
from katha_sketch.english.senses import said_plainly
from katha_sketch.english.words import load_words
from katha_sketch.planner.acts import planning
from katha_sketch.planner.moments import Story
from katha_sketch.vocabulary.inflect import plural

__all__ = ["kind_of", "sheet_of"]

_WEARS = re.compile(r" (?:with|in|wearing) (?:an? |the )?((?:[a-z-]+ ){0,2}[a-z-]+)")
_PLAIN = frozenset(("man", "woman", "boy", "girl", "child", "person"))
"""Kinds of people whom nothing but their clothes tells apart."""
_SMALL = frozenset(("baby", "toddler", "infant", "newborn"))


def sheet_of(story: Story, keys: Iterable[str]) -> list[Character]:
    """Return a sheet for each character: what it is, and one look; two of a kind differ in what they wear."""
    sheets: list[Character] = []
    taken: dict[str, int] = {}
    dressed = 0
    for key in keys:
        entity, text = story.reading.entity(key), story.reading.text
        kind = said_plainly(kind_of(entity), text, text)
        look = _look(story, entity, kind)
        count = taken.get(look, 0)
        taken[look] = count + 1
        accessories: Sequence[str] = planning("look")["accessories"]
        others = [other for other in story.teller.names if other != key]
        alike = any(_look(story, story.reading.entity(other), kind_of(story.reading.entity(other))) == look
                    for other in others)  # fmt: skip
        if _plainly_dressed(entity, kind) and " with " not in look:
            clothes: Sequence[str] = planning("look")["clothes"]
            look = f"{look} in {clothes[dressed % len(clothes)]} {'dress' if entity.sex == 'female' else 'shirt'}"
            dressed += 1
        elif (alike or entity.narrator) and entity.count == 1:
            look = f"{look} with a {accessories[count % len(accessories)]}" if " with " not in look else look
        name = story.teller.names[key]
        sheets.append(Character(name=name, kind=kind, appearance=look, anchor_prompt=f"{look[:1].upper()}{look[1:]}."))
    return sheets


def _plainly_dressed(entity: Entity, kind: str) -> bool:
    """Whether nothing but a colour tells somebody from others of the kind: a man, no nurse and no bride."""
    return kind in _PLAIN and entity.count == 1 and entity.noun not in planning("look")["dressed"]


def kind_of(entity: Entity) -> str:
    """Return what a character is, in a word: its trade or species, else by sex and age; neutral if unknown."""
    words = load_words()
    if entity.noun in _SMALL and entity.count == 1:
        return "baby"
    tie = words.group("kin", entity.noun) is not None or entity.noun in words.sets["kin_equal"]
    tie = tie or words.has("relations", entity.noun)
    general = not entity.noun or tie or words.has("plain_person", entity.noun) or words.has("general", entity.noun)
    title = entity.name.split()[0].lower().rstrip(".") if entity.named and not entity.noun else ""
    trade = str(planning("look")["titles"].get(title, title))
    if trade != title or (words.has("titles.any", title) and words.sort(title) == "person"):
        return trade  # Nurse Okafor is a nurse
    if entity.kind not in ("person", "group") or (not general and entity.kind != "group"):
        return entity.noun or "person"
    if not general or (entity.sex is None and entity.kind == "group" and entity.noun):
        return entity.noun
    if entity.age == "child" and entity.noun not in (*planning("look")["grown"], *planning("look")["old_kin"]):
        return {"male": "boy", "female": "girl"}.get(entity.sex or "", "child")
    return {"male": "man", "female": "woman"}.get(entity.sex or "", "person")


def _look(story: Story, entity: Entity, kind: str) -> str:
    """ "an old man with a white beard": age, looks for good, kind, and what the text says that it wears."""
    own = (text.rsplit("'s ", 1)[-1] for text in (entity.name, *entity.aliases))  # not of "the old man's dog"
    told = [*entity.looks, *(word for text in own for word in text.split() if word.islower())]  # "Mr Black" is a name
    lasting = [word for word in dict.fromkeys(told) if word in planning("look")["lasting"] and word not in kind.split()]
    told_age = "old" if entity.noun in planning("look")["old_kin"] else entity.age or ""  # what they once were is told
    age = {"old": ["old"], "child": ["young"]}.get(told_age, []) if entity.kind == "person" else []
    young = age == ["young"] and kind in ("boy", "girl", "child")
    words = [*([] if young or (age and age[0] in lasting) else age), *lasting]
    female = entity.kind == "person" and entity.sex and kind not in ("boy", "girl", "man", "woman")
    plain = " ".join([*words, *([str(entity.sex)] if female else []), kind])
    if entity.count != 1:
        number = next((word for word, value in load_words().numbers.items() if value == entity.count), "several")
        return f"{number} {' '.join([*words, plural(kind)])}"
    article = "an" if plain[0] in "aeiou" else "a"
    return f"{article} {plain}{_wears(story, entity) or _seated(story, entity)}"


def _seated(story: Story, entity: Entity) -> str:
    """ " in a wheelchair", where the text gives somebody one."""
    own = any(one.noun == "wheelchair" and one.owner == entity.id for one in story.reading.entities)
    return " in a wheelchair" if own and entity.kind == "person" else ""


def _wears(story: Story, entity: Entity) -> str:
    """ " with a white beard", where the text says so right after naming it."""
    words = load_words()
    for alias in (entity.name, *entity.aliases):
        at = story.reading.text.find(alias)
        found = _WEARS.match(story.reading.text, at + len(alias)) if at >= 0 else None
        for size in range(len(found[1].split()), 0, -1) if found is not None else ():
            phrase = found[1].split()[:size] if found is not None else []
            if phrase[0].lower() in ("my", "his", "her", "its", "their", "our", "your"):
                continue  # "a lamb in my lap"
            if words.sort(phrase[-1]) in ("clothing", "body") and words.sort(phrase[-1]):
                several = phrase[-1].endswith("s") or phrase[-1] in ("hair", "fur", "armour")
                return f" with {'' if several else 'a '}{' '.join(phrase)}"
    return ""
