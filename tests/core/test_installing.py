"""The line that installs what is missing works where katha is: in a checkout, from a folder, from an index."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from katha import installing
from katha.installing import install_line, stand_in_line


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", sys.prefix)
    monkeypatch.chdir(tmp_path)


def installed(monkeypatch: pytest.MonkeyPatch, folder: Path | None, editable: bool = True) -> None:
    monkeypatch.setattr(installing, "_origin", lambda: (folder, editable))


def test_in_a_checkout_it_is_the_checkout_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, tmp_path)
    assert install_line("desk") == 'pip install -e ".[desk]"'
    assert stand_in_line() == "pip install -e ./sketch"


def test_elsewhere_it_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, tmp_path.parent / "katha", editable=False)
    assert install_line("desk") == f'pip install "{tmp_path.parent / "katha"}[desk]"'
    assert stand_in_line() == f"pip install {tmp_path.parent / 'katha' / 'sketch'}"


def test_from_an_index_it_is_the_package_s(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, None, editable=False)
    assert install_line("desk") == 'pip install "katha[desk]"'
    assert stand_in_line() == 'pip install "katha[sketch]"'


def test_without_an_active_environment_python_itself_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    installed(monkeypatch, None, editable=False)
    monkeypatch.delenv("VIRTUAL_ENV")
    assert install_line("desk") == f'{sys.executable} -m pip install "katha[desk]"'
    monkeypatch.setattr(installing, "find_spec", lambda name: None)
    assert install_line("desk") == f'uv pip install --python {sys.executable} "katha[desk]"'


def test_where_this_katha_is_from_is_known() -> None:
    folder, _ = installing._origin()
    assert folder is None or (folder / "pyproject.toml").is_file()
