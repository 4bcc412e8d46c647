"""At a terminal: the live view, the review, Ctrl-C; away from one: silence."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from terminal import CHILD, Terminal

TEXT = Path(__file__).parents[2] / "examples" / "lion_and_mouse.txt"
RUN = ("run", TEXT, "--renderer", "block", "--judge", "pixel", "--size", "96x64", "--mode", "bridge_only", "--out", "x")
PANELS = 14


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


def finish(at: Terminal) -> None:
    """Leave the board as it is when it is shown as a whole."""
    at.until("Which frame")
    at.type("d")
    assert at.end() == 0


@pytest.mark.parametrize(("key", "accepted"), [("a", True), ("r", False)])
def test_a_person_accepts_or_rejects(tmp_path: Path, key: str, accepted: bool) -> None:
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        at.type(key)
        finish(at)
    assert "The weakest transition is" in at.text
    made = decision(tmp_path)
    assert (made["accepted"], made["reviewed"]) == (accepted, True)
    kinds = [frame["kind"] for frame in json.loads((tmp_path / "x" / "storyboard.json").read_text())["frames"]]
    assert ("bridge" in kinds) == accepted
    assert "A person decided." in (tmp_path / "x" / "report.html").read_text()


def test_a_person_has_another_seed_drawn_and_takes_it_by_its_number(tmp_path: Path) -> None:
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        at.type("nonsense")
        at.until("Your choice")
        before = set((tmp_path / "x" / "panels").iterdir())
        at.type("s")
        at.until("Your choice")
        assert len(set((tmp_path / "x" / "panels").iterdir()) - before) == 1
        told = re.findall(r"(\d)\. (bridge:\d+): score", at.text)
        number, name = next((number, name) for number, name in reversed(told) if name not in dict(told[:3]).values())
        at.type(number)
        finish(at)
    assert decision(tmp_path)["inserted"] == name
    assert len(list((tmp_path / "x" / "takes").iterdir())) == 4


def test_a_person_edits_the_prompt_goes_back_and_is_asked_again(tmp_path: Path) -> None:
    prompt = "A lion hugs a mouse in the rain."
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        for text in ("A lion sleeps.", prompt, "A mouse eats."):
            at.type("e")
            at.until("New prompt")
            at.type(text)
            at.until("Your choice")
        at.type("b")
        at.until("Your choice")
        at.type("a")
        finish(at)
    frames = json.loads((tmp_path / "x" / "storyboard.json").read_text())["frames"]
    assert next(frame["prompt"] for frame in frames if frame["kind"] == "bridge") == prompt


def test_the_whole_board_is_reviewed_frame_by_frame(tmp_path: Path) -> None:
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        at.type("r")
        for what, asked, answer in (("p", "New prompt", "A mouse sings."), ("t", "Which take", "3")):
            at.until("Which frame")
            at.type("2")
            at.until("What")
            at.type(what)
            at.until(asked)
            at.type(answer)
        at.until("Which frame")
        at.type("1")
        at.until("What")
        at.type("l")
        at.until("Which frame")
        assert "(locked)" in at.text
        at.type("u")
        finish(at)
    frame = json.loads((tmp_path / "x" / "storyboard.json").read_text())["frames"][1]
    assert frame["prompt"] == "A mouse sings."
    assert frame["seed"] == 44
    done = json.loads((tmp_path / "x" / "run.json").read_text())["redone"]
    assert [item.get("says", item.get("seed")) for item in done] == [
        "frame 2 got another prompt",
        "frame 2 was drawn with seed 44 from a new prompt" if "says" in done[1] else 44,
    ]


def test_pictures_that_a_review_asks_about_are_opened(tmp_path: Path) -> None:
    viewer = tmp_path / "bin" / "xdg-open"
    viewer.parent.mkdir()
    viewer.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/opened\n')
    viewer.chmod(0o755)
    with Terminal((*RUN, "--review", "--open"), tmp_path, PATH=f"{viewer.parent}:{os.environ['PATH']}") as at:
        at.until("Your choice")
        at.type("r")
        finish(at)
    opened = (tmp_path / "opened").read_text().split()
    assert sorted(opened) == sorted(map(str, (tmp_path / "x" / "takes").iterdir()))
    assert "--open opens the pictures of a review" in away((*RUN, "--open"), tmp_path).stderr
    assert "--open does nothing with --dry-run" in away((*RUN, "--review", "--open", "--dry-run"), tmp_path).stderr


def test_a_review_left_by_ctrl_c_is_gone_on_with(tmp_path: Path) -> None:
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        assert at.interrupt() == 130
    assert "Traceback" not in at.text
    with Terminal((*RUN, "--review"), tmp_path) as at:
        at.until("Your choice")
        at.type("a")
        finish(at)
    assert json.loads((tmp_path / "x" / "run.json").read_text())["paid"]["frames_rendered"] == PANELS + 3


def test_ctrl_c_in_the_middle_ends_with_a_sentence_and_is_gone_on_with(tmp_path: Path) -> None:
    with Terminal(RUN, tmp_path, SLOW="0.3") as at:
        at.until("Drawing")
        assert at.interrupt() == 130
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
