"""Models that a vendor takes away: what is known of it beforehand (`ends` in `configs/providers.yaml`), and what the
vendor's own list of models says when it is asked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime

from katha.configs import load_config

_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|\d{3})")


@dataclass(frozen=True)
class Ending:
    """The end of a model: the first day without it, and the model that its vendor names instead."""

    date: date
    instead: str

    @property
    def past(self) -> bool:
        """Return whether the day has come (UTC)."""
        return self.date <= datetime.now(UTC).date()


def ending(provider: str, model: str) -> Ending | None:
    """Return what is known of the end of `model` (or of the model that it is a dated snapshot of), None for nothing."""
    known: Mapping[str, Mapping[str, object]] = load_config("providers.yaml")[provider].get("ends", {})
    for name in (model, _SNAPSHOT.sub("", model)):
        if name in known:
            row = known[name]
            day = row["date"]
            assert isinstance(day, date)
            return Ending(day, str(row["instead"]))
    return None


def models_of(provider: str) -> list[str]:
    """Return the models of a provider that katha has data of, in the order of the data, each once."""
    section = load_config("providers.yaml")[provider]
    rows: Iterable[str] = (name for kind in ("text", "pictures") for name in section.get(kind, {}).get("models", ()))
    return list(dict.fromkeys(rows))


def standing(provider: str, model: str, offered: Mapping[str, str | None] | None) -> str:
    """Return in words whether a model can be asked.

    offered: the vendor's own list, each model with the day of its end (ISO) or None; None where it was not asked.
    """
    known = ending(provider, model)
    instead = f": use {known.instead}" if known is not None else ""
    if offered is not None:
        # A name without a date stands for its snapshots, and some vendors list only these.
        names = [name for name in offered if name == model or _SNAPSHOT.sub("", name) == model]
        if not names:
            return f"withdrawn: the vendor does not list it{instead or ' any more'}"
        told = next((offered[name] for name in names if offered[name]), None)
        if told is not None:
            return f"served until {told}{instead}"
        return "served" if known is None or known.past else f"served until {known.date}{instead}"
    if known is None:
        return "no end is known"
    return f"withdrawn on {known.date}{instead}" if known.past else f"ends on {known.date}{instead}"
