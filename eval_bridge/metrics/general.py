"""Measures that everybody knows: CLIP-T, CLIP-I, DINO similarity, VQAScore, LPIPS between neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

from katha.configs import load_prompt
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured, share_of
from katha.eval_bridge.metrics.encoders import OpenClipEncoder, PerceptualDistance, StructuralSimilarity, VisionEncoder
from katha.eval_bridge.metrics.features import ImageEncoder, PairMeter, unit
from katha.protocols import PlainPrompt
from katha.schema.metrics import MetricCard, MetricPart, MetricValue

CLIP = "ViT-L-14@openai"
"""The model that VinaBench and ViStoryBench name; open_clip's own list has its weights (MIT)."""

DINO = "facebook/dinov2-base"
NO_TEXT = "the frame has no text of its own"
ONE_FRAME = "the board has one frame"
_NO_TEXTS = "no frame has a text of its own: the story has no scenes and no plan"
_NO_REFERENCES = "the story has no reference pictures: give --references"
_LIKENESS = (
    MetricPart(name="reference", about="frame to the gold picture of its scene", low=-1.0),
    MetricPart(name="neighbours", about="frame to the frame before it", low=-1.0, better="neither"),
)
_PROVEN = "tests/eval_bridge/test_metrics_general.py"


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
        vector=f"the model's own vectors, {_PROVEN}",
    )

    def __init__(self, *, model: str = CLIP, device: str = "cpu") -> None:
        self._encoder = OpenClipEncoder(model, device=device, cut=True)

    def spec(self) -> Mapping[str, Any]:
        """Name, version and the encoder."""
        return {"name": "clip-t", "version": 1, "encoder": dict(self._encoder.spec())}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield one cosine per frame; a frame without a text is a null."""
        texts = board.texts()
        if not any(texts):
            raise Unmeasured(_NO_TEXTS)
        pictures = unit(context.features.images(self._encoder, board.images))
        words = unit(context.features.texts(self._encoder, [text or "" for text in texts]))
        for at, text in enumerate(texts):
            if text:
                yield board.value("cosine", _cosine(pictures[at] @ words[at]), frame=at + 1)
            else:
                yield board.value("cosine", None, frame=at + 1, reason=NO_TEXT)


class ClipImage:
    """CLIP-I: how near each frame is to its scene's gold picture, and to the frame before it, by CLIP."""

    card: ClassVar[MetricCard] = MetricCard(
        name="clip-i",
        title="CLIP-I",
        paper="Gal et al., Textual Inversion, 2022, Sec. 5.2; Ruiz et al., DreamBooth, 2023, Sec. 4.2",
        formula="cos(CLIP(frame), CLIP(gold picture of its scene)); neighbours: of adjacent frames",
        level="frame",
        parts=_LIKENESS,
        needs=("images", "references"),
        models=(CLIP,),
        licence="open_clip MIT, weights MIT",
        cost="one ViT-L/14 pass, kept by content",
        vector=f"the model's own vectors, {_PROVEN}",
    )

    def __init__(self, *, model: str = CLIP, device: str = "cpu") -> None:
        self._encoder = OpenClipEncoder(model, device=device, cut=True)

    def spec(self) -> Mapping[str, Any]:
        """Name, version and the encoder."""
        return {"name": "clip-i", "version": 1, "encoder": dict(self._encoder.spec())}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield a cosine per frame with its gold picture, and per pair of adjacent frames."""
        return _likeness(board, context, self._encoder)


class DinoLikeness:
    """DINO similarity: the same as CLIP-I by DINOv2's class token, which minds instances more than classes."""

    card: ClassVar[MetricCard] = MetricCard(
        name="dino",
        title="DINO similarity",
        paper="Ruiz et al., DreamBooth, 2023, Sec. 4.2 (with DINO ViT-S/16); here Oquab et al., DINOv2, 2023",
        formula="cos(DINO(frame), DINO(gold picture of its scene)); neighbours: of adjacent frames",
        level="frame",
        parts=_LIKENESS,
        needs=("images", "references"),
        models=(DINO,),
        licence="transformers Apache-2.0, weights Apache-2.0",
        cost="one ViT-B/14 pass, kept by content",
        vector=f"the model's own class tokens, {_PROVEN}",
    )

    def __init__(self, *, model: str = DINO, device: str = "cpu") -> None:
        self._encoder = VisionEncoder(model, device=device)

    def spec(self) -> Mapping[str, Any]:
        """Name, version and the encoder."""
        return {"name": "dino", "version": 1, "encoder": dict(self._encoder.spec())}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield a cosine per frame with its gold picture, and per pair of adjacent frames."""
        return _likeness(board, context, self._encoder)


def _likeness(board: MetricBoard, context: MetricContext, encoder: ImageEncoder) -> Iterator[MetricValue]:
    rows = unit(context.features.images(encoder, board.images))
    if len(rows) < 2:
        yield board.value("neighbours", None, reason=ONE_FRAME)
    for at in range(1, len(rows)):
        yield board.value("neighbours", _cosine(rows[at - 1] @ rows[at]), frame=at + 1)
    if not board.references:
        raise Unmeasured(_NO_REFERENCES)
    gold = unit(context.features.images(encoder, board.references))
    for at, frame in enumerate(board.frames):
        if frame.scene is not None and frame.scene <= len(gold):
            yield board.value("reference", _cosine(rows[at] @ gold[frame.scene - 1]), frame=at + 1)
        else:
            yield board.value("reference", None, frame=at + 1, reason="the frame has no gold picture")


def _cosine(value: float) -> float:
    return max(-1.0, min(1.0, float(value)))


class VqaScore:
    """VQAScore: the probability that a judge says yes to the question whether the frame shows its scene's text."""

    card: ClassVar[MetricCard] = MetricCard(
        name="vqascore",
        title="VQAScore",
        paper="Lin et al., Evaluating Text-to-Visual Generation with Image-to-Text Generation, 2024, Eq. 3",
        formula='P("Yes" | frame, Does this figure show "{scene text}"? Please answer yes or no.)',
        level="frame",
        parts=(MetricPart(name="yes", about="P(Yes)"),),
        needs=("judge", "probabilities"),
        models=("CLIP-FlanT5-XXL in the paper; any judge with probabilities here",),
        licence="formula and prompt as facts",
        cost="one judge call",
        calls_per_frame=1.0,
        vector=f"hand-made logits, {_PROVEN}",
    )

    def spec(self) -> Mapping[str, Any]:
        """Name, version and the prompt."""
        return {"name": "vqascore", "version": 1, "prompt": load_prompt("metrics/vqascore").sha256}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield one probability per frame that has a text."""
        if not any(board.texts()):
            raise Unmeasured(_NO_TEXTS)
        for number, (frame, text) in enumerate(zip(board.frames, board.texts(), strict=True), 1):
            if not text:
                yield board.value("yes", None, frame=number, reason=NO_TEXT)
                continue
            words = load_prompt("metrics/vqascore").render(text=text)
            prompt = PlainPrompt((0, words), words=("Yes", "yes"), max_tokens=4)
            name = str(number)
            answer = context.ask("vqascore", board.story_id, board.method, [frame.data], {name: prompt})[name]
            try:
                yield board.value("yes", share_of(answer, ("Yes", "yes")), frame=number)
            except Unmeasured as unmeasured:
                yield board.value("yes", None, frame=number, reason=str(unmeasured))


class NeighbourSsim:
    """SSIM between neighbours: how much of one frame's structure the next one repeats. It needs no model."""

    card: ClassVar[MetricCard] = MetricCard(
        name="ssim",
        title="SSIM between neighbours",
        paper="Wang et al., Image Quality Assessment: From Error Visibility to Structural Similarity, 2004, Eq. 13",
        formula="SSIM(frame before, frame) of grey values at 256x256, Gaussian window of sigma 1.5, mean over pairs",
        level="frame",
        parts=(MetricPart(name="similarity", about="frame to the frame before it", low=-1.0, better="neither"),),
        needs=("images",),
        licence="scikit-image BSD-3",
        cost="no model, kept by content",
        vector=f"scikit-image's own value and 1 for equal frames, {_PROVEN}",
    )

    def __init__(self) -> None:
        self._meter = StructuralSimilarity()

    def spec(self) -> Mapping[str, Any]:
        """Name, version and the meter."""
        return {"name": "ssim", "version": 1, "meter": dict(self._meter.spec())}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield one similarity per pair of adjacent frames, as the later frame's."""
        return _neighbours(board, context, self._meter, "similarity")


def _neighbours(board: MetricBoard, context: MetricContext, meter: PairMeter, part: str) -> Iterator[MetricValue]:
    if len(board.frames) < 2:
        raise Unmeasured(ONE_FRAME)
    pairs = list(zip(board.images, board.images[1:], strict=False))
    for number, found in enumerate(context.features.pairs(meter, pairs), 2):
        yield board.value(part, float(found), frame=number)


class NeighbourDistance:
    """LPIPS between neighbours: how far each frame is from the one before it as people see it. A cut is not a fault:
    read it beside the others."""

    card: ClassVar[MetricCard] = MetricCard(
        name="lpips",
        title="LPIPS between neighbours",
        paper="Zhang et al., The Unreasonable Effectiveness of Deep Features, 2018, Eq. 1",
        formula="LPIPS(frame before, frame), both at 256x256, mean over pairs",
        level="frame",
        parts=(MetricPart(name="distance", about="frame to the frame before it", high=None, better="neither"),),
        needs=("images",),
        models=("torchmetrics' LPIPS over torchvision's AlexNet",),
        licence="torchmetrics Apache-2.0, torchvision BSD-3, LPIPS' linear layers BSD-2",
        cost="one AlexNet pass a pair, kept by content",
        vector=f"torchmetrics' own value and 0 for equal frames, {_PROVEN}",
    )

    def __init__(self, *, net: str = "alex", device: str = "cpu") -> None:
        self._meter = PerceptualDistance(net, device=device)

    def spec(self) -> Mapping[str, Any]:
        """Name, version and the network."""
        return {"name": "lpips", "version": 1, "meter": dict(self._meter.spec())}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield one distance per pair of adjacent frames, as the later frame's."""
        return _neighbours(board, context, self._meter, "distance")
