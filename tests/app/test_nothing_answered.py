"""A judge that cannot answer: every command says so, exits 1, decides nothing on it, and asks again what failed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cli_child
import pytest
from evals import draw, records
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import KathaError
from katha.eval_bridge.judging.answers import read_answers

TEXT = Path(__file__).parents[2] / "examples" / "lion_and_mouse.txt"
PLUGIN = '''
"""Judges whose service is down until the file `up` is there; `asked` gets a line for every question answered."""

from pathlib import Path

from katha.protocols import Judge, JudgeReply

HERE = Path(__file__).parent


class Bad(Judge):
    """Raises what no plug-in should, at every question."""

    always_chooses = True
    error = ValueError("half a body")

    def spec(self):
        return {"name": "bad"}

    def fails(self, prompt):
        return True

    def ask(self, evidence, prompts):
        for prompt in prompts:
            if not (HERE / "up").exists() and self.fails(prompt):
                raise self.error
            with (HERE / "asked").open("a") as log:
                log.write(f"{evidence.condition} {len(evidence.images)} {prompt.question}\\n")
            yield JudgeReply("ok", prompt.options[len(prompt.question) % 4])


class Quits(Bad):
    """Would end the process, and with success."""

    error = SystemExit(0)


class Half(Bad):
    """Cannot answer a question about what comes last."""

    def fails(self, prompt):
        return len(prompt.question) % 3 == 0


class Junk(Bad):
    """Gives what is no reply."""

    def ask(self, evidence, prompts):
        for prompt in prompts:
            yield "gold"


class Torn(Bad):
    """Writes what no file can hold."""

    def ask(self, evidence, prompts):
        for prompt in prompts:
            yield JudgeReply("ok", "\\ud800 hello", raw="\\ud800 hello")
'''
BLOCKS = ("--renderer", "block", "--size", "96x64")
STATE = {
    "run": "run.json",
    "eval": "eval.json",
    "compare": "compare.json",
    "ablate": "ablation.json",
    "tune": "ablation.json",
}


ASKED_FOR = dict.fromkeys(("run", "ablate", "tune"), "badjudge:Bad")
"""The name that answers carry; those of an evaluation carry the judge's own."""


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Run a command line in a folder with a cache of its own, the doubles, and the plug-in above."""
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "badjudge", raising=False)
    (tmp_path / "badjudge.py").write_text(PLUGIN)
    cli_child.install(monkeypatch)

    def invoke(*words: object) -> Any:
        """As `main` does it: an error is a sentence and an exit code."""
        try:
            return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
        except KathaError as error:
            return SimpleNamespace(exit_code=error.exit_code, output=str(error))

    return invoke


def command(verb: str, judge: str = "Bad") -> list[object]:
    """The words of one command that asks `badjudge:JUDGE`; its folder is `out`."""
    asked = ["--judge", f"badjudge:{judge}", "--out", "out"]
    if verb == "run":
        return ["run", TEXT, *BLOCKS, "--seeds", "1,2", *asked]
    if verb == "ablate":
        return ["ablate", TEXT, "--rows", "base,full", *BLOCKS, "--seeds", "1", "--resamples", "0", *asked]
    if verb == "tune":
        few = ["--settings", "10", "--resamples", "0", "--lock", "lock.json"]
        return ["tune", TEXT, *BLOCKS, "--seeds", "1", *few, *asked]
    stories = records(2)
    source = Path("stories.jsonl")
    source.write_text("\n".join(record.model_dump_json() for record in stories))
    if verb == "compare":
        return ["compare", TEXT, *BLOCKS, "--renderer", "sketch", "--seeds", "1", "--resamples", "0", *asked]
    return ["eval", source, "--boards", draw(Path("flux"), stories).folder, "--resamples", "0", *asked]


def state(verb: str) -> Any:
    return json.loads((Path("out") / STATE[verb]).read_text())


def asked() -> list[str]:
    path = Path("asked")
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("verb", list(STATE))
def test_nothing_answered_is_no_success_and_the_same_command_asks_again(call: Callable[..., Any], verb: str) -> None:
    told = call(*command(verb))
    assert told.exit_code == 1, told.output
    assert "No question could be scored" in told.output
    assert f"The first cause: ValueError: half a body ({ASKED_FOR.get(verb, 'bad')}, transport_failed)" in told.output
    assert "The same command asks them again." in told.output
    assert state(verb)["status"] == "incomplete"
    again = call(*command(verb))
    assert (again.exit_code, state(verb)["status"]) == (1, "incomplete")
    Path("up").touch()
    mended = call(*command(verb))
    assert mended.exit_code == 0, mended.output
    assert "No question could be scored" not in mended.output
    assert state(verb)["status"] == "finished"
    once = asked()
    assert once
    assert call(*command(verb)).exit_code == 0
    assert asked() == once


@pytest.mark.parametrize("judge", ["Bad", "Quits", "Junk", "Torn"])
@pytest.mark.parametrize("verb", ["run", "eval"])
def test_a_budget_does_not_change_what_a_bug_does(call: Callable[..., Any], verb: str, judge: str) -> None:
    on = ["--keep-going", "--json"]  # of a judge that cannot be read, all the same
    plain = call(*command(verb, judge), *on)
    (Path("out")).rename("plain")
    limited = call(*command(verb, judge), "--max-calls", "100000", *on)
    assert plain.exit_code == limited.exit_code == 1
    rows = [read_answers(Path(name) / "answers.jsonl") for name in ("plain", "out")]
    assert rows[0] == rows[1]
    wanted = {
        "Bad": ("transport_failed", "ValueError: half a body"),
        "Quits": ("transport_failed", "SystemExit: 0"),
        "Junk": ("transport_failed", "TypeError: the judge gave a str, not a JudgeReply"),
        "Torn": ("unparseable", "answer '\\\\ud800 hello' is not one of the options"),
    }[judge]
    assert {(row.status, row.error) for row in rows[0]} == {wanted}
    for name in ("plain", "out"):
        found = json.loads((Path(name) / STATE[verb]).read_text())
        assert found["status"] == "incomplete"
        assert found["failures"] == [
            {
                "judge": ASKED_FOR.get(verb, "bad").replace("Bad", judge),
                "status": wanted[0],
                "error": wanted[1],
                "count": len(rows[0]),
            },
        ]


def test_no_repair_is_decided_on_no_answers(call: Callable[..., Any]) -> None:
    told = call(*command("run"))
    decision = json.loads(Path("out/candidates.json").read_text())["decision"]
    assert (decision["accepted"], decision["inserted"], decision["weakest"]) == (False, None, None)
    assert decision["reason"] == "Nothing was repaired: no judge could answer a steering question about the board."
    assert decision["reason"] in told.output
    assert "the weakest transition scores" not in told.output


@pytest.mark.parametrize("verb", list(STATE))
def test_what_failed_among_answers_is_counted_and_only_that_is_asked_again(call: Callable[..., Any], verb: str) -> None:
    told = call(*command(verb, "Half"))
    assert told.exit_code == 1, told.output
    first = asked()
    assert "No question could be scored" not in told.output
    assert "got no answer" in told.output
    assert (
        f" times: ValueError: half a body ({ASKED_FOR.get(verb, 'bad').replace('Bad', 'Half')}, transp" in told.output
    )
    assert state(verb)["status"] == "incomplete"
    Path("up").touch()
    assert call(*command(verb, "Half")).exit_code == 0
    assert state(verb)["status"] == "finished"
    later = asked()[len(first) :]
    assert later
    assert not set(first) & set(later) or verb in ("run", "ablate", "tune")  # the mended board may be another
    assert all(len(line.split(" ", 2)[2]) % 3 == 0 for line in later) or verb in ("run", "ablate", "tune")


def test_what_an_archive_does_not_hold_is_final_for_it(call: Callable[..., Any]) -> None:
    Path("up").touch()
    assert call(*command("run", "Half")).exit_code == 0
    rows = Path("out/answers.jsonl").read_bytes().splitlines(keepends=True)
    kept = [line for line in rows if json.loads(line)["question_id"] != json.loads(rows[0])["question_id"]]
    Path("archive.jsonl").write_bytes(b"".join(kept))
    words = ["run", TEXT, *BLOCKS, "--seeds", "1,2", "--judge", "recorded:archive.jsonl", "--out", "replay"]
    told = call(*words)
    assert told.exit_code == 0, told.output
    assert "not in the archive (recorded:archive.jsonl, not_asked)" in told.output
    assert json.loads(Path("replay/run.json").read_text())["status"] == "finished"


def test_a_frame_is_not_put_in_while_its_questions_cannot_be_asked(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_ALLOW_CODE", "badjudge:Bad")
    Path("up").touch()
    assert call(*command("run")).exit_code == 0
    before = {path: path.read_bytes() for path in Path("out").iterdir() if path.is_file()}
    Path("up").unlink()
    told = call("redo", "out", "--frame", "2", "--seed", "99")
    assert told.exit_code == 1
    assert "Frame 2 stays as it was." in told.output
    assert "The first cause: ValueError: half a body (badjudge:Bad, transport_failed)" in told.output
    changed = [path.name for path, data in before.items() if path.read_bytes() != data]
    assert not changed
    Path("up").touch()
    assert call("redo", "out", "--frame", "2", "--seed", "99").exit_code == 0
    assert json.loads(Path("out/run.json").read_text())["status"] == "finished"
