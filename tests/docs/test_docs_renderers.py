"""docs/renderers.md, followed literally: a renderer of one's own in a fresh environment, and the comparisons."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "renderers.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    """The text under one heading."""
    return re.split(r"^## ", PAGE.partition(f"## {title}\n")[2], flags=re.M)[0]


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.S)


class Shell:
    """An environment of its own, offline, with what is installed here; `pip`, `katha` and `pytest` are its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
        python = folder / "venv" / "bin" / "python"
        site = Path(
            subprocess.run(
                [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.strip()
        )
        here = sysconfig.get_path("purelib")
        (site / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
        offline = "--no-deps --no-build-isolation --no-index --disable-pip-version-check -q"
        self._command("pip", f'exec "{python}" -m pip "$@" {offline}')
        self._command("katha", f'exec "{python}" -c "from katha.app.cli.main import main; main()" "$@"')
        self._command("pytest", f'exec "{python}" -m pytest -p no:cacheprovider "$@"')
        (folder / "examples").symlink_to(ROOT / "examples")

    def _command(self, name: str, script: str) -> None:
        path = self.folder / "venv" / "bin" / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def run(self, command: str, code: int = 0) -> str:
        path = f"{self.folder / 'venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, "KATHA_CACHE": str(self.folder / "cache")}
        done = subprocess.run(command, shell=True, cwd=self.folder, env=environment, capture_output=True, text=True)
        assert done.returncode == code, f"{command}\n{done.stdout}{done.stderr}"
        return done.stdout

    def commands(self, block: str) -> list[str]:
        """Run each line; a comment behind it may say which exit code it ends with."""
        told = (line.partition("  #") for line in block.splitlines() if line.strip())
        return [self.run(command, int((re.findall(r"exit code (\d)", note) or [0])[0])) for command, _, note in told]


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.mark.timeout(900)
def test_a_renderer_of_one_s_own_by_the_letter_of_the_page(shell: Shell) -> None:
    text = section("Write your own in ten minutes")
    first, second = blocks(text, "sh")
    assert "2 passed" in shell.commands(first)[-1]
    drawing, test = blocks(text, "python")
    own = [line for line in drawing.partition("class ")[2].splitlines() if line.strip()]
    assert len(own) <= 24
    (shell.folder / "katha-paper-cut" / "katha_paper_cut.py").write_text(drawing)
    (shell.folder / "katha-paper-cut" / "test_katha_paper_cut.py").write_text(test)
    told = shell.commands(second)
    assert "2 passed" in told[0]
    assert "Hills of paper, and a disc for every character." in told[1]
    record = json.loads((shell.folder / "out" / "paper-cut" / "run.json").read_text(encoding="utf-8"))
    assert record["renderer"] == {"name": "paper-cut", "version": 1, "hills": 4}
    assert (shell.folder / "out" / "paper-cut.png").is_file()


@pytest.mark.timeout(900)
def test_the_comparisons_of_the_page_run(shell: Shell) -> None:
    (block,) = blocks(section("Comparing renderers"), "sh")
    shell.commands(block)
    for name in ("compare", "planners"):
        table = json.loads((shell.folder / "out" / name / "table.json").read_text(encoding="utf-8"))
        assert table["status"] == "finished"
        assert len(table["methods"]) == 2
        assert (shell.folder / "out" / name / "report.html").is_file()


def test_the_methods_file_of_the_page_is_one(tmp_path: Path) -> None:
    from katha.config import Settings
    from katha.experiments.methods import read_methods

    (block,) = blocks(section("Comparing renderers"), "yaml")
    (tmp_path / "methods.yaml").write_text(block, encoding="utf-8")
    methods = read_methods(tmp_path / "methods.yaml", Settings(mode="base"))
    assert [method.name for method in methods] == ["sdxl", "sdxl fast", "repaired", "another studio"]
    assert [method.config.mode for method in methods] == ["base", "base", "full", "base"]


def test_the_tables_name_every_layout_capability_and_renderer() -> None:
    from dataclasses import fields
    from importlib.metadata import entry_points

    from katha.protocols import Capabilities
    from katha.renderers.folder import load_layouts

    for name in load_layouts():
        assert f"| `{name}` |" in section("Boards that somebody else made: folder")
    for field in fields(Capabilities):
        assert f"`{field.name}`" in section("Write your own in ten minutes")
    for name in entry_points(group="katha.renderers").names:
        assert f"`{name}`" in PAGE
