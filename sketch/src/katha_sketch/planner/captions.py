"""The captions of a plain text that is cut as planner `rule` cuts it."""

from __future__ import annotations

from collections.abc import Sequence

from katha_sketch.english import read_text
from katha_sketch.planner.acts import Beat, words_of
from katha_sketch.planner.cuts import parts_of
from katha_sketch.planner.moments import Story


def main_captions(text: str, panels: int) -> list[str] | None:
    """Return of each part the sentence, or the act of one, that holds its main event; None where nothing happens."""
    _, reading = read_text(text)
    told = Story(reading) if reading is not None else None
    if told is None or not told.happens():
        return None
    return [_main_words(told, part) for part in parts_of(told, panels)]


def _main_words(told: Story, part: Sequence[Beat]) -> str:
    """What of the sentence of a part's main event is in that part."""
    best = max((beat for beat in part if beat.events), key=_worth).sentence
    return words_of(told, (beat for beat in part if beat.sentence is best))


def _worth(beat: Beat) -> tuple[float, int]:
    return beat.best, beat.sentence.index
