"""What the sharing renderers hold at SDXL's real shapes, and, on an accelerator, what they cost there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).parents[2]
TOY = """
import torch
from pathlib import Path
from diffusers import StableDiffusionXLPipeline
from benchmarks.shared_attention import draw_random
from tiny_diffusion import build
torch.set_num_threads(1)
pipe = StableDiffusionXLPipeline.from_pretrained(build("sdxl", Path({folder!r})))
methods = ("sdxl", "consistory", "storydiffusion")
one, two, three = (torch.cat(draw_random(pipe, method, side=32, steps=2)) for method in methods)
print(list(one.shape), *(not torch.allclose(a, b, atol=1e-2) for a, b in ((one, two), (one, three), (two, three))))
"""


def python(*words: str) -> str:
    paths = {"PYTHONPATH": str(ROOT / "tests" / "support")}
    done = subprocess.run(
        [sys.executable, *words], cwd=ROOT, env=os.environ | paths, capture_output=True, text=True, timeout=280
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def benchmark(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(python("-m", "benchmarks", name))
    return found


def test_bank_and_maps_are_a_fifth_of_the_published_figures_at_most() -> None:
    measured = benchmark("sharing_memory")
    assert measured["recomputed_baseline_bank_bytes"] == pytest.approx(measured["baseline_bank_bytes"], rel=1e-3)
    assert 0 < measured["bank_ratio"] <= 0.2
    assert 0 < measured["maps_ratio"] <= 0.2


def test_the_script_for_real_shapes_draws_at_toy_size(tmp_path: Path) -> None:
    assert python("-c", TOY.format(folder=str(tmp_path / "model"))).split("\n")[-2] == "[5, 4, 16, 16] True True True"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an accelerator")
def test_real_shapes_fit_an_accelerator() -> None:
    assert all(row["seconds_per_frame"] > 0 for row in benchmark("sharing_shapes")["frames"].values())
