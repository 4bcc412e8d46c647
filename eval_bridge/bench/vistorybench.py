"""ViStoryBench's dataset as stories: shots become scenes, and its cast keeps its tags and reference pictures.

The dataset (MIT) has a folder a story, `01` to `80`, with `story.json` and `image/CHARACTER/`; its fields are in
English and Chinese. Its results layout is written by `katha export --to vistorybench`, and read here as boards.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from katha.errors import InputFileError, RecordError
from katha.jsonio import MOST_JSON, read_json, write_json
from katha.schema import Scene, StoryRecord

Language = Literal["en", "ch"]
LITE: tuple[str, ...] = tuple(
    "01 08 09 15 17 19 24 27 28 29 32 41 52 53 55 57 60 64 68 79".split()  # noqa: SIM905
)
"""The 20 stories of ViStoryBench-Lite."""

_PICTURES = (".png", ".jpg", ".jpeg", ".webp")
_TIME = re.compile(r"\d{8}[-_]\d{6}")
_NUMBER = re.compile(r"\d+")
_FIELDS = ("Plot Correspondence", "Setting Description", "Shot Perspective Design", "Static Shot Description")


class _Told(BaseModel):
    """A story's file, as far as its form goes."""

    characters: dict[str, dict[str, Any]] = Field(default={}, alias="Characters")
    shots: list[dict[str, Any]] = Field(alias="Shots", min_length=1)
    story_type: Any = Field(default=None, alias="Story_type")


def read_dataset(root: Path, *, language: Language = "en", lite: bool = False) -> Iterator[StoryRecord]:
    """Yield the stories of a dataset folder in the order of their numbers.

    Raises:
        InputFileError: there is none, or a story cannot be read. RecordError: a shot lacks a field.
    """
    folders = sorted(path for path in root.iterdir() if (path / "story.json").is_file()) if root.is_dir() else []
    chosen = [path for path in folders if not lite or path.name in LITE]
    if not chosen:
        raise InputFileError(
            f"{str(root)!r} holds no story of ViStoryBench.", hint="Give the folder that holds 01/story.json and on."
        )
    for folder in chosen:
        yield read_story(folder, language)


def read_story(folder: Path, language: Language = "en") -> StoryRecord:
    """Return one story: the plot is the scenes' text, the shot's script is kept beside it.

    Each scene has `setting_description`, `shot_perspective` and `static_shot`; the story has `cast`, by character's
    name its `tag`, `look` and `pictures` (paths within the story's folder).

    Raises:
        InputFileError: the file cannot be read. RecordError: a shot lacks a field; shot and field are named.
    """
    path = folder / "story.json"
    try:
        return _story(folder, _Told.model_validate(read_json(path, limit=MOST_JSON)), language)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        raise RecordError(f"{str(path)!r}, field {field!r}: {first['msg']}.") from error


def _story(folder: Path, told: _Told, language: Language) -> StoryRecord:
    names = {key: _named(row, language, key) for key, row in told.characters.items()}
    odd = next((name for pair in names.items() for name in pair if not name.strip(".") or "\0" in name), None)
    if odd is not None:
        raise RecordError(f"{str(folder / 'story.json')!r}: {odd[:80]!r} cannot be the name of a character.")
    scenes = [_scene(folder.name, at, shot, language, names) for at, shot in enumerate(told.shots, 1)]
    cast = {names[key]: _member(folder, key, row, language) for key, row in told.characters.items()}
    return StoryRecord.model_validate(
        {
            "story_id": folder.name,
            "title": f"ViStoryBench {folder.name}",
            "story_text": " ".join(scene.scene_text for scene in scenes),
            "narrative_type": _said(told.story_type, language) or None,
            "scenes": [scene.model_dump() for scene in scenes],
            "transitions": [_transition(one, other) for one, other in pairwise(scenes)],
            "cast": cast,
            "provenance": {"dataset": "ViStoryBench", "language": language, "transitions": "the next shot's script"},
        }
    )


def _transition(one: Scene, other: Scene) -> dict[str, object]:
    """Return what the next shot tells as what changes: the dataset has no transitions, and a record needs them."""
    told = str((other.model_extra or {}).get("static_shot", ""))
    return {
        "from_scene": one.scene_index,
        "to_scene": other.scene_index,
        "action": told,
        "consequence": other.scene_text,
        "expected_change": other.scene_text,
        "recoverability_target": told,
    }


def _named(row: Mapping[str, Any], language: Language, key: str) -> str:
    return str(row.get(f"name_{language}") or row.get("name_en") or key).strip()


def _said(value: object, language: Language) -> str:
    """Return a field in the language, or as it is where it has none."""
    if isinstance(value, Mapping):
        value = value.get(language, "")
    return value.strip() if isinstance(value, str) else ""


def _scene(story: str, at: int, shot: Mapping[str, Any], language: Language, names: Mapping[str, str]) -> Scene:
    told = {field: _said(shot.get(field), language) for field in _FIELDS}
    missing = next((field for field, text in told.items() if not text), None)
    if missing is not None:
        raise RecordError(f"ViStoryBench story {story!r}, shot {at}: field {missing!r} is missing in {language!r}.")
    stage = shot.get("Characters Appearing")
    named = stage.get("en") if isinstance(stage, Mapping) else stage
    keys = named if isinstance(named, list) else []
    plot, setting, camera, action = told.values()
    return Scene.model_validate(
        {
            "story_id": story,
            "scene_index": at,
            "scene_text": plot,
            "characters": [names.get(str(key).strip(), str(key).strip()) for key in keys],
            "setting_description": setting,
            "shot_perspective": camera,
            "static_shot": action,
        }
    )


def _member(folder: Path, key: str, row: Mapping[str, Any], language: Language) -> dict[str, object]:
    place = folder / "image" / key
    _inside(place, folder)
    found = sorted(path for path in place.rglob("*") if path.suffix.lower() in _PICTURES) if place.is_dir() else []
    for path in found:
        _inside(path, folder)
    return {
        "tag": str(row.get("tag", "")),
        "look": str(row.get(f"prompt_{language}") or ""),
        "pictures": [path.relative_to(folder).as_posix() for path in found],
    }


def _inside(path: Path, folder: Path) -> None:
    """Refuse what lies outside of its folder, by its name or as a link: the folder may come from anybody.

    Raises:
        InputFileError: it does.
    """
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputFileError(f"{str(path)!r} is out of the folder {str(folder)!r}.", hint="Copy the pictures in.")


def copy_references(root: Path, records: Iterable[StoryRecord], out: Path) -> int:
    """Copy the cast's pictures to `OUT/STORY/NAME/`, where `katha metrics --characters` looks; return how many."""
    count = 0
    for record in records:
        for name, row in (record.model_extra or {}).get("cast", {}).items():
            for picture in row["pictures"]:
                place = out / record.story_id / name.replace("/", "_")
                place.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(root / record.story_id / picture, place / Path(picture).name)
                count += 1
    return count


def copy_results(results: Path, records: Iterable[StoryRecord], out: Path) -> dict[str, str]:
    """Copy a method's results to boards that every command reads, and return why stories have none.

    results: `METHOD/MODE/LANGUAGE` or one of its times (the latest is taken); in it `shots/STORY/` or `STORY/` (with
    `shots/` below or not). A shot's number is the last one in its file's name; from 0 or from 1.

    Raises:
        InputFileError: there is no such folder.
    """
    if not results.is_dir():
        raise InputFileError(f"There is no folder {str(results)!r}.", hint="Give METHOD/MODE/LANGUAGE of the results.")
    times = sorted(path for path in results.iterdir() if path.is_dir() and _TIME.fullmatch(path.name))
    root = times[-1] if times else results
    missing: dict[str, str] = {}
    for record in records:
        name = record.story_id
        places = (root / "shots" / name, root / name / "shots", root / name)
        found = _shots(next((place for place in places if place.is_dir()), None))
        if len(found) != len(record.scenes):
            missing[name] = f"{len(found)} pictures of {len(record.scenes)} shots"
            continue
        board = out / name
        board.mkdir(parents=True, exist_ok=True)
        frames = []
        for at, picture in enumerate(found, 1):
            _inside(picture, root)
            target = f"shot_{at:02d}{picture.suffix.lower()}"
            shutil.copyfile(picture, board / target)
            frames.append({"index": at, "kind": "scene", "scene": at, "image": target})
        write_json(board / "storyboard.json", {"story_id": name, "frames": frames})
    return missing


def _shots(folder: Path | None) -> list[Path]:
    pictures = [path for path in folder.iterdir() if path.suffix.lower() in _PICTURES] if folder is not None else []
    return sorted(pictures, key=lambda path: (int((_NUMBER.findall(path.stem) or ["0"])[-1]), path.name))
