"""Hand labels of sentences ("blow out | who=Lena | what=candle") held against what the reader found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from katha_sketch.english import Event, read_story
from katha_sketch.english.types import RoleName

DATA = Path(__file__).parents[1] / "data" / "reading"
ROLES: dict[str, tuple[RoleName, ...]] = {
    "who": ("agent",),
    "what": ("patient",),
    "to": ("recipient",),
    "with": ("instrument",),
    "at": ("place", "goal", "source"),
}
FIELDS = ("found", "who", "what", "to", "at", "not", "real")
_ANY_PLACE = frozenset(("there", "here", "anywhere"))


@dataclass(frozen=True)
class Label:
    """One labelled event."""

    predicate: str
    roles: dict[str, frozenset[str]] = field(default_factory=dict)
    state: frozenset[str] = frozenset()
    negated: bool = False
    real: bool = True


def parse_label(text: str) -> Label:
    """Read one label."""
    head, *rest = (part.strip() for part in text.split("|"))
    values = dict(part.split("=", 1) for part in rest if "=" in part)
    roles = {name: frozenset(values[name].split("+")) if name in values else frozenset() for name in ROLES}
    state = frozenset(values["is"].split("+")) if "is" in values else frozenset()
    return Label(head.lstrip("~"), roles, state, "not" in rest, not head.startswith("~"))


def load(name: str) -> list[dict[str, Any]]:
    """Return the labelled sentences of a file."""
    return list(yaml.safe_load((DATA / name).read_text(encoding="utf-8")))


def filled(event: Event, name: str) -> frozenset[str]:
    """Return the heads in a role, as labels write them."""
    heads = {role.head.lower() for role in event.all(*ROLES[name]) if role.start >= 0}
    return frozenset(heads - _ANY_PLACE if name == "at" else heads)


def fits(event: Event, label: Label) -> bool:
    """Whether an event has the label's predicate; a particle that the label does not write may stand."""
    verb, _, particle = label.predicate.partition(" ")
    return event.verb == verb and (not particle or event.particle == particle or particle in event.state)


def pair(events: Sequence[Event], labels: Sequence[Label]) -> list[tuple[Label, Event | None]]:
    """Give each label the first event of its predicate that no other label has."""
    left, pairs = list(events), []
    for label in labels:
        event = next((item for item in left if fits(item, label)), None)
        if event is not None:
            left.remove(event)
        pairs.append((label, event))
    return pairs


def compare(label: Label, event: Event | None) -> dict[str, bool]:
    """Return for each field whether it is right; a missing event has none right."""
    if event is None:
        return dict.fromkeys(FIELDS, False)
    right = {name: filled(event, name) == label.roles[name] for name in ("who", "what", "to", "at")}
    right["at"] = right["at"] or (label.roles["at"] <= filled(event, "at") != frozenset() and bool(label.roles["at"]))
    if label.state:
        right["what"] = right["what"] and label.state <= set(event.state)
    if label.roles["with"]:
        right["at"] = right["at"] and filled(event, "with") == label.roles["with"]
    return {
        "found": True,
        **right,
        "not": event.negated == label.negated,
        "real": (event.standing == "told") == label.real,
    }


def measure(sentences: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the share of labelled events with each field right, of events with all right, and of told events that no
    label has; and what went wrong."""
    totals = dict.fromkeys((*FIELDS, "all"), 0)
    events = extra = told = 0
    wrong: list[str] = []
    for sentence in sentences:
        labels = [parse_label(text) for text in sentence["events"]]
        found = read_story(sentence["text"]).events
        pairs = pair(found, labels)
        taken = {event.id for _, event in pairs if event is not None}
        told += sum(event.standing == "told" for event in found)
        spare = [event.predicate for event in found if event.standing == "told" and event.id not in taken]
        extra += len(spare)
        for label, event in pairs:
            right = compare(label, event)
            events += 1
            for name, value in right.items():
                totals[name] += value
            totals["all"] += all(right.values())
            if not all(right.values()):
                wrong.append(f"{sentence['text']} [{label.predicate}: {', '.join(n for n in FIELDS if not right[n])}]")
        if spare:
            wrong.append(f"{sentence['text']} [also: {', '.join(spare)}]")
    shares = {name: round(value / max(events, 1), 3) for name, value in totals.items()}
    return {
        "sentences": len(sentences),
        "events": events,
        **shares,
        "told_but_not_labelled": round(extra / max(told, 1), 3),
        "wrong": wrong,
    }
