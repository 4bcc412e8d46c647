"""`katha bench questions --model`: many stories through a server on loopback, resumed, listed where they fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from api_server import Server, serving
from authors import TEXT, Author, board, row
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import KathaError
from katha.stories import load_stories

FEW = board()
AGAIN = [row("What is new?", "a moth")]


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder of two plain texts and a record with a question of its own."""
    folder = tmp_path / "stories"
    folder.mkdir()
    (folder / "lamp.txt").write_text(TEXT)
    (folder / "boat.txt").write_text(TEXT.replace("lamp", "boat"))
    own = {"question_id": "mine", "question_type": "causal", "question": "Why?", "gold_answer": "a storm"}
    record = {"story_id": "kite", "title": "Kite", "story_text": TEXT.replace("lamp", "kite")}
    (folder / "kite.json").write_text(json.dumps({**record, "recoverability_questions": [own]}))
    return folder


@contextmanager
def served(author: Author) -> Iterator[Server]:
    with serving("openai", author.step) as server:
        yield server


def bench(stories: Path, out: Path, server: Server | None, *words: str) -> tuple[int, str]:
    at = ("--base-url", server.url) if server is not None else ()
    done = CliRunner().invoke(app, ["bench", "questions", str(stories), "--out", str(out), *at, *words])
    if isinstance(done.exception, KathaError):  # what the console script tells, and leaves with
        return done.exception.exit_code, done.exception.message
    assert done.exception is None or isinstance(done.exception, SystemExit), done.output
    return done.exit_code, done.output


def test_texts_and_records_get_questions_and_the_counts_of_every_stage(texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "made" / "questions.jsonl"
    author = Author([FEW, AGAIN] * 3, guessed={"Which turn is number 2?": "right"})
    with served(author) as server:
        code, said = bench(texts, out, server, "--model", "openai:any", "--reader", "openai:other")
        models = [server.body(at)["model"] for at in range(server.number)]
    assert code == 0, said
    assert "3 stories, 0 of them from before. 36 questions written, 3 guessed without evidence; 3 rewritten" in said
    # Eight calls a story at most; the store knows those that two stories have in common.
    assert models[:8] == ["any", *["other"] * 3, "any", *["other"] * 3]
    assert len(models) <= 3 * 8
    records = load_stories(out)
    assert [record.story_id for record in records] == ["kite", "boat", "lamp"]
    for record in records:
        assert len(record.recoverability_questions) == 12
        making = (record.model_extra or {})["question_making"]
        counts = [making[name] for name in ("written", "guessed", "rewritten", "dropped", "kept")]
        assert counts == [12, 1, 1, 0, 12]
        assert (making["model"], making["reader"]) == ("openai:any", "openai:other")
        assert making["date"] > "2026"
        assert len(making["prompts"]["grade"]) == 64
    assert (records[0].model_extra or {})["earlier_questions"][0]["question_id"] == "mine"
    assert not out.with_name("questions.jsonl.failed").exists()


def test_a_story_that_fails_is_listed_and_the_same_command_goes_on(
    texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "questions.jsonl"
    author = Author([FEW, FEW], failing="boat")
    words = ("--model", "openai:any", "--json")
    with served(author) as server:
        code, said = bench(texts, out, server, *words)
        assert code == 1
        (failed,) = json.loads(said)["failed"]
        assert (failed["story"], failed["error"], failed["status"]) == ("boat", "ReplyError", "refused")
        listed = out.with_name("questions.jsonl.failed").read_text().splitlines()
        assert [json.loads(line) for line in listed] == [failed]
        assert [record.story_id for record in load_stories(out)] == ["kite", "lamp"]
        paid, before = server.number, out.read_text().splitlines()
        with out.open("a") as file:
            file.write('{"story_id": "torn')  # what a kill leaves
        author.failing, author.written = "\0", [FEW]
        monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "emptied"))  # what is written does not hang on kept calls
        code, said = bench(texts, out, server, *words)
        found = json.loads(said)
        assert (code, found["stories"], found["before"], found["failed"]) == (0, 3, 2, [])
        assert server.number == paid + 4, "what is done was asked for again"
        lines = out.read_text().splitlines()
        assert [lines[0], lines[2]] == before
        assert not out.with_name("questions.jsonl.failed").exists()
        code, said = bench(texts / "lamp.txt", out, server, *words)
        assert (code, server.number) == (0, paid + 4)
        assert {record.story_id for record in load_stories(out)} == {"kite", "boat", "lamp"}, "a paid story is lost"


def test_questions_made_otherwise_are_not_written_over(texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "questions.jsonl"
    with served(Author([FEW])) as server:
        bench(texts / "lamp.txt", out, server, "--model", "openai:any")
        whole = out.read_bytes()
        code, said = bench(texts / "lamp.txt", out, server, "--model", "openai:any", "--each", "2")
        assert (code, out.read_bytes()) == (2, whole)
        assert "made otherwise (by each)" in said
        (texts / "lamp.txt").write_text(f"{TEXT} Then it sleeps.")
        code, said = bench(texts / "lamp.txt", out, server, "--model", "openai:any")
        assert (code, out.read_bytes()) == (2, whole)
        assert "(by story)" in said


def test_names_options_and_the_label_are_made_on_request(texts: Path, tmp_path: Path) -> None:
    out = tmp_path / "questions.jsonl"
    told = TEXT.replace("lamp", "torch")
    names: dict[str, Any] = {"names": [{"old": "lamp", "new": "torch"}], "title": "Torch", "story": told}
    author = Author([FEW], renamed=[names])
    words = ("--model", "openai:any", "--rename", "--labels", "--choices", "--each", "2")
    with served(author) as server:
        code, said = bench(texts / "lamp.txt", out, server, *words)
        assert code == 0, said
        assert server.number == 1 + 4 + 1 + 3
        assert "Write 12 questions, 2 for each" in author.asked[1]
        assert all("torch" in prompt for prompt in author.asked[1:] if "carries" in prompt)
    (record,) = load_stories(out)
    extra = record.model_extra or {}
    assert (record.story_id, record.story_text, extra["original_text"]) == ("lamp", told, TEXT)
    assert extra["renamed"] == {"lamp": "torch"}
    *free, lesson = record.recoverability_questions
    assert all(item.options and len(item.options) == 5 for item in free)
    assert (lesson.gold_answer, len(lesson.options or [])) == ("courage", 13)
    making = extra["question_making"]
    assert making["label"] == "settled"
    assert (making["choices"]["asked"], making["choices"]["share"]) == (12, 0)
    assert set(making["prompts"]) >= {"rename", "label", "options", "blind_options"}
    assert "24 answers without evidence take the right option" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--choices",), "--choices needs --model"),
        (("--model", "openai:any", "--judge", "sketch-reader"), "--judge does not go with --model"),
        (("--model", "openai:any", "--by", "openai:any"), "--by does not go with --model"),
        (("--model", "openai:any", "--each", "0"), "--each 0 is not a number of questions"),
        (("--model", "openai"), "needs a name"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_asked(
    texts: Path, tmp_path: Path, words: tuple[str, ...], why: str
) -> None:
    out = tmp_path / "questions.jsonl"
    code, said = bench(texts, out, None, *words)
    assert code == 2
    assert why in said
    assert not out.exists()


def test_a_replay_gives_the_same_bytes(texts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, tape = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "tape.katha"
    with served(Author([FEW])) as server:
        code, said = bench(texts / "lamp.txt", first, server, "--model", "openai:any", "--record", str(tape))
    assert code == 0, said
    monkeypatch.setattr("katha.experiments.inputs.asking.today", lambda: "2099-01-01")
    monkeypatch.delenv("OPENAI_API_KEY")
    code, said = bench(texts / "lamp.txt", second, None, "--model", "openai:any", "--replay", str(tape))
    assert code == 0, said
    assert second.read_bytes() == first.read_bytes()
