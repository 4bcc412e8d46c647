"""Everything that a stranger's file, a server, a plug-in or the machine does to katha, for as long as there is time.

`make soak` runs every part within an hour in all, `make soak MINUTES=12` within less, `make soak PART=cluster` one with
all of the time. Each part stops at its number of cases or at its share of the time, whichever comes first, and says
what it did.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from multiprocessing import forkserver
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path

import cluster_kills
import commands
from bad_inputs import EXAMPLE, SMALL, Sources, case
from calls import call
from doors import DOORS, tried
from evals import draw, records
from fault_server import KINDS, failing
from test_damage import SPOILS, fill, use
from test_pictures import encoded

from katha.errors import InputFileError
from katha.eval_bridge.judges.openai import OpenAIJudge
from katha.eval_bridge.judging.answers import iter_answers
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, evaluate
from katha.models.client import Backoff
from katha.pictures import FORMATS, decode
from katha.schema import ASKED
from katha.store import Store


@dataclass
class Part:
    """One part of a soak: how many cases it wanted and did, what was wrong, and what else was counted."""

    name: str
    wanted: int
    done: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)
    counts: dict[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        said = ", ".join(f"{name} {value:,g}" for name, value in self.counts.items())
        head = f"{self.name}: {self.done:,} of {self.wanted:,} in {self.seconds:.0f} s, {len(self.faults)} faults"
        return "\n  ".join([f"{head} ({said})" if said else head, *self.faults[:20]])


@contextmanager
def part(name: str, wanted: int) -> Iterator[Part]:
    """A part that counts its own time; what it raises is a fault of it."""
    made, started = Part(name, wanted), time.monotonic()
    try:
        yield made
    except Exception as error:
        made.faults.append(f"the harness itself: {type(error).__name__}: {error}")
    made.seconds = round(time.monotonic() - started, 1)


def sources_in(folder: Path) -> Sources:
    """Valid files of every format, made by one small run in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    story = str(EXAMPLE.with_suffix(".json"))
    made = call(["run", story, *SMALL, "--out", "run"], folder, folder / "cache", seconds=120)
    if made.code:
        raise RuntimeError(f"exit code {made.code} after {made.seconds:.0f} s, {made.megabytes} MB: {made.err}")
    board = folder / "boards" / "lion_and_mouse"
    board.mkdir(parents=True, exist_ok=True)
    frames = json.loads((folder / "run" / "storyboard.json").read_text(encoding="utf-8"))["frames"]
    for frame in frames:
        shutil.copy(folder / "run" / frame["image"], board / f"{frame['index']}.png")
    return Sources.of(folder / "run", folder / "boards")


def bad_inputs(folder: Path, wanted: int, seconds: float, first: int = 0) -> Part:
    """Cases of `bad_inputs.py`: no traceback, no hang over 20 s, no gigabyte, and an exit code that is one."""
    with part("bad inputs", wanted) as made:
        sources, end = sources_in(folder / "sources"), time.monotonic() + seconds
        codes, verbs, slowest, largest = Counter[int](), Counter[str](), 0.0, 0
        while made.done < wanted and time.monotonic() < end:
            place = folder / "case"
            place.mkdir()
            words = case(first + made.done, sources, place)
            found = call(words, place, folder / "sources" / "cache")
            if found.fault is not None:
                shown = " ".join(words)[:200]
                made.faults.append(
                    f"case {first + made.done}: {found.fault}: katha {shown}: {found.err[-200:].strip()}"
                )
            codes[found.code] += 1
            verbs[words[0]] += 1
            slowest, largest = max(slowest, found.seconds), max(largest, found.megabytes)
            made.done += 1
            shutil.rmtree(place)
        made.counts = {f"exit {code}": count for code, count in sorted(codes.items())}
        made.counts |= {"verbs": len(verbs), "slowest, s": round(slowest, 1), "most, MB": largest}
    return made


def pictures(wanted: int, seconds: float) -> Part:
    """Damaged pictures of every format: a picture or an `InputFileError`."""
    with part("damaged pictures", wanted) as made:
        end, sources = time.monotonic() + seconds, {form: encoded(form) for form in FORMATS}
        refused = 0
        while made.done < wanted and time.monotonic() < end:
            dice, form = random.Random(f"picture {made.done}"), FORMATS[made.done % len(FORMATS)]
            data = bytearray(sources[form])
            for _ in range(dice.randrange(1, 8)):
                at = dice.randrange(len(data))
                new = bytes(dice.randrange(256) for _ in range(dice.choice((1, 2, 4))))
                data[at : at + dice.choice((0, len(new), 20))] = new
            try:
                decode(bytes(data))
            except InputFileError:
                refused += 1
            except Exception as error:
                made.faults.append(f"picture {made.done} ({form}): {type(error).__name__}: {error}")
            made.done += 1
        made.counts = {"refused": refused, "formats": len(FORMATS)}
    return made


def doors(wanted: int, seconds: float, first: int = 0) -> Part:
    """Texts, names, folders and replies that are generated: nothing lost, reordered or unexpected."""
    with part("doors", wanted) as made:
        end, counts = time.monotonic() + seconds, Counter[str]()
        while made.done < wanted and time.monotonic() < end:
            number = first + made.done // len(DOORS)
            door = list(DOORS)[made.done % len(DOORS)]
            wrong = tried(door, number)
            made.faults += [f"{door} {number}: {wrong[:300]}"] if wrong is not None else []
            counts[door] += 1
            made.done += 1
        made.counts = dict(counts)
    return made


def kills(folder: Path, each: int, seconds: float, names: tuple[str, ...] = tuple(commands.COMMANDS)) -> Part:
    """SIGKILL before a write, again and again in one folder until it is finished, then in another: equal bytes."""
    with part("kills", each * len(names)) as made:
        server = _server()
        for place, name in enumerate(names):
            whole, dice = folder / name / "whole", random.Random(name)
            writes, killed, rounds = _once(server, name, whole), 0, 0
            end = time.monotonic() + seconds / len(names)  # what is imported first does not count
            while killed < each and time.monotonic() < end:
                out = folder / name / f"killed{rounds}"
                _begin(name, out)
                while killed < each and time.monotonic() < end:
                    code = commands.finish(_start(server, name, out, dice.randrange(1, writes + 1)))
                    if code != commands.KILLED:
                        break
                    killed += 1
                made.faults += _goes_on(server, name, whole, out)
                shutil.rmtree(out)
                rounds += 1
            made.done += killed
            made.counts |= {"commands": place + 1, name: killed}
    return made


def _goes_on(server: ForkServerContext, name: str, whole: Path, out: Path) -> list[str]:
    """What is wrong after the command has gone on in a folder where it was killed."""
    if commands.finish(_start(server, name, out)):
        return [f"{name} does not go on"]
    ours, theirs = commands.results(name, out / "out"), commands.results(name, whole / "out")
    differ = sorted(path for path in {*ours, *theirs} if ours.get(path) != theirs.get(path))
    return [f"{name}: other bytes in {', '.join(differ[:4])}"] if differ else []


@contextmanager
def _environment(name: str, value: str) -> Iterator[None]:
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        os.environ.pop(name)
        os.environ |= {name: before} if before is not None else {}


def _server() -> ForkServerContext:
    """Processes that begin with everything imported, what the program itself imports included."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([Path(__file__).stem])  # Python 3.11 does not preload "__main__"
    with _environment("PYTHONPATH", os.pathsep.join(sys.path)):  # sys.path does not reach the server
        forkserver.ensure_running()
    return context


def _begin(name: str, place: Path) -> None:
    with _environment("KATHA_CACHE", str(place / "cache")):
        commands.begin(name, place / "out", place / "work")


def _start(server: ForkServerContext, name: str, place: Path, kill_at: int = 0) -> ForkServerProcess:
    return commands.start(server, name, place / "out", place / "work", place / "cache", kill_at)


def _once(server: ForkServerContext, name: str, place: Path) -> int:
    _begin(name, place)
    if commands.finish(_start(server, name, place)):
        raise RuntimeError(f"{name} cannot be run")
    return int(json.loads((place / "work" / "writes").read_text()))


def faults(folder: Path, questions: int, rate: float = 0.3) -> Part:
    """An evaluation against a server that fails: every question has one outcome, and no fault counts as an answer."""
    with part("questions to a failing server", questions) as made, failing(rate) as server:
        stories = records(-(-questions // 12))
        patient = Backoff(max_retries=1, busy_retries=1, sleep=lambda _: None)
        judge = OpenAIJudge("m", base_url=server.url, backoff=patient, patience=3_600.0, timeout=20.0)
        job = EvalJob(stories, [draw(folder / "boards", stories)], {"m": judge}, EvalSettings(resamples=0))
        with Store(folder / "cache") as store:
            result = evaluate(job, folder / "out", store)
        rows = list(iter_answers(folder / "out" / "answers.jsonl"))
        keys = {(row.story_id, row.question_id, row.condition) for row in rows}
        statuses, made.done = Counter(row.status for row in rows), len(rows)
        wanted = len(ASKED) * sum(len(story.recoverability_questions) for story in stories)
        if len(keys) != len(rows) or len(rows) != wanted:
            made.faults.append(f"{len(rows)} rows for {wanted} questions, {len(keys)} of them different")
        if statuses["ok"] > server.served:
            made.faults.append(f"{statuses['ok']} answers of {server.served} that were given")
        unheard = [row for row in rows if row.status != "ok" and row.answer is not None]
        made.faults += [f"{row.status} with the answer {row.answer!r}" for row in unheard]
        if "transport_failed" in statuses and result.status != "incomplete":
            made.faults.append(f"the evaluation calls itself {result.status}")
        kinds = sum(kind in server.kinds for kind in KINDS)
        failed = sum(count for kind, count in server.kinds.items() if kind != "answered")
        made.counts = {**statuses, "calls": sum(server.kinds.values()), "faults": failed, "kinds of faults": kinds}
    return made


def corruption(folder: Path) -> Part:
    """Every way in `tests/core/test_damage.py` of damaging a cache, then a command that uses it twice."""
    with part("damaged caches", len(SPOILS)) as made:
        for number, (name, spoil) in enumerate(SPOILS.items()):
            place = folder / str(number)
            try:
                fill(place)
                spoil(place)
                use(place)
                if use(place) != 60:
                    made.faults.append(f"{name}: not mended")
            except Exception as error:
                made.faults.append(f"{name}: {type(error).__name__}: {error}")
            made.done += 1
    return made


def together(folder: Path, processes: int = 4) -> Part:
    """Several processes that do the same with one cache: equal files, and nothing paid for twice."""
    with part("processes on one cache", processes) as made:
        server = _server()
        places = [folder / str(number) for number in range(processes)]
        running = [commands.start(server, "run", place / "out", folder / "work", folder / "cache") for place in places]
        codes = [commands.finish(process) for process in running]
        made.done, found = codes.count(0), [commands.results("run", place / "out") for place in places]
        if any(each != found[0] for each in found):
            made.faults.append("their files differ")
        for kind in ("frames", "answers"):
            lines = (folder / "work" / kind).read_text(encoding="utf-8").splitlines()
            made.counts[kind] = len(lines)
            if len(lines) != len(set(lines)):
                made.faults.append(f"{kind} were paid for twice")
    return made


def cluster(here: cluster_kills.Site, wanted: int, seconds: float, first: int = 0, *, each: int = 8) -> Part:
    """A suite on a Ray cluster: worker, machine, command, database and object store are killed, and nothing is lost."""
    with part("kills on a cluster", wanted) as made:
        victims, of_all = Counter[str](), Counter[str]()
        for found in cluster_kills.rounds(here, wanted, seconds, first, each=each):
            print(found, flush=True)
            victims.update(found.killed)
            of_all.update({"suites": 1, "given again": found.again, "paid twice": found.twice, "in flight": found.may})
            made.faults += [f"round {found.number}: {fault}" for fault in found.faults]
            made.done += len(found.killed)
        made.counts = {**victims, **of_all}
    return made


def _on_a_cluster(folder: Path, wanted: int, seconds: float, first: int) -> Part:
    with cluster_kills.site(_server(), folder) as here:
        return cluster(here, wanted, seconds, first)


def main() -> int:
    """Run the parts within `--minutes`, print what was done, and return 1 if anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--first", type=int, default=0, help="the number of the first bad input, or suite on a cluster")
    parser.add_argument("--count", type=int, default=100, help="kills on a cluster")
    parser.add_argument("--part", help="one part alone, with all of the time")
    given = parser.parse_args()
    done: list[Part] = []
    with tempfile.TemporaryDirectory(prefix="katha-soak-") as name:
        folder = Path(name)
        parts: dict[str, tuple[float, Callable[[float], Part]]] = {
            "damage": (0.0, lambda _: corruption(folder / "damage")),
            "together": (0.0, lambda _: together(folder / "together")),
            "faults": (0.0, lambda _: faults(folder / "faults", 5_000)),
            "doors": (0.1, lambda time: doors(20_000, time, given.first)),
            "pictures": (0.1, lambda time: pictures(60_000, time)),
            "kills": (0.25, lambda time: kills(folder / "kills", 34, time)),
            "cluster": (0.2, lambda time: _on_a_cluster(folder / "cluster", given.count, time, given.first)),
            "inputs": (0.2, lambda time: bad_inputs(folder, 10_000, time, given.first)),
        }
        if given.part is not None and given.part not in parts:
            parser.error(f"there is no part {given.part!r}: {', '.join(parts)}")
        for part_name in parts if given.part is None else [given.part]:
            share, run = parts[part_name]
            done.append(run(60.0 * given.minutes * (share if given.part is None else 1.0)))
            print(done[-1], flush=True)
    if given.json is not None:
        given.json.write_text(json.dumps([asdict(item) for item in done], indent=1) + "\n", encoding="utf-8")
    return int(any(item.faults for item in done))


if __name__ == "__main__":
    sys.exit(main())
