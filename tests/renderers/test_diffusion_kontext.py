"""The renderer `kontext`: frames from pictures, with every family of its models at toy size, loaded from disk."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from katha.configs import load_prompt
from katha.errors import InputFileError, UsageError
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.diffusion.flux import first_words
from katha.renderers.diffusion.kontext import KontextOptions, KontextRenderer
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.references import at_most, joined
from katha.schema import Character

PROMPTS = ("The lion roars at the small mouse.", "The mouse gnaws the net.", "The lion walks past the tree.")
LION = Character(name="lion", kind="lion", appearance="the lion", anchor_prompt="The lion, wide shot")
MOUSE = Character(name="mouse", kind="mouse", appearance="a small grey mouse")
FAMILIES = ("kontext", "klein", "flux2-dev", "qwen-edit")
Model = Callable[[str], Path]


pytestmark = pytest.mark.usefixtures("toy_diffusion")


def kontext(folder: Path, **options: Any) -> KontextRenderer:
    return KontextRenderer(str(folder), KontextOptions(**{"steps": 2, "device": "cpu", "any_size": True, **options}))


def frame(prompt: str = PROMPTS[0], seed: int = 42, **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, seed, **{"width": 32, "height": 32, "scene": 1, **fields})


def board(seed: int = 42) -> list[FrameRequest]:
    return [frame(prompt, seed, scene=number) for number, prompt in enumerate(PROMPTS, 1)]


def pixels(png: bytes) -> NDArray[np.int16]:
    return np.asarray(opened(png), np.int16)


def opened(png: bytes) -> Image.Image:
    with Image.open(io.BytesIO(png)) as image:
        return image.convert("RGB")


def plainly(folder: Path, prompt: str, seed: int = 42, **arguments: Any) -> NDArray[np.int16]:
    """The pipeline's picture as a user would draw it."""
    from diffusers import DiffusionPipeline

    pipe = DiffusionPipeline.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    if hasattr(pipe, "tokenizer_2"):  # CLIP reads as many whole words as it holds, T5 everything
        arguments["prompt_2"], prompt = prompt, first_words(pipe.tokenizer, prompt, 75)
    image = pipe(
        prompt=prompt, generator=torch.Generator().manual_seed(seed), width=32, height=32, num_inference_steps=2,
        **arguments,
    ).images[0]  # fmt: skip
    return np.asarray(image, np.int16)


def as_kontext(pictures: Sequence[Image.Image]) -> dict[str, Any]:
    """One picture of all, side by side, with about the frame's number of pixels."""
    whole = Image.new("RGB", (32 * len(pictures), 32))
    for at, one in enumerate(pictures):
        whole.paste(one, (32 * at, 0))
    size = tuple(round(side * len(pictures) ** -0.5 / 16) * 16 for side in whole.size)
    image = whole.resize(size, Image.Resampling.LANCZOS)
    return {"image": image, "guidance_scale": 2.5, "max_area": 32 * 32, "_auto_resize": False}


def as_flux2(pictures: Sequence[Image.Image]) -> dict[str, Any]:
    """Each on its own, at the smallest size that the pipeline takes."""
    return {"image": [one.resize((64, 64), Image.Resampling.LANCZOS) for one in pictures], "guidance_scale": 4.0}


def as_kv(pictures: Sequence[Image.Image]) -> dict[str, Any]:
    """The same, to a model that takes no guidance."""
    return {"image": as_flux2(pictures)["image"]}


def as_qwen(pictures: Sequence[Image.Image]) -> dict[str, Any]:
    """As they are, with the publisher's blank negative prompt."""
    return {"image": list(pictures), "true_cfg_scale": 4.0, "negative_prompt": " "}


SHOWN: list[tuple[str, Callable[[Sequence[Image.Image]], dict[str, Any]]]] = [
    ("kontext", as_kontext),
    ("flux2-dev", as_flux2),
    ("klein-kv", as_kv),
    ("qwen-edit", as_qwen),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_bridge_is_drawn_from_both_of_its_neighbours(model: Model, family: str) -> None:
    renderer = kontext(model(family), portraits=False)
    images = tuple(renderer.render_board(board()))
    bridge = frame("The mouse walks.", kind="bridge", scene=None)

    def insert(position: int, *pictures: bytes) -> bytes:
        return renderer.insert_frame(bridge, BoardContext(tuple(board()), pictures, position))

    between = insert(1, *images)
    assert between == insert(1, *images)
    assert between != insert(1, images[2], images[1], images[0])
    assert between != insert(1, images[0], images[2], images[1])
    assert insert(0, *images) == insert(0, images[0], images[2], images[1]) != between
    assert insert(3, *images) != between
    assert pixels(between).shape == (32, 32, 3)


@pytest.mark.parametrize(("family", "shown"), SHOWN)
def test_a_bridge_is_what_the_pipeline_draws_from_the_two_pictures(
    model: Model, family: str, shown: Callable[[Sequence[Image.Image]], dict[str, Any]]
) -> None:
    images = tuple(kontext(model(family), portraits=False).render_board(board()))
    bridge = frame("The mouse walks.", kind="bridge", scene=None)
    png = kontext(model(family)).insert_frame(bridge, BoardContext(tuple(board()), images, 2))
    prompt = load_prompt("renderers/kontext_bridge").render(prompt=bridge.prompt, names=[], neighbours=2)
    wanted = plainly(model(family), prompt, **shown([opened(one) for one in images[1:]]))
    assert np.abs(pixels(png) - wanted).max() == 0


def test_qwen_draws_a_frame_without_pictures_as_its_plain_pipeline_does(model: Model) -> None:
    from diffusers import QwenImageEditPlusPipeline, QwenImagePipeline

    edit = QwenImageEditPlusPipeline.from_pretrained(model("qwen-edit"))
    parts = {name: part for name, part in edit.components.items() if name != "processor"}
    pipe = QwenImagePipeline(**parts)
    pipe.set_progress_bar_config(disable=True)
    with torch.no_grad():
        wanted, unwanted = (pipe.encode_prompt(text)[0] for text in (PROMPTS[0], "snow"))
    image = pipe(
        prompt_embeds=wanted, negative_prompt_embeds=unwanted, generator=torch.Generator().manual_seed(42), width=32,
        height=32, num_inference_steps=2, true_cfg_scale=3.0,
    ).images[0]  # fmt: skip
    renderer = kontext(model("qwen-edit"), portraits=False, guidance=3.0, negative="snow")
    assert np.array_equal(pixels(next(renderer.render_board([frame()]))), np.asarray(image, np.int16))


@pytest.mark.parametrize(("family", "most"), [("kontext", 1), ("klein", 4), ("flux2-dev", 6), ("qwen-edit", 3)])
def test_pictures_that_are_too_many_stand_together_in_the_last_one(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, family: str, most: int
) -> None:
    names = [f"c{number}" for number in range(7)]
    for name in names:
        Image.radial_gradient("L").resize((32, 32)).convert("RGB").save(tmp_path / f"{name}.png")
    renderer = kontext(model(family), reference=tuple(f"{name}={tmp_path / name}.png" for name in names))
    shown: list[list[tuple[int, int]]] = []
    with renderer.pipeline([frame()]) as loaded:
        kind = type(loaded.pipe)
        draw = kind.__call__

    def spy(self: Any, *words: Any, **arguments: Any) -> Any:
        image = arguments.get("image") or arguments["images"]
        shown.append([one.size for one in (image if isinstance(image, list) else [image])])
        return draw(self, *words, **arguments)

    monkeypatch.setattr(kind, "__call__", spy)
    cast = tuple(Character(name=name, kind="lion", appearance="a lion") for name in names)
    assert next(renderer.render_board([frame(characters=cast, width=128, height=128)]))
    (sizes,) = shown
    assert len(sizes) == most
    assert all(width == height for width, height in sizes[:-1])
    (width, height), rows = sizes[-1], {1: (3, 3), 4: (2, 2), 6: (2, 1), 3: (3, 2), 5: (3, 1)}[most]
    assert width / height == pytest.approx(rows[0] / rows[1], abs=0.2)


def test_pictures_are_joined_in_a_row_or_nearly_square() -> None:
    colours = ("red", "green", "blue", "black", "yellow")
    pictures = [Image.new("RGB", (20, 10), colour) for colour in colours]
    assert at_most(pictures[:3], 3) == pictures[:3]
    row, square = joined(pictures[:3]), joined(pictures)
    assert (row.size, square.size) == ((60, 10), (60, 20))
    assert [square.getpixel((at, 15)) for at in (0, 20, 40)] == [(0, 0, 0), (255, 255, 0), (255, 255, 255)]
    assert at_most(pictures, 3)[-1].size == (60, 10)


@pytest.mark.parametrize("family", ["kontext", "qwen-edit"])
def test_a_scene_is_drawn_from_its_characters_pictures(model: Model, tmp_path: Path, family: str) -> None:
    Image.radial_gradient("L").resize((40, 30)).convert("RGB").save(tmp_path / "lion.png")
    Image.linear_gradient("L").resize((30, 40)).convert("RGB").save(tmp_path / "other.png")
    request = frame(characters=(LION, MOUSE))
    names = {name: f"lion={tmp_path / name}.png" for name in ("lion", "other")}
    drawn = {
        "none": next(kontext(model(family), portraits=False).render_board([request])),
        "portraits": next(kontext(model(family)).render_board([request])),
        **{
            name: next(kontext(model(family), portraits=False, reference=(given,)).render_board([request]))
            for name, given in names.items()
        },
    }
    assert len(set(drawn.values())) == 4
    plain_one = next(kontext(model(family), portraits=False).render_board([frame()]))
    assert drawn["none"] == plain_one
    sheet = replace(request, pictures=(("lion", (tmp_path / "lion.png").read_bytes()),))
    plain = kontext(model(family), portraits=False)
    assert plain.capabilities.pictures
    assert next(plain.render_board([sheet])) == drawn["lion"], "a picture that comes with the request is one"
    other = kontext(model(family), portraits=False, reference=(names["other"],))
    assert next(other.render_board([sheet])) == drawn["lion"], "and goes before the renderer's own"
    both = kontext(model(family), reference=(names["lion"],))
    assert both.spec() != kontext(model(family), reference=(names["other"],)).spec()
    before = process_pool().loads
    assert next(iter(both.render_board([request, request]))) == next(both.render_board([request]))
    assert process_pool().loads == before


@pytest.mark.parametrize("family", FAMILIES)
def test_a_frame_alone_equals_the_same_frame_in_its_board(model: Model, family: str) -> None:
    requests = [frame(prompt, characters=(LION,)) for prompt in PROMPTS]
    together = list(kontext(model(family)).render_board(requests))
    assert together == [next(kontext(model(family)).render_board([one])) for one in requests]


def test_a_board_may_have_more_characters_than_portraits_are_kept(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [frame(prompt, characters=(who,)) for prompt in PROMPTS for who in (LION, MOUSE)]
    renderer = kontext(model("kontext"), steps=1)
    whole = list(renderer.render_board(requests))
    monkeypatch.setattr("katha.renderers.diffusion.kontext._PORTRAITS", 1)
    assert list(renderer.render_board(requests)) == list(renderer.render_board(requests)) == whole


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("lion", "not NAME=FILE"),
        ("lion=missing.png", "The reference of 'lion' .* is missing"),
        ("lion=words.txt", "is not a picture"),
        ("lion=cut.png", "damaged or cut short"),
        ("lion=dot.png", "has 4x4 pixels"),
        ("lion=line.png", "more than 8 times the other"),
    ],
)
def test_a_reference_that_is_no_picture_is_refused(
    model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("a lion")
    Image.radial_gradient("L").save("whole.png")
    Path("cut.png").write_bytes(Path("whole.png").read_bytes()[:400])
    Image.new("RGB", (4, 4)).save("dot.png")
    Image.new("RGB", (300, 20)).save("line.png")
    with pytest.raises((InputFileError, UsageError), match=message):
        kontext(model("kontext"), reference=(given,))
    with pytest.raises(UsageError, match="two references"):
        kontext(model("kontext"), reference=("lion=whole.png", "lion=whole.png"))


def test_the_characters_folder_is_one_for_all(model: Model, tmp_path: Path) -> None:
    Image.radial_gradient("L").resize((40, 30)).convert("RGB").save(tmp_path / "The_Lion.png")
    (tmp_path / "notes.txt").write_text("about the lion")
    request = frame(characters=(LION, MOUSE))
    folder = kontext(model("kontext"), characters=tmp_path, portraits=False)
    named = kontext(model("kontext"), reference=(f"lion={tmp_path / 'The_Lion.png'}",), portraits=False)
    assert next(folder.render_board([request])) == next(named.render_board([request]))
    assert folder.spec() == named.spec()
    nobody = kontext(model("kontext"), characters=tmp_path, portraits=False)
    list(nobody.render_board([frame(characters=(MOUSE,))]))
    assert "None of the reference pictures (The_Lion.png) is of a character of this board (mouse)." in nobody.remarks()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (None, "There is no folder"),
        ((), "holds no picture of a character"),
        (("lion.png", "The Lion.jpg"), "'lion' has two references, 'The Lion.jpg' and 'lion.png'"),
        (("broken.png",), r"The reference of 'broken' \(.*broken.png'\) is not a picture"),
    ],
)
def test_a_characters_folder_that_cannot_be_used_is_one_sentence(
    model: Model, tmp_path: Path, files: tuple[str, ...] | None, message: str
) -> None:
    folder = tmp_path / "cast"
    if files is not None:
        folder.mkdir()
    for name in files or ():
        if name.startswith("broken"):
            (folder / name).write_text("no picture")
        else:
            Image.radial_gradient("L").convert("RGB").save(folder / name)
    with pytest.raises((InputFileError, UsageError), match=message):
        kontext(model("kontext"), characters=folder)
