"""Whether a run's judges can read its renderer's pictures, asked before anything is drawn or paid for."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

from katha.config import Settings, usual_preset
from katha.configs import load_config
from katha.errors import KathaError, UsageError
from katha.registry import default_registry

__all__ = ["fitting_judge", "fitting_judges", "require_fitting", "unfit_judge"]

_OWN = "katha.renderers."
_FINDS = "folder"
"""The renderer whose pictures may be anybody's, the stand-in's too."""


def unfit_judge(config: Settings) -> str | None:
    """Return the judge of a run that reads no pictures of its renderer's: one of the stand-in's beside a renderer of
    katha's own; None where all can, or nobody knows."""
    usual = usual_preset()[1]
    drawn_by, usual_one = (name.partition(":")[0] for name in (config.renderer, str(usual.get("renderer", ""))))
    own = [str(name) for name in usual.get("judges", ())]
    judge = next((name for name in (*config.judges, *config.steering_judges) if name in own), None)
    if judge is None or drawn_by in (usual_one, _FINDS):
        return None
    with suppress(KathaError):  # what cannot be loaded is refused where it is needed
        factory, _ = default_registry("renderers").load(config.renderer)
        return judge if getattr(factory, "__module__", "").startswith(_OWN) else None
    return None


def fitting_judges(config: Settings) -> tuple[str, ...]:
    """Return the judges that are proposed for the pictures of a run's renderer, the best first: of its own vendor, of
    those whose key the environment has, the others."""
    rows, providers = load_config("day-one.yaml")["keys"], load_config("providers.yaml")
    vendors = config.renderer.split(":")
    same = [row for row in rows if row["provider"] in vendors]
    keyed = [row for row in rows if any(os.environ.get(name) for name in providers[row["provider"]]["key"])]
    return tuple(dict.fromkeys(str(row["judges"][0]) for row in same + keyed + rows))


def fitting_judge(config: Settings) -> str:
    """Return the first of `fitting_judges`: the one that is named where none was chosen."""
    return fitting_judges(config)[0]


def require_fitting(config: Settings, price: Callable[[Settings], float | None] = lambda config: None) -> None:
    """Refuse a judge that cannot read the renderer's pictures, and propose one that can.

    price: the dollars that a run's answers cost at most, of settings with the judge that is proposed.

    Raises:
        UsageError: the judge and the renderer are named.
    """
    judge = unfit_judge(config)
    if judge is None:
        return
    fit = fitting_judge(config)
    cost = price(config.model_copy(update={"judges": (fit,), "steering_judges": ()}))
    told = f" (at most ${cost:.2f} for this)" if cost is not None else ""
    raise UsageError(
        f"The judge {judge!r} reads sketches alone, and {config.renderer!r} draws other pictures: it would refuse all.",
        hint=f"Give --judge {fit}{told}, or --judge none to plan and draw only.",
    )
