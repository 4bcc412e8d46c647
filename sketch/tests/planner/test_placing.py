"""Where the sentences of a story are, as the network and the table's words tell it, and the training of that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from katha_sketch.planner import placing
from katha_sketch.english import read_story
from katha_sketch.planner.heard import Heard, heard
from katha_sketch.planner.moments import Story
from katha_sketch.planner.settings import named, settings
from katha_sketch.planner.whereabouts import _joined

BREAD = """Bread Before Dawn

Lena lit the oven at four. She weighed the flour and woke the yeast. The first loaves were in by five.
Her apprentice dropped a tray of rolls. She swept them up and said nothing. At six the first customer knocked.
"""
WAVES = """A Calm Day

The mate trimmed the sail and coiled the ropes. Two gulls rode the mast. The captain read the stars.
All night the waves slapped the hull. A whale rose off the bow. Nobody on deck spoke of the harbour.
"""


def read(text: str) -> tuple[Story, list[Heard]]:
    story, known = Story(read_story(text)), set[str]()
    return story, [heard(story, at, known) for at in range(len(story.reading.sentences))]


def share(text: str, place: str) -> float:
    column = settings().index(named(place))
    return float(placing.likely(*read(text))[:, column].mean())


def test_each_sentence_has_a_likelihood_of_each_place() -> None:
    found = placing.likely(*read(BREAD))
    assert found.shape == (6, len(settings()) + 1)
    assert np.allclose(found.sum(axis=1), 1.0)
    assert share(BREAD, "bakery") > 0.2 > share(WAVES, "bakery")
    assert share(WAVES, "ship deck") + share(WAVES, "sea") > 0.3 > share(BREAD, "ship deck")


def test_the_network_tells_places_and_not_the_words_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = share(BREAD, "bakery")
    monkeypatch.setattr(placing, "rows_in", lambda story: np.zeros((6, 4, 384)))
    assert share(BREAD, "bakery") != pytest.approx(whole, abs=0.02)


def test_of_rules_and_likelihood_the_surer_one_tells_a_place() -> None:
    kitchen, street = named("kitchen"), named("street")
    assert kitchen is not None
    assert street is not None
    assert _joined(kitchen, True, (street, 0.89)) == kitchen
    assert _joined(kitchen, True, (street, 0.9)) == street
    assert _joined(kitchen, False, (street, 0.75)) == street
    assert _joined(kitchen, False, (street, 0.74)) is None
    assert _joined(kitchen, False, (kitchen, 0.3)) == kitchen
    assert _joined(kitchen, False, (kitchen, 0.29)) is None
    assert _joined(kitchen, True, (None, 0.99)) == kitchen
    assert _joined(None, False, (None, 0.99)) is None


def test_a_toy_training_writes_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from training.text import placing as training
    from training.text.told import FOLDER, told

    stories = tmp_path / "stories"
    stories.mkdir()
    blocks = (FOLDER / "a1.txt").read_text("utf-8").strip().split("\n\n")[:4]
    (stories / "a.txt").write_text("\n\n".join(blocks), "utf-8")
    seen = [training.example(one) for one in told(stories)]
    places = {
        settings()[at].place.removeprefix("the ") for one in seen for at in one.right if at in range(len(settings()))
    }
    assert places >= {line.place for one in told(stories) for line in one.lines[:1]}

    monkeypatch.setattr(training, "described", lambda: np.ones((2, len(settings()), 384)) / 384)
    assert training.main(["--stories", str(stories), "--out", str(tmp_path), "--epochs", "2"]) == 0
    with np.load(tmp_path / "placing.npz") as made, np.load(Path(placing.__file__).parent / "placing.npz") as shipped:
        shapes = {name: part.shape for name, part in made.items() if name != "names"}
        assert shapes == {name: part.shape for name, part in shipped.items() if name != "names"}
        assert any(part.any() for name, part in made.items() if name in ("clues", "outer"))
