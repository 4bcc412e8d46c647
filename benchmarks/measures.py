"""Measures of the code itself: `python -m benchmarks.measures executed`, and where its lines stand (`lines`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

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


USES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "records, store, registry, plug-in bases": ("src/katha", "configs", "prompts"),
        "reading stories of every kind": ("src/katha/intake",),
        "model clients, recordings, prompts from fields": ("src/katha/models", "src/katha/composing"),
        "planners": ("planners",),
        "renderers": ("renderers",),
        "a run: state machine, compass, repair": ("agents", "compass"),
        "edits of a board": ("agents/editor",),
        "asking, matching, scoring": ("eval_bridge",),
        "benchmark files": ("eval_bridge/bench",),
        "studies with people": ("eval_bridge/people",),
        "other papers' metrics": ("eval_bridge/metrics", "experiments/metrics"),
        "studies: evaluate, compare, ablate, tune": ("experiments",),
        "several machines": ("experiments/cluster",),
        "command line and public API": ("app",),
        "desk": ("app/desk",),
        "pictures cut from pages": ("app/cutting",),
        "exports": ("app/exports",),
        "reports": ("app/reports",),
        "tools for assistants (MCP)": ("app/mcp",),
    }
)
"""What the core's folders are for; a folder counts with the longest of these that it lies in."""


def lines_by_use() -> dict[str, int]:
    """Return the lines of the core's modules by what they are for."""
    of = {folder: use for use, folders in USES.items() for folder in folders}
    found = dict.fromkeys(USES, 0)
    for path in library(CORE).values():
        places = [place.as_posix() for place in path.relative_to(ROOT).parents]  # the deepest first
        use = next(of[place] for place in places if place in of)
        found[use] += len(path.read_text(encoding="utf-8").splitlines())
    return found


def _lines() -> dict[str, object]:
    found = lines_by_use()
    return {"measure": "lines", "lines": sum(found.values()), "target": 60_000, "for": found}


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
