"""The one reader of files: regular files only, within limits, UTF-8, and JSON and YAML that can be used."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from katha import jsonio
from katha.errors import InputFileError, UsageError
from katha.jsonio import iter_lines, loads, parse_yaml, read_json, read_lines, read_text, read_yaml, refuse_overwriting


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
@pytest.mark.parametrize("read", [read_text, read_json, read_yaml, lambda path: list(iter_lines(path))])
def test_pipes_and_devices_are_refused_without_waiting(tmp_path: Path, read: object) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    (tmp_path / "zeros").symlink_to("/dev/zero")
    for path in (pipe, Path("/dev/zero"), Path("/dev/random"), tmp_path / "zeros"):
        with pytest.raises(InputFileError, match="not a regular file"):
            read(path)  # type: ignore[operator]


@pytest.mark.parametrize(("name", "says"), [("none", "No such file"), (".", "directory"), ("a\0b", "name of a file")])
def test_what_is_no_file_is_named(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(InputFileError, match=says):
        read_text(tmp_path / name)


def test_a_file_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputFileError, match="at most"):
        read_json(path)
    with pytest.raises(InputFileError, match="does not end"):  # a line of a terabyte is not skipped byte by byte
        list(read_lines(path))
    monkeypatch.setattr(jsonio, "MOST_LINE", 10)
    path = tmp_path / "lines"
    path.write_bytes(b"short\n" + b"x" * 100 + b"\nlast\n")
    assert [(number, len(line)) for number, line in read_lines(path)] == [(1, 6), (2, 11), (3, 5)]
    with pytest.raises(InputFileError, match="line 2, is longer than 10 bytes"):
        list(iter_lines(path))


@pytest.mark.parametrize("text", [r'"\ud800"', r'{"a": ["\uDFFF x"]}', r'{"\ud812": 1}'])
def test_half_a_surrogate_pair_is_no_text(text: str) -> None:
    with pytest.raises(ValueError, match="surrogate"):
        loads(text)


def test_a_whole_surrogate_pair_is_a_letter() -> None:
    assert loads(r'"\ud83d\ude00"') == "\U0001f600"


@pytest.mark.parametrize(
    "text",
    [
        "a: 2026-13-45",
        "a: !!int abc",
        "a: !!timestamp abc",
        "a: " + "9" * 6_000,
        "a: !!float x",
        "a: !!bool x",
        "a: !!binary \xff",
        "[" * 5_000,
        "{" * 3_000,
        "- " * 2_000,
        "a: &a [*a]",
        "a: &a {b: *a}",
        "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]),
        "a: !!python/object/apply:os.system [ls]",
        'a: "\\ud800"',
        "a: [",
        "\t- x",
        "? [a]\n: b\n? {}",
        "{[1]: 2}",
    ],
)
def test_yaml_that_cannot_be_used_is_one_sentence(text: str) -> None:
    with pytest.raises(InputFileError, match=r"^The file is not YAML[^\n]*\.$"):
        parse_yaml(text, "The file")


def test_yaml_may_use_anchors() -> None:
    text = "base: &base {steps: 4}\nrows: [*base, {<<: *base, seed: 1}]"
    assert parse_yaml(text, "it")["rows"] == [{"steps": 4}, {"steps": 4, "seed": 1}]


def test_json_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(InputFileError, match="nested too deeply"):
        read_json(tmp_path / "deep.json")


def test_an_output_is_never_written_over_an_input(tmp_path: Path) -> None:
    source = tmp_path / "in.json"
    source.write_text(json.dumps(1))
    (tmp_path / "link.json").symlink_to(source)
    os.link(source, tmp_path / "hard.json")
    for name in ("in.json", "./in.json", "link.json", "hard.json"):
        with pytest.raises(UsageError, match="written over"):
            refuse_overwriting(tmp_path / name, [None, source])
    refuse_overwriting(tmp_path / "new.json", [None, source, tmp_path / "absent"])
