"""How often `katha cut` finds all panels of a comic's page, and in their order, on pages that are drawn here.

A page is divided at random into up to a dozen panels with gutters of 8 to 24 pixels (of 700), on white, cream or black
paper, with balloons in half of the pages and one that reaches over a gutter in half, blurred and saved as JPEG.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import sys
from collections.abc import Sequence

from PIL import Image, ImageDraw, ImageFilter

from katha.app.cutting.boxes import Box
from katha.app.cutting.panels import find_panels

SIZE = (700, 1000)
_PAPERS = ("#ffffff", "#f4ead0", "#202020", "#fbf8f0")
_SAME = 0.88


def draw_page(boxes: Sequence[Box], *, paper: str = "#fbf8f0", words: str = "", seed: int = 1) -> Image.Image:
    """Return a page of framed panels with something in each, and a balloon with `words`."""
    chance, made = random.Random(seed), Image.new("RGB", SIZE, paper)
    pen = ImageDraw.Draw(made)
    for box in boxes:
        fill = tuple(chance.randint(120, 230) for _ in range(3))
        pen.rectangle((*box[:2], box.right - 1, box.bottom - 1), fill=fill, outline="black", width=3)
        for _ in range(3):
            x, y = chance.randint(box.left + 9, box.right - 50), chance.randint(box.top + 80, box.bottom - 50)
            pen.ellipse((x, y, x + 40, y + 40), fill=tuple(chance.randint(0, 255) for _ in range(3)))
        if words:
            balloon = (box.left + 6, box.top + 6, box.left + 186, box.top + 76)
            pen.ellipse(balloon, fill="white", outline="black", width=2)
            pen.text((box.left + 32, box.top + 26), words, fill="black", font_size=24)
    return made


def overlap(one: Box, other: Box) -> float:
    """Return the share of two boxes' pixels that both have."""
    both = one.overlap(other)
    return both / (one.area + other.area - both)


def _divided(chance: random.Random, box: Box, depth: int = 0) -> list[Box]:
    """Return panels that a rectangle is divided into, in the order in which they are read."""
    level, upright = box.height > 330, box.width > 300
    if not (level or upright) or (depth and chance.random() < 0.35):
        return [box]
    half = chance.randint(8, 24) // 2
    if chance.choice([way for way, room in ((True, level), (False, upright)) if room]):
        at = chance.randint(box.top + 150, box.bottom - 150)
        parts = (box._replace(bottom=at - half), box._replace(top=at + half))
    else:
        at = chance.randint(box.left + 140, box.right - 140)
        parts = (box._replace(right=at - half), box._replace(left=at + half))
    return [panel for part in parts for panel in _divided(chance, part, depth + 1)]


def random_page(seed: int) -> tuple[Image.Image, list[Box]]:
    """Return a page and its panels in reading order."""
    chance = random.Random(seed)
    panels = _divided(chance, Box(40, 40, 660, 960))
    made = draw_page(panels, paper=chance.choice(_PAPERS), words=chance.choice(["", "HEY"]), seed=seed)
    if chance.random() < 0.5 and len(panels) > 1:
        at = chance.choice(panels)
        over = (at.right - 60, at.top + 20, min(690, at.right + 70), at.top + 80)
        ImageDraw.Draw(made).ellipse(over, fill="white", outline="black", width=2)
    out = io.BytesIO()
    made.filter(ImageFilter.GaussianBlur(0.6)).save(out, "JPEG", quality=70)
    return Image.open(out).convert("RGB"), panels


def measure(pages: int) -> dict[str, int]:
    """Return of how many pages all panels were found, and all in their order; and the same of single panels."""
    counts = dict.fromkeys(("pages", "pages_whole", "pages_in_order", "panels", "panels_found"), 0)
    for seed in range(pages):
        page, panels = random_page(seed)
        found = find_panels(page)
        right = [next((one for one in found if overlap(one, panel) > _SAME), None) for panel in panels]
        whole = len(found) == len(panels) and None not in right
        counts["pages"] += 1
        counts["panels"] += len(panels)
        counts["panels_found"] += sum(one is not None for one in right)
        counts["pages_whole"] += whole
        counts["pages_in_order"] += whole and right == found
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the counts as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cutting", description=__doc__)
    parser.add_argument("--pages", type=int, default=200)
    print(json.dumps(measure(parser.parse_args(arguments).pages)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
