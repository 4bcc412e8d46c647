"""Rebuild the packed pictograms and their contact sheets.

    npm install @iconify-json/fluent-emoji-flat@1.2.6
    python -m training.pictograms pack node_modules/@iconify-json/fluent-emoji-flat/icons.json
    python -m training.pictograms sheets docs/images/sketch

`pack` takes every pictogram that nouns.tsv or places.yaml names, writes colours in six digits, names inner references
after the pictogram, measures what it covers, and checks that it looks as before. `sheets` draws
contact sheets to be looked at: every pictogram above its nouns by kind, every place, every deed.
"""

from __future__ import annotations

import argparse
import io
import json
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import resvg_py
from PIL import Image

from training.pictograms.sheets import draw_sheets

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "katha_sketch" / "drawing" / "pictograms"
PLACES = ROOT / "src" / "katha_sketch" / "drawing" / "places" / "places.yaml"
_SHORT = re.compile(r'"#([0-9a-fA-F])([0-9a-fA-F])([0-9a-fA-F])"')
_PIXELS = 256


def main() -> None:
    """Run `pack` or `sheets`."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", choices=("pack", "sheets"))
    parser.add_argument("path", type=Path)
    asked = parser.parse_args()
    (pack if asked.work == "pack" else draw_sheets)(asked.path)


def pack(icons: Path) -> None:
    """Write bodies.json from the set's icons.json, one pictogram a line."""
    drawn: Mapping[str, Mapping[str, str]] = json.loads(icons.read_text())["icons"]
    lines = []
    for name in sorted(_wanted()):
        body = _clean(drawn[name]["body"])
        body = _own_ids(body, name)
        before, after = _pixels(drawn[name]["body"]), _pixels(body)
        if float(np.abs(before - after).mean()) > 1.0:
            raise SystemExit(f"{name} does not look as before.")
        lines.append(f"{json.dumps(name)}: {json.dumps({'box': _box(after), 'body': body})}")
    target = PACKAGE / "bodies.json"
    target.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(lines)} pictograms, {target.stat().st_size / 1e6:.2f} MB")


def _wanted() -> set[str]:
    rows = (PACKAGE / "nouns.tsv").read_text(encoding="utf-8").splitlines()[1:]
    used = re.findall(r"picture: ([\w-]+)", PLACES.read_text(encoding="utf-8")) if PLACES.exists() else []
    return {row.split("\t")[0] for row in rows} | set(used)


def _clean(body: str) -> str:
    """The body with `#rrggbb` colours only, as looks and tints read them."""
    text = _SHORT.sub(lambda found: '"#' + "".join(2 * digit for digit in found.groups()).lower() + '"', body)
    return re.sub(r"#[0-9a-fA-F]{6}", lambda found: found.group().lower(), text)


def _own_ids(body: str, name: str) -> str:
    """The body with its inner references named after it, so that two pictograms in a picture do not share one."""
    for nth, known in enumerate(re.findall(r' id="([^"]+)"', body)):
        body = body.replace(f'id="{known}"', f'id="{name}-{nth}"').replace(f"#{known})", f"#{name}-{nth})")
        body = body.replace(f'href="#{known}"', f'href="#{name}-{nth}"')
    return body


def _pixels(body: str) -> np.ndarray:
    svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">{body}</svg>'
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=_PIXELS, height=_PIXELS, skip_system_fonts=True))
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"), dtype=np.float64)


def _box(pixels: np.ndarray) -> list[float]:
    """What is covered, in the set's units."""
    seen = pixels[..., 3] > 24
    xs, ys = np.nonzero(seen.any(axis=0))[0], np.nonzero(seen.any(axis=1))[0]
    unit = 32 / _PIXELS
    return [round(float(value) * unit, 2) for value in (xs[0], ys[0], xs[-1] + 1, ys[-1] + 1)]


if __name__ == "__main__":
    main()
