"""VinaBench's fine-grained measures: five alignments of each frame, three consistencies of the board (Secs. 4.2, 4.3).

The paper reports the probability of Yes as the first token; the published scripts behind its Table 2 read hard answers.
A scene's constraints are VinaBench's annotations where they are given, else what the board's plan says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from katha.configs import load_prompt
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured, share_of, text_of
from katha.protocols import PlainPrompt
from katha.schema import Answer
from katha.schema.metrics import MetricCard, MetricMode, MetricPart, MetricValue
from katha.schema.narratives import UNCLEAR, DayTime, Narrative, SceneConstraints, narrative_of, shared

Reading = Literal["mode", "probability", "hard"]
YES = ("Yes", "yes", "YES")
_NO = ("No", "no", "NO")
_ALIGNMENT = ("entities", "number", "attributes", "time", "location")
_CONSISTENCY = ("same_style", "same_character", "same_location")
_ABOUT = {
    "entities": "linked entities that the frame contains or implies (Ent.)",
    "number": "frames with the right number of characters (Num.)",
    "attributes": "characters as described (Attr.)",
    "time": "time of day (Time)",
    "location": "location (Loc.)",
    "alignment": "mean of the five alignments",
    "same_style": "one style in all frames (Sty.)",
    "same_character": "a character of several scenes stays the same (Char.)",
    "same_location": "a location of several scenes stays the same (Loc.)",
    "consistency": "mean of the three consistencies",
}
_NOTHING = {
    "entities": "no scene has a linked entity that is not a character",
    "number": "no scene says how many characters are present",
    "attributes": "no scene has a character with a description",
    "time": "no scene has a time of day",
    "location": "no scene has a location",
    "same_character": "no character is in two scenes",
    "same_location": "no location is in two scenes",
}


@dataclass(frozen=True)
class _Asked:
    """One question: of which part, of which item of it, about which frames (from 0), and the number that is right."""

    part: str
    item: str
    frames: tuple[int, ...]
    prompt: str
    number: int | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """The words whose probability is wanted."""
        return (*YES, *_NO) if self.number is None else tuple(str(digit) for digit in range(10))


class VinaBench:
    """VinaBench's alignment and consistency, asked of a vision-language judge."""

    card: ClassVar[MetricCard] = MetricCard(
        name="vinabench",
        title="VinaBench alignment and consistency",
        paper="Gao et al., VinaBench, 2025, Secs. 4.2, 4.3 and S2, Table S4",
        formula="mean P(first token is Yes) over a board's questions; Alignment and Consistency: mean of their parts",
        level="board",
        parts=tuple(
            MetricPart(name=name, about=about, average="macro" if name in ("alignment", "consistency") else "micro")
            for name, about in _ABOUT.items()
        ),
        modes=("paper", "code"),
        differs=(
            "paper: probabilities, averaged over entities, characters and locations, entities without the profile's "
            "names. code: hard answers, averaged within a scene or narrative first, entities without capitalised ones, "
            "'unclear' asked as a location like any other"
        ),
        needs=("judge", "probabilities", "narrative"),
        models=("MiniCPM-V-2.6 or LLaVA-OneVision-72B in the paper; any judge here",),
        licence="formulas and prompts as facts; published code and annotations Apache-2.0",
        cost="about 6 judge calls a frame and 4 a board",
        calls_per_frame=7.0,
        vector="hand-made logits through both ways of averaging, tests/eval_bridge/test_metrics_vinabench.py",
    )

    def __init__(self, *, answers: Reading = "mode") -> None:
        """answers: `probability` or `hard`; `mode` takes what the mode takes."""
        if answers not in get_args(Reading):
            raise ValueError(f"answers is one of {', '.join(get_args(Reading))}")
        self._answers = answers

    def spec(self) -> Mapping[str, Any]:
        """Name, version, the way of reading, and the prompts."""
        names = ("entity", "number", "attributes", "time", "location", *_CONSISTENCY)
        prompts = {name: load_prompt(f"metrics/vinabench/{name}").sha256 for name in names}
        return {"name": "vinabench", "version": 2, "answers": self._answers, "prompts": prompts}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield every part; questions that failed are nulls of their own and count in no mean."""
        narrative, shown = _narrative(board), _scene_frames(board)
        found: dict[str, dict[tuple[int, ...], list[float]]] = {}
        for asked in _questions(narrative, shown, context.mode):
            images = [board.frames[at].data for at in asked.frames]
            try:
                score = self._score(asked, board, context, images)
            except Unmeasured as unmeasured:
                yield board.value(asked.part, None, item=asked.item, reason=str(unmeasured))
            else:
                found.setdefault(asked.part, {}).setdefault(asked.frames, []).append(score)
        made = [_averaged(board, part, found.get(part, {}), context.mode) for part in (*_ALIGNMENT, *_CONSISTENCY)]
        yield from made
        for whole, parts in (("alignment", _ALIGNMENT), ("consistency", _CONSISTENCY)):
            numbers = [value.value for value in made if value.part in parts and value.value is not None]
            mean = math.fsum(numbers) / len(numbers) if numbers else None
            yield board.value(whole, mean, reason=None if numbers else f"no part of the {whole} could be measured")

    def _score(self, asked: _Asked, board: MetricBoard, context: MetricContext, images: Sequence[bytes]) -> float:
        hard = self._answers == "hard" or (self._answers == "mode" and context.mode == "code")
        prompt = PlainPrompt((*range(len(images)), asked.prompt), words=() if hard else asked.words, max_tokens=16)
        name = f"{asked.part}/{asked.item}"
        answer = context.ask("vinabench", board.story_id, board.method, images, {name: prompt})[name]
        return _hard(asked, answer) if hard else _probability(asked, answer)


def _narrative(board: MetricBoard) -> Narrative:
    if board.narrative is not None:
        return board.narrative
    if board.plan is None:
        raise Unmeasured("there are no constraints: give --narratives, or boards that have a plan")
    return narrative_of(board.plan)


def _scene_frames(board: MetricBoard) -> list[int]:
    """Return the place of each scene's frame, in the scenes' order; inserted frames belong to no scene."""
    shown = {frame.scene: at for at, frame in enumerate(board.frames) if frame.scene is not None}
    return [shown[scene] for scene in sorted(shown)]


def _questions(narrative: Narrative, shown: Sequence[int], mode: MetricMode) -> Iterator[_Asked]:
    """Yield the questions about the frames at `shown`; scenes without a frame, or frames without a scene, have none."""
    scenes = narrative.scenes[: len(shown)]
    for at, scene in zip(shown, scenes, strict=False):
        yield from _scene_questions(scene, narrative.profile, at, mode)
    every = tuple(shown)
    if len(every) > 1:
        yield _Asked("same_style", "board", every, _prompt("same_style"))
    for name, places in shared(scene.characters for scene in scenes).items():
        if name in narrative.profile:
            words = _prompt("same_character", name=name, description=narrative.profile[name])
            yield _Asked("same_character", name, tuple(shown[at] for at in places), words)
    # The published scripts take "unclear" for a place like any other.
    nowhere = ("",) if mode == "code" else ("", UNCLEAR)
    located = [[scene.location] if scene.location not in nowhere else [] for scene in scenes]
    for place, places in shared(located).items():
        words = _prompt("same_location", location=place)
        yield _Asked("same_location", place, tuple(shown[at] for at in places), words)


def _scene_questions(
    scene: SceneConstraints, profile: Mapping[str, str], at: int, mode: MetricMode
) -> Iterator[_Asked]:
    label = str(at + 1)
    for entity in scene.entities:
        if not (entity[:1].isupper() if mode == "code" else entity in profile):
            yield _Asked("entities", f"{label}: {entity}", (at,), _prompt("entity", entity=entity))
    if scene.number is not None and (profile or mode == "paper"):
        yield _Asked("number", label, (at,), _prompt("number"), scene.number)
    described = {name: profile[name] for name in scene.characters if name in profile}
    if described and scene.number:
        yield _Asked("attributes", label, (at,), _prompt("attributes", characters=described))
    if scene.time in get_args(DayTime):
        article = "at" if scene.time in ("night", "noon") else "in the"
        yield _Asked("time", label, (at,), _prompt("time", article=article, time=scene.time))
    if scene.location and (mode == "code" or scene.location != UNCLEAR):
        article = "an" if scene.location[0] in "aeiou" else "a"
        yield _Asked("location", label, (at,), _prompt("location", article=article, location=scene.location))


def _prompt(which: str, /, **words: object) -> str:
    return load_prompt(f"metrics/vinabench/{which}").render(**words)


def _probability(asked: _Asked, answer: Answer) -> float:
    """Return P(first token is Yes), or that it is the right number."""
    if asked.number is None:
        return share_of(answer, YES)
    if asked.number > 9:
        raise Unmeasured("more than 9 characters: the first token alone is not a number")
    return share_of(answer, (str(asked.number),))


def _hard(asked: _Asked, answer: Answer) -> float:
    """Return 1 for a reply that begins with yes, or is the right number, else 0."""
    said = text_of(answer).strip()
    if asked.number is None:
        return float(said.lower().startswith("yes"))
    number = re.match(r"\d+", said.split(" ")[0].strip("."))
    if number is None:
        raise Unmeasured("the reply is not an Arabic number")
    return float(int(number[0]) == asked.number)


def _averaged(
    board: MetricBoard, part: str, found: Mapping[tuple[int, ...], Sequence[float]], mode: MetricMode
) -> MetricValue:
    """Return a part's value, weighed by items in `paper`, by scenes or (consistency) by narratives in `code`."""
    if mode == "code" and part == "entities":
        numbers = [math.fsum(items) / len(items) for items in found.values()]
    else:
        numbers = [score for items in found.values() for score in items]
    if not numbers:
        reason = "the board has one frame" if part == "same_style" and len(_scene_frames(board)) < 2 else None
        return board.value(part, None, reason=reason or _NOTHING.get(part, "no question was answered"))
    weight = 1 if mode == "code" and part in _CONSISTENCY else len(numbers)
    return board.value(part, math.fsum(numbers) / len(numbers), n=weight)
