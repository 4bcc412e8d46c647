"""The tables of senses.yaml with those of deeds, places, nouns and the vocabulary behind them: words to ids."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from katha_sketch.drawing.deeds import deed_words, people
from katha_sketch.drawing.pictograms import Noun, find_noun
from katha_sketch.drawing.places import place_data, place_words
from katha_sketch.drawing.scenes.record import Shot
from katha_sketch.drawing.tables import load_table
from katha_sketch.english.words import load_words
from katha_sketch.vocabulary import load_vocabulary
from katha_sketch.vocabulary.inflect import plural, singular

__all__ = [
    "attributes_in",
    "base_form",
    "beside_of",
    "concept_of",
    "deed_of_verb",
    "done_state",
    "failed_deed",
    "features_of",
    "force_leaves",
    "force_way",
    "hair_of",
    "held_as",
    "held_in",
    "here_called",
    "hollow_of",
    "how_many",
    "implied_place",
    "in_table",
    "is_heap",
    "is_idiom",
    "lifeless_deed",
    "means_deed",
    "mood_of",
    "near_deed",
    "near_noun",
    "noun_of",
    "object_deed",
    "on_foot",
    "part_of",
    "place_by_things",
    "place_of",
    "placed_deed",
    "platform_of",
    "posture_deed",
    "rim_of",
    "said_sign",
    "seen_from_outside",
    "shot_of",
    "sign_of",
    "size_of",
    "source_state",
    "spoken_sign",
    "stage_by_kinds",
    "state_deed",
    "states_of",
    "stirred_mood",
    "stopped_deed",
    "struck_deed",
    "time_of",
    "unseen_part",
    "whole_of",
    "worn_in",
]

_OWN_NAME = re.compile(r"(?: [A-Z][\w'-]*)+$")
"""The name of a ship or machine behind its noun: "the spaceship Orion"."""
_S = re.compile(r"[sxv]es$")
"""Plurals of words that may end in "e": hoses, axes, gloves."""
_WORD = re.compile(r"[a-zé'-]+")
_NOT_FIGURES = frozenset({"man", "woman", "boy", "girl", "old_man", "old_woman", "farmer"})
"""People of the vocabulary whom the scene's own rig draws better."""
_PICTURE = re.compile(r"\b(picture|photo|photograph|drawing|painting|poster|portrait|map|statue) of .*")
"""What a picture is of is not there."""
_OF = re.compile(r" (?:of|by|near|beside|at|on|in|with|behind|above|under) ")
_HELD = re.compile(r"(?:(?:the|a|an|some|his|her|their|its|my|our|your) )?([\w-]+) of ")
_SHORT = 5
"""No past form of a regular verb is shorter (letters) that only drops its ending."""
_OWNING = frozenset({"the", "a", "an", "his", "her", "its", "their", "my", "our", "your"})
_WHOLES = frozenset(
    {"furniture", "vehicle", "device", "container", "tool", "instrument", "document", "toy", "clothing", "sport"}
)
"""Kinds of things whose parts are drawn as the whole."""
_NAMING = frozenset(
    {
        "thing",
        "body",
        "building",
        "structure",
        "furniture",
        "clothing",
        "food",
        "vehicle",
        "plant",
        "water",
        "animal",
        "land",
    }
)
"""Sorts of nouns that stand before another to say which it is."""
_LISTS = (
    "off_body",
    "materials",
    "parts",
    "vessels",
    "packed",
    "loose",
    "weak",
    "skip",
    "captors",
    "pictures",
    "gone",
    "mounts",
    "teen",
    "single",
    "seats",
    "pairs",
    "dressing",
    "dining",
    "by_picture",
    "on_deck",
    "aimed",
    "placing",
    "found",
    "seeking",
    "heaps",
    "ashore",
    "horsemen",
    "giving",
    "voiced",
    "absent",
    "putting_in",
    "hanging",
    "whereto",
    "overheads",
    "covers",
    "hangers",
    "pits",
    "showing",
    "tops",
    "laid",
    "musicians",
    "boats",
    "winds",
    "flames",
    "transitive",
)
_BESIDE = re.compile(r"^(?:outside|beside|next to|near|behind(?! the wheel)|in front of|alongside) ")
"""Who is there is not in the vehicle."""
_AFTER = re.compile(r"^(the|a|an|some|his|her|their|its|my|our|your|this|that|two|three|four|five|many|several) ")


def in_table(name: str, word: str) -> bool:
    """Whether a list of senses.yaml ("weak", "skip", "captors") holds a word."""
    return word in _sets()[name]


def deed_of_verb(*phrases: str) -> str | None:
    """The deed of the first of `phrases` ("take off", "look at", "look") that any table lists."""
    for phrase in phrases:
        found = deed_words().get(phrase) or _verbs().get(phrase)
        if found is not None:
            return found
    return None


@lru_cache(maxsize=4096)
def base_form(verb: str) -> str:
    """The base of a form that the parser left as it is ("drank") or cut too short ("scar" of "scares")."""
    found: str = _data()["irregular"].get(verb, verb)
    return found if _is_verb(found) or not _is_verb(f"{found}e") else f"{found}e"


def _is_verb(word: str) -> bool:
    return word in deed_words() or word in _verbs() or word in _data()["by_object"]


def object_deed(verb: str, words: Iterable[str]) -> str | None:
    """What a verb is when it is done to one of these: words or kinds, the nearest first."""
    rows: Mapping[str, str] = _data()["by_object"].get(verb, {})
    return next((rows[word] for word in words if word in rows), None)


def alone_deed(verb: str) -> str | None:
    """What a verb is when it is done to nothing."""
    found: str | None = _data()["alone"].get(verb)
    return found


def means_deed(verb: str, words: Iterable[str]) -> str | None:
    """What a verb is when it is done with one of these: a call on the phone, listening with a stethoscope."""
    rows: Mapping[str, str] = _data()["by_means"].get(verb, {})
    every: Mapping[str, str] = _data()["by_means"]["any"]
    return next((found for word in words if (found := rows.get(word) or every.get(word)) is not None), None)


def held_as(name: str, pictogram: str | None) -> str | None:
    """What is in the hand of who does a deed with a thing: the teapot of who pours tea."""
    rows: Mapping[str, Mapping[str, str]] = _data()["held_as"]
    return rows.get(name, {}).get(pictogram or "")


def placed_deed(name: str, words: Iterable[str]) -> str | None:
    """What a deed becomes by where it is done: sleep on a shoulder, a hand laid over the mouth."""
    rows: Mapping[str, str] = _data()["by_place"].get(name, {})
    return next((rows[word] for word in words if word in rows), None)


def posture_deed(text: str) -> str | None:
    """How somebody stands there who is told with the arms folded or the eyes closed."""
    told = f" {text.lower()} "
    rows: Mapping[str, str] = _data()["postures"]
    return next(
        (name for name, listed in rows.items() if any(f" {row.replace('_', ' ')}" in told for row in listed.split())),
        None,
    )


def struck_deed(verb: str) -> str | None:
    """What somebody does to whom a thing does something: falls when a wave sweeps them away."""
    return next((name for name, listed in _data()["struck"].items() if verb in listed.split()), None)


def force_way(pictogram: str | None) -> str | None:
    """How whatever a force of nature does something to is beside it: in the wave, under the lightning."""
    return next((name for name, listed in _data()["forces"].items() if pictogram in listed.split()), None)


def on_foot(verb: str) -> str | None:
    """What a verb of the air is when people do it: they rise from a chair."""
    found: str | None = _data()["on_foot"].get(verb)
    return found


def worn_in(place: str | None) -> str | None:
    """What everybody wears in a place where nobody could live without it."""
    found: str | None = _data()["worn_in"].get(place)
    return found


def force_leaves(pictogram: str | None) -> str | None:
    """What shows on a thing to which a force of nature has done something."""
    found: str | None = _data()["leaves"].get(pictogram)
    return found


def state_deed(words: Iterable[str]) -> str | None:
    """The deed that "is asleep" or "was trapped" shows."""
    found = (name for word in words for name, listed in _data()["by_state"].items() if word in listed.split())
    return next(found, None)


def failed_deed(verb: str) -> str | None:
    """What shows that somebody cannot do it or tries in vain; None where the deed itself shows it."""
    return next((name for name, listed in _data()["failed"].items() if verb in listed.split()), None)


def bodily_deed(names: Iterable[str]) -> str | None:
    """What somebody does of whose body a "hand_tremble" is told."""
    return next((name for one in names for name, listed in _data()["bodily"].items() if one in listed.split()), None)


def bodily_mood(names: Iterable[str]) -> str | None:
    """How somebody feels of whose body a "face_fall" is told."""
    return next((name for one in names for name, listed in _data()["felt"].items() if one in listed.split()), None)


def near_deed(verb: str) -> str | None:
    """The deed of the nearest verb that is drawn, for one that no other table has."""
    return _nearest("verbs").get(verb)


def near_noun(word: str) -> Noun | None:
    """The entry of the nearest noun that is drawn (a schooner is a sailing ship), for one that no other table has."""
    found = _nearest("nouns").get(word.lower()) or _nearest("nouns").get(singular(word.lower()))
    return find_noun(found.replace("_", " ")) if found is not None else None


@cache
def _nearest(part: str) -> Mapping[str, str]:
    rows: Mapping[str, str] = load_table("scenes", "nearest.yaml")[part]
    return {word: name for name, listed in rows.items() for word in listed.split()}


def lifeless_deed(*phrases: str) -> str | None:
    """What a thing does of its own accord that bursts, smokes, rings, glows or leaks."""
    rows: Mapping[str, str] = _data()["lifeless"]
    words = [phrase.replace(" ", "_") for phrase in phrases]
    return next((name for word in words for name, listed in rows.items() if word in listed.split()), None)


def stopped_deed(verb: str) -> str | None:
    """What somebody does who stops doing it."""
    return next((name for name, listed in _data()["stopped"].items() if verb in listed.split()), None)


def beside_of(preposition: str, part: str = "") -> str | None:
    """How a preposition has somebody or something beside a thing ("beneath" is under), with the part of the thing that
    it names before all ("in front of")."""
    region = f"{preposition}_{part}"
    named = next((name for name, listed in _data()["regions"].items() if region in listed.split()), None)
    return named or next((name for name, listed in _data()["beside"].items() if preposition in listed.split()), None)


def hollow_of(pictogram: str | None) -> str | None:
    """How what is in a thing is seen, above its rim or through its front; None for what is not hollow."""
    return "rim" if pictogram in _rims() else "front" if pictogram in _data()["hollow"]["front"].split() else None


def rim_of(pictogram: str | None) -> float | None:
    """How high the rim of a hollow thing is beside its height; None for what has no rim."""
    return _rims().get(pictogram or "")


@cache
def _rims() -> Mapping[str, float]:
    rows = (entry.partition("=") for entry in _data()["hollow"]["rim"].split())
    return {name: float(share or 1.0) for name, _, share in rows}


def part_of(noun: str) -> str | None:
    """Where on somebody a part of the body has whoever is there: a knee is the lap."""
    return next((name for name, listed in _data()["body"].items() if noun in listed.split()), None)


def sign_of(words: Iterable[str]) -> str | None:
    """The pictogram that shows the state of a place or thing: a lock for "closed"."""
    return next((name for word in words for name, listed in _data()["signs"].items() if word in listed.split()), None)


def said_sign(*phrases: str) -> str | None:
    """The pictogram in the bubble of who asks, thanks or warns without saying of what."""
    words = {phrase.replace(" ", "_") for phrase in phrases}
    return next((name for name, listed in _data()["said"].items() if words & set(listed.split())), None)


def spoken_sign(topic: str) -> str | None:
    """The pictogram in the bubble of who speaks of what is no thing: a clock for "the time"."""
    return next((name for name, listed in _data()["spoken"].items() if topic in listed.split()), None)


def states_of(words: Iterable[str]) -> tuple[str, ...]:
    """What shows on a thing of which these words are told: ("wet", "dirty")."""
    return tuple(dict.fromkeys(name for word in words if (name := _states("states").get(word)) is not None))


def done_state(*phrases: str) -> str | None:
    """What the first known verb leaves its object in, or what does it of its own accord: "go out", "break"."""
    return next((name for phrase in phrases if (name := _states("done").get(phrase.replace(" ", "_")))), None)


def source_state(noun: str) -> str | None:
    """What something is that this comes out of: steam is steaming."""
    return next((name for name, listed in _data()["from"].items() if noun in listed.split()), None)


def is_idiom(verb: str, noun: str) -> bool:
    """Whether what is given or taken is no thing: a lift, a chance."""
    return noun in _data()["idioms"].get(verb, "").split()


def here_called(place: str | None, noun: str, told: str = "") -> str:
    """What a noun is in a place or by the words told with it: a ball on a tennis court is a tennis ball, a pipe that
    somebody smokes is a tobacco pipe; "" where the place shows it itself."""
    rows: Mapping[str, Mapping[str, str]] = _data()["here"]
    found = rows.get(place or "", {}).get(noun, noun)
    if found == noun and place is not None and place_data(place).indoors:
        found = rows["indoors"].get(noun, noun)
    if found == noun and told:
        words = {
            form
            for word in _WORD.findall(told.lower())
            for form in (word, singular(word), base_form(word), _stem(word))
        }
        by = _data()["told_with"].get(noun, {})
        found = next((str(name) for name, listed in by.items() if words & set(listed.split())), noun)
    return found


def _stem(word: str) -> str:
    """A regular verb without the ending of its past: "pressed", "clinked"."""
    return word[:-2] if word.endswith("ed") and len(word) > _SHORT else word


def size_of(words: Iterable[str]) -> float:
    """How much larger than usual a thing is of which these words are told."""
    return next((float(by) for word in words for by, listed in _data()["sizes"].items() if word in listed.split()), 1.0)


@cache
def _states(part: str) -> Mapping[str, str]:
    return {word: name for name, listed in _data()[part].items() for word in listed.split()}


def mood_of(words: Iterable[str]) -> str | None:
    """The mood of an adjective, where the reader's feelings are too coarse for it."""
    found = (name for word in words for name, listed in _data()["moods"].items() if word in listed.split())
    return next(found, None)


def stirred_mood(verb: str) -> str | None:
    """What somebody feels to whom this is done ("frighten")."""
    return next((name for name, listed in _data()["stirs"].items() if verb in listed.split()), None)


def implied_place(deed: str) -> str | None:
    """Where a deed happens when nothing says where."""
    found: str | None = _data()["implied"].get(deed)
    return found


@lru_cache(maxsize=4096)
def place_of(phrase: str) -> str | None:
    """The place that a phrase names ("the old library", "a train station at night"): its head comes first."""
    found = _place_named(phrase)
    return platform_of(found) if found is not None and _BESIDE.match(phrase.lower()) else found


def _place_named(phrase: str) -> str | None:
    if (held := _HELD.match(phrase.lower())) and find_noun(held.group(1)) is not None:
        # A bottle of water is no river, a mountain of dishes no mountain.
        return None if is_heap(held.group(1), phrase.lower()) else _place_named(held.group(1))
    for part in _OF.split(phrase.lower()):
        words, known = _WORD.findall(part), _places()
        for size in (3, 2, 1):
            for at in range(len(words) - size, -1, -1):
                spelt = " ".join(words[at : at + size])
                joined = " ".join(words[at - 1 : at + size]) if at > 0 else ""
                whole = find_noun(joined) or find_noun(singular(joined))
                toy = at > 0 and words[at - 1] == "toy"
                if in_table("loose", spelt) and any(_is_thing(words, at, size + more) for more in (1, 2)):
                    continue  # a water bottle, an ice cream
                if toy or (whole is not None and whole.kind not in ("vehicle", "building", "furniture")):
                    continue  # a toy house, a hand plane
                found = known.get(spelt) or known.get(singular(spelt)) or known.get(f"{spelt}s")
                if found is not None:
                    return found
    return None


def _is_thing(words: Sequence[str], at: int, size: int) -> bool:
    spelt = " ".join(words[at : at + size])
    return at + size <= len(words) and (find_noun(spelt) or find_noun(singular(spelt))) is not None


def is_heap(noun: str, phrase: str) -> bool:
    """Whether a phrase tells how much there is of a thing: "a hill of crumbs"."""
    if not in_table("heaps", noun):
        return False
    told = re.findall(rf"\b{re.escape(noun)} of ((?:[\w-]+ ?){{1,3}})", phrase)
    words = [word for text in told for word in text.split()]
    return any(find_noun(word) is not None or find_noun(singular(word)) is not None for word in words)


def seen_from_outside(place: str) -> str:
    """Where a vehicle is whose inside is a place: who drives it is drawn from outside."""
    found: str = _data()["outside"].get(place, place)
    return found


def platform_of(place: str) -> str:
    """Where a vehicle is waited for or missed."""
    found: str = _data()["platform"].get(place, place)
    return found


def time_of(phrase: str) -> str | None:
    """The time of day that a word of the phrase names, as places know it."""
    words = set(_WORD.findall(phrase.lower()))
    return next((name for name, listed in _data()["times"].items() if words & set(listed.split())), None)


def shot_of(phrase: str) -> Shot | None:
    """The shot that a phrase asks for ("close-up", "extreme wide shot")."""
    words = set(_WORD.findall(phrase.lower().replace("close up", "close-up")))
    shots: dict[Shot, str] = _data()["shots"]
    return next((name for name, listed in shots.items() if words & set(listed.split())), None)


def hair_of(phrase: str) -> str | None:
    """The colour of hair that a phrase tells ("a boy with red hair")."""
    words, colours = _WORD.findall(phrase.lower()), _data()["colours"]
    for at, word in enumerate(words):
        if word in _data()["hair"].split():
            shade = next((one for one in reversed(words[max(0, at - 3) : at]) if one in colours), None)
            if shade is not None:
                return str(colours[shade])
    return None


def colour_of(words: Iterable[str]) -> str | None:
    """The colour that is told of a thing, where it is one ("dark" and "ginger" are of hair and skin)."""
    colours: Mapping[str, str] = _data()["colours"]
    return next((colours[word] for one in words for word in one.lower().split() if word in _hues()), None)


@cache
def _hues() -> frozenset[str]:
    return frozenset(_data()["colours"]) - frozenset(_data()["of_hair"].split())


def features_of(phrase: str) -> tuple[str, ...]:
    """What a description says of somebody's clothes and body, as ids of people.yaml's features with their colours:
    ("coat:#f0bf4c", "glasses") of "a girl in a yellow raincoat and glasses"."""
    colours: Mapping[str, str] = _data()["colours"]
    words: list[str] = []
    shades: list[str | None] = []
    shade: str | None = None
    for word in _WORD.findall(phrase.lower()):
        if word in colours:
            shade = shade if word in ("dark", "fair") and shade else word
            continue
        words.append(word)
        shades.append(shade)
        shade = None
    found: list[str] = []
    at = 0
    while at < len(words):
        size, name = next(
            ((n, _features()[key]) for n in (3, 2, 1) if (key := " ".join(words[at : at + n])) in _features()), (1, "")
        )
        if name:
            near = [one for one in shades[max(0, at - 1) : at + size] if one]
            found.append(f"{name}:{colours[near[-1]]}" if near else name)
        at += size
    return tuple(dict.fromkeys(found))


def noun_of(*phrases: str) -> Noun | None:
    """The entry of the first phrase that the noun table has, whole or by its last words."""
    for phrase in phrases:
        words = _AFTER.sub("", _PICTURE.sub(r"\1", phrase.lower().strip())).split()
        for at in range(len(words)):
            spelt = " ".join(words[at:])
            found = _entry(spelt)
            if at > 0 and (other := _behind(words[at - 1], spelt)) is not None:
                return find_noun(other)
            if found is not None:
                return found
    bare = [_OWN_NAME.sub("", phrase) for phrase in phrases if phrase[:1].islower() and _OWN_NAME.search(phrase)]
    return noun_of(*bare) if bare else None


def _entry(spelt: str) -> Noun | None:
    """The entry of a noun however it is written: hoses, axes, hair pin, post box, merry go round."""
    forms = [spelt, singular(spelt), *([spelt[:-1]] if _S.search(spelt) else [])]
    if " " in spelt:
        forms += [form.replace(" ", by) for form in forms[:2] for by in ("", "-")]
    return next((found for form in forms if (found := find_noun(form)) is not None), None)


def _behind(before: str, head: str) -> str | None:
    """What a noun is behind another that no table has together with it: a fridge door is the fridge, a gas ring no
    jewel ("": nothing that is drawn by itself). None: what it is alone."""
    whole = find_noun(before)
    if in_table("materials", before):
        return None
    if whole is not None and whole.kind in _WHOLES and _in_parts(head):
        return whole.word
    named = whole is not None or before in _places() or load_words().sort(before) in _NAMING
    found: Mapping[str, str] = _data()["behind"]
    return found.get(head, found.get(singular(head))) if named else None


def unseen_part(phrase: str) -> bool:
    """Whether a phrase names what nothing shows by itself: a picture rail."""
    words = _AFTER.sub("", phrase.lower().strip()).split()
    spelt = " ".join(words[-2:])
    return len(words) > 1 and not (find_noun(spelt) or find_noun(singular(spelt))) and _behind(*words[-2:]) == ""


def _in_parts(noun: str) -> bool:
    return in_table("parts", noun) or in_table("parts", singular(noun))


def whole_of(part: str, phrase: str) -> str | None:
    """The noun of which a part is told: "guitar" of "the string of his old guitar" or "the guitar's string"."""
    if not _in_parts(part):
        return None
    ending = rf"\b{re.escape(part)}(?:e?s)? of ((?:[\w-]+ ){{0,3}}[\w-]+)"
    for told in re.findall(ending, phrase.lower()):
        first, *words = told.split()
        whole = next((word for word in words if find_noun(word) is not None), None)
        if first in _OWNING and whole is not None:
            return str(whole)
    found = re.search(rf"([\w-]+)(?:'s|\u2019s) (?:[\w-]+ )?{re.escape(part)}(?:e?s)?\b", phrase.lower())
    return found.group(1) if found and find_noun(found.group(1)) is not None else None


def held_in(noun: str, phrase: str) -> str | None:
    """The vessel in which something is: "sack" of "a sack of potatoes"."""
    one, words = singular(noun), phrase.lower()
    if not noun or {noun, one} & _sets()["packed"]:
        return None
    forms = "|".join(re.escape(form) for form in dict.fromkeys((noun, one, plural(one), f"{one}es")))
    found = re.search(rf"\b([\w-]+) (?:full )?of (?:(?!the\b)[\w-]+ ){{0,2}}(?:{forms})\b", words)
    vessel = next((form for form in _forms(found.group(1)) if in_table("vessels", form)), None) if found else None
    if vessel == "bag":
        by: Mapping[str, str] = _data()["vessel_of"]
        vessel = next((name for name, listed in by.items() if {noun, one} & set(listed.split())), vessel)
    return vessel


def _forms(word: str) -> tuple[str, str]:
    return word, singular(word)


def concept_of(*phrases: str) -> str | None:
    """The figure of the vocabulary (lion, king, sun) that the first known phrase names."""
    for phrase in phrases:
        words = _AFTER.sub("", phrase.lower().strip()).split()
        spelt = " ".join(words)
        whole = find_noun(spelt) or (find_noun(singular(spelt)) if len(words) > 1 else None)  # hot dogs are no dogs
        for at in range(len(words)):
            if at and whole is not None and (whole.kind != "animal" or in_table("by_picture", "_".join(words))):
                return None  # a team captain is no captain, a hot dog no dog, a teddy bear no bear
            spelt = " ".join(words[at:])
            more = find_noun(spelt) if 0 < at < len(words) - 1 else None
            pictured = more is not None and in_table("by_picture", "_".join(words[at:]))
            if more is not None and (more.kind not in ("animal", "person") or pictured):
                return None  # nor is a yellow construction crane a crane
            found = _concepts().get(spelt) or _concepts().get(singular(spelt))
            if found is not None:
                return None if found in _NOT_FIGURES else found
        if whole is not None and whole.kind == "animal" and not in_table("by_picture", whole.word):
            rig = _data()["rigs"].get(whole.pictogram, whole.pictogram)
            if rig in _animals():
                return str(rig)  # a terrier acts as a dog does; a picture alone cannot
    return None


def attributes_in(phrase: str) -> tuple[str, ...]:
    """The looks of the vocabulary that a phrase names ("a small brown mouse with a red scarf")."""
    spelt, found = f" {phrase.lower()} ", []
    for words, name in _attributes():
        if f" {words} " in spelt:
            found.append(name)
            spelt = spelt.replace(f" {words} ", "  ")
    return tuple(dict.fromkeys(found))


@cache
def _sets() -> Mapping[str, frozenset[str]]:
    return {name: frozenset(_data()[name].split()) for name in _LISTS}


def how_many(noun: str) -> int | None:
    """How many are drawn of a noun that means many (crowd, team, twins)."""
    return next((int(count) for count, words in _data()["many"].items() if noun in words.split()), None)


def place_by_things(pictograms: Iterable[str]) -> str | None:
    """Where a scene is that has these things and no place named."""
    shown = set(pictograms)
    return next((name for name, listed in _data()["implied_by"].items() if shown & set(listed.split())), None)


def stage_by_kinds(kinds: Iterable[str]) -> str | None:
    """Where things of these kinds are at home, when nothing else says where a scene is."""
    shown = set(kinds)
    return next((name for name, listed in _data()["implied_by_kind"].items() if shown & set(listed.split())), None)


@cache
def _verbs() -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, listed in _data()["verbs"].items():
        for word in listed.split():
            found.setdefault(word.replace("_", " "), name)
    return found


@cache
def _places() -> Mapping[str, str]:
    more = {word.replace("_", " "): name for name, listed in _data()["places"].items() for word in listed.split()}
    return {**more, **place_words()}


@cache
def _concepts() -> Mapping[str, str]:
    words = {word: concept.id for concept in load_vocabulary().concepts("character") for word in concept.words}
    return {word: name for word, name in words.items() if not in_table("by_picture", word)}


@cache
def _animals() -> frozenset[str]:
    return frozenset(_concepts().values()) - _NOT_FIGURES


@cache
def _features() -> Mapping[str, str]:
    return {word: name for name, row in people()["features"].items() for word in row["words"]}


@cache
def _attributes() -> tuple[tuple[str, str], ...]:
    pairs = [(word, concept.id) for concept in load_vocabulary().concepts("attribute") for word in concept.words]
    return tuple(sorted(pairs, key=lambda pair: -len(pair[0])))


def _data() -> Mapping[str, Any]:
    return load_table("scenes", "senses.yaml")
