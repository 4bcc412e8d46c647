"""What a whole place is in: water, smoke, darkness, a crowd. Motifs that lie over any place."""

from __future__ import annotations

from katha_sketch.drawing.settings.stage import HEIGHT, LINE, Stage, spread
from katha_sketch.drawing.style import colour, darker, lighter
from katha_sketch.drawing.svg import circle, ellipse, group, line, path, polygon, rect, trace

__all__ = ["blanket", "crowd", "garland", "glow", "litter", "puddles", "sheet", "smoke", "veil"]

_CLOTHES = ("teal", "orange", "blue", "red", "green", "purple", "tan")
_SKINS = ("#f0c8a0", "#c98d5e", "#8a5a3c", "#e3b48c")
_HAIRS = ("#3a2a20", "#7a5230", "#222222", "#b9853f", "#9a9a9a")


def veil(stage: Stage, *, fill: str = "#1d2140", share: float = 0.5) -> str:
    """One colour over everything: darkness, haze, dust in the air."""
    return group(rect(-60, -60, stage.width + 120, HEIGHT + 120, fill=fill, stroke=None), opacity=share)


def glow(stage: Stage, *, x: float = 0.5, y: float = 300, size: float = 230, fill: str = "#ffcf6e") -> str:
    """Warm light around a candle or a fire."""
    rings = (size * (1 - nth / 9) for nth in range(9))
    drawn = (ellipse(stage.width * x, y, ring, ring * 0.86, fill=fill, stroke=None) for ring in rings)
    return "".join(group(one, opacity=0.07) for one in drawn)


def blanket(stage: Stage, *, fill: str = "#ffffff", share: float = 0.82) -> str:
    """Snow over all of the ground."""
    y = stage.horizon
    return group(rect(-60, y, stage.width + 120, HEIGHT - y + 60, fill=fill, stroke=None), opacity=share)


def sheet(stage: Stage, *, top: float = 412, fill: str = "#7fb4cf") -> str:
    """Water up to the knees, with waves."""
    w = stage.width
    waves = "".join(
        path(trace("M", (x, y), "q", (14, -9), (28, 0), "q", (14, 9), (28, 0)), stroke="#ffffff", width=2.6)
        for row, y in enumerate((top + 18, top + 46, top + 76))
        for x in (40.0 + 60.0 * (row % 2) + 170.0 * nth for nth in range(int(w / 170) + 1))
    )
    crest = "q 24 -13 48 0 t 48 0 " * (int(w / 96) + 2)
    body = path(f"M-60 {top:.0f} {crest} L{w + 240:.0f} {HEIGHT + 60} L-60 {HEIGHT + 60} Z", fill=fill, width=2.4)
    return f'<g opacity="0.82">{body}{waves}</g>'


def smoke(stage: Stage, *, count: int = 9, fill: str = "#7d7a78", low: float = 230) -> str:
    """Clouds of smoke under the ceiling, thinner towards the ground."""
    rng, parts = stage.rng, list[str]()
    for x in spread(stage, count):
        y, r = rng.uniform(-10, low), rng.uniform(46, 96)
        puffs = [circle(x + dx * r, y + dy * r, r * size, fill=fill, stroke=None)
                 for dx, dy, size in ((0, 0, 1), (0.8, 0.2, 0.7), (-0.8, 0.25, 0.66), (0.2, -0.5, 0.7))]  # fmt: skip
        parts.append(group(*puffs, opacity=0.34))
    return "".join(parts)


def crowd(stage: Stage, *, count: int = 12, foot: float = 44) -> str:
    """Heads and shoulders of many people, side by side, on the ground behind the actors."""
    rng, parts = stage.rng, list[str]()
    for row, (drop, size) in enumerate(((-2.0, 0.82), (foot, 1.0))):
        for at, x in enumerate(spread(stage, count - row, jitter=0.3)):
            y, k = stage.horizon + drop + rng.uniform(-6, 6), size * rng.uniform(0.9, 1.1)
            cloth = lighter(_CLOTHES[(at + 3 * row) % len(_CLOTHES)], 0.15)
            arch = (
                f"v{-58 * k:.1f} q0 {-30 * k:.1f} {34 * k:.1f} {-30 * k:.1f} q{34 * k:.1f} 0 {34 * k:.1f} {30 * k:.1f}"
            )
            body = path(f"M{x - 34 * k:.1f} {y:.1f} {arch} v{58 * k:.1f} Z", fill=cloth, width=LINE)
            head = circle(x, y - 112 * k, 25 * k, fill=rng.choice(_SKINS), width=LINE)
            top = f"a{26 * k:.1f} {27 * k:.1f} 0 0 1 {52 * k:.1f} 0 q{-26 * k:.1f} {-20 * k:.1f} {-52 * k:.1f} 0"
            hair = path(f"M{x - 26 * k:.1f} {y - 112 * k:.1f} {top} Z", fill=rng.choice(_HAIRS), width=LINE)
            parts.append(body + head + hair)
    return "".join(parts)


def garland(stage: Stage, *, y: float = 22, count: int = 4) -> str:
    """Strings of little flags from side to side."""
    step, parts = (stage.width + 40) / count, list[str]()
    flags = ("red", "yellow", "blue", "green")
    for at in range(count):
        x = -20 + at * step
        parts.append(path(f"M{x:.1f} {y} q{step / 2:.1f} 70 {step:.1f} 0", width=3))
        for nth in range(1, 6):
            share = nth / 6
            px, py = x + step * share, y + 140 * share * (1 - share)
            parts.append(
                polygon([(px - 13, py), (px + 13, py), (px, py + 32)], fill=colour(flags[(at + nth) % 4]), width=LINE)
            )
    return "".join(parts)


def puddles(stage: Stage, *, count: int = 5, fill: str = "water") -> str:
    """Water in pools on the ground."""
    parts = list[str]()
    for at, x in enumerate(spread(stage, count)):
        y, r = stage.horizon + 50 + 34 * (at % 3), stage.rng.uniform(50, 90)
        parts.append(ellipse(x, y, r, r * 0.2, fill=lighter(fill, 0.25), stroke=darker(fill, 0.2), width=LINE))
        parts.append(line((x - r * 0.4, y - 3), (x + r * 0.1, y - 4), stroke="#ffffff", width=2.4))
    return "".join(parts)


def litter(stage: Stage, *, count: int = 16) -> str:
    """Paper, cloths and odds and ends all over the floor."""
    rng, parts = stage.rng, list[str]()
    for at, x in enumerate(spread(stage, count)):
        y, turn = stage.horizon + rng.uniform(22, 150), rng.uniform(-60, 60)
        shape = (
            rect(-17, -11, 34, 22, fill="#fffdf6", line_width=LINE)
            if at % 3 == 0
            else path(
                "M-24 6 q6 -22 22 -14 q20 -10 26 8 q-4 16 -24 12 q-18 6 -24 -6 Z",
                fill=colour(_CLOTHES[at % 7]),
                width=LINE,
            )
            if at % 3 == 1
            else circle(0, 0, 9, fill=colour(_CLOTHES[(at + 2) % 7]), width=LINE)
        )
        parts.append(f'<g transform="translate({x:.1f} {y:.1f}) rotate({turn:.0f})">{shape}</g>')
    return "".join(parts)
