"""Controls that any evaluation can make: what a judge answers when the pictures cannot tell (Table 72).

`blank` shows plain frames and `foreign` another story's board: nothing of the story is left, so image-only answers must
fall to chance. `shuffled` shows the story's own frames in another order: its temporal-order questions must fall to
chance. `repeat` asks the same questions of the same board again, past the cache: how often does the judge agree with
itself? Controls are asked image-only and kept apart (`controls.jsonl`): as methods they would shrink the common-valid
set of the boards that are compared.
"""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, get_args

from katha.errors import UsageError
from katha.eval_bridge.boards import BoardProblem, Boards, JudgedBoard, read_board
from katha.jsonio import digest
from katha.schema import StoryRecord

__all__ = ["CONTROLS", "Control", "ControlBoards", "blank_board", "parse_controls", "shuffled_order"]

Control = Literal["blank", "shuffled", "foreign", "repeat"]
CONTROLS: tuple[Control, ...] = get_args(Control)
_PAPER = (251, 246, 234)


def parse_controls(value: str | None) -> tuple[Control, ...]:
    """`blank,shuffled,foreign,repeat`, or `all`.

    Raises:
        UsageError: an unknown control.
    """
    words = [word.strip() for word in (value or "").split(",") if word.strip()]
    known = {name: name for name in CONTROLS}
    if words == ["all"]:
        return CONTROLS
    for word in words:
        if word not in known:
            raise UsageError(f"No control is called {word!r}.", hint=f"Known: {', '.join(CONTROLS)}; or all.")
    return tuple(name for name in CONTROLS if name in words)


def blank_board(images: Sequence[bytes]) -> list[bytes]:
    """One plain frame for each picture, of the first one's size."""
    from PIL import Image

    with Image.open(io.BytesIO(images[0])) as first:
        size = first.size
    buffer = io.BytesIO()
    Image.new("RGB", size, _PAPER).save(buffer, "PNG")
    return [buffer.getvalue()] * len(images)


def shuffled_order(story_id: str, count: int, seed: int = 42) -> list[int]:
    """A seeded order of `count` frames in which no frame keeps its place."""
    places = list(range(count))
    generator = random.Random(f"{seed}:{story_id}:shuffled")
    while count > 1 and any(at == place for at, place in enumerate(places)):
        generator.shuffle(places)
    return places


class ControlBoards:
    """The pictures of each control for the boards of one method.

    `foreign` goes round a seeded ring of the stories: each is shown the next one's board, or, if that cannot be read or
    shows the same, the one after.
    """

    def __init__(self, boards: Boards, records: Iterable[StoryRecord], seed: int = 42) -> None:
        self._boards, self._seed = boards, seed
        self._records = {record.story_id: record for record in records}
        self._ring = sorted(self._records, key=lambda name: digest([seed, "foreign", name]))
        self._at = {name: place for place, name in enumerate(self._ring)}

    def images(self, control: Control, board: JudgedBoard) -> list[bytes] | None:
        """The pictures to show in place of `board`; None where there is nothing to show: no other story's board, or a
        single frame, which has no other order."""
        makers: Mapping[Control, Callable[[JudgedBoard], list[bytes] | None]] = {
            "blank": lambda own: blank_board(own.images),
            "shuffled": self._shuffled,
            "foreign": self._foreign,
            "repeat": lambda own: own.images,
        }
        return makers[control](board)

    def _shuffled(self, board: JudgedBoard) -> list[bytes] | None:
        images = board.images
        if len(images) < 2:
            return None
        return [images[at] for at in shuffled_order(board.story_id, len(images), self._seed)]

    def _foreign(self, board: JudgedBoard) -> list[bytes] | None:
        at = self._at[board.story_id]
        for name in (*self._ring[at + 1 :], *self._ring[:at]):
            try:
                other = read_board(self._boards, self._records[name])
            except BoardProblem:
                continue
            if other.images != board.images:
                return other.images
        return None
