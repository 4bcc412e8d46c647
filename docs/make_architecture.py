"""Draws the rooms of katha and their imports: `python -m docs.make_architecture`.

A room is a package of katha, or one of the modules of the ground floor that many of them use. An arrow that follows
from others (a over b to c) is left out, so that the picture can be read; `imports_of` has them all.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from benchmarks.structure import CORE, imported, library

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "rooms.svg"
FLOORS = (
    ("app",),
    ("experiments",),
    ("agents",),
    ("compass", "planners", "renderers"),
    ("eval_bridge", "", ""),
    ("stories", "store", "models", "config", "composing"),
    ("intake", "", "protocols"),
    ("configs", "schema"),
    ("registry", ""),
)
"""What is drawn, from the roof down; "" is an empty place. Small modules of the ground floor are left out."""
_WIDE, _HIGH, _ACROSS, _DOWN = 104, 34, 118, 84  # of a box, and from one box to the next, in pixels


def module_imports() -> Mapping[str, frozenset[str]]:
    """Return which modules of katha each module imports when the program runs, not for type checkers alone."""
    known = library(CORE)
    found: dict[str, frozenset[str]] = {}
    for name, path in known.items():
        tree = _Run().visit(ast.parse(path.read_text(encoding="utf-8")))
        found[name] = frozenset(target for target, _ in imported(tree, known)) - {name}
    return found


class _Run(ast.NodeTransformer):
    """Leaves out what stands below `if TYPE_CHECKING`."""

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """Return the node, or what is run in its place."""
        if isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            return node.orelse
        return self.generic_visit(node)


@cache
def imports_of() -> Mapping[str, frozenset[str]]:
    """Return which rooms each room imports when the program runs."""
    found: dict[str, set[str]] = {}
    for module, others in module_imports().items():
        found.setdefault(_room(module), set()).update(map(_room, others))
    return {room: frozenset(others - {room, ""}) for room, others in found.items()}


def _room(module: str) -> str:
    """Return the room of a module: the part after `katha.`; "" for katha itself."""
    return module.partition(".")[2].partition(".")[0]


def _reached(room: str, edges: Mapping[str, frozenset[str]]) -> set[str]:
    """Return what a room reaches in any number of steps."""
    seen: set[str] = set()
    left = list(edges.get(room, ()))
    while left:
        one = left.pop()
        if one not in seen:
            seen.add(one)
            left.extend(edges.get(one, ()))
    return seen


def drawn() -> dict[str, list[str]]:
    """Return the arrows of the picture, by the room that they start from."""
    rooms = [room for floor in FLOORS for room in floor if room]
    edges = {room: frozenset(imports_of().get(room, frozenset()) & set(rooms)) for room in rooms}
    beyond = {room: set[str]().union(*(_reached(other, edges) for other in edges[room])) for room in rooms}
    return {room: [other for other in rooms if other in edges[room] - beyond[room]] for room in rooms}


def picture() -> str:
    """Return the picture as an SVG: a row of boxes a floor, an arrow an import."""
    width = _ACROSS * max(len(floor) for floor in FLOORS)
    at = {
        room: (width / 2 + (place - (len(floor) - 1) / 2) * _ACROSS, number * _DOWN + _HIGH)
        for number, floor in enumerate(FLOORS)
        for place, room in enumerate(floor)
        if room
    }
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {len(FLOORS) * _DOWN}" font-family="sans-serif" '
        'font-size="14" text-anchor="middle">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#6b7280"/></marker></defs>',
        f'<rect width="{width}" height="{len(FLOORS) * _DOWN}" fill="#ffffff"/>',
    ]
    for room, others in drawn().items():
        for other in others:
            (x, y), (to, down) = at[room], at[other]
            way = f"M{x:g} {y + _HIGH / 2:g}L{to:g} {down - _HIGH / 2 - 2:g}"
            lines.append(f'<path d="{way}" stroke="#6b7280" marker-end="url(#tip)"/>')
    for room, (x, y) in at.items():
        lines.append(
            f'<rect x="{x - _WIDE / 2:g}" y="{y - _HIGH / 2:g}" width="{_WIDE}" height="{_HIGH}" rx="6" fill="#eef2ff" '
            f'stroke="#4f46e5"/><text x="{x:g}" y="{y + 5:g}" fill="#111827">{room}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
