"""docs/renderers*.md, followed literally: a renderer of one's own in a fresh environment, and the comparisons."""

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
PAGES = sorted((ROOT / "docs").glob("renderers*.md"), key=lambda path: path.name != "renderers.md")
PAGE = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)


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
    from katha.experiments.comparison.methods import read_methods

    (block,) = blocks(section("Comparing renderers"), "yaml")
    (tmp_path / "methods.yaml").write_text(block, encoding="utf-8")
    methods = read_methods(tmp_path / "methods.yaml", Settings(mode="base"))
    assert [method.name for method in methods] == ["sdxl", "sdxl fast", "repaired", "another studio"]
    assert [method.config.mode for method in methods] == ["base", "base", "full", "base"]


def test_the_tables_name_every_layout_capability_and_renderer() -> None:
    from dataclasses import fields
    from importlib.metadata import entry_points

    from katha.models.checkpoints import HoldsModel
    from katha.protocols import Capabilities, Renderer
    from katha.renderers.folder import load_layouts

    for name in load_layouts():
        assert f"| `{name}` |" in section("Boards drawn elsewhere: folder")
    for field in fields(Capabilities):
        assert f"`{field.name}`" in section("Write your own in ten minutes")
    for name in entry_points(group="katha.renderers").names:
        assert f"`{name}`" in PAGE
    said = ("concurrency", "exclusive", "close", "insert_frames", "receipt", "remarks", "not_drawn", "frame_price")
    for name in said:
        assert hasattr(Renderer, name) or hasattr(HoldsModel, name)
        assert re.search(rf"^\| `{name}\b", section("Write your own in ten minutes"), re.M), name


def table(text: str, first: str) -> list[list[str]]:
    """The rows of the table whose head begins with `first`, cell by cell."""
    lines = text.partition(f"| {first}")[2].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return rows[: next(at for at, line in enumerate(lines) if not line.startswith("|"))]


def test_every_renderer_has_a_row_with_what_it_says_of_itself() -> None:
    from importlib.metadata import entry_points

    rows = {row[0].strip("`"): row for row in table(PAGE, "renderer | identity")}
    loaded = {found.name: found.load().capabilities for found in entry_points(group="katha.renderers")}
    assert set(rows) == set(loaded)
    said = {
        "none": "none",
        "bank": "bank|portraits|pictures",
        "batch": "^batch",
        "reference": "reference",
        "sources": "^sources",
    }
    late = {
        "alone": "^drawn alone",
        "reference": "neighbours",
        "bank": "added from the",
        "none": "comes from",
        "neighbours": "of its neighbours",
    }
    for name, able in loaded.items():
        if isinstance(able, property):  # a folder's are those of its pictures
            continue
        assert re.search(said[able.identity], rows[name][1]), name
        assert re.search(late[able.insertion], rows[name][2]), name


def test_the_table_of_models_says_what_the_code_does() -> None:
    """Class, renderers, pictures, steps and memory of every row, by `configs/diffusion.yaml` and the rungs' table."""
    from typing import get_args

    from katha.renderers.diffusion.options import Rung, diffusion_data

    data, told, known = diffusion_data(), set[str](), ""
    rungs = {row[0].partition("`")[2].partition("`")[0]: row[2:] for row in table(section_of("Memory"), "rung")}
    assert set(rungs) == set(get_args(Rung))
    ladders = [[float(row[at].removesuffix(" GB")) for row in rungs.values()] for at in range(4)]
    in_gb = {f"{max(each):.0f} to {min(each):.0f} GB" for each in ladders}
    for row in table(PAGE, "renderer and model"):
        name, pipeline, weights, pictures, memory, steps, seconds, use = row
        known = pipeline.strip("`") if pipeline != "the same" else known
        told.add(known)
        assert weights, seconds and use
        drawn_by = set(re.findall(r"`(\w+)`", name))
        families = {family.name: family for family in data.families.values() if known in family.pipelines}
        assert drawn_by == set(families) or drawn_by <= {"consistory", "storydiffusion"}, name
        facts = {"pipeline": known, "guidance_embeds": "schnell" not in name, "is_distilled": "klein" in name}
        first = int(re.findall(r"\d+", steps)[0])
        assert {family.variant(facts).steps for family in families.values()} == {first}, name
        most = int("a character" in pictures) or data.calls[known].pictures
        assert (re.findall(r"^\d+", pictures) or ["0"])[0] == str(most), name
        ladder = re.match(r"\d+ to \d+ GB", memory)
        assert ladder is None or ladder[0] in in_gb, name
        assert ladder is not None or "about" in memory, name
    assert told == {one for family in data.families.values() for one in family.pipelines}


def section_of(title: str) -> str:
    return re.split(r"^##", PAGE.partition(f"### {title}\n")[2], flags=re.M)[0]


def test_which_one_to_use_is_five_lines_of_what_there_is() -> None:
    from importlib.metadata import entry_points

    lines = [line for line in PAGE.partition("Which should I use?\n")[2].partition("\n## ")[0].splitlines() if line]
    assert len(lines) == 5
    sizes = [line.partition(":")[0].strip("-* ") for line in lines]
    assert sizes == ["8 to 12 GB", "24 GB", "40 to 48 GB", "80 GB", "No card"]
    rungs, names = {"model-offload", "sequential-offload", "quantized"}, entry_points(group="katha.renderers").names
    words = {word for line in lines for word in re.findall(r"`([^`]+)`", line)}
    assert {word.removeprefix("--memory ") for word in words} <= rungs | set(names) | {"batch=8"}


def test_the_table_of_services_says_what_the_data_does() -> None:
    """Keys, and how many pictures the model of each row takes."""
    from katha.configs import load_config

    providers = load_config("providers.yaml")
    rows = table(PAGE, "renderer | service")
    assert {row[0].strip("`").partition(":")[0] for row in rows} == {
        name for name, section in providers.items() if "pictures" in section
    }
    for name, _, key, pictures, _ in rows:
        service, _, model = name.strip("`").partition(":")
        told = providers[service]["pictures"]
        card = (
            told["default"]
            | max(
                ((prefix, row) for prefix, row in told["models"].items() if model.startswith(prefix)),
                key=lambda one: len(one[0]),
            )[1]
        )
        assert model == told["default"]["example"]
        assert key.strip("`") == providers[service]["key"][0]
        assert int(re.findall(r"\d+", pictures)[0]) == card["references"]
