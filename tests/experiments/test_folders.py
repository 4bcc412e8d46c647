"""One sentence for each mistake with a command's folder, whatever the command; and the folder is left as it was."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import COMMANDS, begin, each, results

from katha.errors import OutputFolderError

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")  # of transformers


ANEW = ("people",)
"""Scores of people are made anew from what was handed back, whatever the folder was made from."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def contents(out: Path) -> dict[str, bytes]:
    return {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}


def go(name: str, out: Path, *, other: bool = False) -> None:
    COMMANDS[name].go(out, Path(os.environ["KATHA_CACHE"]) / "work", other)


@pytest.mark.parametrize("name", each())
def test_a_file_is_no_folder(name: str, out: Path) -> None:
    out.write_text("a file")
    with pytest.raises(OutputFolderError, match=r"out' is a file, not a folder\. Choose another --out\.$"):
        go(name, out)
    assert out.read_text() == "a file"


@pytest.mark.parametrize("name", each(without=("redo",)))
def test_a_folder_below_a_file_cannot_be_made(name: str, out: Path) -> None:
    out.write_text("a file")
    with pytest.raises(OutputFolderError, match=r"Cannot use the folder '.*deeper': Not a directory\. Choose"):
        go(name, out / "deeper")


@pytest.mark.parametrize("name", each())
def test_a_folder_of_something_else_is_left_alone(name: str, out: Path) -> None:
    out.mkdir()
    (out / "thesis.doc").write_text("years of work")
    kind = COMMANDS[name].kind
    with pytest.raises(OutputFolderError, match=f"holds files that are not of a katha {kind}, 'thesis.doc' for one"):
        go(name, out)
    assert [path.name for path in out.iterdir()] == ["thesis.doc"]


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 2}', '{"format": 1}', "\0"])
@pytest.mark.parametrize("name", each(without=ANEW))
def test_an_unreadable_state_is_named(name: str, text: str, out: Path) -> None:
    out.mkdir()
    state = out / COMMANDS[name].state
    state.write_text(text)
    with pytest.raises(OutputFolderError, match=rf"{state.name}' is .*Choose another --out\.$"):
        go(name, out)
    assert contents(out) == {state.name: text.encode()}


@pytest.mark.parametrize("name", each(without=ANEW))
def test_a_folder_of_another_one_is_left_as_it_is(name: str, out: Path) -> None:
    begin(name, out, Path(os.environ["KATHA_CACHE"]) / "work")
    go(name, out)
    before = contents(out)
    kind = COMMANDS[name].kind
    with pytest.raises(OutputFolderError, match=f"holds a katha {kind}.* with (an)?other .*Choose another --out"):
        go(name, out, other=True)
    assert contents(out) == before


HOLD = """
import sys
from pathlib import Path
from katha.sqlite_index import file_lock
with file_lock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def held(out: Path) -> Iterator[None]:
    """Another process that works in `out`."""
    command = [sys.executable, "-c", HOLD, str(out / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.communicate("go\n", timeout=60)


@pytest.mark.parametrize("name", each())
def test_two_processes_do_not_work_in_one_folder(name: str, out: Path, held: None) -> None:
    sentence = r"Another katha is working in '.*out'\. Wait for it, or choose another --out\.$"
    with pytest.raises(OutputFolderError, match=sentence):
        go(name, out)
    assert contents(out) == {".lock": b""}


def _paid(work: Path) -> list[bytes]:
    """What the doubles logged of frames drawn and answers given."""
    return [(work / kind).read_bytes() for kind in ("frames", "answers") if (work / kind).exists()]


@pytest.mark.parametrize(
    ("name", "pattern", "how"),
    [
        ("eval", "answers.jsonl", "other"),
        ("ablate", "stories/first/story.jsonl", "folder"),
        ("ablate", "stories/first/answers.jsonl", "other"),
        ("ablate", "stories/second/result.json", "missing"),
        ("ablate", "panels/*.png", "other"),
        ("ablate", "panels/*.png", "missing"),
        ("compare", "boards/*/*/s1/storyboard.json", "other"),
        ("compare", "boards/*/*/s2/panels/*.png", "folder"),
        ("compare", "judging/answers.jsonl", "missing"),
        ("compare", "plans/*/s1.json", "other"),
    ],
)
def test_damage_is_mended_from_the_cache(name: str, pattern: str, how: str, out: Path, tmp_path: Path) -> None:
    work = tmp_path / "cache" / "work"
    begin(name, out, work)
    go(name, out)
    before, paid = results(name, out), _paid(work)
    path = sorted(out.glob(pattern))[0]
    whole = path.read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how == "other":
        path.write_bytes(whole[:-40] + b"}" * 39 + b"\n")
    go(name, out)
    after = {file: data for file, data in results(name, out).items() if not file.startswith("damaged/")}
    assert {file for file in {*before, *after} if before.get(file) != after.get(file)} <= {"stories/second/result.json"}
    assert _paid(work) == paid
    assert (out / "damaged" / path.name).exists() == (how != "missing")


def test_an_unfinished_ablation_makes_a_changed_story_again(out: Path) -> None:
    go("ablate", out)
    before = results("ablate", out)
    state = json.loads((out / "ablation.json").read_text())
    (out / "ablation.json").write_text(json.dumps(state | {"status": "running"}))
    rows = (out / "stories" / "first" / "answers.jsonl").read_text()
    (out / "stories" / "first" / "answers.jsonl").write_text(rows.replace('"status":"ok"', '"status":"refused"'))
    go("ablate", out)
    assert results("ablate", out) == before
