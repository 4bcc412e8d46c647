"""What of a text a plan shows whose panels a person has changed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from katha.schema import Coverage, Panel, StoryRecord
from katha_sketch.english import read_text
from katha_sketch.planner.acts import Beat, words_of
from katha_sketch.planner.moments import Story

_WORD = re.compile(r"\w+")
_STEM, _SHORTEST = 4, 3
"""The letters by which a word is known in another form, and of how many one that tells something has at least."""


def counted(known: Coverage, record: StoryRecord, panels: Sequence[Panel]) -> Coverage:
    """Return the coverage of a changed plan: a sentence, or an act of one, is in a picture whose caption has it."""
    _, reading = read_text(record.story_text)
    if record.scenes or reading is None:
        return known
    story, text = Story(reading), " ".join(record.story_text.split())
    captions = [" ".join(panel.caption.split()) for panel in panels]
    # A caption in a person's own words is known by the sentence that its panel stands for, and by what the panel shows.
    reworded = [
        (" ".join(panel.source.split()), _words(f"{panel.caption} {panel.prompt}"))
        for panel, caption in zip(panels, captions, strict=True)
        if panel.source and caption.rstrip(".") not in text
    ]
    visible = [acts for acts in story.acts if acts[0].sentence.visible]
    untold = [
        [act for act in _untold(story, acts, captions) if not _retold(words_of(story, [act]), reworded)]
        for acts in visible
    ]
    lost = [told for acts in untold if (told := words_of(story, acts))]
    return known.model_copy(update={"drawn": len(visible) - len(lost), "not_drawn": lost})


def _untold(story: Story, acts: Sequence[Beat], captions: Sequence[str]) -> list[Beat]:
    """The acts of a sentence that are in no caption, neither by themselves nor with their neighbours."""
    told: set[int] = set()
    for first, last in combinations(range(len(acts) + 1), 2):
        text = " ".join(words_of(story, acts[first:last]).split())
        if any(text in caption for caption in captions):
            told |= {*range(first, last)}
    return [act for at, act in enumerate(acts) if at not in told]


def _retold(act: str, panels: Sequence[tuple[str, set[str]]]) -> bool:
    """Whether a panel of the sentence that an act is of has most of its words."""
    own, flat = _words(act), " ".join(act.split()).rstrip(".")
    return any(
        (flat in source or own <= _words(source)) and len(own & words) > len(own) / 2 for source, words in panels
    )


def _words(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.lower()) if len(word) >= _SHORTEST}
