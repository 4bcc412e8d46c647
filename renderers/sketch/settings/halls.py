"""Great insides: pillared arches, a carpet, the mouth of a cave."""

from __future__ import annotations

from katha.renderers.sketch.settings.air import opening, through
from katha.renderers.sketch.settings.stage import HEIGHT, LINE, Stage, spread
from katha.renderers.sketch.style import colour, darker, lighter
from katha.renderers.sketch.svg import path, polygon, rect, trace

__all__ = ["arches", "carpet", "cave_mouth", "pillars"]


def arches(stage: Stage, *, count: int = 3) -> str:
    """A row of arches with the sky through them."""
    lit = stage.rng.randrange(count)
    step, base, parts = stage.width / count, stage.horizon + 6, []
    for i in range(count):
        a, b, top = i * step + 24, (i + 1) * step - 24, 110.0
        hole = trace(
            "M",
            (a, base),
            (a, top + 50),
            "Q",
            (a + 6, top),
            ((a + b) / 2, top - 46),
            "Q",
            (b - 6, top),
            (b, top + 50),
            "L",
            (b, base),
            "Z",
        )
        parts.append(path(hole, fill=through(stage), width=5))
        if i == lit:
            parts.append(opening(stage, a + 12, top + 24, b - a - 24, base - top - 60, hole=False))
    return "".join(parts)


def pillars(stage: Stage, *, fill: str = "cream", count: int = 3) -> str:
    """The pillars between `count` arches, with golden capitals and bases."""
    step, base, parts = stage.width / count, stage.horizon + 6, []
    for i in range(count + 1):
        x = i * step
        parts.append(rect(x - 20, 128, 40, base - 128, fill=lighter(fill, 0.3), line_width=LINE))
        parts.append(rect(x - 28, 112, 56, 18, fill=colour("golden"), line_width=LINE))
        parts.append(rect(x - 28, base - 14, 56, 18, fill=colour("golden"), line_width=LINE))
    return "".join(parts)


def carpet(stage: Stage, *, fill: str = "red", edge: str = "golden") -> str:
    """A long carpet from the horizon toward the viewer."""
    middle, top = stage.width / 2, stage.horizon + 4
    shape = [(middle - 66, top), (middle + 66, top), (middle + 190, HEIGHT + 40), (middle - 190, HEIGHT + 40)]
    trim = [(middle - 78, top), (middle + 78, top), (middle + 216, HEIGHT + 40), (middle - 216, HEIGHT + 40)]
    return polygon(trim, fill=colour(edge), width=LINE) + polygon(shape, fill=colour(fill), width=LINE)


def cave_mouth(stage: Stage, *, fill: str = "stone", spikes: int = 9) -> str:
    """Dark rock all round, a bright opening with the sky in it, and stalactites from the roof."""
    w = stage.width
    x, half = w * stage.rng.choice((0.36, 0.64)), w * 0.24
    dark = darker(fill, 0.52)
    parts = [rect(-60, -60, w + 120, stage.horizon + 70, fill=dark, stroke=None)]
    parts.append(opening(stage, x - half, 84, half * 2, stage.horizon - 84))
    hole = trace(
        "M",
        (x - half, stage.horizon),
        (x - half * 0.96, 190),
        "Q",
        (x - half * 0.5, 84),
        (x + 12, 92),
        "Q",
        (x + half * 0.9, 96),
        (x + half, 230),
        "L",
        (x + half * 0.9, stage.horizon),
        "Z",
    )
    box = trace(
        "M",
        (x - half - 6, 76),
        (x + half + 6, 76),
        (x + half + 6, stage.horizon + 2),
        (x - half - 6, stage.horizon + 2),
        "Z",
    )
    parts.append(path(box + hole, fill=dark, stroke=None).replace("<path ", '<path fill-rule="evenodd" '))
    parts.append(path(hole, width=LINE))
    for at in spread(stage, spikes, jitter=0.3):
        tall, wide = stage.rng.uniform(40, 92), stage.rng.uniform(14, 24)
        parts.append(polygon([(at - wide, -20), (at + wide, -20), (at, tall)], fill=darker(fill, 0.3), width=LINE))
    for side in (0.04, 0.12, 0.9, 0.97):
        tall = stage.rng.uniform(36, 70)
        foot = stage.horizon + 12
        spike = [(w * side - 20, foot), (w * side, foot - 12 - tall), (w * side + 20, foot)]
        parts.append(polygon(spike, fill=darker(fill, 0.3), width=LINE))
    return "".join(parts)
