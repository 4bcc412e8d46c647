"""The shots of a film: where the picture changes at once, and the frame in the middle of each shot.

Frames are held side by side, small, in hue, saturation and brightness. A cut is where two neighbours differ much, and
much more than their neighbours do, so a pan is none.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from katha.errors import InputFileError
from katha.jsonio import read_text
from katha.models.checkpoints import need

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image

FILMS = frozenset((".mp4", ".mkv", ".webm", ".mov", ".avi", ".m4v", ".ogv", ".mpg", ".gif"))
# Cuts show in colours and light; more pixels only cost time.
_SIDE = 64
_CUT, _RATIO, _AROUND = 15.0, 3.0, 2
"""Least mean difference (of 255), how many times that of the neighbours it is, and how many neighbours on each side."""
_SHORTEST = 0.4
"""Seconds; a shorter flash belongs to the shot before it."""
# No film is longer than four hours: such a time is a slip of the pen.
_LONGEST = 4 * 3600
_TIME = re.compile(r"(?:(?:(\d+):)?(\d{1,2}):)?(\d+(?:[.,]\d+)?)")


class FilmShot(NamedTuple):
    """A shot: from `start` to `end`, shown by the frame at `at`; seconds."""

    start: float
    end: float
    at: float


class _Seen(NamedTuple):
    second: float
    score: float


def find_shots(film: Path) -> list[FilmShot]:
    """Return the shots of a film, each shown by its middle.

    Raises:
        InputFileError: the film cannot be read, holds no picture, or is longer than four hours.
        MissingExtraError: PyAV is not installed.
    """
    seen = list(_scores(film))
    if not seen:
        raise InputFileError(f"{str(film)!r} holds no picture.", hint="Give a film, or pictures in a folder.")
    step = (seen[-1].second - seen[0].second) / max(1, len(seen) - 1)
    starts = [seen[0].second]
    for at, found in enumerate(seen):
        near = [one.score for one in seen[max(1, at - _AROUND) : at] + seen[at + 1 : at + 1 + _AROUND]]
        usual = sum(near) / len(near) if near else 0.0
        if at and found.score >= _CUT and found.score >= _RATIO * usual and found.second - starts[-1] >= _SHORTEST:
            starts.append(found.second)
    ends = [*starts[1:], seen[-1].second + step]
    return [shot_of(start, end) for start, end in zip(starts, ends, strict=True)]


def shot_of(start: float, end: float) -> FilmShot:
    """Return the shot between two times, shown by its middle."""
    return FilmShot(round(start, 3), round(end, 3), round((start + end) / 2, 3))


def read_shots(path: Path) -> list[FilmShot]:
    """Return the shots that a file lists: a line each, with start and end as seconds or H:MM:SS.mmm; # begins a remark.

    Raises:
        InputFileError: a line is not a shot; it is named.
    """
    found = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        words = line.partition("#")[0].replace(";", " ").replace("\t", " ").split()
        if not words:
            continue
        times = [_seconds(word) for word in words[:2]]
        if len(words) < 2 or None in times or times[0] >= times[1]:  # type: ignore[operator]
            raise InputFileError(
                f"{str(path)!r}, line {number}, is not a shot: {line.strip()[:60]!r}.",
                hint="Write start and end, such as '0:03.2 0:07.5'.",
            )
        found.append(shot_of(*times))  # type: ignore[arg-type]
    if not found:
        raise InputFileError(f"{str(path)!r} lists no shot.", hint="Write start and end of each, a line a shot.")
    return found


def _seconds(word: str) -> float | None:
    match = _TIME.fullmatch(word)
    if match is None:
        return None
    return 3600 * int(match[1] or 0) + 60 * int(match[2] or 0) + float(match[3].replace(",", "."))


def frames_at(film: Path, times: Sequence[float]) -> list[Image]:
    """Return the frames that are shown at the given seconds, in their order.

    Raises:
        InputFileError: the film cannot be read, or ends before one of them.
    """
    wanted = deque(sorted(set(times)))
    found: dict[float, Image] = {}
    last: Any = None
    for second, frame in _decoded(film):
        while wanted and last is not None and second > wanted[0] + 1e-6:
            found[wanted.popleft()] = last.to_image()
        if not wanted:
            break
        last = frame
        end = second
    while wanted and last is not None and wanted[0] <= end + 1.0:
        found[wanted.popleft()] = last.to_image()
    if wanted:
        raise InputFileError(f"{str(film)!r} has no frame at {wanted[0]:g} s.", hint="Correct the time.")
    return [found[time].convert("RGB") for time in times]


def _scores(film: Path) -> Iterator[_Seen]:
    before: NDArray[np.float32] | None = None
    for second, frame in _decoded(film):
        small = frame.to_image(width=_SIDE, height=max(1, round(_SIDE * frame.height / frame.width)))
        now = np.asarray(small.convert("HSV"), dtype=np.float32)
        yield _Seen(second, 0.0 if before is None else _difference(before, now))
        before = now


def _difference(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    """Return the mean difference of hue (a circle, and nothing where there is no colour), saturation and brightness."""
    apart = np.abs(one - other)
    hue = np.minimum(apart[..., 0], 256 - apart[..., 0]) * 2 * np.minimum(one[..., 1], other[..., 1]) / 255
    return float((hue + apart[..., 1] + apart[..., 2]).mean() / 3)


def _decoded(film: Path) -> Iterator[tuple[float, Any]]:
    """Yield the time in seconds, from the film's beginning, and each frame."""
    av = need("av", "Reading a film", "cut")
    try:
        with av.open(str(film), metadata_errors="ignore") as container:
            if not container.streams.video:
                raise InputFileError(f"{str(film)!r} holds no picture.", hint="Give a film.")
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            first: float | None = None
            for number, frame in enumerate(container.decode(stream)):
                rate = float(stream.average_rate or 25)
                second = float(frame.time) if frame.time is not None else number / rate
                first = second if first is None else first
                if second - first > _LONGEST:
                    raise InputFileError(f"{str(film)!r} is longer than 4 hours.", hint="Give a part of it.")
                yield second - first, frame
    except (av.error.FFmpegError, OSError, ValueError) as error:
        if isinstance(error, InputFileError):
            raise
        raise InputFileError(f"{str(film)!r} is not a film that can be read.", hint="Export it as MP4.") from error
