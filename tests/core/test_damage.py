"""A damaged cache is mended by the next command, whatever was done to it; nothing has to be removed by hand."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from katha.errors import StoreError
from katha.schema import Answer
from katha.sqlite_index import SqliteIndex
from katha.store import Store

Spoil = Callable[[Path], object]
FILES = [f"picture {number}".encode() * 50 for number in range(8)]


def answer(number: int) -> Answer:
    asked = {"method": "m", "judge": "j", "story_id": "s", "question_id": f"q{number}", "condition": "image"}
    return Answer.model_validate({**asked, "status": "ok", "answer": "yes " * 50})


def fill(folder: Path) -> None:
    with Store(folder) as store:
        for number, data in enumerate(FILES):
            store.frames.put(f"f{number}", store.blobs.put(data))
        for number in range(60):
            store.answers.put(f"a{number}", answer(number))


def use(folder: Path) -> int:
    """Do what a command does: take what is there, make what is not; how many answers were there."""
    with Store(folder) as store:
        found = sum(store.answers.get(f"a{number}") is not None for number in range(60))
        for number in range(60):
            known = store.answers.get(f"a{number}")
            assert known is None or known == answer(number)
            store.answers.put(f"a{number}", answer(number))
        for number, data in enumerate(FILES):
            with store.claim(f"frames:{number}"):
                sha256 = store.frames.get(f"f{number}") or store.frames.put(f"f{number}", store.blobs.put(data))
                assert store.blobs.get(sha256) == data
        store.flush()
    return found


def over(folder: Path, name: str, change: Callable[[bytearray], None]) -> None:
    path = folder / name
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(bytes(data))


def flip(seed: int, share: float) -> Callable[[bytearray], None]:
    dice = random.Random(seed)

    def change(data: bytearray) -> None:
        for at in dice.sample(range(len(data)), max(1, int(share * len(data)))):
            data[at] ^= 0xFF

    return change


def half(data: bytearray) -> None:
    for at in range(len(data) // 2, len(data)):
        data[at] ^= 0xFF


def in_place_of(name: str) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        path.mkdir()

    return spoil


def file_in_place_of(name: str) -> Spoil:
    def spoil(folder: Path) -> None:
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).write_bytes(b"x")

    return spoil


def blob(folder: Path) -> Path:
    return next(path for path in sorted((folder / "blobs").rglob("*")) if path.is_file())


def other_schema(folder: Path) -> None:
    (folder / "index.sqlite").unlink()
    with sqlite3.connect(folder / "index.sqlite") as connection:
        connection.execute("CREATE TABLE entries (a, b)")
    connection.close()


def pipe_in_place_of_a_file(folder: Path) -> None:
    path = blob(folder)
    path.unlink()
    os.mkfifo(path)


def folder_in_place_of_a_file(folder: Path) -> None:
    path = blob(folder)
    path.unlink()
    (path / "inside").mkdir(parents=True)


SPOILS: dict[str, Spoil] = {
    "half of the index flipped": lambda folder: over(folder, "index.sqlite", half),
    "the index cut in half": lambda folder: os.truncate(folder / "index.sqlite", 4_096 * 5 + 100),
    "the index empty": lambda folder: os.truncate(folder / "index.sqlite", 0),
    "the index missing": lambda folder: (folder / "index.sqlite").unlink(),
    "a text for an index": lambda folder: (folder / "index.sqlite").write_text("no database" * 500),
    "a wrong schema": other_schema,
    "a folder for the index": in_place_of("index.sqlite"),
    "a folder for the log of the index": in_place_of("index.sqlite-wal"),
    "a folder for the lock": in_place_of("index.lock"),
    "a file for the claims": file_in_place_of("claims"),
    "a file for the files": file_in_place_of("blobs"),
    "a file for the quarantine, and a damaged index": lambda folder: (
        (folder / "quarantine").write_text("x"),
        over(folder, "index.sqlite", half),
    ),
    "a flipped file": lambda folder: over(blob(folder).parent, blob(folder).name, half),
    "a cut file": lambda folder: os.truncate(blob(folder), 3),
    "an empty file": lambda folder: os.truncate(blob(folder), 0),
    "a missing file": lambda folder: blob(folder).unlink(),
    "a folder for a file": folder_in_place_of_a_file,
    "a pipe for a file": pipe_in_place_of_a_file,
    **{
        f"the index flipped here and there, {seed}": lambda folder, seed=seed: over(
            folder, "index.sqlite", flip(seed, 0.002 * (1 + seed % 5))
        )
        for seed in range(32)
    },
}


@pytest.mark.parametrize("name", SPOILS)
def test_the_next_command_mends_the_cache(tmp_path: Path, name: str) -> None:
    fill(tmp_path)
    SPOILS[name](tmp_path)
    use(tmp_path)
    assert use(tmp_path) == 60
    with Store(tmp_path) as store:
        found = store.check()
        assert (found.damaged_files, found.damaged_records) == (0, 0)


def test_what_can_still_be_read_of_a_damaged_index_is_kept(tmp_path: Path) -> None:
    """Answers are paid for."""
    fill(tmp_path)
    size = (tmp_path / "index.sqlite").stat().st_size

    def spoil(data: bytearray) -> None:
        data[size // 2 : size // 2 + 4_096] = b"\xff" * 4_096

    over(tmp_path, "index.sqlite", spoil)
    assert 20 <= use(tmp_path) < 60


def test_a_look_at_the_cache_counts_and_sets_aside(tmp_path: Path) -> None:
    fill(tmp_path)
    over(blob(tmp_path).parent, blob(tmp_path).name, half)
    with Store(tmp_path) as store:
        store.index._run("UPDATE entries SET value = ? WHERE key = 'a3'", b"other")
        found = store.check()
        assert (found.files, found.damaged_files, found.records, found.damaged_records) == (8, 1, 68, 1)
        assert found.missing_files == 1
        again = store.check()
        assert (again.files, again.damaged_files, again.records, again.damaged_records) == (7, 0, 66, 0)
    assert len(list((tmp_path / "quarantine").iterdir())) == 2


def test_a_cache_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("x")
    with pytest.raises(StoreError, match="KATHA_CACHE"):
        SqliteIndex(tmp_path / "cache" / "index.sqlite", tmp_path / "quarantine")
