"""Real shapes with random weights on an accelerator, in one call of under ten minutes: `python -m benchmarks gpu`.

Seconds a frame, exact and fast, the peak of the memory, and judge packets a second. Random weights take as long as
trained ones: only the first-block cache depends on values, so that its gain is not to be had here, and the judge's eye
is a toy: its figure is that of the language model. Without an accelerator the same runs at toy size, which tries the
script and measures nothing.

Each part runs in a process of its own with a share of the time, and prints each figure when it has it: one that fails,
hangs or is killed loses no other, nor what it had found.
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import prefix_reuse, shared_attention
from benchmarks.diffusion_shapes import SHAPES, random_pipeline

__all__ = ["measure"]

_BUDGET_S = 540.0
_LEAST_S = 20.0
"""What a part needs at least: imports take most of it."""
_ROOT = Path(__file__).parents[1]
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
        """Return where it is drawn."""
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

    @contextmanager
    def building(self) -> Iterator[None]:
        """Context manager: models are made on the device and in its dtype, not on the CPU in float32."""
        import torch

        with ExitStack() as stack:
            if not self.toy:
                before = torch.get_default_dtype()
                stack.callback(torch.set_default_dtype, before)
                torch.set_default_dtype(torch.bfloat16)
                stack.enter_context(torch.device("cuda"))
            yield


Found = Iterator[tuple[str, object]]
"""What a part finds, name by name."""


def measure(toy: bool | None = None, budget_s: float = _BUDGET_S) -> dict[str, Any]:
    """Run every part for which there is time; each prints a line of its own when it is done, or was stopped.

    A part that fails says why; a part that is stopped keeps what it had found. The first parts are worth most.
    """
    import torch

    toy, start = not torch.cuda.is_available() if toy is None else toy, time.perf_counter()
    table: dict[str, dict[str, Any]] = {}
    for name, share in _SHARES.items():
        left = budget_s - (time.perf_counter() - start)
        table[name] = _apart(name, toy, min(share, left)) if left > _LEAST_S else {"left_out": "no time is left"}
        print(json.dumps({"benchmark": f"gpu: {name}", **table[name]}), flush=True)
    return {
        "device": "toy size on the CPU: no figure counts" if toy else torch.cuda.get_device_name(),
        "date": time.strftime("%Y-%m-%d"),
        "side": Place(toy).side,
        **table,
        "seconds": round(time.perf_counter() - start, 1),
    }


def _apart(name: str, toy: bool, seconds: float) -> dict[str, Any]:
    """Return what the part found in a process of its own, which is ended after so many `seconds`."""
    command = [sys.executable, "-m", "benchmarks.gpu", name, *(["toy"] if toy else [])]
    try:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired as stopped:
        return _figures(stopped.stdout) | {"stopped": f"after {seconds:.0f} s"}
    found = _figures(done.stdout)
    if done.returncode and "failed" not in found:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        found["failed"] = f"exit status {done.returncode}: {said[-1] if said else 'no word'}"
    return found


def _figures(printed: bytes | None) -> dict[str, Any]:
    """Return the figures of the whole lines that a part has printed; libraries may print others between them."""
    found: dict[str, Any] = {}
    for line in (printed or b"").decode("utf-8", "replace").splitlines():
        try:
            row = json.loads(line)
        except ValueError:
            continue
        found |= row if isinstance(row, dict) else {}
    return found


def run_part(name: str, place: Place) -> None:
    """Print each figure of a part as a line, and why it fails, if it does."""
    start = time.perf_counter()
    try:
        for key, value in _PARTS[name](place):
            print(json.dumps({key: value}), flush=True)
    except Exception as error:  # whatever it is, the other parts and what was found are worth having
        reason = (str(error).strip().splitlines() or [""])[0]
        print(json.dumps({"failed": f"{type(error).__name__}: {reason}"}), flush=True)
    print(json.dumps({"part_s": round(time.perf_counter() - start, 1)}), flush=True)


def _draw(place: Place, name: str) -> Found:
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

    yield "steps", shape.steps
    yield "exact", seconds_a_frame()
    yield "batch_of_4", seconds_a_frame(4)
    if shape.denoiser == "transformer":
        found = shortcuts_of(Calling(away="never"), place.device, "full", adapted=False, steps=shape.steps)
        take_shortcuts(denoiser, found)
        yield "fast", {"shortcuts": dict(found.spec()), **seconds_a_frame()}


def _embeddings(pipe: Any) -> dict[str, Any]:
    """Embeddings of a prompt for a toy pipeline."""
    import torch

    if hasattr(pipe, "unet"):
        shapes = {"prompt_embeds": (1, 77, 80), "pooled_prompt_embeds": (1, 48)}
        made = {name: torch.randn(size) for name, size in shapes.items()}
        return made | {f"negative_{name}": torch.zeros_like(value) for name, value in made.items()}
    return {"prompt_embeds": torch.randn(1, 16, 32), "pooled_prompt_embeds": torch.randn(1, 32)}


def _share(place: Place) -> Found:
    """Five frames of one subject by each of the renderers that share attention, in seconds a frame of 50 steps."""
    pipe, steps = place.pipeline("sdxl"), 2 * _STEPS
    for method in ("sdxl", "consistory", "storydiffusion"):
        shared_attention.draw_random(pipe, method, side=place.side, steps=2)
        place.clear()
        seconds = place.timed(lambda: shared_attention.draw_random(pipe, method, side=place.side, steps=steps))  # noqa: B023
        yield method, {"seconds_per_frame": round(seconds / steps * 50 / 5, 2), "peak": place.peak()}


def _judge(place: Place) -> Found:
    """Packets a second of a local judge that reads a board of five pictures once for six questions."""
    from katha.eval_bridge.judges.local import LocalJudge
    from tests.support.tiny_vlm import build

    with tempfile.TemporaryDirectory() as folder:
        shape = _TOY_JUDGE if place.toy else _JUDGE
        with place.building():
            model = build("qwen2_5_vl", Path(folder), side=64 if place.toy else prefix_reuse.SIDE, **shape)
        place.clear()
        prompts = prefix_reuse.prompts()[: 2 if place.toy else None]
        boards = [prefix_reuse.board(seed) for seed in range(2 if place.toy else 4)]
        yield "questions", len(prompts)
        for reuse in ("batched", "off"):
            judge = LocalJudge(
                str(model), device=place.device, dtype="float32" if place.toy else "bfloat16", reuse=reuse
            )
            prefix_reuse.ask(judge, boards[0], prompts)
            place.clear()
            walls = [prefix_reuse.ask(judge, board, prompts)[0] for board in boards[1:]]
            rates = {"packets_per_s": round(len(walls) / sum(walls), 3), "peak": place.peak()}
            yield reuse, rates | {"questions_per_s": round(len(walls) * len(prompts) / sum(walls), 2)}
            judge.close()
            place.clear()


_PARTS: Mapping[str, Callable[[Place], Found]] = {
    "flux-dev": lambda where: _draw(where, "flux-dev"),
    "sdxl": lambda where: _draw(where, "sdxl"),
    "judge": _judge,
    "sharing": _share,
}
_SHARES: Mapping[str, float] = {"flux-dev": 200.0, "sdxl": 90.0, "judge": 130.0, "sharing": 110.0}
"""Seconds that each part may take at most: what it takes on an H200, by calculation, is a third of it."""

if __name__ == "__main__":
    run_part(sys.argv[1], Place("toy" in sys.argv[2:]))
