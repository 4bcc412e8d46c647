"""Questions a second of the judge `local:`: six questions about one board of five pictures, with and without reuse.

The model has random weights and the shape of a small Qwen2.5-VL: 486 ids for each picture of 768x512 before every
question, as many as the real models' processor makes of it, and answers of about 30 ids under the same grammar. The
baseline is a loop that puts each whole prompt to the same model by `generate`, as a user would. The figures include
preparing the pictures; the model is warm. Processor time is less disturbed by other work on the machine than wall time.
"""

from __future__ import annotations

import logging
import tempfile
import time
from operator import truediv
from pathlib import Path
from statistics import median
from typing import Any

from katha.eval_bridge.packets.instructions import reply_schema
from katha.protocols import Evidence, FrameRequest, Judge, JudgePrompt, JudgeReply
from katha_sketch.drawing import SketchRenderer

__all__ = ["SIDE", "ask", "board", "measure", "prompts"]

_RUNS = 3
_SHAPE = {
    "hidden_size": 768,
    "intermediate_size": 2048,
    "num_hidden_layers": 6,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
}
SIDE = 353
"""Bound of a picture's sides in pixels: patches of 8 then make 27 x 18 ids, as patches of 14 do at the full size."""
_SCENES = (
    "Forest by day. The angry lion roars at the small grey mouse. The mouse is afraid.",
    "Forest by day. The lion sleeps. A tree.",
    "Forest by day. The sad lion. A net.",
    "Forest by day. The mouse bites the net. The lion.",
    "Forest by day. The happy lion and the happy mouse.",
)
_OPTIONS = ("The mouse bites the net", "The lion sleeps", "The net is old", "It rains", "Unclear")
_QUESTIONS = (
    "Why is the lion free at the end?",
    "What does the mouse do to the net?",
    "How does the lion feel when the net holds him?",
    "What happens after the lion roars at the mouse?",
    "Which comes first, the net or the sleep?",
    "What does the story teach about small friends?",
)


def board(seed: int) -> Evidence:
    """Five pictures of 768x512."""
    requests = [FrameRequest(scene, seed, 768, 512) for scene in _SCENES]
    return Evidence("image", tuple(SketchRenderer().render_board(requests)))


def prompts() -> list[JudgePrompt]:
    """Six questions with the same five options."""
    schema = reply_schema("image", _OPTIONS)
    return [JudgePrompt(text, "causal", "Choose one option.", _OPTIONS, schema) for text in _QUESTIONS]


def ask(judge: Judge, shown: Evidence, asked: list[JudgePrompt]) -> tuple[float, float, list[JudgeReply]]:
    """Wall seconds, processor seconds and the replies."""
    wall, work = time.perf_counter(), time.process_time()
    replies = list(judge.ask(shown, asked))
    return time.perf_counter() - wall, time.process_time() - work, replies


def measure() -> dict[str, Any]:
    """Medians over three boards, each new to the judges, who take turns so that other load on the machine meets all."""
    import torch

    from katha.eval_bridge.judges.local import LocalJudge
    from tests.support.tiny_vlm import build

    logging.getLogger("transformers").setLevel(logging.ERROR)
    torch.set_num_threads(1)  # threads that wait for one another would measure the machine's other load
    asked = prompts()
    walls: dict[str, list[float]] = {}
    works: dict[str, list[float]] = {}
    raw: dict[str, list[str | None]] = {}
    with tempfile.TemporaryDirectory() as folder:
        model = build("qwen2_5_vl", Path(folder), side=SIDE, **_SHAPE)
        judges = {
            reuse: LocalJudge(str(model), device="cpu", reuse=reuse) for reuse in ("off", "sequential", "batched")
        }
        for judge in judges.values():
            ask(judge, board(99), asked[:2])
        for seed in range(_RUNS):
            for reuse, judge in judges.items():
                wall, work, replies = ask(judge, board(seed), asked)
                walls.setdefault(reuse, []).append(wall)
                works.setdefault(reuse, []).append(work)
                raw.setdefault(reuse, []).extend(reply.raw for reply in replies)
    rates = {reuse: len(asked) / median(seconds) for reuse, seconds in walls.items()}
    paired = {name: median(map(truediv, of["off"], of["batched"])) for name, of in (("wall", walls), ("cpu", works))}
    return {
        "questions_per_s": round(rates["batched"], 2),
        "sequential_per_s": round(rates["sequential"], 2),
        "baseline": "each whole prompt to the same model",
        "baseline_per_s": round(rates["off"], 2),
        "ratio": round(paired["wall"], 1),
        "cpu_ratio": round(paired["cpu"], 1),
        "target_ratio": 4.0,
        "threads": 1,
        "prefix_tokens": replies[-1].usage["cached"],
        "same_answers": raw["off"] == raw["batched"] == raw["sequential"],
    }
