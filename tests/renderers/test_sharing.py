"""Shared self-attention against its definition: dense masked attention, plain SDXL, and frames drawn one at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from diffusers import DDIMScheduler, StableDiffusionXLPipeline
from skimage.filters import threshold_otsu
from tiny_diffusion import build

from katha.renderers.shared_attention.coupling import (
    WINDOW,
    Bank,
    Coupling,
    Offer,
    QueryBlend,
    SharingFrame,
    SharingRules,
    SubjectMaps,
    TokenGroup,
    grid_of,
    group_tokens,
    kept_tokens,
    keyed_rng,
    otsu,
)
from katha.renderers.shared_attention.denoise import (
    FREEU,
    Conditioning,
    Denoiser,
    Hub,
    SharedLatents,
    concept_maps,
    gathered_attention,
    shared_grids,
    wired,
)

LATENT = (12, 16)
STEPS = 3
FREE = SharingRules(seed=42, keep=0.5, masked=False)
BLEND = QueryBlend(0.9, 0.818, 0.6)


@pytest.fixture(scope="module")
def pipe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StableDiffusionXLPipeline]:
    folder = build("sdxl", tmp_path_factory.mktemp("sdxl"))
    loaded = StableDiffusionXLPipeline.from_pretrained(folder, add_watermarker=False)
    loaded.set_progress_bar_config(disable=True)
    loaded.scheduler = DDIMScheduler.from_config(loaded.scheduler.config, clip_sample=False, set_alpha_to_one=False)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # toy tensors: several threads only wait for each other where others compute, too
    yield loaded
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def globals_untouched() -> Iterator[None]:
    """No test may read or change a global generator: they are set to a known state and must still be in it."""
    torch.manual_seed(7), np.random.seed(7), random.seed(7)
    before = torch.get_rng_state(), np.random.get_state(), random.getstate()
    yield
    assert torch.equal(torch.get_rng_state(), before[0])
    assert str(np.random.get_state()) == str(before[1])
    assert random.getstate() == before[2]


def noise(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def text_of(pipe: Any, prompt: str, guidance: float = 5.0) -> Conditioning:
    with torch.no_grad():
        embeds, negative, pooled, negative_pooled = pipe.encode_prompt(prompt, negative_prompt="snow")
    if guidance <= 1:
        return Conditioning(embeds, pooled)
    return Conditioning(torch.cat([negative, embeds]), torch.cat([negative_pooled, pooled]))


class Board:
    """A small board drawn through the engine: who shows what to whom, and the latents that come out."""

    def __init__(self, pipe: Any, rules: SharingRules = FREE, guidance: float = 5.0, freeu: bool = False) -> None:
        self.pipe, self.rules, self.guidance, self.freeu = pipe, rules, guidance, freeu
        pipe.scheduler.set_timesteps(STEPS)

    def trajectory(self, members: Sequence[tuple[SharingFrame, str, int]], maps: bool = False) -> SharedLatents:
        texts = [text_of(self.pipe, prompt, self.guidance) for _, prompt, _ in members]
        lengths = [item.embeds.shape[1] for item in texts]
        coupling = Coupling(
            [member for member, _, _ in members], self.rules, LATENT, SubjectMaps() if maps else None,
            halves=len(texts[0].embeds), lengths=lengths,
        )  # fmt: skip
        return SharedLatents(torch.cat([noise(1, 4, *LATENT, seed=seed) for _, _, seed in members]), texts, coupling)

    def run(self, sources: SharedLatents | None, readers: Sequence[SharedLatents], bank: Bank | None = None) -> None:
        size = (LATENT[0] * 2, LATENT[1] * 2)
        time_ids = torch.tensor([[*size, 0, 0, *size]], dtype=torch.float32)
        with wired(self.pipe.unet, self.freeu) as hub:
            denoiser = Denoiser(self.pipe.unet, hub, self.pipe.scheduler, self.guidance, time_ids)
            denoiser.run([] if sources is None else [sources], readers, bank or Bank(), "only")


LION, MOUSE = "the lion roars in the forest", "a small grey mouse by the net"
WORDS = ((2,), (4,))


def source(number: int, shows: tuple[bool, bool] = (True, False)) -> SharingFrame:
    return SharingFrame(shows, shows, WORDS, number, str(number))


READER = SharingFrame((True, True), (False, False), WORDS)
ALONE = SharingFrame((False, False), (False, False), WORDS)


def plain(pipe: Any, prompts: Sequence[str], seeds: Sequence[int], guidance: float = 5.0) -> torch.Tensor:
    """What diffusers' own pipeline draws; prompts are encoded alone: a batch may differ in the last bits."""
    texts = [text_of(pipe, prompt) for prompt in prompts]
    (negative, embeds), (negative_pooled, pooled) = (
        zip(*parts, strict=True) for parts in ([item.embeds for item in texts], [item.pooled for item in texts])
    )
    return pipe(
        prompt_embeds=torch.stack(embeds), negative_prompt_embeds=torch.stack(negative),
        pooled_prompt_embeds=torch.stack(pooled), negative_pooled_prompt_embeds=torch.stack(negative_pooled),
        num_inference_steps=STEPS, guidance_scale=guidance, height=LATENT[0] * 2, width=LATENT[1] * 2,
        output_type="latent", latents=torch.cat([noise(1, 4, *LATENT, seed=seed) for seed in seeds]),
    ).images  # fmt: skip


# --- attention against its definition


def attention_layer(pipe: Any, kind: str = "attn1") -> Any:
    return getattr(pipe.unet.up_blocks[0].attentions[0].transformer_blocks[0], kind)


def dense(attn: Any, hidden: torch.Tensor, allowed: torch.Tensor) -> torch.Tensor:
    """Every token of a half against every token of the half, (halves, F * n, C), with a boolean mask."""
    out = []
    for rows in hidden:
        projected = [part(rows) for part in (attn.to_q, attn.to_k, attn.to_v)]
        parts = [part.unflatten(1, (attn.heads, -1)).transpose(0, 1) for part in projected]
        scores = parts[0] @ parts[1].transpose(1, 2) * attn.scale
        probabilities = scores.masked_fill(~allowed, float("-inf")).softmax(-1)
        out.append((probabilities @ parts[2]).transpose(0, 1).flatten(1))
    return attn.to_out[0](torch.stack(out))


@pytest.mark.parametrize("halves", [1, 2])
@torch.no_grad()
def test_gathered_attention_is_dense_masked_attention(pipe: Any, halves: int) -> None:
    attn, frames, tokens = attention_layer(pipe), 3, 12
    hidden = noise(halves, frames, tokens, attn.to_q.in_features, seed=3)
    offers = {
        0: Offer(torch.tensor([1, 4, 5, 9]), torch.tensor([[True, False], [True, True], [False, True], [True, False]])),
        1: Offer(torch.tensor([0, 2, 11]), torch.tensor([[True, True], [False, True], [False, True]])),
    }
    labels = torch.zeros(tokens, 2, dtype=torch.bool)
    labels[:5, 0] = labels[3:8, 1] = True
    groups = [
        group_tokens(torch.tensor([True, False]), {1: offers[1]}),
        (),
        group_tokens(torch.tensor([True, True]), offers, labels),
    ]
    allowed = torch.zeros(frames, tokens, frames, tokens, dtype=torch.bool)
    for frame in range(frames):
        allowed[frame, :, frame, :] = True
    allowed[0, :, 1, 0] = True
    for token in range(tokens):
        wanted = [bool(item) for item in labels[token]] if labels[token].any() else [True, True]
        for number, offer in offers.items():
            for place, subjects in zip(offer.tokens, offer.subjects, strict=True):
                allowed[2, token, number, place] = any(a and bool(b) for a, b in zip(wanted, subjects, strict=True))
    shown = {number: hidden[:, number, offer.tokens] for number, offer in offers.items()}
    got = gathered_attention(attn, hidden.flatten(0, 1), groups, shown)
    expected = dense(attn, hidden.flatten(1, 2), allowed.view(frames * tokens, -1))
    assert torch.allclose(got.view(halves, -1, got.shape[-1]), expected, atol=1e-5)
    own = gathered_attention(attn, hidden.flatten(0, 1), [(), (), ()], {})
    assert not torch.allclose(got, own, atol=1e-3)


def test_a_token_of_one_subject_reads_that_subject_only() -> None:
    offers = {0: Offer(torch.arange(3), torch.tensor([[True, False], [False, True], [True, True]]))}
    labels = torch.tensor([[True, False], [False, True], [False, False], [True, True]])
    groups = group_tokens(torch.tensor([True, True]), offers, labels)
    read = [(group, group.queries.tolist()) for group in groups if group.queries is not None]
    reads = {token: group.reads[0].tolist() for group, tokens in read for token in tokens}
    assert reads == {0: [0, 2], 1: [1, 2], 2: [0, 1, 2], 3: [0, 1, 2]}


def test_one_subject_is_one_group() -> None:
    offers = {0: Offer(torch.arange(3), torch.tensor([[True, False], [False, True], [True, True]]))}
    labels = torch.tensor([[True, False], [False, False]])
    (group,) = group_tokens(torch.tensor([True, False]), offers, labels)
    assert group.queries is None
    assert group.reads[0].tolist() == [0, 2]


def test_nothing_to_read_is_no_group() -> None:
    offers = {0: Offer(torch.arange(2), torch.tensor([[True, False], [True, False]]))}
    assert group_tokens(torch.tensor([False, True]), offers) == ()
    assert group_tokens(torch.tensor([True, True]), {}) == ()


@torch.no_grad()
def test_concept_maps_are_the_mean_probability_of_the_words(pipe: Any) -> None:
    attn = attention_layer(pipe, "attn2")
    hidden, text = noise(2, 12, attn.to_q.in_features), noise(2, 9, attn.to_k.in_features, seed=1)
    maps = concept_maps(attn, hidden, text, [[(3,), ()], [(2, 5), (8,)]])
    for frame, subject, words in ((0, 0, [3]), (1, 0, [2, 5]), (1, 1, [8])):
        query, key = attn.to_q(hidden[frame]), attn.to_k(text[frame])
        size = query.shape[-1] // attn.heads
        heads = [
            (query[:, at : at + size] @ key[:, at : at + size].T / size**0.5).softmax(-1)[:, words].mean(1)
            for at in range(0, query.shape[-1], size)
        ]
        assert torch.allclose(maps[frame, subject], torch.stack(heads).mean(0), atol=1e-6)
    assert not maps[0, 1].any()


# --- masks


@pytest.mark.parametrize("seed", range(4))
def test_otsu_is_that_of_the_histogram_on_whole_numbers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.integers(0, 90, 40), rng.integers(60 + 20 * seed, 255, 30)])
    assert otsu(values) == threshold_otsu(values)


def test_otsu_of_equal_values_leaves_nothing_above() -> None:
    assert otsu([0.25, 0.25]) == 0.25
    with pytest.raises(ValueError, match="no values"):
        otsu([])


def test_masks_come_from_the_last_steps_only() -> None:
    maps, grid = SubjectMaps(), (4, 6)
    assert maps.labels(grid) is None
    left, right = torch.zeros(1, 1, 4, 6), torch.zeros(1, 1, 4, 6)
    left[..., :3], right[..., 3:] = 1.0, 1.0
    for step in range(2 * WINDOW):
        for _ in range(3):
            maps.add((left if step < WINDOW else right).flatten(2), grid)
        maps.close_step()
    labels = maps.labels(grid)
    assert labels is not None
    assert labels.view(4, 6).tolist() == right.bool().view(4, 6).tolist()
    finer = maps.labels((8, 12))
    assert finer is not None
    assert finer.view(8, 12)[:, 8:].all()
    assert not finer.view(8, 12)[:, :4].any()
    assert maps.nbytes == WINDOW * 24 * 4 + 24 + 96


def test_grids_of_odd_latents() -> None:
    assert [grid_of(count, (15, 22)) for count in (330, 88, 24)] == [(15, 22), (8, 11), (4, 6)]
    with pytest.raises(ValueError, match="halving"):
        grid_of(89, (15, 22))


# --- draws


def test_draws_are_functions_of_their_key() -> None:
    first = kept_tokens(4096, 0.5, 42, "keep", 3, 64, 64, 0)
    assert (first == kept_tokens(4096, 0.5, 42, "keep", 3, 64, 64, 0)).all()
    assert 0.45 < (first == kept_tokens(4096, 0.5, 42, "keep", 4, 64, 64, 0)).mean() < 0.55
    assert 0.45 < first.mean() < 0.55
    assert kept_tokens(9, 1.0, 1).all()
    assert not kept_tokens(9, 0.0, 1).any()
    assert 250 < sum(keyed_rng(42, step).random() < 0.3 for step in range(1000)) < 350


# --- whole boards


def test_frames_that_read_nothing_are_plain_sdxl_bit_for_bit(pipe: Any) -> None:
    board = Board(pipe)
    frames = [board.trajectory([(ALONE, LION, 1)], maps=True), board.trajectory([(READER, MOUSE, 2)], maps=True)]
    board.run(None, frames)
    for frame, prompt, seed in zip(frames, (LION, MOUSE), (1, 2), strict=True):
        assert torch.equal(frame.latents, plain(pipe, [prompt], [seed]))


def test_with_freeu_too_and_the_unet_is_as_before(pipe: Any) -> None:
    before = pipe.unet.attn_processors
    board = Board(pipe, freeu=True)
    frame = board.trajectory([(ALONE, LION, 1)])
    board.run(None, [frame])
    assert pipe.unet.attn_processors == before
    without = plain(pipe, [LION], [1])
    pipe.enable_freeu(**FREEU)
    try:
        assert torch.equal(frame.latents, plain(pipe, [LION], [1]))
    finally:
        pipe.disable_freeu()
    assert not torch.equal(frame.latents, without)
    assert torch.equal(plain(pipe, [LION], [1]), without)


def test_the_unet_is_as_before_when_drawing_fails(pipe: Any) -> None:
    before = pipe.unet.attn_processors
    pipe.enable_freeu(**FREEU)
    try:
        with pytest.raises(RuntimeError, match="half way"), wired(pipe.unet, freeu=False):
            raise RuntimeError("half way")
        assert pipe.unet.attn_processors == before
        assert [getattr(block, name) for block in pipe.unet.up_blocks for name in FREEU] == [*FREEU.values()] * 3
        assert not pipe.unet.up_blocks[0]._forward_hooks
    finally:
        pipe.disable_freeu()


def test_sources_with_empty_masks_are_plain_sdxl_bit_for_bit(pipe: Any) -> None:
    """Without words there are no maps above a threshold, so that nothing is shown."""
    board = Board(pipe, SharingRules(42, 0.5, masked=True, blend=BLEND))
    empty = SharingFrame((True, True), (True, True), ((), ()), 0)
    sources = board.trajectory(
        [(empty, LION, 1), (SharingFrame(*[(True, True)] * 2, ((), ()), 1), MOUSE, 2)], maps=True
    )
    reader = board.trajectory([(READER, LION, 3)], maps=True)
    board.run(sources, [reader])
    assert torch.equal(sources.latents, plain(pipe, [LION, MOUSE], [1, 2]))
    assert torch.equal(reader.latents, plain(pipe, [LION], [3]))


@pytest.mark.parametrize("rules", [FREE, SharingRules(42, 0.5, masked=True, blend=BLEND)], ids=["sampled", "masked"])
def test_sharing_changes_frames_and_sources_do_not_depend_on_readers(pipe: Any, rules: SharingRules) -> None:
    def drawn(*readers: tuple[str, int]) -> tuple[torch.Tensor, list[torch.Tensor]]:
        board = Board(pipe, rules)
        sources = board.trajectory([(source(0), LION, 1), (source(1, (True, True)), MOUSE, 2)], maps=True)
        runs = [board.trajectory([(READER, prompt, seed)], maps=True) for prompt, seed in readers]
        board.run(sources, runs)
        return sources.latents, [run.latents for run in runs]

    pair, frames = drawn((LION, 3), (MOUSE, 4))
    swapped_pair, swapped = drawn((MOUSE, 4), (LION, 3))
    assert torch.equal(pair, swapped_pair)
    assert torch.equal(pair, drawn()[0])
    assert torch.equal(frames[0], swapped[1])
    assert torch.equal(frames[1], swapped[0])
    assert not torch.allclose(frames[0], plain(pipe, [LION], [3]), atol=1e-3)
    assert not torch.allclose(pair, plain(pipe, [LION, MOUSE], [1, 2]), atol=1e-3)


@pytest.mark.parametrize("guidance", [1.0, 5.0])
def test_a_frame_added_from_the_kept_bank_is_that_of_the_batch(pipe: Any, guidance: float) -> None:
    board, bank = Board(pipe, guidance=guidance), Bank(limit=1 << 30)
    members = [(source(0), LION, 1), (source(1), MOUSE, 2)]
    together = board.trajectory([(READER, LION, 3)], maps=True)
    board.run(board.trajectory(members, maps=True), [together], bank)
    bank.finish()
    assert bank.complete
    later = board.trajectory([(READER, LION, 3)], maps=True)
    board.run(None, [later], bank)
    assert torch.equal(later.latents, together.latents)
    rebuilt = board.trajectory([(READER, LION, 3)], maps=True)
    step_only = Bank()
    board.run(board.trajectory(members, maps=True), [rebuilt], step_only)
    assert torch.equal(rebuilt.latents, together.latents)
    assert step_only.nbytes == 0
    assert 0 < step_only.peak < 0.7 * bank.nbytes


def test_a_bank_over_its_limit_lets_go(pipe: Any) -> None:
    board, bank = Board(pipe), Bank(limit=1000)
    board.run(board.trajectory([(source(0), LION, 1)]), [], bank)
    bank.finish()
    assert not bank.complete
    assert bank.nbytes == 0


def test_readers_in_one_call_agree_with_readers_alone(pipe: Any) -> None:
    board = Board(pipe, SharingRules(42, 0.5, masked=True, blend=BLEND))
    members = [(READER, LION, 3), (READER, MOUSE, 4)]
    batch = board.trajectory(members, maps=True)
    board.run(board.trajectory([(source(0), LION, 1), (source(1), MOUSE, 2)], maps=True), [batch])
    alone = [board.trajectory([member], maps=True) for member in members]
    board.run(board.trajectory([(source(0), LION, 1), (source(1), MOUSE, 2)], maps=True), alone)
    for number, frame in enumerate(alone):
        assert torch.allclose(batch.latents[number], frame.latents[0], atol=1e-4)


def test_prompts_of_different_lengths_in_one_call_are_read_as_alone(pipe: Any) -> None:
    def pair(*lengths: int) -> torch.Tensor:
        board, texts = Board(pipe), [text_of(pipe, prompt) for prompt in (LION, MOUSE)]
        longer = [
            Conditioning(torch.cat([item.embeds, 2 * item.embeds], 1)[:, :length], item.pooled)
            for item, length in zip(texts, lengths, strict=True)
        ]
        latents = torch.cat([noise(1, 4, *LATENT, seed=seed) for seed in (1, 2)])
        frames = SharedLatents(latents, longer, Coupling([ALONE, ALONE], FREE, LATENT, lengths=lengths))
        board.run(None, [frames])
        return frames.latents

    mixed = pair(77, 154)
    assert torch.allclose(mixed[0], pair(77, 77)[0], atol=1e-4)
    assert torch.allclose(mixed[1], pair(154, 154)[1], atol=1e-4)
    assert not torch.allclose(mixed[1], pair(77, 77)[1], atol=1e-2)


class DenseProcessor:
    """The definition, in one UNet call for the whole board: every token of a half against every other, and a mask."""

    def __init__(self, step: list[int]) -> None:
        self.step = step

    def __call__(self, attn: Any, hidden_states: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
        rows, tokens, _width = hidden_states.shape
        frames = rows // 2
        allowed = torch.zeros(frames, tokens, frames, tokens, dtype=torch.bool)
        grid = grid_of(tokens, LATENT)
        for frame in range(frames):
            for source in range(2) if self.step[0] else ():
                kept = torch.from_numpy(kept_tokens(tokens, 0.5, 42, "keep", self.step[0], *grid, str(source)))
                allowed[frame, :, source] = kept
            allowed[frame, :, frame] = True
        half = hidden_states.view(2, frames * tokens, -1)
        return dense(attn, half, allowed.view(frames * tokens, -1)).view(rows, tokens, -1)


@torch.no_grad()
def test_a_board_drawn_frame_by_frame_is_the_dense_board_in_one_call(pipe: Any) -> None:
    frames = [(source(0), LION, 1), (source(1), MOUSE, 2), (READER, LION, 3), (READER, MOUSE, 4)]
    board = Board(pipe)
    sources, readers = board.trajectory(frames[:2]), [board.trajectory([item]) for item in frames[2:]]
    board.run(sources, readers)

    step, before = [0], pipe.unet.attn_processors
    layers = {name: DenseProcessor(step) if "up" in name and "attn1" in name else old for name, old in before.items()}
    pipe.unet.set_attn_processor(layers)
    try:
        texts = [text_of(pipe, prompt) for _, prompt, _ in frames]
        embeds = torch.cat([item.embeds[half : half + 1] for half in range(2) for item in texts])
        pooled = torch.cat([item.pooled[half : half + 1] for half in range(2) for item in texts])
        size = torch.tensor([[LATENT[0] * 2, LATENT[1] * 2, 0, 0, LATENT[0] * 2, LATENT[1] * 2]], dtype=torch.float32)
        latents = torch.cat([noise(1, 4, *LATENT, seed=seed) for _, _, seed in frames])
        for number, timestep in enumerate(pipe.scheduler.timesteps):
            step[0] = number
            extra = {"text_embeds": pooled, "time_ids": size.expand(8, -1)}
            guess = pipe.unet(torch.cat([latents] * 2), timestep, embeds, added_cond_kwargs=extra).sample
            negative, positive = guess.chunk(2)
            latents = pipe.scheduler.step(negative + 5.0 * (positive - negative), timestep, latents).prev_sample
    finally:
        pipe.unet.set_attn_processor(before)
    drawn = torch.cat([sources.latents, *(reader.latents for reader in readers)])
    assert torch.allclose(drawn, latents, atol=1e-3)
    assert not torch.allclose(drawn, plain(pipe, [item[1] for item in frames], [1, 2, 3, 4]), atol=1e-1)


def test_shared_grids_follow_the_unet(pipe: Any) -> None:
    assert shared_grids(pipe.unet, (12, 16)) == [(3, 4), (6, 8)]
    assert shared_grids(pipe.unet, (15, 22)) == [(4, 6), (8, 11)]


def test_a_hub_without_frames_is_plain(pipe: Any) -> None:
    expected = plain(pipe, [LION], [1])
    with wired(pipe.unet, freeu=False) as hub:
        assert isinstance(hub, Hub)
        assert torch.equal(plain(pipe, [LION], [1]), expected)


def test_blending_runs_from_first_to_last() -> None:
    weights = [QueryBlend(0.9, 0.818, 0.1).weight(step, 50) for step in range(7)]
    assert weights[0] == 0.9
    assert weights[4] == pytest.approx(0.818)
    assert weights[5:] == [None, None]
    assert [QueryBlend(0.9, 0.818, 0.1).weight(step, 4) for step in range(3)] == [0.9, pytest.approx(0.818), None]
    assert SharingRules(1, 0.5, False, skip=((0.4, 0.3), (1.0, 0.1))).skip_probability(19, 50) == 0.3
    assert SharingRules(1, 0.5, False, skip=((0.4, 0.3), (1.0, 0.1))).skip_probability(20, 50) == 0.1


def test_groups_are_plain_data() -> None:
    assert TokenGroup(None, {}).reads == {}
