"""`consistory` on a real SDXL pipeline of toy size, saved and loaded as a user's is."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from shared_boards import LION, MOUSE, WOMAN, board, frame, pixels, plain_frames, plain_pipe
from tiny_diffusion import build, save_lora

from katha.errors import UsageError
from katha.protocols import BoardContext, FrameRequest
from katha.registry import default_registry
from katha.renderers.consistory import (
    ConsistoryOptions,
    ConsistoryRenderer,
    Injector,
    Match,
    anchor_of,
    injection_window,
    match_tokens,
    smooth_features,
)
from katha.renderers.diffusion.memory import process_pool
from katha.renderers.diffusion.sdxl import SdxlOptions, SdxlRenderer, encode_sdxl
from katha.renderers.shared_attention.coupling import Anchor, SharingFrame, StepRecord, otsu, token_positions

STEPS = 3


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


def renderer(folder: Path, **options: Any) -> ConsistoryRenderer:
    return ConsistoryRenderer(str(folder), ConsistoryOptions(**{"steps": STEPS, "device": "cpu", **options}))


def draw(folder: Path, requests: Sequence[FrameRequest], **options: Any) -> list[bytes]:
    return list(renderer(folder, **options).render_board(requests))


@pytest.fixture(scope="module")
def drawn(folder: Path) -> list[bytes]:
    return draw(folder, board())


@pytest.fixture(scope="module")
def plain(folder: Path) -> list[Any]:
    return plain_frames(plain_pipe(folder), board(), STEPS)


# --- frames


def test_without_sharing_every_frame_is_plain_sdxl_bit_for_bit(folder: Path, plain: list[Any]) -> None:
    for png, expected in zip(draw(folder, board(), sharing=False), plain, strict=True):
        assert np.array_equal(pixels(png), expected)


def test_frames_with_a_subject_share_and_a_frame_without_is_plain(drawn: list[bytes], plain: list[Any]) -> None:
    same = [np.array_equal(pixels(png), expected) for png, expected in zip(drawn, plain, strict=True)]
    assert same == [False, False, False, True]


def test_nothing_global_is_read_or_left_behind(folder: Path, drawn: list[bytes]) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    assert draw(folder, board()) == drawn
    assert torch.equal(torch.get_rng_state(), before)
    plain = SdxlRenderer(str(folder), SdxlOptions(steps=2, device="cpu"))
    (frame_alone,) = plain.render_board(board()[:1])
    process_pool().release()
    assert next(plain.render_board(board()[:1])) == frame_alone


def longer() -> list[FrameRequest]:
    """The board with three more scenes of which none is an anchor."""
    return [
        *board(),
        frame("the lion in the net", LION, scene=5),
        frame("a small grey mouse and the lion by the river", LION, MOUSE, scene=6),
        frame("the lion walks past the tree", LION, scene=7),
    ]


@pytest.fixture(scope="module")
def more(folder: Path) -> list[bytes]:
    return draw(folder, longer())


def test_more_frames_and_another_order_of_them_change_no_frame(
    folder: Path, drawn: list[bytes], more: list[bytes]
) -> None:
    assert more[:4] == drawn
    assert len(set(more)) == 7
    places = [0, 1, 2, 6, 5, 3, 4]
    shuffled = [replace(longer()[place], scene=number) for number, place in enumerate(places, 1)]
    assert draw(folder, shuffled) == [more[place] for place in places]


@pytest.mark.parametrize("keep_gib", [0.0, 4.0])
def test_an_added_frame_is_that_of_the_batch(
    folder: Path, drawn: list[bytes], more: list[bytes], keep_gib: float
) -> None:
    context = BoardContext(tuple(board()), tuple(drawn), 2)
    made = renderer(folder, keep_gib=keep_gib)
    for place in (5, 6):
        bridge = replace(longer()[place], kind="bridge", scene=None)
        assert made.insert_frame(bridge, context) == more[place]
    assert (made._kept is not None and made._kept[1].complete) is (keep_gib > 0)


def test_an_added_frame_with_its_own_seed_keeps_the_boards_anchors(folder: Path, drawn: list[bytes]) -> None:
    context = BoardContext(tuple(board()), tuple(drawn), 2)
    bridge = frame("the lion in the net", LION, seed=7, kind="bridge")
    made = renderer(folder)
    first = made.insert_frame(bridge, context)
    assert first != made.insert_frame(replace(bridge, seed=8), context)
    assert made.insert_frame(bridge, context) == first
    assert renderer(folder).insert_frame(bridge, context) == first


def test_a_scene_drawn_again_reads_the_anchors_as_they_were(folder: Path, drawn: list[bytes]) -> None:
    made, requests = renderer(folder), board()
    context = BoardContext(tuple(requests[1:]), tuple(drawn[1:]), 0)
    assert made.insert_frame(requests[0], context) == drawn[0]
    other = made.insert_frame(replace(requests[0], seed=7), context)
    assert other != drawn[0]
    later = [replace(requests[1], seed=9), *requests[2:]]
    assert made.insert_frame(requests[0], BoardContext(tuple(later), tuple(drawn[1:]), 0)) == drawn[0]


def test_a_frame_beside_nothing_is_drawn(folder: Path) -> None:
    request = frame("the lion in the net", LION, kind="bridge")
    assert pixels(renderer(folder).insert_frame(request, BoardContext((), (), 0))).shape == (32, 32, 3)


# --- options


@pytest.mark.parametrize(
    "options",
    [
        {"anchors": 1}, {"dropout": 0.0}, {"query_blend": False}, {"injection": False}, {"separate": False},
        {"freeu": False}, {"steps": 4}, {"guidance": 3.0}, {"guidance": 1.0}, {"negative": "snow"},
    ],
    ids=str,
)  # fmt: skip
def test_every_option_changes_the_board(folder: Path, more: list[bytes], options: dict[str, Any]) -> None:
    requests = [*longer()[:3], longer()[5]]
    changed = draw(folder, requests, **options)
    assert changed != [*more[:3], more[5]]
    assert json.dumps(dict(renderer(folder, **options).spec())) != json.dumps(dict(renderer(folder).spec()))


def test_readers_in_batches_agree_with_readers_alone(folder: Path, more: list[bytes]) -> None:
    for png, expected in zip(draw(folder, longer(), batch=3), more, strict=True):
        assert np.abs(pixels(png) - pixels(expected)).max() <= 1


def test_tiled_decoding_gives_the_same_size(folder: Path) -> None:
    (png,) = draw(folder, board()[:1], vae_tiling=True, injection=False, steps=2)
    assert pixels(png).shape == (32, 32, 3)


def test_oblong_frames_share(folder: Path) -> None:
    requests = [replace(request, width=48, height=24) for request in board()[:3]]
    shared, alone = (draw(folder, requests, sharing=sharing) for sharing in (True, False))
    assert pixels(shared[0]).shape == (24, 48, 3)
    assert all(one != other for one, other in zip(shared, alone, strict=True))


def test_prompts_of_several_pieces_share(folder: Path) -> None:
    long = ", ".join(["the lion roars at the forest by day and night at tree number one two three four"] * 5)
    requests = [frame(long, LION, scene=1), *board()[1:3]]
    assert len(set(draw(folder, requests))) == 3
    with pytest.raises(UsageError, match="tokens"):
        draw(folder, requests, long_prompts="refuse")


def test_adapters_reach_the_shared_layers(folder: Path, tmp_path: Path) -> None:
    file = save_lora(plain_pipe(folder), "unet", tmp_path / "style.safetensors", targets=["to_q", "to_v"])
    pipe = plain_pipe(folder)
    pipe.load_lora_weights(tmp_path, weight_name=file.name)
    (expected,) = plain_frames(pipe, board()[:1], STEPS)
    (png,) = draw(folder, board()[:1], lora=(str(file),), sharing=False)
    assert np.array_equal(pixels(png), expected)
    shared = draw(folder, board()[:3], lora=(str(file),))
    assert shared[0] not in (png, draw(folder, board()[:3])[0])


@pytest.mark.parametrize(
    ("options", "said"),
    [({"anchors": 0}, "anchors"), ({"dropout": 1.0}, "dropout"), ({"keep_gib": -1.0}, "keep_gib")],
    ids=str,
)
def test_options_out_of_range_are_refused(folder: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        renderer(folder, **options)


def test_frames_of_two_sizes_are_refused(folder: Path) -> None:
    requests = [board()[0], replace(board()[1], width=48)]
    with pytest.raises(UsageError, match="32x32 and 48x32"):
        draw(folder, requests)


def test_it_is_registered_and_says_what_it_can(folder: Path) -> None:
    made = default_registry("renderers").create(f"consistory:{folder}", device="cpu")
    assert isinstance(made, ConsistoryRenderer)
    assert (made.capabilities.identity, made.capabilities.insertion) == ("batch", "bank")
    spec = json.loads(json.dumps(dict(made.spec())))
    assert (spec["name"], spec["anchors"], spec["dropout"], spec["steps"]) == ("consistory", 2, 0.5, 50)


# --- who is an anchor, and where its words are


def test_anchors_are_the_first_two_frames_that_name_a_subject(folder: Path) -> None:
    made = renderer(folder)
    with made.pipeline(longer()) as loaded:
        from katha.renderers.shared_attention.renderer import board_of

        (anchors,) = made.sources(board_of(longer()), loaded.pipe)
        shown = {request.scene: member.shows for request, member in anchors}
        member = made.member(longer()[6], board_of(longer()), loaded.pipe)
    assert shown == {1: (True, False), 2: (False, True), 3: (True, True)}
    assert member.reads == (True, False)


@pytest.mark.parametrize(
    ("prompt", "character", "words"),
    [
        ("the lion roars at the small mouse", LION, ["lion"]),
        ("the mouse and the mouse", MOUSE, ["mouse", "mouse"]),
        ("mouse, a small grey mouse", MOUSE, ["mouse"]),
        ("Leo walks", LION, ["leo"]),
        ("An Old Woman gives the apple", WOMAN, ["old", "woman"]),
        ("the woman gives the apple", WOMAN, ["woman"]),
        ("a tree", LION, []),
        ("", LION, []),
    ],
)
def test_words_of_a_character(folder: Path, prompt: str, character: Any, words: list[str]) -> None:
    tokenizer = plain_pipe(folder).tokenizer
    ids = [tokenizer.bos_token_id, *tokenizer(prompt, add_special_tokens=False)["input_ids"]]
    found = [ids[place] for place in token_positions(tokenizer, prompt, character)]
    assert tokenizer.decode(found).replace(" ", "") == "".join(words)


def test_words_in_the_second_piece_of_a_prompt(folder: Path) -> None:
    """The embedding at a word's position is the one that changes least when the words after it change."""
    pipe = plain_pipe(folder)
    prompt = ", ".join(["forest by day and night at tree number one two three four five"] * 6) + " the lion"
    places = token_positions(pipe.tokenizer, prompt, LION)
    embeds = [encode_sdxl(pipe, f"{prompt}{end}")["embeds"][0] for end in ("", " roars")]
    assert len(embeds[0]) == len(embeds[1]) == 154
    changed = [place for place in range(154) if not torch.allclose(embeds[0][place], embeds[1][place], atol=1e-5)]
    assert places
    assert changed[0] == places[-1] + 1


def test_windows_of_the_steps() -> None:
    assert injection_window(50) == range(5, 17)
    assert [injection_window(steps) for steps in (2, 4, 10)] == [range(1, 2), range(1, 2), range(1, 3)]


# --- correspondences and injection against their definitions


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def test_features_are_smoothed_unit_vectors() -> None:
    features = noise(2, 5, 4, 6)
    weights = np.exp(-0.5 * np.array([-1.0, 0.0, 1.0]) ** 2)
    weights /= weights.sum()
    padded = np.pad(features.numpy(), ((0, 0), (0, 0), (1, 1), (1, 1)), mode="reflect")
    expected = sum(
        weights[y] * weights[x] * padded[:, :, y : y + 4, x : x + 6] for y in range(3) for x in range(3)
    ).reshape(2, 5, 24).transpose(0, 2, 1)  # fmt: skip
    expected /= np.linalg.norm(expected, axis=2, keepdims=True)
    assert np.allclose(smooth_features(features).numpy(), expected, atol=1e-5)


def test_matches_are_the_nearest_tokens_of_a_common_subject() -> None:
    features = smooth_features(noise(3, 8, 4, 4, seed=2))
    labels = noise(3, 16, 2, seed=3) > 0
    members = [
        SharingFrame((True, True), shows, ((1,), (2,)), at) for at, shows in enumerate([(True, False), (True, True)])
    ]
    anchors = {at: anchor_of(members[at], features[at], labels[at]) for at in range(2)}
    assert anchors[0].tokens.tolist() == labels[0, :, 0].nonzero()[:, 0].tolist()
    reader = SharingFrame((True, True), (False, False), ((1,), (2,)))
    match = match_tokens(reader, features[2], labels[2], anchors)
    assert match is not None
    best: dict[int, tuple[float, int, int]] = {}
    outside: dict[int, float] = {}
    for token in range(16):
        for number, anchor in anchors.items():
            for place, at in enumerate(anchor.tokens.tolist()):
                common = [bool(a and b) for a, b in zip(labels[2, token], anchor.subjects[place], strict=True)]
                distance = 1 - float(features[2, token] @ features[number, at])
                if any(common):
                    best[token] = min(best.get(token, (9.0, 0, 0)), (distance, number, place))
                if not labels[2, token].any():
                    outside[token] = min(outside.get(token, 9.0), distance)
    assert outside
    limit = otsu(np.float32([*(distance for distance, _, _ in best.values()), *outside.values()]))
    near = {token: (number, place) for token, (distance, number, place) in best.items() if distance <= limit + 1e-6}
    assert 0 < len(near) < len(best)
    found = zip(match.tokens.tolist(), match.anchors.tolist(), match.places.tolist(), strict=True)
    assert {token: (number, place) for token, number, place in found} == near
    own = match_tokens(members[0], features[0], labels[0], anchors)
    assert own is not None
    assert set(own.anchors.tolist()) == {1}
    assert match_tokens(members[0], features[0], labels[0], {0: anchors[0]}) is None


@pytest.mark.parametrize(("noisy", "least"), [(0.3, 0.99), (0.6, 0.99)])
def test_a_subject_is_injected_whole_and_not_its_nearer_part(noisy: float, least: float) -> None:
    """The cut falls between subject and background: inside the subject it would leave out its far part always."""
    made = torch.Generator().manual_seed(5)
    subject = torch.zeros(1024, dtype=torch.bool)
    subject[:256] = True
    core = torch.randn(256, 64, generator=made)

    def frame() -> torch.Tensor:
        values = torch.randn(1024, 64, generator=made)
        values[subject] = core + noisy * torch.randn(256, 64, generator=made)
        return torch.nn.functional.normalize(values, dim=1)

    labels, member = subject[:, None], SharingFrame((True,), (True,), ((1,),), 0)
    anchors = {0: anchor_of(member, frame(), labels)}
    match = match_tokens(SharingFrame((True,), (False,), ((1,),)), frame(), labels, anchors)
    assert match is not None
    assert len(match.tokens) / 256 >= least
    assert bool(subject[match.tokens].all())


def test_injection_mixes_matched_tokens_of_the_positive_half_only() -> None:
    anchor = Anchor(torch.tensor([1, 3]), torch.ones(2, 1, dtype=torch.bool), noise(2, 3))
    members = [SharingFrame((True,), (True,), ((1,),), 0), SharingFrame((True,), (False,), ((1,),))]
    match = Match(torch.tensor([0, 2]), torch.tensor([0, 0]), torch.tensor([1, 0]))
    inject = Injector(members, [None, match], {0: anchor}, (2, 2), range(1, 3))
    output, record = noise(4, 4, 3, seed=5), StepRecord()
    mixed = inject("layer", output, record, 1)
    expected = output.clone()
    expected[3, 0] = 0.8 * output[2, 3] + 0.2 * output[3, 0]
    expected[3, 2] = 0.8 * output[2, 1] + 0.2 * output[3, 2]
    assert torch.allclose(mixed, expected)
    assert torch.equal(record.outputs["layer", 0], output[2, [1, 3]])
    assert inject("layer", output, StepRecord(), 3) is output
    finer = noise(4, 16, 3)
    assert inject("layer", finer, StepRecord(), 1) is finer
