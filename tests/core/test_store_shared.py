"""A store that machines share: leases, first writes, lost places, wrong addresses, upkeep."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from services import PostgresServer, S3Server

from katha import garbage_collection as upkeep
from katha.addresses import StoreAddress, shown, store_address
from katha.errors import StoreError, UsageError
from katha.jsonio import sha256_hex
from katha.postgres import PostgresIndex
from katha.schema import Answer
from katha.sqlite_index import IndexRecord
from katha.store import Store

NOBODY = "postgresql://katha@127.0.0.1:1/none"


def answer(text: str = "yes") -> Answer:
    asked = {"method": None, "judge": "j", "story_id": "s", "question_id": "q", "condition": "text"}
    return Answer.model_validate({**asked, "status": "ok", "answer": text})


def until(true: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait for a condition."""
    waited, end = threading.Event(), time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        waited.wait(0.01)


@pytest.fixture
def database(postgres: PostgresServer) -> str:
    return postgres.fresh()


@pytest.fixture
def address(database: str, tmp_path: Path) -> StoreAddress:
    """A database, and a folder that all see; leases of a second."""
    return StoreAddress(database, str(tmp_path / "shared"), lease=1.0, patience=5.0)


def rows(database: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(database, autocommit=True) as connection:
        return connection.execute(statement.encode()).fetchall()


_HOLDER = """
import sys
from pathlib import Path
from katha.store import Store
with Store(Path(sys.argv[1]), owner="other") as store, store.claim("frames:1"):
    print("held", flush=True)
    sys.stdin.readline()
    store.frames.put("key", store.blobs.put(b"late"))
    print(store.frames.get("key"), flush=True)
    sys.stdin.readline()
"""


@contextmanager
def holder(tmp_path: Path, address: StoreAddress) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds `frames:1`; a line lets it write its frame, another lets it end."""
    where = {"KATHA_STORE": address.index, "KATHA_OBJECTS": address.objects, "KATHA_STORE_LEASE": str(address.lease)}
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path / "other")],
        env={**os.environ, **where},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_the_work_of_a_killed_worker_is_taken_over_after_its_lease(tmp_path: Path, address: StoreAddress) -> None:
    with Store(tmp_path / "cache", owner="me", address=address) as store, holder(tmp_path, address) as process:
        process.kill()
        begun = time.monotonic()
        with store.claim("frames:1"):
            assert time.monotonic() - begun < 10 * address.lease
            assert store.frames.get("key") is None
        assert rows(address.index, "SELECT * FROM katha_claims") == []


def test_the_second_result_of_a_slow_worker_is_dropped(tmp_path: Path, address: StoreAddress) -> None:
    """It stood still for longer than its lease, as a machine does that swaps, and then goes on as if nothing was."""
    with Store(tmp_path / "cache", owner="me", address=address) as store, holder(tmp_path, address) as process:
        process.send_signal(signal.SIGSTOP)
        with store.claim("frames:1"):
            mine = store.frames.put("key", store.blobs.put(b"first"))
            process.send_signal(signal.SIGCONT)
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == f"{mine}\n"
        assert mine == sha256_hex(b"first")
        assert store.frames.get("key") == mine
        assert store.frames.rendered() == 1


def test_a_lease_is_renewed_while_its_holder_lives(tmp_path: Path, address: StoreAddress) -> None:
    def runs_out() -> object:
        return rows(address.index, "SELECT until FROM katha_claims")[0][0]

    with Store(tmp_path / "cache", address=address) as store, holder(tmp_path, address):
        first = runs_out()
        until(lambda: runs_out() != first)
        assert store.index.sweep() == 0


def test_the_clock_is_the_database_s(tmp_path: Path, address: StoreAddress, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose own clock is a year ahead takes nothing from anybody."""
    with Store(tmp_path / "cache", address=address) as store, holder(tmp_path, address):
        monkeypatch.setattr(time, "time", lambda: 4e9)
        monkeypatch.setattr(time, "monotonic", lambda: 4e9)
        assert isinstance(store.index, PostgresIndex)
        assert store.index.sweep() == 0
        assert len(rows(address.index, "SELECT * FROM katha_claims")) == 1


def test_a_database_that_restarts_is_waited_for(
    tmp_path: Path, address: StoreAddress, postgres: PostgresServer
) -> None:
    with Store(tmp_path / "cache", owner="me", address=address) as store:
        store.answers.put("a", answer())
        postgres.stop()
        starter = threading.Thread(target=postgres.start)
        starter.start()
        try:
            store.answers.put("b", answer("no"))
            with store.claim("work"):
                assert store.answers.get("a") == answer()
        finally:
            starter.join()
        assert store.answers.asked() == 2


def test_a_claim_is_given_back_to_a_database_that_restarts(
    tmp_path: Path, address: StoreAddress, postgres: PostgresServer
) -> None:
    """Who did the work has all of it, and would wait for its own lease where it comes to the same again."""
    with Store(tmp_path / "cache", owner="me", address=replace(address, lease=600.0)) as store:
        with store.claim("work"):
            postgres.stop()
            starter = threading.Thread(target=postgres.start)
            starter.start()
        starter.join()
        assert rows(address.index, "SELECT * FROM katha_claims") == []


def test_a_lost_database_is_one_sentence_and_loses_nothing(
    tmp_path: Path, database: str, postgres: PostgresServer
) -> None:
    address = StoreAddress(database, str(tmp_path / "shared"), patience=0.0)
    with Store(tmp_path / "cache", owner="me", address=address) as store:
        picture = store.blobs.put(b"picture")
        postgres.stop()
        try:
            for write in (lambda: store.answers.put("a", answer()), lambda: store.frames.put("f", picture)):
                with pytest.raises(
                    StoreError, match=r"^The database postgresql:///postgres cannot be used: .*"
                ) as said:
                    write()
                assert "what is done is kept" in str(said.value)
                assert said.value.exit_code == 1
            with pytest.raises(StoreError, match="cannot be used"):
                Store(tmp_path / "cache", address=address)
        finally:
            postgres.start()
    with Store(tmp_path / "elsewhere", address=StoreAddress(postgres.fresh(), str(tmp_path / "more"))) as other:
        assert other.answers.get("a") is None
    with Store(tmp_path / "cache", owner="later", address=address) as store:
        assert store.answers.get("a") == answer()
        assert store.frames.get("f") == picture
        assert store.index.paid("answer") == 0  # who paid stays told
    assert rows(database, "SELECT owner FROM katha_entries WHERE kind = 'answer'") == [("me",)]
    with Store(tmp_path / "machine 2", address=address) as store:
        assert store.answers.get("a") == answer()


_FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full'; END $$;
CREATE TRIGGER full_disk BEFORE INSERT ON katha_entries EXECUTE FUNCTION full_disk()
"""


def test_a_full_disk_of_the_database_is_told_at_once(tmp_path: Path, database: str) -> None:
    address = StoreAddress(database, str(tmp_path / "shared"), patience=3_600.0)
    with Store(tmp_path / "cache", address=address) as store:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(_FULL.encode())
        with pytest.raises(StoreError, match=r"No space left on device\. Free some space there"):
            store.answers.put("a", answer())
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute(b"DROP TRIGGER full_disk ON katha_entries")
    with Store(tmp_path / "cache", address=address) as store:
        assert store.answers.get("a") == answer()


def test_a_pooler_between_may_hand_each_statement_to_another_session(tmp_path: Path, address: StoreAddress) -> None:
    with Store(tmp_path / "cache", address=address) as store:
        for number in range(12):
            store.answers.put(str(number), answer())
        assert rows(address.index, "SELECT * FROM pg_prepared_statements") == []
        assert isinstance(store.index, PostgresIndex)
        assert store.index._run("SELECT COUNT(*) FROM pg_prepared_statements") == [(0,)]


@pytest.fixture
def remote(database: str, s3_keys: S3Server, tmp_path: Path) -> Iterator[Store]:
    """A store whose pictures are in S3, as machine 1 sees it."""
    with Store(tmp_path / "one", owner="me", address=StoreAddress(database, s3_keys.bucket(), patience=0.0)) as store:
        yield store


def test_pictures_go_from_machine_to_machine(remote: Store, tmp_path: Path) -> None:
    sha256 = remote.frames.put("key", remote.blobs.put(b"picture"))
    with Store(tmp_path / "two", address=remote.address) as other:
        assert other.frames.get("key") == sha256
        assert other.blobs.get(sha256) == b"picture"
        assert [path.read_bytes() for path in (tmp_path / "two" / "blobs").rglob("*") if path.is_file()] == [b"picture"]
        assert list(other.blobs.names()) == [sha256]


def spoil(store: Store, sha256: str, data: bytes | None) -> None:
    """Change an object behind the store's back."""
    import fsspec

    files, root = fsspec.core.url_to_fs(store.address.objects)
    path = f"{root}/{sha256[:2]}/{sha256[2:]}"
    files.rm_file(path) if data is None else files.pipe_file(path, data)


def test_a_changed_object_is_quarantined_and_made_again(remote: Store, tmp_path: Path) -> None:
    sha256 = remote.frames.put("key", remote.blobs.put(b"picture"))
    spoil(remote, sha256, b"pictur3")
    with Store(tmp_path / "two", address=remote.address) as other:
        assert other.frames.get("key") is None
        assert [path.read_bytes() for path in (tmp_path / "two" / "quarantine").iterdir()] == [b"pictur3"]
        assert other.frames.put("key", other.blobs.put(b"picture")) == sha256
        assert other.blobs.verify(sha256)


@pytest.mark.parametrize("data", [None, b"pictur3"])
def test_a_look_finds_objects_that_are_gone_and_mends_what_it_has(remote: Store, tmp_path: Path, data: bytes) -> None:
    sha256 = remote.frames.put("key", remote.blobs.put(b"picture"))
    spoil(remote, sha256, data)
    found = remote.check()  # machine 1 has a copy
    assert (found.missing_files, found.records) == (0, 2)
    assert remote.blobs.verify(sha256)
    spoil(remote, sha256, data)
    with Store(tmp_path / "two", address=remote.address) as other:
        assert other.check().missing_files == 1
        assert other.check().records == 1


def test_a_torn_object_is_written_again(remote: Store) -> None:
    sha256 = remote.blobs.put(b"picture")
    spoil(remote, sha256, b"pic")
    remote.blobs.put(b"picture")
    assert remote.blobs.verify(sha256)


def test_a_lost_object_store_is_one_sentence_and_loses_nothing(
    remote: Store, s3_keys: S3Server, tmp_path: Path
) -> None:
    """The picture was paid for: it stays on this machine, with its record, and nobody else sees a record without it."""
    s3_keys.stop()
    try:
        sha256 = remote.blobs.put(b"picture")
        with pytest.raises(
            StoreError, match=r"^The object store s3://bucket-\d+/katha cannot take a picture: .*c"
        ) as said:
            remote.frames.put("key", sha256)
        assert "KATHA_OBJECTS" in str(said.value)
        with pytest.raises(StoreError, match="cannot give a picture"):
            remote.blobs.find(sha256_hex(b"of another machine"))
        assert remote.index.get("frame", "key") is None
        with pytest.raises(StoreError, match="cannot be used"):
            Store(tmp_path / "two", address=remote.address)
    finally:
        s3_keys.start()
    with Store(tmp_path / "one", owner="later", address=remote.address) as store:
        assert store.frames.get("key") == sha256
        assert store.blobs.verify(sha256)
        assert [item.owner for item in store.index.records("frame")] == ["me"]


def test_a_full_object_store_is_told_at_once(database: str, s3_keys: S3Server, tmp_path: Path) -> None:
    address = StoreAddress(database, s3_keys.bucket(), patience=3_600.0)
    with Store(tmp_path / "one", owner="me", address=address) as store:
        s3_keys.room = 20
        try:
            assert store.frames.put("first", store.blobs.put(b"picture"))
            sha256 = store.blobs.put(b"one picture too many")
            with pytest.raises(StoreError, match=r"cannot take a picture: .*free space.*\. Free some space there"):
                store.frames.put("key", sha256)
        finally:
            s3_keys.room = None
    with Store(tmp_path / "one", address=address) as store:
        assert store.frames.get("key") == sha256
        assert store.blobs.verify(sha256)


def test_a_wrong_bucket_is_refused_before_anything_is_drawn(remote: Store, s3_keys: S3Server, tmp_path: Path) -> None:
    gone = StoreAddress(remote.address.index, "s3://nobody-has-this/katha", patience=0.0)
    with pytest.raises(StoreError, match=r"object store s3://nobody-has-this/katha cannot be used: .*bucket"):
        Store(tmp_path / "two", address=gone)
    other = StoreAddress(remote.address.index, s3_keys.bucket())
    with pytest.raises(UsageError, match=f"are in '{remote.address.objects}', and '{other.objects}' is another"):
        Store(tmp_path / "two", address=other)


_GOOGLE = """
import os, sys
from pathlib import Path
from gcp_storage_emulator.server import create_server
server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="bucket")
server.start()
os.environ["STORAGE_EMULATOR_HOST"] = f"http://127.0.0.1:{server._api._httpd.server_address[1]}"
from katha.addresses import StoreAddress
from katha.store import Store
there = StoreAddress(objects="gs://bucket/katha", patience=0.0)
with Store(Path(sys.argv[1], "one"), address=there) as one:
    sha256 = one.blobs.put(b"picture")
    assert not one.blobs.failures, one.blobs.failures
with Store(Path(sys.argv[1], "two"), address=there) as two:
    assert two.blobs.find(sha256) == b"picture"
    assert two.blobs.find("0" * 64) is None
    assert list(two.blobs.names()) == [sha256] and two.blobs.verify(sha256) and two.blobs.size(sha256) == 7
    assert two.blobs.identity("another") == one.blobs.identity("third")
    two.blobs.remove(sha256)
    assert not list(two.blobs.names())
print("fine", flush=True)
os._exit(0)
"""


def test_pictures_may_be_in_google_s_store(tmp_path: Path) -> None:
    """In a process of its own: gcsfs decides when it is imported whether it asks the server for newer protocols."""
    known = {**os.environ, "GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT": "false", "FSSPEC_GS_TOKEN": "anon"}
    words = [sys.executable, "-c", _GOOGLE, str(tmp_path)]
    done = subprocess.run(words, env=known, capture_output=True, text=True, timeout=60)
    assert done.stdout == "fine\n", done.stderr


def test_a_folder_that_is_not_mounted_is_refused(tmp_path: Path, address: StoreAddress) -> None:
    with Store(tmp_path / "cache", address=address) as store:
        store.frames.put("key", store.blobs.put(b"picture"))
    (tmp_path / "shared").rename(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="not mounted"):
        Store(tmp_path / "cache", address=address)


WRONG = {
    "mysql://a:secret@b/c": "KATHA_STORE cannot be 'mysql://b/c'",
    "postgresql://a:secret@127.0.0.1:x/c": "postgresql://127.0.0.1:x/c cannot be used: .*port",
    "postgresql://a:secret@127.0.0.1:1/c": "postgresql://127.0.0.1:1/c cannot be used: .*refused",
}


@pytest.mark.parametrize("index", WRONG)
def test_a_wrong_database_is_one_sentence_without_its_password(tmp_path: Path, index: str) -> None:
    with pytest.raises((UsageError, StoreError), match=WRONG[index]) as said:
        Store(tmp_path, address=StoreAddress(index, str(tmp_path)))
    assert "secret" not in str(said.value)


def test_a_place_of_no_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="KATHA_OBJECTS cannot be 'nowhere://x'"):
        Store(tmp_path, address=StoreAddress(objects="nowhere://x"))


def test_the_environment_names_the_store() -> None:
    given = {"KATHA_STORE": NOBODY, "KATHA_OBJECTS": "/shared", "KATHA_STORE_LEASE": "5"}
    assert store_address(given) == StoreAddress(NOBODY, "/shared", lease=5.0)
    assert store_address({}) == StoreAddress()
    with pytest.raises(UsageError, match="nothing says where they share the pictures"):
        store_address({"KATHA_STORE": NOBODY})
    with pytest.raises(UsageError, match="KATHA_STORE_LEASE cannot be 'soon'"):
        store_address({"KATHA_STORE_LEASE": "soon"})
    assert shown("postgresql://me:secret@host:5432/db?password=x") == "postgresql://host:5432/db"
    assert StoreAddress(objects="file:///a%20b").folder == Path("/a b")
    assert StoreAddress(objects="s3://a/b").folder is None


def test_what_nothing_needs_is_collected(tmp_path: Path, remote: Store) -> None:
    kept = remote.frames.put("key", remote.blobs.put(b"picture"))
    named, loose = remote.blobs.put(b"named by a run"), remote.blobs.put(b"loose")
    run = tmp_path / "runs" / "fox"
    run.mkdir(parents=True)
    (run / "storyboard.json").write_text(json.dumps({"frames": [{"sha256": named}]}))
    now = time.time()
    young = upkeep.collect(remote, [tmp_path / "runs"], age=3_600, now=now)
    assert (young.files, young.kept_young) == (0, 1)
    dry = upkeep.collect(remote, [tmp_path / "runs"], age=3_600, now=now + 7_200)
    assert (dry.files, dry.bytes, dry.removed) == (1, 5, False)
    assert sorted(remote.blobs.names()) == sorted((kept, named, loose))
    assert upkeep.collect(remote, [tmp_path / "runs"], age=3_600, now=now + 7_200, remove=True).files == 1
    assert sorted(remote.blobs.names()) == sorted((kept, named))
    assert remote.check().missing_files == 0


def test_a_copy_goes_on_where_it_was_stopped(tmp_path: Path, remote: Store) -> None:
    with Store(tmp_path / "old", owner="paid", address=StoreAddress()) as old:
        for number in range(6):
            old.frames.put(f"f{number}", old.blobs.put(b"picture %d" % number))
            old.answers.put(f"a{number}", answer(str(number)))
        gone = old.frames.get("f5") or ""
        old.blobs.path(gone).unlink()

        def stop(done: int) -> None:
            if done == 8:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            upkeep.copy(old, remote, stop)
        found = upkeep.copy(old, remote)
        assert (found.records, found.present_records, found.missing_files) == (4, 7, 1)
        assert (found.files, found.present_files) == (4, 0)
        assert upkeep.copy(old, remote).records == 0
    assert remote.index.paid("answer") == 0
    assert {record.owner for record in remote.index.records("answer")} == {"paid"}
    assert remote.answers.get("a3") == answer("3")
    assert remote.blobs.get(remote.frames.get("f1") or "") == b"picture 1"
    with Store(tmp_path / "back", address=StoreAddress()) as back:
        assert upkeep.copy(remote, back).records == 11
        assert back.check().records == 11


def test_a_changed_record_is_quarantined(tmp_path: Path, address: StoreAddress) -> None:
    with Store(tmp_path / "cache", address=address) as store:
        store.answers.put("a", answer())
        rows(address.index, "UPDATE katha_entries SET value = 'no!' WHERE key = 'a' RETURNING 1")
        assert store.index.check() == (2, 1)
        assert store.answers.get("a") is None
        assert [path.read_bytes() for path in (tmp_path / "cache" / "quarantine").iterdir()] == [b"no!"]
        assert list(store.index.records("answer")) == list[IndexRecord]()
