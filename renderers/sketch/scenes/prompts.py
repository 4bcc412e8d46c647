"""The reading of one prompt, with a second try for a present tense that was taken for a plural."""

from __future__ import annotations

import re

from katha.renderers.sketch.scenes.senses import deed_of_verb, noun_of
from katha.text import read_story
from katha.text.types import Reading

__all__ = ["read_prompt"]

_THIRD = re.compile(r"\b([a-z]{2,})\b(?=[ ,.;!]|$)")

_BEFORE_NOUN = re.compile(
    r"\b(?:the|a|an|his|her|its|their|my|our|your|some|two|three|of|in|on|at|with|into) $", re.IGNORECASE
)


def read_prompt(prompt: str) -> Reading | None:
    """The prompt's reading. A present tense that the parser took for a plural ("The mouse bites the rope") is tried
    once more as "is biting": that has one reading only."""
    if not re.search(r"[A-Za-z]{2}", prompt):
        return None
    reading = read_story(prompt)
    again = _progressive(prompt, reading)
    if again != prompt:
        second = read_story(again)
        if _deeds(second) > _deeds(reading):
            return second
    return reading


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
