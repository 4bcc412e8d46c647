"""`paste`: prompts as files, replies as files or pasted, asked once however often a run is stopped."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from katha.errors import KathaError, ModelError, UsageError
from katha.models.base import TextModel, Turn
from katha.models.paste import PastedExchange, PasteModel, bring, give_up, waiting
from katha.models.registry import make_model
from katha.protocols import PlanRequest
from katha.registry import default_registry
from katha.stories import story_of_text

ASKED = [Turn("user", "Draw a fox.")]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


class Person:
    """Answers each prompt of a folder in a thread of its own, as a person with a chat window would."""

    def __init__(self, folder: Path, answer: Callable[[str, str], str]) -> None:
        """answer: given the name of the file that is to be answered, and its text, returns a reply."""
        self.folder, self.answer, self.carried = folder, answer, list[str]()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        while not self._done.is_set():
            for path in sorted(self.folder.glob("*-prompt.txt")) + sorted(self.folder.glob("*-again.txt")):
                reply = self.folder / re.sub(r"-(prompt|again)", "-reply", path.name)
                key = f"{path.name} {path.stat().st_mtime_ns}"
                if not reply.exists() and key not in self.carried and self._is_next(path):
                    self.carried.append(key)
                    reply.write_text(self.answer(path.name, path.read_text()))
            time.sleep(0.02)

    def _is_next(self, path: Path) -> bool:
        """A prompt that was answered wrongly is answered by its second message."""
        again = self.folder / path.name.replace("-prompt", "-again")
        return path == again or not again.exists()

    @contextmanager
    def at_work(self) -> Iterator[Person]:
        self._thread.start()
        yield self
        self._done.set()
        self._thread.join()


class Typing:
    """A terminal in which somebody pastes, a piece a time."""

    def __init__(self, *pieces: str) -> None:
        self.pieces = list(pieces)

    def read(self) -> str:
        return self.pieces.pop(0) if self.pieces else ""


def test_it_is_a_language_model_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_PASTE", str(tmp_path / "named"))
    made = make_model("paste", max_tokens=9)
    assert isinstance(made, TextModel)
    assert isinstance(made, PasteModel)
    assert made.spec() == {"name": "paste"}
    assert made.folder == tmp_path / "named"
    told = make_model(f"paste:{tmp_path}")
    assert isinstance(told, PasteModel)
    assert told.folder == tmp_path
    with pytest.raises(UsageError, match="base_url"):
        make_model("paste", base_url="http://127.0.0.1/v1")
    with pytest.raises(UsageError, match="adapter"):
        make_model("paste", adapter=tmp_path)


def test_a_prompt_is_a_file_and_so_is_its_reply(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Person(tmp_path, lambda name, text: f"<svg/> for {text}").at_work():
        done = PasteModel(tmp_path, timeout=20).complete(ASKED, None)
    assert (done.status, done.text, done.usage["cost"]) == ("ok", "<svg/> for Draw a fox.", 0.0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["001-prompt.txt", "001-reply.txt"]
    assert "001-prompt.txt" in caplog.text
    assert "001-reply.txt" in caplog.text


def test_what_was_answered_is_not_asked_again(tmp_path: Path) -> None:
    with Person(tmp_path, lambda name, text: name).at_work():
        first = PasteModel(tmp_path, timeout=20)
        first.complete(ASKED, None)
        first.complete([Turn("user", "Draw a crow.")], None)
    later = PasteModel(tmp_path, timeout=0.01)  # nobody is there any more
    assert later.complete([Turn("user", "Draw a crow.")], None).text == "002-prompt.txt"
    assert later.complete(ASKED, None).text == "001-prompt.txt"


def test_a_run_that_was_stopped_waits_for_the_same_reply(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"001-prompt\.txt"):
        PasteModel(tmp_path, timeout=0.01).complete(ASKED, None)
    (tmp_path / "001-reply.txt").write_text("late")
    assert PasteModel(tmp_path, timeout=5).complete(ASKED, None).text == "late"
    assert len(list(tmp_path.iterdir())) == 2


def test_a_conversation_is_one_prompt_with_marks(tmp_path: Path) -> None:
    turns = [Turn("user", "Plan."), Turn("assistant", "{}"), Turn("user", "Mend it.", (b"png",))]
    with Person(tmp_path, lambda name, text: '```json\n{"a": 1}\n```\nHope it helps!').at_work():
        done = PasteModel(tmp_path, timeout=20).complete(turns, SCHEMA)
    assert json.loads(done.text) == {"a": 1}
    prompt = (tmp_path / "001-prompt.txt").read_text()
    assert [prompt.index(part) for part in ("Plan.", "YOUR ANSWER", "Mend it.", '"integer"')] == sorted(
        prompt.index(part) for part in ("Plan.", "YOUR ANSWER", "Mend it.", '"integer"')
    )
    assert (tmp_path / "001-picture-1.png").read_bytes() == b"png"


def test_a_reply_that_is_no_json_is_asked_for_again_with_what_is_wrong(tmp_path: Path) -> None:
    given = iter(['{"a": 1', "Sorry, no.", "", '{"a": 2}'])
    with Person(tmp_path, lambda name, text: next(given)).at_work() as person:
        # An empty file is being written: only what somebody saves in it counts.
        threading.Timer(1.5, lambda: (tmp_path / "001-reply.txt").write_text('{"a": 2}')).start()
        done = PasteModel(tmp_path, timeout=30).complete(ASKED, SCHEMA)
    assert json.loads(done.text) == {"a": 2}
    assert (tmp_path / "001-wrong-1.txt").read_text() == '{"a": 1'
    assert (tmp_path / "001-wrong-2.txt").read_text() == "Sorry, no."
    assert "no JSON object" in (tmp_path / "001-again.txt").read_text()
    assert len(person.carried) == 3


def test_a_reply_may_be_pasted_and_ended_by_a_dot(tmp_path: Path) -> None:
    keyboard = Typing("<svg>\n", "." * 9 + "\n", "</svg>\n", ".\n")
    done = PasteModel(tmp_path, timeout=20, keyboard=keyboard).complete(ASKED, None)
    assert done.text == "<svg>\n.........\n</svg>"
    assert (tmp_path / "001-reply.txt").read_text().strip() == done.text


def test_a_terminal_takes_lines_longer_than_it_would_by_itself(tmp_path: Path) -> None:
    """A line of 9,000 letters: in its usual mode a terminal drops what is beyond 4,095."""
    code = (
        "from katha.models.paste import PasteModel\nfrom katha.models.base import Turn\n"
        f"print(len(PasteModel({str(tmp_path)!r}, timeout=60).complete([Turn('user', 'Draw.')], None).text))"
    )
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        os.close(theirs)
        limit = time.monotonic() + 60
        while not (tmp_path / "001-prompt.txt").exists() and time.monotonic() < limit:
            time.sleep(0.05)
        time.sleep(1.0)
        data = b"x" * 9000 + b"\n.\n"
        while data:
            data = data[os.write(ours, data[:1000]) :]
            time.sleep(0.02)
        assert child.stdout is not None
        assert child.stdout.read().strip() == "9000"
    os.close(ours)


def test_a_planner_asks_through_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_PASTE", str(tmp_path))
    planner = default_registry("planners").configure("gemma-st:paste", {})
    text = (Path(__file__).parents[2] / "examples" / "fox_and_crow.txt").read_text()
    given = iter(['{"tells_events"', '{"tells_events": false}'])
    last = '{"tells_events": false}'
    with Person(tmp_path, lambda name, asked: next(given, last)).at_work(), pytest.raises(KathaError):
        planner.plan(story_of_text(text), PlanRequest(panels=4))
    prompt = (tmp_path / "001-prompt.txt").read_text()
    assert "crow" in prompt.lower()
    assert "JSON schema" in prompt
    assert "cut off" in (tmp_path / "001-again.txt").read_text()


def test_a_program_sees_what_waits_and_brings_the_reply_or_ends_the_wait(tmp_path: Path) -> None:
    """The way of the desk: the prompt that waits, what was wrong with a reply, the reply, and the end of a wait."""
    model, got = PasteModel(tmp_path), list[object]()

    def ask(text: str) -> threading.Thread:
        def work() -> None:
            try:
                got.append(model.complete([Turn("user", text, (b"png",))], SCHEMA).text)
            except ModelError as error:
                got.append(str(error))

        thread = threading.Thread(target=work)
        thread.start()
        return thread

    def waits(problem: str = "") -> PastedExchange:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            found = waiting(tmp_path)
            if found is not None and bool(found.problem) == bool(problem):
                assert problem in found.problem
                return found
            time.sleep(0.01)
        raise AssertionError("nothing waits")

    assert waiting(tmp_path / "nowhere") is None
    with pytest.raises(UsageError, match="No reply to that prompt"):
        bring(tmp_path, "001", "{}")
    thread = ask("Draw a fox.")
    first = waits()
    assert (first.number, first.pictures, "Draw a fox." in first.text) == ("001", ("001-picture-1.png",), True)
    with pytest.raises(UsageError, match="empty"):
        bring(tmp_path, "001", " \n")
    bring(tmp_path, "001", "I cannot.")
    again = waits("no JSON object")
    assert (again.number, again.pictures, "Draw a fox." in again.text) == ("001", first.pictures, False)
    assert again.whole == first.text, "a chat that was closed can be begun anew"
    bring(tmp_path, "001", 'Here: {"a": 1}')
    thread.join(20)
    assert got == ['{"a": 1}']
    assert waiting(tmp_path) is None

    thread = ask("Draw a hen.")
    assert waits().number == "002"
    give_up(tmp_path)
    thread.join(20)
    assert "The wait for the reply to '002-prompt.txt' was ended." in str(got[1])
    assert waiting(tmp_path) is None
    give_up(tmp_path)
