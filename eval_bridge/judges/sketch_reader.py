"""`sketch-reader`: the embedded judge. It looks at pixels, and chooses the option that what it saw supports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from katha.errors import UsageError
from katha.eval_bridge.instructions import UNCLEAR
from katha.eval_bridge.judges.chooser import Choice, choose, reverse_support
from katha.eval_bridge.judges.moments import Moment, from_frames, from_scenes, from_story
from katha.eval_bridge.judges.scenes import at_scene, numbered_scenes
from katha.eval_bridge.reader import FrameReading, Reader
from katha.eval_bridge.readings import Readings, shared_readings
from katha.language import read_story
from katha.protocols import Evidence, JudgePrompt, JudgeReply
from katha.schema import Confidence

__all__ = ["SketchReaderJudge"]

_VERSION = "2"
_SUPPORTED = 0.16
_CONTRADICTED = (0.65, 0.3)


class SketchReaderJudge:
    """Reads sketches by their pixels and chooses among fixed answers; refuses other pictures.

    With images it sees nothing but their pixels, the question and its options. A story's text is read with the same
    vocabulary and answered by the same rules.
    """

    always_chooses = True

    def __init__(self, argument: str | None = None, *, reader: Reader | None = None) -> None:
        if argument is not None:
            raise UsageError(f"sketch-reader takes no argument, not {argument!r}.")
        self._readings = shared_readings() if reader is None else Readings(reader)
        self._told: dict[str, list[Moment]] = {}

    def spec(self) -> Mapping[str, Any]:
        """Version of the rules and of the recogniser."""
        return {"name": "sketch-reader", "version": _VERSION, "reader": dict(self._readings.spec())}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, each answered on its own; every picture is looked at once."""
        shown = self._readings.read_many(evidence.images)
        refusal = _refusal(shown, self._readings.concepts.sketch_threshold)
        images = from_frames(shown)
        told = self._listen(evidence.text) if evidence.text is not None else []
        for prompt in prompts:
            if prompt.options is None:
                yield JudgeReply("refused", error="sketch-reader chooses among options; ask with answer options.")
            elif refusal is not None:
                yield JudgeReply("refused", error=refusal)
            elif evidence.condition == "text+image":
                yield _both(prompt, prompt.options, told, images)
            else:
                yield _one(prompt, prompt.options, told if evidence.condition == "text" else images)

    def _listen(self, text: str) -> list[Moment]:
        if text not in self._told:
            scenes = numbered_scenes(text)
            self._told = {text: from_story(read_story(text)) if scenes is None else from_scenes(scenes)}
        return self._told[text]


def _refusal(shown: Sequence[FrameReading], limit: float) -> str | None:
    strange = [str(place) for place, reading in enumerate(shown, 1) if reading.is_sketch < limit]
    if not strange:
        return None
    frames = ", ".join(strange)
    return f"Not a sketch: frame {frames}. sketch-reader reads sketches only; other pictures need another --judge."


def _confidence(choice: Choice) -> Confidence:
    if choice.answer == UNCLEAR:
        return "low"
    return "high" if choice.best >= 0.6 else "medium" if choice.best >= 0.3 else "low"


def _raw(choice: Choice) -> str:
    return "support " + " ".join(f"{score:.3f}" for score in choice.scores)


def _one(prompt: JudgePrompt, options: Sequence[str], moments: Sequence[Moment]) -> JudgeReply:
    choice = choose(prompt.question, prompt.dimension, options, at_scene(prompt.question, moments))
    return JudgeReply("ok", choice.answer, confidence=_confidence(choice), raw=_raw(choice))


def _both(prompt: JudgePrompt, options: Sequence[str], told: Sequence[Moment], images: Sequence[Moment]) -> JudgeReply:
    """The story tells the answer; the images support it, omit it or show its events the other way round."""
    told, images = at_scene(prompt.question, told), at_scene(prompt.question, images)
    by_text = choose(prompt.question, prompt.dimension, options, told)
    by_image = choose(prompt.question, prompt.dimension, options, images)
    choice = by_text if by_text.answer != UNCLEAR else by_image
    if choice.answer == UNCLEAR:
        status = "ambiguous"
    else:
        status = _image_support(prompt, choice.answer, by_image.scores[list(options).index(choice.answer)], images)
    return JudgeReply("ok", choice.answer, image_support=status, confidence=_confidence(choice), raw=_raw(choice))


def _image_support(prompt: JudgePrompt, answer: str, score: float, images: Sequence[Moment]) -> str:
    if prompt.dimension == "temporal_order":
        forward, backward = reverse_support(answer, images)
        if backward >= _CONTRADICTED[0] and forward <= _CONTRADICTED[1]:
            return "contradicted"
    return "supported" if score >= _SUPPORTED else "omitted"
