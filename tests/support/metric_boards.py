"""What tests of metrics measure with: boards of plain pictures, contexts, encoders by hand, small real models."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from katha.eval_bridge.bench.boards import JudgedFrame
from katha.eval_bridge.judging.engine import JudgingEngine, Retry
from katha.eval_bridge.metrics import Features, MetricBoard, MetricContext
from katha.eval_bridge.metrics.context import no_pool
from katha.protocols import Judge
from katha.schema import Plan, Scene, StoryRecord
from katha.schema.metrics import MetricCard, MetricMode
from katha.schema.narratives import Narrative
from katha.store import Store

CLIP_CONFIG: Mapping[str, Any] = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "layers": 1, "width": 32, "head_width": 16, "patch_size": 8},
    "text_cfg": {"context_length": 24, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
}


def plain_picture(shade: int, size: tuple[int, int] = (64, 48)) -> bytes:
    """Return a PNG of random pixels, the same for the same number."""
    values = np.random.default_rng(shade).integers(0, 255, (size[1], size[0], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(values).save(buffer, "PNG")
    return buffer.getvalue()


def make_board(
    texts: Sequence[str | None] = ("A fox sleeps.", "The fox runs."),
    *,
    story_id: str = "fox",
    method: str = "mine",
    images: Sequence[bytes] | None = None,
    plan: Plan | None = None,
    references: Sequence[bytes] = (),
    characters: Mapping[str, Sequence[bytes]] | None = None,
    narrative: Narrative | None = None,
) -> MetricBoard:
    """Return a board of a frame per text; None makes an inserted frame, which has no text."""
    told = [text for text in texts if text is not None]
    scenes = [Scene(scene_index=at, scene_text=text) for at, text in enumerate(told, 1)]
    record = StoryRecord(story_id=story_id, title=story_id, story_text=" ".join(told) or "Nothing.", scenes=scenes)
    shown = images if images is not None else [plain_picture(at) for at in range(len(texts))]
    frames, scene = [], 0
    for data, text in zip(shown, texts, strict=True):
        scene += text is not None
        kind = "scene" if text is not None else "bridge"
        frames.append(JudgedFrame(data, kind, scene if text is not None else None, Path("frame.png")))
    return MetricBoard(method, record, tuple(frames), plan, tuple(references), characters or {}, narrative)


def make_context(
    folder: Path,
    judge: Judge | None = None,
    *,
    mode: MetricMode = "paper",
    pool: Sequence[tuple[str, bytes]] = (),
    store: Store | None = None,
) -> MetricContext:
    """Return a context over a cache in `folder`, with one judge called `judge`, and without waits."""
    engine = JudgingEngine({"judge": judge}, store, retry=Retry(first_wait=0.0)) if judge is not None else None
    return MetricContext(
        mode=mode,
        features=Features(folder),
        engine=engine,
        judge="judge" if judge is not None else None,
        pool=(lambda: iter(pool)) if pool else no_pool,
    )


class HandEncoder:
    """Gives the rows that are written down for pictures and texts; counts what it was asked for."""

    def __init__(
        self, images: Mapping[bytes, Sequence[float]], texts: Mapping[str, Sequence[float]] | None = None
    ) -> None:
        self._images, self._texts = images, texts or {}
        self.encoded = 0

    def spec(self) -> Mapping[str, Any]:
        return {"name": "hand", "texts": {name: list(row) for name, row in self._texts.items()}}

    def encode_images(self, images: Sequence[bytes]) -> np.ndarray:
        self.encoded += len(images)
        return np.array([self._images[data] for data in images], float)

    def encode_texts(self, texts: Sequence[str]) -> np.ndarray:
        return np.array([self._texts[text] for text in texts], float)


def tiny_clip(folder: Path, seed: int = 7) -> str:
    """Write a CLIP of one layer with random weights into `folder`; return how open_clip is told to use it."""
    import open_clip
    import torch

    (folder / "tiny-clip.json").write_text(json.dumps(CLIP_CONFIG))
    open_clip.add_model_config(folder)
    torch.manual_seed(seed)
    path = folder / f"tiny-clip-{seed}.pt"
    torch.save(open_clip.create_model("tiny-clip").state_dict(), path)
    return f"tiny-clip@{path}"


def card_row(card: MetricCard) -> str:
    """Return the row of the table in docs/metrics.md that a metric's card makes."""
    modes = ", ".join(card.modes) + (f" ({card.differs})" if card.differs else "")
    cells = (f"`{card.name}`", card.paper, card.formula, modes, ", ".join(card.needs), card.licence, card.vector)
    return "| " + " | ".join(cell.replace("|", "\\|") or "-" for cell in cells) + " |"
