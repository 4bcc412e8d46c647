"""A frame added to a finished board: by whom, in which size, and what never changes."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from doubles import BlockRenderer, plugins, story
from PIL import Image

from katha.agents.pictures import drawable_size, fit_picture, png_size
from katha.agents.run import run_story
from katha.agents.state import RunResult
from katha.config import Settings
from katha.errors import BlankFrameError, RenderError, UsageError
from katha.protocols import BoardContext, Capabilities, FrameRequest, Renderer


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def png(colours: Sequence[tuple[int, int, int]], size: tuple[int, int]) -> bytes:
    image = Image.new("RGB", (len(colours), 1))
    image.putdata(list(colours))
    buffer = io.BytesIO()
    image.resize(size, Image.Resampling.NEAREST).save(buffer, "PNG")
    return buffer.getvalue()


@dataclass
class Fixed(Renderer):
    """A renderer that draws two sizes only, keeps what it was given, and is blank for chosen seeds."""

    capabilities: Capabilities = field(
        default_factory=lambda: Capabilities(insertion="reference", sizes=((96, 96), (160, 96)), default_size=(160, 96))
    )
    blank: frozenset[int] = frozenset()
    asked: list[tuple[FrameRequest, BoardContext | None]] = field(default_factory=list)

    def spec(self) -> Mapping[str, Any]:
        return {"name": "fixed", "blank": sorted(self.blank)}

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        for request in requests:
            yield self._draw(request, None)

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        return self._draw(request, context)

    def _draw(self, request: FrameRequest, context: BoardContext | None) -> bytes:
        self.asked.append((request, context))
        if request.seed in self.blank:
            return png([(0, 0, 0)], (request.width, request.height))
        left, right = (10, request.seed % 200, 30), (200, len(request.prompt) % 200, 90)
        return png([left, right], (request.width, request.height))


def run(out: Path, mode: str = "caption_bridge", **parts: Any) -> RunResult:
    bridge = "fixed" if "bridge" in parts else None
    config = Settings(
        planner="scenes", renderer="block", judges=("pixel",), mode=mode, seeds=(42, 123), bridge_renderer=bridge
    )
    return run_story(story(), config, out, plugins=plugins(**parts))


def test_a_bridge_from_another_renderer_has_the_boards_size_and_names_who_drew_it(tmp_path: Path) -> None:
    bridge = Fixed()
    result = run(tmp_path / "out", bridge=bridge)
    base = next(item.board for item in result.candidates.candidates if item.kind == "base")
    frame = next(item for item in result.board.frames if item.kind == "bridge")
    assert frame.renderer == "fixed"
    assert result.board.renderer == "block"
    assert {item.renderer for item in result.board.frames if item.kind == "scene"} == {None}
    kept = [item.sha256 for item in result.board.frames if item.kind == "scene"]
    assert kept == [item.sha256 for item in base.frames]
    panel = (tmp_path / "out" / "panels" / f"{frame.sha256}.png").read_bytes()
    assert png_size(panel) == (64, 48)
    request, context = bridge.asked[0]
    assert (request.width, request.height) == (160, 96)
    assert request.characters[0].name == "lion"
    assert context is not None
    assert len(context.images) == len(context.requests) == 5
    assert {item.seed for item in context.requests} == {42}


def test_run_json_and_the_report_name_the_bridges_renderer(tmp_path: Path) -> None:
    from katha.app.reports.run_page import write_report
    from katha.jsonio import read_json

    run(tmp_path / "out", bridge=Fixed())
    assert read_json(tmp_path / "out" / "run.json")["bridge_renderer"] == {"name": "fixed", "blank": []}
    page = write_report(tmp_path / "out").read_text(encoding="utf-8")
    assert "drawn by fixed" in page


def test_nobody_who_can_insert_is_refused_before_anything_is_drawn(tmp_path: Path) -> None:
    renderer = BlockRenderer(Capabilities(default_size=(64, 48), insertion="none"))
    with pytest.raises(UsageError, match=r"'full' inserts a frame.*'block' cannot.*--bridge-renderer"):
        run(tmp_path / "out", "full", renderer=renderer)
    assert renderer.drawn == []
    assert not (tmp_path / "out").exists()
    assert run(tmp_path / "out", "base", renderer=renderer).board.frames


def test_a_blank_frame_is_drawn_once_more_with_the_next_seed(tmp_path: Path) -> None:
    size = Capabilities(default_size=(160, 96))
    result = run(tmp_path / "a", "base", renderer=Fixed(size, frozenset((42,))))
    assert {frame.seed for frame in result.board.frames} == {43}
    assert result.board.seed == 42
    with pytest.raises(BlankFrameError, match="'block' drew a frame of one colour"):
        run(tmp_path / "b", "base", renderer=Fixed(size, frozenset((42, 43))))
    again = run(tmp_path / "c", bridge=Fixed(blank=frozenset((42,))))
    drawn = {frame.seed for item in again.candidates.candidates for frame in item.board.frames if frame.renderer}
    assert drawn == {43, 123}


def test_a_batch_goes_on_with_the_next_seed_as_a_whole(tmp_path: Path) -> None:
    class OneBlank(Fixed):
        def _draw(self, request: FrameRequest, context: BoardContext | None) -> bytes:
            if request.scene == 3 and request.seed == 42:
                return png([(0, 0, 0)], (request.width, request.height))
            return super()._draw(request, context)

    alone = run(tmp_path / "a", "base", renderer=OneBlank(Capabilities(default_size=(160, 96))))
    assert [frame.seed for frame in alone.board.frames] == [42, 42, 43, 42, 42]
    batch = run(tmp_path / "b", "base", renderer=OneBlank(Capabilities(default_size=(160, 96), identity="batch")))
    assert [frame.seed for frame in batch.board.frames] == [43] * 5


@pytest.mark.parametrize(
    ("give", "words"),
    [
        (lambda request: png([(1, 2, 3), (200, 9, 9)], (32, 32)), "drew 32x32 pixels where 64x48 were asked for"),
        (lambda request: png([(1, 2, 3), (200, 9, 9)], (64, 48))[:-20], "cut off"),
        (lambda request: b"GIF89a", "no PNG"),
    ],
)
def test_a_frame_that_is_not_what_was_asked_for_is_an_error(tmp_path: Path, give: Any, words: str) -> None:
    class Wrong(BlockRenderer):
        def _draw(self, request: FrameRequest) -> bytes:
            return bytes(give(request))

    with pytest.raises(RenderError, match=words):
        run(tmp_path / "out", "base", renderer=Wrong())


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [((160, 96), (160, 96)), ((320, 192), (160, 96)), ((100, 100), (96, 96)), ((90, 160), (96, 96))],
)
def test_the_nearest_shape_is_drawn(wanted: tuple[int, int], expected: tuple[int, int]) -> None:
    assert drawable_size(Fixed().capabilities, wanted) == expected
    assert drawable_size(Capabilities(size_multiple=16), (100, 31)) == (112, 32)


def test_a_fitted_picture_is_cut_at_its_centre_and_an_equal_one_keeps_its_bytes() -> None:
    wide = png([(255, 0, 0), (0, 255, 0), (0, 255, 0), (0, 0, 255)], (400, 100))
    with Image.open(io.BytesIO(fit_picture(wide, (50, 50)))) as image:
        assert image.size == (50, 50)
        assert image.getpixel((25, 25)) == (0, 255, 0)
        assert image.getpixel((2, 2)) == (0, 255, 0)
    assert fit_picture(wide, (400, 100)) is wide
