"""What lasts from one picture to the next: a broken cup, who lies in bed, sits in a wheelchair or is stuck in a net."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

from katha.planners.acts import planning
from katha.text import Event, Reading, Teller
from katha.text.words import load_words

__all__ = ["held_fast", "still_so"]


class _Told(Protocol):
    """What is asked of a story here (`moments.Story`)."""

    reading: Reading
    teller: Teller

    def passes(self, sentence: int) -> bool: ...


def still_so(story: _Told, shown: Sequence[Event], before: int, told: str) -> list[str]:
    """Return what the sentences before number `before` made of somebody or something `shown` and nobody has undone
    ("The cup is broken."), unless `told` has it; who got wet is dry when time has passed."""
    table = planning("lasting")
    found: dict[str, str] = {}
    for event in (one for one in story.reading.events if one.sentence < before):
        keys = {*event.who("patient")} or {*event.who("agent")}
        if event.verb in table["undone"]:
            found = {key: state for key, state in found.items() if key not in keys}
        if not event.happens or event.speech is not None:
            continue
        thing = not any(story.reading.entity(key).character for key in keys)
        says = next((one for one in event.state if one in {*table["states"], *table["a_while"]}), None)
        state = (table["becomes"].get(event.verb) if thing else None) or says
        found |= dict.fromkeys(event.who("agent") if event.verb == "be" else sorted(keys), state) if state else {}
        if state in table["a_while"] and any(story.passes(at) for at in range(event.sentence + 1, before + 1)):
            found = {key: state for key, state in found.items() if key not in keys}
    seen = dict.fromkeys(role.entity for event in shown for role in event.roles if role.entity in found)
    for key in seen:
        name, state = story.teller.name(str(key)), found[str(key)]
        if story.reading.entity(str(key)).count == 1 and state not in told:
            return [f"{name[:1].upper()}{name[1:]} is {state}."]
    return []


def held_fast(story: _Told, shown: Sequence[Event], cast: Sequence[str], before: Event) -> list[str]:
    """Return where those of the `cast` still are whom a deed before the event `before` has laid, seated or caught
    somewhere: "Marek lies in his hospital bed."; not of those whose place a `shown` deed tells."""
    stays: dict[str, str] = {}
    stuck: dict[str, str] = {}
    for event in story.reading.events[: before.id]:
        if event.speech is not None or event.standing != "told":
            continue
        if story.passes(event.sentence):
            stays = {}
        taken = {*event.who("patient"), *(story.reading.entity(one).owner for one in event.who("patient"))}
        freed = taken if event.verb in planning("held_fast")["frees"] else set()
        freed |= {*event.who("agent")} if {*event.state} & {*planning("held_fast")["free"]} else set()
        if event.happens and freed:
            stuck = {key: says for key, says in stuck.items() if key not in freed}
        elif event.happens and _moves(event):
            stays = {
                key: says for key, says in stays.items() if key not in taken | {*event.who("agent")} or key in stuck
            }
            if event.verb in planning("held_fast")["escapes"]:
                stuck = {key: says for key, says in stuck.items() if key not in event.who("agent")}
        for key, says, captive in _begun(story, event):
            (stuck if captive else stays)[key] = says
    at = story.reading.sentences[before.sentence].place
    moved = at is not None and at.since == before.sentence
    told = []
    for key in cast:
        where = stays.get(key) or stuck.get(key)  # who is stuck in a tree is in the tree
        if where and (key in stuck or not moved) and not _placed(key, shown):
            name = story.teller.name(key)
            told.append(f"{name[:1].upper()}{name[1:]} {where}.")
    return told


def _moves(event: Event) -> bool:
    """Whether somebody gets up or goes, or is taken somewhere."""
    rises = planning("held_fast")["rises"]
    return event.verb in rises or event.predicate in rises or load_words().has("motion", event.verb)


def _placed(key: str, shown: Sequence[Event]) -> bool:
    """Whether a deed that is shown says where somebody is, or has them on the move or freed."""
    own = [event for event in shown if key in (*event.who("agent"), *event.who("patient"))]
    frees = planning("held_fast")["frees"]
    return any(_moves(one) or one.verb in frees or one.all("place", "goal", "source") for one in own)


def _begun(story: _Told, event: Event) -> Iterator[tuple[str, str, bool]]:
    """Who is laid, seated or caught by an event, how a picture says where, and whether they are captive there."""
    if event.negated or event.perfect:
        return
    said = {event.verb, event.predicate.replace(" ", "_"), *event.state}
    for row in planning("held_fast")["places"].values():
        for role in event.all("place", "goal", "patient"):
            leads = {*row["verbs"].split(), *(row["states"].split() if event.verb in ("be", "get") else ())} & said
            if role.role == "patient":  # "climbed the tree"
                leads = {event.verb} & {row.get("of")}
            elif role.preposition not in row["prepositions"].split():
                continue
            where = story.teller.filler(role, story.teller.doers(event))
            if not leads or not where or role.head not in row["nouns"].split():
                continue
            keys = (event.who("patient") if row["captive"] else ()) or event.who("agent")
            owners = [story.reading.entity(key).owner for key in keys] if row["captive"] else []  # her sleeve: she
            for key in story.teller.people((*keys, *(one for one in owners if one is not None))):
                if story.reading.entity(key).count == 1:
                    yield key, f"{row['says']} {where}", bool(row["captive"])
