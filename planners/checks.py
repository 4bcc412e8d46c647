"""Input that cannot be planned, said in one sentence: what, where, and what to do."""

from __future__ import annotations

import re

from katha.errors import PlanError, UsageError
from katha.language import load_vocabulary
from katha.language.tokens import Sentence, split_sentences
from katha.schema import StoryRecord

__all__ = ["LONGEST_STORY", "check_language", "check_scenes", "check_text", "no_argument", "reads_as_english"]

LONGEST_STORY = 200_000
_LETTERS = re.compile(r"[^\W\d_]+")
_FEWEST_KNOWN = 0.3


def no_argument(planner: str, argument: str | None) -> None:
    """Refuse an argument that a planner does not take.

    Raises:
        UsageError: one was given.
    """
    if argument is not None:
        raise UsageError(
            f"Planner {planner!r} takes no argument, but was given {argument!r}.", hint=f"Use --planner {planner}."
        )


def check_text(record: StoryRecord, planner: str = "rule") -> None:
    """Refuse a story that is empty, one word long, or longer than `LONGEST_STORY` characters.

    Raises:
        PlanError: it is.
    """
    text = record.story_text
    if len(text) > LONGEST_STORY:
        raise PlanError(
            f"Story {record.story_id!r} has {len(text):,} characters; planner {planner!r} reads at most "
            f"{LONGEST_STORY:,}.",
            hint="Shorten it, or give one chapter.",
        )
    words = _LETTERS.findall(text)
    if len(words) < 2:
        said = "is empty" if not words else f"has one word ({words[0][:40]!r})"
        raise PlanError(f"Story {record.story_id!r} {said}.", hint="Tell who does what in a few sentences.")


def check_language(record: StoryRecord) -> None:
    """Refuse a text that is not English.

    Raises:
        PlanError: it is not; another planner is suggested.
    """
    if not reads_as_english(record):
        raise PlanError(
            f"Story {record.story_id!r} does not read as English, the only language planner 'rule' knows.",
            hint="Translate it, or use a planner that reads its language: --planner gemma-st (see `katha planners`).",
        )


def reads_as_english(record: StoryRecord) -> bool:
    """Whether enough of the text's words are English function words or in the vocabulary."""
    vocabulary = load_vocabulary()
    closed = frozenset().union(*vocabulary.grammar.words.values(), vocabulary.grammar.pronouns)
    sentences: tuple[Sentence, ...] = split_sentences(record.story_text)
    words = [word.lower for sentence in sentences for word in sentence.words if word.text[0].isalpha()]
    function = sum(word in closed for word in words)
    known = sum(word in closed or word in vocabulary.senses for word in words)
    foreign = sum(1 for word in _LETTERS.findall(record.story_text) if not word.isascii())
    few = known < _FEWEST_KNOWN * len(words) or (len(words) >= 12 and function < 0.12 * len(words))
    return bool(words) and not few and foreign <= len(words)


def check_scenes(record: StoryRecord, panels: int) -> None:
    """Refuse annotations that do not fit: another number of scenes than panels, gaps, transitions missing or foreign.

    Raises:
        PlanError: they do not fit; the field is named.
    """
    name, count = record.story_id, len(record.scenes)
    indices = [scene.scene_index for scene in record.scenes]
    if count != panels:
        raise PlanError(
            f"Record {name!r} has {count} scenes, but {panels} panels are asked for.",
            hint=f"Use --panels {count}, or remove 'scenes' and 'transitions' to plan from the text.",
        )
    if sorted(indices) != list(range(1, count + 1)):
        raise PlanError(f"Record {name!r}: 'scenes' must be numbered 1 to {count} by 'scene_index', not {indices}.")
    given = [transition.pair for transition in record.transitions]
    wanted = [(at, at + 1) for at in range(1, count)]
    if not given:
        return
    missing = [pair for pair in wanted if pair not in given]
    if missing:
        first, second = missing[0]
        raise PlanError(
            f"Record {name!r}: 'transitions' has none from scene {first} to scene {second}.",
            hint="Add it, or remove all transitions to have them derived.",
        )
    surplus = [pair for pair in given if pair not in wanted or given.count(pair) > 1]
    if surplus:
        first, second = surplus[0]
        raise PlanError(
            f"Record {name!r}: the transition from scene {first} to scene {second} is given twice or does not join "
            "two adjacent scenes."
        )
