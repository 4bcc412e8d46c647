"""Animatics: each frame for its time, drawings in motion, with captions and cross-fades; GIF, or MP4 with sound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.app.exports.board import ExportOptions, Sheet
from katha.app.exports.fonts import Fonts
from katha.app.exports.motion import Moving
from katha.app.exports.pictures import with_words
from katha.app.reports.page import open_picture
from katha.errors import InputFileError

if TYPE_CHECKING:
    from PIL.Image import Image

_GIF_SIDE, _MP4_SIDE = 640, 1280
_GIF_STEPS = 4
_GIF_RATE = 6
"""Pictures a second of what moves."""
_BAR = 0.14


@dataclass(frozen=True)
class _Take:
    """A shot as it is filmed: its picture with its words, and what moves in it, at its place."""

    still: Image
    seconds: float
    moving: Moving | None = None
    place: tuple[int, int] = (0, 0)

    def at(self, second: float) -> Image:
        """Return the picture at a time of the shot."""
        if self.moving is None:
            return self.still
        shown = self.still.copy()
        shown.paste(self.moving.at(second, self.seconds), self.place)
        return shown


def _takes(sheet: Sheet, side: int, options: ExportOptions) -> tuple[list[_Take], int]:
    """Return every shot with its caption, even in width and height, no longer than `side` pixels.

    Also returns how many pixels of its height the caption has.
    """
    from PIL import ImageOps

    scale = min(1.0, side / max(sheet.width, sheet.height))
    width, height = (max(2, round(length * scale) // 2 * 2) for length in (sheet.width, sheet.height))
    bar = 0 if options.plain else round(height * _BAR) // 2 * 2
    fonts = Fonts(options.font)
    if not options.plain:
        fonts.checked(sheet)
    takes: list[_Take] = []
    before: frozenset[str] = frozenset()
    for shot in sheet.shots:
        still = with_words(shot, width, height, bar, fonts)
        svg = shot.source.read_text(encoding="utf-8") if shot.source is not None and not options.still else None
        if svg is None:
            takes.append(_Take(still, shot.seconds))
            before = frozenset()
            continue
        size = ImageOps.contain(open_picture(shot.picture), (width, height)).size
        moving = Moving(svg, size, shot.asked.must_show, before, "wide" in shot.asked.shot_size)
        takes.append(_Take(still, shot.seconds, moving, ((width - size[0]) // 2, (height - size[1]) // 2)))
        before = moving.ids
    return takes, bar


def _between(one: Image, other: Image, share: float, bar: int) -> Image:
    """Return a picture of the cross-fade from `one` to `other`.

    Words that stand over one another cannot be read: the `bar` of pixels below has those of the nearer frame.
    """
    from PIL import Image

    faded = Image.blend(one, other, share)
    words = (0, one.height - bar, one.width, one.height)
    faded.paste((one if share < 0.5 else other).crop(words), words[:2])
    return faded


def write_gif(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write an endless GIF with a short fade between frames."""
    takes, bar = _takes(sheet, _GIF_SIDE, options)
    shown: list[Image] = []
    times: list[int] = []
    for at, take in enumerate(takes):
        last = at + 1 == len(takes)
        fade = 0.0 if last else min(options.fade, take.seconds / 2)
        steps = max(1, round((take.seconds - fade) * _GIF_RATE)) if take.moving is not None else 1
        shown += [take.at(step * (take.seconds - fade) / steps) for step in range(steps)]
        times += [round(1000 * (take.seconds - fade) / steps)] * steps
        after = takes[at + 1].at(0.0) if fade else take.still
        for step in range(1, _GIF_STEPS) if fade else ():
            share = step / _GIF_STEPS
            shown.append(_between(take.at(take.seconds - fade * (1 - share)), after, share, bar))
            times.append(round(1000 * fade / (_GIF_STEPS - 1)))
    shown[0].save(target, save_all=True, append_images=shown[1:], duration=times, loop=0, optimize=False)


def _film(takes: list[_Take], bar: int, options: ExportOptions) -> Iterator[Image]:
    """Yield the pictures of a film one by one: each shot has its own time, the last part of it the cross-fade."""
    for at, take in enumerate(takes):
        count = max(1, round(take.seconds * options.fps))
        fading = 0 if at + 1 == len(takes) else min(round(options.fade * options.fps), count // 2)
        after = takes[at + 1].at(0.0) if fading else take.still
        for number in range(count):
            into = number - (count - fading) + 1
            shown = take.at(number / options.fps)
            yield shown if into <= 0 else _between(shown, after, into / (fading + 1), bar)


def write_mp4(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write an H.264 film; with `audio`, the sound is laid under it and cut at its end.

    Raises:
        InputFileError: the sound file cannot be read.
    """
    import av

    takes, bar = _takes(sheet, _MP4_SIDE, options)
    with av.open(str(target), "w", options={"movflags": "+faststart"}) as film:
        film.metadata["title"] = sheet.title
        stream = film.add_stream("libx264", rate=options.fps)
        stream.width, stream.height, stream.pix_fmt = takes[0].still.width, takes[0].still.height, "yuv420p"
        # With its vector code, x264's macroblock trees differ from run to run, even with one thread.
        stream.options = {"crf": "18", "preset": "medium", "x264-params": "mbtree=0"}
        stream.thread_count = 1
        sound = film.add_stream("aac", rate=48_000) if options.audio is not None else None
        for picture in _film(takes, bar, options):
            film.mux(stream.encode(av.VideoFrame.from_image(picture)))  # type: ignore[no-untyped-call]
        film.mux(stream.encode())
        if sound is not None and options.audio is not None:
            for packet in _sound(options.audio, sound, sheet.seconds):
                film.mux(packet)


def _sound(path: Path, stream: Any, seconds: float) -> Iterator[Any]:
    """Yield a sound file's packets, re-encoded, up to `seconds`."""
    import av

    try:
        with av.open(str(path)) as source:
            resampler = av.AudioResampler(format="fltp", layout="stereo", rate=stream.rate)
            done = 0
            for frame in source.decode(audio=0):
                for piece in resampler.resample(frame):
                    if done >= seconds * stream.rate:
                        break
                    piece.pts, piece.time_base = done, Fraction(1, stream.rate)
                    done += piece.samples
                    yield from stream.encode(piece)
            yield from stream.encode()
    except (av.FFmpegError, OSError, IndexError) as error:
        raise InputFileError(f"The sound file {str(path)!r} cannot be read: {error}.") from error
