"""Boards that anyone made: every known layout is read, what is wrong is one sentence, and a board can be repaired."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from doubles import BlockRenderer, plugins, story
from PIL import Image
from typer.testing import CliRunner

from katha.agents.run import run_story
from katha.app.cli.main import app
from katha.config import Settings
from katha.errors import InputFileError, RenderError, UsageError
from katha.protocols import BoardContext, FrameRequest
from katha.registry import default_registry
from katha.renderers.folder import FolderRenderer, load_layouts
from katha.testing import check_renderer, picture, sample_requests

SIZE = (80, 60)


def put(folder: Path, names: list[str], key: str = "") -> None:
    """Pictures of those names, each another one, in the format of its ending."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        with Image.open(io.BytesIO(picture(f"{key}{name}", SIZE))) as image:
            image.save(folder / name)


def requests(count: int, story_id: str = "lion") -> list[FrameRequest]:
    return [FrameRequest(f"scene {at}", 42, 768, 512, scene=at, story_id=story_id) for at in range(1, count + 1)]


def read(root: Path, count: int = 3, story_id: str = "lion", layout: str | None = None) -> list[bytes]:
    return list(FolderRenderer(str(root), layout=layout).render_board(requests(count, story_id)))


LAYOUTS = {
    "numbered": ("lion", ["1.png", "2.png", "3.png"]),
    "numbered by scene": ("lion", ["Scene3.jpg", "Scene1.jpg", "scene_2.webp"]),
    "numbered, one story": (".", ["01.jpeg", "02.jpeg", "03.jpeg"]),
    "storydiffusion": ("lion/results/20250101-120000", ["image_0.png", "image_1.png", "image_2.png"]),
    "story-iter": ("lion/results_xl10", ["img_0.png", "img_1.png", "img_2.png"]),
    "vistorybench by time": ("20250101-120000/lion", ["shot_01.jpg", "shot_02.jpg", "shot_03.jpg"]),
    "vistorybench by story": ("lion/20250101_120000/shots", ["shot_00.png", "shot_01.png", "shot_02.png"]),
}


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_each_layout_is_read_in_order(tmp_path: Path, name: str) -> None:
    where, names = LAYOUTS[name]
    put(tmp_path / where, names)
    (tmp_path / where / "notes.txt").write_text("not a picture")
    (tmp_path / where / ".1.png").write_bytes(b"hidden")
    frames = read(tmp_path)
    ordered = sorted(names, key=lambda item: int("".join(letter for letter in Path(item).stem if letter.isdigit())))
    for png, file in zip(frames, ordered, strict=True):
        with Image.open(io.BytesIO(png)) as image, Image.open(tmp_path / where / file) as given:
            assert (image.format, image.mode, image.size) == ("PNG", "RGB", SIZE)
            assert image.tobytes() == given.convert("RGB").tobytes()
    layout = name.split(",")[0].split(" ")[0]
    assert read(tmp_path, layout=layout) == frames


def test_the_latest_of_several_is_read(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        put(tmp_path / "lion" / f"results_xl{number}", ["img_0.png", "img_1.png"], f"{number} ")
    put(tmp_path / "lion" / "results_xl", ["img_0.png", "img_1.png"], "first")
    assert read(tmp_path, 2)[0] == read(tmp_path / "lion" / "results_xl10", 2, layout="numbered")[0]


def test_katha_s_own_boards_are_read_by_their_list(tmp_path: Path) -> None:
    put(tmp_path / "lion" / "panels", ["b.png", "a.png", "x.png"])
    frames = [
        {"index": 1, "kind": "scene", "image": "panels/b.png"},
        {"index": 2, "kind": "bridge", "image": "panels/x.png"},
        {"index": 3, "kind": "scene", "image": "panels/a.png"},
    ]
    (tmp_path / "lion" / "storyboard.json").write_text(json.dumps({"frames": frames}))
    assert read(tmp_path, 2) == [picture("b.png", SIZE), picture("a.png", SIZE)]
    frames[0]["image"] = "../secret.png"
    (tmp_path / "lion" / "storyboard.json").write_text(json.dumps({"frames": frames}))
    with pytest.raises(InputFileError, match="outside its folder"):
        read(tmp_path, 2)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: (folder / "2.png").unlink(), r"Frame 2 is missing \(in .*holds 1.png, 3.png"),
        (lambda folder: (folder / "2.png").write_bytes(b""), r"Frame 2 of 'lion' .*2.png.* is empty"),
        (lambda folder: (folder / "2.png").write_bytes(b"<html>"), r"Frame 2 of 'lion' .*2.png.* is not a picture"),
        (
            lambda folder: (folder / "3.png").write_bytes((folder / "3.png").read_bytes()[:90]),
            "Frame 3 .*is damaged",
        ),
        (lambda folder: put(folder, ["4.png"]), r"holds 4 pictures; the plan of 'lion' has 3 panels.*--panels 4"),
        (lambda folder: (folder / "3.png").unlink(), r"holds 2 pictures; .* 3 panels"),
        (lambda folder: put(folder, ["2.jpg"]), r"Frame 2 is there twice: 2.jpg and 2.png"),
        (
            lambda folder: [path.unlink() for path in folder.iterdir()],
            r"no board of the story 'lion' in any known layout",
        ),
    ],
)
def test_what_is_wrong_with_a_board_is_one_sentence(tmp_path: Path, spoil: object, words: str) -> None:
    put(tmp_path / "lion", ["1.png", "2.png", "3.png"])
    assert callable(spoil)
    spoil(tmp_path / "lion")
    with pytest.raises(InputFileError, match=words):
        read(tmp_path)


def test_a_folder_of_one_story_is_not_taken_for_another(tmp_path: Path) -> None:
    put(tmp_path, ["1.png", "2.png"])
    renderer = FolderRenderer(str(tmp_path))
    assert len(list(renderer.render_board(requests(2, "lion")))) == 2
    with pytest.raises(InputFileError, match=r"pictures of 'lion' and none of 'mouse'"):
        list(renderer.render_board(requests(2, "mouse")))


def test_names_that_tell_what_a_picture_shows_are_read_by_their_numbers(tmp_path: Path) -> None:
    names = ["01_the_lion_sleeps.png", "02_a_mouse_on_tram_12.png", "03_bridge_the_net.png"]
    put(tmp_path / "found", names)
    put(tmp_path / "exported", names)
    frames = [{"file": name, "kind": "bridge" if "bridge" in name else "scene"} for name in names]
    (tmp_path / "exported" / "frames.json").write_text(json.dumps({"frames": frames}))
    (tmp_path / "found" / names[1]).rename(tmp_path / "found" / "02_a_mouse.png")
    assert FolderRenderer(str(tmp_path / "found")).count("lion") == 3
    assert FolderRenderer(str(tmp_path / "exported")).count("lion") == 2
    frames[0]["file"] = "../1.png"
    (tmp_path / "exported" / "frames.json").write_text(json.dumps({"frames": frames}))
    with pytest.raises(InputFileError, match="outside its folder"):
        FolderRenderer(str(tmp_path / "exported")).count("lion")


@pytest.mark.parametrize(
    ("argument", "layout", "words"),
    [(None, None, "needs a folder"), ("nowhere", None, "no folder 'nowhere'"), (".", "comic", "Known: .*story-iter")],
)
def test_wrong_use_is_refused_at_once(argument: str | None, layout: str | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        FolderRenderer(argument, layout=layout)
    with pytest.raises(InputFileError, match="cannot be the name"):
        read(Path(), story_id="../lion")


def test_the_spec_changes_with_the_pictures(tmp_path: Path) -> None:
    put(tmp_path / "lion", ["1.png", "2.png"])
    before = FolderRenderer(str(tmp_path)).spec()
    assert before == FolderRenderer(str(tmp_path)).spec()
    put(tmp_path / "lion", ["2.png"], "another")
    assert before != FolderRenderer(str(tmp_path)).spec()


def test_it_keeps_the_contract(tmp_path: Path) -> None:
    put(tmp_path / "contract", ["1.png", "2.png", "3.png"])
    check_renderer(lambda: FolderRenderer(str(tmp_path)), requests=sample_requests(SIZE))
    with pytest.raises(RenderError, match="--bridge-renderer"):
        FolderRenderer(str(tmp_path)).insert_frame(requests(1)[0], BoardContext((), (), 0))


def test_every_layout_says_what_it_is_for() -> None:
    known = ["katha", "exported", "story-iter", "storydiffusion", "vistorybench", "numbered", "speaking"]
    assert list(load_layouts()) == known
    assert all(layout.about and layout.paths for layout in load_layouts().values())


def test_a_found_board_is_repaired_by_another_renderer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    put(tmp_path / "boards" / "lion", [f"{number}.jpg" for number in range(1, 6)])
    name = f"folder:{tmp_path / 'boards'}"
    config = Settings(renderer=name, bridge_renderer="block", judges=("pixel",), mode="caption_bridge", seeds=(1, 2, 3))
    found = default_registry("renderers").create(name)
    bridge = BlockRenderer()
    result = run_story(story(), config, tmp_path / "out", plugins=plugins(renderer=found, bridge=bridge))
    boards = [item for item in result.candidates.candidates if item.kind == "base"]
    assert len(boards) == 1
    kept = [frame.sha256 for frame in result.board.frames if frame.kind == "scene"]
    assert kept == [frame.sha256 for frame in boards[0].board.frames]
    assert [frame.renderer for frame in result.board.frames if frame.kind == "bridge"] == ["block"]
    assert {(request.width, request.height) for request in bridge.drawn} == {(80, 64)}
    for frame in result.board.frames:
        with Image.open(tmp_path / "out" / frame.image) as image:
            assert image.size == SIZE


def test_a_judge_that_cannot_see_a_found_board_repairs_nothing_and_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    put(tmp_path / "boards" / "lion_and_mouse", [f"{number}.jpg" for number in range(1, 6)])
    example = Path(__file__).parents[2] / "examples" / "lion_and_mouse.txt"
    given = ["run", str(example), "--renderer", f"folder:{tmp_path / 'boards'}", "--bridge-renderer", "sketch"]
    told = CliRunner().invoke(app, [*given, "--seeds", "42", "--out", str(tmp_path / "out")])
    assert told.exit_code == 0, told.output
    assert "Nothing was repaired: no judge could read its pictures." in told.stdout
    assert "these pictures cannot be read with this judge" in told.stdout
    assert "a model as --judge" in told.stdout
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"The scenes&#39; pictures are those of {tmp_path / 'boards'}" in page.replace("'", "&#39;")
    assert "cannot be read with this judge" in page
    assert "<small>seed" not in page.partition('id="before"')[0]


def test_a_changed_picture_is_never_taken_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    names = [f"{number}.png" for number in range(1, 6)]
    hashes = []
    for key in ("one", "two"):
        put(tmp_path / "boards" / "lion", names, key)
        config = Settings(renderer=f"folder:{tmp_path / 'boards'}", judges=("pixel",), mode="base")
        found = default_registry("renderers").create(config.renderer)
        result = run_story(story(), config, tmp_path / key, plugins=plugins(renderer=found))
        hashes.append([frame.sha256 for frame in result.board.frames])
    assert not set(hashes[0]) & set(hashes[1])
