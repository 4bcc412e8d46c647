"""What choosing a seed did to a board's score, and what its repair did: two figures, never one."""

from __future__ import annotations

from typing import Any, NamedTuple

from katha.schema import Board, Candidates, Frame

__all__ = ["BY_HAND", "Effect", "effect_of", "is_stale", "stale_told"]

BY_HAND = ("redo:", "edit:")
"""What the names of boards begin with that a person changed."""


class Effect(NamedTuple):
    """Scores (Eq. 24) of the first seed's board, of the one that was chosen, and of that with its repair."""

    first_seed: int
    first: float
    chosen_seed: int
    chosen: float
    repaired: float | None
    what: str

    def record(self) -> dict[str, Any]:
        """Return it as `run.json` has it."""
        seed = {"from": self.first_seed, "to": self.chosen_seed, "before": self.first, "after": self.chosen}
        repair = {"what": self.what, "before": self.chosen, "after": self.repaired}
        return {"seed": seed, **({"repair": repair} if self.repaired is not None else {})}

    def told(self) -> str:
        """Return what the repair did apart from the seed, in a sentence; "" where one figure says all."""
        if self.chosen_seed == self.first_seed:
            return ""
        seeds = f"seed {self.chosen_seed} in place of {self.first_seed}"
        moved = (
            f"Of the change since the first board, {seeds} took the score from {self.first:.3f} to {self.chosen:.3f}"
        )
        if self.repaired is None:
            return f"{moved}."
        own = f"{self.chosen:.3f} to {self.repaired:.3f} ({self.repaired - self.chosen:+.3f})"
        return f"{moved}, {self.what} alone from {own}."


def effect_of(found: Candidates) -> Effect | None:
    """Return what seed and repair did to the board that a run decided for; None where a person has changed it since."""
    decision, known = found.decision, {item.name: item for item in found.candidates}
    chosen, first = known.get(decision.selected), found.candidates[0]
    last = known.get(decision.inserted or "") if decision.accepted else None
    if chosen is None or any(item is not None and item.name.startswith(BY_HAND) for item in (chosen, last)):
        return None
    repaired = last.score.total if last is not None else None
    what = _what(last.board) if last is not None else ""
    return Effect(first.board.seed, first.score.total, chosen.board.seed, chosen.score.total, repaired, what)


def _what(board: Board) -> str:
    """Return what a repair put into a board, in words: "the bridge between scenes 2 and 3"."""
    told = [_named(frame) for frame in board.frames if frame.repaired]
    return " and ".join(told) or "the repair"


def _named(frame: Frame) -> str:
    if frame.transition is None:
        return f"scene {frame.scene} drawn anew"
    return f"the {_kind(frame)} between scenes {frame.transition[0]} and {frame.transition[1]}"


def _kind(frame: Frame) -> str:
    return "bridge" if frame.kind == "bridge" else "extra frame"


def is_stale(frame: Frame) -> bool:
    """Return whether an inserted frame is older than a picture beside it."""
    return (frame.model_extra or {}).get("stale") is True


def stale_told(board: Board, run: str = "RUN") -> list[str]:
    """Return a sentence for each inserted frame whose neighbours have other pictures by now; run: its folder, as one
    types it."""
    return [
        f"Frame {frame.index}, {_named(frame)}, is older than a picture beside it. Draw it again: katha redo {run} "
        f"--frame {frame.index} --seed SEED. Or take it out: katha redo {run} --remove {frame.index}."
        for frame in board.frames
        if is_stale(frame)
    ]
