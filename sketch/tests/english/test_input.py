"""What kind of text it is, scripts in Fountain format, and the shipped parser."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from katha.errors import CorruptEntryError
from katha.stories import story_of_text
from katha_sketch.english import check_input, read_story, read_text
from katha_sketch.english import parsing as parsing_module
from katha_sketch.planner.moments import Story
from katha_sketch.planner.rule import told_story

SCRIPT = """Title: Soup
Author: Somebody

INT. KITCHEN - NIGHT

PIP, a small robot, burns the soup. Smoke fills the room.

PIP
(sadly)
I am so sorry!

THE OLD MAN
Don't worry, Pip.

EXT. BEACH - DAY

They eat sandwiches on the sand.

CUT TO:
"""
CHAT = """[18:02] Mum: Where are you?
[18:03] Leo: At the park. I fell off my board :(
[18:03] Mum: are you hurt
[18:05] Leo: A girl gave me a bandage.
"""
POEM = """The moon has a face like the clock in the hall
She shines on the thieves on the old garden wall
On streets and on fields and on harbour and quay
And she follows the ships that go down to the sea
"""


@pytest.mark.parametrize(
    ("text", "kind", "usable"),
    [
        ("Tom ran home. He was happy.", "story", True),
        ("", "empty", False),
        ("Hello", "empty", False),
        ("Der Hund läuft in den Garten und bellt. Die Katze sitzt auf dem Baum und lacht.", "language", False),
        ("El perro corre por el jardín y ladra al gato que está en el árbol.", "language", False),
        ("Собака бежит в сад и лает. Кошка сидит на дереве.", "language", False),
        (POEM, "poem", True),
        ("Ingredients: 200 g flour, 2 cups milk, 1 tsp salt.\n\nMix the flour and the milk. Fry it.", "recipe", False),
        ("Anna was haar hoed kwijt. Een jongen vond hem onder een tafel en gaf hem terug.", "language", False),
        ("小红在市场上丢了帽子。一个男孩在桌子下面找到了它。她给了他一个苹果。", "language", False),
        ("- milk\n- eggs\n- bread\n- two apples\n", "list", False),
        ("- Anna wakes up late.\n- She runs to the bus.\n- The driver laughs and waits.\n", "list", True),
        ("1. Anna wakes up\n2. She misses the bus\n3. A neighbour gives her a lift\n", "list", True),
        ("1. Boil the water\n2. Peel the eggs\n3. Cut the bread\n4. Serve the eggs\n", "recipe", False),
        (CHAT, "conversation", True),
        ("The cat\nsat on the mat\nand ate\nmy hat\n", "poem", True),
        ("milk\neggs\nbread\ntwo apples\n", "list", False),
        ("The dog chased the cat up a tree.", "one_sentence", True),
        ("Time is money. Knowledge is power and truth matters.", "no_event", False),
        ("Tom went to the shop. He bought some bread and ate it. " * 260, "long", True),
        ("Peel the onions and chop them. Heat the oil. Add the onions. Serve with rice.", "recipe", False),
        ("Open the box. Remove the screws. Lift the lid. Press the button.", "list", False),
        ("<html><body><h1>A day</h1><p>A dog ran to the house.</p></body></html>", "code", False),
        ("def f(x):\n    return x + 1\n\nclass A:\n    pass\n", "code", False),
        ("A dog ran to the house. <b>The cat</b> slept on the sofa. The dog ate the cake.", "story", True),
        ("from the hill I came;\nlet me in, I said.\nreturn to me, she said,\nand I ran home\n", "story", True),
        ("The cook took 200 g flour and laughed.\nThen she went to the door.\nHer son came in.\n", "story", True),
    ],
)
def test_the_kind_of_text(text: str, kind: str, usable: bool) -> None:
    check = check_input(text)
    assert (check.kind, check.usable) == (kind, usable)
    assert bool(check.message) == (kind != "story")
    assert check.message.count(". ") == 0, "one sentence"


ENGLISH = "Anna lost her hat at the market. A boy found it under a table and gave it back. She bought him an apple."


@pytest.mark.parametrize(
    "other",
    [
        "Dann ging sie mit ihm nach Hause und sie aßen Kuchen.",
        "Luego fue con el niño a su casa y los dos comieron.",
        "小红买了一个苹果给那个男孩。",
    ],
)
def test_a_text_that_is_english_in_part_is_refused_by_that_part(other: str) -> None:
    for text in (f"{ENGLISH}\n\n{other}", f"{ENGLISH} {other} {ENGLISH}"):
        check = check_input(text)
        assert (check.kind, check.usable) == ("language", False)
        assert other.split()[0][:5] in check.message


def test_a_word_in_another_language_is_no_other_language() -> None:
    said = '"Wir sind aus Berlin und das ist mein Hund, nicht deiner," said the man.'
    for text in (f"{ENGLISH} {said}", "Señor de la Cruz danced la rumba at the Café del Mar. His wife Elena clapped."):
        assert check_input(text).kind == "story"


def told(text: str) -> list[str]:
    _, reading = read_text(text)
    assert reading is not None
    return [one.text for one in reading.sentences]


def test_what_is_no_prose_is_read_as_prose() -> None:
    assert told("# Chapter 1\n\n**Sam** ran *up* the [hill](http://a.b/c).\n\n---\n\n> He fell. ![x](y.png)\n") == [
        "Sam ran up the hill.",
        "He fell.",
    ]
    assert told("ANNA LOST HER HAT. A BOY FOUND IT. THEN HE RAN AFTER ANNA AND I LAUGHED.") == [
        "Anna lost her hat.",
        "A boy found it.",
        "Then he ran after Anna and I laughed.",
    ]
    assert told("1. Anna wakes up\n2. She misses the bus\n") == ["Anna wakes up.", "She misses the bus."]
    assert told("PORT CITY (AP) - A man fell into the harbour. A dog saved him.")[0] == "A man fell into the harbour."


def test_who_speaks_in_a_conversation_is_known() -> None:
    _, reading = read_text(CHAT)
    assert reading is not None
    speakers = [reading.entity(speech.speaker or "").name for speech in reading.speeches]
    assert speakers == ["Mum", "Leo", "Mum", "Leo"]
    assert reading.speeches[2].text == "Are you hurt."


@pytest.mark.parametrize("text", [CHAT, "Anna: Hi Ben\nBen: Hi Anna\n", "- One Fox\n- Two Hens\n"])
def test_the_first_line_of_a_conversation_or_list_is_no_title(text: str) -> None:
    said = re.sub(r"\[\d\d:\d\d\] ", "", text).strip()  # the intake reads the hours of a conversation away
    assert story_of_text(text, "untitled").story_text == said
    assert story_of_text(f"The Fox\n{text}").title == "The Fox"


def test_what_cannot_be_used_is_not_read() -> None:
    check, reading = read_text("El perro corre por el jardín y ladra al gato que está en el árbol.")
    assert check.kind == "language"
    assert reading is None


def test_a_script_is_read_with_its_scenes_and_speakers() -> None:
    told, note = _told(SCRIPT)
    assert "CUT TO" not in told.reading.text
    assert note == ""
    reading = told.reading
    assert [one.place.noun if one.place else None for one in reading.sentences] == ["kitchen"] * 4 + ["beach"]
    assert [one.time for one in reading.sentences] == ["night"] * 4 + ["day"]
    speakers = [reading.entity(speech.speaker or "").name for speech in reading.speeches]
    assert speakers == ["Pip", "the old man"]
    assert [entity.name for entity in reading.cast][:2] == ["Pip", "the old man"]


def _told(text: str) -> tuple[Story, str]:
    story = story_of_text(text, "s")
    return told_story(story.story_text, story.story_id, story.structure)


def test_a_name_in_a_script_is_a_name_and_a_heading_keeps_it() -> None:
    text = "EXT. BUS STOP - NIGHT\n\nROSA (70), a cleaner, waits.\n\nINT. ROSA'S KITCHEN - DAY\n\nROSA\nSit down."
    story = story_of_text(text, "s")
    assert story.structure is not None
    assert [one.name for one in story.structure.cast] == ["Rosa"]
    assert [scene.place for scene in story.structure.scenes] == ["bus stop", "Rosa's kitchen"]
    reading = _told(text)[0].reading
    assert [(entity.name, entity.age) for entity in reading.cast] == [("Rosa", "old")]
    assert reading.sentences[-1].place is not None
    assert reading.sentences[-1].place.noun == "kitchen"


def test_a_scene_of_a_script_has_the_place_of_its_heading() -> None:
    reading = _told("EXT. BUS STOP - NIGHT\n\nPIP runs along the pavement into the rain.\n\nPip sits down.")[0].reading
    assert [one.place.text if one.place else None for one in reading.sentences] == ["bus stop", "bus stop"]


def test_the_model_is_the_one_that_was_pinned() -> None:
    assert parsing_module.model_sha256() == parsing_module.MODEL_SHA256


def test_a_damaged_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing_module, "MODEL_SHA256", "0" * 64)
    with pytest.raises(CorruptEntryError, match="damaged"):
        parsing_module.Parser()


def test_reading_imports_no_torch_and_importing_loads_nothing() -> None:
    code = (
        "import sys, katha_sketch.english; assert 'spacy' not in sys.modules; "
        "from katha_sketch.english import read_story; read_story('Tom ran home.'); "
        "assert 'spacy' in sys.modules and not {'torch', 'tensorflow', 'spacy.cli', 'requests'} & set(sys.modules); "
        "import spacy; assert 'spacy_version' in spacy.info(silent=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_verb_may_be_the_first_word() -> None:
    read_story("Make a noun again of a plural that was taken for a verb of the present in a told past.")
