"""The cache: verified blobs, first writer wins, quarantine, full disks, and two processes at once."""

from __future__ import annotations

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from katha.addresses import StoreAddress
from katha.errors import CorruptEntryError, StoreError
from katha.jsonio import sha256_hex
from katha.schema import Answer
from katha.sqlite_index import LockTaken, file_lock
from katha.store import Store


def answer(text: str = "yes", **changes: object) -> Answer:
    fields = {"method": None, "judge": "j", "story_id": "s", "question_id": "q", "condition": "text", "status": "ok"}
    return Answer.model_validate({**fields, "answer": text, **changes})


PLACES = ("one machine", "postgres and a folder", "postgres and s3")


@pytest.fixture(params=PLACES)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> StoreAddress:
    """Where a store is: on one machine, or where many share it."""
    if request.param == "one machine":
        return StoreAddress()
    database = request.getfixturevalue("postgres").fresh()
    if request.param == "postgres and a folder":
        return StoreAddress(database, str(tmp_path / "shared"))
    return StoreAddress(database, request.getfixturevalue("s3_keys").bucket())


@pytest.fixture
def shared(tmp_path: Path, address: StoreAddress) -> Iterator[Store]:
    """A store, wherever it is."""
    with Store(tmp_path / "cache", owner="run-1", address=address) as opened:
        yield opened


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A store on one machine."""
    with Store(tmp_path / "cache", owner="run-1") as opened:
        yield opened


def test_blobs_are_named_by_their_bytes(store: Store) -> None:
    sha256 = store.blobs.put(b"picture")
    assert sha256 == sha256_hex(b"picture")
    assert store.blobs.get(sha256) == b"picture"
    assert store.blobs.put(b"picture") == sha256
    assert [path.name for path in store.blobs.folder.rglob("*") if path.is_file()] == [sha256[2:]]


@pytest.mark.parametrize("name", ["../../etc/passwd", "A" * 64, "0" * 63, ""])
def test_a_name_that_is_no_hash_never_becomes_a_path(shared: Store, name: str) -> None:
    with pytest.raises(StoreError, match="not a sha256"):
        shared.blobs.get(name)


def test_a_changed_blob_is_quarantined_and_made_again(store: Store) -> None:
    sha256 = store.blobs.put(b"picture")
    store.frames.put("key", sha256)
    store.blobs.path(sha256).write_bytes(b"pictur3")
    with pytest.raises(CorruptEntryError, match="moved to"):
        store.blobs.get(sha256)
    assert [path.read_bytes() for path in (store.folder / "quarantine").iterdir()] == [b"pictur3"]
    assert store.frames.get("key") is None
    store.frames.put("key", store.blobs.put(b"picture"))
    assert store.frames.get("key") == sha256
    assert store.blobs.get(sha256) == b"picture"


def test_putting_over_a_torn_blob_repairs_it(store: Store) -> None:
    sha256 = store.blobs.put(b"picture")
    store.blobs.path(sha256).write_bytes(b"pic")
    assert store.blobs.put(b"picture") == sha256
    assert store.blobs.get(sha256) == b"picture"


def test_the_first_frame_of_a_request_counts(shared: Store) -> None:
    first, second = shared.blobs.put(b"one"), shared.blobs.put(b"two")
    assert shared.frames.put("key", first) == first
    assert shared.frames.put("key", second) == first


def test_only_answers_are_kept(shared: Store) -> None:
    shared.answers.put("a", answer("yes"))
    for status in ("unparseable", "refused", "truncated", "transport_failed", "budget_stopped", "not_asked"):
        shared.answers.put(status, answer(status=status))
        assert shared.answers.get(status) is None
    assert shared.answers.get("a") == answer("yes")
    assert shared.answers.get("b") is None
    assert shared.answers.asked() == 1


def test_what_another_run_paid_is_not_counted_as_ours(shared: Store) -> None:
    shared.answers.put("a", answer())
    with Store(shared.folder, owner="run-2", address=shared.address) as other:
        assert other.answers.get("a") == answer()
        other.answers.put("a", answer("no"))
        assert other.answers.get("a") == answer()
        assert other.answers.asked() == 0
        assert other.frames.rendered() == 0


def test_a_changed_record_is_quarantined(store: Store) -> None:
    store.answers.put("a", answer("yes"))
    with sqlite3.connect(store.folder / "index.sqlite") as raw:
        raw.execute("UPDATE entries SET value = replace(CAST(value AS TEXT), 'yes', 'no!')")
    raw.close()
    assert store.answers.get("a") is None
    assert b"no!" in next((store.folder / "quarantine").iterdir()).read_bytes()
    store.answers.put("a", answer("yes"))
    assert store.answers.get("a") == answer("yes")


def test_a_database_that_is_none_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "index.sqlite").write_bytes(b"this is no database, " * 400)
    with Store(tmp_path) as store:
        store.answers.put("a", answer())
        assert store.answers.get("a") == answer()
    assert (tmp_path / "quarantine" / "index.sqlite").read_bytes().startswith(b"this is no database")


def test_a_full_disk_loses_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = store.blobs.put(b"before")

    def full(handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match="No space left") as caught:
        store.blobs.put(b"after")
    assert "Free some space" in str(caught.value)
    monkeypatch.undo()
    assert store.blobs.get(kept) == b"before"
    assert store.blobs.find(sha256_hex(b"after")) is None
    assert [path.name for path in store.blobs.folder.rglob("*") if path.is_file()] == [kept[2:]]


_LIMITED = """
import resource, sys
from pathlib import Path
from katha.errors import StoreError
from katha.store import Store
with Store(Path(sys.argv[1])) as store:
    kept = store.blobs.put(b"small")
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    for write in (lambda: store.blobs.put(bytes(40_000)), lambda: store.index.put("answer", "k", bytes(200_000))):
        try:
            write()
        except StoreError as error:
            print("StoreError", error.hint)
    assert store.blobs.get(kept) == b"small"
"""


def test_a_file_system_that_refuses_to_grow_a_file(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LIMITED, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.count("StoreError") == 2, done.stderr


_WRITER = """
import sys
from pathlib import Path
from katha.schema import Answer
from katha.store import Store
folder, me, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
paid = 0
with Store(folder / me if len(sys.argv) > 4 else folder, owner=me) as store:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(count):
        with store.claim(f"work {number}"):
            if store.frames.get(f"frame {number}") is None:
                paid += 1
                store.frames.put(f"frame {number}", store.blobs.put(b"frame %d" % number))
        key = f"answer {number}"
        if store.answers.get(key) is None:
            store.answers.put(key, Answer(method=None, judge=me, story_id="s", question_id=key, condition="text",
                                          status="ok", answer=key))
        assert store.answers.get(key).answer == key
    assert store.frames.rendered() == paid
print(paid)
"""


def test_two_processes_share_one_store_and_pay_once(tmp_path: Path, address: StoreAddress) -> None:
    """Each has a cache folder of its own where the store is on no machine."""
    count = 40 if address.objects else 150
    apart = ["apart"] if address.objects else []
    where = {**os.environ, "KATHA_STORE": address.index, "KATHA_OBJECTS": address.objects}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(tmp_path), name, str(count), *apart],
            env=where,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("one", "two")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    paid = [int(writer.communicate(timeout=60)[0]) for writer in writers]
    assert [writer.returncode for writer in writers] == [0, 0]
    assert sum(paid) == count
    with Store(tmp_path, address=address) as store:
        assert all(store.frames.get(f"frame {number}") for number in range(count))
        assert all(store.answers.get(f"answer {number}") for number in range(count))


def test_threads_share_one_store(shared: Store) -> None:
    failures: list[BaseException] = []

    def work(me: int) -> None:
        try:
            for number in range(50):
                shared.answers.put(f"{number}", answer(str(number)))
                assert shared.answers.get(f"{number}") == answer(str(number))
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert shared.answers.asked() == 50


def test_a_lock_is_held_alone(tmp_path: Path) -> None:
    with file_lock(tmp_path / "lock"), pytest.raises(LockTaken), file_lock(tmp_path / "lock", wait=False):
        pass
    with file_lock(tmp_path / "lock", wait=False):
        pass


def test_claims_that_another_thread_begins_in_between_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = Path.is_dir

    def meanwhile(path: Path) -> bool:
        there = asked(path)
        if path.name == "claims":
            path.mkdir(exist_ok=True)
        return there

    with Store(tmp_path / "cache") as store:
        monkeypatch.setattr(Path, "is_dir", meanwhile)
        with store.claim("frames:1"):
            assert asked(tmp_path / "cache" / "claims")
    assert not (tmp_path / "cache" / "quarantine").exists()
