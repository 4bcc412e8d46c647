"""Bad input: one clear sentence on standard error, exit code 2, nothing lost and nothing written outside."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cli_child
import pytest
from terminal import CHILD

from katha import jsonio
from katha.app.cli import main as cli

ROOT = Path(__file__).parents[2]
TEXT = ROOT / "examples" / "lion_and_mouse.txt"
RECORD: dict[str, Any] = json.loads((ROOT / "examples" / "lion_and_mouse.json").read_text(encoding="utf-8"))
DOUBLES = ("--renderer", "block", "--judge", "pixel", "--size", "96x64")
GERMAN = "Ein Löwe schlief im Wald. Eine Maus lief über seine Pfote und weckte ihn. Die Maus bat um ihr Leben."
HINDI = "एक जंगल में एक शेर रहता था। एक दिन एक चूहा आया। शेर ने चूहे को पकड़ लिया।"
Refused = Callable[..., str]


class Place:
    """An empty working folder, and the command line called in this process as the console script calls it."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._patch = patch
        self._capture = capture

    def call(self, *words: object) -> tuple[int, str]:
        """The exit code and what standard error says."""
        self._patch.setattr(sys, "argv", ["katha", *map(str, words)])
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        else:
            code = 0
        return code, self._capture.readouterr().err

    def refused(self, *words: object, code: int = 2) -> str:
        """The one sentence of a refusal; the folder is as it was."""
        before = self.files()
        found, text = self.call(*words)
        assert found == code, text
        assert text.startswith("katha: ")
        assert text.count("\n") == 1
        assert text.rstrip().endswith((".", "`.", "?"))
        assert "Traceback" not in text
        assert "Unexpected" not in text
        assert self.files() == before
        return text

    def files(self) -> dict[str, bytes]:
        inside = [path for path in self.folder.rglob("*") if path.is_file() and "cache" not in path.parts]
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in inside}

    def write(self, name: str, data: bytes | str) -> str:
        (self.folder / name).write_bytes(data if isinstance(data, bytes) else data.encode("utf-8"))
        return name

    def record(self, **changes: Any) -> str:
        return self.write("story.json", json.dumps({**RECORD, **changes}))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.setenv("KATHA_CACHE", str(folder / "cache"))
    monkeypatch.chdir(folder)
    cli_child.install(monkeypatch)
    return Place(folder, monkeypatch, capsys)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "is empty"),
        (" \n\n\t", "is empty"),
        (bytes(range(256)), "binary"),
        ("The lion.".encode("utf-16"), "nothing happens"),
        ("Der Löwe schläft.".encode("latin-1"), "utf-8"),
        ("lion", "one word"),
        ("A lion ran to a mouse. " * 50_000, "1,150,000 bytes"),
        (GERMAN, "english"),
        (HINDI, "english"),
        ("12 34 !!! ??? 56. " * 20, "story"),
    ],
)
def test_a_bad_text_is_refused(place: Place, content: bytes | str, says: str) -> None:
    story = place.write("tale.txt", content)
    text = place.refused("run", story, *DOUBLES)
    assert says in text.lower()
    assert "tale" in text
    assert place.refused("plan", story) == text


def test_a_corrected_story_can_use_the_folder_of_the_refused_one(place: Place) -> None:
    story = place.write("tale.txt", "lion")
    place.refused("run", story, *DOUBLES, "--out", "x")
    place.write("tale.txt", TEXT.read_text(encoding="utf-8"))
    assert place.call("run", story, *DOUBLES, "--out", "x", "--mode", "base")[0] == 0


@pytest.mark.parametrize("story", ["none.txt", ".", "", "none.jsonl#x", "/proc/self/mem", "a\nb.txt", "x" * 5000])
def test_a_story_that_is_no_file_is_refused(place: Place, story: str) -> None:
    place.refused("run", story, *DOUBLES)


def test_a_link_that_goes_round_is_refused(place: Place) -> None:
    (place.folder / "loop.txt").symlink_to("loop.txt")
    assert "loop.txt" in place.refused("run", "loop.txt", *DOUBLES)


BAD_RECORDS: list[tuple[dict[str, Any], str]] = [
    ({"scenes": RECORD["scenes"][1:], "transitions": [], "recoverability_questions": []}, "numbered 1 to 4"),
    ({"transitions": RECORD["transitions"][:1] + RECORD["transitions"][2:]}, "scene 2 to scene 3"),
    ({"transitions": list(reversed(RECORD["transitions"]))}, "'transitions'"),
    ({"moral_label": "bravado"}, "moral_label"),
    ({"scenes": "five"}, "scenes"),
    ({"scenes": [None] * 5}, "scenes"),
    ({"story_id": "../../evil"}, "never a path"),
    ({"story_id": ""}, "story_id"),
    ({"story_id": 7}, "story_id"),
    ({"story_text": ""}, "story_text"),
]


@pytest.mark.parametrize(("changes", "says"), BAD_RECORDS)
def test_a_bad_record_is_refused(place: Place, changes: dict[str, Any], says: str) -> None:
    text = place.refused("run", place.record(**changes), *DOUBLES)
    assert says in text
    assert "story" in text.lower()


def test_a_wrong_enum_in_a_question_is_refused(place: Place) -> None:
    questions = [{**RECORD["recoverability_questions"][0], "question_type": "vibes"}]
    assert "question_type" in place.refused("run", place.record(recoverability_questions=questions), *DOUBLES)


@pytest.mark.parametrize(
    "text", ['{"story_id": NaN}', "{", "[]", "null", '"x"', '{"a": 1}{', "[" * 100_000, "9" * 10_000]
)
def test_what_is_no_record_is_refused(place: Place, text: str) -> None:
    assert "story.json" in place.refused("run", place.write("story.json", text), *DOUBLES)


def test_a_title_that_is_a_path_stays_a_title(place: Place) -> None:
    story = place.record(title="../../../etc/passwd", story_id="safe")
    assert place.call("run", story, *DOUBLES, "--mode", "base")[0] == 0
    assert {name.split("/")[0] for name in place.files()} == {"story.json", "out"}
    assert (place.folder / "out" / "safe" / "report.html").is_file()
    assert sorted(path.name for path in place.folder.parent.iterdir()) == ["work"]


WRONG_USES: list[tuple[tuple[str, ...], str]] = [
    (("--preset", "nope"), "nope"),
    (("--renderer", "skech"), "sketch"),
    (("--planner", "nope"), "nope"),
    (("--judge", "nope"), "nope"),
    (("--judge", "os.path:nothing"), "os.path:nothing"),
    (("--judge", "no.such.module:Class"), "no.such.module"),
    (("--mode", "fulll"), "full"),
    (("--matching", "vibes"), "lemma-set"),
    (("--answers", "maybe"), "choice"),
    (("--panels", "1"), "panels"),
    (("--panels", "1000000"), "panels"),
    (("--seeds", "-1"), "seed"),
    (("--seeds", "99999999999"), "seed"),
    (("--seeds", "a,b"), "seeds"),
    (("--seeds", "1,1"), "once"),
    (("--seeds", ","), "seed"),
    (("--size", "huge"), "768x512"),
    (("--size", "97x64"), "multiples"),
    (("--size", "0x0"), "768x512"),
    (("--out", "tale.txt"), "tale.txt"),
    (("--out", "tale.txt/inside"), "tale.txt/inside"),
    (("--out", "/proc/katha"), "/proc/katha"),
    (("--out", "/dev/null/x"), "/dev/null/x"),
    (("--out", "y" * 5000), "--out"),
]


@pytest.mark.parametrize(("words", "says"), WRONG_USES)
def test_a_wrong_flag_is_refused(place: Place, words: tuple[str, ...], says: str) -> None:
    story = place.write("tale.txt", TEXT.read_text(encoding="utf-8"))
    assert says in place.refused("run", story, *DOUBLES, *words)


def test_a_foreign_folder_is_left_alone(place: Place) -> None:
    (place.folder / "mine").mkdir()
    place.write("mine/photo.txt", "precious")
    assert "photo.txt" in place.refused("run", TEXT, *DOUBLES, "--out", "mine")
    place.write("mine/run.json", '{"format": "of something else"}')
    assert "run.json" in place.refused("run", TEXT, *DOUBLES, "--out", "mine")


def test_the_folder_of_another_run_is_left_alone(place: Place) -> None:
    assert place.call("run", TEXT, *DOUBLES, "--out", "x", "--mode", "base")[0] == 0
    other = place.write("other.txt", "A fox ran to a crow. The crow sang. The fox took the cheese.")
    assert "another story" in place.refused("run", other, *DOUBLES, "--out", "x", "--mode", "base")
    assert "other settings" in place.refused("run", TEXT, *DOUBLES, "--out", "x", "--mode", "base", "--seeds", "9")


def _plan(**changes: Any) -> str:
    panels = [{"index": number, "prompt": f"A lion sits {number}."} for number in range(1, 6)]
    transitions = [{"from_scene": number, "to_scene": number + 1} for number in range(1, 5)]
    whole = {"story_id": "tale", "title": "T", "planner": "me", "panels": panels, "transitions": transitions}
    return json.dumps({**whole, **changes})


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (_plan(story_id="other"), "other"),
        (_plan(panels=[]), "plan"),
        (_plan(panels=[{"index": 1, "prompt": "x"}]), "at least two panels"),
        (_plan(panels=[{"index": number, "prompt": " "} for number in range(1, 6)]), "prompt"),
        (_plan(transitions=[{"from_scene": 4, "to_scene": 9}]), "transition"),
        (_plan(panels="none"), "panels"),
        (_plan(format=2), "not a plan of this version: format"),
        ("[]", "plan"),
        (TEXT.read_text(encoding="utf-8"), "not json"),
        ("", "not json"),
    ],
)
def test_a_plan_that_does_not_fit_is_refused(place: Place, plan: str, says: str) -> None:
    story = place.write("tale.txt", TEXT.read_text(encoding="utf-8"))
    assert says in place.refused("run", story, *DOUBLES, "--plan", place.write("plan.json", plan)).lower()


def test_the_verbs_for_a_run_want_a_run(place: Place) -> None:
    for words in (("report", "none"), ("report", "."), ("redo", ".", "--frame", 1, "--seed", 1)):
        assert "katha run" in place.refused(*words)
    assert place.call("run", TEXT, *DOUBLES, "--out", "x", "--mode", "base")[0] == 0
    assert "1 to 14" in place.refused("redo", "x", "--frame", 15, "--seed", 1)
    assert ".png" in place.refused("report", "x", "--sheet", "sheet.exe")
    (place.folder / "x" / "candidates.json").write_text("{}")
    assert "candidates.json" in place.refused("report", "x")


def test_unusual_names_and_letters_are_drawn(place: Place) -> None:
    body = "A lion slept. A mouse woke him. The mouse begged. The lion let her go."
    story = place.write("Löwe 🦁 & <Maus> 'x'.txt", f"Der \u202eLöwe 🦁\n\n{body}")
    assert place.call("run", story, *DOUBLES, "--mode", "base", "--out", "ö 🦁/x")[0] == 0
    assert (place.folder / "ö 🦁" / "x" / "report.html").is_file()


def test_a_disk_without_space_stops_the_run_and_loses_nothing(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ("run", TEXT, *DOUBLES, "--out", "x", "--mode", "base")
    real, room = os.replace, [6]

    def replace(source: Any, target: Any) -> None:
        room[0] -= 1
        if room[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        real(source, target)

    with monkeypatch.context() as full:
        full.setattr(jsonio.os, "replace", replace)
        code, text = place.call(*words)
    assert code == 1
    assert "No space left on device" in text
    assert "same command again" in text
    assert "Traceback" not in text
    assert place.call(*words)[0] == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_small_disk_fills_up(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True).returncode:
        pytest.skip("mounting is not allowed here; the same is tested above without a disk")
    words = [sys.executable, str(CHILD), "run", str(TEXT), *DOUBLES, "--out", str(disk / "x")]
    environment = {**os.environ, "KATHA_CACHE": str(tmp_path / "cache")}
    try:
        done = subprocess.run(words, capture_output=True, text=True, env=environment)
        assert done.returncode == 1
        assert "Free some space" in done.stderr
        assert done.stderr.startswith("katha: ")
        assert "Traceback" not in done.stderr
        subprocess.run(["mount", "-o", "remount,size=32m", disk], check=True)
        assert subprocess.run(words, capture_output=True, text=True, env=environment).returncode == 0
    finally:
        subprocess.run(["umount", disk], check=True)
