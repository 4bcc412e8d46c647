"""Which of the twelve morals a text speaks for, from cue words, drawn actions and feelings."""

from __future__ import annotations

import re
from collections import Counter

from katha.language.lexicon import Vocabulary, load_vocabulary
from katha.language.story import read_story
from katha.language.types import StoryReading

__all__ = ["guess_moral", "moral_scores"]

_WORDS = re.compile(r"[a-z]+")


def moral_scores(text: str, reading: StoryReading | None = None) -> dict[str, float]:
    """A score per moral label; 0 is no evidence. The last third of a story counts double, where its moral is shown."""
    vocabulary = load_vocabulary()
    reading = reading if reading is not None else read_story(text)
    turn = 2 * len(reading.sentences) / 3
    words = _weighted_words(reading, turn, vocabulary)
    scores: dict[str, float] = {}
    for label, cues in vocabulary.cues.items():
        score = sum(weight * words[word] for word, weight in cues["cues"].items())
        for event in reading.events:
            if event.negated:
                continue
            factor = 2.0 if event.sentence >= turn else 1.0
            score += factor * cues["actions"].get(event.action, 0.0)
            score += factor * cues["emotions"].get(event.emotion, 0.0)
        scores[label] = float(score)
    return scores


def _weighted_words(reading: StoryReading, turn: float, vocabulary: Vocabulary) -> Counter[str]:
    """How often each lemma (or adjective as written) occurs, the last third twice."""
    counts: Counter[str] = Counter()
    for index, sentence in enumerate(reading.sentences):
        weight = 2 if index >= turn else 1
        for word in _WORDS.findall(sentence.lower()):
            lemmas = {word, *(sense.lemma for sense in vocabulary.senses.get(word, ()))}
            for lemma in lemmas:
                counts[lemma] += weight
    return counts


def guess_moral(text: str, reading: StoryReading | None = None) -> str | None:
    """The label with the most evidence (the first of the vocabulary on a tie), or None without any evidence."""
    scores = moral_scores(text, reading)
    best = max(scores, key=lambda label: scores[label])
    return best if scores[best] > 0 else None
