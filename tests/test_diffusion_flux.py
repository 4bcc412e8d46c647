"""The FLUX and Kontext renderers, through diffusers' own pipeline classes at toy size, loaded from disk."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from tiny_diffusion import build

from katha.errors import InputFileError, UsageError
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.diffusion import FluxRenderer, KontextRenderer, process_pool
from katha.schema import Character

PROMPTS = ("The lion roars at the small mouse.", "The mouse gnaws the net.", "The lion walks past the tree.")
LION = Character(name="lion", kind="lion", appearance="the lion", anchor_prompt="The lion, wide shot")
MOUSE = Character(name="mouse", kind="mouse", appearance="a small grey mouse")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    folder = tmp_path_factory.mktemp("flux")
    yield lambda family: folder / family if (folder / family).exists() else build(family, folder / family)
    process_pool().release()


@pytest.fixture(autouse=True)
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def flux(folder: Path, **options: Any) -> FluxRenderer:
    return FluxRenderer(str(folder), **{"steps": 2, "device": "cpu", "any_size": True, **options})


def kontext(folder: Path, **options: Any) -> KontextRenderer:
    return KontextRenderer(str(folder), **{"steps": 2, "device": "cpu", "any_size": True, **options})


def frame(prompt: str = PROMPTS[0], seed: int = 42, **fields: Any) -> FrameRequest:
    return FrameRequest(prompt, seed, **{"width": 32, "height": 32, "scene": 1, **fields})


def board(seed: int = 42) -> list[FrameRequest]:
    return [frame(prompt, seed, scene=number) for number, prompt in enumerate(PROMPTS, 1)]


def pixels(png: bytes) -> NDArray[np.int16]:
    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"), np.int16)


def plain(folder: Path) -> Any:
    from diffusers import DiffusionPipeline

    pipe = DiffusionPipeline.from_pretrained(folder)
    pipe.set_progress_bar_config(disable=True)
    return pipe


def plainly(pipe: Any, request: FrameRequest, **extra: Any) -> NDArray[np.int16]:
    image = pipe(
        prompt=request.prompt, generator=torch.Generator().manual_seed(request.seed), width=request.width,
        height=request.height, num_inference_steps=2, **extra,
    ).images[0]  # fmt: skip
    return np.asarray(image, np.int16)


@pytest.mark.parametrize(
    ("family", "steps", "guidance", "tokens"),
    [("flux", 28, 3.5, 512), ("schnell", 4, 0.0, 256), ("klein", 4, 1.0, 512), ("klein-base", 50, 4.0, 512)],
)
def test_a_checkpoint_says_itself_which_flux_it_is(
    model: Callable[[str], Path], family: str, steps: int, guidance: float, tokens: int
) -> None:
    renderer = flux(model(family), steps=None)
    assert (renderer.steps, renderer.guidance, renderer.prompt_tokens) == (steps, guidance, tokens)
    assert renderer.capabilities.prompt_tokens == tokens


@pytest.mark.parametrize(("family", "guidance"), [("flux", 3.5), ("schnell", 0.0), ("klein-base", 4.0)])
def test_a_frame_is_what_the_plain_pipeline_draws(model: Callable[[str], Path], family: str, guidance: float) -> None:
    pipe, renderer = plain(model(family)), flux(model(family))
    extra = {"max_sequence_length": 256} if family == "schnell" else {}
    for request in (frame(), frame(PROMPTS[1], 7, width=48)):
        (png,) = renderer.render_board([request])
        assert np.array_equal(pixels(png), plainly(pipe, request, guidance_scale=guidance, **extra))


def test_a_negative_prompt_counts_with_true_guidance_only(model: Callable[[str], Path]) -> None:
    pipe, request = plain(model("flux")), frame(negative_prompt="snow")
    (guided,) = flux(model("flux"), negative="night", true_cfg=3.0).render_board([request])
    wanted = plainly(pipe, request, guidance_scale=3.5, negative_prompt="snow, night", true_cfg_scale=3.0)
    assert np.array_equal(pixels(guided), wanted)
    (free,) = flux(model("flux")).render_board([request])
    assert np.array_equal(pixels(free), plainly(pipe, frame(), guidance_scale=3.5))


def test_a_negative_prompt_steers_a_model_that_is_not_distilled(model: Callable[[str], Path]) -> None:
    renderer = flux(model("klein-base"))
    drawn = [next(renderer.render_board([frame(negative_prompt=text)])) for text in ("", "snow")]
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("family", ["flux", "klein-base"])
def test_the_same_floats_in_a_batch_and_alone(model: Callable[[str], Path], family: str) -> None:
    from katha.renderers.diffusion import Job

    renderer = flux(model(family), batch=3)
    with renderer.pipeline(board()) as loaded:
        jobs = [Job(request, renderer.encode(loaded, request)) for request in board()]
        batch = renderer.draw(loaded.pipe, jobs)
        single = torch.cat([renderer.draw(loaded.pipe, [job]) for job in jobs])
    assert float((batch - single).abs().max()) < 1e-4
    assert len(list(renderer.render_board(board()))) == 3


def test_prompts_are_encoded_once_for_all_seeds(model: Callable[[str], Path]) -> None:
    renderer = flux(model("flux"))
    process_pool().release()
    for seed in (42, 123, 2026):
        list(renderer.render_board(board(seed)))
    with renderer.pipeline(board()) as loaded:
        assert loaded.prompts.encoded == len(PROMPTS)


def test_every_word_of_a_long_prompt_reaches_the_second_encoder(model: Callable[[str], Path]) -> None:
    head = ", ".join(f"the lion walks past tree number {word}" for word in ("one", "two", "three", "four", "five") * 3)
    one, other = frame(f"{head}, by day"), frame(f"{head}, at night")
    renderer = flux(model("flux"))
    assert 75 < renderer.reader.count(one.prompt) <= 512
    first, second = renderer.render_board([one, other])
    assert first != second


def test_a_prompt_that_the_model_cannot_read_is_refused_with_the_numbers(model: Callable[[str], Path]) -> None:
    for family, limit in (("flux", 512), ("schnell", 256), ("klein", 512)):
        renderer = flux(model(family))
        with pytest.raises(UsageError, match=rf"scene 2 has \d+ tokens; the model reads {limit}"):
            next(renderer.render_board([frame(), frame("the lion roars " * limit, scene=2)]))
    tight = flux(model("flux"), prompt_tokens=8)
    count = tight.reader.count(PROMPTS[0])
    with pytest.raises(UsageError, match=f"has {count} tokens; the model reads 8"):
        next(tight.render_board([frame()]))
    assert next(flux(model("flux"), prompt_tokens=count).render_board([frame()]))
    with pytest.raises(UsageError, match="1 to 512"):
        flux(model("flux"), prompt_tokens=513)


@pytest.mark.parametrize("family", ["kontext", "klein"])
def test_a_bridge_is_drawn_from_both_of_its_neighbours(model: Callable[[str], Path], family: str) -> None:
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


def test_a_bridge_is_what_the_pipeline_draws_from_the_two_pictures(model: Callable[[str], Path]) -> None:
    from katha.prompting import load_prompt

    renderer, pipe = kontext(model("kontext"), portraits=False), plain(model("kontext"))
    images = tuple(renderer.render_board(board()))
    bridge = frame("The mouse walks.", kind="bridge", scene=None)
    png = renderer.insert_frame(bridge, BoardContext(tuple(board()), images, 2))
    both = Image.new("RGB", (64, 32))
    for at, one in enumerate(images[1:3]):
        both.paste(Image.open(io.BytesIO(one)), (32 * at, 0))
    size = tuple(round(side * 0.5**0.5 / 16) * 16 for side in both.size)
    prompt = load_prompt("renderers/kontext_bridge").render(prompt=bridge.prompt, names=[], neighbours=2)
    image = pipe(
        both.resize(size, Image.Resampling.LANCZOS), prompt, generator=torch.Generator().manual_seed(42), width=32,
        height=32, num_inference_steps=2, guidance_scale=2.5, max_area=32 * 32, _auto_resize=False,
    ).images[0]  # fmt: skip
    assert np.array_equal(pixels(png), np.asarray(image, np.int16))


def test_a_scene_is_drawn_from_its_characters_pictures(model: Callable[[str], Path], tmp_path: Path) -> None:
    Image.radial_gradient("L").resize((40, 30)).convert("RGB").save(tmp_path / "lion.png")
    Image.linear_gradient("L").resize((30, 40)).convert("RGB").save(tmp_path / "other.png")
    request = frame(characters=(LION, MOUSE))
    names = {name: f"lion={tmp_path / name}.png" for name in ("lion", "other")}
    drawn = {
        "none": next(kontext(model("kontext"), portraits=False).render_board([request])),
        "portraits": next(kontext(model("kontext")).render_board([request])),
        **{
            name: next(kontext(model("kontext"), portraits=False, reference=(given,)).render_board([request]))
            for name, given in names.items()
        },
    }
    assert len(set(drawn.values())) == 4
    plain_one = next(kontext(model("kontext"), portraits=False).render_board([frame()]))
    assert drawn["none"] == plain_one
    both = kontext(model("kontext"), reference=(names["lion"],))
    assert both.spec() != kontext(model("kontext"), reference=(names["other"],)).spec()
    before = process_pool().loads
    assert next(iter(both.render_board([request, request]))) == next(both.render_board([request]))
    assert process_pool().loads == before


def test_a_frame_alone_equals_the_same_frame_in_its_board(model: Callable[[str], Path]) -> None:
    requests = [frame(prompt, characters=(LION,)) for prompt in PROMPTS]
    together = list(kontext(model("kontext")).render_board(requests))
    assert together == [next(kontext(model("kontext")).render_board([one])) for one in requests]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("lion", "not NAME=FILE"),
        ("lion=missing.png", "Cannot read the reference of 'lion'"),
        ("lion=words.txt", "is no picture"),
        ("lion=cut.png", "is no picture"),
        ("lion=dot.png", "has 4x4 pixels"),
    ],
)
def test_a_reference_that_is_no_picture_is_refused(
    model: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("words.txt").write_text("a lion")
    Image.radial_gradient("L").save("whole.png")
    Path("cut.png").write_bytes(Path("whole.png").read_bytes()[:400])
    Image.new("RGB", (4, 4)).save("dot.png")
    with pytest.raises((InputFileError, UsageError), match=message):
        kontext(model("kontext"), reference=(given,))
    with pytest.raises(UsageError, match="two references"):
        kontext(model("kontext"), reference=("lion=whole.png", "lion=whole.png"))
