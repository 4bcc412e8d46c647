"""`sketch-reader`: the embedded judge. It looks at pixels, and chooses the option that what it saw supports."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from katha.errors import UsageError
from katha.eval_bridge.packets.instructions import UNCLEAR
from katha.jsonio import sha256_hex
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.schema import Confidence
from katha_sketch.english import read_story
from katha_sketch.reader import FrameReading, Reader, load_reader
from katha_sketch.reader.back import read_back
from katha_sketch.reader.choosing import Choice, choose, reverse_support
from katha_sketch.reader.moments import Frames, Moment, from_scenes, from_story

# Scenes by their number: "Scene 2 of 5: ..." in a text, and "scene 2 of 5" in a question about it or about pictures.
#
# Evaluators that ask scene by scene number the text's scenes (`configs/evaluators.yaml`), for a story itself does
# not.

_LINE = re.compile(r"Scene \d+ of \d+: (\S.*)")
_ASKED = re.compile(r"\bscene (\d+) of (\d+)\b", re.IGNORECASE)


def numbered_scenes(text: str) -> list[str] | None:
    """Return the scenes of a text of nothing but numbered scenes, a line each, closed by a stop; else None."""
    lines = [_LINE.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    scenes = [line[1] for line in lines if line is not None]
    if not scenes or len(scenes) < len(lines):
        return None
    return [scene if scene[-1] in ".!?\"'”’" else f"{scene}." for scene in scenes]


def at_scene(question: str, moments: Sequence[Moment]) -> list[Moment]:
    """Return the moments of the scene that `question` names; all where it names none, or where their numbers count
    something else (a board with more pictures than scenes)."""
    asked = _ASKED.search(question)
    if asked is None or {moment.scenes for moment in moments} != {int(asked[2])}:
        return list(moments)
    return [moment for moment in moments if moment.scene == int(asked[1])]


# Readings that are shared: a picture is read once, whoever asks.
#
# The judge and the compass look at the same frames. Both give the picture as `clean_image` encodes it, one encoding
# for equal pixels, so that the hash of its bytes stands for its pixels.

_KEPT = 1024
"""Readings kept, the longest unused is forgotten first (a few kilobytes each)."""


class Readings:
    """What `reader` reads, remembered by the hash of a picture's bytes. Safe between threads."""

    def __init__(self, reader: Reader) -> None:
        self._reader, self.concepts = reader, reader.concepts
        self._lock = threading.Lock()
        self._known: OrderedDict[str, FrameReading] = OrderedDict()

    def spec(self) -> Mapping[str, Any]:
        """Return the reader's own specification; remembering changes no reading."""
        return self._reader.spec()

    def read_many(self, pictures: Sequence[bytes]) -> list[FrameReading]:
        """Return what is in each picture, in order; the new ones are read together.

        Raises:
            InputFileError: the bytes are no picture.
        """
        names = [sha256_hex(picture) for picture in pictures]
        with self._lock:
            found = {name: self._known[name] for name in names if name in self._known}
        new = {name: picture for name, picture in zip(names, pictures, strict=True) if name not in found}
        found.update(zip(new, self._reader.read_many(new.values()), strict=True))
        with self._lock:
            for name in names:
                self._known[name] = found[name]
                self._known.move_to_end(name)
            while len(self._known) > _KEPT:
                self._known.popitem(last=False)
        return [found[name] for name in names]


@cache
def shared_readings() -> Readings:
    """Return the shipped reader's readings, shared by the process."""
    return Readings(load_reader())


_NO_SKETCH = "Not a sketch: frame {}. sketch-reader reads sketches only; other pictures need another --judge."
_VERSION = "8"
_SUPPORTED = 0.16
_CONTRADICTED = (0.65, 0.3)


class SketchReaderJudge(Judge):
    """Reads sketches by their pixels and chooses among fixed answers; refuses other pictures.

    With images it sees nothing but their pixels, the question and its options. A story's text is read with the same
    vocabulary and answered by the same rules.
    """

    always_chooses = True
    ignores_instructions = True
    caveat = "sketch-reader reads the clip art of its own house; of other pictures it knows no more than chance."

    def __init__(self, argument: str | None = None, *, reader: Reader | None = None) -> None:
        if argument is not None:
            raise UsageError(f"sketch-reader takes no argument, not {argument!r}.")
        self._readings = shared_readings() if reader is None else Readings(reader)
        self._told: dict[str, list[Moment]] = {}
        self._frames = Frames()

    def spec(self) -> Mapping[str, Any]:
        """Return the version of the rules and of the recogniser."""
        return {"name": "sketch-reader", "version": _VERSION, "reader": dict(self._readings.spec())}

    def read_back(self, images: Sequence[bytes], meant: Sequence[str]) -> list[bool] | None:
        """Return of each picture whether it shows what it was drawn from; None where one of them is no sketch."""
        shown = self._readings.read_many(images)
        limit = self._readings.concepts.sketch_threshold
        if any(reading.is_sketch < limit for reading in shown):
            return None
        return read_back(meant, self._frames.moments(shown))

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        """Yield one reply per prompt, each answered on its own; every picture is looked at once."""
        shown = self._readings.read_many(evidence.images)
        limit = self._readings.concepts.sketch_threshold
        strange = ", ".join(str(place) for place, reading in enumerate(shown, 1) if reading.is_sketch < limit)
        images = self._frames.moments(shown)
        if evidence.text is not None and evidence.text not in self._told:
            scenes = numbered_scenes(evidence.text)
            heard = from_story(read_story(evidence.text)) if scenes is None else from_scenes(scenes)
            self._told = {evidence.text: heard}
        told = self._told[evidence.text] if evidence.text is not None else []
        for prompt in prompts:
            if prompt.options is None:
                yield JudgeReply("refused", error="sketch-reader chooses among options; ask with answer options.")
            elif evidence.condition == "none":  # options have a seeded order, so the first is a guess
                yield JudgeReply("ok", prompt.options[0], confidence="low", raw="no evidence")
            elif strange:
                yield JudgeReply("refused", error=_NO_SKETCH.format(strange))
            elif evidence.condition == "text+image":
                yield _both(prompt, prompt.options, told, images)
            else:
                moments = at_scene(prompt.question, told if evidence.condition == "text" else images)
                yield _reply(choose(prompt.question, prompt.dimension, prompt.options, moments))


def _reply(choice: Choice, image_support: str | None = None) -> JudgeReply:
    sure: Confidence = "high" if choice.best >= 0.6 else "medium" if choice.best >= 0.3 else "low"
    raw = "support " + " ".join(f"{score:.3f}" for score in choice.scores)
    confidence: Confidence = "low" if choice.answer == UNCLEAR else sure
    return JudgeReply("ok", choice.answer, image_support=image_support, confidence=confidence, raw=raw)


def _both(prompt: JudgePrompt, options: Sequence[str], told: Sequence[Moment], images: Sequence[Moment]) -> JudgeReply:
    """Let the story tell the answer; the images support it, omit it or show its events the other way round."""
    told, images = at_scene(prompt.question, told), at_scene(prompt.question, images)
    by_text = choose(prompt.question, prompt.dimension, options, told)
    by_image = choose(prompt.question, prompt.dimension, options, images)
    choice = by_text if by_text.answer != UNCLEAR else by_image
    if choice.answer == UNCLEAR:
        status = "ambiguous"
    else:
        status = _image_support(prompt, choice.answer, by_image.scores[list(options).index(choice.answer)], images)
    return _reply(choice, status)


def _image_support(prompt: JudgePrompt, answer: str, score: float, images: Sequence[Moment]) -> str:
    if prompt.dimension == "temporal_order":
        forward, backward = reverse_support(answer, images)
        if backward >= _CONTRADICTED[0] and forward <= _CONTRADICTED[1]:
            return "contradicted"
    return "supported" if score >= _SUPPORTED else "omitted"
