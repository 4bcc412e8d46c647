"""Contact sheets of what the sketch can draw: pictograms by kind, places, deeds. To be looked at by a person."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from katha_sketch.drawing.deeds import Look, deed, deed_ids
from katha_sketch.drawing.pictograms import draw_pictogram, nouns, pictograms
from katha_sketch.drawing.pictograms.data import KINDS
from katha_sketch.drawing.places import place_ids
from katha_sketch.drawing.scenes import Scene, SceneActor, SceneThing, draw_scene
from katha_sketch.drawing.svg import rasterise

__all__ = ["draw_sheets"]

_COLOURS = 96
_INK, _PAPER = "#2b2a33", "#fbf6ea"
_TWO = frozenset({"front", "side", "ahead", "carried"})


def draw_sheets(folder: Path) -> None:
    """Write `KIND.png` for each kind of pictogram, `places.png` and `deeds.png`."""
    folder.mkdir(parents=True, exist_ok=True)
    words: dict[str, list[str]] = {}
    for noun in nouns().values():
        words.setdefault(noun.pictogram, []).append(noun.word)
    for kind in KINDS:
        names = [name for name, found in pictograms().items() if found.kind == kind]
        labels = {name: ", ".join(words[name]) for name in names}
        _save(folder / f"{kind}.png", _sheet(names, labels, _pictogram, (84, 64), 14))
        print(f"{kind}: {len(names)} pictograms, {sum(len(words[name]) for name in names)} nouns")
    _save(folder / "places.png", _sheet(place_ids(), {name: name for name in place_ids()}, _place, (168, 112), 7))
    _save(folder / "deeds.png", _sheet(deed_ids(), {name: name for name in deed_ids()}, _deed, (130, 94), 9))


def _save(path: Path, sheet: Image.Image) -> None:
    sheet.quantize(_COLOURS, method=Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(path, optimize=True)


def _sheet(
    names: Sequence[str],
    labels: Mapping[str, str],
    draw: Callable[[str, int, int], str],
    cell: tuple[int, int],
    columns: int,
) -> Image.Image:
    wide, tall = cell
    row = tall + (38 if max(map(len, labels.values())) > 24 else 16)
    sheet = Image.new("RGB", (wide * columns, row * -(-len(names) // columns)), _PAPER)
    pen, font = ImageDraw.Draw(sheet), ImageFont.load_default(9)
    for nth, name in enumerate(names):
        x, y = wide * (nth % columns), row * (nth // columns)
        png = rasterise(draw(name, wide - 4, tall), wide - 4, tall)
        sheet.paste(Image.open(io.BytesIO(png)).convert("RGB"), (x + 2, y))
        for line, text in enumerate(_wrapped(labels[name].split(), wide // 5)[: (row - tall) // 11]):
            pen.text((x + 3, y + tall + 1 + 11 * line), text, fill=_INK, font=font)
    return sheet


def _pictogram(name: str, wide: int, tall: int) -> str:
    found = pictograms()[name]
    height = (tall - 8.0) * min(1.0, 1.25 * (found.box[3] - found.box[1]) / (found.box[2] - found.box[0]))
    drawn = draw_pictogram(name, height, facing=-1 if found.faces == "left" else 1)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{tall}"><rect width="{wide}" height="{tall}" '
        f'fill="{_PAPER}"/><g transform="translate({wide / 2} {tall - 4})">{drawn.svg}</g></svg>'
    )


def _place(name: str, wide: int, tall: int) -> str:
    return draw_scene(Scene(name), wide, tall, 1)


def _deed(name: str, wide: int, tall: int) -> str:
    """A girl doing it, with a ball where the deed takes a thing, or with somebody where it takes two."""
    row = deed(name)
    lead = SceneActor("Ivy", look=Look("girl", dress="#d8584f"), deed=name, target="Ben", facing=1)
    if row.lends is not None or (row.partner in _TWO and row.thing in ("front", "hands") and row.own is None):
        return draw_scene(Scene(actors=(lead, SceneActor("Ben", look=Look("boy")))), wide, tall, 1)
    ball = SceneThing("Ben", "ball", "soccer-ball", "sport", 22.0, "ground", "object", "Ivy")
    takes = row.thing in ("foot", "flying", "above_front", "table", "above", "ground_front", "behind")
    return draw_scene(Scene(actors=(lead,), things=(ball,) if takes and row.own is None else ()), wide, tall, 1)


def _wrapped(words: Iterable[str], letters: int) -> list[str]:
    """Words in lines of about so many letters."""
    lines = [""]
    for word in words:
        if len(lines[-1]) + len(word) > letters and lines[-1]:
            lines.append("")
        lines[-1] += f"{word} "
    return [line.strip() for line in lines]
