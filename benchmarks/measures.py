"""Measures of the code itself: `python -m benchmarks.measures executed`, and where its lines stand (`lines`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from benchmarks.structure import CORE, ROOT, library

_STORY = Path(__file__).parents[1] / "examples" / "lion_and_mouse.txt"

_CHILD = """
import json, os, sys, threading
from types import CodeType, FrameType

FUNCTION = 0x1  # CO_OPTIMIZED: modules and class bodies have it not
called: set[str] = set()
importing = threading.local()

def watch(frame: FrameType, event: str, arg: object) -> None:
    if frame.f_code.co_name == "<module>":
        depth = getattr(importing, "depth", 0)
        importing.depth = depth + (event == "call") - (event == "return")
    elif event == "call" and frame.f_code.co_flags & FUNCTION and not getattr(importing, "depth", 0):
        called.add(frame.f_code.co_filename)

from katha.app.cli.main import main

sys.argv = ["katha", "run", sys.argv[1], "--out", sys.argv[2]]
threading.setprofile(watch)
sys.setprofile(watch)
try:
    main()
finally:
    sys.setprofile(None)
    threading.setprofile(None)
    names = {module.__file__: name for name, module in sys.modules.items() if name.split(".")[0] == "katha"
             and getattr(module, "__file__", None)}
    with open(os.environ["EXECUTED"], "w") as file:
        json.dump(sorted(names[path] for path in called if path in names), file)
"""


def executed_modules() -> list[str]:
    """Return the modules of katha of which `katha run STORY` executes a function, in a fresh cache.

    Importing a module is not executing it: what runs while a module is imported is left out. The stand-in that draws is
    another distribution, and not counted.
    """
    with tempfile.TemporaryDirectory() as folder:
        found = Path(folder) / "executed.json"
        environment = {**os.environ, "KATHA_CACHE": f"{folder}/cache", "EXECUTED": str(found)}
        command = [sys.executable, "-c", _CHILD, str(_STORY), f"{folder}/out"]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        names: list[str] = json.loads(found.read_text(encoding="utf-8"))
    return names


def _executed() -> dict[str, object]:
    names = executed_modules()
    return {"measure": "executed", "modules": len(names), "target": 60, "names": names}


def lines_by_folder() -> dict[str, int]:
    """Return the lines of the core's modules by their folder in the repository, the most first."""
    found = Counter[str]()
    for path in library(CORE).values():
        found[path.parent.relative_to(ROOT).as_posix()] += len(path.read_text(encoding="utf-8").splitlines())
    return dict(found.most_common())


def _lines() -> dict[str, object]:
    folders = lines_by_folder()
    return {"measure": "lines", "lines": sum(folders.values()), "folders": folders}


MEASURES: dict[str, Callable[[], dict[str, object]]] = {"executed": _executed, "lines": _lines}


def main() -> None:
    """Print one line a measure."""
    unknown = sorted(set(sys.argv[1:]) - set(MEASURES))
    if unknown:
        sys.exit(f"No measure is called {unknown[0]!r}. Known: {', '.join(MEASURES)}.")
    for name in sys.argv[1:] or list(MEASURES):
        print(json.dumps(MEASURES[name]()), flush=True)


if __name__ == "__main__":
    main()
