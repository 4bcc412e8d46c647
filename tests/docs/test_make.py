"""The Makefile's targets: each one has a rule, and `make fast` runs the unit tests and nothing else."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from kinds import SLOW, UNIT

from benchmarks.measures import lines_by_use
from benchmarks.structure import CORE, library

ROOT = Path(__file__).parents[2]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "PYTEST_"))}
"""A test run that make or pytest-xdist started does not reach into the one that is started here."""


def recipe(target: str) -> list[str]:
    """Return the commands that `make TARGET` would run in an environment that exists."""
    done = subprocess.run(["make", "-n", target], cwd=ROOT, env=CLEAN, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def module_of(folder: str, name: str) -> Path:
    """Return the file of a test module, katha's own or the stand-in's."""
    own = ROOT / "tests" / folder
    return (own if own.is_dir() else ROOT / "sketch" / "tests" / folder) / f"test_{name}.py"


def phony() -> list[str]:
    (names,) = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return str(names).split()


@pytest.mark.parametrize("target", phony())
def test_every_phony_target_has_a_rule(target: str) -> None:
    """A target that .PHONY names succeeds without a rule too: make has nothing to be done."""
    assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.timeout(600)
def test_make_fast_runs_the_unit_tests() -> None:
    (line,) = [line for line in recipe("fast") if re.search(r"/pytest\b", line)]
    _, *words = shlex.split(line)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, "-n", "0", "--collect-only", "-q"],
        cwd=ROOT, env=CLEAN, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    modules = {line.split("::")[0] for line in done.stdout.splitlines() if "::" in line}
    listed = [module_of(folder, name) for folder, names in UNIT.items() for name in names]
    assert modules == {path.relative_to(ROOT).as_posix() for path in listed}


def test_make_measures_prints_structure_executed_modules_and_what_lines_are_for() -> None:
    said = "\n".join(recipe("measures"))
    assert "-m benchmarks.structure" in said
    assert "-m benchmarks.measures executed lines" in said


def test_every_line_of_the_core_counts_for_one_use() -> None:
    found = lines_by_use()
    assert all(found.values())
    assert sum(found.values()) == sum(len(path.read_text("utf-8").splitlines()) for path in library(CORE).values())


@pytest.mark.parametrize("kind", [UNIT, SLOW])
def test_the_lists_name_modules_that_exist(kind: dict[str, tuple[str, ...]]) -> None:
    named = [module_of(folder, name) for folder, names in kind.items() for name in names]
    assert [str(path) for path in named if not path.is_file()] == []
    assert len(named) == len(set(named))


def test_no_module_is_both_unit_and_slow() -> None:
    assert not {(folder, name) for folder, names in UNIT.items() for name in names if name in SLOW.get(folder, ())}


HEAVY = {"subprocess", "multiprocessing", "torch", "diffusers", "transformers", "browser", "terminal", "commands"}


def test_unit_modules_start_no_process_and_import_no_torch() -> None:
    found = {}
    for folder, names in UNIT.items():
        for name in names:
            tree = ast.parse(module_of(folder, name).read_text(encoding="utf-8"))
            nodes = list(ast.walk(tree))
            froms = {(node.module or "").split(".")[0] for node in nodes if isinstance(node, ast.ImportFrom)}
            plain = {item.name.split(".")[0] for node in nodes if isinstance(node, ast.Import) for item in node.names}
            found[name] = sorted(HEAVY & (froms | plain))
    assert {name: heavy for name, heavy in found.items() if heavy} == {}
