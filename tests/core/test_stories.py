"""Stories as people hand them in, good and bad."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from katha.errors import InputFileError, RecordError, UsageError
from katha.stories import check_scene_count, holds_several, iter_records, load_story

EXAMPLES = Path(__file__).parents[2] / "examples"


def _record() -> dict[str, object]:
    value: dict[str, object] = json.loads((EXAMPLES / "lion_and_mouse.json").read_text())
    return value


def _write(folder: Path, value: object, name: str = "story.json") -> str:
    path = folder / name
    path.write_text(json.dumps(value))
    return str(path)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.json")), ids=lambda path: path.stem)
def test_every_example_is_a_valid_record_with_its_text_beside_it(path: Path) -> None:
    record = load_story(str(path))
    plain = load_story(str(path.with_suffix(".txt")))
    assert record.story_id == plain.story_id == path.stem
    assert record.title == plain.title
    assert record.story_text.split() == plain.story_text.split()
    assert (len(record.scenes), len(record.transitions)) == (5, 4)


def test_a_first_line_of_its_own_is_the_title(tmp_path: Path) -> None:
    path = tmp_path / "a tale.txt"
    path.write_text("The Fox\n\nA fox sees grapes.\nHe jumps.\n")
    record = load_story(str(path))
    assert (record.story_id, record.title, record.story_text) == ("a_tale", "The Fox", "A fox sees grapes.\nHe jumps.")


def test_a_text_without_title_is_named_after_its_file(tmp_path: Path) -> None:
    path = tmp_path / "fox.txt"
    path.write_text("A fox sees grapes.\n\nHe jumps.")
    assert load_story(str(path)).title == "Fox"


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is empty"),
        (b" \n\n ", "is empty"),
        (b"\x89PNG\0\0\0", "binary file"),
        ("Der Löwe schläft".encode("latin-1"), "not UTF-8"),
        (b"word " * 200_000, "at most 200,000"),
    ],
)
def test_a_bad_text_file_is_refused_by_name(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(data)
    with pytest.raises(InputFileError, match=says) as caught:
        load_story(str(path))
    assert "bad.txt" in str(caught.value)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputFileError, match="No such file"):
        load_story(str(tmp_path / "nothing.txt"))
    with pytest.raises(InputFileError, match="is a folder"):
        load_story(str(tmp_path))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"story_id": "../../etc/passwd"}, "never a path"),
        ({"story_text": "  "}, "story_text"),
        ({"moral_label": "greed"}, "moral_label"),
        ({"transitions": []}, "from scene 1 to scene 2"),
        ({"scenes": "five"}, "scenes"),
    ],
)
def test_a_broken_record_names_its_story_and_field(tmp_path: Path, change: dict[str, object], says: str) -> None:
    with pytest.raises(RecordError, match=says):
        load_story(_write(tmp_path, _record() | change))


def test_a_missing_transition_is_named(tmp_path: Path) -> None:
    record = _record()
    record["transitions"] = [item for item in record["transitions"] if item["from_scene"] != 3]  # type: ignore[attr-defined]
    with pytest.raises(RecordError, match="from scene 3 to scene 4"):
        load_story(_write(tmp_path, record))


def test_a_wrong_enum_is_named(tmp_path: Path) -> None:
    record = _record()
    record["recoverability_questions"][0]["question_type"] = "colour"  # type: ignore[index]
    with pytest.raises(RecordError, match=r"recoverability_questions\.0\.question_type"):
        load_story(_write(tmp_path, record))


def test_not_a_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "story.json"
    path.write_text('{"story_id": "a", "story_text": "b", "score": NaN}')
    with pytest.raises(InputFileError, match="NaN"):
        load_story(str(path))


def test_four_scenes_need_four_panels(tmp_path: Path) -> None:
    record = _record()
    record["scenes"] = record["scenes"][:4]  # type: ignore[index]
    record["transitions"] = record["transitions"][:3]  # type: ignore[index]
    record["recoverability_questions"] = []
    story = load_story(_write(tmp_path, record))
    with pytest.raises(RecordError, match="has 4 scenes where 5"):
        check_scene_count(story, 5)
    check_scene_count(story, 4)


def test_one_story_is_picked_from_many(tmp_path: Path) -> None:
    first, second = _record(), _record() | {"story_id": "other"}
    path = tmp_path / "many.jsonl"
    path.write_text(json.dumps(first) + "\n\n" + json.dumps(second) + "\n")
    assert load_story(f"{path}#other").story_id == "other"
    assert [record.story_id for record in iter_records(path)] == ["lion_and_mouse", "other"]
    with pytest.raises(InputFileError, match="holds 2 stories"):
        load_story(str(path))
    with pytest.raises(InputFileError, match="holds no story 'third'"):
        load_story(f"{path}#third")


def test_a_broken_line_is_named_by_file_and_number(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text(json.dumps(_record()) + "\n{broken\n")
    with pytest.raises(UsageError, match="line 2"):
        load_story(f"{path}#nobody")
    path.write_text(json.dumps(_record()) + "\n" + json.dumps(_record()) + "\n")
    with pytest.raises(RecordError, match="line 2: the story id"):
        list(iter_records(path))


def test_unknown_keys_and_aliases_survive(tmp_path: Path) -> None:
    record = _record()
    record["qa_pairs"] = record.pop("recoverability_questions")
    record["text"] = record.pop("story_text")
    record["curator"] = "me"
    story = load_story(_write(tmp_path, record))
    assert len(story.recoverability_questions) == 13
    assert story.model_dump()["curator"] == "me"


def test_a_title_needs_no_empty_line_if_its_long_words_are_capitalised(tmp_path: Path) -> None:
    path = tmp_path / "tale.txt"
    path.write_text("The Fox and the Grapes\nA fox sees grapes.\n", encoding="utf-8")
    assert load_story(str(path)).title == "The Fox and the Grapes"
    path.write_text("The fox and his friend saw\nmany grapes.\n", encoding="utf-8")
    assert load_story(str(path)).story_text == "The fox and his friend saw\nmany grapes."


def test_what_holds_several_stories(tmp_path: Path) -> None:
    (tmp_path / "one.jsonl").write_text("{}\n\n")
    (tmp_path / "two.jsonl").write_text("{}\n{}\n")
    (tmp_path / "one.txt").write_text("A fox.\nA crow.\n")
    found = {
        name: holds_several(str(tmp_path / name)) for name in ("", "one.jsonl", "two.jsonl", "one.txt", "none.jsonl")
    }
    assert [name for name, several in found.items() if several] == ["", "two.jsonl"]
    assert not any(map(holds_several, ("", "two.jsonl#a", "x" * 5000, "a\0b", "The fox runs. It hides.")))
