"""Ids of stories in any script: no two stories become one, whatever their files are called."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from katha.errors import InputFileError, UsageError
from katha.ids import folder_of, id_of_name, is_safe_id
from katha.schema import StoryRecord
from katha.stories import load_stories, load_story, record_problems


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("fox and crow", "fox_and_crow"),
        ("狐狸", "狐狸"),
        ("शेर", "शेर"),
        ("The Disguise of Vāsavadattā", "The_Disguise_of_Vāsavadattā"),
        ("e\u0301te\u0301", "été"),
        ("x.y-z", "x_y_z"),
        ("!!!", "story"),
        ("../etc", "etc"),
        ("a" * 200, "a" * 64),
    ],
)
def test_a_name_gives_an_id(name: str, made: str) -> None:
    assert id_of_name(name) == made
    assert is_safe_id(made)


@pytest.mark.parametrize("wrong", [".", "..", "a..b", "a/b", "a\\b", "a b", "-a", "e\u0301", "狐" * 60, "a\u200db"])
def test_what_is_no_id_is_refused(wrong: str) -> None:
    assert not is_safe_id(wrong)
    assert any("story id" in problem for problem in record_problems(StoryRecord(story_id=wrong, story_text="A fox.")))


def test_names_that_give_one_id_are_two_stories(tmp_path: Path) -> None:
    for name in ("狐狸", "狮子", "🦊", "🦁", "a b", "a_b", "a!b"):
        (tmp_path / f"{name}.txt").write_text(f"The {name} sleeps. It wakes.")
    told = {story.story_text: story.story_id for story in load_stories(tmp_path)}
    assert len(told) == len(set(told.values())) == 7
    assert (told["The 狐狸 sleeps. It wakes."], told["The a_b sleeps. It wakes."]) == ("狐狸", "a_b")
    assert all(map(is_safe_id, told.values()))


def test_a_text_beside_its_record_is_one_story_and_another_s_is_refused(tmp_path: Path) -> None:
    (tmp_path / "fox.json").write_text(json.dumps({"story_id": "fox", "story_text": "A fox sleeps.", "title": "Fox"}))
    (tmp_path / "fox.txt").write_text("A fox sleeps, told otherwise.")
    assert [story.title for story in load_stories(tmp_path)] == ["Fox"]
    (tmp_path / "fox.json").rename(tmp_path / "tales.json")
    with pytest.raises(UsageError, match=r"fox.txt' and a record beside it are two stories of the id 'fox'"):
        load_stories(tmp_path)
    (tmp_path / "fox.txt").unlink()
    (tmp_path / "more.json").write_text(json.dumps({"story_id": "fox", "story_text": "Another fox."}))
    with pytest.raises(UsageError, match="holds the story 'fox' twice"):
        load_stories(tmp_path)


def test_a_folder_is_found_by_the_id_that_its_name_gives(tmp_path: Path) -> None:
    (tmp_path / "The Disguise of Vāsavadattā").mkdir()
    assert folder_of(tmp_path, "The_Disguise_of_Vāsavadattā").is_dir()
    (tmp_path / "the disguise of vāsavadattā!").mkdir()
    assert not folder_of(tmp_path, "The_Disguise_of_Vāsavadattā").exists()


def test_a_number_sign_in_a_path_is_a_part_of_it(tmp_path: Path) -> None:
    place = tmp_path / "C# tales"
    with pytest.raises(InputFileError, match=r"C# tales/story\.txt"):
        load_story(str(place / "story.txt"))
    place.mkdir()
    (place / "story.txt").write_text("A fox sleeps. It wakes.")
    assert load_story(str(place / "story.txt")).story_id == "story"
    (place / "more.jsonl").write_text(json.dumps({"story_id": "fox", "story_text": "A fox."}) + "\n")
    assert load_story(f"{place / 'more.jsonl'}#fox").story_id == "fox"
    with pytest.raises(InputFileError, match="holds no story 'hare'"):
        load_story(f"{place / 'more.jsonl'}#hare")


_NAMES = st.lists(
    st.text(
        st.characters(blacklist_characters="/\0", blacklist_categories=("Cs", "Cc")), min_size=1, max_size=20
    ).filter(lambda name: not name.startswith(".")),
    min_size=1,
    max_size=6,
    unique=True,
)


@settings(max_examples=25, deadline=None)
@given(_NAMES)
def test_no_story_of_a_folder_is_lost(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for at, name in enumerate(names):
            (Path(folder) / f"{name}.txt").write_text(f"Fox {at} sleeps. It wakes.")
        stories = load_stories(folder)
    assert len({story.story_id for story in stories}) == len(stories) == len(names)
    assert all(map(is_safe_id, (story.story_id for story in stories)))
