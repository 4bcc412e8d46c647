"""Folders and files as people name them, on any system: a board is drawn, changed and exported in each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from katha.app.cli.main import app

TEXT = "The fox saw a crow. The crow had a piece of cheese. The fox asked the crow to sing. The cheese fell."
FOLDERS = ("My boards", "Bücher (1)", "Größe #2", "カラス", "it's & more", "a.b.c", "+x,y;z=%20")


def katha(*words: object) -> str:
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("name", FOLDERS)
def test_a_board_is_drawn_changed_and_exported_in_any_folder(
    name: str, tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(cache / name))
    home = tmp_path / name
    home.mkdir()
    story, out = home / f"{name} story.txt", home / "out" / name
    story.write_text(TEXT, encoding="utf-8")
    katha("run", story, "--panels", 4, "--seeds", 1, "--mode", "base", "--out", out)
    Image.radial_gradient("L").convert("RGB").save(home / f"{name}.png")
    katha("redo", out, "--frame", 2, "--picture", home / f"{name}.png")
    katha("redo", out, "--undo")
    katha("export", out, "--to", "cbz", "--out", home / f"{name}.cbz")
    katha("export", out, "--to", "png", "--out", home / f"{name} frames")
    assert len(list((home / f"{name} frames").glob("*.png"))) == 4
    assert json.loads((out / "run.json").read_text(encoding="utf-8"))["status"] == "finished"
    assert (out / "report.html").is_file()
