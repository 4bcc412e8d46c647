"""`katha run` with the renderers that share attention: the whole state machine, a bridge, and one frame drawn again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cli_child
import pytest
import torch
from tiny_diffusion import build
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.renderers.diffusion.memory import process_pool

STORY = (
    "A lion slept in the forest. A mouse ran over his paw and woke him. The lion caught the mouse but let it go. "
    "The mouse gnawed the ropes of a net and set the lion free."
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdxl", tmp_path_factory.mktemp("sdxl") / "model")


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    cli_child.install(monkeypatch)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    process_pool().release()


def katha(*words: object) -> Any:
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def panels(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (out / "panels").iterdir()}


@pytest.mark.parametrize("name", ["consistory", "storydiffusion"])
def test_a_run_inserts_a_bridge_and_leaves_the_other_frames_bytes(name: str, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "story.txt").write_text(STORY)
    words = (
        "run", "story.txt", "--renderer", f"{name}:{folder}", "--renderer-option", "steps=2", "--judge", "pixel",
        "--panels", 3, "--seeds", "42,123", "--mode", "caption_bridge",
    )  # fmt: skip
    katha(*words, "--out", "out")
    out = tmp_path / "out"
    board = json.loads((out / "storyboard.json").read_text())
    kinds = [item["kind"] for item in board["frames"]]
    assert sorted(kinds) == ["bridge", "scene", "scene", "scene"]
    candidates = json.loads((out / "candidates.json").read_text())["candidates"]
    bases = [item["board"]["frames"] for item in candidates if item["kind"] == "base"]
    scenes = [item["sha256"] for item in board["frames"] if item["kind"] == "scene"]
    assert scenes in [[item["sha256"] for item in frames] for frames in bases]
    before = panels(out)
    assert len(before) >= 4
    spec = json.loads((out / "run.json").read_text())["renderer"]
    assert (spec["name"], spec["steps"]) == (name, 2)

    process_pool().release()
    katha("redo", "out", "--frame", 1 + kinds.index("bridge"), "--seed", 5)
    again = json.loads((out / "storyboard.json").read_text())
    kept = [item["sha256"] for item in again["frames"] if item["kind"] == "scene"]
    assert kept == scenes
    assert again["frames"][kinds.index("bridge")]["sha256"] not in before
    assert {item: data for item, data in panels(out).items() if item in before} == before
