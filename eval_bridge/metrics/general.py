"""Measures that everybody knows: CLIP-T, CLIP-I, DINO similarity, VQAScore, LPIPS between neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured
from katha.eval_bridge.metrics.encoders import OpenClipEncoder
from katha.eval_bridge.metrics.features import unit
from katha.schema.metrics import MetricCard, MetricPart, MetricValue

CLIP = "ViT-L-14@openai"
"""The model that VinaBench and ViStoryBench name; open_clip's own list has its weights (MIT)."""


class ClipText:
    """CLIP-T: how near each frame is to its scene's text, as the cosine of CLIP's vectors."""

    card: ClassVar[MetricCard] = MetricCard(
        name="clip-t",
        title="CLIP-T",
        paper="Radford et al. 2021; as CLIPScore without its factor 2.5, Hessel et al. 2021, Eq. 1",
        formula="cos(CLIP(frame), CLIP(scene text)), mean over a board's scene frames",
        level="frame",
        parts=(MetricPart(name="cosine", about="frame to scene text", low=-1.0),),
        needs=("images", "texts"),
        models=(CLIP,),
        licence="open_clip MIT, weights MIT",
        cost="one ViT-L/14 pass, kept by content",
        vector="unit vectors by hand in tests/eval_bridge/test_metrics_general.py",
    )

    def __init__(self, *, model: str = CLIP, device: str = "cpu") -> None:
        self._encoder = OpenClipEncoder(model, device=device, cut=True)

    def spec(self) -> Mapping[str, Any]:
        """Name, version and the encoder."""
        return {"name": "clip-t", "version": 1, "encoder": dict(self._encoder.spec())}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield one cosine per frame; a frame without a text is a null."""
        return frame_by_frame(board, context, self._encoder)


def frame_by_frame(board: MetricBoard, context: MetricContext, encoder: OpenClipEncoder) -> Iterator[MetricValue]:
    """Yield the cosine of each frame and its text."""
    texts = board.texts()
    if not any(texts):
        raise Unmeasured("no frame has a text of its own: the story has no scenes and no plan")
    pictures = unit(context.features.images(encoder, board.images))
    words = unit(context.features.texts(encoder, [text or "" for text in texts]))
    for at, text in enumerate(texts):
        if text:
            yield board.value("cosine", float(pictures[at] @ words[at]), frame=at + 1)
        else:
            yield board.value("cosine", None, frame=at + 1, reason="the frame has no text of its own")
