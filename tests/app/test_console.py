"""What verbs show on standard error where that is not a terminal."""

from __future__ import annotations

import threading

import pytest

from katha.app.cli import console
from katha.schema import Event


def event(stage: str, kind: str, message: str = "") -> Event:
    return Event(stage=stage, kind=kind, message=message)  # type: ignore[typeddict-item]


def test_a_run_says_in_a_file_what_is_new_and_nothing_twice(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console, "_LINE_SECONDS", 0.01)
    wrote, said = threading.Event(), list[str]()

    def echo(line: str, err: bool) -> None:
        assert err
        said.append(line)
        wrote.set()

    monkeypatch.setattr(console.typer, "echo", echo)
    with console.live_view(quiet=False) as heard:
        assert heard is not None
        heard(event("plan", "started"))
        assert wrote.wait(5)
        wrote.clear()
        assert not wrote.wait(0.1), "nothing is new"
        heard(event("render", "item", "frame 3"))
        assert wrote.wait(5)
    assert [line.split("] ")[1] for line in said] == ["Planning: started", "Drawing: frame 3"]
    assert said[0].startswith("[0:0")
    with console.live_view(quiet=True) as heard:
        assert heard is None


def test_a_run_that_waits_says_that_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_LINE_SECONDS", 0.01)
    monkeypatch.setattr(console, "_QUIET_SECONDS", 0.05)
    again, said = threading.Event(), list[str]()

    def echo(line: str, err: bool) -> None:
        said.append(line)
        if len(said) > 1:
            again.set()

    monkeypatch.setattr(console.typer, "echo", echo)
    with console.live_view(quiet=False) as heard:
        assert heard is not None
        heard(event("render", "started"))
        assert again.wait(5)
    assert said[1].endswith("Drawing: started (nothing new since 0:00; it goes on)")


def test_a_short_run_says_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with console.live_view(quiet=False) as heard:
        assert heard is not None
        heard(event("plan", "started"))
    assert capsys.readouterr().err == ""


def test_a_bar_in_a_file_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_BAR_SECONDS", 0.01)
    wrote, said = threading.Event(), list[str]()

    def echo(line: str, err: bool) -> None:
        assert err
        said.append(line)
        wrote.set()

    monkeypatch.setattr(console.typer, "echo", echo)
    with console.progress_bar("Running", "After {}", quiet=False) as heard:
        heard("the_fox", 2, 12)
        assert wrote.wait(5)
    assert [line.split("] ")[1] for line in said] == ["Running: 2 of 12. After the_fox"]
