"""The cast of a finished board from several sides: drawn once, kept in the run's folder, exported as model sheets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from katha.agents.context import frame_size, make_renderer
from katha.agents.editor.edit_session import state_of
from katha.agents.editor.editing import read_board
from katha.agents.folder import CAST, RunFolder
from katha.agents.pictures import as_drawn, reference_of
from katha.agents.requests import panel_request
from katha.app.recording import recordable
from katha.app.reports.page import finished_run
from katha.config import Settings, read_settings, refuse_code
from katha.configs import load_config, load_prompt
from katha.errors import InputFileError, UsageError
from katha.jsonio import dumps, read_json, write_bytes_atomic
from katha.protocols import FrameRequest, Renderer, can
from katha.renderers.vector.brief import slug
from katha.schema import Character, Plan

FOLDER, LIST = "cast", "views.json"
"""Where a run keeps them, and the list of them."""
Drawn = Mapping[str, tuple[bytes, bytes | None]]
"""A picture of each side, and the drawing that it was made of."""


@dataclass(frozen=True)
class CastViews:
    """One of the cast from several sides. look: as it was when they were drawn. pictures, drawings: by the side."""

    name: str
    look: str
    pictures: Mapping[str, Path]
    drawings: Mapping[str, Path]


def views_of(run: Path) -> list[CastViews]:
    """Return the sides that a run's folder has of its cast.

    Raises:
        InputFileError: the list is none, or a picture is missing.
    """
    place = run / FOLDER
    if not (place / LIST).is_file():
        return []
    told = read_json(place / LIST)
    rows = told.get("characters") if isinstance(told, dict) else None
    found = []
    for row in rows if isinstance(rows, list) else ():
        name, look, several = row.get("name"), row.get("look"), row.get("views")
        if not isinstance(name, str) or not isinstance(look, str) or not isinstance(several, list):
            raise InputFileError(
                f"{str(place / LIST)!r} is not a list of views.", hint="Take it away; draw them again."
            )
        files = {view: place / f"{slug(name)}_{slug(str(view))}" for view in map(str, several)}
        pictures = {view: path.with_suffix(".png") for view, path in files.items()}
        lost = next((path for path in pictures.values() if not path.is_file()), None)
        if lost is not None:
            raise InputFileError(f"The picture {str(lost)!r} is missing.", hint=f"Draw it: katha cast {run} --views.")
        drawings = {
            view: path.with_suffix(".svg") for view, path in files.items() if path.with_suffix(".svg").is_file()
        }
        found.append(CastViews(name, look, pictures, drawings))
    return found


@recordable
def draw_views(run: Path | str, names: Sequence[str] = (), **changes: Any) -> list[CastViews]:
    """Draw the cast of a finished run from the front, at an angle, from the side and from behind; the board stays.

    The board's renderer draws them, or the one that is named. `vector` draws all sides of one in one answer, from the
    cast sheet that the frames are made of. Renderers that draw from a prompt are asked for one picture a side, and
    those that draw from pictures are shown the character's own picture, else its first side.

    Args:
        run: The folder of a finished run.
        names: Of whom; of everybody unless told.
        **changes: Single settings by name, over the run's: `renderer="openai:MODEL"`; `record`, `replay`.

    Returns:
        All that the run has now.

    Raises:
        UsageError: there is nobody of that name, or the renderer draws nobody from several sides.
        RenderError: a picture could not be drawn; those before are kept.

    Example:
        >>> draw_views("out/fox", ["fox"], renderer="vector:anthropic:MODEL")
    """
    place = finished_run(Path(run))
    folder, plan = RunFolder(place), read_board(place).plan
    state = state_of(folder)
    refuse_code(state.config, f"The run in {str(place)!r}", received=True)
    other: dict[str, Any] = {"renderer_options": {}} if changes.get("renderer") else {}
    config = read_settings(Settings, {**state.config, **other, **changes})
    known = {item.name: item for item in plan.characters}
    stray = next((name for name in names if name not in known), None)
    if stray is not None or not known:
        said = f"There is no character {stray!r}." if known else "This board has no characters."
        raise UsageError(said, hint=f"Known: {', '.join(known) or 'none'}.")
    renderer, views = make_renderer(config), {name: row["said"] for name, row in load_config("views.yaml").items()}
    _require_sides(renderer, config)
    size = frame_size(config, renderer)
    for name in names or known:
        item = known[name]
        if can(renderer, Renderer.draw_views):
            asked = replace(panel_request(plan, plan.panels[0], config.seeds[0], size), plan=plan)
            drawn: Drawn = renderer.draw_views(item, asked, folder.source(CAST), views)
        else:
            own = reference_of(item)
            shown = folder.panel(own) if own is not None else None
            drawn = dict(_one_by_one(renderer, item, plan, (config.seeds[0], *size), views, shown))
        _keep(place, item, drawn)
    return views_of(place)


def _require_sides(renderer: Renderer, config: Settings) -> None:
    able = renderer.capabilities
    if not can(renderer, Renderer.draw_views) and (able.panel or able.source == "found"):
        hint = "Name one that does: --renderer vector:MODEL, or any that draws from a prompt."
        raise UsageError(f"The renderer {config.renderer!r} draws nobody from several sides.", hint=hint)


def _one_by_one(
    renderer: Renderer,
    item: Character,
    plan: Plan,
    asked: tuple[int, int, int],
    views: Mapping[str, str],
    shown: bytes | None,
) -> Iterator[tuple[str, tuple[bytes, bytes | None]]]:
    """Draw a picture a side. asked: seed, width, height. shown: the character's own picture."""
    seed, width, height = asked
    for name, said in views.items():
        look = item.appearance or item.kind
        prompt = load_prompt("renderers/portrait").render(anchor="", appearance=look, view=said)
        request = FrameRequest(prompt, seed, width, height, style=plan.style, kind="extra")
        if shown is not None and renderer.capabilities.pictures:
            request = replace(request, characters=(as_drawn(item),), pictures=((item.name, shown),))
        (png,) = renderer.render_board([request])
        shown = shown or png
        yield name, (png, renderer.source())


def _keep(run: Path, item: Character, drawn: Drawn) -> None:
    """Put the sides of one into the folder, and its name into the list."""
    place = run / FOLDER
    place.mkdir(exist_ok=True)
    for view, (png, svg) in drawn.items():
        path = place / f"{slug(item.name)}_{slug(view)}.png"
        write_bytes_atomic(path, png)
        if svg is not None:
            write_bytes_atomic(path.with_suffix(".svg"), svg)
        else:
            path.with_suffix(".svg").unlink(missing_ok=True)
    others = [
        {"name": one.name, "look": one.look, "views": list(one.pictures)}
        for one in views_of(run)
        if one.name != item.name
    ]
    rows = [*others, {"name": item.name, "look": item.appearance or item.kind, "views": list(drawn)}]
    write_bytes_atomic(place / LIST, dumps({"format": 1, "characters": rows}).encode("utf-8"))
