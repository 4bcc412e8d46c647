"""Which animal or being somebody is whom the text calls by a name or as kin alone: by the name itself, by whose kin it
is, by what only such a beast does or has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from katha_sketch.english.words import Words

if TYPE_CHECKING:
    from katha_sketch.english.known import Known
    from katha_sketch.english.mentions import Key, Mention

__all__ = ["apart", "beast_named", "beasts_of", "looks_named"]

_BEASTS = ("animal", "being")
_NEAR = 2


def beast_named(name: str, titles: Sequence[str], words: Words) -> str:
    """Return the beast in a name: "Brown Bear", "Peter Rabbit", "Mrs Hen", the robot in "Unit 40"; "" for none, and for
    Tom Fox, a man."""
    *before, last = name.lower().split() or [""]
    if before and words.has("numbered_robots", before[0]) and (last.isdigit() or words.number(last)):
        return "robot"
    if words.has("beasts.sure", last):
        return last
    trades = [one for title in titles if words.sort(one := title.lower()) == "person" and not words.sexes.get(one)]
    told = (bool(titles) and not trades and not before) or (
        bool(before) and not set(before) - words.sets["looks_named"]
    )
    alone = not before and words.has("beasts.alone", last)
    return last if alone or (told and words.has("beasts", last)) else ""


def looks_named(name: str, titles: Sequence[str], words: Words) -> tuple[str, ...]:
    """Return what the name of a beast tells of its looks: the brown of "Brown Bear", the little of "Little Owl"."""
    said = [*(title.lower() for title in titles), *name.lower().split()[:-1]]
    told = [word for word in said if words.has("looks_named", word) or words.has("young_titles", word)]
    return (*told, *(["old"] if any(words.ages.get(word) == "old" for word in said) else []))


def apart(entity: Known, mention: Mention, words: Words) -> bool:
    """Return whether two of a name are two by what they are titled: "Little Owl" and "Old Owl"."""
    known = {title for name in entity.names for title in _epithets(name, entity.titles, words)}
    new = _epithets(mention.name, mention.titles, words)
    sizes = words.sets["young_titles"] | {"old", "big"}
    alike = words.sort(mention.noun) in _BEASTS or (known | new) <= sizes
    return alike and bool(known and new) and not known & new


def _epithets(name: str, titles: Sequence[str], words: Words) -> set[str]:
    before = {word for word in name.lower().split()[:-1] if words.has("looks_named", word)}
    return before | {_canonical(title.lower(), words) for title in titles}


def _canonical(title: str, words: Words) -> str:
    return words.group("kin_same", title) or title


def beasts_of(entities: Mapping[str, Known], mentions: Mapping[Key, Mention], words: Words) -> None:
    """Make beasts of those who must be: by their deeds, then as the kin of one."""
    named = list(mentions.values())
    for entity in entities.values():
        human = words.has("kin", entity.noun) or words.sort(entity.noun) == "person" or not entity.noun
        if entity.narrator and entity.kind == "person" and not human:
            entity.kind = "being"  # "I am an old tram"
        grown = next((one for one in entity.nouns if words.sort(one) == "animal" and one in words.sets["beasts"]), "")
        if words.group("young_of", entity.noun) and grown and not words.group("young_of", grown):
            entity.noun = grown  # "a wolf cub"
            entity.adjectives.append("young")
        if entity.kind == "person" and not entity.plural and _unknown(entity, words):
            beast = _by_deeds(entity, named, words)
            if beast:
                _become(entity, beast, words)
    for _ in range(_NEAR):  # the mother of an owl's brother
        for entity in entities.values():
            like = _kin_of(entity, entities, named, words)
            if like is not None:
                _become(entity, _kind_of_kin(like, entities, named, words), words, like)


def _unknown(entity: Known, words: Words) -> bool:
    """Whether nothing but names, and whose kin it is, tells what it is."""
    nouns = {noun for noun in entity.nouns if noun not in words.sets["titles"]}
    ages = {noun for noun in nouns if words.has("plain_person", noun)}
    return not ages and all(words.has("kin", noun) or words.has("kin_equal", noun) for noun in nouns)


def _by_deeds(entity: Known, mentions: Iterable[Mention], words: Words) -> str:
    """The beast that somebody without kin or trade must be: who hoots, flaps its wings, lays an egg."""
    if entity.titles or entity.kin or entity.nouns or (entity.owner and not entity.names):
        return ""
    every = list(mentions)
    own = {mention.key for mention in every if mention.entity == entity.id}
    for mention in every:
        clause = mention.clause
        if mention.entity != entity.id or clause is None or mention.role != "agent" or clause.standing != "told":
            continue
        if entity.narrator or clause.negated or mention.speaks or '"' in mention.token.doc.text:
            continue
        eggs = [one for one in clause.of("patient") if one.lemma_ == "egg" and not _the(one)]
        if clause.lemma == "lay" and eggs and not clause.of("goal"):
            return "hen"
        sound = words.group("beast_sounds", clause.lemma)
        felt = any(
            child.lower_ == "with"
            or (child.lower_ == "in" and any(words.sort(one.lemma_) == "feeling" for one in child.children))
            for child in clause.verb.children
        )  # "hooted with laughter"
        if sound and not clause.of("patient") and not felt:
            return sound
    parts = (one for one in every if one.owner in own and not one.unreal and not one.quoted)
    return next((part for one in parts if (part := words.group("beast_parts", one.noun))), "")


def _the(token: object) -> bool:
    return any(child.lower_ in ("the", "his", "her") for child in getattr(token, "children", ()))


def _kin_of(entity: Known, entities: Mapping[str, Known], mentions: Sequence[Mention], words: Words) -> Known | None:
    """The beast whose kin somebody is of whom no more is told: the owl of "the owl's brother Finn"."""
    if entity.kind not in ("person", "group") or entity.members or not entity.nouns or not _unknown(entity, words):
        return None
    if any(words.has("not_blood", noun) for noun in entity.nouns) or entity.narrator:
        return None
    others = [entities[kin.other] for kin in entity.kin if kin.other in entities and kin.relation in entity.nouns]
    owner = entities.get(entity.owner or "") if entity.plural else None
    others += [owner] if owner is not None else []
    beasts = [one for one in others if words.sort(one.noun) in _BEASTS and (one.kind in _BEASTS or one.plural)]
    if not beasts or len(beasts) < len(others):
        return None
    return beasts[0] if _surely(entity, beasts[0], entities, mentions) else None


def _surely(entity: Known, beast: Known, entities: Mapping[str, Known], mentions: Sequence[Mention]) -> bool:
    """Whether no person is near of whom "his mother" may be meant."""
    keys = {mention.key: mention for mention in mentions}
    for mention in mentions:
        whose = keys.get(mention.owner) if mention.entity == entity.id and mention.owner is not None else None
        if whose is None:
            continue
        if not whose.pronoun and whose.entity == beast.id:
            return True
        people = (one for one in entities.values() if one.kind == "person" and one.alive and one is not entity)
        kin = {beast.id, entity.id}
        near = [
            one
            for one in people
            if not kin & {tie.other for tie in one.kin}
            and not one.unreal
            and any(mention.sentence - _NEAR <= at <= mention.sentence for at in one.sentences)
        ]
        return not near
    return True


def _kind_of_kin(like: Known, entities: Mapping[str, Known], mentions: Sequence[Mention], words: Words) -> str:
    """What a beast's kin are: a chick's mother is a hen, the mother of the wolf's cubs a wolf."""
    if not words.group("young_of", like.noun):
        return like.noun
    keys = {one.key: one for one in mentions}
    bred = [
        one.clause for one in mentions if one.entity == like.id and one.role == "patient" and one.clause is not None
    ]
    had = [keys.get((one.key[0], who.i)) for one in mentions if one.clause in bred for clause in bred
           if clause.lemma == "have" for who in clause.of("agent")]  # fmt: skip
    owners = [like.owner, *(one.entity for one in had if one is not None)]
    for owner in (entities[key] for key in owners if key is not None and key in entities):
        if words.sort(owner.noun) == "animal":
            return owner.noun
    return words.group("young_of", like.noun) or like.noun


def _become(entity: Known, beast: str, words: Words, like: Known | None = None) -> None:
    """Take somebody for a beast."""
    young = any(words.has("kin_child", noun) for noun in entity.nouns)
    same = like is not None and any(words.has("kin_equal", noun) for noun in entity.nouns)
    if like is not None and same:
        beast = like.noun
    entity.noun = beast
    entity.nouns.append(beast)
    if entity.kind != "group":
        entity.kind = "being" if words.sort(beast) == "being" else "animal"
    if young:
        entity.adjectives.append("young")
