"""Property: a story in any form that people write is read, whole, and nobody in it has marks or is a heading."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from doors import LINES
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from katha.errors import KathaError
from katha.intake.names import MARKS
from katha.stories import load_story, story_of_text
from tests.support.forms import FORMS, Told

NAMES = (
    "Mia",
    "Otto",
    "Nora",
    "Will",
    "May",
    "Dawn",
    "Ray",
    "Grace",
    "June",
    "Élise",
    "Zoë",
    "McAdam",
    "Jean-Luc",
    "Ben",
)
PLACES = ("kitchen", "station", "garden", "barn", "beach")
TIMES = ("day", "night", "morning", "evening")
VERBS = ("opens", "finds", "drops", "washes", "carries", "paints")
THINGS = ("box", "kite", "lantern", "ladder", "trumpet", "basket", "suitcase")
SAID = ("Look at that!", "I found it.", "Where is my hat?")
LABELS = frozenset(
    [
        "panel",
        "page",
        "shot",
        "scene",
        "location",
        "characters",
        "character",
        "action",
        "setting",
        "title",
        "author",
        "draft",
        "nobody",
        "known",
        "sfx",
        "caption",
        "mood",
        "chapter",
        "opening",
        "catalyst",
        "midpoint",
        "finale",
        "size",
        "description",
        "camera",
        "int",
        "ext",
        "part",
        "gutenberg",
    ]
)
"""Words of the forms: nobody's name."""

scenes = st.lists(
    st.builds(Told, *map(st.sampled_from, (NAMES, PLACES, TIMES, VERBS, THINGS, SAID))), min_size=2, max_size=6
)
endings = st.sampled_from(("\n", "\r\n", "\r"))
encodings = st.sampled_from(("utf-8", "utf-8-sig", "utf-16"))
marks = st.sampled_from(("", "\u200b", "\u00ad", "\ufeff"))


@pytest.mark.parametrize("name", sorted(FORMS))
@given(told=scenes, ending=endings, encoding=encodings, mark=marks)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_story_in_any_form_is_read_whole(name: str, told: list[Told], ending: str, encoding: str, mark: str) -> None:
    kind, write = FORMS[name]
    text = write(told).replace("\n", ending).replace("basket", f"bas{mark}ket")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(text.encode(encoding))
        record = load_story(str(path))
    assert record.structure is None or record.structure.kind == kind
    lost = [one.act for one in told if not re.search(rf"{re.escape(one.who)}\W.*{one.thing}", record.story_text)]
    assert not lost
    cast = [one.name for one in record.structure.cast] if record.structure is not None else []
    cast += [person for scene in record.scenes for person in scene.characters]
    assert not [one for one in cast if MARKS.search(one)]
    assert {word.lower() for one in cast for word in one.split()}.isdisjoint(LABELS)
    assert not re.search(r"-->|\||</|\\emph|\[\[|PROJECT GUTENBERG", record.story_text)


@given(
    text=st.text(max_size=300)
    | st.lists(
        st.sampled_from(LINES),
        max_size=14,
    ).map("\n".join)
)
@settings(max_examples=150, deadline=None)
def test_whatever_somebody_types_is_a_story_or_one_sentence(text: str) -> None:
    try:
        record = story_of_text(text, "typed")
    except KathaError as error:
        told = str(error)
    else:
        told = record.story_id
    assert "\n" not in told
