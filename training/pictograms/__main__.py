"""Rebuild the packed pictograms and their contact sheets.

    npm install @iconify-json/fluent-emoji-flat@1.2.6
    python -m training.pictograms pack node_modules/@iconify-json/fluent-emoji-flat/icons.json
    python -m training.pictograms sheets docs/images/pictograms

`pack` takes every pictogram that nouns.tsv or places.yaml names, writes colours in six digits, names inner references
after the pictogram, measures what it covers, and checks that it looks as before. `sheets` draws one
contact sheet for each kind, every pictogram above its nouns.
"""

from __future__ import annotations

import argparse
import io
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import resvg_py
from PIL import Image, ImageDraw, ImageFont

from katha.renderers.sketch.pictograms.data import KINDS, nouns, pictograms
from katha.renderers.sketch.pictograms.draw import draw_pictogram

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "renderers" / "sketch" / "pictograms"
PLACES = ROOT / "renderers" / "sketch" / "places" / "places.yaml"
_SHORT = re.compile(r'"#([0-9a-fA-F])([0-9a-fA-F])([0-9a-fA-F])"')
_PIXELS = 256
_CELL = (112, 132)
_COLUMNS = 12


def main() -> None:
    """Run `pack` or `sheets`."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("work", choices=("pack", "sheets"))
    parser.add_argument("path", type=Path)
    asked = parser.parse_args()
    (pack if asked.work == "pack" else sheets)(asked.path)


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


def sheets(folder: Path) -> None:
    """Draw one PNG a kind with every pictogram and its nouns."""
    folder.mkdir(parents=True, exist_ok=True)
    words: dict[str, list[str]] = {}
    for noun in nouns().values():
        words.setdefault(noun.pictogram, []).append(noun.word)
    for kind in KINDS:
        names = [name for name, found in pictograms().items() if found.kind == kind]
        sheet = _sheet(names, words)
        sheet.quantize(64).save(folder / f"{kind}.png", optimize=True)
        print(f"{kind}: {len(names)} pictograms, {sum(len(words[name]) for name in names)} nouns")


def _sheet(names: list[str], words: Mapping[str, list[str]]) -> Image.Image:
    wide, tall = _CELL
    rows = -(-len(names) // _COLUMNS)
    sheet = Image.new("RGB", (wide * _COLUMNS, tall * rows), "#fbf6ea")
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(10)
    for nth, name in enumerate(names):
        x, y = wide * (nth % _COLUMNS), tall * (nth // _COLUMNS)
        sheet.paste(_thumbnail(name), (x, y))
        for line, text in enumerate(_wrapped(words[name])):
            pen.text((x + 3, y + 92 + 12 * line), text, fill="#2b2a33", font=font)
    return sheet


def _thumbnail(name: str) -> Image.Image:
    box = pictograms()[name].box
    height = 76.0 * min(1.0, 1.25 * (box[3] - box[1]) / (box[2] - box[0]))
    drawn = draw_pictogram(name, height, facing=-1 if pictograms()[name].faces == "left" else 1)
    svg = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{_CELL[0]}" height="90"><rect width="112" height="90" '
           f'fill="#fbf6ea"/><g transform="translate(56 84)">{drawn.svg}</g></svg>')  # fmt: skip
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True))
    return Image.open(io.BytesIO(png)).convert("RGB")


def _wrapped(words: Iterable[str]) -> list[str]:
    """Up to three lines of about twenty letters."""
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > 19 and lines[-1]:
            lines.append("")
        lines[-1] += f"{word}, "
    lines = [line.rstrip(", ") for line in lines]
    return lines if len(lines) < 4 else [*lines[:2], f"{lines[2]} ..."]


if __name__ == "__main__":
    main()
