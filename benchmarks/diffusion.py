"""The diffusion renderers: text encoders asked once a prompt, and the published models' shapes on an accelerator."""

from __future__ import annotations

import io
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.diffusion_shapes import LARGE, SHAPES, need_table, random_pipeline
from katha.protocols import FrameRequest

__all__ = ["measure_prompts", "measure_shapes", "measure_work"]

_PROMPTS = (
    "The lion roars at the small mouse.",
    "The mouse gnaws the net.",
    "The lion walks past the tree.",
    "An old woman gives the apple to the crocodile.",
    "The afraid hare walks in the forest at night.",
)
_SEEDS = (42, 123, 2026)
_RUNGS = ("full", "model-offload", "sequential-offload", "quantized")
_SIDE = 1024
_TOY_SIDE = 64


def measure_prompts() -> dict[str, Any]:
    """Five panels with three seeds against `pipe(prompt, generator=...)` for each frame, of SDXL and FLUX.1: processor
    seconds, pixels, a batch of three, and how memory grows over sixty frames of prompts that were never read."""
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        os.environ["KATHA_CACHE"] = folder
        table = {family: _against_the_loop(family, Path(folder) / family) for family in ("sdxl", "schnell")}
    return {
        "frames": len(_PROMPTS) * len(_SEEDS),
        "baseline": "pipe(prompt, generator=...) and its PNG a frame, toy models, eight steps",
        "target": "at most 1.0 of the loop's time with equal pixels; a batch of three at least 1.5 times as fast",
        "models": table,
    }


def _drawer(family: str, model: str, **options: Any) -> Any:
    from katha.renderers.diffusion.flux import FluxOptions, FluxRenderer
    from katha.renderers.diffusion.sdxl import PicturedSdxlOptions, SdxlRenderer

    told = {"device": "cpu", "steps": 8, "any_size": True, **options}
    if family == "sdxl":
        return SdxlRenderer(model, PicturedSdxlOptions(**told))
    return FluxRenderer(model, FluxOptions(**told))


def _against_the_loop(family: str, folder: Path) -> dict[str, Any]:
    """One model: both ways by turns, three times, of which the fastest counts."""
    import numpy as np

    from tests.support.tiny_diffusion import build

    model = str(build(family, folder))
    renderer, batched = _drawer(family, model), _drawer(family, model, batch=3)
    with renderer.pipeline([_request(_PROMPTS[0], 0)]) as loaded:
        pipe = loaded.pipe

    told = {"guidance_scale": renderer.guidance}
    if family != "sdxl":
        told["max_sequence_length"] = renderer.prompt_tokens

    def loop() -> list[bytes]:
        return [_plain(pipe, prompt, seed, **told) for seed in _SEEDS for prompt in _PROMPTS]

    def boards(drawer: Any) -> list[bytes]:
        return [png for seed in _SEEDS for png in drawer.render_board([_request(one, seed) for one in _PROMPTS])]

    theirs, ours = loop(), boards(renderer)
    boards(batched)
    ways: dict[str, Callable[[], Any]] = {
        "loop": loop,
        "ours": lambda: boards(renderer),
        "batch_of_3": lambda: boards(batched),
    }
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(3):
        for name, way in ways.items():
            start = time.process_time()
            way()
            least[name] = min(least[name], time.process_time() - start)
    return {
        "cpu_seconds": {name: round(value, 2) for name, value in least.items()},
        "of_the_loop": round(least["ours"] / least["loop"], 3),
        "batch_is_faster": round(least["loop"] / least["batch_of_3"], 2),
        "same_pixels": sum(np.array_equal(_pixels(a), _pixels(b)) for a, b in zip(theirs, ours, strict=True)),
        "megabytes_after_20_40_60_frames": _memory(renderer),
    }


def _memory(renderer: Any) -> list[float]:
    """Megabytes that the process holds after 20, 40 and 60 frames of prompts of their own."""
    import psutil

    process, held = psutil.Process(), list[float]()
    for turn in range(12):
        list(renderer.render_board([_request(f"{prompt} Again, {turn}.", turn) for prompt in _PROMPTS]))
        if turn % 4 == 3:
            held.append(round(process.memory_info().rss / 1e6, 1))
    return held


def _request(prompt: str, seed: int) -> FrameRequest:
    return FrameRequest(prompt, seed, _TOY_SIDE, _TOY_SIDE)


def _count(pipe: Any) -> dict[str, int]:
    """Calls of the second text encoder from now on, under `encoder`."""
    calls = {"encoder": 0}

    def count(*_: object) -> None:
        calls["encoder"] = calls.get("encoder", 0) + 1

    pipe.text_encoder_2.register_forward_hook(count)
    return calls


def _plain(pipe: Any, prompt: str, seed: int, **told: Any) -> bytes:
    import torch

    image = pipe(
        prompt, generator=torch.Generator().manual_seed(seed), width=_TOY_SIDE, height=_TOY_SIDE, num_inference_steps=8,
        **told,
    ).images[0]  # fmt: skip
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def _pixels(png: bytes) -> Any:
    import numpy as np
    from PIL import Image

    with Image.open(io.BytesIO(png)) as image:
        return np.asarray(image.convert("RGB"))


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    done = work()
    return time.perf_counter() - start, done


def measure_work() -> dict[str, Any]:
    """Return what drawing takes, counted at toy size: the way that diffusers' hooks and single calls
    have it, and ours."""
    from tests.support.tiny_diffusion import build

    with tempfile.TemporaryDirectory() as folder:
        os.environ["KATHA_CACHE"] = folder
        flux, sdxl = (str(build(name, Path(folder) / name)) for name in ("flux", "sdxl"))
        counted = {
            **_transfers(flux),
            "text_encoder_runs": _encoded(sdxl),
            "bridge_unet_rows": _bridge_rows(sdxl),
            "decoded_at_once": _decoded(sdxl),
            "pictures_read": _pictures_read(Path(folder) / "judge"),
        }
    return {
        "counts": counted,
        "baseline": "diffusers' model offload; a prompt encoded for each frame; one bridge after another; the whole "
        "batch in the decoder; a judge's pictures read for each question",
        "ratio": {name: round(old / new, 2) for name, (old, new) in counted.items()},
    }


def _transfers(model: str) -> dict[str, tuple[int, int]]:
    """Of a board of five frames and a second one with another seed, on `model-offload`: how often the denoiser comes to
    the device, and bytes of weights over the bus in both directions."""
    import torch
    from diffusers import FluxPipeline

    from katha.renderers.diffusion.flux import FluxOptions, FluxRenderer

    theirs = FluxPipeline.from_pretrained(model)
    theirs.set_progress_bar_config(disable=True)
    theirs.enable_model_cpu_offload(device="cpu")
    parts = {id(part): part for part in theirs.components.values() if isinstance(part, torch.nn.Module)}
    brought: list[int] = []  # diffusers' hooks bring to `cpu:0` and take back to `cpu`
    original = torch.nn.Module.to

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        if id(self) in parts and args and isinstance(args[0], torch.device) and args[0].index is not None:
            brought.append(id(self))
        return original(self, *args, **kwargs)

    torch.nn.Module.to = counted  # type: ignore[method-assign]
    try:
        for _ in range(2 * len(_PROMPTS)):
            theirs(_PROMPTS[0], width=32, height=32, num_inference_steps=1, output_type="pt")
    finally:
        torch.nn.Module.to = original  # type: ignore[method-assign]
    sizes = {key: sum(one.nbytes for one in (*part.parameters(), *part.buffers())) for key, part in parts.items()}
    renderer = FluxRenderer(model, FluxOptions(device="cpu", steps=1, any_size=True, memory="model-offload"))
    for seed in (1, 2):
        list(renderer.render_board([_request(one, seed) for one in _PROMPTS]))
    with renderer.pipeline([_request(_PROMPTS[0], 1)]) as loaded:
        transfers = loaded.parking.transfers if loaded.parking is not None else []
    ours = [move for move in transfers if move.name == "transformer" and move.comes]
    return {
        "denoiser_brought": (brought.count(id(theirs.transformer)), len(ours)),
        "bytes_moved": (2 * sum(sizes[key] for key in brought), sum(move.nbytes for move in transfers)),
    }


def _encoded(model: str) -> tuple[int, int]:
    """Prompts through the second text encoder for a board of five with three seeds: a frame each, and here."""
    from katha.renderers.diffusion.sdxl import SdxlOptions, SdxlRenderer

    renderer = SdxlRenderer(model, SdxlOptions(device="cpu", steps=1, guidance=1.0, any_size=True))
    with renderer.pipeline([_request(_PROMPTS[0], 0)]) as loaded:
        calls = _count(loaded.pipe)
    for seed in _SEEDS:
        list(renderer.render_board([_request(one, seed) for one in _PROMPTS]))
    return len(_SEEDS) * len(_PROMPTS), calls["encoder"]


def _pictures_read(folder: Path) -> tuple[int, int]:
    """Pictures through a local judge's eye for three questions about a board of three: each asked alone, and here."""
    from benchmarks.prefix_reuse import prompts
    from katha.eval_bridge.judges.local import LocalJudge
    from katha.protocols import Evidence
    from tests.support.tiny_vlm import build, pictures

    model, read = str(build("qwen2_5_vl", folder)), []
    for reuse in ("off", "batched"):
        judge, seen = LocalJudge(model, device="cpu", reuse=reuse, max_new_tokens=4), list[int]()
        eye = judge._load().loaded.model.model.visual
        eye.register_forward_pre_hook(lambda _, __, given: seen.append(len(given["grid_thw"])), with_kwargs=True)  # noqa: B023
        list(judge.ask(Evidence("image", pictures()), prompts()[:3]))
        read.append(sum(seen))
    return read[0], read[1]


def _bridge_rows(model: str) -> tuple[int, int]:
    """Rows of the UNet for the bridges of three seeds that are not kept: one by one, and together."""
    from katha.protocols import BoardContext
    from katha.renderers.consistory import ConsistoryOptions, ConsistoryRenderer
    from katha.schema import Character

    lion = Character(name="lion", kind="lion", appearance="the lion", anchor_prompt="the lion walks")
    board = [FrameRequest(one, 42, 32, 32, scene=at, characters=(lion,)) for at, one in enumerate(_PROMPTS, 1)]
    bridges = [FrameRequest("The lion walks.", seed, 32, 32, kind="bridge", characters=(lion,)) for seed in _SEEDS]
    renderer, rows = ConsistoryRenderer(model, ConsistoryOptions(device="cpu", steps=4, keep_gib=0.0)), list[int]()
    context = BoardContext(tuple(board), tuple(renderer.render_board(board)), 1)
    with renderer.pipeline(board) as loaded:
        handle = loaded.pipe.unet.register_forward_pre_hook(lambda _, given: rows.append(len(given[0])))
    alone = [renderer.insert_frame(one, context) for one in bridges]
    apart = sum(rows)
    together = list(renderer.insert_frames(bridges, context))
    handle.remove()
    if alone != together:
        raise RuntimeError("bridges that are drawn together differ from those drawn alone")
    return apart, sum(rows) - apart


def _decoded(model: str) -> tuple[int, int]:
    """Frames that the decoder holds at once for a batch of four: as diffusers has it, and here."""
    from katha.renderers.diffusion.sdxl import SdxlOptions, SdxlRenderer

    renderer, held = SdxlRenderer(model, SdxlOptions(device="cpu", steps=1, batch=4, any_size=True)), list[int]()
    with renderer.pipeline([_request(_PROMPTS[0], 0)]) as loaded:
        loaded.pipe.vae.decoder.register_forward_pre_hook(lambda _, given: held.append(len(given[0])))
    list(renderer.render_board([_request(one, 1) for one in _PROMPTS[:4]]))
    ours = max(held)
    loaded.pipe.vae.disable_slicing()
    list(renderer.render_board([_request(one, 2) for one in _PROMPTS[:4]]))
    return max(held), ours


def measure_shapes() -> dict[str, Any]:
    """Return what each rung of the published models needs at 1024x1024 by calculation and, of FLUX.1-dev and SDXL with
    random weights where there is an accelerator, seconds a frame and the peak of its memory."""
    import torch

    table: dict[str, Any] = {name: {"calculated_bytes": need_table(name, _SIDE * _SIDE)} for name in (*SHAPES, *LARGE)}
    if not torch.cuda.is_available():
        return {**table, "measured": "not here: no accelerator"}
    for name, row in ((name, table[name]) for name in SHAPES):
        row["measured"] = {rung: _measure(name, rung) for rung in _RUNGS}
    return {**table, "device": torch.cuda.get_device_name(), "date": time.strftime("%Y-%m-%d")}


def _measure(name: str, rung: Any) -> Mapping[str, Any]:
    """Seconds and peak bytes of one frame on `rung`, after one to warm up."""
    import gc

    import torch

    from katha.renderers.diffusion.placement import apply_rung

    shape = SHAPES[name]
    pipe = random_pipeline(name)
    apply_rung(pipe, rung, "cuda", shape.dtype, shape.denoiser)
    pipe.set_progress_bar_config(disable=True)
    inputs = {key: value.to("cuda") for key, value in shape.inputs(getattr(torch, shape.dtype)).items()}

    def draw(drawer: Any = pipe) -> None:
        generator = torch.Generator("cpu").manual_seed(42)
        drawer(**inputs, generator=generator, width=_SIDE, height=_SIDE, num_inference_steps=shape.steps)
        torch.cuda.synchronize()

    draw()
    torch.cuda.reset_peak_memory_stats()
    seconds, _ = _timed(draw)
    peak = torch.cuda.max_memory_allocated()
    del pipe, draw
    gc.collect()
    torch.cuda.empty_cache()
    return {"seconds_per_frame": round(seconds, 2), "peak_bytes": peak, "steps": shape.steps}
