"""Plug-ins of one's own, from `katha new` to an installed package that is found by its entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MADE = {"renderer": "paper-cut", "judge": "coin-toss", "planner": "long-stretch"}


class Workshop:
    """A folder with the package, a second one where it is installed, and commands that see it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.target = folder, folder / "site"

    def run(self, *words: object, code: int = 0) -> str:
        """Standard output of `python WORDS` with the installed package on the path."""
        path = os.pathsep.join([str(self.target), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path, "KATHA_CACHE": str(self.folder / "cache")}
        done = subprocess.run(
            [sys.executable, *map(str, words)], cwd=self.folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr + done.stdout
        return done.stdout + done.stderr

    def katha(self, *words: object, code: int = 0) -> str:
        """`katha WORDS`."""
        return self.run("-c", "from katha.app.cli.main import main; main()", *words, code=code)


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    made = Workshop(tmp_path_factory.mktemp("workshop"))
    for kind, name in MADE.items():
        made.katha("new", kind, name)
    flags = ("--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check")
    folders = [made.folder / f"katha-{name}" for name in MADE.values()]
    made.run("-m", "pip", "install", *flags, "--target", made.target, *folders)
    return made


@pytest.mark.parametrize("kind", MADE)
def test_the_skeleton_is_a_package_with_its_test(workshop: Workshop, kind: str) -> None:
    package, module = f"katha-{MADE[kind]}", f"katha_{MADE[kind].replace('-', '_')}"
    names = sorted(path.name for path in (workshop.folder / package).iterdir() if path.is_file())
    assert names == ["README.md", f"{module}.py", "pyproject.toml", f"test_{module}.py"]
    code = (workshop.folder / package / f"{module}.py").read_text(encoding="utf-8")
    assert len([line for line in code.partition("class ")[2].splitlines() if line.strip()]) <= 20
    passed = workshop.run("-m", "pytest", "-q", "-p", "no:cacheprovider", package)
    assert "2 passed" in passed


def test_the_installed_renderer_is_listed_with_its_options(workshop: Workshop) -> None:
    rows = {row["name"]: row for row in json.loads(workshop.katha("renderers", "--json"))}
    assert rows["paper-cut"]["about"].startswith("Blocks of colour")
    assert rows["paper-cut"]["options"] == {"blocks": "int = 4"}
    assert rows["paper-cut"]["capabilities"]["insertion"] == "alone"


def test_it_draws_a_story_through_the_whole_machine(workshop: Workshop) -> None:
    story = ROOT / "examples" / "lion_and_mouse.txt"
    common = (
        "--renderer",
        "paper-cut",
        "--judge",
        "coin-toss",
        "--mode",
        "caption_bridge",
        "--seeds",
        "42",
        "--size",
        "96x64",
        "--json",
    )
    told = workshop.katha("run", story, *common, "--renderer-option", "blocks=6", "--out", workshop.folder / "out")
    plan = json.loads((workshop.folder / "out" / "plan.json").read_text(encoding="utf-8"))
    assert json.loads(told.splitlines()[0])["frames"] == len(plan["panels"]) + 1
    record = json.loads((workshop.folder / "out" / "run.json").read_text(encoding="utf-8"))
    assert record["renderer"] == {"name": "paper-cut", "version": 1, "blocks": 6}
    wrong = workshop.katha("run", story, *common, "--renderer-option", "block=6", "--out", "x", code=2)
    assert "no option 'block'. Did you mean 'blocks'?" in wrong


def test_a_judge_and_a_planner_work_in_the_whole_machine_too(workshop: Workshop) -> None:
    rows = {row["name"]: row for row in json.loads(workshop.katha("judges", "--json"))}
    assert rows["coin-toss"]["options"] == {"seed": "int = 0"}
    assert "long-stretch" in {row["name"] for row in json.loads(workshop.katha("planners", "--json"))}
    words = ("--planner", "long-stretch", "--judge", "coin-toss", "--judge-option", "seed=6", "--size", "192x128")
    more = ("--mode", "base", "--seeds", "42", "--panels", "3", "--json", "--out", workshop.folder / "judged")
    told = workshop.katha("run", ROOT / "examples" / "lion_and_mouse.txt", *words, *more)
    assert json.loads(told.splitlines()[0])["frames"] == 3
    record = json.loads((workshop.folder / "judged" / "run.json").read_text(encoding="utf-8"))
    assert record["planner"] == {"name": "long-stretch", "version": 1, "words": 40}
    answers = (workshop.folder / "judged" / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["judge"] for line in answers} == {"coin-toss"}


def test_a_name_or_folder_that_cannot_be_used_is_refused(workshop: Workshop) -> None:
    assert "cannot name a renderer" in workshop.katha("new", "renderer", "Paper Cut", code=2)
    assert "already" in workshop.katha("new", "renderer", "sketch", code=2)
    assert "a judge called 'openai' already" in workshop.katha("new", "judge", "openai", code=2)
    assert "not empty" in workshop.katha("new", "renderer", "other", "--out", "katha-paper-cut", code=2)
    assert not (workshop.folder / "katha-other").exists()
