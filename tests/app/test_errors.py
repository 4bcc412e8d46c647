"""What is said of a file that cannot be read, and of another library's error."""

from __future__ import annotations

from pathlib import Path

import pytest

from katha.errors import InputFileError, first_line
from katha.jsonio import read_text


@pytest.mark.parametrize(("name", "hint"), [("", "not a folder"), ("missing.txt", "Check the path")])
def test_an_unreadable_file_says_what_to_do(tmp_path: Path, name: str, hint: str) -> None:
    with pytest.raises(InputFileError, match=hint) as caught:
        read_text(tmp_path / name)
    assert str(tmp_path) in caught.value.message


@pytest.mark.parametrize(
    ("error", "line"),
    [(ValueError("  one\ntwo"), "one"), (ValueError(""), "ValueError"), (ValueError("\n \n"), "ValueError")],
)
def test_the_first_line_of_an_error_is_never_empty(error: Exception, line: str) -> None:
    assert first_line(error) == line
