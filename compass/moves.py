"""Moves: what a repair may change of a board, as a model writes it, a plan's fields tell it, or it is drawn again.

A move keeps every frame that it does not name. Who writes it (`writer`) is told what was missed, or, as its blind twin,
the plan alone; what it proposes is cut to what may be drawn, and never to what a reporting question asks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from katha.compass.repair import told_transition
from katha.schema import SHOT_SIZES, Move, MoveKind, Panel, Plan, Transition

_AGAIN = 7
"""How far a further drawing's seed is from the run's: no two are the same for as many seeds as runs have."""


def told_kind(move: Move) -> str:
    """Return in words for a reader what a move changes."""
    before, after = move.pair
    scenes = [panel.index for panel in move.panels]
    drawn = f"Scene {scenes[0]}" if len(scenes) == 1 else f"Scenes {' and '.join(map(str, scenes))}"
    return {
        "bridge": f"A frame between scenes {before} and {after}",
        "redraw_after": f"{drawn} drawn anew",
        "redraw_before": f"{drawn} drawn anew",
        "reframe": f"{drawn} in another shot",
        "device": f"{drawn} drawn anew so that the change is prepared{f' ({move.device})' if move.device else ''}",
        "again": f"{drawn} drawn once more, with nothing changed",
    }[move.kind]


def seed_of(move: Move, number: int, seed: int) -> int:
    """Return the seed that the `number`-th move of a round is drawn with in the branch of `seed`: another one where
    nothing else is changed."""
    return (seed + _AGAIN * number) % 2**32 if move.kind == "again" else seed


def within(moves: Iterable[Move], frames: int) -> list[Move]:
    """Return the first of `moves` that draw no more than so many frames together; each is drawn whole or not at all."""
    kept: list[Move] = []
    for move in moves:
        if sum(len(one.panels) for one in (*kept, move)) <= frames:
            kept.append(move)
    return kept


def move_faults(moves: Sequence[Move], kinds: Collection[MoveKind], plan: Plan) -> Iterator[str]:
    """Yield in a sentence each what no move may be: of another kind, at another place, or of a stranger."""
    known, last = {character.name for character in plan.characters}, len(plan.panels)
    for number, move in enumerate(moves, 1):
        places = [panel.index for panel in move.panels]
        before, after = move.pair
        allowed = {
            "bridge": places == [after],
            "redraw_after": places == [after],
            "redraw_before": places == [before],
            "reframe": places in ([before], [after]),
            "device": len(places) == len(set(places)) and all(1 <= place <= min(after, last) for place in places),
            "again": places in ([before], [after]),
        }[move.kind]
        if move.kind not in kinds:
            yield f"Move {number} is a {move.kind}, which is not allowed here."
        elif not allowed:
            yield f"Move {number} is a {move.kind} of frames {before} and {after} and cannot draw frames {places}."
        stranger = next((name for panel in move.panels for name in panel.characters if name not in known), None)
        if stranger is not None:
            yield f"Move {number} names {stranger!r}, who is not in the cast."


def drawn_again(plan: Plan, pair: tuple[int, int], count: int) -> list[Move]:
    """Return `count` further drawings of a transition's frames, the later one first, with nothing else changed."""
    panels = {panel.index: panel for panel in plan.panels}
    turns = [pair[1 - number % 2] for number in range(count)]
    return [
        Move(kind="again", pair=pair, panels=[panels[index]], reason="The same frame, drawn with another seed.")
        for index in turns
    ]


def told_by_fields(plan: Plan, transition: Transition, kinds: Collection[MoveKind], count: int) -> list[Move]:
    """Return the moves that a plan's own fields tell, where no model writes any: a frame of what happens between, the
    later frame with it, the same frame closer or wider."""
    pair = before, after = transition.pair
    panels = {panel.index: panel for panel in plan.panels}
    events = told_transition(transition)
    what = " ".join(events)
    cast = list(dict.fromkeys([*panels[before].characters, *panels[after].characters]))
    later = panels[after]
    nearer = SHOT_SIZES[0] if later.shot_size != SHOT_SIZES[0] else SHOT_SIZES[1]
    seen = [event.rstrip(".") for event in events]
    made = [
        Move(
            kind="bridge",
            pair=pair,
            panels=[_between(later, what, cast, seen)],
            reason="What happens between the two frames gets a frame of its own.",
        ),
        Move(
            kind="redraw_after",
            pair=pair,
            panels=[later.model_copy(update={"must_show": list(dict.fromkeys([*later.must_show, *seen]))})],
            reason="The later frame shows what led to it, too.",
        ),
        Move(
            kind="reframe",
            pair=pair,
            panels=[later.model_copy(update={"shot_size": nearer})],
            reason=f"The later frame is seen in another shot ({nearer}).",
        ),
    ]
    return [move for move in made if move.kind in kinds][:count]


def _between(panel: Panel, prompt: str, cast: Sequence[str], seen: Sequence[str]) -> Panel:
    """A frame before `panel`, in its place and light."""
    return Panel(
        index=panel.index,
        prompt=prompt,
        negative_prompt=panel.negative_prompt,
        characters=list(cast),
        must_show=list(seen),
        place=panel.place,
        time_of_day=panel.time_of_day,
        light=panel.light,
    )
