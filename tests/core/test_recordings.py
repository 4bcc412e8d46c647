"""Recordings of model calls: kept, recorded, replayed, damaged, and killed in between."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from api_server import Server, Step, serving

from katha.app.recording import recorded
from katha.config import cache_folder
from katha.errors import InputFileError, ModelError, OutputFolderError, ReplyError, UsageError
from katha.jsonio import digest, sha256_hex
from katha.models.base import Completion, TextModel, Turn
from katha.models.calls import current_calls, forgetting_calls, remembered
from katha.models.client import find_vendor
from katha.models.recordings import Recorder, Replayer, listing, read_recording
from katha.models.registry import make_model
from katha.store import Store

CANARY = "sk-canary-0123456789"
PNG = b"\x89PNG of nothing"
GREETED = [Turn("user", "Good morning, model, what do you see?", (PNG,))]
SCHEMA = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}


def counted(number: int, body: dict[str, Any]) -> Step:
    return {"text": f"This is reply {number}."}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("ANTHROPIC_API_KEY", CANARY)
    with ExitStack() as running:
        yield running.enter_context(serving("openai", counted))


@pytest.fixture
def file(server: Server, tmp_path: Path) -> Path:
    """A recording of a conversation of two turns with a schema, and of one call in words."""
    path = tmp_path / "made.katha"
    with recorded(record=path, command="plan"):
        talk(model(server))
        model(server).complete([Turn("user", "Name three birds.")], None)
    return path


def model(server: Server | None, name: str = "openai:gpt-x") -> TextModel:
    return make_model(name, **({"base_url": server.url} if server is not None else {}))


def talk(made: TextModel) -> list[str]:
    """The texts of two replies, the second to a conversation that has grown."""
    first = made.complete(GREETED, SCHEMA)
    grown = [*GREETED, Turn("assistant", first.text), Turn("user", "And now?")]
    return [first.text, made.complete(grown, SCHEMA).text]


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def test_an_identical_call_is_not_paid_twice_and_says_that_it_is_replayed(server: Server) -> None:
    with recorded():
        paid = model(server).complete(GREETED, SCHEMA)
    with recorded():
        known = model(server).complete(GREETED, SCHEMA)
        model(server).complete(GREETED, None)
    assert server.number == 2
    assert (known.text, known.status) == (paid.text, "ok")
    assert dict(known.usage) == {**paid.usage, "replayed": True}
    with Store(cache_folder()) as store:
        kinds = [record.kind for record in store.index.records()]
        assert kinds.count("call") == 2
    assert CANARY not in "".join(path.read_text("latin-1") for path in cache_folder().glob("index.sqlite*"))


def test_without_a_log_every_call_is_made(server: Server) -> None:
    for _ in range(2):
        model(server).complete(GREETED, None)
    assert server.number == 2


def test_another_server_s_model_of_the_same_name_is_another_model(server: Server) -> None:
    with recorded(), serving("openai", lambda number, body: {"text": "from the other"}) as other:
        assert model(server).complete(GREETED, None).text == "This is reply 0."
        assert model(other).complete(GREETED, None).text == "from the other"


def test_a_reply_that_was_cut_is_not_kept_but_recorded(server: Server, tmp_path: Path) -> None:
    server.rule = lambda number, body: {"text": "Half of", "stop": "length"}
    with recorded(record=tmp_path / "cut.katha"):
        assert model(server).complete(GREETED, None).status == "truncated"
    with recorded():
        model(server).complete(GREETED, None)
    assert server.number == 2
    with recorded(replay=tmp_path / "cut.katha"):
        again = model(None).complete(GREETED, None)
    assert (again.status, again.text) == ("truncated", "Half of")


def test_a_recording_is_replayed_without_key_and_server(
    file: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    before = server.number
    with recorded(replay=file):
        assert talk(model(None)) == ["This is reply 0.", "This is reply 1."]
        assert model(server).spec()["endpoint"] == "recording"
        assert model(server).complete([Turn("user", "Name three birds.")], None).text == "This is reply 2."
    assert server.number == before
    with pytest.raises(UsageError, match="needs a key"):
        model(None)


def test_a_reply_to_a_prompts_older_words_is_found_again(server: Server, tmp_path: Path) -> None:
    lines = {
        "- Hedvig looks at along the trail, not at down the well": "- Hedvig looks along the trail, not down the well",
        "- the hens looks at Helve": "- the hens look at Helve",
        "- Ana and Bo looks at up": "- Ana and Bo look up",
        "- Nils looks at the hens": "- Nils looks at the hens",
        "- the duchess looks at the aunt": "- the duchess looks at the aunt",
        "- the man with the bags looks at Bo": "- the man with the bags looks at Bo",
    }
    with recorded(record=tmp_path / "old.katha"):
        said = {old: model(server).complete([Turn("user", f"Draw.\n{old}\nNow.")], None).text for old in lines}
    with recorded(replay=tmp_path / "old.katha"):
        for old, new in lines.items():
            assert model(None).complete([Turn("user", f"Draw.\n{new}\nNow.")], None).text == said[old]
        with pytest.raises(ModelError, match="no such call"):
            model(None).complete([Turn("user", "Draw.\n- the hens look at Bo\nNow.")], None)


def test_clients_of_threads_made_in_the_block_are_replayed_and_later_ones_are_not(file: Path, server: Server) -> None:
    with recorded(replay=file):
        made, said = model(None), list[str]()
    thread = threading.Thread(target=lambda: said.extend(talk(made)))
    thread.start()
    thread.join()
    assert said == ["This is reply 0.", "This is reply 1."]
    assert current_calls() is None


def test_a_model_that_its_vendor_withdrew_is_replayed(server: Server, tmp_path: Path) -> None:
    gone = "openai:gpt-4o-audio-preview"
    with recorded(record=tmp_path / "gone.katha"):
        model(server, gone).complete(GREETED, None)
    with recorded(replay=tmp_path / "gone.katha"):
        assert not find_vendor("openai", "gpt-4o-audio-preview").own
        assert model(None, gone).complete(GREETED, None).text == "This is reply 0."


def test_a_server_that_takes_no_schema_is_replayed_in_words(server: Server, tmp_path: Path) -> None:
    def unable(number: int, body: dict[str, Any]) -> Step:
        told = {"status": 400, "message": "response_format is not supported"}
        return told if "response_format" in body else counted(number, body)

    server.rule = unable
    with recorded(record=tmp_path / "plain.katha"):
        said = talk(model(server))
    with recorded(replay=tmp_path / "plain.katha"):
        made = model(None)
        first = made.complete(GREETED, SCHEMA)
        assert (first.text, first.usage["schema_mode"]) == (said[0], "plain")
        assert talk(made) == said


@pytest.mark.parametrize(
    ("turns", "schema", "said"),
    [
        ([Turn("user", "Name three bats.")], None, 'was "Name three birds.", and is "Name three bats."'),
        (
            [Turn("user", "Good morning, model, what do you see?", (b"another",))],
            SCHEMA,
            "a picture of message 1 (user) differs",
        ),
        ([Turn("user", "Name three birds.")], {"type": "object"}, "the option 'response_format'"),
    ],
)
def test_a_call_that_is_missing_says_what_changed(file: Path, turns: list[Turn], schema: Any, said: str) -> None:
    with recorded(replay=file), pytest.raises(ModelError) as caught:
        model(None).complete(turns, schema)
    assert said in str(caught.value)
    assert "openai:gpt-x" in str(caught.value)
    assert str(file) in str(caught.value)


def test_nobody_is_called_for_what_is_no_reply_in_words(file: Path, server: Server) -> None:
    with recorded(replay=file), pytest.raises(ModelError, match="nobody is in a replay"):
        model(server)._client.patiently(lambda: "called")  # type: ignore[attr-defined]


def test_the_file_has_its_form_and_no_key_or_address(file: Path, server: Server) -> None:
    head, *rest, end = lines_of(file)
    assert (head["katha recording"], head["command"], head["reached"]) == (1, "plan", "openai: this machine")
    calls = [line for line in rest if "call" in line]
    parts = {line["part"]: line["text"] for line in rest if "part" in line}
    assert [line["call"] for line in calls] == sorted(line["call"] for line in calls)
    assert rest[: len(parts)] == [line for line in rest if "part" in line]
    assert all(sha256_hex(text.encode()) == sha256 for sha256, text in parts.items())
    assert sum(GREETED[0].text == text for text in parts.values()) == 1, "a text is there once"
    raw = gzip.decompress(file.read_bytes())
    assert file.read_bytes()[3:8] == bytes(5), "no name and no time in gzip's own head"
    assert end == {"end": 3, "sha256": sha256_hex(b"".join(raw.splitlines(keepends=True)[:-1]))}
    assert b"sha256:" + sha256_hex(PNG).encode() in raw
    port = str(server.server_address[1])
    for secret in (CANARY, "Authorization", "authorization", "127.0.0.1", "localhost", f":{port}", "http"):
        assert secret.encode() not in raw, secret
    assert all(CANARY in header["authorization"] for header in server.headers), "it was sent"
    kept = next(line for line in calls if len(line["request"]["messages"]) == 1)
    assert kept["reply"]["tokens"] == {"input": 10, "cached": 100, "output": 20}


def test_the_key_is_of_provider_model_and_body(server: Server, file: Path) -> None:
    sent = server.body(2)
    assert digest({"provider": "openai", "model": "gpt-x", "request": sent}) in read_recording(file).lines


def test_the_same_calls_are_the_same_bytes_whoever_kept_them(file: Path, server: Server, tmp_path: Path) -> None:
    before = server.number
    with recorded(record=tmp_path / "again.katha", command="plan"):
        model(server).complete([Turn("user", "Name three birds.")], None)
        talk(model(server))
    assert server.number == before, "what was paid for is found in the store"
    assert (tmp_path / "again.katha").read_bytes() == file.read_bytes()


def test_a_recording_goes_on_and_only_grows(file: Path, server: Server) -> None:
    with recorded(record=file, command="plan"):
        model(server).complete([Turn("user", "Something new")], None)
    assert len(read_recording(file).lines) == 4
    assert not file.with_name("made.katha.part").exists()


def test_a_kill_between_two_calls_loses_nothing_and_pays_nothing_twice(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "killed.katha"

    def killed_after(work: Callable[[], object]) -> None:
        child = os.fork()
        if not child:
            try:
                with recorded(record=path):
                    work()
                    os.kill(os.getpid(), signal.SIGKILL)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL

    killed_after(lambda: model(server).complete(GREETED, SCHEMA))
    assert server.number == 1
    part = path.with_name("killed.katha.part")
    assert not path.exists()
    assert part.read_bytes().endswith(b"\n")
    with part.open("ab") as torn:
        torn.write(b'{"call":"cut in the mid')
    shutil.rmtree(cache_folder())  # the part alone is enough
    killed_after(lambda: talk(model(server)))
    assert server.number == 2
    with recorded(record=path):
        assert talk(model(server)) == ["This is reply 0.", "This is reply 1."]
    assert server.number == 2
    assert not part.exists()
    assert len(read_recording(path).lines) == 2


def test_an_error_leaves_what_was_recorded_and_no_file(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "failed.katha"

    def ask_and_fail() -> None:
        model(server).complete(GREETED, SCHEMA)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), recorded(record=path):
        ask_and_fail()
    assert not path.exists()
    assert path.with_name("failed.katha.part").stat().st_size > 0
    with pytest.raises(ZeroDivisionError), recorded(record=tmp_path / "nothing.katha"):
        raise ZeroDivisionError
    assert sorted(item.name for item in tmp_path.glob("nothing*")) == []


def test_a_block_that_asks_nobody_writes_no_file_and_says_so(
    server: Server, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with recorded(record=tmp_path / "none.katha"):
        pass
    assert "No language model was asked" in caplog.text
    assert list(tmp_path.glob("none*")) == []


def test_two_commands_do_not_record_into_one_file(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "one.katha"
    log = Recorder(path)
    with pytest.raises(OutputFolderError, match="Another katha is recording"), recorded(record=path):
        pass
    log.close()
    for wrong in (tmp_path, tmp_path / "no folder" / "x.katha"):
        with pytest.raises(UsageError), recorded(record=wrong):
            pass


def test_record_and_replay_are_two_commands_and_one_block_is_enough(file: Path) -> None:
    with pytest.raises(UsageError, match="two commands"), recorded(record=file, replay=file):
        pass
    with recorded(replay=file) as outer:
        with recorded() as inner:
            assert inner is outer
        with pytest.raises(UsageError, match="inside of another"), recorded(replay=file):
            pass


def _flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]


def _packed(lines: list[dict[str, Any]], *, end: bool = True) -> bytes:
    body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    last = json.dumps({"end": sum("call" in line for line in lines), "sha256": sha256_hex(body)}).encode() + b"\n"
    return gzip.compress(body + (last if end else b""), mtime=0)


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (lambda data, lines: data[: len(data) // 2], "was cut|were changed"),
        (lambda data, lines: data[:-1], "was cut"),
        (lambda data, lines: _flipped(data), "is damaged"),
        (lambda data, lines: data + b"more", "follows its end"),
        (lambda data, lines: b"", "is empty"),
        (lambda data, lines: b"\0" * len(data), "is empty"),
        (lambda data, lines: b"# a story\nA fox.\n", "is not a recording"),
        (lambda data, lines: gzip.compress(b"A fox.\n"), "is not a recording"),
        (lambda data, lines: gzip.compress(b""), "is not a recording"),
        (lambda data, lines: gzip.compress(b"[1, 2]\n"), "is not a recording"),
        (lambda data, lines: _packed([{**lines[0], "katha recording": 2}, *lines[1:-1]]), "of form 2"),
        (lambda data, lines: _packed([{**lines[0], "settings": 3}, *lines[1:-1]]), "no settings"),
        (lambda data, lines: _packed(lines[:-1], end=False), "does not end"),
        (lambda data, lines: _packed([line for line in lines[:-1] if "part" not in line]), "line 2 is not"),
        (lambda data, lines: _packed([*lines[:-1], {"other": 1}]), "is not what katha writes"),
        (lambda data, lines: _packed([*lines[:-2], {**lines[-2], "model": "gpt-z"}]), "is not what katha writes"),
        (lambda data, lines: _packed([*lines[:-1], lines[-2]]), "holds 3 calls, and says 4"),
    ],
)
def test_damage_is_one_sentence_that_names_the_file(file: Path, harm: Any, said: str) -> None:
    file.write_bytes(harm(file.read_bytes(), lines_of(file)))
    for use in (lambda: Replayer(file), lambda: listing(file), lambda: Recorder(file)):
        with pytest.raises(InputFileError, match=said) as caught:
            use()
        assert str(file) in caught.value.message
        assert re.fullmatch(r"[^\n]*\.", caught.value.message)


def test_every_flipped_bit_is_found(file: Path) -> None:
    data = file.read_bytes()
    for at in range(10, len(data), 7):  # the first ten bytes are gzip's own, its time and system among them
        file.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(InputFileError):
            read_recording(file)


def test_the_listing_is_stable_and_has_a_line_a_call(file: Path) -> None:
    told = listing(file)
    head, *rows = told.splitlines()
    assert told == listing(file)
    assert head.startswith("katha plan")
    assert [row[:12] for row in rows] == sorted(row[:12] for row in rows)
    birds = next(row for row in rows if "birds" in row)
    assert birds[12:] == '  openai:gpt-x  110 in  20 out  0 pictures  "Name three birds."  "This is reply 2."'
    assert sum("1 pictures" in row for row in rows) == 2


def test_what_a_planner_cannot_use_is_forgotten_and_asked_anew(server: Server) -> None:
    def plan() -> None:
        model(server).complete([Turn("user", "Something before")], None)
        talk(model(server))
        raise ReplyError("of no use")

    with recorded():
        model(server).complete([Turn("user", "Another conversation")], None)
        with pytest.raises(ReplyError), forgetting_calls(ReplyError):
            plan()
    with recorded():
        model(server).complete([Turn("user", "Another conversation")], None)
        model(server).complete([Turn("user", "Something before")], None)
        assert server.number == 4
        assert talk(model(server)) == ["This is reply 4.", "This is reply 5."]


def test_facts_of_a_server_of_one_s_own_are_recorded(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    path = cache_folder().with_name("facts.katha")
    with recorded(record=path):
        told = remembered(current_calls(), "vllm", "qwen", {"about": "server"}, lambda: {"dtype": "bfloat16"})
    with recorded(replay=path):
        log = current_calls()
        assert remembered(log, "vllm", "qwen", {"about": "server"}, lambda: {"dtype": "asked"}) == told
        with pytest.raises(ModelError, match="what the server is"):
            remembered(log, "vllm", "other", {"about": "server"}, dict)


class Echo:
    """A local model that counts its calls."""

    calls = 0

    def spec(self) -> dict[str, Any]:
        return {"name": "local:tiny", "revision": "abc"}

    def complete(self, turns: list[Turn], schema: Any, heard: Any = None) -> Any:
        Echo.calls += 1
        return Completion("ok", turns[-1].text.upper(), usage={"model": "tiny", "tokens": {"input": 3, "output": 2}})


def test_a_model_on_this_machine_is_recorded_and_need_not_be_here_later(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "local.katha"
    with monkeypatch.context() as patch:
        patch.setattr("katha.models.registry.LocalModel", lambda *_, **__: Echo())
        with recorded(record=path):
            made = make_model("local:tiny")
            said, spec = made.complete(GREETED, SCHEMA), made.spec()
    with recorded(replay=path):
        again = make_model("local:tiny")
        assert again.spec() == spec
        assert again.complete(GREETED, SCHEMA).text == said.text
        with pytest.raises(ModelError, match="local:tiny"):
            again.complete([Turn("user", "else")], SCHEMA)
        with pytest.raises(ModelError, match="a picture of message 1"):
            again.complete([Turn("user", GREETED[0].text, (b"another",))], SCHEMA)
    assert Echo.calls == 1
