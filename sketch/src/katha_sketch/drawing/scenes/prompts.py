"""The reading of one prompt, with a second try for a present tense that was taken for a plural."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from katha.schema import Character
from katha_sketch.drawing.scenes.cast import NUMBERS, nature_of
from katha_sketch.drawing.scenes.senses import deed_of_verb, noun_of
from katha_sketch.english import read_story
from katha_sketch.english.types import Reading
from katha_sketch.english.words import load_words

__all__ = ["known_of", "plainly_called", "read_prompt", "uncompared"]

_THIRD = re.compile(r"\b([a-z]{2,})\b(?=[ ,.;!]|$)")

_MATTER = r"(?:ice|snow|stone|steel|lead|silk|glass|gold|silver|coal|milk|blood|ink|chalk|paper)"
_LIKENED = (
    re.compile(
        r"(?<!look)(?<!looks)(?<!looked)(?<!looking)(?<!seems)(?<!is)(?<!are)(?<!shaped)(?<!sounds)(?<!dressed),? "
        r"(?:just |almost |exactly )?like (?:an?|some|somebody|someone)\b[^,.;!?]*"
    ),
    re.compile(rf" (?:as|so) [a-z]+ as (?:(?:a|an|any) [\w-]+|{_MATTER})\b"),
    re.compile(r"(?<=[a-z]er) than (?:a|an|any) [\w-]+\b"),
    re.compile(
        r",? (?:about |almost |nearly )?(?<!has )(?<!had )(?<!of )the (?:size|shape|height|length) of (?:an? )?[\w-]+\b"
    ),
)
"""What something is only like is not there: "floats like a small boat", "no bigger than a pea"."""


_BEFORE_NOUN = re.compile(
    r"\b(?:the|a|an|his|her|its|their|my|our|your|some|two|three|of|in|on|at|with|into) $", re.IGNORECASE
)


_ARTICLES = frozenset({"the", "a", "an", "his", "her", "their", "its", "my", "our", "your"})
_SUBJECT = 5
"""The verb of two doers is among so many words after "and"."""

_STAND_INS: Mapping[str | None, tuple[str, ...]] = {
    "male": ("Peter", "Martin", "Oscar", "Thomas"),
    "female": ("Maria", "Helen", "Julia", "Anna"),
    None: ("Alexis", "Jamie", "Sasha", "Charlie"),
}
"""First names that are never anything else to the parser."""


def plainly_called(prompt: str, characters: Sequence[Character]) -> tuple[str, dict[str, Character]]:
    """Return the prompt with plain first names for characters whose own a parser takes for something else.

    "Seven reads" has a number for it, "Emre and Deniz's grandfather" three people. The second value says who is called
    what now.
    """
    left = {sex: list(names) for sex, names in _STAND_INS.items()}
    stood: dict[str, Character] = {}
    for character in sorted(characters, key=lambda one: -len(one.name)):
        name = character.name.strip()
        word = name.lower()
        titled = len(name.split()) > 1 and name.istitle()
        ambiguous = titled or word in NUMBERS or deed_of_verb(word) is not None or noun_of(word) is not None
        if not (
            "'s " in name
            or "s' " in name
            or " and " in name
            or (name[:1].isupper() and (titled or " " not in name) and ambiguous)
        ):
            continue
        names = left[nature_of(f"{character.kind} {character.appearance} {name}")[0]]
        pattern = rf"\b(?:[Tt]he )?{re.escape(name)}(?!\w)"
        if names and re.search(pattern, prompt):
            stood[names[0]] = character
            prompt = re.sub(pattern, names.pop(0), prompt)
    return prompt, stood


def known_of(stood: Mapping[str, Character], characters: Sequence[Character]) -> list[str]:
    """Return what is to be known before a prompt is read: what those are who are called otherwise in it, and that the
    man who has no name is none of those who have one."""
    told = [f"{name} is a {one.kind}." for name, one in stood.items()]
    if not any(one.name[:1].isupper() for one in characters):
        return told
    words = load_words()
    plain = [one.name for one in characters if one.name.islower() and words.sort(one.name.split()[-1]) == "person"]
    return told + [f"{'An' if name[0] in 'aeiou' else 'A'} {name} stands there." for name in plain]


def uncompared(prompt: str) -> str:
    """Return the prompt without what something is only likened to."""
    for pattern in _LIKENED:
        prompt = pattern.sub("", prompt)
    return prompt


def read_prompt(prompt: str, known: Sequence[str] = ()) -> Reading | None:
    """The prompt's reading; `known` are sentences that say who is who and are left out of it again.

    A present tense that the parser took for a plural ("The mouse bites the rope") is tried
    once more as "is biting": that has one reading only."""
    if not re.search(r"[A-Za-z]{2}", prompt):
        return None
    reading = _behind(known, prompt)
    for again in (_progressive(prompt, reading), _progressive_of_several(prompt, reading)):
        if again != prompt:
            second = _behind(known, again)
            if _deeds(second) > _deeds(reading) - _swallowed(reading):
                return second
    return reading


def _behind(known: Sequence[str], prompt: str) -> Reading:
    """Return the reading of the prompt alone, made with the knowledge of the sentences before it."""
    reading = read_story(" ".join((*known, prompt)))
    first = len(known)
    if not first:
        return reading
    places = [at for at, one in enumerate(reading.events) if one.sentence >= first]
    events = [replace(reading.events[at], sentence=reading.events[at].sentence - first) for at in places]
    moved = {old: new for new, old in enumerate(places)}
    sentences = [
        replace(one, index=one.index - first, events=tuple(moved[at] for at in one.events if at in moved))
        for one in reading.sentences[first:]
    ]
    entities = [
        replace(one, sentences=tuple(at - first for at in one.sentences if at >= first)) for one in reading.entities
    ]
    return replace(reading, sentences=tuple(sentences), events=tuple(events), entities=tuple(entities))


def _deeds(reading: Reading) -> int:
    """How many events have somebody who does them."""
    return sum(event.visible and bool(event.who("agent")) for event in reading.events)


def _progressive(prompt: str, reading: Reading) -> str:
    verbs = {event.verb for event in reading.events if event.who("agent")}

    def instead(found: re.Match[str]) -> str:
        word = found.group(1)
        stems = (
            [word[:-1], word[:-2]] if word.endswith("s") and not _BEFORE_NOUN.search(prompt[: found.start()]) else []
        )
        stems += [word[:-3] + "y"] if stems and word.endswith("ies") else []
        stem = next((one for one in stems if deed_of_verb(one) is not None), None)
        if stem is None or stem in verbs or (noun_of(stem) is not None and not _after_noun(prompt, found.start())):
            return word
        return f"is {_gerund(stem)}"

    return _THIRD.sub(instead, prompt)


def _swallowed(reading: Reading) -> bool:
    """Whether a doer's noun is rather the verb of those before it: "the pupils paint masks"."""
    agents = {key for event in reading.events for key in event.who("agent")}
    names = [one.name.split() for one in reading.entities if one.id in agents]
    return any(
        len(name) > 2 and name[-2].endswith("s") and not name[-2].endswith("'s") and deed_of_verb(name[-1]) is not None
        for name in names
    )


def _progressive_of_several(prompt: str, reading: Reading) -> str:
    """The prompt with the first verb of several doers as "are eating": "the witch and the wizard eat soup" has no verb
    for the parser, which takes "the wizard eat soup" for one noun."""
    if _deeds(reading) and not _swallowed(reading):
        return prompt
    _, joined, rest = prompt.partition(" and ")
    rest = rest if joined else prompt
    words = rest.split(" ")
    for at, word in enumerate(words[1:_SUBJECT], 1):
        if deed_of_verb(word.rstrip(".,;!")) is not None and words[at - 1].lower() not in _ARTICLES:
            tail = word[len(word.rstrip(".,;!")) :]
            told = [*words[:at], f"are {_gerund(word.rstrip('.,;!'))}{tail}", *words[at + 1 :]]
            return prompt[: len(prompt) - len(rest)] + " ".join(told)
    return prompt


def _after_noun(prompt: str, at: int) -> bool:
    """Whether the word before is a noun of the tables or "and"."""
    before = prompt[:at].split()
    return bool(before) and (before[-1].lower() == "and" or noun_of(before[-1]) is not None or before[-1].istitle())


def _gerund(verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "ye", "oe")):
        return verb[:-1] + "ing"
    if re.fullmatch(r"[^aeiou]*[aeiou][bdgmnprt]", verb):
        return verb + verb[-1] + "ing"
    return verb + "ing"
