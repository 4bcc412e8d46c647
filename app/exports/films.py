"""Animatics: each frame for its time, the camera and drawings in motion, with captions and cross-fades; GIF or MP4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from katha.app.exports.board import ExportBoard, ExportFrame, ExportOptions, tell_hurried
from katha.app.exports.camera import HELD, move_of, tell_moves
from katha.app.exports.fonts import Fonts
from katha.app.exports.motion import InMotion, Moving, Still
from katha.app.exports.pictures import with_words
from katha.app.exports.sizes import drawings_of, film_size, fitted
from katha.app.exports.sounds import RATE, mixed, sounds_of
from katha.app.exports.vectors import unframed

if TYPE_CHECKING:
    from PIL.Image import Image

_GIF_SIDE = 640
_GIF_STEPS = 4
_GIF_RATE = 6
"""Pictures a second of what moves."""
_BAR = 0.14


@dataclass(frozen=True)
class _Take:
    """A shot as it is filmed: its picture with its words, as they are shown one after another, and what moves in it, at
    its place."""

    stills: Sequence[tuple[float, Image]]
    seconds: float
    moving: InMotion | None = None
    place: tuple[int, int] = (0, 0)

    def at(self, second: float) -> Image:
        """Return the picture at a time of the shot."""
        still = next(shown for begins, shown in reversed(self.stills) if begins * self.seconds <= second or not begins)
        if self.moving is None:
            return still
        shown = still.copy()
        shown.paste(self.moving.at(second, self.seconds), self.place)
        return shown


@dataclass(frozen=True)
class _Set:
    """What every shot of a film has: how large its picture and the bar of words below it are, the letters, and the
    drawings by the frames' numbers. dark: what is bare is black."""

    width: int
    height: int
    bar: int
    fonts: Fonts
    drawings: Mapping[int, str]
    still: bool
    dark: bool = False

    def takes(self, sheet: ExportBoard) -> Iterator[_Take]:
        """Yield every shot with its caption."""
        before: frozenset[str] = frozenset()
        for shot in sheet.shots:
            drawing = self.drawings.get(shot.number)
            shown = fitted(shot, (self.width, self.height), drawing)
            stills = with_words(shot, shown, (self.width, self.height), self.bar, self.fonts, dark=self.dark)
            moving = None if self.still else self._moving(shot, shown, before)
            before = moving.ids if isinstance(moving, Moving) else frozenset()
            place = ((self.width - shown.width) // 2, (self.height - shown.height) // 2)
            yield _Take(stills, shot.seconds, moving if moving is not None and moving.moves else None, place)
            sheet.on_frame(shot.number, len(sheet.shots))

    def _moving(self, shot: ExportFrame, shown: Image, before: frozenset[str]) -> InMotion | None:
        """Return a shot in motion; None where nothing moves. shown: its picture as large as the film has it."""
        move = move_of(shot.camera_move)
        if shot.source is not None:
            svg = shot.source.read_text(encoding="utf-8")
            return Moving(svg, shown.size, shot.asked.must_show, before=before, move=move)
        if move is None or move == HELD:
            return None
        large = round(shown.width * move.closest), round(shown.height * move.closest)
        return Still(fitted(shot, large, unframed(self.drawings.get(shot.number))), shown.size, move)


def _set(sheet: ExportBoard, options: ExportOptions, side: int | None = None) -> _Set:
    """Return how the shots of a film are set: into pictures of a film's size, words and all, where drawings or the
    options say it; else their own with a bar below; `side`: the most pixels that a side of these has."""
    fonts = Fonts(options.font)
    if not options.plain:
        fonts.checked(sheet)
    share = 0.0 if options.plain else _BAR
    drawings = drawings_of(sheet) if side is None else {}
    if side is not None and options.size is None:
        scale = min(1.0, side / max(sheet.width, sheet.height))
        width, height = (max(2, round(length * scale) // 2 * 2) for length in (sheet.width, sheet.height))
        return _Set(width, height, round(height * share) // 2 * 2, fonts, drawings, options.still)
    width, height = film_size(sheet, options, drawings)
    if options.size is None and not drawings:
        return _Set(width, height, round(height * share) // 2 * 2, fonts, drawings, options.still)
    bar = round(height * share / (1 + share)) // 2 * 2
    return _Set(width, height - bar, bar, fonts, drawings, options.still, dark=side is None)


def _between(one: Image, other: Image, share: float, bar: int) -> Image:
    """Return a picture of the cross-fade from `one` to `other`.

    Words that stand over one another cannot be read: the `bar` of pixels below has those of the nearer frame.
    """
    from PIL import Image

    faded = Image.blend(one, other, share)
    words = (0, one.height - bar, one.width, one.height)
    faded.paste((one if share < 0.5 else other).crop(words), words[:2])
    return faded


def _with_next(takes: Iterable[_Take]) -> Iterator[tuple[_Take, _Take | None]]:
    """Yield each shot with the one after it; no more than two are held at a time."""
    before: _Take | None = None
    for take in takes:
        if before is not None:
            yield before, take
        before = take
    if before is not None:
        yield before, None


def write_gif(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write an endless GIF with a short fade between frames."""
    setting = _set(sheet, options, _GIF_SIDE)
    tell_moves(sheet, options)
    if not options.plain:
        tell_hurried(sheet)
    shown: list[Image] = []
    times: list[int] = []
    for take, following in _with_next(setting.takes(sheet)):
        fade = 0.0 if following is None else min(options.fade, take.seconds / 2)
        steps = max(1, round((take.seconds - fade) * _GIF_RATE)) if take.moving is not None else 1
        moments = [step * (take.seconds - fade) / steps for step in range(steps)]
        if take.moving is None:
            starts, last = [begins * take.seconds for begins, _ in take.stills], take.seconds - fade - 1 / _GIF_RATE
            moments = [0.0, *(start for start in starts[1:] if start < last)]
        shown += [take.at(moment) for moment in moments]
        times += [round(1000 * (end - begin)) for begin, end in pairwise((*moments, take.seconds - fade))]
        after = following.at(0.0) if following is not None else take.at(take.seconds)
        for step in range(1, _GIF_STEPS) if fade else ():
            share = step / _GIF_STEPS
            shown.append(_between(take.at(take.seconds - fade * (1 - share)), after, share, setting.bar))
            times.append(round(1000 * fade / (_GIF_STEPS - 1)))
    shown[0].save(target, save_all=True, append_images=shown[1:], duration=times, loop=0, optimize=False)


def _film(takes: Iterable[_Take], bar: int, options: ExportOptions) -> Iterator[Image]:
    """Yield the pictures of a film one by one: each shot has its own time, the last part of it the cross-fade."""
    for take, following in _with_next(takes):
        count = max(1, round(take.seconds * float(options.fps)))
        fading = 0 if following is None else min(round(options.fade * float(options.fps)), count // 2)
        after = following.at(0.0) if following is not None else take.at(take.seconds)
        for number in range(count):
            into = number - (count - fading) + 1
            shown = take.at(float(number / options.fps))
            yield shown if into <= 0 else _between(shown, after, into / (fading + 1), bar)


def write_mp4(sheet: ExportBoard, target: Path, options: ExportOptions) -> None:
    """Write an H.264 film; with `audio`, the sounds are laid under it and cut at its end.

    Raises:
        InputFileError: a sound file cannot be read.
    """
    import av

    setting, sounds = _set(sheet, options), sounds_of(sheet, options.audio)
    tell_moves(sheet, options)
    if not options.plain:
        tell_hurried(sheet)
    with av.open(str(target), "w", options={"movflags": "+faststart"}) as film:
        film.metadata["title"] = sheet.title
        stream = film.add_stream("libx264", rate=options.fps)
        stream.width, stream.height, stream.pix_fmt = setting.width, setting.height + setting.bar, "yuv420p"
        # With its vector code, x264's macroblock trees differ from run to run, even with one thread.
        stream.options = {"crf": "18", "preset": "medium", "x264-params": "mbtree=0"}
        stream.thread_count = 1
        sound = film.add_stream("aac", rate=RATE) if sounds else None
        for picture in _film(setting.takes(sheet), setting.bar, options):
            film.mux(stream.encode(av.VideoFrame.from_image(picture)))  # type: ignore[no-untyped-call]
        film.mux(stream.encode())
        if sound is not None:
            for frame in mixed(sounds, sheet.seconds):
                film.mux(sound.encode(frame))
            film.mux(sound.encode())
