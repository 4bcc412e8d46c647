"""A finished run of three scenes with a bridge after the second, for the tests of exports."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from katha.jsonio import sha256_hex

COLOURS = ("#c33", "#3c3", "#33c", "#cc3")
_SCENES = {1: 1, 2: 2, 4: 3}


def kite_run(
    parent: Path,
    captions: Sequence[str],
    *,
    renderer: str = "sketch",
    panel: Mapping[str, Any] | None = None,
    first: Mapping[str, Any] | None = None,
    drawn: tuple[bytes, str] | None = None,
) -> Path:
    """Write the run into `parent`/kite.

    captions: of the three scenes. panel, first: fields of the first panel and of the first frame. drawn: the first
    frame's picture (PNG) and drawing (SVG); without, all are of one colour each.
    """
    folder = parent / "kite"
    (folder / "panels").mkdir(parents=True)
    frames: list[dict[str, Any]] = []
    for at, colour in enumerate(COLOURS, 1):
        held = io.BytesIO()
        Image.new("RGB", (96, 64), colour).save(held, "PNG")
        png = drawn[0] if drawn is not None and at == 1 else held.getvalue()
        digest = sha256_hex(png)
        (folder / "panels" / f"{digest}.png").write_bytes(png)
        bridge = at not in _SCENES
        frames.append(
            {"index": at, "kind": "bridge" if bridge else "scene", "scene": _SCENES.get(at), "sha256": digest,
             "transition": [2, 3] if bridge else None, "image": f"panels/{digest}.png",
             "prompt": "Ana waits below the roof.", "seed": 42}
        )  # fmt: skip
    if drawn is not None:
        frames[0]["source"] = frames[0]["image"].replace(".png", ".svg")
        (folder / frames[0]["source"]).write_text(drawn[1])
    frames[0] |= first or {}
    board = {"story_id": "kite", "method": "full", "mode": "full", "planner": "rule", "renderer": renderer, "seed": 42}
    panels = [{"index": at, "prompt": text, "caption": text} for at, text in enumerate(captions, 1)]
    panels[0] |= {"dialogue": "Higher!", "notes": "wide", "duration": 3.5, **(panel or {})}
    files = {
        "run.json": {"status": "finished"},
        "storyboard.json": {**board, "plan_sha256": "", "frames": frames},
        "plan.json": {"story_id": "kite", "planner": "rule", "characters": [], "panels": panels, "transitions": []},
        "story.jsonl": {"story_id": "kite", "title": "The Kite & Ana", "story_text": " ".join(captions)},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value) + "\n", encoding="utf-8")
    return folder
