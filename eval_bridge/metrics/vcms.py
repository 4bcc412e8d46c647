"""VCMS, the visual context-aware metric for story visualization: caption reflection and image consistency.

Four questions a frame, each answered from 0 to 1 (Sec. 3 and Fig. 5 of Jhang et al.): Q1 `behaviour` and Q2 `setting`
against the caption, Q3 `character` and Q4 `style` against the frame before. The score is their mean (Table 6).
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

from katha.configs import load_prompt
from katha.errors import InputFileError, UsageError
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured, share_of, text_of
from katha.jsonio import iter_lines, loads, sha256_hex
from katha.pictures import read_picture
from katha.protocols import PlainPrompt, PromptExample
from katha.schema import Answer
from katha.schema.metrics import MetricCard, MetricPart, MetricValue

Question = Literal["behaviour", "setting", "character", "style"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
CAPTIONED: frozenset[Question] = frozenset(("behaviour", "setting"))
"""The questions about the caption; the others are about the frame before, which the first frame does not have."""

MOST_SHOTS = 2
"""Examples shown before a question; a third lowered the correlation with people (Table 4)."""

_NUMBER = re.compile(r"(?<![\d.])[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?")


def read_score(text: str) -> float | None:
    """Return the real number from 0 to 1 that a reply is, or None: two numbers, none, or one beyond the scale."""
    found = _NUMBER.findall(text.lower())
    if len(found) != 1:
        return None
    value = float(found[0])
    return value if 0.0 <= value <= 1.0 else None


def binary_score(yes: float, no: float, weight: float = -1.0) -> float:
    """Return the score of a yes/no answer from the probabilities of both words, from `weight` to 1.

    The paper gives "No" a negative weight and does not say which; -1 makes the scale symmetric.
    """
    return yes + weight * no


def sample_mean(samples: Iterable[float | None]) -> float | None:
    """Return the mean of the samples that could be read (the paper draws three at temperature 1); None without one."""
    read = [value for value in samples if value is not None]
    return math.fsum(read) / len(read) if read else None


@dataclass(frozen=True)
class Vcms:
    """One story's VCMS. A mean is None where no frame has an answer; `overall` needs all four.

    counts: by question, how many frames the mean rests on.
    """

    behaviour: float | None
    setting: float | None
    character: float | None
    style: float | None
    overall: float | None
    counts: Mapping[Question, int]


def story_vcms(scores: Mapping[Question, Sequence[float | None]]) -> Vcms:
    """Return the means of one board's answers, by question and over the questions.

    scores: by question, one value a frame, None where it was not asked or not answered. The paper does not say what Q3
    and Q4 are on the first frame, which has none before it: here they are None, so that `overall` weighs the four
    questions alike whatever the number of frames (the mean of the columns, as in Table 6).
    """
    means = {name: sample_mean(scores.get(name, ())) for name in QUESTIONS}
    counts = {name: sum(value is not None for value in scores.get(name, ())) for name in QUESTIONS}
    told = [value for value in means.values() if value is not None]
    overall = math.fsum(told) / len(QUESTIONS) if len(told) == len(QUESTIONS) else None
    return Vcms(**means, overall=overall, counts=counts)


def corrupt_captions(captions: Sequence[str], share: float = 0.5, seed: int = 42) -> tuple[list[str], frozenset[int]]:
    """Return the captions with a share of them taken from another place, and those places (Apps. J.1 and J.2).

    Q1 and Q2 of a judge must fall on them and Q3 and Q4 stay: by 48.8%, 46.2%, 0.7% and -3.4% in Table 13. A caption is
    replaced by one that reads otherwise; where all read alike nothing is replaced.
    """
    chance = random.Random(seed)
    places = chance.sample(range(len(captions)), round(share * len(captions)))
    corrupted, changed = list(captions), set[int]()
    for place in places:
        others = [caption for caption in captions if caption != captions[place]]
        if others:
            corrupted[place] = chance.choice(others)
            changed.add(place)
    return corrupted, frozenset(changed)


@dataclass(frozen=True)
class ScoredFrame:
    """One scored frame that is shown before a question: its picture, the one before it, its caption and its scores."""

    picture: bytes
    previous: bytes | None
    caption: str
    scores: Mapping[Question, float]


def read_shots(path: Path, most: int) -> tuple[ScoredFrame, ...]:
    """Return the first `most` examples of a JSON Lines file: `image`, `previous`, `caption`, and a score by question.

    Pictures are named relative to the file. The paper shows no example of its own, so that they are the user's.

    Raises:
        InputFileError: a line or a picture cannot be used, or there are fewer.
    """
    shots: list[ScoredFrame] = []
    for number, line in iter_lines(path):
        if len(shots) == most:
            break
        try:
            row = loads(line)
            scores = {name: float(row[name]) for name in QUESTIONS if row.get(name) is not None}
            picture, previous = row["image"], row.get("previous")
            caption = str(row["caption"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            hint = f"Each line needs image, caption and scores ({', '.join(QUESTIONS)}) from 0 to 1."
            raise InputFileError(f"{str(path)!r}, line {number}, is not an example: {error!r}.", hint=hint) from error
        earlier = read_picture(path.parent / previous, f"The picture of line {number}") if previous else None
        drawn = read_picture(path.parent / picture, f"The picture of line {number}")
        shots.append(ScoredFrame(drawn, earlier, caption, scores))
    if len(shots) < most:
        raise InputFileError(f"{str(path)!r} holds {len(shots)} examples, but {most} are to be shown.")
    return tuple(shots)


_FIRST = "the first frame has none before it"
_NO_CAPTION = "the frame has no caption"


class VcmsMetric:
    """Four questions about every frame, put to a vision-language model."""

    card: ClassVar[MetricCard] = MetricCard(
        name="vcms",
        title="VCMS",
        paper="Jhang et al., Sec. 3, Fig. 5 (prompts), Table 6",
        formula="mean of the four questions' means over frames, each from 0 to 1",
        level="frame",
        parts=(
            MetricPart(name="behaviour", about="Q1: emotions and behaviour as in the caption", low=-1.0),
            MetricPart(name="setting", about="Q2: the setting as in the caption", low=-1.0),
            MetricPart(name="character", about="Q3: looks as in the frame before", low=-1.0),
            MetricPart(name="style", about="Q4: the background's style as in the frame before", low=-1.0),
            MetricPart(name="overall", about="mean of the four", low=-1.0),
        ),
        needs=("judge",),
        licence="no code or data; the judge's own terms",
        cost="4 judge calls (12 with samples=3)",
        calls_per_frame=4.0,
        vector="all four rows of Table 6, and App. J's corrupted captions, in tests/eval_bridge/test_metric_vcms.py",
    )

    def __init__(
        self,
        *,
        samples: int = 1,
        binary: bool = False,
        weight: float = -1.0,
        shots: int = 0,
        examples: Path | None = None,
    ) -> None:
        """samples: draws that are averaged; from 2 on at temperature 1, as the paper's three. binary: yes/no questions
        scored by the probabilities of the words, "No" with `weight`. shots: how many of `examples` are shown before.

        Raises:
            UsageError: an option is out of range. InputFileError: the examples cannot be read.
        """
        if samples < 1 or not 0 <= shots <= MOST_SHOTS or not -1 <= weight < 0:
            raise UsageError(
                'vcms takes samples from 1, shots from 0 to 2, and a weight of "No" from -1 to below 0.',
                hint="The paper draws 3 samples at most, and shows 2 examples: a third lowered the agreement.",
            )
        if shots and examples is None:
            raise UsageError(f"vcms is to show {shots} examples and has none.", hint="Give examples=FILE.jsonl.")
        self._samples, self._binary, self._weight = (1 if binary else samples), binary, weight
        self._shots = read_shots(examples, shots) if examples is not None and shots else ()

    def spec(self) -> Mapping[str, Any]:
        """Name, version, variant, and the hashes of prompts and examples."""
        names = ("frame", *QUESTIONS)
        return {
            "name": "vcms",
            "version": 1,
            "samples": self._samples,
            "binary": self._weight if self._binary else None,
            "shots": [[sha256_hex(shot.picture), shot.caption, dict(shot.scores)] for shot in self._shots],
            "prompts": {name: load_prompt(f"metrics/vcms/{name}").sha256 for name in names},
        }

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterator[MetricValue]:
        """Yield four values a frame and the board's `overall`; the first frame has no Q3 and Q4."""
        found: dict[Question, list[float | None]] = {name: [] for name in QUESTIONS}
        for at in range(len(board.frames)):
            for name, value, reason in self._frame(board, at, context):
                found[name].append(value)
                yield board.value(name, value, frame=at + 1, reason=reason)
        result = story_vcms(found)
        missing = "one frame has no consistency" if len(board.frames) == 1 else "a question has no answer on any frame"
        reason = None if result.overall is not None else missing
        yield board.value("overall", result.overall, n=sum(result.counts.values()), reason=reason)

    def _frame(
        self, board: MetricBoard, at: int, context: MetricContext
    ) -> Iterator[tuple[Question, float | None, str | None]]:
        frame = board.frames[at]
        caption = board.text_of(frame.scene)
        asked = {"caption": (frame.data,)} | ({"previous": (board.frames[at - 1].data, frame.data)} if at else {})
        for name in QUESTIONS:
            captioned = name in CAPTIONED
            if (captioned and not caption) or (not captioned and not at):
                yield name, None, _NO_CAPTION if captioned else _FIRST
                continue
            pictures = asked["caption" if captioned else "previous"]
            shown, prompts = self._prompts(name, pictures, caption or "")
            answers = context.ask(f"vcms/{at + 1}", board.story_id, board.method, shown, prompts)
            try:
                yield name, self._score(list(answers.values())), None
            except Unmeasured as unmeasured:
                yield name, None, str(unmeasured)

    def _prompts(
        self, name: Question, pictures: Sequence[bytes], caption: str
    ) -> tuple[list[bytes], dict[str, PlainPrompt]]:
        """Return the pictures of a question with its examples', and the prompt of each draw."""
        shown: list[bytes] = []
        examples: list[PromptExample] = []
        for shot in self._shots:
            mine = [shot.picture] if name in CAPTIONED else [shot.previous, shot.picture]
            kept = [data for data in mine if data is not None]
            if name in shot.scores and len(kept) == len(mine):
                score = shot.scores[name]
                answer = ("Yes" if score >= 0.5 else "No") if self._binary else f"{score:g}"
                examples.append(PromptExample(self._parts(name, len(shown), len(kept), shot.caption), answer))
                shown += kept
        parts = self._parts(name, len(shown), len(pictures), caption)
        words = ("Yes", "yes", "YES", "No", "no", "NO") if self._binary else ()
        temperature = 1.0 if self._samples > 1 else 0.0
        prompts = {
            f"{name}/{draw + 1}": PlainPrompt(
                parts=parts, examples=tuple(examples), words=words, temperature=temperature, max_tokens=16, sample=draw
            )
            for draw in range(self._samples)
        }
        return [*shown, *pictures], prompts

    def _parts(self, name: Question, first: int, count: int, caption: str) -> tuple[str | int, ...]:
        told = load_prompt("metrics/vcms/frame").render(
            previous=count > 1,
            caption=caption if name in CAPTIONED else "",
            question=load_prompt(f"metrics/vcms/{name}").render(binary=self._binary),
        )
        return (*range(first, first + count), told)

    def _score(self, answers: Sequence[Answer]) -> float:
        """Return one question's score.

        Raises:
            Unmeasured: no draw could be read; the reason is the first one's.
        """
        if self._binary:
            yes, no = (share_of(answers[0], (word.title(), word, word.upper())) for word in ("yes", "no"))
            return binary_score(yes, no, self._weight)
        failed = [answer for answer in answers if answer.status != "ok"]
        score = sample_mean(read_score(answer.answer or "") for answer in answers if answer.status == "ok")
        if score is None:
            text_of((failed or answers)[0])
            raise Unmeasured("unparseable: the reply is not one number from 0 to 1")
        return score
