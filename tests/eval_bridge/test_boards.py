"""Boards that others drew: which are read, and why the rest are not."""

from __future__ import annotations

import io
import json
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from evals import picture
from PIL import Image

from katha.errors import InputFileError, UsageError
from katha.eval_bridge.bench.boards import BoardProblem, MethodBoards, order_lines, parse_boards, read_board
from katha.jsonio import sha256_hex
from katha.schema import Scene, StoryRecord

STORY = StoryRecord(story_id="s", story_text="A lion sleeps.")


def board(folder: Path, names: list[str], data: bytes | None = None) -> MethodBoards:
    place = folder / "s"
    place.mkdir(parents=True)
    for number, name in enumerate(names, 1):
        form = {"jpg": "JPEG", "webp": "WEBP"}.get(name.rsplit(".", 1)[-1], "PNG")
        (place / name).write_bytes(picture(number, form=form) if data is None else data)
    return MethodBoards("m", folder)


@pytest.mark.parametrize("pattern", ["{}.png", "Scene{}.jpg", "scene_0{}.webp", "story12_{}.PNG", "000{}.png"])
def test_five_numbered_pictures_are_scenes_one_to_five(tmp_path: Path, pattern: str) -> None:
    boards = board(tmp_path, [pattern.format(number) for number in range(1, 6)] + ["cover.png", ".9.png", "notes.txt"])
    found = read_board(boards, STORY)
    assert [frame.scene for frame in found.frames] == [1, 2, 3, 4, 5]
    assert [frame.path.name for frame in found.frames] == [pattern.format(number) for number in range(1, 6)]


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["1.png", "2.png", "4.png", "5.png"], "frame 3 is missing"),
        (["2.png", "3.png", "4.png", "5.png", "6.png"], "frame 1 is missing .*count from 1"),
        ([f"{number}.png" for number in range(1, 7)], "surplus frame: 6.png"),
        (["1.png", "Scene1.png", "2.png", "3.png", "4.png", "5.png"], "there twice"),
        (["cover.png"], "no picture named by a number"),
    ],
)
def test_another_set_of_pictures_says_what_is_wrong(tmp_path: Path, names: list[str], reason: str) -> None:
    with pytest.raises(BoardProblem, match=reason):
        read_board(board(tmp_path, names), STORY)


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def bomb() -> bytes:
    """A few kilobytes that would decode to 90 gigabytes."""
    header = struct.pack(">IIBBBBB", 300_000, 100_000, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes(1_000_000))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def animated(form: str = "PNG") -> bytes:
    buffer = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    frames[0].save(buffer, form, save_all=True, append_images=frames[1:])
    return buffer.getvalue()


def grey(width: int, height: int) -> bytes:
    """A sound picture of one colour; large ones hold a few kilobytes."""
    buffer = io.BytesIO()
    Image.new("L", (width, height), 128).save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "empty"),
        (picture()[:50], "damaged|not a picture"),
        (b"hello", "not a picture"),
        (bomb(), "pixels|too large"),
        (animated(), "animated"),
        (animated("GIF"), "animated"),
        (animated("WEBP"), "animated"),
        (grey(8001, 5000), "at most 40,000,000"),
        (grey(16_000, 8000), "at most 40,000,000"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "not a picture"),
    ],
)
def test_a_damaged_picture_is_a_reason_with_its_name(tmp_path: Path, data: bytes, reason: str) -> None:
    boards = board(tmp_path, [f"{number}.png" for number in range(1, 6)])
    (tmp_path / "s" / "4.png").write_bytes(data)
    with pytest.raises(BoardProblem, match=reason) as raised:
        read_board(boards, STORY)
    assert "4.png" in raised.value.message


def test_sixteen_bits_and_cmyk_are_pictures(tmp_path: Path) -> None:
    boards = board(tmp_path, [f"{number}.png" for number in range(1, 6)])
    deep = Image.linear_gradient("L").convert("I").point(lambda value: 256 * value).convert("I;16")
    deep.save(tmp_path / "s" / "1.png")
    (tmp_path / "s" / "2.png").unlink()
    (tmp_path / "s" / "2.jpg").write_bytes(picture(mode="CMYK", form="JPEG"))
    assert len(read_board(boards, STORY).frames) == 5


@pytest.mark.parametrize("ending", ["tif", "tiff", "bmp", "gif", "jfif", "mpo"])
def test_pictures_of_other_formats_are_frames(tmp_path: Path, ending: str) -> None:
    form = {"tif": "TIFF", "tiff": "TIFF", "bmp": "BMP", "gif": "GIF", "jfif": "JPEG", "mpo": "MPO"}[ending]
    (tmp_path / "s").mkdir()
    for number in range(1, 6):
        image = Image.open(io.BytesIO(picture(number)))
        more = {"save_all": True, "append_images": [image.resize((6, 4))]} if form == "MPO" else {}
        image.save(tmp_path / "s" / f"shot {number}.{ending}", form, **more)
    found = read_board(MethodBoards("m", tmp_path), STORY)
    assert [frame.path.name for frame in found.frames] == [f"shot {number}.{ending}" for number in range(1, 6)]


def ink(shade: int) -> bytes:
    """Lines of one shade on transparency."""
    buffer = io.BytesIO()
    image = Image.new("RGBA", (24, 16), (shade, shade, shade, 0))
    image.paste((shade, shade, shade, 255), (4, 4, 20, 12))
    image.save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (grey(24, 16), r"frame 3 \(3.png\) is blank, of one colour$"),
        (ink(255), r"frame 3 \(3.png\) is blank, of one colour, which is shown on white paper"),
        (ink(0), ""),
    ],
)
def test_blank_frames_are_refused_with_their_name(tmp_path: Path, data: bytes, reason: str) -> None:
    boards = board(tmp_path, [f"{number}.png" for number in range(1, 6)])
    (tmp_path / "s" / "3.png").write_bytes(data)
    if not reason:
        assert len(read_board(boards, STORY).frames) == 5
        return
    with pytest.raises(BoardProblem, match=reason):
        read_board(boards, STORY)


def test_two_readings_are_refused_and_chosen_between(tmp_path: Path) -> None:
    names = [f"{at}_{6 - at}.png" for at in range(1, 6)]
    boards = board(tmp_path, names)
    with pytest.raises(BoardProblem, match=r"two orders: .*Give --order first or --order second"):
        read_board(boards, STORY)
    assert list(order_lines([boards], [STORY])) == []
    chosen = replace(boards, order="second")
    assert [frame.path.name for frame in read_board(chosen, STORY).frames] == names[::-1]
    (told,) = order_lines([chosen], [STORY])
    assert told == "m, s: 1 5_1.png, 2 4_2.png, 3 3_3.png, 4 2_4.png, 5 1_5.png (by second number)"


def storyboard(folder: Path, frames: list[dict[str, object]], **more: object) -> MethodBoards:
    place = folder / "s"
    (place / "panels").mkdir(parents=True)
    for frame in frames:
        frame.setdefault("image", f"panels/{frame['index']}.png")
        if ".." not in str(frame["image"]):
            (place / str(frame["image"])).write_bytes(picture(int(str(frame["index"]))))
    (place / "storyboard.json").write_text(json.dumps({"frames": frames, **more}))
    return MethodBoards("m", folder)


def test_a_storyboard_orders_its_frames_and_may_hold_bridges(tmp_path: Path) -> None:
    frames: list[dict[str, object]] = [
        {"index": 3, "scene": 2, "prompt": "two", "sha256": sha256_hex(picture(3))},
        {"index": 1, "scene": 1, "prompt": "one"},
        {"index": 2, "kind": "bridge", "transition": [1, 2]},
    ]
    found = read_board(storyboard(tmp_path, frames, story_id="s"), STORY)
    assert [(frame.kind, frame.scene) for frame in found.frames] == [("scene", 1), ("bridge", None), ("scene", 2)]
    assert found.prompts == ("one", "two")


@pytest.mark.parametrize(
    ("frames", "more", "reason"),
    [
        ([{"index": 1, "scene": 1, "image": "../../secret.png"}], {}, "outside"),
        ([{"index": 1, "scene": 1, "sha256": "0" * 64}], {}, "hash"),
        ([{"index": 1, "scene": 1}, {"index": 3, "scene": 2}], {}, "not 1 to 2"),
        ([{"index": 1, "scene": 1}, {"index": 2, "scene": 1}], {}, "scene 2 has no frame"),
        ([{"index": 1, "scene": 2}, {"index": 2, "scene": 1}], {}, "not \\[1, 2\\]"),
        ([{"index": 1, "scene": 1, "kind": "poster"}], {}, "unknown kind"),
        ([{"index": 1, "scene": 1}], {"story_id": "other"}, "of the story 'other'"),
        ([], {}, "no frame"),
    ],
)
def test_a_wrong_storyboard_says_why(
    tmp_path: Path, frames: list[dict[str, object]], more: dict[str, object], reason: str
) -> None:
    with pytest.raises(BoardProblem, match=reason):
        read_board(storyboard(tmp_path, frames, **more), STORY)


def test_a_storyboard_without_a_scene_or_that_is_not_json_says_so(tmp_path: Path) -> None:
    two = STORY.model_copy(update={"scenes": [Scene(scene_index=n, scene_text="x") for n in (1, 2)]})
    boards = storyboard(tmp_path, [{"index": 1, "scene": 1}])
    with pytest.raises(BoardProblem, match="scene 2 has no frame"):
        read_board(boards, two)
    (tmp_path / "s" / "storyboard.json").write_text("{")
    with pytest.raises(BoardProblem, match="cannot be used"):
        read_board(boards, STORY)
    with pytest.raises(BoardProblem, match="no folder"):
        read_board(boards, STORY.model_copy(update={"story_id": "t"}))


def test_methods_are_named_by_folder_or_as_told(tmp_path: Path) -> None:
    (tmp_path / "flux").mkdir()
    found = parse_boards([str(tmp_path / "flux"), f"mine={tmp_path / 'flux'}"])
    assert [item.name for item in found] == ["flux", "mine"]
    with pytest.raises(UsageError, match="taken"):
        parse_boards([str(tmp_path / "flux")] * 2)
    with pytest.raises(UsageError, match="taken"):
        parse_boards([f"blank={tmp_path}"], reserved=["blank"])
    with pytest.raises(InputFileError, match="no folder"):
        parse_boards([str(tmp_path / "nowhere")])
