"""The vocabulary: every concept can be found, and every form of its words."""

from __future__ import annotations

import pytest
import yaml

from katha.schema import MORAL_LABELS
from katha_sketch.vocabulary import load_vocabulary


def test_counts_reach_what_is_promised() -> None:
    vocabulary = load_vocabulary()
    sizes = {kind: len(vocabulary.concepts(kind)) for kind in ("character", "prop", "emotion", "action")}
    assert sizes["character"] >= 40
    assert sizes["prop"] >= 60
    assert sizes["emotion"] >= 10
    assert sizes["action"] >= 35
    assert tuple(concept.id for concept in vocabulary.concepts("moral")) == MORAL_LABELS


@pytest.mark.parametrize("kind", ["character", "prop", "emotion", "action", "attribute"])
def test_every_word_finds_its_kind(kind: str) -> None:
    vocabulary = load_vocabulary()
    for concept in vocabulary.concepts(kind):  # type: ignore[arg-type]
        first = concept.words[0].removeprefix("be ")
        assert (kind, concept.id) in {(sense.kind, sense.id) for sense in vocabulary.senses[first]}
        assert vocabulary.get(kind, concept.id) is concept  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "kind", "concept"),
    [
        ("mice", "character", "mouse"),
        ("tortoises", "character", "turtle"),
        ("wolves", "character", "wolf"),
        ("Old Women", "character", "old_woman"),
        ("gnawing", "action", "bite"),
        ("wept", "action", "cry"),
        ("sprang", "action", "jump"),
        ("cried out", "action", "shout"),
        ("bunches of grapes", "prop", "grapes"),
        ("knives", "prop", "knife"),
        ("terrified", "emotion", "afraid"),
        ("red scarf", "attribute", "red_scarf"),
    ],
)
def test_forms(word: str, kind: str, concept: str) -> None:
    assert load_vocabulary().find(word, kind) == concept  # type: ignore[arg-type]


def test_an_unknown_word_is_not_found() -> None:
    assert load_vocabulary().find("zeppelin", "prop") is None
    assert load_vocabulary().find("lion", "prop") is None


def test_no_yaml_word_is_read_as_a_boolean() -> None:
    assert all(isinstance(surface, str) for surface in load_vocabulary().senses)
    assert yaml.safe_load("[on]") == [True], "the reason why such words are quoted in the files"


@pytest.mark.parametrize(
    ("verb", "third", "past", "ing"),
    [
        ("carry", "carries", "carried", "carrying"),
        ("free", "frees", "freed", "freeing"),
        ("tie", "ties", "tied", "tying"),
        ("drag", "drags", "dragged", "dragging"),
        ("bite", "bites", "bit", "biting"),
        ("cry out", "cries out", "cried out", "crying out"),
        ("play", "plays", "played", "playing"),
        ("catch", "catches", "caught", "catching"),
    ],
)
def test_inflection(verb: str, third: str, past: str, ing: str) -> None:
    inflector = load_vocabulary().inflector
    assert [inflector.verb(verb, form) for form in ("third", "past", "ing")] == [third, past, ing]  # type: ignore[arg-type]
