"""Wonder Unit Storyboarder's projects: a file of boards with their words, and `images/` beside it with their layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

from katha.errors import InputFileError
from katha.jsonio import MOST_JSON, read_json
from katha.pictures import as_png, decode, read_picture
from katha.protocols import PanelWords
from katha.renderers.exported import told_words

if TYPE_CHECKING:
    from PIL.Image import Image

SUFFIX = ".storyboarder"
KATHA = "katha"
"""The key of a board under which katha's export keeps all that is said of its frame."""
_BELOW, _ABOVE = ("shot-generator", "reference"), ("fill", "tone", "pencil", "ink", "notes")
_MOST_BOARDS, _LONGEST_WORDS, _LONGEST_TIME = 5_000, 20_000, 3_600_000
_LONGEST_NAME = 255
_HINT = "Give the .storyboarder file of a project, with its folder images/ beside it."


@dataclass(frozen=True)
class Layer:
    """One picture of a board, and how much of it is seen (0 to 1)."""

    path: Path
    opacity: float = 1.0


@dataclass(frozen=True)
class _Board:
    layers: tuple[Layer, ...]
    words: PanelWords


class Project:
    """The boards of one project, each a frame: its layers from the lowest up, on white."""

    single = True

    def __init__(self, path: Path) -> None:
        """Read the project's file, and see that every board has its pictures.

        Raises:
            InputFileError: it is not a project, a picture is missing, or a name leads out of the project's `images/`.
        """
        self.place = path
        value = read_json(path, limit=MOST_JSON)
        boards = value.get("boards") if isinstance(value, dict) else None
        if not isinstance(boards, list) or not boards or not all(isinstance(item, dict) for item in boards):
            raise InputFileError(
                f"{str(path)!r} is not a project of Storyboarder: it has no list of boards.", hint=_HINT
            )
        if len(boards) > _MOST_BOARDS:
            raise InputFileError(f"{str(path)!r} has {len(boards):,} boards; at most {_MOST_BOARDS:,} are read.")
        usual = value.get("defaultBoardTiming")
        self._boards = [self._board(item, f"{str(path)!r}, board {at}", usual) for at, item in enumerate(boards, 1)]

    def __len__(self) -> int:
        return len(self._boards)

    @property
    def words(self) -> tuple[PanelWords, ...]:
        """Return what is written beside each board."""
        return tuple(board.words for board in self._boards)

    @property
    def files(self) -> list[Path]:
        """The project's file and every picture that it names."""
        return [self.place, *dict.fromkeys(layer.path for board in self._boards for layer in board.layers)]

    def pngs(self, places: Sequence[int], story: str) -> Iterator[bytes]:
        """Yield the boards at `places` (from 0) as PNG; `story` is named in errors."""
        for place in places:
            yield as_png(_flat(self._boards[place].layers, f"Board {place + 1} of {story}"))

    def _board(self, told: Mapping[str, Any], where: str, usual: object) -> _Board:
        layers = told.get("layers")
        named = layers if isinstance(layers, dict) else {}
        below = [layer for name in _BELOW if (layer := self._layer(named.get(name), where))]
        above = [layer for name in _ABOVE if (layer := self._layer(named.get(name), where))]
        own = self._own(told.get("url"), where, optional=bool(below or above))
        layers_up = (*below, *own, *above)
        texts = {name: _text(told.get(name), where, name) for name in ("dialogue", "action", "notes")}
        words = PanelWords(**texts, duration=_seconds(told.get("duration")) or _seconds(usual))
        kept = told.get(KATHA)
        return _Board(layers_up, _restored(words, kept, where) if isinstance(kept, dict) else words)

    def _layer(self, told: object, where: str) -> Layer | None:
        if not isinstance(told, dict) or not told.get("url"):
            return None
        opacity = told.get("opacity")
        share = float(opacity) if isinstance(opacity, (int, float)) and 0 <= opacity <= 1 else 1.0
        return Layer(self._picture(told["url"], where), share)

    def _own(self, url: object, where: str, *, optional: bool) -> list[Layer]:
        """The picture of the board itself; projects of today have it in layers, and a flat copy beside them."""
        if optional and not (isinstance(url, str) and _is_plain(url) and self._at(url).is_file()):
            return []
        name = url if isinstance(url, str) else ""
        flat = f"{PurePosixPath(name).stem}-posterframe.jpg"
        missing = _is_plain(name) and not self._at(name).exists() and self._at(flat).is_file()
        return [Layer(self._picture(flat if missing else url, where))]

    def _at(self, name: str) -> Path:
        return self.place.parent / "images" / name

    def _picture(self, name: object, where: str) -> Path:
        if not isinstance(name, str) or not name:
            raise InputFileError(f"{where}, names no picture.", hint=_HINT)
        if not _is_plain(name):
            raise InputFileError(
                f"{where}, names the picture {name[:100]!r}, which is not a file of images/.", hint=_HINT
            )
        path = self._at(name)
        if not path.is_file():
            raise InputFileError(f"{where}: the picture {name[:100]!r} is missing.", hint=_HINT)
        require_inside(path, self.place.parent, where)
        return path


def _restored(shown: PanelWords, kept: Mapping[str, Any], where: str) -> PanelWords:
    """Return what katha's export said of a frame, with what was changed since in the fields that Storyboarder shows.

    The export shows a caption as the action where there is none, and a bridge's kind as its notes.
    """
    words, kind = told_words(kept, where), kept.get("kind")
    notes = words.notes or (kind if isinstance(kind, str) and kind != "scene" else "")
    changed = {"dialogue": shown.dialogue, "duration": shown.duration}
    if shown.notes != notes:
        changed["notes"] = shown.notes
    if shown.action != (words.action or words.caption):
        changed["action" if words.action else "caption"] = shown.action
    return replace(words, **changed)  # type: ignore[arg-type]


def require_inside(path: Path, folder: Path, where: str) -> None:
    """Refuse a picture that is a link out of its folder: its folder may come from anybody.

    Raises:
        InputFileError: it is; `where` opens the sentence.
    """
    if not path.resolve().is_relative_to(folder.resolve()):
        raise InputFileError(
            f"{where}: the picture {path.name!r} is a link out of its folder.", hint="Copy the picture in."
        )


def _is_plain(name: str) -> bool:
    """Return whether a name is a file's own, in no folder on any system."""
    own = name not in ("", ".", "..") and "\0" not in name and len(name.encode()) <= _LONGEST_NAME
    return own and PurePosixPath(name).name == name and PureWindowsPath(name).name == name


def _flat(layers: Sequence[Layer], where: str) -> Image:
    """Return the layers laid on one another on white; all have the size of the lowest."""
    from PIL import Image

    paper: Image.Image | None = None
    for layer in layers:
        name = f"{where} ({str(layer.path)!r})"
        image = decode(read_picture(layer.path, name), name, alpha=True)
        paper = paper or Image.new("RGBA", image.size, (255, 255, 255, 255))
        if image.size != paper.size:
            image = image.resize(paper.size, Image.Resampling.LANCZOS)
        if layer.opacity < 1.0:
            image.putalpha(image.getchannel("A").point(lambda value, share=layer.opacity: round(value * share)))
        paper = Image.alpha_composite(paper, image)
    if paper is None:
        raise InputFileError(f"{where} has no picture.", hint=_HINT)
    return paper.convert("RGB")


def _text(value: object, where: str, name: str) -> str:
    if not isinstance(value, str):
        return ""
    if len(value) > _LONGEST_WORDS:
        raise InputFileError(f"{where}: {name!r} has {len(value):,} letters; at most {_LONGEST_WORDS:,} are read.")
    return " ".join(value.split())


def _seconds(value: object) -> float | None:
    """Return milliseconds as seconds; None for what is no time of a board."""
    known = isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value <= _LONGEST_TIME
    return round(float(value) / 1000, 3) if known and isinstance(value, (int, float)) else None
