"""Sounds of a board: one for the whole, and some for single frames, each from the moment that its frame begins."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from katha.app.exports.board import ExportBoard
from katha.errors import InputFileError

RATE = 48_000
"""Samples a second of a film's sound."""
SUFFIXES = (".wav", ".mp3", ".m4a", ".aac", ".ogg", ".opus", ".flac", ".aif", ".aiff")
_BLOCK = 1024
_WHOLE = "board"
_NUMBERED = re.compile(r"(\d{1,4})(?!\d)")


@dataclass(frozen=True)
class Sound:
    """One sound of a board. frame: its number, 0 for the whole. start: when it begins, in seconds; length: how long it
    lasts, at most until the board ends."""

    path: Path
    frame: int
    start: float
    length: float


def sounds_of(sheet: ExportBoard, audio: Path | None) -> list[Sound]:
    """Return the sounds that a file or a folder holds, in order; one that is cut short is a remark.

    Raises:
        InputFileError: there is no such file, one cannot be read, or is of a frame that the board has not.
    """
    if audio is None:
        return []
    starts = [0.0, *accumulate(shot.seconds for shot in sheet.shots)]
    found: list[Sound] = []
    for path, frame in _named(sheet, audio):
        lasts, begins = _length(path), starts[max(0, frame - 1)]
        left = sheet.seconds - begins
        if lasts > left + 0.05:
            sheet.remarks.append(f"The sound {path.name!r} lasts {lasts:.1f} s and is cut after {left:.1f} s.")
        found.append(Sound(path, frame, begins, min(lasts, left)))
    return found


def _named(sheet: ExportBoard, audio: Path) -> list[tuple[Path, int]]:
    """Return the sound files with the numbers of their frames, 0 for the whole board."""
    if not audio.is_dir():
        return [(audio, 0)]
    found: list[tuple[Path, int]] = []
    for path in sorted(item for item in audio.iterdir() if item.is_file() and not item.name.startswith(".")):
        number = _NUMBERED.match(path.stem)
        if path.suffix.lower() not in SUFFIXES or (number is None and path.stem.lower() != _WHOLE):
            sheet.remarks.append(f"{path.name!r} is not sound of a frame and was left out: 03.wav is, {_WHOLE}.mp3 is.")
            continue
        frame = int(number[1]) if number is not None else 0
        if number is not None and not 1 <= frame <= len(sheet.shots):
            raise InputFileError(
                f"The sound {str(path)!r} is of frame {frame}; the board has frames 1 to {len(sheet.shots)}.",
                hint=f"Name it by its frame: 03.wav; the whole board's is {_WHOLE}.mp3.",
            )
        found.append((path, frame))
    if not found:
        raise InputFileError(
            f"The folder {str(audio)!r} holds no sound of a frame.", hint="Name it by its frame: 03.wav."
        )
    return sorted(found, key=lambda item: (item[1], item[0].name))


def _unreadable(path: Path, error: Exception) -> InputFileError:
    return InputFileError(f"The sound file {str(path)!r} cannot be read: {error}.")


def _length(path: Path) -> float:
    """Return how long a sound lasts, in seconds."""
    import av

    try:
        with av.open(str(path)) as source:
            told = source.duration
            if told is not None and source.streams.audio:
                return float(told) / av.time_base
            return sum(frame.samples / frame.sample_rate for frame in source.decode(audio=0))
    except (av.FFmpegError, OSError, IndexError) as error:
        raise _unreadable(path, error) from error


def mixed(sounds: Sequence[Sound], seconds: float) -> Iterator[Any]:
    """Yield the sounds of a board together, as frames of stereo that an encoder takes, up to `seconds`."""
    import av

    total = round(seconds * RATE)
    voices = [_Voice(sound) for sound in sounds]
    for at in range(0, total, _BLOCK):
        count = min(_BLOCK, total - at)
        block = np.zeros((2, count), np.float32)
        for voice in voices:
            voice.add(block, at)
        frame = av.AudioFrame.from_ndarray(np.clip(block, -1.0, 1.0), format="fltp", layout="stereo")
        frame.rate, frame.pts, frame.time_base = RATE, at, Fraction(1, RATE)
        yield frame


class _Voice:
    """One sound as it is heard: its samples when they are due."""

    def __init__(self, sound: Sound) -> None:
        self._start = round(sound.start * RATE)
        self._samples = _decoded(sound.path)
        self._left = np.zeros((2, 0), np.float32)

    def add(self, block: np.ndarray[Any, Any], at: int) -> None:
        """Add to a block that begins at a sample what is heard then."""
        count = block.shape[1]
        into = max(0, self._start - at)
        if into >= count:
            return
        while self._left.shape[1] < count - into and (more := next(self._samples, None)) is not None:
            self._left = np.concatenate((self._left, more), axis=1)
        taken = self._left[:, : count - into]
        block[:, into : into + taken.shape[1]] += taken
        self._left = self._left[:, taken.shape[1] :]


def _decoded(path: Path) -> Iterator[np.ndarray[Any, Any]]:
    """Yield a sound file's samples in stereo."""
    import av

    try:
        with av.open(str(path)) as source:
            resampler = av.AudioResampler(format="fltp", layout="stereo", rate=RATE)
            for frame in source.decode(audio=0):
                for piece in resampler.resample(frame):
                    yield piece.to_ndarray()
    except (av.FFmpegError, OSError, IndexError) as error:
        raise _unreadable(path, error) from error
