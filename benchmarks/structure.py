"""Measure the structure of the library: `python -m benchmarks.structure`, or `make measures`.

Counts lines, files, functions, parameters, annotations, untyped dictionaries, lazy imports and import cycles, and says
beside each figure what it may be at most. What `LEFT_OUT` lists is not counted: it is written by other rules than the
rest. The exit code is 1 when a limit is exceeded.
"""

from __future__ import annotations

import ast
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROOMS = ("app", "experiments", "agents", "compass", "planners", "renderers", "eval_bridge", "prompts", "configs")
_MATCHER = ("asked", "doers", "families", "lemma", "meaning", "nearly", "statements", "trial", "wordnet")
LEFT_OUT = (
    *("sketch/src/katha_sketch/vocabulary/", "sketch/src/katha_sketch/english/", "sketch/src/katha_sketch/drawing/"),
    *(f"eval_bridge/matching/{name}" for name in _MATCHER),
)
"""The embedded default's own reading, matching and drawing of English stories, which have bounds of their own."""
GENERATED = "# generated options"
"""A function whose signature is made from a settings model says so in a comment on its first line."""


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


def library(root: Path = ROOT) -> dict[str, Path]:
    """Return the library's modules by dotted name, those of `LEFT_OUT` included."""
    found = {}
    folders = {"katha": root / "src" / "katha", **{f"katha.{room}": root / room for room in ROOMS}}
    for prefix, folder in folders.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            name = ".".join((prefix, *parts))
            found[name.removesuffix(".__init__")] = path
    return found


def measured(path: Path, root: Path = ROOT) -> bool:
    """Return whether a file counts: whether `LEFT_OUT` does not name it."""
    return not path.relative_to(root).as_posix().startswith(LEFT_OUT)


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
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("katha"):
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


def figures(root: Path = ROOT) -> tuple[list[Figure], list[str]]:
    """Return the figures, and the places where a limit is exceeded."""
    modules = library(root)
    lines = files = lazy = untyped = unannotated = 0
    counts: list[int] = []
    lengths: list[int] = []
    places: list[str] = []
    graph: dict[str, set[str]] = defaultdict(set)
    for name, path in modules.items():
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        for target, inside in imported(tree, modules):
            graph[name].add(target)
            lazy += inside and measured(path, root)
        if not measured(path, root):
            continue
        where = path.relative_to(root).as_posix()
        files += 1
        lines += text.count("\n")
        untyped += text.count("dict[str, Any]")
        source = text.splitlines()
        for function in functions(tree):
            own = parameters(function)
            length = (function.end_lineno or function.lineno) - function.lineno + 1
            lengths.append(length)
            generated = GENERATED in source[function.lineno - 1]
            counts.append(0 if generated else len(own))
            unannotated += function.returns is None or any(arg.annotation is None for arg in own)
            if length > 60:
                places.append(f"{where}:{function.lineno} {function.name}: {length} lines")
            if len(own) > 12 and not generated:
                places.append(f"{where}:{function.lineno} {function.name}: {len(own)} parameters")
    graph = {name: {other for other in targets if other != name} for name, targets in graph.items()}
    groups = [group for group in cycles(graph) if any(measured(modules[name], root) for name in group)]
    places += [f"import cycle: {', '.join(group)}" for group in groups]
    counts.sort()
    lengths.sort()
    per_thousand = 1000 * untyped / max(1, lines)
    return [
        Figure("lines", lines, 28_000),
        Figure("files", files, 200),
        Figure("functions over 60 lines", sum(length > 60 for length in lengths), 0),
        Figure("longest function, lines", lengths[-1]),
        Figure("function p90, lines", lengths[int(0.9 * len(lengths))]),
        Figure("parameters p90", counts[int(0.9 * len(counts))], 4),
        Figure("parameters at most", counts[-1], 12),
        Figure("functions not annotated", unannotated, 0),
        Figure("dict[str, Any]", untyped),
        Figure("dict[str, Any] per 1,000 lines", round(per_thousand, 2), 2),
        Figure("imports of katha inside functions", lazy, 59),
        Figure("import cycles, lazy ones included", len(groups), 0),
    ], places


def main() -> int:
    """Print the figures as a table (`--json`: as JSON) and the places where a limit is exceeded."""
    found, places = figures()
    if "--json" in sys.argv:
        print(json.dumps({figure.name: figure.value for figure in found}))
    else:
        for figure in found:
            limit = "" if figure.most is None else f"at most {figure.most:g}"
            limit += ": exceeded" if figure.exceeded else ""
            print(f"{figure.name:<36}{figure.value:>10g}   {limit}".rstrip())
        for place in places:
            print(place)
    return int(any(figure.exceeded for figure in found))


if __name__ == "__main__":
    sys.exit(main())
