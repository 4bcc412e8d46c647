"""The renderers that share attention: what they hold at SDXL's real shapes, and what they cost over plain SDXL."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.diffusion_shapes import SHAPES, random_pipeline
from katha.protocols import FrameRequest
from katha.renderers.consistory import DIFT_TIMESTEP, inject
from katha.renderers.shared_attention.coupling import (
    Bank,
    Coupling,
    QueryBlend,
    SharingFrame,
    SharingRules,
    SubjectMaps,
)
from katha.renderers.shared_attention.denoise import (
    Denoiser,
    make_scheduler,
    shared_grids,
    shared_layers,
    shown_bytes,
    size_conditioning,
    wired,
)
from katha.renderers.shared_attention.renderer import Session
from katha.schema import Character

__all__ = ["draw_random", "measure_memory", "measure_overhead", "measure_shapes"]

_STEPS, _LATENT, _FRAMES = 50, (128, 128), 5
_PUBLISHED = {"bank": 10.25 * 2**30, "maps": 2.2 * 2**30}
"""Bytes at 1024x1024, 50 steps, half precision: StoryDiffusion's full bank of an identity image, ConsiStory's maps."""
_WORDS = ((2, 3),)
_RULES: Mapping[str, SharingRules | None] = {
    "sdxl": None,
    "consistory": SharingRules(42, 0.5, masked=True, blend=QueryBlend(0.9, 0.818, 0.1)),
    "storydiffusion": SharingRules(42, 0.5, masked=False, skip=((0.4, 0.3), (1.0, 0.1))),
}


def measure_memory() -> dict[str, Any]:
    """Bytes held at 1024x1024 and 50 steps in half precision, by tensors of the real shapes; no weights are needed."""
    import torch

    with torch.device("meta"):
        unet = SHAPES["sdxl"].parts()["unet"].to(torch.float16)
    bank, maps = _step_bank(unet), _map_bytes()
    full = shown_bytes(unet, _LATENT, 2) * _STEPS
    return {
        "bank_bytes_per_identity_image": bank,
        "maps_bytes": maps,
        "target": "a fifth of the baseline at most",
        "baseline": "the published implementations: every hidden state of every step; every layer's maps",
        "baseline_bank_bytes": int(_PUBLISHED["bank"]),
        "recomputed_baseline_bank_bytes": full,
        "baseline_maps_bytes": int(_PUBLISHED["maps"]),
        "bank_ratio": round(bank / _PUBLISHED["bank"], 5),
        "maps_ratio": round(maps / _PUBLISHED["maps"], 5),
    }


def _step_bank(unet: Any) -> int:
    """The most that one identity image ever has in the bank: half of its tokens, one step, all sharing layers."""
    import torch

    rules, bank = SharingRules(42, 0.5, masked=False), Bank()
    coupling = Coupling([SharingFrame((True,), (True,), ((),), 0, "image")], rules, _LATENT)
    grids = shared_grids(unet, _LATENT)
    for step in range(1, 4):
        record = bank.open("only", step)
        coupling.begin(record, step, _STEPS, grids, torch.device("cpu"))
        for layer, (grid, width) in shared_layers(unet, _LATENT).items():
            hidden = torch.zeros(2, grid[0] * grid[1], width, dtype=torch.float16)
            groups = coupling.groups(layer, hidden.shape[1])
            coupling.shown(layer, hidden, groups or [])
        bank.close("only", step, record)
        coupling.end()
    return bank.peak


def _map_bytes() -> int:
    """The most that five frames of one subject ever hold in maps and masks, over 50 steps of 60 layers."""
    import torch

    maps, peak = SubjectMaps(), 0
    for _ in range(_STEPS):
        for _ in range(60):
            maps.add(torch.rand(_FRAMES, 1, 1024, generator=torch.Generator().manual_seed(0)), (32, 32))
        peak = max(peak, maps.nbytes)
        maps.close_step()
        for grid in ((32, 32), (64, 64)):
            maps.labels(grid)
        peak = max(peak, maps.nbytes)
    return peak


def measure_overhead() -> dict[str, Any]:
    """Seconds and UNet rows of a board of five frames against `sdxl`, toy size, eight steps, one thread."""
    import torch

    from katha.renderers.consistory import ConsistoryRenderer
    from katha.renderers.diffusion.sdxl import SdxlRenderer
    from katha.renderers.storydiffusion import StoryDiffusionRenderer
    from tests.support.tiny_diffusion import build

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KATHA_CACHE"] = folder
        model = str(build("sdxl", Path(folder) / "model"))
        table = {
            kind.renderer_name: _timed_board(kind(model, kind.options_class(device="cpu", steps=8)))
            for kind in (SdxlRenderer, ConsistoryRenderer, StoryDiffusionRenderer)
        }
    base = table["sdxl"]
    return {
        "boards": table,
        "baseline": "sdxl, the same frames",
        "ratio": {name: round(row["seconds"] / base["seconds"], 2) for name, row in table.items() if row is not base},
    }


def _timed_board(renderer: Any) -> dict[str, Any]:
    lion = Character(name="lion", kind="lion", appearance="the lion", anchor_prompt="the lion walks")
    prompts = ("roars", "walks past the tree", "in the net", "at night", "by the river")
    board = [
        FrameRequest(f"the lion {what}", 42, 32, 32, scene=number, characters=(lion,))
        for number, what in enumerate(prompts, 1)
    ]
    list(renderer.render_board(board[:1]))
    rows: list[int] = []
    with renderer.pipeline(board) as loaded:
        handle = loaded.pipe.unet.register_forward_pre_hook(lambda _, inputs: rows.append(len(inputs[0])))
    seconds = _timed(lambda: list(renderer.render_board(board)))
    handle.remove()
    return {"seconds": round(seconds, 2), "unet_calls": len(rows), "unet_rows": sum(rows)}


def measure_shapes() -> dict[str, Any]:
    """SDXL at 1024x1024 with random weights on an accelerator: seconds a frame and peak bytes of each renderer."""
    import torch

    if not torch.cuda.is_available():
        return {"measured": "not here: no accelerator"}
    pipe = random_pipeline("sdxl").to("cuda")
    table = {}
    for method in _RULES:
        draw_random(pipe, method, side=1024, steps=2)
        torch.cuda.reset_peak_memory_stats()
        seconds = _timed(lambda method=method: draw_random(pipe, method, side=1024, steps=_STEPS))
        peak = torch.cuda.max_memory_allocated()
        table[method] = {"seconds_per_frame": round(seconds / _FRAMES, 2), "peak_bytes": peak}
    base = table["sdxl"]["seconds_per_frame"]
    return {
        "device": torch.cuda.get_device_name(),
        "date": time.strftime("%Y-%m-%d"),
        "steps": _STEPS,
        "frames": table,
        "baseline": "sdxl: the same loop, frames that read nothing",
        "ratio": {name: round(row["seconds_per_frame"] / base, 2) for name, row in table.items() if name != "sdxl"},
    }


def draw_random(pipe: Any, method: str, *, side: int, steps: int) -> list[Any]:
    """The latents of five frames of one subject from random embeddings, as `method` draws them: two are sources."""
    rules = _RULES[method]
    requests = [FrameRequest(f"frame {number}", number, side, side) for number in range(_FRAMES)]
    shares, words = rules is not None, _WORDS if method == "consistory" else ((),)
    parts = [
        (request, SharingFrame((shares,), (number < 2,), words, number if number < 2 else None, str(number)))
        for number, request in enumerate(requests)
    ]
    sources = [parts[:2]] if shares else []
    readers = [[part] for part in (parts[2:] if shares else parts)]
    with wired(pipe.unet, freeu=True) as hub:
        ids = size_conditioning(pipe, side, side, pipe.unet.dtype)
        denoiser = Denoiser(pipe.unet, hub, make_scheduler(pipe, steps), 5.0, ids)
        rules = rules or SharingRules(42, 1.0, masked=False)
        session = Session(pipe, denoiser, rules, lambda one: _text(pipe, one), sources, readers, Bank())
        if method == "consistory":
            inject(session, *session.first_pass(denoiser.nearest_step(DIFT_TIMESTEP)))
        else:
            session.finish(*session.first_pass())
    return list(session.finished.values())


def _text(pipe: Any, request: FrameRequest) -> dict[str, Any]:
    import torch

    config, dtype = pipe.unet.config, pipe.unet.dtype
    pooled = config.projection_class_embeddings_input_dim - 6 * config.addition_time_embed_dim
    shapes = {"prompt_embeds": (1, 77, config.cross_attention_dim), "pooled_prompt_embeds": (1, pooled)}
    made = {
        name: torch.randn(shape, generator=torch.Generator().manual_seed(request.seed)).to(dtype)
        for name, shape in shapes.items()
    }
    return made | {f"negative_{name}": torch.zeros_like(value) for name, value in made.items()}


def _timed(work: Callable[[], Any]) -> float:
    import torch

    start = time.perf_counter()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - start
