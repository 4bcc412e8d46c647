"""Bad inputs for every verb and file format: valid files, changed in the ways that files are broken in.

A case is made from its number alone, so that a failure can be made again: `case(number, folder)`.
"""

from __future__ import annotations

import copy
import io
import json
import os
import random
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from PIL import Image
from schemas import MODELS, text_of

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "lion_and_mouse"
SMALL = ("--renderer", "block", "--judge", "pixel", "--size", "96x64", "--mode", "base", "--seeds", "1")
FEW = ("--resamples", "0")
ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1e308, 10**30, "", " ", "\u202e\u0000"[:1], "../../x", "/etc/passwd", "a\nb", "x" * 5_000),
    *(
        [],
        {},
        [[]],
        {"a": {}},
        [None],
        "\U0001f600",
        "$(touch X)",
        "os:system:touch X",
        ["x"] * 50,
        "NaN",
        "2026-13-45",
    ),
)
RAW: tuple[bytes, ...] = (
    *(b"", b" ", b"\n" * 50, b"null", b"[]", b"{}", b'"x"', b"1", b"NaN", b"{", b"[" * 3_000, b"9" * 9_000),
    *(b"\xff\xfe\x00", "Löwe".encode("latin-1"), "x".encode("utf-16"), b"\0" * 100, b"\xef\xbb\xbf{}", b"PK\x03\x04"),
    *(
        b"<html><body>404</body></html>",
        b"a,b\n1",
        b"a: [",
        b"a: !!int x",
        b"- - - x",
        b'{"a": "\\ud800"}',
        b"a" * 300_000,
    ),
)


@dataclass(frozen=True)
class Sources:
    """Valid files of every format, from one small run."""

    texts: Mapping[str, bytes]
    run: Path
    boards: Path

    @classmethod
    def of(cls, run: Path, boards: Path) -> Sources:
        """Read those of a run, and write the rest."""
        record = json.loads(EXAMPLE.with_suffix(".json").read_text(encoding="utf-8"))
        question = record["recoverability_questions"][0]
        scene = record["scenes"][0]
        changed = {"scene_index": 1, "scene_text": "The lion sleeps.", "changed_fields": ["scene_text"]}
        variant = {"variant_id": "v1", "base_story_id": record["story_id"], "contrastive_type": "consequence"}
        suite = {
            "about": "two rows",
            "baseline": "base",
            "focus": "full",
            "rows": {"base": None, "full": {"compass": {"delta": 0.5}}},
        }
        pair = {
            "question": "q",
            "gold_answer": "a fox",
            "accepted_answers": ["a fox"],
            "answer": "fox",
            "label": "right",
        }
        texts = {
            "text": EXAMPLE.with_suffix(".txt").read_bytes(),
            "record": json.dumps(record).encode(),
            "plan": (run / "plan.json").read_bytes(),
            "answers": (run / "answers.jsonl").read_bytes(),
            "scores": (run / "scores.json").read_bytes(),
            "run.json": (run / "run.json").read_bytes(),
            "candidates": (run / "candidates.json").read_bytes(),
            "storyboard": (run / "storyboard.json").read_bytes(),
            "variants": json.dumps({**variant, "scenes": [scene], "changed_scene": changed}).encode(),
            "preset": yaml.safe_dump({"renderer": "block", "mode": "base", "seeds": [1], "panels": 5}).encode(),
            "suite": yaml.safe_dump(suite).encode(),
            "methods": yaml.safe_dump(
                [{"name": "a", "renderer": "block"}, {"name": "b", "renderer": "sketch"}]
            ).encode(),
            "lock": (ROOT / "configs" / "presets" / "vector.yaml").read_bytes(),
            "judgments": f"story_id,question_id,right\n{record['story_id']},{question['question_id']},1\n".encode(),
            "pairs": json.dumps(pair).encode(),
            **_more(),
        }
        return cls(texts, run, boards)


def _picture(form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    Image.radial_gradient("L").resize((96, 64)).convert("RGB").save(file, form, **options)
    return file.getvalue()


def _more() -> dict[str, bytes]:
    """Formats that no run writes: what other programs save, models' own files, a command's with workers."""
    weights = {"conditioner.embedders.1.model.x": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    header = json.dumps(weights).encode()
    shot = {name: {"en": "The fox runs."} for name in SHOT} | {"Characters Appearing": {"key": ["Fox"]}}
    person = {
        "name_en": "Fox",
        "name_ch": "F",
        "tag": "realistic_human",
        "prompt_en": "a red fox",
        "num_of_appearance": 1,
    }
    board = {"uid": "AAAA1", "url": "board-1.png", "action": "The fox runs.", "duration": 2000, "layers": {}}
    made: dict[str, Any] = {
        "mapping": {"keys": {"story": {"story_text": ["tale"]}}, "values": {}},
        "storyboarder": {
            "version": "3.0.0",
            "defaultBoardTiming": 2000,
            "boards": [board, {**board, "uid": "AAAA2", "url": "board-2.png"}],
        },
        "map": {"scene": {"workflow": "scene.json", "prompt": "6.text", "seed": "3.seed", "characters": ["12.image"]}},
        "workflow": WORKFLOW,
        "vistory": {"Characters": {"Fox": person}, "Shots": [{"index": 1, **shot}, {"index": 2, **shot}]},
        "model_index": {"_class_name": "FluxPipeline", "transformer": ["diffusers", "FluxTransformer2DModel"]},
        "config": {"architectures": ["Qwen2VLForConditionalGeneration"], "model_type": "qwen2_vl", "text_config": {}},
        "adapter": {"base_model_name_or_path": "nobody/nothing", "peft_type": "LORA"},
        "job": {
            "format": 1,
            "command": ["run", "x.txt"],
            "folder": "/nowhere",
            "host": "h",
            "pid": 1,
            "begun": 1.0,
            "updated": 2.0,
            "status": "ended",
        },
    }
    return {
        **{name: json.dumps(value).encode() for name, value in made.items()},
        "ratings": b"rater,story_id,method,visual\nr1,lion_and_mouse,a,1\nr2,lion_and_mouse,a,0\n",
        "picture": _picture("PNG"),
        "pdf": _picture("PDF", save_all=True, append_images=[Image.linear_gradient("L").convert("RGB")]),
        "weights": struct.pack("<Q", len(header)) + header + bytes(4),
        "gguf": struct.pack("<4sIQQ", b"GGUF", 3, 0, 0),
    }


def broken(kind: str, source: bytes, dice: random.Random) -> bytes:
    """Return a valid file changed in one of the ways in which files are broken, or one that its schema half allows."""
    if kind in MODELS and dice.random() < SCHEMATIC:
        return text_of(kind, dice.randrange(1 << 30)).encode()
    ways: tuple[Callable[[bytes, random.Random], bytes], ...] = (
        _raw,
        _cut,
        _flipped,
        _repeated,
        _values,
        _values,
        _values,
    )
    return dice.choice(ways)(source, dice)


def _raw(source: bytes, dice: random.Random) -> bytes:
    return dice.choice(RAW)


def _cut(source: bytes, dice: random.Random) -> bytes:
    return source[: dice.randrange(len(source))]


def _flipped(source: bytes, dice: random.Random) -> bytes:
    data = bytearray(source)
    for _ in range(dice.randrange(1, 20)):
        data[dice.randrange(len(data))] = dice.randrange(256)
    return bytes(data)


def _repeated(source: bytes, dice: random.Random) -> bytes:
    start = dice.randrange(len(source))
    part = source[start : start + dice.randrange(1, 200)]
    return source[:start] + part * dice.randrange(2, 60) + source[start:]


def _values(source: bytes, dice: random.Random) -> bytes:
    """Change values of a JSON, JSON Lines or YAML file, so that it stays one."""
    try:
        rows = [json.loads(line) for line in source.splitlines() if line.strip()]
    except ValueError:
        rows = []
    try:
        rows = rows or [json.loads(source)]
        write = json.dumps
    except ValueError:
        try:
            rows, write = [yaml.safe_load(source)], yaml.safe_dump  # type: ignore[assignment]
        except yaml.YAMLError:
            return _flipped(source, dice)
    at = dice.randrange(len(rows))
    rows[at] = changed(rows[at], dice)
    text = "\n".join(write(row) for row in rows)
    return text.replace('"\\u0000"', '"\\ud800"').encode("utf-8", "surrogatepass")


def changed(value: Any, dice: random.Random) -> Any:
    """Return a tree with one to three of its values or keys changed."""
    tree = copy.deepcopy(value)
    for _ in range(dice.randrange(1, 4)):
        node, steps = tree, dice.randrange(1, 7)
        while steps and isinstance(node, (dict, list)) and node:
            key = dice.choice(list(node) if isinstance(node, dict) else range(len(node)))
            steps -= 1
            inner = node[key]
            if steps and isinstance(inner, (dict, list)) and inner:
                node = inner
                continue
            way = dice.randrange(5)
            if way == 0:
                del node[key]
            elif way == 1 and isinstance(node, list):
                node.append(copy.deepcopy(inner))
            elif way == 2 and isinstance(node, dict):
                node[dice.choice(["x", "", "story_id", "\u202e", "a" * 300])] = copy.deepcopy(inner)
            elif way == 3 and isinstance(inner, str):
                node[key] = inner + dice.choice(["\u0000", "'", '"', "<script>", "\ud83d\ude00", "x" * 2_000])
            else:
                node[key] = copy.deepcopy(dice.choice(ODD))
            break
    return tree if dice.random() > 0.05 else copy.deepcopy(dice.choice(ODD))


# Which verb reads which file, and by which words. `{}` is the broken file; the others are valid.

Words = tuple[str, ...]
OTHER = str(EXAMPLE.with_name("fox_and_crow.json"))
STORY, RECORD = str(EXAMPLE.with_suffix(".txt")), str(EXAMPLE.with_suffix(".json"))
SCHEMATIC = 0.25
"""How many of the files that have a schema are made from it."""
SHOT = ("Plot Correspondence", "Setting Description", "Shot Perspective Design", "Static Shot Description")
WORKFLOW = {
    "3": {"class_type": "KSampler", "inputs": {"seed": 1}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "x"}},
    "12": {"class_type": "LoadImage", "inputs": {"image": "x.png"}},
}
COMFY = (
    *(
        "run",
        STORY,
        "--renderer",
        "comfyui:map.yaml",
        "--renderer-option",
        "base_url=http://127.0.0.1:9",
        "--dry-run",
    ),
    *SMALL[2:],
)
DRAWN = ("--judge", "pixel", "--mode", "base", "--seeds", "1", "--dry-run")
VERBS: tuple[tuple[str, str, Words], ...] = (
    ("text", "x.txt", ("plan", "{}")),
    ("text", "x.txt", ("read", "{}")),
    ("record", "x.json", ("read", "{}", "--json")),
    ("picture", "x.png", ("cut", "{}", "--out", "o")),
    ("pdf", "x.pdf", ("cut", "{}", "--out", "o")),
    ("record", "x.jsonl", ("people", "review", "{}", "--out", "o")),
    ("ratings", "x.json", ("people", "adjudicate", "{}", "--study", "IN", "--out", "o")),
    ("text", "x.txt", ("run", "{}", *SMALL)),
    ("record", "x.json", ("plan", "{}", "--renderer", "block")),
    ("record", "x.json", ("run", "{}", *SMALL)),
    ("record", "x.jsonl", ("plan", "{}#lion_and_mouse", "--renderer", "block")),
    ("record", "x.jsonl", ("bench", "validate", "{}")),
    ("record", "x.json", ("bench", "stats", "{}")),
    ("record", "x.jsonl", ("bench", "split", "{}", "--force")),
    ("record", "x.jsonl", ("bench", "questions", "{}", "--out", "q.jsonl")),
    ("record", "x.jsonl", ("bench", "variants", "{}", "--out", "v.jsonl")),
    ("record", "x.jsonl", ("bench", "plans", "{}", "--planner", "scene")),
    ("record", "x.jsonl", ("score", "{}", "--answers", "RUN", *FEW)),
    ("record", "x.jsonl", ("eval", "{}", "--boards", "BOARDS", "--judge", "pixel", *FEW, "--out", "o")),
    ("record", "x.jsonl", ("ablate", "{}", "--rows", "base", *SMALL[:6], *FEW, "--out", "o")),
    (
        "record",
        "x.jsonl",
        ("compare", "{}", "--renderer", "block", "--judge", "pixel", *FEW, "--size", "96x64", "--out", "o"),
    ),
    ("record", "x.jsonl", ("tune", "{}", *SMALL[:6], "--settings", "3", *FEW, "--out", "o")),
    ("plan", "x.json", ("run", STORY, "--plan", "{}", *SMALL)),
    ("plan", "x.json", ("cast", STORY, "--plan", "{}", "--renderer", "block")),
    ("answers", "x.jsonl", ("score", RECORD, "--answers", "{}", *FEW)),
    ("answers", "x.jsonl", ("run", STORY, *SMALL[:2], "--size", "96x64", "--mode", "base", "--judge", "recorded:{}")),
    ("answers", "x.jsonl", ("bench", "ensemble", RECORD, "--answers", "{}", "--gold", "GOLD")),
    ("scores", "x.json", ("score", RECORD, "--answers", "RUN", "--before", "{}", *FEW)),
    ("scores", "x.json", ("score", RECORD, "--answers", "RUN", "--ensemble", "{}", *FEW)),
    ("variants", "contrastive_variants.jsonl", ("score", RECORD, "--answers", "RUN", "--variants", "{}", *FEW)),
    ("variants", "contrastive_variants.jsonl", ("bench", "validate", "{}")),
    ("preset", "x.yaml", ("run", STORY, "--preset", "{}", *SMALL)),
    ("preset", "x.yaml", ("plan", STORY, "--preset", "{}")),
    ("suite", "x.yaml", ("ablate", STORY, "--suite", "{}", *SMALL[:6], *FEW, "--out", "o")),
    (
        "methods",
        "x.yaml",
        ("compare", STORY, "--methods", "{}", "--judge", "pixel", *FEW, "--size", "96x64", "--out", "o"),
    ),
    ("lock", "x.yaml", ("run", STORY, "--lock", "{}", *SMALL)),
    ("judgments", "x.csv", ("bench", "calibrate", "{}")),
    ("judgments", "x.csv", ("score", RECORD, "--answers", "RUN", "--human", "{}", *FEW)),
    ("judgments", "x.csv", ("ablate", STORY, "--rows", "base", "--human", "{}", *SMALL[:6], *FEW, "--out", "o")),
    ("pairs", "x.jsonl", ("bench", "match", "{}")),
    ("run.json", "run.json", ("report", "IN")),
    ("run.json", "run.json", ("redo", "IN", "--frame", "1", "--seed", "7")),
    ("candidates", "candidates.json", ("report", "IN")),
    ("candidates", "candidates.json", ("redo", "IN", "--frame", "2", "--seed", "7")),
    ("storyboard", "storyboard.json", ("report", "IN")),
    ("scores", "scores.json", ("report", "IN")),
    ("plan", "plan.json", ("redo", "IN", "--frame", "1", "--seed", "7")),
    ("answers", "answers.jsonl", ("report", "IN")),
    ("storyboard", "storyboard.json", ("eval", RECORD, "--boards", "BOARD", "--judge", "pixel", *FEW, "--out", "o")),
    ("storyboard", "storyboard.json", ("run", RECORD, "--renderer", "folder:BOARD", *SMALL[2:4], "--mode", "base")),
    ("storyboard", "storyboard.json", ("export", "IN", "--to", "cbz", "--out", "o.cbz")),
    ("storyboard", "storyboard.json", ("export", "IN", "--to", "otio", "--out", "o.otio")),
    ("storyboard", "storyboard.json", ("export", "IN", "--to", "png", "--out", "o")),
    ("plan", "plan.json", ("export", "IN", "--to", "storyboarder", "--out", "o")),
    ("run.json", "run.json", ("export", "IN", "--to", "cbz", "--out", "o.cbz")),
    ("answers", "answers.jsonl", ("export", "IN", "--to", "hub-results", "--dataset", "a/b", "--out", "o")),
    ("plan", "plan.json", ("metrics", "IN", "--metric", "continuity", "--out", "o")),
    ("record", "x.jsonl", ("metrics", "BOARDS", "--stories", "{}", "--metric", "continuity", "--out", "o")),
    ("record", "x.jsonl", ("people", "pack", "{}", "--boards", "BOARDS", "--raters", "3", "--out", "o")),
    ("ratings", "x.csv", ("people", "score", "{}", "--out", "o")),
    ("record", "x.jsonl", ("bench", "convert", "{}", "--out", "c.jsonl")),
    ("mapping", "x.yaml", ("bench", "convert", RECORD, "--mapping", "{}", "--out", "c.jsonl")),
    ("mapping", "x.yaml", ("run", RECORD, "--mapping", "{}", *SMALL)),
    ("record", "x.jsonl", ("bench", "publish", "{}", "--name", "a/b", "--out", "o")),
    ("variants", "x.jsonl", ("bench", "contrasts", RECORD, "--variants", "{}", "--out", "c.jsonl")),
    ("record", "x.jsonl", ("bench", "mix", "{}", OTHER, "--out", "m.jsonl")),
    ("vistory", "d/01/story.json", ("bench", "vistorybench", "d", "--out", "o")),
    ("record", "x.jsonl", ("bench", "remembered", "{}", "--judge", "pixel")),
    ("answers", "x.jsonl", ("bench", "tables", RECORD, "--answers", "{}", *FEW, "--out", "o")),
    ("storyboarder", "x.storyboarder", ("run", "--import", "{}", "--judge", "pixel", "--dry-run")),
    ("pdf", "x.pdf", ("run", STORY, "--import", "{}", "--judge", "pixel", "--dry-run")),
    ("map", "map.yaml", COMFY),
    ("workflow", "scene.json", COMFY),
    ("picture", "cast/Lion.png", (*COMFY, "--characters", "cast")),
    ("weights", "x.safetensors", ("run", STORY, "--renderer", "sdxl:{}", *DRAWN)),
    ("gguf", "x.gguf", ("run", STORY, "--renderer", "flux:{}", *DRAWN)),
    ("model_index", "m/model_index.json", ("run", STORY, "--renderer", "flux:m", *DRAWN)),
    ("config", "m/transformer/config.json", ("run", STORY, "--renderer", "flux:m", *DRAWN)),
    (
        "config",
        "m/config.json",
        ("eval", RECORD, "--boards", "BOARDS", "--judge", "local:m", "--dry-run", "--out", "o"),
    ),
    ("adapter", "a/adapter_config.json", ("train", "merge", "a", "--out", "o")),
    ("record", "x.jsonl", ("train", "planner", "{}", "--base", "nobody/nothing", "--out", "o")),
    ("job", "o/workers/job.json", ("jobs", "list", "o")),
)
BESIDE = {
    "map.yaml": "map",
    "scene.json": "workflow",
    "m/x.safetensors": "weights",
    "m/model_index.json": "model_index",
    "m/transformer/config.json": "config",
    "m/transformer/x.safetensors": "weights",
    **{f"images/board-{number}.png": "picture" for number in (1, 2)},
}
"""Valid files that lie beside the broken one, by the format that each has."""
APART = {
    "renderers": "reads no file",
    "planners": "reads no file",
    "judges": "reads no file",
    "doctor": "reads the cache alone: tests/core/test_damage.py",
    "new": "reads no file",
    "desk": "a server: tests/app/test_desk.py",
    "mcp": "a server: tests/app/test_mcp.py",
    "store": "reads the cache alone: tests/core/test_damage.py",
    "jobs watch": "waits for another process",
    "jobs stop": "ends the process that the file names",
    "jobs resume": "begins what the file names",
}
"""Verbs that are given no bad file here, and why."""
CHEAP = tuple(row for row in VERBS if not any(word in row[2] for word in ("run", "ablate", "compare", "tune", "eval")))
"""Those that end without drawing or judging: most of a run's cases are about reading, not about what follows."""

FLAGS: tuple[Words, ...] = (
    *(("--seeds", word) for word in ("", ",", "1,1", "-1", "x", "9" * 30)),
    *(("--size", word) for word in ("0x0", "99999x99999", "x", "97x64", "-1x2")),
    *(("--panels", word) for word in ("0", "25", "-1", "nan", "9" * 20)),
    *(("--mode", word) for word in ("", "x", "../x", "full;ls")),
    *(("--preset", word) for word in ("", "x", "../x.yaml", "/dev/zero", "/etc/passwd", "x" * 5_000, ".yaml")),
    *(
        ("--renderer", word)
        for word in ("", ":", "a.b:C", "os:system", "sketch:" + "x" * 500, "builtins:int", "folder:/", "json:loads")
    ),
    *(
        ("--judge", word)
        for word in ("", ":", "a.b:C", "os:getpid", "recorded:/dev/zero", "openai:", "builtins:dict", "local:/")
    ),
    *(("--planner", word) for word in ("", ":", "os:getcwd", "builtins:object", "gemma-st:/")),
    *(
        ("--base-url", word)
        for word in ("x", "http://", "http://a b", "http://h:abc", "ftp://x", "http://[", "http://u:p@h")
    ),
    *(("--max-cost", word) for word in ("-1", "nan", "inf", "x")),
    *(("--patience", word) for word in ("-1", "nan", "inf", "x")),
    *(("--renderer-option", word) for word in ("", "=", "x", "x=1", "\u202e=1", "'")),
    *(("--plan", word) for word in ("/dev/zero", "/dev/random", ".", "", "/proc/self/mem", "x" * 5_000)),
    *(("--lock", word) for word in ("/dev/zero", ".", "", "/proc/self/environ")),
    *(("--similarity", word) for word in ("", "x", "os:getpid", "builtins:int", "open-clip:/")),
    *(("--matching", word) for word in ("", "x", "nli:", "llm:", "llm:os:system")),
    *(("--out", word) for word in ("/proc/x", "/dev/null", "", "\u202e", "x" * 300, "RUN/run.json")),
    *(
        (f"--{name}", word)
        for name in ("answers", "variant", "memory", "style", "verify-reuse")
        for word in ("", "x", "-1", "9" * 400)
    ),
)


def case(number: int, sources: Sources, folder: Path) -> list[str]:
    """Write the files of case `number` into the empty `folder`, and return its command line."""
    dice = random.Random(f"bad input {number}")
    if number % 8 == 7:
        return ["run", STORY, *SMALL[:8], *dice.choice(FLAGS)]
    kind, name, words = dice.choice(CHEAP if number % 8 < 6 else VERBS)
    inside = "IN" in words or ("BOARD" in " ".join(words) and "BOARDS" not in words)
    if inside:
        _copy(sources, folder, board="IN" not in words)
    for beside, text in BESIDE.items():
        (folder / beside).parent.mkdir(parents=True, exist_ok=True)
        (folder / beside).write_bytes(sources.texts[text])
    place = (folder / "in" if "IN" in words else folder / "board" / "lion_and_mouse" if inside else folder) / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    way = dice.randrange(40)
    if way == 0:
        os.mkfifo(place)
    elif way == 1:
        place.mkdir()
    elif way == 2:
        place.symlink_to(dice.choice(["/dev/zero", "/dev/random", name, "/nowhere"]))
    elif way == 3:
        with place.open("wb") as file:
            file.truncate(1 << dice.randrange(20, 42))
    elif way != 4:
        place.write_bytes(broken(kind, sources.texts[kind], dice))
    (folder / "gold.csv").write_bytes(sources.texts["judgments"])
    known = {
        "{}": name,
        "RUN": str(sources.run),
        "BOARDS": str(sources.boards),
        "BOARD": "board",
        "IN": "in",
        "GOLD": "gold.csv",
    }
    return [_filled(word, known) for word in words]


def _filled(word: str, known: Mapping[str, str]) -> str:
    if word in known:
        return known[word]
    return word.replace("{}", known["{}"]).replace("folder:BOARD", "folder:board")


def _copy(sources: Sources, folder: Path, *, board: bool) -> None:
    """A run's folder, or a board's, whose pictures are links: they are only read."""
    target = folder / "board" / "lion_and_mouse" if board else folder / "in"
    target.mkdir(parents=True)
    for path in sources.run.iterdir():
        if path.is_file() and (path.name == "storyboard.json" or not board) and path.name != ".lock":
            (target / path.name).write_bytes(path.read_bytes())
    (target / "panels").mkdir()
    for path in (sources.run / "panels").iterdir():
        (target / "panels" / path.name).symlink_to(path)
