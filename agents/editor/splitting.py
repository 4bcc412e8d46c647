"""A panel made two: what is said of it is divided between them, by what each of them is to show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from katha.schema import Character, Panel
from katha.sentences import whole_sentences

_INHERITED = ("place", "time_of_day", "light", "weather", "shot_size", "shot_angle")
_WORD = re.compile(r"[^\W\d_]{3,}")
_STEM = 4
"""Letters by which two words are taken for one: "points", "pointed"."""


def divided(panel: Panel, first: str, second: str, cast: Sequence[Character]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the two panels of one that shows `first` and `second` now say, as fields of a panel.

    The sentences of its caption and of its piece of the story go to the one that shows them, in their order; a line of
    dialogue goes with the sentence that has it. The first loses who and what its words named before and name no more;
    the second has the place, the hour, the light, the weather and the shot, and whom and what its own words name.
    """
    captions, sources = (_parted(text, first, second) for text in (panel.caption, panel.source))
    if not captions[1]:
        captions = captions[0], sources[1]
    one, two = f"{first} {captions[0]}", f"{second} {captions[1]}"
    before = f"{panel.prompt} {panel.caption} {first}"
    names = {item.name: (item.name, item.kind) for item in cast}
    told = panel.model_dump()
    spoken = str(told.get("dialogue") or "")
    goes = bool(spoken) and spoken.strip("\"'\u201c\u201d.,!? ").casefold() in captions[1].casefold()
    kept: dict[str, Any] = {
        "caption": captions[0],
        "source": sources[0],
        "characters": [who for who in panel.characters if not _left(names.get(who, (who,)), before, one)],
        "must_show": [thing for thing in panel.must_show if not _left((thing,), before, one)],
    }
    if goes:
        kept["dialogue"] = ""
    gone = set(panel.characters) - set(kept["characters"])
    kept["state"] = [item for item in panel.state if item.name not in gone]
    kept["gaze"] = [item for item in panel.gaze if item.who not in gone]
    given: dict[str, Any] = {
        **{name: value for name in _INHERITED if (value := getattr(panel, name))},
        "caption": captions[1],
        "source": sources[1],
        "characters": named(two, cast),
        "must_show": [thing for thing in panel.must_show if _named((thing,), two)],
    }
    if goes:
        given["dialogue"] = spoken
    return kept, given


def named(text: str, cast: Sequence[Character]) -> list[str]:
    """Return the names of the characters that a text names, by name or kind."""
    return [item.name for item in cast if _named((item.name, item.kind), text)]


def _parted(text: str, first: str, second: str) -> tuple[str, str]:
    """Return the sentences of a text in two halves, cut where each half has most words of its own picture; one sentence
    stays whole."""
    pieces = whole_sentences(text)
    if len(pieces) < 2:
        return text, ""
    ones, twos = _words(first), _words(second)
    weights = [len(_words(piece) & (twos - ones)) - len(_words(piece) & (ones - twos)) for piece in pieces]
    middle = len(pieces) / 2
    cut = max(
        range(1, len(pieces)),
        key=lambda at: (sum(weights[at:]) - sum(weights[:at]), -abs(at - middle)),
    )
    half = re.match(r"\s*" + r"\s+".join(map(re.escape, " ".join(pieces[:cut]).split())), text)
    end = half.end() if half is not None else 0
    return text[:end].strip(), text[end:].strip()


def _words(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold())}


def _left(words: tuple[str, ...], before: str, now: str) -> bool:
    """Return whether a person or a thing was named before, and is no more; who is only "he" stays."""
    return _named(words, before) and not _named(words, now)


def _named(words: tuple[str, ...], text: str) -> bool:
    return any(word and re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) for word in words)
