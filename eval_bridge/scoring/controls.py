"""Controls that any evaluation can make, and what they showed (Table 72)."""

from __future__ import annotations

import io
import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, get_args

from PIL import Image

from katha.errors import UsageError
from katha.eval_bridge.bench.boards import BoardProblem, JudgedBoard, MethodBoards, read_board
from katha.eval_bridge.matching.match import Matching, match, normalise
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.eval_bridge.questions.build import chance_level
from katha.eval_bridge.scoring.intervals import share_interval
from katha.jsonio import digest
from katha.pictures import decode
from katha.schema import Answer, Dimension, Question, StoryRecord
from katha.schema.scores import ChanceBlock, ChanceControl, ControlResult, Interval, RepeatControl

# `blank` shows plain frames and `foreign` another story's board: nothing of the story is left, so image-only answers
# must fall to chance, and must not be right more often than without any evidence (`none`). `shuffled` shows the
# story's own frames in another order, `repeated` the first in place of each: what the order or the later frames tell
# must fall in the same way. Free answers have no chance: their level is `none` alone. `repeat` asks the same questions
# of the same board again, past the cache: how often does the judge agree with itself? Controls are asked image-only
# and kept apart (`controls.jsonl`): as methods they would shrink the common-valid set of the boards that are compared.

Control = Literal["blank", "shuffled", "repeated", "foreign", "repeat"]
CONTROLS: tuple[Control, ...] = get_args(Control)
_PAPER = (251, 246, 234)


def parse_controls(value: str | None) -> tuple[Control, ...]:
    """Return the controls that words with commas, or `all`, name.

    Raises:
        UsageError: an unknown control.
    """
    words = [word.strip() for word in (value or "").split(",") if word.strip()]
    if value is not None and not words:
        raise UsageError("--controls names no control.", hint=f"Known: {', '.join(CONTROLS)}; or all.")
    if words == ["all"]:
        return CONTROLS
    unknown = next((word for word in words if word not in CONTROLS), None)
    if unknown is not None:
        raise UsageError(f"No control is called {unknown!r}.", hint=f"Known: {', '.join(CONTROLS)}; or all.")
    return tuple(name for name in CONTROLS if name in words)


def blank_board(images: Sequence[bytes]) -> list[bytes]:
    """Return one plain frame for each picture, of the first one's size."""
    size = decode(images[0]).size
    buffer = io.BytesIO()
    Image.new("RGB", size, _PAPER).save(buffer, "PNG")
    return [buffer.getvalue()] * len(images)


def shuffled_order(story_id: str, count: int, seed: int = 42) -> list[int]:
    """Return a seeded order of `count` frames in which no frame keeps its place."""
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

    def __init__(self, boards: MethodBoards, records: Iterable[StoryRecord], seed: int = 42) -> None:
        self._boards, self._seed = boards, seed
        self._records = {record.story_id: record for record in records}
        self._ring = sorted(self._records, key=lambda name: digest([seed, "foreign", name]))
        self._at = {name: place for place, name in enumerate(self._ring)}

    def images(self, control: Control, board: JudgedBoard) -> list[bytes] | None:
        """Return the pictures to show in place of `board`; None where there is no other board, or no other order."""
        images = board.images
        if control == "blank":
            return blank_board(images)
        if control == "foreign":
            return self._foreign(board)
        if control == "repeat":
            return images
        if control == "repeated":
            return images[:1] * len(images) if len(set(images)) > 1 else None
        order = shuffled_order(board.story_id, len(images), self._seed)
        return [images[at] for at in order] if len(images) > 1 else None

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


# What the controls showed: image-only answers beside the chance level, and a judge's agreement with itself.

Key = tuple[str, str]
Known = Mapping[Key, Question]
_FALLS: Mapping[str, tuple[Dimension, ...]] = {
    "blank": (),
    "foreign": (),
    "shuffled": ("temporal_order",),
    "repeated": ("temporal_order", "consequence"),
}
"""The dimensions that must fall under each control; none: all of them."""
_GUESSES = "none"


class _Rows:
    """Rows of one judge as right, wrong or missing, by control (or `board`, `none`) and question."""

    def __init__(self) -> None:
        self.right: dict[str, dict[Key, bool]] = defaultdict(dict)
        self.said: dict[str, dict[Key, str]] = defaultdict(dict)
        self.failed: Counter[str] = Counter()

    def add(self, name: str, row: Answer, question: Question | None, matching: Matching) -> None:
        if question is None:
            return
        key = (row.story_id, row.question_id)
        right = match(row, question, matching).right if row.status == "ok" and row.answer is not None else None
        if right is None or row.answer is None:
            self.failed[name] += 1
        else:
            self.right[name][key], self.said[name][key] = right, normalise(row.answer)


def control_results(
    questions: Known,
    answers: Iterable[Answer],
    control_answers: Iterable[Answer],
    *,
    board: str,
    matching: Matching,
    controls: Sequence[Control],
    chance: bool = True,
) -> list[ControlResult]:
    """Return an entry a control and judge, in percentage points; what cannot be computed is None, and `reading` why.

    questions: by story and question id. answers: of these, the image-only ones about `board` and those without evidence
    are compared. chance: whether the answers were chosen among options, so that there is a chance level.
    """
    judges: dict[str, _Rows] = defaultdict(_Rows)
    named = {(board, "image"): "board", (None, "none"): _GUESSES}
    own = ((named.get((row.method, row.condition)), row) for row in answers)
    controlled = ((row.method, row) for row in control_answers if row.method in controls)
    for name, row in chain(((name, row) for name, row in own if name is not None), controlled):
        judges[row.judge].add(str(name), row, questions.get((row.story_id, row.question_id)), matching)
    return [
        _agreement(board, judge, judges[judge])
        if name == "repeat"
        else _fallen(name, judge, judges[judge], questions, chance)
        for name in controls
        for judge in sorted(judges)
    ]


def _rate(outcomes: Mapping[Key, bool], keys: Sequence[Key]) -> float | None:
    return 100.0 * sum(outcomes[key] for key in keys) / len(keys) if keys else None


def _by_story(outcomes: Mapping[Key, bool], keys: Sequence[Key]) -> Interval | None:
    return share_interval([story for story, _ in keys], [outcomes[key] for key in keys])


def _block(name: str, rows: _Rows, keys: Sequence[Key], known: Known, chance: bool) -> ChanceBlock:
    outcomes, board = rows.right[name], rows.right["board"]
    level = chance_level(known[key] for key in keys) if chance else None
    return ChanceBlock(
        n=len(keys),
        image=_rate(outcomes, keys),
        ci95=_by_story(outcomes, keys),
        board=_rate(board, [key for key in keys if key in board]),
        chance=100.0 * level if level is not None else None,
        **_gain(rows, name, keys),
    )


def _gain(rows: _Rows, name: str, keys: Sequence[Key]) -> dict[str, Any]:
    """Return what was right without evidence and how much more under `name`, on questions answered both ways."""
    outcomes, guesses = rows.right[name], rows.right[_GUESSES]
    both = [key for key in keys if key in outcomes and key in guesses]
    none = _rate(guesses, both)
    if none is None:
        return {}
    more = [float(outcomes[key]) - guesses[key] for key in both]
    ci95 = share_interval([story for story, _ in both], more, signed=True)
    return {"none": none, "gain": 100.0 * sum(more) / len(more), "gain_ci95": ci95}


def _fallen(name: Control, judge: str, rows: _Rows, known: Known, chance: bool) -> ChanceControl:
    """Return how much is still answered rightly, and whether what must fall has fallen to chance."""
    keys = sorted(rows.right[name])
    said = rows.said[name]
    dimensions = _FALLS[name]
    tested = [key for key in keys if not dimensions or known[key].question_type in dimensions]
    whole = _block(name, rows, keys, known, chance)
    focus = _block(name, rows, tested, known, chance)
    unclear = [key for key in keys if said[key] == normalise(UNCLEAR)]
    own = _block("board", rows, [key for key in tested if key in rows.right["board"]], known, chance)
    passes, reading = _read(name, focus, bool(keys) or name in rows.failed, own)
    return ChanceControl(
        control=name,
        judge=judge,
        **dict(whole),
        n_unscored=rows.failed[name],
        unclear=100.0 * len(unclear) / len(keys) if keys else None,
        dimension=dimensions[0] if len(dimensions) == 1 else None,
        dimensions=dimensions if len(dimensions) > 1 else None,
        focus=focus if dimensions else None,
        passes=passes,
        reading=reading,
    )


class _Above(NamedTuple):
    """How far answers are above a level: as they are, and the lower bound; None without one."""

    value: float | None
    low: float | None

    @classmethod
    def of(cls, block: ChanceBlock, level: str) -> _Above | None:
        """Return it for `chance` or `none`; None where the block has no such level or no answer."""
        if level == _GUESSES:
            return cls(block.gain, block.gain_ci95[0] if block.gain_ci95 else None) if block.gain is not None else None
        if block.image is None or block.chance is None:
            return None
        return cls(block.image - block.chance, block.ci95[0] - block.chance if block.ci95 else None)

    @property
    def nothing(self) -> bool:
        """Return whether the answers cannot be told from the level, or are below it."""
        return self.value is None or self.value <= 0 or (self.low is not None and self.low <= 0)


_LEVELS = {"chance": "chance", _GUESSES: "what is guessed without evidence"}
_STAYS = {
    "chance": "stay above chance: they can be guessed without the pictures, or the judge leaks.",
    _GUESSES: "are right more often than without evidence: it sees what is not there: refuse this judge.",
}
_GUESSABLE = "stay above chance, but not above what is guessed without evidence: the questions can be guessed."


def _read(name: Control, block: ChanceBlock, asked: bool, own: ChanceBlock) -> tuple[bool | None, str]:
    """Return whether a block is at its level, and in words. Above it means that the whole interval is.

    own: the board itself on the same questions; a board at the level has nothing to lose, so that what falls with it
    tells nothing.
    """
    dimensions = _FALLS[name]
    what = ("Image-only answers", "Order questions", "Order and consequence questions")[len(dimensions)]
    if not asked:
        return None, "There was nothing to show: it takes another story's board, or a second frame to exchange."
    if block.image is None:
        return None, "No question was answered (see the statuses), so nothing can be said."
    chance, guessed = _Above.of(block, "chance"), _Above.of(block, _GUESSES)
    told = _told(what, _GUESSES, guessed, _Above.of(own, _GUESSES)) if guessed is not None else None
    if chance is None:
        return told or (None, "Free answers have no chance level; compare with the board's own.")
    if told is not None and told[0] is False and not dimensions:
        return told
    passes, reading = _told(what, "chance", chance, _Above.of(own, "chance"))
    if passes is False and guessed is not None and guessed.nothing:
        return passes, f"{what} {_GUESSABLE}"
    return passes, reading


def _told(what: str, level: str, found: _Above, own: _Above | None) -> tuple[bool | None, str]:
    """Return whether answers have fallen to a level, and in words."""
    named = _LEVELS[level]
    if own is not None and own.nothing and found.nothing:
        lost = f"the board's own {what.lower()} are at {named}, so there was nothing to lose."
        return None, f"Not informative: {lost}"
    if found.value is None or found.value <= 0:
        return True, f"{what} fall to {named} or below."
    if found.low is None:
        return None, f"{what} are above {named}, but there are too few stories to tell."
    if found.low <= 0:
        return True, f"{what} cannot be told from {named}."
    return False, f"{what} {_STAYS[level]}"


def _agreement(board: str, judge: str, rows: _Rows) -> RepeatControl:
    """Return how often the judge says the same twice, and how often its verdict stays."""
    first, again = rows.said["board"], rows.said["repeat"]
    keys = sorted(set(first) & set(again))
    same = {key: first[key] == again[key] for key in keys}
    kept = {key: rows.right["board"][key] == rows.right["repeat"][key] for key in keys}
    agreement = _rate(same, keys)
    words = (
        "Nothing was answered twice." if agreement is None else f"The same answer in {agreement:.1f}% of {len(keys)}."
    )
    return RepeatControl(
        control="repeat",
        board=board,
        judge=judge,
        n=len(keys),
        agreement=agreement,
        ci95=_by_story(same, keys),
        verdict_agreement=_rate(kept, keys),
        n_unscored=rows.failed["repeat"],
        passes=None,
        reading=words,
    )
