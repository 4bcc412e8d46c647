"""A long story in windows that a model plans one at a time: whole sentences, in order, each in exactly one window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from katha.errors import PlanError
from katha.planners.annotated import scene_texts
from katha.planners.division import cut, raw_sentences
from katha.planners.reply_schema import Shape
from katha.schema import StoryRecord

__all__ = ["Window", "windows_of"]

_MOST_PANELS = 6
_MOST_CHARACTERS = 30_000
"""Of a window's text: about 5,000 words."""


@dataclass(frozen=True)
class Window:
    """One part of a story. sentences: its raw pieces (a plain text). scenes: its scenes' texts (a record).

    panels: its panels' indices, from 1. joined: whether a transition leads into it from the window before.
    """

    sentences: tuple[str, ...]
    first_sentence: int
    scenes: tuple[str, ...]
    panels: range
    joined: bool

    @property
    def text(self) -> str:
        """What a model may know of this part."""
        return "".join(self.sentences) or "\n".join(self.scenes)

    @property
    def shape(self) -> Shape:
        """How much is asked for."""
        last = self.first_sentence + len(self.sentences) - 1
        transitions = len(self.panels) - 1 + self.joined
        return Shape(len(self.panels), transitions, None if self.scenes else (self.first_sentence, last))


def windows_of(story: StoryRecord, panels: int) -> list[Window]:
    """The windows of a story, each with its share of the panels.

    Raises:
        PlanError: a plain text has fewer sentences than panels.
    """
    if story.scenes:
        texts = scene_texts(story)
        starts = range(0, panels, _MOST_PANELS)
        return [Window((), 1, tuple(texts[at : at + _MOST_PANELS]), _indices(at, panels), at > 0) for at in starts]
    sentences = raw_sentences(story.story_text)
    if len(sentences) < panels:
        raise PlanError(
            f"Story {story.story_id!r} has {len(sentences)} sentences, too few for {panels} panels.",
            hint=f"Use --panels {max(2, len(sentences))}, or tell more.",
        )
    size = sum(map(len, sentences))
    count = min(panels, max(-(-panels // _MOST_PANELS), -(-size // _MOST_CHARACTERS)))
    shares = [len(part) for part in cut(["x"] * panels, count)]
    return _windows(_shared(sentences, shares), shares)


def _shared(sentences: Sequence[str], shares: Sequence[int]) -> list[list[str]]:
    """The sentences in as many parts as there are shares, each with at least as many sentences as panels."""
    parts = cut(sentences, len(shares))
    if any(len(part) < share for part, share in zip(parts, shares, strict=True)):
        pieces = cut(["x"] * len(sentences), len(shares))
        bounds = [0]
        for piece in pieces:
            bounds.append(bounds[-1] + len(piece))
        parts = [list(sentences[bounds[at] : bounds[at + 1]]) for at in range(len(shares))]
    return parts


def _windows(parts: Sequence[Sequence[str]], shares: Sequence[int]) -> list[Window]:
    found: list[Window] = []
    sentence = panel = 1
    for part, share in zip(parts, shares, strict=True):
        found.append(Window(tuple(part), sentence, (), range(panel, panel + share), sentence > 1))
        sentence, panel = sentence + len(part), panel + share
    return found


def _indices(at: int, panels: int) -> range:
    return range(at + 1, min(at + _MOST_PANELS, panels) + 1)
