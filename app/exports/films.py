"""Animatics: each frame for its time, with captions and cross-fades; GIF, or MP4 with a sound file under it."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.app.exports.board import ExportOptions, Sheet
from katha.app.exports.fonts import Fonts
from katha.app.exports.pictures import with_words
from katha.errors import InputFileError

if TYPE_CHECKING:
    from PIL.Image import Image

_GIF_SIDE, _MP4_SIDE = 640, 1280
_GIF_STEPS = 4
_BAR = 0.14


def _frames(sheet: Sheet, side: int, options: ExportOptions) -> tuple[list[Image], int]:
    """Return every frame with its caption, even in width and height, no longer than `side` pixels; and how many pixels
    of its height the caption has."""
    scale = min(1.0, side / max(sheet.width, sheet.height))
    width, height = (max(2, round(length * scale) // 2 * 2) for length in (sheet.width, sheet.height))
    bar = 0 if options.plain else round(height * _BAR) // 2 * 2
    fonts = Fonts(options.font)
    if not options.plain:
        fonts.checked(sheet)
    return [with_words(shot, width, height, bar, fonts) for shot in sheet.shots], bar


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
    frames, bar = _frames(sheet, _GIF_SIDE, options)
    shown: list[Image] = []
    times: list[int] = []
    for at, (shot, picture) in enumerate(zip(sheet.shots, frames, strict=True)):
        last = at + 1 == len(frames)
        fade = 0.0 if last else min(options.fade, shot.seconds / 2)
        shown.append(picture)
        times.append(round(1000 * (shot.seconds - fade)))
        for step in range(1, _GIF_STEPS) if fade else ():
            shown.append(_between(picture, frames[at + 1], step / _GIF_STEPS, bar))
            times.append(round(1000 * fade / (_GIF_STEPS - 1)))
    shown[0].save(target, save_all=True, append_images=shown[1:], duration=times, loop=0, optimize=False)


def _film(sheet: Sheet, frames: list[Image], bar: int, options: ExportOptions) -> Iterator[Image]:
    """Yield the pictures of a film one by one: each shot has its own time, the last part of it the cross-fade."""
    for at, shot in enumerate(sheet.shots):
        count = max(1, round(shot.seconds * options.fps))
        fading = 0 if at + 1 == len(frames) else min(round(options.fade * options.fps), count // 2)
        for number in range(count):
            into = number - (count - fading) + 1
            yield frames[at] if into <= 0 else _between(frames[at], frames[at + 1], into / (fading + 1), bar)


def write_mp4(sheet: Sheet, target: Path, options: ExportOptions) -> None:
    """Write an H.264 film; with `audio`, the sound is laid under it and cut at its end.

    Raises:
        InputFileError: the sound file cannot be read.
    """
    import av

    frames, bar = _frames(sheet, _MP4_SIDE, options)
    with av.open(str(target), "w", options={"movflags": "+faststart"}) as film:
        film.metadata["title"] = sheet.title
        stream = film.add_stream("libx264", rate=options.fps)
        stream.width, stream.height, stream.pix_fmt = frames[0].width, frames[0].height, "yuv420p"
        # With its vector code, x264's macroblock trees differ from run to run, even with one thread.
        stream.options = {"crf": "18", "preset": "medium", "x264-params": "mbtree=0"}
        stream.thread_count = 1
        sound = film.add_stream("aac", rate=48_000) if options.audio is not None else None
        for picture in _film(sheet, frames, bar, options):
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
