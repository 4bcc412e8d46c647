"""VinaBench's alignment ranking (Sec. 4.1): where a frame stands among the pool's best pictures for its scene.

Rank 0 is a frame that no candidate beats; ties favour the frame. The value of a scene is 1 / (rank + 1), so that 1/101
is the least where 100 candidates beat it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from katha.configs import load_prompt
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured, share_of
from katha.eval_bridge.metrics.encoders import OpenClipEncoder
from katha.eval_bridge.metrics.features import Vectors, unit
from katha.eval_bridge.metrics.general import CLIP
from katha.eval_bridge.metrics.vinabench import YES
from katha.jsonio import sha256_hex
from katha.protocols import PlainPrompt
from katha.schema.metrics import MetricCard, MetricPart, MetricValue

TOP = 100
_NO_POOL = "there is no pool of gold pictures: give --references"
_CHUNK = 64


def reciprocal_rank(score: float, candidates: Sequence[float]) -> float:
    """Return 1 / (rank + 1), the rank being how many of `candidates` are strictly greater than `score`."""
    return 1.0 / (1 + sum(candidate > score for candidate in candidates))


class Pool:
    """The distinct gold pictures of a set, with their rows; made once for all boards. Pictures are not kept in memory
    unless they are asked for by a judge."""

    def __init__(self, encoder: OpenClipEncoder) -> None:
        self._encoder, self._lock = encoder, threading.Lock()
        self._rows: Vectors | None = None
        self.keys: list[str] = []

    def rows(self, context: MetricContext) -> Vectors:
        """Return unit rows of shape (pool, D).

        Raises:
            Unmeasured: the set has no gold pictures.
        """
        with self._lock:
            if self._rows is None:
                made, chunk, seen = [], [], set[str]()
                for _, data in context.pool():
                    if (key := sha256_hex(data)) not in seen:
                        seen.add(key)
                        self.keys.append(key)
                        chunk.append(data)
                    if len(chunk) >= _CHUNK:
                        made.append(unit(context.features.images(self._encoder, chunk)))
                        chunk = []
                if chunk:
                    made.append(unit(context.features.images(self._encoder, chunk)))
                self._rows = np.concatenate(made) if made else np.zeros((0, 0))
        if not len(self._rows):
            raise Unmeasured(_NO_POOL)
        return self._rows


class ClipRank:
    """CLIP-T-MRR: the reciprocal rank of a frame's CLIP-T among the pool's 100 best for its scene."""

    card: ClassVar[MetricCard] = MetricCard(
        name="clip-t-mrr",
        title="CLIP-T-MRR",
        paper="Gao et al., VinaBench, 2025, Sec. 4.1",
        formula="mean over scenes of 1 / (1 + number of the pool's top 100 with a greater CLIP-T than the frame)",
        level="frame",
        parts=(MetricPart(name="mrr", about="reciprocal rank in the pool", average="micro"),),
        needs=("images", "texts", "references"),
        models=(CLIP,),
        licence="open_clip MIT, weights MIT",
        cost="one ViT-L/14 pass a frame and a pool picture, kept by content",
        vector="ties, above all and below all (1/101), tests/eval_bridge/test_metrics_vinabench.py",
    )

    def __init__(self, *, model: str = CLIP, device: str = "cpu", top: int = TOP) -> None:
        self._encoder, self._top = OpenClipEncoder(model, device=device, cut=True), top
        self._pool = Pool(self._encoder)

    def spec(self) -> Mapping[str, Any]:
        """Name, version, how many candidates, and the encoder."""
        return {"name": "clip-t-mrr", "version": 1, "top": self._top, "encoder": dict(self._encoder.spec())}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield one reciprocal rank per scene frame."""
        pool = self._pool.rows(context)
        for at, text in scenes(board):
            words = unit(context.features.texts(self._encoder, [text]))[0]
            own = float(unit(context.features.images(self._encoder, [board.frames[at].data]))[0] @ words)
            best = np.sort(pool @ words)[::-1][: self._top]
            yield board.value("mrr", reciprocal_rank(own, best.tolist()), frame=at + 1)


class VqaRank:
    """VQA-MRR: the same, by the probability that a judge calls the picture fitting."""

    card: ClassVar[MetricCard] = MetricCard(
        name="vqa-mrr",
        title="VQA-MRR",
        paper="Gao et al., VinaBench, 2025, Sec. 4.1",
        formula="as CLIP-T-MRR with P(first token is Yes) for the question whether the picture fits the storyline",
        level="frame",
        parts=(MetricPart(name="mrr", about="reciprocal rank in the pool", average="micro"),),
        modes=("paper", "code"),
        differs="paper: the 100 best of the whole pool by the judge. code: CLIP's 100 best, ranked anew by the judge",
        needs=("judge", "probabilities", "references", "images", "texts"),
        models=("LLaVA-OneVision-72B in the paper; any judge here", CLIP),
        licence="formula and prompt as facts; open_clip and its weights MIT",
        cost="one judge call a frame, and one for each candidate: 100 in code, the whole pool in paper",
        calls_per_frame=101.0,
        vector="hand-made probabilities, tests/eval_bridge/test_metrics_vinabench.py",
    )

    def __init__(self, *, model: str = CLIP, device: str = "cpu", top: int = TOP) -> None:
        self._encoder, self._top = OpenClipEncoder(model, device=device, cut=True), top
        self._pool = Pool(self._encoder)

    def spec(self) -> Mapping[str, Any]:
        """Name, version, how many candidates, the prompt and the encoder, which only `code` uses."""
        prompt = load_prompt("metrics/vinabench/fits").sha256
        return {"name": "vqa-mrr", "version": 1, "top": self._top, "prompt": prompt, "clip": self._encoder.argument}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield one reciprocal rank per scene frame; a candidate without a probability makes it a null."""
        for at, text in scenes(board):
            try:
                own = self._fits(board, context, text, board.frames[at].data)
                rivals = sorted(self._fits(board, context, text, data) for data in self._rivals(context, text))
                yield board.value("mrr", reciprocal_rank(own, rivals[::-1][: self._top]), frame=at + 1)
            except Unmeasured as unmeasured:
                yield board.value("mrr", None, frame=at + 1, reason=str(unmeasured))

    def _rivals(self, context: MetricContext, text: str) -> Iterator[bytes]:
        """Yield the candidates' pictures: the whole pool, or CLIP's best."""
        wanted: set[str] | None = None
        if context.mode == "code":
            rows = self._pool.rows(context)
            scores = rows @ unit(context.features.texts(self._encoder, [text]))[0]
            wanted = {self._pool.keys[at] for at in np.argsort(-scores, kind="stable")[: self._top]}
        seen = set[str]()
        for _, data in context.pool():
            key = sha256_hex(data)
            if key not in seen and (wanted is None or key in wanted):
                seen.add(key)
                yield data
        if not seen:
            raise Unmeasured(_NO_POOL)

    def _fits(self, board: MetricBoard, context: MetricContext, text: str, image: bytes) -> float:
        prompt = PlainPrompt((0, load_prompt("metrics/vinabench/fits").render(plot=text)), words=YES, max_tokens=4)
        answer = context.ask("vqa-mrr", board.story_id, board.method, [image], {sha256_hex(image)[:12]: prompt})
        return share_of(next(iter(answer.values())), YES)


def scenes(board: MetricBoard) -> list[tuple[int, str]]:
    """Return the places (from 0) and texts of the frames that have a text.

    Raises:
        Unmeasured: none has one.
    """
    found = [(at, text) for at, text in enumerate(board.texts()) if text]
    if not found:
        raise Unmeasured("no frame has a text of its own: the story has no scenes and no plan")
    return found
