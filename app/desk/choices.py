"""What a person chooses at the desk before a story is drawn: who draws and who looks at the pictures, the look, the
shape of a frame, and places; each with what it costs, or what this machine lacks for it.

The drawers and judges are those of the presets that draw, beside the desk's own.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict

from katha.agents.context import make_renderer
from katha.agents.fitting import fitting_judges
from katha.app.reports.checks import stand_in
from katha.config import Settings, resolve, usual_preset
from katha.configs import load_config
from katha.errors import KathaError, UsageError
from katha.eval_bridge.judges.none import NOBODY
from katha.eval_bridge.judging.abilities import make_judges, price_of
from katha.models.served import ENGINES, address_variable
from katha.protocols import FrameRequest, Renderer
from katha.registry import default_registry

_SIZES = "desk.yaml"
_MOST_WORDS = 160


class _Choice(BaseModel):
    model_config = ConfigDict(frozen=True)


class Size(_Choice):
    """A shape of a frame: `value` as settings have it, and what it is called."""

    value: str
    label: str


class Look(_Choice):
    """A style: the name that the renderer knows, or a phrase that it is drawn in. `sample`: it has a small picture."""

    name: str
    sample: bool = False


class Drawer(_Choice):
    """Who can draw. `price`: dollars for a picture at most; None: not known. `lacks`: what this machine is missing.
    `style`: what it draws in where none is chosen. `label`: what it is called where its name says too little."""

    name: str
    about: str
    label: str = ""
    price: float | None = None
    lacks: str = ""
    style: str = ""
    styles: tuple[Look, ...] = ()
    sizes: tuple[Size, ...] = ()


class Looker(_Choice):
    """Who can look at the pictures and answer. `free`: nothing is paid; `only`: the one renderer whose pictures it can
    read; empty: any."""

    name: str
    about: str
    free: bool = False
    lacks: str = ""
    only: str = ""


class FormChoices(_Choice):
    """Everything that is chosen from lists."""

    drawers: tuple[Drawer, ...]
    lookers: tuple[Looker, ...]
    places: tuple[str, ...]


def reads_only(judge: str) -> str:
    """Return the one renderer whose pictures a judge can read: that of its own preset; "" where it reads any."""
    return str(usual_preset()[1].get("renderer", "")) if stand_in(judge) else ""


def proposed(settings: Settings) -> str:
    """Return the judge to ask in the place of one that cannot read the pictures: the first fitting one whose key is
    there; nobody, where there is none."""
    return next((name for name in fitting_judges(settings) if not _looker(name).lacks), NOBODY)


def choices_of(settings: Settings, *, everything: bool = True) -> FormChoices:
    """Return what can be chosen; makes every plug-in once, and loads no weights. Without `everything` it is the desk's
    own drawer and judges, which is quick."""
    presets = list(_presets(settings)) if everything else [(settings, settings.judges)]
    drawers: dict[str, Drawer] = {}
    lookers: dict[str, Looker] = {}
    for config, judges in presets:
        if config.renderer and config.renderer not in drawers:
            drawers[config.renderer] = _drawer(config)
        for judge in judges:
            if judge not in lookers:
                lookers[judge] = _looker(judge)
    by_hand = load_config("day-one.yaml")["by_hand"]
    hand = _drawer(settings.model_copy(update={"renderer": by_hand["renderer"], "renderer_options": {}, "style": None}))
    if hand.name in drawers or (everything and not hand.lacks):
        own, *others = {**drawers, hand.name: hand.model_copy(update={"label": by_hand["label"]})}.values()
        drawers = {one.name: one for one in (own, *sorted(others, key=lambda one: not one.label))}
    lookers.setdefault(
        NOBODY, Looker(name=NOBODY, about="nobody: the board is drawn, no bridge is proposed", free=True)
    )
    places = tuple(load_config(_SIZES)["places"])
    return FormChoices(drawers=tuple(drawers.values()), lookers=tuple(lookers.values()), places=places)


def _presets(settings: Settings) -> Iterable[tuple[Settings, Sequence[str]]]:
    """The desk's own settings, the default's, and those of the presets that draw, each with the judges it proposes."""
    yield settings, settings.judges
    for name in filter(None, (usual_preset()[0], *load_config("day-one.yaml")["best"])):
        config, seen = preset_settings(name)
        judges = seen.get("judges", [config.judges])
        yield from ((config.model_copy(update={"renderer": str(one)}), ()) for one in seen.get("renderer", ()))
        yield config, [one for group in judges for one in ([group] if isinstance(group, str) else group)]


def preset_settings(name: str) -> tuple[Settings, Mapping[str, Sequence[Any]]]:
    """Return a preset's settings with the first of what it proposes, and all that it proposes by setting."""
    seen: dict[str, Sequence[Any]] = {}

    def first(what: str, proposed: Sequence[Any]) -> Any:
        seen[what] = [one for one in proposed if one is not None]
        return proposed[0]

    return resolve({}, preset=name, environment={}, choose=first), seen


def chosen(settings: Settings, renderer: str, judge: str, size: str) -> dict[str, Any]:
    """Return what a person's choice changes of the desk's settings; what goes with a renderer comes with it: a chat
    window plans as well, and looks at nothing.

    Raises:
        UsageError: a name is none of an installed plug-in, or the size is none.
    """
    for name, known in ((renderer, default_registry("renderers")), (judge, default_registry("judges"))):
        if name and name.partition(":")[0] not in known.names():
            raise UsageError(f"Nobody called {name[:80]!r} is installed.", hint="Choose from the list.")
    changes: dict[str, Any] = {}
    if renderer and renderer != settings.renderer:
        presets = (preset_settings(name) for name in load_config("day-one.yaml")["best"])
        config = next(
            (one for one, seen in presets if renderer in (one.renderer, *seen.get("renderer", ()))),
            Settings(renderer=renderer),
        )
        kept = ("renderer_options", "memory", "size", "style")
        changes |= {"renderer": renderer, **{name: value for name in kept if (value := getattr(config, name))}}
        usual = usual_preset()[1]
        changes["similarity"] = usual.get("similarity", "none") if renderer == usual.get("renderer") else "none"
    by_hand = load_config("day-one.yaml")["by_hand"]
    if changes.get("renderer") == by_hand["renderer"]:
        changes |= {"planner": by_hand["planner"], "planner_options": {}, "seeds": tuple(by_hand["seeds"])}
        judge = judge or by_hand["judge"]
    if judge and (judge,) != settings.judges:
        changes |= {"judges": (judge,), **({"mode": "base"} if judge == NOBODY else {})}
    if size:
        changes["size"] = size
    return changes


def _drawer(config: Settings) -> Drawer:
    named = config.renderer.partition(":")[0]
    table = load_config(_SIZES)
    own = list(table["styles"].get(named, ()))
    if named == "vector":
        own = list(load_config("vector.yaml")["styles"])
    phrases = own or list(table["styles"]["phrases"])
    style = config.style or (own[0] if own else "")
    styles = [
        Look(name=one, sample=named in table["samples"]) for one in dict.fromkeys(filter(None, (style, *phrases)))
    ]
    try:
        renderer = make_renderer(config)
    except KathaError as error:
        lacks = (error.hint or error.message)[:_MOST_WORDS]
        return Drawer(name=config.renderer, about=config.renderer, lacks=lacks, style=style, styles=tuple(styles))
    price = renderer.frame_price
    about = "free" if price == 0.0 else "price not known" if price is None else f"about ${price:.2f} a picture"
    return Drawer(
        name=config.renderer,
        about=about,
        price=price,
        style=style,
        styles=tuple(styles),
        sizes=tuple(_sizes(renderer, table["shapes"])),
    )


def _sizes(renderer: Renderer, shapes: Mapping[str, Sequence[int]]) -> Iterable[Size]:
    """The shapes that a renderer can draw, at about the area of its usual frame."""
    able = renderer.capabilities
    width, height = able.default_size
    yield Size(value="", label=f"as it draws ({width} x {height})")
    for label, (across, down) in shapes.items():
        if able.sizes is not None:
            fits = [one for one in able.sizes if abs(one[0] * down - one[1] * across) <= 0.03 * one[1] * across]
            made = fits[0] if fits else None
        else:
            unit = (width * height / (across * down)) ** 0.5
            many = able.size_multiple
            made = (round(across * unit / many) * many, round(down * unit / many) * many)
        if made is not None and made != (width, height):
            yield Size(value=f"{made[0]}x{made[1]}", label=f"{label} ({made[0]} x {made[1]})")


def _looker(name: str) -> Looker:
    only, provider = reads_only(name), name.partition(":")[0]
    variable = address_variable(provider) if provider in ENGINES else None
    if variable is not None and not os.environ.get(variable):
        return Looker(name=name, about=name, lacks=f"Set {variable}.")
    try:
        (_, judge), *_ = make_judges((name,))
        price = price_of(judge)
    except KathaError as error:
        return Looker(name=name, about=name, lacks=(error.hint or error.message)[:_MOST_WORDS], only=only)
    free = price is not None and not any(price.values())
    about = f"reads the pictures of {only} alone, and no language" if only else "free" if free else "paid for"
    return Looker(name=name, about=about, free=free, only=only)


def sample(renderer: str, style: str) -> bytes | None:
    """Return a small picture in a style (PNG), drawn by a renderer that has samples; None where it has none.

    Raises:
        KathaError: it cannot draw in that style.
    """
    table = load_config(_SIZES)
    known = table["styles"].get(renderer, ())
    if renderer not in table["samples"] or style not in known:
        return None
    made = make_renderer(Settings(renderer=renderer))
    told = FrameRequest(prompt=table["sample"], seed=1, width=384, height=256, style=style, place="park")
    from PIL import Image

    with Image.open(io.BytesIO(next(iter(made.render_board([told]))))) as picture:
        out = io.BytesIO()
        picture.convert("RGB").resize((192, 128)).save(out, "PNG")
    return out.getvalue()
