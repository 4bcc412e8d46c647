"""At a terminal: the live view, the review, Ctrl-C; away from one: silence."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from terminal import CHILD, Terminal

TEXT = Path(__file__).parents[2] / "examples" / "lion_and_mouse.txt"
RUN = ("run", TEXT, "--renderer", "block", "--judge", "pixel", "--size", "96x64", "--mode", "bridge_only", "--out", "x")
PANELS = 8


def away(words: tuple[object, ...], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command with no terminal at any end."""
    known = {**os.environ, "KATHA_CACHE": str(folder / "cache"), **environment}
    command = [sys.executable, str(CHILD), *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=known, stdin=subprocess.DEVNULL, timeout=120
    )


def decision(folder: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((folder / "x" / "candidates.json").read_text())["decision"]
    return value


def test_the_live_view_says_what_is_drawn_asked_and_decided(tmp_path: Path) -> None:
    with Terminal(RUN, tmp_path) as at:
        assert at.end() == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", at.text)
    for words in (
        "Planning",
        "Drawing",
        "Reading the candidates",
        "Deciding",
        "Asking the reporting",
        f"{PANELS}/{PANELS}",
    ):
        assert words in plain, words
    assert decision(tmp_path)["reason"][:40] in plain
    assert "Report: x/report.html" in plain


def test_away_from_a_terminal_nothing_moves(tmp_path: Path) -> None:
    done = away(RUN, tmp_path)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    assert "\r" not in done.stdout
    assert done.stdout.splitlines()[0].startswith("Read ")


def test_json_at_a_terminal_is_json_and_nothing_else(tmp_path: Path) -> None:
    with Terminal((*RUN, "--json"), tmp_path) as at:
        assert at.end() == 0
    assert json.loads(at.text)["out"] == "x"


def test_review_needs_a_terminal(tmp_path: Path) -> None:
    done = away((*RUN, "--review"), tmp_path)
    assert done.returncode == 2
    assert done.stderr == "katha: --review asks a person, and this is not a terminal. Leave --review out.\n"
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("key", "accepted"), [("a", True), ("r", False)])
def test_a_person_accepts_or_rejects(tmp_path: Path, key: str, accepted: bool) -> None:
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        at.type(key)
        assert at.end() == 0
    assert "The weakest transition is" in at.text
    made = decision(tmp_path)
    assert (made["accepted"], made["reviewed"]) == (accepted, True)
    kinds = [frame["kind"] for frame in json.loads((tmp_path / "x" / "storyboard.json").read_text())["frames"]]
    assert ("bridge" in kinds) == accepted
    assert "A person decided." in (tmp_path / "x" / "report.html").read_text()


def test_a_person_chooses_another_seed(tmp_path: Path) -> None:
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        at.type("nonsense")
        at.until("Your choice")
        at.type("s")
        at.until("Which one")
        proposed = re.search(r"(bridge:\d+): score [\d.-]+ \(proposed\)", at.text)
        assert proposed is not None
        other = next(name for name in ("bridge:42", "bridge:123") if name != proposed[1])
        at.type(other)
        assert at.end() == 0
    assert decision(tmp_path)["inserted"] == other


def test_a_person_edits_the_prompt_and_is_asked_again(tmp_path: Path) -> None:
    prompt = "A lion hugs a mouse in the rain."
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        at.type("e")
        at.until("New prompt")
        at.type(prompt)
        at.until("Your choice")
        at.type("a")
        assert at.end() == 0
    frames = json.loads((tmp_path / "x" / "storyboard.json").read_text())["frames"]
    assert next(frame["prompt"] for frame in frames if frame["kind"] == "bridge") == prompt


def test_a_review_left_by_ctrl_c_is_gone_on_with(tmp_path: Path) -> None:
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        at.process.send_signal(signal.SIGINT)
        assert at.end() == 130
    assert "Traceback" not in at.text
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        at.type("a")
        assert at.end() == 0
    assert json.loads((tmp_path / "x" / "run.json").read_text())["paid"]["frames_rendered"] == PANELS + 3


def test_ctrl_c_in_the_middle_ends_with_a_sentence_and_is_gone_on_with(tmp_path: Path) -> None:
    with Terminal(RUN, tmp_path, SLOW="0.3") as at:
        at.until("Drawing")
        at.process.send_signal(signal.SIGINT)
        assert at.end() == 130
    assert "Traceback" not in at.text
    assert "same command" in at.text
    done = away(RUN, tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "x" / "report.html").is_file()
    whole = tmp_path / "whole"
    whole.mkdir()
    assert away(RUN, whole).returncode == 0
    for name in ("storyboard.json", "scores.json", "candidates.json"):
        assert (tmp_path / "x" / name).read_bytes() == (whole / "x" / name).read_bytes()
