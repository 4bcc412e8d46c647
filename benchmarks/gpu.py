"""Real shapes with random weights on an accelerator, in one call of under ten minutes: `python -m benchmarks gpu`.

Seconds a frame, exact and fast, the peak of the memory, and judge packets a second. Random weights take as long as
trained ones: only the first-block cache depends on values, so that its gain is not to be had here. Without an
accelerator the same runs at toy size, which tries the script and measures nothing.
"""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import prefix_reuse, shared_attention
from benchmarks.diffusion_shapes import SHAPES, random_pipeline

__all__ = ["measure"]

_BUDGET_S = 540.0
_STEPS = 4
"""Steps that are timed; the seconds of a frame are those of one step times the model's own number."""
_JUDGE = {
    "hidden_size": 2048,
    "intermediate_size": 11008,
    "num_hidden_layers": 36,
    "num_attention_heads": 16,
    "num_key_value_heads": 2,
}
"""The language model of Qwen2.5-VL-3B."""
_TOY_JUDGE = {
    "hidden_size": 32,
    "intermediate_size": 37,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


@dataclass(frozen=True)
class Place:
    """Where and how large: `toy` is a model of a few layers and frames of 32x32 on the CPU."""

    toy: bool

    @property
    def device(self) -> str:
        """Where it is drawn."""
        return "cpu" if self.toy else "cuda"

    @property
    def side(self) -> int:
        """Pixels of a frame's sides."""
        return 32 if self.toy else 1024

    def pipeline(self, name: str) -> Any:
        """Return the pipeline of `name` with random weights, without text encoders: embeddings are given."""
        if self.toy:
            from tests.support.tiny_diffusion import FAMILIES

            pipe = FAMILIES["sdxl" if name == "sdxl" else "flux"]()
        else:
            pipe = random_pipeline(name, device="cuda")
        pipe.set_progress_bar_config(disable=True)
        return pipe.to(self.device)

    def clear(self) -> None:
        """Give memory back and forget its peak."""
        gc.collect()
        if not self.toy:
            import torch

            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def timed(self, work: Callable[[], Any]) -> float:
        """Return the seconds of `work`, the device's included."""
        import torch

        start = time.perf_counter()
        work()
        if not self.toy:
            torch.cuda.synchronize()
        return time.perf_counter() - start

    def peak(self) -> int | None:
        """Return the most bytes that were held on the device; None at toy size."""
        import torch

        return None if self.toy else int(torch.cuda.max_memory_allocated())


def measure(toy: bool | None = None, budget_s: float = _BUDGET_S) -> dict[str, Any]:
    """Run every part for which there is time; a part that fails says why, and the others go on."""
    import torch

    place, start = Place(not torch.cuda.is_available() if toy is None else toy), time.perf_counter()
    parts: dict[str, Callable[[Place], Mapping[str, Any]]] = {
        "sdxl": lambda where: _draw(where, "sdxl"),
        "sharing": _share,
        "flux-dev": lambda where: _draw(where, "flux-dev"),
        "judge": _judge,
    }
    table: dict[str, Any] = {}
    for name, part in parts.items():
        if time.perf_counter() - start > budget_s * 0.6:
            table[name] = {"left_out": "no time is left"}
            continue
        place.clear()
        try:
            table[name] = dict(part(place))
        except (RuntimeError, MemoryError) as error:
            table[name] = {"failed": str(error).splitlines()[0]}
    return {
        "device": "toy size on the CPU: no figure counts" if place.toy else torch.cuda.get_device_name(),
        "date": time.strftime("%Y-%m-%d"),
        "side": place.side,
        **table,
        "seconds": round(time.perf_counter() - start, 1),
    }


def _draw(place: Place, name: str) -> Mapping[str, Any]:
    """A frame of `name`, exact; one of a batch of four; and, of a transformer, fast."""
    import torch

    from katha.renderers.diffusion.options import Calling
    from katha.renderers.diffusion.speed import shortcuts_of, take_shortcuts

    shape, pipe = SHAPES[name], place.pipeline(name)
    pipe.vae.enable_slicing()
    denoiser = getattr(pipe, shape.denoiser)
    made = _embeddings(pipe) if place.toy else shape.inputs(getattr(torch, shape.dtype))
    inputs = {key: value.to(place.device, denoiser.dtype) for key, value in made.items()}

    def seconds_a_frame(batch: int = 1) -> dict[str, Any]:
        given = {key: torch.cat([value] * batch) for key, value in inputs.items()}

        def draw(steps: int) -> Any:
            generators = [torch.Generator("cpu").manual_seed(seed) for seed in range(batch)]
            size = {"width": place.side, "height": place.side}
            return pipe(**given, **size, generator=generators, num_inference_steps=steps, output_type="pt").images

        draw(1)
        place.clear()
        one, several = (place.timed(lambda steps=steps: draw(steps)) for steps in (1, 1 + _STEPS))
        step = max(0.0, several - one) / _STEPS
        whole = one + (shape.steps - 1) * step
        return {"seconds_per_frame": round(whole / batch, 3), "step_s": round(step / batch, 4), "peak": place.peak()}

    table: dict[str, Any] = {"steps": shape.steps, "exact": seconds_a_frame(), "batch_of_4": seconds_a_frame(4)}
    if shape.denoiser == "transformer":
        found = shortcuts_of(Calling(away="never"), place.device, "full", adapted=False, steps=shape.steps)
        take_shortcuts(denoiser, found)
        table["fast"] = {"shortcuts": dict(found.spec()), **seconds_a_frame()}
    return table


def _embeddings(pipe: Any) -> dict[str, Any]:
    """Embeddings of a prompt for a toy pipeline."""
    import torch

    if hasattr(pipe, "unet"):
        shapes = {"prompt_embeds": (1, 77, 80), "pooled_prompt_embeds": (1, 48)}
        made = {name: torch.randn(size) for name, size in shapes.items()}
        return made | {f"negative_{name}": torch.zeros_like(value) for name, value in made.items()}
    return {"prompt_embeds": torch.randn(1, 16, 32), "pooled_prompt_embeds": torch.randn(1, 32)}


def _share(place: Place) -> Mapping[str, Any]:
    """Five frames of one subject by each of the renderers that share attention, in seconds a frame of 50 steps."""
    pipe, table = place.pipeline("sdxl"), {}
    for method in ("sdxl", "consistory", "storydiffusion"):
        shared_attention.draw_random(pipe, method, side=place.side, steps=2)
        place.clear()
        steps = 2 * _STEPS
        seconds = place.timed(lambda: shared_attention.draw_random(pipe, method, side=place.side, steps=steps))  # noqa: B023
        table[method] = {"seconds_per_frame": round(seconds / steps * 50 / 5, 2), "peak": place.peak()}
    return table


def _judge(place: Place) -> Mapping[str, Any]:
    """Packets a second of a local judge that reads a board of five pictures once for six questions."""
    from katha.eval_bridge.judges.local import LocalJudge
    from tests.support.tiny_vlm import build

    with tempfile.TemporaryDirectory() as folder:
        shape = _TOY_JUDGE if place.toy else _JUDGE
        model = build("qwen2_5_vl", Path(folder), side=64 if place.toy else prefix_reuse.SIDE, **shape)
        judge = LocalJudge(str(model), device=place.device, dtype="float32" if place.toy else "bfloat16")
        prompts = prefix_reuse.prompts()[: 2 if place.toy else None]
        prefix_reuse.ask(judge, prefix_reuse.board(99), prompts)
        place.clear()
        wall, _, replies = prefix_reuse.ask(judge, prefix_reuse.board(0), prompts)
        return {"packets_per_s": round(len(replies) / wall, 2), "peak": place.peak(), "questions": len(replies)}
