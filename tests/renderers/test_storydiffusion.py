"""`storydiffusion` on a real SDXL pipeline of toy size, saved and loaded as a user's is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from shared_boards import LION, MOUSE, WOMAN, board, frame, pixels, plain_frames, plain_pipe
from tiny_diffusion import build

from katha.errors import UsageError
from katha.protocols import BoardContext, FrameRequest
from katha.registry import default_registry
from katha.renderers.consistory import ConsistoryRenderer
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.shared_attention.denoise import decode, encode, shown_bytes
from katha.renderers.shared_attention.renderer import VIEWS, board_of
from katha.renderers.storydiffusion import (
    StoryDiffusionOptions,
    StoryDiffusionRenderer,
    fitting_share,
    identity_images,
)
from katha.testing import check_renderer, picture

STEPS = 2


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("sdxl", tmp_path_factory.mktemp("sdxl") / "model")


@pytest.fixture(autouse=True, scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
    torch.set_num_threads(threads)
    process_pool().release()


def renderer(folder: Path, **options: Any) -> StoryDiffusionRenderer:
    return StoryDiffusionRenderer(
        str(folder), StoryDiffusionOptions(**{"steps": STEPS, "device": "cpu", "identity_images": 2, **options})
    )


def draw(folder: Path, requests: Sequence[FrameRequest], **options: Any) -> list[bytes]:
    return list(renderer(folder, **options).render_board(requests))


def cast() -> list[FrameRequest]:
    """The board with a third character that is never alone, a second scene of the lion, and all three together."""
    return [
        *board(),
        frame("the lion in the net", LION, scene=5),
        frame("an old woman gives the apple to the lion and a small grey mouse", WOMAN, LION, MOUSE, scene=6),
    ]


@pytest.fixture(scope="module")
def drawn(folder: Path) -> list[bytes]:
    return draw(folder, cast())


# --- frames


def test_without_sharing_every_frame_is_plain_sdxl_bit_for_bit(folder: Path) -> None:
    plain = plain_frames(plain_pipe(folder), board(), STEPS)
    for png, expected in zip(draw(folder, board(), sharing=False), plain, strict=True):
        assert np.array_equal(pixels(png), expected)


def test_frames_of_characters_share_and_a_frame_of_none_is_plain(folder: Path, drawn: list[bytes]) -> None:
    alone = draw(folder, cast(), sharing=False)
    # The mouse has one identity image, its only scene alone, which therefore reads nothing.
    assert [one == other for one, other in zip(drawn, alone, strict=True)] == [False, True, False, True, False, False]


def test_frames_do_not_depend_on_one_another_beyond_the_identities(folder: Path, drawn: list[bytes]) -> None:
    places = [0, 1, 5, 3, 4, 2]
    assert draw(folder, [replace(cast()[place], scene=at) for at, place in enumerate(places, 1)]) == [
        drawn[place] for place in places
    ]


@pytest.mark.parametrize("keep_gib", [0.0, 4.0])
def test_an_added_frame_is_that_of_the_batch(folder: Path, drawn: list[bytes], keep_gib: float) -> None:
    bridge = frame("the lion and a small grey mouse by the river", LION, MOUSE, kind="bridge")
    batch = draw(folder, [*cast(), replace(bridge, kind="scene", scene=7)])
    assert batch[:6] == drawn
    made, context = renderer(folder, keep_gib=keep_gib), BoardContext(tuple(cast()), tuple(drawn), 2)
    assert [made.insert_frame(bridge, context) for _ in range(2)] == [batch[6]] * 2
    assert (made._kept is not None and made._kept[1].complete) is (keep_gib > 0)
    assert made.insert_frame(replace(bridge, seed=7), context) != batch[6]


def test_a_board_of_another_size_gives_its_identities_in_the_size_of_the_frame(folder: Path) -> None:
    around = [replace(request, width=48, height=48) for request in cast()]
    bridge = frame("the lion in the net by the river", LION, kind="bridge")
    made = renderer(folder)
    got = made.insert_frame(bridge, BoardContext(tuple(around), (b"",) * 6, 1))
    assert got == made.insert_frame(bridge, BoardContext(tuple(cast()), (b"",) * 6, 1))
    with pytest.raises(UsageError, match="one size"):
        draw(folder, [*around, bridge])


def test_it_keeps_the_contract_of_renderers(folder: Path) -> None:
    assert "insertion" in check_renderer(lambda: renderer(folder, identity_images=1))


# --- identities


def test_identities_are_scenes_alone_and_portraits_where_there_are_none() -> None:
    story = board_of(cast())
    assert [item.name for item in story.subjects] == ["Leo", "mouse", "Ann"]
    lion, mouse, woman = (identity_images(story, number, 4, "panels") for number in range(3))
    assert [request.scene for request in lion] == [1, 5]
    assert [request.scene for request in mouse] == [2]
    assert len(woman) == 4
    assert len({request.seed for request in woman}) == 4
    for request, view in zip(woman, VIEWS, strict=True):
        assert request.prompt == f"an old woman at night, alone, {view}, plain background"
        assert request.characters == (WOMAN,)
    assert [request.scene for request in identity_images(story, 0, 1, "panels")] == [1]
    portraits = identity_images(story, 1, 5, "portraits")
    assert portraits[0].prompt == f"a small grey mouse, alone, {VIEWS[0]}, plain background"
    assert portraits[4].prompt == portraits[0].prompt
    assert portraits[4].seed != portraits[0].seed


def test_portraits_name_the_looks_that_their_prompt_leaves_out() -> None:
    grey = LION.model_copy(update={"appearance": "an old grey lion", "anchor_prompt": "The lion stands nearby."})
    (portrait,) = identity_images(board_of([frame("the lion and a tree", grey, MOUSE, scene=1)]), 0, 1, "panels")
    assert portrait.prompt.startswith("The lion stands nearby, an old grey lion, alone, ")


def test_with_portraits_editing_one_scene_changes_no_other(folder: Path) -> None:
    requests = [cast()[place] for place in (0, 2, 5)]
    edited = [replace(requests[0], prompt="the lion walks past the river"), *requests[1:]]
    first, second = (draw(folder, board, identity="portraits", identity_images=1) for board in (requests, edited))
    assert [one == other for one, other in zip(first, second, strict=True)] == [False, True, True]
    panels = [draw(folder, board) for board in (requests, edited)]
    assert panels[0][1] != panels[1][1]


def test_the_bank_keeps_its_limit_by_reading_fewer_tokens(folder: Path) -> None:
    assert fitting_share(0.5, 8, 100, 1000) == 0.5
    assert fitting_share(0.5, 8, 1000, 1000) == 0.125
    made, few = renderer(folder), renderer(folder, bank_mib=1)
    with made.pipeline(cast()) as loaded:
        one, large = (shown_bytes(loaded.pipe.unet, latent, 2) for latent in ((16, 16), (256, 256)))
    assert made.rules(board_of(cast())).keep == 0.5
    wide = board_of([replace(request, width=512, height=512) for request in cast()])
    assert few.rules(wide).keep == pytest.approx((1 << 20) / (5 * large))
    list(made.render_board(cast()))
    kept = made._kept
    assert kept is not None
    assert 0.4 * 5 * one * (STEPS - 1) < kept[1].peak < 0.7 * 5 * one * (STEPS - 1)


# --- options


@pytest.mark.parametrize(
    "options",
    [
        {"identity": "portraits"}, {"identity_images": 1}, {"sampling": 1.0}, {"separate": False}, {"freeu": False},
        {"steps": 3}, {"guidance": 1.0}, {"negative": "snow"},
    ],
    ids=str,
)  # fmt: skip
def test_every_option_changes_the_board(folder: Path, drawn: list[bytes], options: dict[str, Any]) -> None:
    assert draw(folder, cast(), **options) != drawn
    assert json.dumps(dict(renderer(folder, **options).spec())) != json.dumps(dict(renderer(folder).spec()))


def test_readers_in_batches_agree_with_readers_alone(folder: Path, drawn: list[bytes]) -> None:
    for png, expected in zip(draw(folder, cast(), batch=3), drawn, strict=True):
        assert np.abs(pixels(png) - pixels(expected)).max() <= 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"identity": "photos"}, "identity"), ({"identity_images": 0}, "identity_images"),
        ({"bank_mib": 0}, "bank_mib"), ({"sampling": 0.0}, "sampling"), ({"keep_gib": -1.0}, "keep_gib"),
    ],
    ids=str,
)  # fmt: skip
def test_options_out_of_range_are_refused(folder: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        renderer(folder, **options)


def test_it_is_registered_and_says_what_it_can(folder: Path) -> None:
    made = default_registry("renderers").create(f"storydiffusion:{folder}", sampling=0.25, device="cpu")
    assert isinstance(made, StoryDiffusionRenderer)
    assert made.options.sampling == 0.25
    assert (made.capabilities.identity, made.capabilities.insertion) == ("batch", "bank")
    spec = json.loads(json.dumps(dict(made.spec())))
    assert (spec["name"], spec["identity_images"], spec["steps"]) == ("storydiffusion", 4, 50)


# --- pictures of characters that the user brings, for both renderers


@pytest.fixture(scope="module")
def casts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders with another picture of the lion."""
    base = tmp_path_factory.mktemp("casts")
    for name in ("one", "two"):
        (base / name).mkdir()
        (base / name / "leo.png").write_bytes(picture(f"lion {name}", (48, 40)))
    return base


def drawer(kind: Any, folder: Path, characters: Path | None = None, **options: Any) -> Any:
    told = {"steps": 4, "device": "cpu", "any_size": True, "characters": characters, **options}
    return kind(str(folder), kind.options_class(**told))


BOTH = pytest.mark.parametrize("kind", [StoryDiffusionRenderer, ConsistoryRenderer])


@BOTH
def test_the_pixels_change_with_the_picture_and_only_where_it_is_read(kind: Any, folder: Path, casts: Path) -> None:
    scenes = board()
    without, one, two = (
        list(drawer(kind, folder, characters).render_board(scenes))
        for characters in (None, casts / "one", casts / "two")
    )
    assert len({without[0], one[0], two[0]}) == 3, "the lion alone"
    assert one[2] != two[2], "the lion and the mouse"
    assert one[3] == two[3] == without[3], "a tree by the river has nothing to read"
    if kind is StoryDiffusionRenderer:
        assert one[1] == without[1], "the mouse has its own identity images, which read nobody else"
    assert list(drawer(kind, folder, casts / "one").render_board(scenes)) == one


@BOTH
def test_a_frame_added_later_reads_the_picture(kind: Any, folder: Path, casts: Path) -> None:
    scenes = board()
    made = drawer(kind, folder, casts / "one")
    images = tuple(made.render_board(scenes))
    around, bridge = BoardContext(tuple(scenes), images, 1), frame("the lion runs", LION)
    kept = made.insert_frame(bridge, around)
    assert drawer(kind, folder, casts / "one").insert_frame(bridge, around) == kept, "in a new instance, too"
    assert drawer(kind, folder, casts / "two").insert_frame(bridge, around) != kept
    assert drawer(kind, folder).insert_frame(bridge, around) != kept


@BOTH
def test_the_picture_is_in_the_spec_and_without_one_nothing_is(kind: Any, folder: Path, casts: Path) -> None:
    plain = drawer(kind, folder).spec()
    assert not set(plain) & {"pictures", "characters", "reference"}
    given = [drawer(kind, folder, casts / name).spec() for name in ("one", "two")]
    assert given[0] != given[1]
    assert {**given[0], "pictures": None} == {**plain, "pictures": None}
    assert drawer(kind, folder, reference=(f"Leo={casts / 'one' / 'leo.png'}",)).spec() == given[0]
    assert str(casts) not in str(given)


@BOTH
def test_pictures_that_nothing_reads_are_refused_or_told(kind: Any, folder: Path, casts: Path) -> None:
    with pytest.raises(UsageError, match="with sharing=false nothing reads"):
        drawer(kind, folder, casts / "one", sharing=False)
    made = drawer(kind, folder, casts / "one")
    list(made.render_board([frame("an old woman walks", WOMAN, scene=1)]))
    assert any("is of a character of this board (Ann)" in remark for remark in made.remarks())


@BOTH
def test_pictures_count_among_the_sources(kind: Any, folder: Path, casts: Path) -> None:
    made, scenes = drawer(kind, folder, casts / "one"), board_of(board())
    with made.pipeline(board()) as loaded:
        groups = made.sources(scenes, loaded.pipe)
    assert tuple(map(len, groups)) == made.source_counts(scenes)
    read = [request for group in groups for request, member in group if request.pictures]
    assert [request.prompt[:3] for request in read] == ["Leo"]
    assert all(not any(member.reads) for group in groups for request, member in group if request.pictures)


@pytest.mark.parametrize("moments", [False, True])
def test_a_picture_is_encoded_as_it_would_be_decoded(folder: Path, moments: bool) -> None:
    pipe = plain_pipe(folder)
    if moments:
        pipe.vae.register_to_config(latents_mean=[0.1, 0.2, 0.3, 0.4], latents_std=[1.0, 2.0, 0.5, 1.5])
    noise = torch.randn(1, 4, 16, 16, generator=torch.Generator().manual_seed(0))
    pixels: list[Any] = []
    shown, pipe.vae.decode = (
        pipe.vae.decode,
        lambda latents, **_: pixels.append(latents) or (torch.zeros(1, 3, 32, 32),),
    )
    decode(pipe, noise)
    pipe.vae.decode = shown
    pipe.vae.encode = lambda _: type("Out", (), {"latent_dist": type("Dist", (), {"mode": lambda _: pixels[0]})()})

    found = encode(pipe, Image.new("RGB", (32, 32)), torch.float32)
    assert torch.allclose(found, noise, atol=1e-5)
