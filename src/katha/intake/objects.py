"""JSON of other tools and data sets: who is in it, and what each shot tells, by the names of its fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from katha.intake.drafts import Passage, TextDraft, sentence
from katha.intake.fields import finished, label_kind, passage_of
from katha.intake.names import Names, bare, is_title_case
from katha.intake.prompts import looks_like_prompts, read_prompts

_LANGUAGES = ("en", "english", "text", "value", "name")
_TELLS = frozenset(("action", "prompt", "dialogue", "narration"))
_LISTS = (
    "scenes",
    "shots",
    "panels",
    "frames",
    "boards",
    "storyboard",
    "beats",
    "pages",
    "sequences",
    "shot_list",
    "shotlist",
    "clips",
    "segments",
    "story_scenes",
    "scene_list",
    "prompts",
    "captions",
    "narrative",
    "sentences",
    "prompt_array",
    "steps",
    "rows",
    "items",
    "content",
    "images",
    "settings",
    "shot_descriptions",
    "video_prompts",
    "chapters",
)
_PEOPLE = (
    "characters",
    "cast",
    "character_list",
    "roles",
    "entities",
    "people",
    "subjects",
    "global_profile",
    "character_profiles",
)
_LOOKS = (
    "look",
    "looks",
    "appearance",
    "description",
    "features",
    "static_features",
    "prompt_en",
    "prompt",
    "visual_description",
    "dynamic_features",
    "visual",
    "physical_description",
    "desc",
    "profile",
)
_NAMES = ("name_en", "name", "identifier", "identifier_in_scene", "character_name", "character", "id", "label")
_TITLES = ("title", "story_title", "name", "story_name", "project", "project_name")
_WHOLE = (
    "idea",
    "script",
    "screenplay",
    "logline",
    "synopsis",
    "premise",
    "story_overview",
    "overview",
    "plot",
    "summary",
)


def draft_of(value: Any) -> TextDraft | None:
    """Return a story that a JSON value tells shot by shot; None where no field of it tells anything."""
    if isinstance(value, list):
        value = {"shots": value}
    if not isinstance(value, Mapping):
        return None
    plain = {_key(key): item for key, item in value.items()}
    for inner in (
        "story",
        "data",
        "storyboard",
        "screenplay",
        "result",
        "output",
        "project",
        "project_data",
        "episode",
        "script",
        "storyboard_data",
    ):
        if isinstance(plain.get(inner), Mapping):
            found = draft_of({**{k: v for k, v in value.items() if _key(k) in (*_TITLES, *_PEOPLE)}, **plain[inner]})
            if found is not None:
                return found
    rows = next((rows for key in _LISTS if (rows := _rows(plain.get(key)))), [])
    names, draft = Names(""), TextDraft("shots in JSON", shots=True)
    draft.title = next(
        (str(plain[key]).strip() for key in _TITLES if isinstance(plain.get(key), str) and plain[key].strip()), ""
    )
    for key in _PEOPLE:
        _take_people(plain.get(key), names)
    unread = set[str]()
    for row in rows:
        draft.passages += _passages(row, names, unread)
    if rows and all(isinstance(row, str) for row in rows) and looks_like_prompts("\n".join(rows)):
        looks = [f"[{name}] {names.looks.get(name, 'a person')}" for name in names.cast]
        return read_prompts("\n".join([*looks, *rows]))
    if unread:
        draft.left_out.append(
            f"Not read: the fields {', '.join(map(repr, sorted(unread)[:8]))}: they are not of what is told."
        )
    return finished(draft, names) if any(one.text for one in draft.passages) else None


def whole_text(value: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the key and the text of an object that holds a story in one field ("idea", "script")."""
    plain = {_key(key): item for key, item in value.items()}
    return next(
        ((key, plain[key]) for key in _WHOLE if isinstance(plain.get(key), str) and len(plain[key].split()) > 3), None
    )


def _key(key: object) -> str:
    return re.sub(r"[\s-]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(key))).strip().lower()


def _rows(value: Any) -> list[Any]:
    """Return a list's rows: objects or texts; an object's values in order, a list in each scene joined."""
    if isinstance(value, Mapping) and value and all(isinstance(one, (Mapping, str)) for one in value.values()):
        value = list(value.values())
    if not isinstance(value, Sequence) or isinstance(value, str):
        return []
    return [one for one in value if isinstance(one, (Mapping, str)) and one]


def _passages(row: Any, names: Names, unread: set[str]) -> Iterator[Passage]:
    """Yield the shots of one row: its own, or those of the lists in it."""
    if isinstance(row, str):
        parts = [part.strip() for part in row.strip().split("\n") if part.strip()]
        yield Passage(" ".join(sentence(part) for part in parts))
        return
    plain = {_key(key): item for key, item in row.items()}
    acts = plain.get("action_descriptions")
    if isinstance(acts, Sequence) and not isinstance(acts, str):
        yield from _acts(plain, names)
        return
    fields = _fields(plain, unread)
    inner = next((rows for key in _LISTS if key in plain and (rows := _rows(plain[key]))), [])
    own = set(fields) & {"action", "prompt"} and all(isinstance(one, str) for one in inner)
    if inner and not own:
        where = passage_of({**{kind: fields.get(kind, []) for kind in ("place", "time")}, "action": ["-"]}, names)
        for passage in (passage for one in inner for passage in _passages(one, names, unread)):
            passage.place, passage.time = passage.place or where.place, passage.time or where.time
            yield passage
    elif set(fields) & _TELLS:
        for name in (one for text in fields.get("characters", ()) for one in text.split(", ")):
            names.add(name)
        yield passage_of(fields, names)


def _acts(row: Mapping[str, Any], names: Names) -> Iterator[Passage]:
    """Yield the shots of a scene of EntityBench, whose prompts say first who is in them."""
    for prompt in _texts(row.get("video_prompts")):
        _entities(prompt, names)
    for act in _texts(row["action_descriptions"]):
        present = [name for name in names.cast if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", act)]
        yield Passage(sentence(act), characters=present)


def _fields(row: Mapping[str, Any], unread: set[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key, value in row.items():
        kind = _kind(key)
        texts = _texts(value, people=kind == "characters")
        if kind == "dialogue" and isinstance(value, Sequence) and not isinstance(value, str):
            texts = [_line(one) for one in value]
        if kind is None or kind in ("camera", "aside"):
            unread |= {key} if value not in (None, "", [], {}) and key not in _LISTS else set()
            continue
        texts = [text for text in texts if text.strip()]
        if texts:
            found.setdefault(kind, []).extend([", ".join(texts)] if kind == "characters" else texts)
    for kind in ("action", "dialogue", "narration", "prompt"):
        if kind in found:
            found[kind] = list(dict.fromkeys(found[kind]))
    if "action" in found and "caption" in row:
        found.pop("narration", None)
        unread.add("caption")
    plots = [text for key in ("plot_correspondence",) for text in _texts(row.get(key))]
    if plots:  # ViStoryBench: the plot is the shot's text, the rest describes its picture
        found["action"], found["place"] = plots, []
    return {kind: texts for kind, texts in found.items() if texts}


def _kind(key: str) -> str | None:
    known = {
        "event": "action",
        "visual_desc": "action",
        "audio_desc": "aside",
        "caption": "narration",
        "frame_description": "action",
        "motion_desc": "aside",
        "ff_desc": "action",
        "lf_desc": "aside",
        "narration_text": "narration",
        "voiceover_text": "narration",
        "scene_text": "action",
        "image_description": "action",
        "visual_content": "action",
        "script": "action",
        "sentence": "action",
        "characters_in_scene": "characters",
        "characters_present": "characters",
        "character_names": "characters",
        "scene_location": "place",
        "t2i_prompt": "prompt",
        "image_gen_prompt": "prompt",
        "visual_prompt": "prompt",
        "txt2img": "prompt",
        "start_frame": "prompt",
        "emotion": "aside",
        "text": "action",
        "time_of_day": "time",
        "is_last": "aside",
        "idx": "number",
        "cam_idx": "aside",
    }
    return known.get(key) or label_kind(key)


def _texts(value: Any, *, people: bool = False) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, (int, float)):
        return [str(value)]
    if isinstance(value, Mapping):
        keys = (*_NAMES, *_LANGUAGES) if people else _LANGUAGES
        told = next((value[key] for key in keys if value.get(key)), None)
        return _texts(told, people=people) if told is not None else []
    return [text for one in value for text in _texts(one, people=people)]


def _line(value: Any) -> str:
    """Return a line of dialogue: {"character": "Mia", "line": "Hi"} is "Mia: Hi"."""
    if not isinstance(value, Mapping):
        return " ".join(_texts(value))
    who = next((str(value[key]) for key in ("character", "speaker", "name", "who") if value.get(key)), "")
    said = next(
        (str(value[key]) for key in ("line", "text", "dialogue", "content", "speech", "words") if value.get(key)), ""
    )
    return f"{who}: {said}" if who and said else said


def _take_people(value: Any, names: Names) -> None:
    rows: list[tuple[str, str]] = []
    if isinstance(value, Mapping):
        for key, item in value.items():
            name = (
                next((str(item[one]) for one in _NAMES if item.get(one)), str(key))
                if isinstance(item, Mapping)
                else str(key)
            )
            rows.append((name, _look(item)))
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            if isinstance(item, Mapping):
                name = next((str(item[one]) for one in _NAMES if item.get(one)), "")
                rows.append((name, _look(item)))
            elif isinstance(item, str):
                name, _, look = item.partition(":")
                rows.append((name, look.strip()))
    elif isinstance(value, str):
        rows += [(part, "") for part in re.split(r"[,;\n]", value)]
    for name, look in rows:
        if name.strip() and len(name.split()) < 6:
            names.add(name, look)


def _look(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return ", ".join(
            dict.fromkeys(str(value[key]).strip() for key in _LOOKS if isinstance(value.get(key), str) and value[key])
        )
    return ""


def _entities(prompt: str, names: Names) -> None:
    """Take in the people of an EntityBench prompt: "Mina: Woman with ...", and no place or thing of it."""
    for line in prompt.split("\n\n")[0].split("\n"):
        name, mark, look = line.partition(":")
        person = re.match(
            r"\s*(?:(?:an?|the|young|old|older|elderly|middle-aged|teenage|adult|little)\s+)*(?:man|woman|boy|girl|person|child|male|female|individual|figure|dog|cat)\b",
            look,
            re.I,
        )
        if mark and is_title_case(bare(name)) and not name.lower().startswith("the ") and person:
            names.add(name, look.strip())
