"""Record what the command line does before a refactoring, and compare it afterwards.

    python -m benchmarks.corpus record OUT [--katha PATH] [--only GROUP ...]
    python -m benchmarks.corpus compare OLD NEW [--only GROUP ...] [--ignore GLOB ...]

Only the script `katha` is driven, as a subprocess, so nothing here depends on modules that move. OUT has `work/` (where
every command ran, with what it left), `commands/GROUP/NN.json` (command, exit code, both streams) and `corpus.json`.
A group is a chain of commands with a cache of its own. The groups `first/*` come first; the others read what they left.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[1]
_NAMES = sorted(path.stem for path in (_ROOT / "examples").glob("*.json"))
_FOUR = ("lion_and_mouse", "fox_and_crow", "tortoise_and_hare", "crow_and_pitcher")

# Judges and a renderer from outside. A reply depends on the judge's name, the question and the evidence alone, so that
# the order of calls cannot matter; `gold.json` (accepted answers by question) lets a judge be right more often by text.
_PLUGINS = '''
import hashlib, io, json
from pathlib import Path
from PIL import Image
from katha.protocols import Capabilities, Judge, JudgeReply, Renderer

GOLD = json.loads((Path(__file__).parent / "gold.json").read_text(encoding="utf-8"))
CHANCE = {"text": 90, "image": 55, "text+image": 85}

class Scripted(Judge):
    """Answers as a hash says."""
    metered = True
    def spec(self):
        return {"name": type(self).__name__.lower(), "version": 1}
    def ask(self, evidence, prompts):
        for prompt in prompts:
            told = repr((self.spec(), prompt.question, evidence.condition)).encode("utf-8")
            hashed = hashlib.sha256(told + b"".join(evidence.images)).digest()
            yield self.reply(int.from_bytes(hashed[:6], "big"), evidence.condition, prompt)
    def reply(self, n, condition, prompt):
        gold, right = GOLD.get(prompt.question, []), n % 100 < CHANCE[condition]
        if prompt.options is None:
            said = gold[n % len(gold)] if right and gold else ("Somebody runs away", "Unclear", "a long rest")[n % 3]
            said = f"The images show that {said}" if n % 11 == 0 else said
        else:
            good = [option for option in prompt.options if option in gold]
            said = good[0] if right and good else prompt.options[n % len(prompt.options)]
        support = {"image_support": ("supported", "ambiguous")[n % 17 == 0]}
        told = support if condition == "text+image" else {"evidence_status": ("recoverable", "unclear")[n % 13 == 0]}
        return JudgeReply("ok", said, confidence=("low", "medium", "high")[n // 7 % 3], **told)
class Second(Scripted): """Another voice."""
class Faulty(Scripted):
    """Fails in every fourth reply, in four ways and by an answer that is not an option."""
    def reply(self, n, condition, prompt):
        if n % 20 < 5:
            status = ("refused", "truncated", "unparseable", "transport_failed", "ok")[n % 20]
            return JudgeReply(status, "none of these" if status == "ok" else None, raw="...", error="made to fail")
        return super().reply(n, condition, prompt)
class Broken(Scripted):
    """A plug-in with a bug."""
    def ask(self, evidence, prompts):
        raise ValueError("no answer today")

class Blocks(Renderer):
    """Twelve blocks of colour that depend on prompt and seed."""
    capabilities, spec = Capabilities(default_size=(96, 64)), lambda self: {"name": "blocks"}
    def render_board(self, requests):
        return map(self.insert_frame, requests)
    def insert_frame(self, request, context=None):
        out, data = io.BytesIO(), hashlib.shake_128(f"{request.prompt}{request.seed}".encode("utf-8")).digest(36)
        Image.frombytes("RGB", (4, 3), data).resize((request.width, request.height), 0).save(out, "PNG")
        return out.getvalue()
'''

# Commands, one a line; a line that begins with `+` goes on with the line before, and `|` separates several ends of one
# beginning. {o}: the group's folder; {t}, {j}: a story as text and record; others: `_FIELDS`. `@`: for the recorder.
_FIELDS = {"A": "inputs/all.jsonl", "F": "inputs/four.jsonl", "R": "inputs/three.jsonl", "S": "inputs/split.jsonl"}
_FIELDS |= {"B": "--boards full=boards/full --boards plain=boards/plain", "M": "kc.parts", "X": "first/lion_and_mouse"}
_EACH_STORY = "run {t} --out {o}/text\nrun {j} --json --out {o}/record\n"
_STORIES = {
    "ant_and_grasshopper": "run {j} --mode bridge_only --out {o}/a\nrun {t} --planner caption --mode base --out {o}/b",
    "crane_and_crab": "run {t} --planner direct --mode random_frame --seeds 42 --out {o}/direct",
    "crow_and_pitcher": "run {j} --planner scene --mode rerank_only --out {o}/scene\nplan {j} --planner scene",
    "doves_and_net": """run {j} --judge {M}:Scripted --answers free | --mode non_semantic_frame --out {o}/free
        + | --matching exact-set --variant uncertain --json --out {o}/exact""",
    "fox_and_crow": """plan {t}\n@plan {o}/plan.json
        run {t} --plan {o}/plan.json --mode caption_bridge --out {o}/planned""",
    "goose_golden_eggs": "run {j} --mode | path --out {o}/path | two_bridges --json --out {o}/two",
    "lion_and_mouse": """run {j} --mode random_bridge --out {o}/random\n@copy {o}/text {o}/redo
        redo {o}/redo | --frame 3 --seed 7 | --frame 2 --seed 9 --json
        report {o}/redo --sheet {o}/sheet.png\nrun {t} --out {o}/text""",
    "monkey_and_crocodile": """run {j} --mode replan --judge sketch-reader --judge {M}:Scripted --out {o}/replan
        run {j} --mode replace_weaker --judge {M}:Faulty --seeds 42,7 --out {o}/faulty""",
    "tortoise_and_hare": "run {j} | --planner oracle --out {o}/oracle | --mode base --seeds 42 --out {o}/base",
    "turtle_and_geese": """run {t} --panels 4 --renderer sketch:ink --size 384x256 --mode full_always --out {o}/ink
        run {t} --renderer {M}:Blocks --mode random_path --judge {M}:Second --out {o}/blocks
        run {j} --mode base --judge {M}:Scripted --out {o}/limited --max-calls | 20 | 2000""",
}
_OFFLINE = """bench stats | {A} --json | examples/lion_and_mouse.json
    bench validate | {A} --json | {A} --complete | inputs/wrong.jsonl
    bench split | {A} --out {o}/split.json --force | inputs/unsplit.jsonl --out {o}/other.json --seed 7 --json
    bench match inputs/pairs.jsonl --rule | lemma-set | exact-set --json | keyword --json
    bench questions {F} --out {o}/questions.jsonl\nbench variants {A} --out {o}/variants.jsonl --json
    bench | plans {j} --planner rule --planner oracle | calibrate inputs/people.csv --resamples 500 --json
    plan | {t} --style ink | examples/fox_and_crow.json --planner caption
    doctor\nrenderers | --json |\nplanners --json\njudges --json\nnew renderer corpus --out {o}/package
    | --help | run --help | redo --help | plan --help | report --help | eval --help | ablate --help | compare --help
    + | tune --help | score --help | bench --help | train --help"""
_SECOND = {
    "ablate": """ablate {R} --suite length --out {o}/length | | --json
        ablate {R} --suite components --human inputs/labels.csv --out {o}/components
        ablate {R} --suite heldout --rows full_same,base_same,full_held_out,base_held_out --json --out {o}/heldout
        ablate {R} --suite matching --answers free --judge {M}:Scripted --judge {M}:Second --out {o}/matching""",
    "limits": """
        ablate {R} --rows base,rerank_only --judge {M}:Scripted --seeds 42,7 --out {o}/limited --max-calls | 50 | 5000
        ablate {R} --rows base,rerank_only --judge {M}:Broken --seeds 42,7 --out {o}/bug
        ablate {R} --suite planners --judge {M}:Scripted --seeds 42 --out {o}/planners""",
    "compare": """compare {R} --planner rule --planner scene --mode base --mode full --seeds 42 --out {o}/crossed
        compare {R} --methods inputs/methods.yaml --judge {M}:Scripted --judge {M}:Faulty --json --out {o}/listed
        compare {R} --renderer {M}:Blocks --mode base --mode random_frame --out {o}/limited --judge {M}:Scripted
        + --max-calls | 30 | 3000
        compare {t} --renderer {M}:Blocks --mode base --mode full --judge {M}:Broken --seeds 1 --out {o}/bug
        compare {t} --renderer sketch --renderer sketch:ink --seeds 42,123 --out {o}/two | | --json""",
    "errors": """run | none.txt | inputs/empty.txt | inputs/german.txt | inputs/broken.json | {A}#nobody | {j} --nope |
        + | inputs/wrong.jsonl#lion_and_mouse | {t} --planner oracle | {j} --mode fulll | {j} --planner nope
        run {j} --judge | nope | os.path:nothing | no.such.module:Class | openai:gpt-4o | recorded:none.jsonl
        run {j} --renderer | skech | sketch:crayon | sketch --renderer-option nope=1
        run {j} | --seeds a,b | --seeds 1,1 | --size 97x64 | --panels 1 | --answers maybe | --matching vibes | --review
        + | --preset nope | --variant neutral | --lock none.yaml | --lock inputs/methods.yaml | --max-calls -1
        + | --plan inputs/broken.json | --plan first/fox_and_crow/plan.json | --out first/fox_and_crow/text
        + | --seeds 9 --out {X}/record | --out inputs/german.txt | --out inputs/foreign
        run {j} --judge {M}:Broken --mode base --seeds 42 --out | {o}/bug | {o}/budget --max-calls 100000
        redo | inputs/foreign --frame 1 --seed 1 | {X}/text --frame 9 --seed 1
        report | none | {X}/text --sheet {o}/sheet.exe\neval inputs/twice.jsonl {B} --out {o}/x
        eval {A} --out {o}/x --boards | none | boards/plain --controls nope | boards/plain --evaluator nope
        eval {A} {B} --out | inputs/german.txt | inputs/foreign
        ablate {R} --rows base,full --out | inputs/german.txt | inputs/foreign
        compare {R} --mode base --mode full --out | inputs/german.txt | inputs/foreign
        tune {S} --lock {o}/lock.yaml --out | inputs/german.txt | inputs/foreign
        ablate {R} --out {o}/x | --suite nope | --rows nope | --split test\ntune {S} --out {o}/x --split | nope | test
        compare {R} --out {o}/x | --renderer sketch | --mode base --mode base | --methods inputs/broken.json
        score --answers | none.jsonl {A} --out {o}/x.json | inputs/wrong.jsonl {A} --out {o}/x.json
        + | inputs/wrong.jsonl {A} --out inputs | none.jsonl inputs/foreign --out {o}/x.json
        bench | stats none | match inputs/broken.json | calibrate inputs/german.txt
        new renderer Bad_Name --out {o}/bad\ntrain planner none.jsonl --out {o}/adapter""",
    "evaluate": """bench variants {F} --out {o}/variants.jsonl\neval {F} {B} --controls all --out {o}/both | | --json
        eval {F} --boards broken=boards/broken --resamples 500 --json --out {o}/broken
        eval {F} --boards plain=boards/plain | --judge recorded:{o}/both/answers.jsonl --out {o}/recorded
        + | --dry-run --json --out {o}/dry | --questions steering --out {o}/steering
        + | --variants {o}/variants.jsonl --out {o}/pairs | --evaluator object-overlap --out {o}/overlap
        + | --evaluator tifa --out {o}/tifa | --evaluator dsg --json --out {o}/dsg
        score {o}/pairs --answers {o}/pairs --variants {o}/variants.jsonl --out {o}/pairs.json --json
        run examples/fox_and_crow.json --renderer folder:boards/plain --bridge-renderer sketch --out {o}/folder""",
    "scripted": """eval {A} {B} --judge {M}:Scripted --judge {M}:Second --answers free --controls blank --out {o}/free
        eval {A} {B} --judge recorded:{o}/free/answers.jsonl#scripted --judge recorded:{o}/free/answers.jsonl#second
        + --answers free --matching exact-set --out {o}/replay
        eval {F} --boards boards/full | --judge {M}:Scripted --judge sketch-reader --out {o}/ensemble
        + | --judge {M}:Broken --out {o}/bug | --judge {M}:Faulty --out {o}/faulty --max-calls 60
        + | --judge {M}:Faulty --out {o}/faulty --max-calls 6000 --json
        score {o}/free --json --answers {o}/free | --matching exact-set --out {o}/exact/scores.json
        + | --questions all --resamples 500 --out {o}/all.json | --out {o}/lemma.json
        + | --before {o}/exact/scores.json --power 5 --out {o}/after.json
        + | --answers {o}/ensemble --questions steering --seed 7 --out {o}/merged.json
        bench ensemble {A} --answers {o}/free/answers.jsonl --gold inputs/labels.csv --out {o}/weights.json --json
        score {o}/free --answers {o}/free | --ensemble {o}/weights.json --out {o}/weighed.json --json
        + | --before {o}/exact/scores.json --human inputs/people.csv --out {o}/human.json
        score {X}/text --answers {X}/text --out {o}/run.json --json""",
    "tune": """tune {S} --settings 400 --resamples 200 --seeds 42,123 --out {o}/tuning
        + --lock | {o}/compass.lock.yaml | {o}/again.lock.yaml --json
        ablate {S} --rows base,full --seeds 42,123 --lock {o}/compass.lock.yaml
        + --split | test --out {o}/locked | validation --out {o}/refused
        run {S}#turtle_and_geese --seeds 42,123 --lock {o}/compass.lock.yaml --json --out {o}/run
        tune {R} --settings 50 --judge {M}:Broken --lock {o}/bug.lock.yaml --out {o}/bug""",
}

# What two recordings of one program do not share is replaced in these files and in what people read; all else is bytes.
_NORMALISED = re.compile(r".*(run|eval|ablation|compare|tuning|result)\.json|.*\.(html|log|lock\.yaml)")
_SKIPPED = re.compile(r".*(\.sqlite.*|/\.lock|\.pyc)")
_VOLATILE = re.compile(  # `pictures` and `fingerprint` hash the times of picture files, and `identity` what has them
    r"(?s)\b\d+(\.\d+)?(?= ?(s|ms|seconds|minutes)\b)|<dt>(timings|versions)</dt>.*?</dd>"
    r'|("|&#34;)(timings|versions|seconds|run_id|pictures|fingerprint|identity)\4: (\{[^}]*\}|[^,}\s]+)'
)
_READS = re.compile(r"(plan|score|bench|renderers|planners|judges)\b")


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _commands(text: str) -> Iterator[str]:
    """Yield the commands of a block: lines joined at `+`, each end set behind its beginning."""
    for line in re.sub(r"\n\s*\+", "", text).splitlines():
        head, *ends = (part.strip() for part in line.split("|"))
        yield from (f"{head} {end}".strip() for end in ends or [""])


def _write(path: Path, *rows: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows), encoding="utf-8")


def _make_inputs(work: Path) -> None:
    """Write the plug-ins, files of several records, people's judgments, labelled pairs, and files to be refused."""
    shutil.copytree(_ROOT / "examples", work / "examples")
    records = {name: json.loads((work / f"examples/{name}.json").read_text(encoding="utf-8")) for name in _NAMES}
    asked = [question for record in records.values() for question in record["recoverability_questions"]]
    gold: dict[str, list[str]] = {}
    for one in asked:
        gold.setdefault(one["question"], []).extend(one["accepted_answers"])
    four, inputs = [records[name] for name in _FOUR], work / "inputs"
    splits = dict.fromkeys(_NAMES[:3], "validation") | dict.fromkeys(_NAMES[-2:], "public_test")
    framed = [{"answer": f"The images show that {one['accepted_answers'][-1]}.", "label": "right"} for one in asked]
    strange = [{"answer": one["gold_answer"], "label": "wrong"} for one in [*asked[7:], *asked[:7]]]
    people = [
        f"r{n},{one['story_id']},{one['question_id']},{one['question_type']},{condition},{(at + n) % 5 > at % 3:d}"
        for at, one in enumerate(asked)
        for n, condition in product((1, 2, 3), ("text", "image", "text+image"))
    ]
    boards = enumerate(product(_NAMES, ("full", "plain")))
    scores = [f"{name},{kind},{('causal', 'moral')[n % 2]},{n * 7 % 10},{n * 3 % 10}" for n, (name, kind) in boards]
    files: dict[str, Sequence[Any]] = {
        "all.jsonl": list(records.values()),
        "four.jsonl": four,
        "three.jsonl": four[:3],
        "split.jsonl": [records[name] | {"split": split} for name, split in splits.items()],
        "unsplit.jsonl": [record | {"split": None} for record in records.values()],
        "twice.jsonl": [four[0], four[0]],
        "wrong.jsonl": [four[0] | {"recoverability_questions": [asked[0] | {"question_type": "smell"}]}],
        "pairs.jsonl": [one | said for one, said in zip(asked * 2, framed + strange, strict=True)],
        "labels.csv": ["rater,story_id,question_id,question_type,condition,right", *people],
        "people.csv": ["story_id,method,failing,human_score,judge_score", *scores],
        "methods.yaml": ["[{name: found, renderer: 'folder:boards/plain'}, {name: new, renderer: 'kc.parts:Blocks'}]"],
        "foreign/photo.txt": ["Somebody's folder."],
        "german.txt": ["Ein Löwe schlief im Wald. Eine Maus lief über seine Pfote. Sie bat um ihr Leben."],
        "broken.json": ["{"],
        "empty.txt": [],
        "../plugins/kc/__init__.py": [],
        "../plugins/kc/parts.py": [_PLUGINS],
        "../plugins/kc/gold.json": [gold],
    }
    for name, rows in files.items():
        _write(inputs / name, *rows)


def _make_boards(work: Path) -> None:
    """Lay out boards as others hand them in, from the runs of the first stage: whole, as numbered pictures, spoilt."""
    boards = work / "boards"
    for name in _NAMES:
        for part in ("storyboard.json", "panels"):
            _copy(work / f"first/{name}/record/{part}", boards / f"full/{name}/{part}")
        text = work / f"first/{name}/text"
        for frame in json.loads((text / "storyboard.json").read_text(encoding="utf-8"))["frames"]:
            if frame["kind"] == "scene":
                _copy(text / frame["image"], boards / f"plain/{name}/{frame['scene']}.png")
    for name in _FOUR:
        _copy(boards / "plain" / name, boards / "broken" / name)
    for path in (boards / "broken" / _FOUR[0]).iterdir():
        path.rename(path.with_name(f"scene_0{path.name}"))
    (boards / "broken" / _FOUR[1] / "5.png").unlink()
    (boards / "broken" / _FOUR[2] / "3.png").write_bytes(b"\x89PNG\r\n\x1a\n, but no picture")
    _copy(boards / "plain" / _FOUR[3] / "5.png", boards / "broken" / _FOUR[3] / "6.png")


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    (shutil.copytree if source.is_dir() else shutil.copy)(source, target)


def _run_group(katha: str, out: Path, cache: str, group: str, text: str) -> None:
    """Run the commands of one group in order, and keep what each said."""
    said, work = "", out / "work"
    kept = {key: value for key, value in os.environ.items() if not re.match(r"KATHA_|.*_API_KEY$", key)}
    paths = [str(work / "plugins"), *map(os.path.abspath, filter(None, kept.get("PYTHONPATH", "").split(os.pathsep)))]
    kept |= {"PYTHONPATH": os.pathsep.join(paths), "COLUMNS": "120", "TERM": "dumb", "NO_COLOR": "1"}
    story = "examples/" + (Path(group).name if "/" in group else _FOUR[0])
    fields = _FIELDS | {"t": f"{story}.txt", "j": f"{story}.json", "o": group}
    for number, line in enumerate(_commands(text), 1):
        words = shlex.split(line.format(**fields))
        if line.startswith("@copy"):
            _copy(work / words[1], work / words[2])
        elif line.startswith("@plan"):
            _write(work / words[1], said.replace("The fox", "The big fox", 3))
        else:
            done = subprocess.run([katha, *words], cwd=work, env=kept | {"KATHA_CACHE": cache}, capture_output=True)
            said = done.stdout.decode("utf-8")
            told = {"command": shlex.join(words), "exit": done.returncode, "stderr": done.stderr.decode("utf-8")}
            _write(out / f"commands/{group}/{number:02}.json", json.dumps(told | {"stdout": said}, indent=1))


def record(out: Path, katha: str, only: Sequence[str] = ("*",)) -> None:
    """Record the corpus, or the groups that `only` names by patterns, into the new folder `out`, two at a time."""
    first = {f"first/{name}": _EACH_STORY + _STORIES[name] for name in _NAMES} | {"offline": _OFFLINE}
    with tempfile.TemporaryDirectory(prefix="katha-corpus-") as caches, ThreadPoolExecutor(2) as pool:
        _write(out / "corpus.json", {str(out): "<OUT>", caches: "<CACHE>", katha: "<KATHA>", str(_ROOT): "<ROOT>"})
        for groups, prepare in ((first, _make_inputs), (_SECOND, _make_boards)):
            chosen = {name: text for name, text in groups.items() if _fits(name, only)}
            if chosen or groups is first:
                prepare(out / "work")
            jobs = {n: pool.submit(_run_group, katha, out, f"{caches}/{n}", n, text) for n, text in chosen.items()}
            for name, job in jobs.items():
                job.result()
                print(f"Recorded {name}.", flush=True)


class _Side:
    """One of two recordings, its texts without its own paths, times and versions."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self._replaced: dict[str, str] = json.loads((out / "corpus.json").read_text(encoding="utf-8"))
        # A lock holds a hash of the code, and its own; runs under it name the latter.
        for lock in out.glob("work/**/*.lock.yaml"):
            hashes = re.findall(r"(?m)^(?:code_)?sha256: (\w+)$", lock.read_text(encoding="utf-8"))
            self._replaced |= dict.fromkeys(hashes, "<LOCK>")

    def parts(self, name: str) -> dict[str, bytes]:
        """Return what is compared of one file: its bytes, its words, or what a command said and how it ended."""
        data = (self.out / name).read_bytes()
        if name.startswith("commands/"):
            told: dict[str, Any] = json.loads(data)
            exact = _READS.match(told["command"]) and told["stdout"].startswith(("{", "["))
            return {key: (str(text) if exact else self._text(str(text))).encode() for key, text in told.items()}
        if not _NORMALISED.fullmatch(name):
            # An ablation keeps its steering answers in the order in which threads were done.
            return {"bytes": b"".join(sorted(data.splitlines(True))) if name.endswith("/steering.jsonl") else data}
        text = data.decode("utf-8")
        if name.endswith(".json"):
            text = json.dumps(json.loads(text), indent=1, sort_keys=True, ensure_ascii=False)
        return {"words": self._text(text).encode()}

    def _text(self, words: str) -> str:
        for found in sorted(self._replaced, key=len, reverse=True):
            words = words.replace(found, self._replaced[found])
        return _VOLATILE.sub("#", words)


def _first_difference(old: bytes, new: bytes) -> str:
    """Return the first line that differs, cut around the first byte that does."""
    pairs = zip_longest(old.splitlines(keepends=True), new.splitlines(keepends=True), fillvalue=b"")
    number, was, now = next((number, *pair) for number, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    at = next((n for n, (a, b) in enumerate(zip(was, now, strict=False)) if a != b), min(len(was), len(now)))
    cut = slice(max(0, at - 60), at + 100)
    return f"line {number}, byte {at + 1}\n      - {was[cut]!r}\n      + {now[cut]!r}"


def compare(old: Path, new: Path, only: Sequence[str], ignored: Sequence[str]) -> tuple[list[str], Counter[str]]:
    """Return the differences between two recordings, one text each, and how many files were compared in each way."""
    found, counts, before, after = list[str](), Counter[str](), _Side(old), _Side(new)
    names = {str(path.relative_to(side)) for side in (old, new) for path in side.glob("*/**/*") if path.is_file()}
    for name in sorted(name for name in names if _fits(name, [f"*/{group}/*" for group in only])):
        if _SKIPPED.fullmatch(name) or _fits(name, ignored):
            continue
        found += (missing := [f"{name}: missing in {side}" for side in (old, new) if not (side / name).is_file()])
        if missing:
            continue
        was, now = before.parts(name), after.parts(name)
        counts["by " + "".join(was) if len(was) == 1 else "commands"] += 1
        told = f"{name} (katha {was['command'].decode()})" if "command" in was else name
        found += [f"{told}: {key}, {_first_difference(was[key], now[key])}" for key in was if was[key] != now[key]]
    return found, counts


def main() -> None:
    """Record or compare; exit code 1 where two recordings differ."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording, comparing = verbs.add_parser("record"), verbs.add_parser("compare")
    for verb, name in ((recording, "out"), (comparing, "old"), (comparing, "new")):
        verb.add_argument(name, type=lambda text: Path(text).resolve())
    recording.add_argument("--katha", default=shutil.which("katha"), help="the script to drive; on PATH unless told")
    comparing.add_argument("--ignore", nargs="+", default=[], help="patterns of files: 'work/*.html'")
    for verb in (recording, comparing):
        verb.add_argument("--only", nargs="+", default=["*"], help="patterns of groups: 'first/*' tune")
    given = parser.parse_args()
    if given.verb == "compare":
        found, counts = compare(given.old, given.new, given.only, given.ignore)
        told = ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))
        print(*found, f"{len(found):,} differences in {told or 'nothing'}.", sep="\n")
        sys.exit(bool(found) or not counts)
    if given.katha is None or given.out.exists():
        sys.exit("No script `katha` on PATH." if given.katha is None else f"{str(given.out)!r} is there already.")
    record(given.out, str(Path(given.katha).absolute()), given.only)


if __name__ == "__main__":
    main()
