"""Measure the structure of both distributions: `python -m benchmarks.structure`, or `make measures`.

Counts lines, files, functions, their complexity (radon's count of McCabe's number) and parameters, annotations, untyped
dictionaries, lazy imports, import cycles, imports of the stand-in and public class names that stand for two things, and
says beside each figure what it may be at most. The exit code is 1 when a limit is exceeded.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from types import MappingProxyType

from radon.complexity import cc_visit
from radon.visitors import Function

ROOT = Path(__file__).parents[1]
ROOMS = ("app", "experiments", "agents", "compass", "planners", "renderers", "eval_bridge", "prompts", "configs")
STAND_IN = "katha_sketch"
GENERATED = "# generated options"
"""A function whose signature is made from a settings model says so in a comment on its first line."""
LONGEST, WIDEST = 60, 12
"""The most lines and parameters of a function."""


@dataclass(frozen=True)
class House:
    """A distribution: its name, the folders of its packages, and the limits of its figures by their names.

    complex: the most that a function's complexity may be; places above it are told.
    """

    name: str
    folders: Mapping[str, str]
    complex: int
    limits: Mapping[str, float] = field(default_factory=dict)


CORE = House(
    "katha",
    MappingProxyType({"katha": "src/katha", **{f"katha.{room}": room for room in ROOMS}}),
    25,
    MappingProxyType(
        {
            "functions over 60 lines": 0,
            "parameters p90": 4,
            "parameters at most": WIDEST,
            "functions not annotated": 0,
            "dict[str, Any] per 1,000 lines": 2,
            "imports of katha inside functions": 59,
            "import cycles, lazy ones included": 0,
            "imports of the stand-in": 0,
            "public class names defined twice": 0,
        }
    ),
)
SKETCH = House(
    STAND_IN,
    MappingProxyType({STAND_IN: "sketch/src/katha_sketch"}),
    60,
    # Frozen: what it has today, and never more.
    MappingProxyType({"lines": 36_300, "functions over complexity 25": 131, "functions not annotated": 0}),
)


@dataclass(frozen=True)
class Figure:
    """One measured number and what it may be at most; without a limit it is only told."""

    name: str
    value: float
    most: float | None = None

    @property
    def exceeded(self) -> bool:
        """Return whether the number is over its limit."""
        return self.most is not None and self.value > self.most


def library(house: House, root: Path = ROOT) -> dict[str, Path]:
    """Return a distribution's modules by dotted name."""
    found = {}
    for prefix, folder in house.folders.items():
        for path in sorted((root / folder).rglob("*.py")):
            parts = path.relative_to(root / folder).with_suffix("").parts
            name = ".".join((prefix, *parts))
            found[name.removesuffix(".__init__")] = path
    return found


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[ast.arg]:
    """Return a function's parameters without `self` and `cls`."""
    args = function.args
    named = [*args.posonlyargs, *args.args, *args.kwonlyargs, *filter(None, (args.vararg, args.kwarg))]
    return [arg for at, arg in enumerate(named) if at or arg.arg not in {"self", "cls"}]


def imported(tree: ast.Module, known: Mapping[str, Path]) -> Iterator[tuple[str, bool]]:
    """Yield each module of katha that a module imports, and whether it does so inside a function."""
    inside = {id(node) for function in functions(tree) for node in ast.walk(function)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in known:
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield (full if full in known else str(node.module)), id(node) in inside
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name in known:
                    yield alias.name, id(node) in inside


def cycles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected groups of more than one module (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []
    counter = count()

    def visit(name: str) -> None:
        index[name] = low[name] = next(counter)
        stack.append(name)
        for other in graph.get(name, ()):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[stack.index(name) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in graph:
        if name not in index:
            visit(name)
    return found


def complexities(text: str) -> list[tuple[int, str, int]]:
    """Return complexity, name and line of every function and method of a module."""
    blocks = [block for block in cc_visit(text) if isinstance(block, Function)]
    nested = [inner for block in blocks for inner in block.closures]
    return [(block.complexity, block.name, block.lineno) for block in (*blocks, *nested)]


def imports_of_stand_in(tree: ast.Module) -> Iterator[int]:
    """Yield the lines on which a module imports the stand-in."""
    for node in ast.walk(tree):
        named = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        named += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if any(name.partition(".")[0] == STAND_IN for name in named):
            yield node.lineno


class _Count:
    """What is counted of one distribution, module by module."""

    def __init__(self, house: House, root: Path) -> None:
        self.house, self.root, self.modules = house, root, library(house, root)
        self.lines = self.lazy = self.untyped = self.unannotated = self.strangers = 0
        self.parameters: list[int] = []
        self.lengths: list[int] = []
        self.complexities: list[int] = []
        self.places: list[str] = []
        self.graph: dict[str, set[str]] = defaultdict(set)
        self.classes: dict[str, list[str]] = defaultdict(list)
        for name, path in self.modules.items():
            self._module(name, path)

    def _module(self, name: str, path: Path) -> None:
        text, where = path.read_text(encoding="utf-8"), path.relative_to(self.root).as_posix()
        tree = ast.parse(text)
        for target, inside in imported(tree, self.modules):
            self.graph[name] |= {target} - {name}
            self.lazy += inside
        self.lines += text.count("\n")
        self.untyped += text.count("dict[str, Any]")
        for line in imports_of_stand_in(tree) if self.house.name != STAND_IN else ():
            self.strangers += 1
            self.places.append(f"{where}:{line} imports the stand-in")
        for value, function, line in complexities(text):
            self.complexities.append(value)
            if value > self.house.complex:
                self.places.append(f"{where}:{line} {function}: complexity {value}")
        for named in ast.walk(tree):
            if isinstance(named, ast.ClassDef) and not named.name.startswith("_"):
                self.classes[named.name].append(f"{where}:{named.lineno}")
        for node in functions(tree):
            self._function(node, text.splitlines()[node.lineno - 1], where)

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, first: str, where: str) -> None:
        own, length = parameters(node), (node.end_lineno or node.lineno) - node.lineno + 1
        self.lengths.append(length)
        self.parameters.append(0 if GENERATED in first else len(own))
        self.unannotated += node.returns is None or any(arg.annotation is None for arg in own)
        if length > LONGEST and "functions over 60 lines" in self.house.limits:
            self.places.append(f"{where}:{node.lineno} {node.name}: {length} lines")
        if self.parameters[-1] > WIDEST:
            self.places.append(f"{where}:{node.lineno} {node.name}: {len(own)} parameters")


def _p90(values: list[int]) -> int:
    return sorted(values)[int(0.9 * len(values))]


def figures(house: House = CORE, root: Path = ROOT) -> tuple[list[Figure], list[str]]:
    """Return a distribution's figures, and the places where a limit is exceeded."""
    made = _Count(house, root)
    groups = cycles(made.graph)
    doubled = {name: places for name, places in sorted(made.classes.items()) if len(places) > 1}
    told: dict[str, float] = {
        "lines": made.lines,
        "files": len(made.modules),
        "functions over 60 lines": sum(length > LONGEST for length in made.lengths),
        "longest function, lines": max(made.lengths),
        "function p90, lines": _p90(made.lengths),
        "most complex function": max(made.complexities),
        "functions over complexity 25": sum(value > CORE.complex for value in made.complexities),
        "parameters p90": _p90(made.parameters),
        "parameters at most": max(made.parameters),
        "functions not annotated": made.unannotated,
        "dict[str, Any]": made.untyped,
        "dict[str, Any] per 1,000 lines": round(1000 * made.untyped / max(1, made.lines), 2),
        "imports of katha inside functions": made.lazy,
        "import cycles, lazy ones included": len(groups),
        "imports of the stand-in": made.strangers,
        "public class names defined twice": len(doubled),
    }
    limits = {"most complex function": house.complex, **house.limits}
    places = [*made.places, *(f"import cycle: {', '.join(group)}" for group in groups)]
    if "public class names defined twice" in house.limits:
        places += [f"class {name} is defined twice: {', '.join(found)}" for name, found in doubled.items()]
    return [Figure(name, value, limits.get(name)) for name, value in told.items()], places


def main() -> int:
    """Print the figures of both distributions (`--json`: as JSON) and the places where a limit is exceeded."""
    measured = {house.name: figures(house) for house in (CORE, SKETCH)}
    if "--json" in sys.argv:
        told = {name: {figure.name: figure.value for figure in found} for name, (found, _) in measured.items()}
        print(json.dumps(told))
    else:
        for name, (found, places) in measured.items():
            print(name)
            for figure in found:
                limit = "" if figure.most is None else f"at most {figure.most:g}"
                limit += ": exceeded" if figure.exceeded else ""
                print(f"  {figure.name:<36}{figure.value:>10g}   {limit}".rstrip())
            for place in places:
                print(f"  {place}")
    return int(any(figure.exceeded for found, _ in measured.values() for figure in found))


if __name__ == "__main__":
    sys.exit(main())
