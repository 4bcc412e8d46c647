"""ViStoryBench's prompt alignment: four scores from 0 to 4 by a vision-language judge (App. H)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from katha.configs import load_prompt
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured, text_of
from katha.eval_bridge.metrics.detectors import DETECTOR
from katha.eval_bridge.metrics.vistory_characters import (
    CLIP,
    NO_CHARACTERS,
    NO_REFERENCES,
    CharacterFinder,
    ShotScript,
    shot_script,
)
from katha.eval_bridge.metrics.vistorybench import (
    ASPECTS,
    HIGHEST_SCORE,
    Aspect,
    individual_action,
    prompt_alignment,
    read_alignment,
)
from katha.protocols import PlainPrompt
from katha.schema import Answer
from katha.schema.metrics import MetricCard, MetricPart, MetricValue

_WHOLE: Mapping[Aspect, str] = {"scene": "setting", "shot": "camera", "interaction": "action"}
"""The aspects that are asked of the whole frame, and the field of the script that each is asked with."""

_UNTOLD: Mapping[Aspect, str] = {
    "scene": "the script does not tell the setting",
    "shot": "the script does not tell the camera",
    "interaction": "the script does not tell what happens",
}
# Each attempt is a little warmer: at the same temperature a reply without a score would come again.
_ATTEMPTS = 3
_MOST_TOKENS = 600


class VistoryPrompts:
    """Prompt alignment: scene, shot, character interaction and individual action, and their mean."""

    card: ClassVar[MetricCard] = MetricCard(
        name="vistory-prompts",
        title="ViStoryBench prompt alignment",
        paper="ViStoryBench, App. H (prompts in H), Table S4",
        formula="mean of four judged scores, each from 0 to 4",
        level="frame",
        parts=(
            MetricPart(name="scene", about="setting and objects as in the script", high=HIGHEST_SCORE),
            MetricPart(name="shot", about="shot size and angle as in the script", high=HIGHEST_SCORE),
            MetricPart(name="interaction", about="what the characters do together", high=HIGHEST_SCORE),
            MetricPart(name="action", about="what each character does, on its own crop", high=HIGHEST_SCORE),
            MetricPart(name="alignment", about="mean of the four", high=HIGHEST_SCORE),
        ),
        modes=("paper", "code"),
        differs="code: individual action is rounded to a whole number for each shot and again for the story, and a "
        "reply that stays unreadable scores 0 (here it is a null in both modes)",
        needs=("judge", "characters", "detector"),
        models=(CLIP, DETECTOR),
        licence="prompts of the supplement; code Apache-2.0; the judge's own terms",
        cost="3 judge calls, and one a character",
        calls_per_frame=5.0,
        vector="all 35 complete rows of Table S4 in tests/eval_bridge/test_metric_formulas.py",
    )

    def __init__(self, *, detector: str = DETECTOR, encoder: str = CLIP, face: str | None = None) -> None:
        """detector, encoder, face: who finds the characters for individual action, as in `vistory-characters`.

        They are made at the first board with reference pictures: the three other aspects do without them.
        """
        self._names = (detector, encoder, face)
        self._made: CharacterFinder | None = None

    def spec(self) -> Mapping[str, Any]:
        """Name, version, detector and encoders as they are named, and the prompts' hashes."""
        prompts = {aspect: load_prompt(f"metrics/vistorybench/{aspect}").sha256 for aspect in ASPECTS}
        return {"name": "vistory-prompts", "version": 1, "cast": list(self._names), "prompts": prompts}

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterator[MetricValue]:
        """Yield the scores of each frame, the individual action of the board by its mode's rule, and the mean."""
        scores: dict[Aspect, list[float]] = {aspect: [] for aspect in ASPECTS}
        for at, frame in enumerate(board.frames):
            script = shot_script(board, frame.scene)
            for aspect, score, reason in self._whole(board, at, script, context):
                if score is not None:
                    scores[aspect].append(score)
                yield board.value(aspect, score, frame=at + 1, reason=reason)
        means: dict[Aspect, float | None] = {
            aspect: math.fsum(scores[aspect]) / len(scores[aspect]) if scores[aspect] else None for aspect in _WHOLE
        }
        reason = None
        try:
            shots = self._actions(board, context)
            means["action"] = individual_action(list(shots.values()), context.mode)
            reason = None if means["action"] is not None else "no character was found, or no reply about one was read"
        except Unmeasured as unmeasured:
            means["action"], reason = None, str(unmeasured)
        asked = sum(map(len, shots.values())) if reason is None else 0
        yield board.value("action", means["action"], n=asked, reason=reason)
        missing = [aspect for aspect in ASPECTS if means.get(aspect) is None]
        why = f"no score of: {', '.join(missing)}" if missing else None
        yield board.value("alignment", prompt_alignment(means), n=len(board.frames), reason=why)

    def _whole(
        self, board: MetricBoard, at: int, script: ShotScript, context: MetricContext
    ) -> Iterator[tuple[Aspect, float | None, str | None]]:
        """Yield the three scores of a whole frame, or why there is none."""
        for aspect, field in _WHOLE.items():
            told = str(getattr(script, field))
            if not told:
                yield aspect, None, _UNTOLD[aspect]
                continue
            prompt = load_prompt(f"metrics/vistorybench/{aspect}").render(text=told)
            try:
                yield aspect, _ask(board, context, board.frames[at].data, f"{aspect}/{at + 1}", prompt), None
            except Unmeasured as unmeasured:
                yield aspect, None, str(unmeasured)

    def _actions(self, board: MetricBoard, context: MetricContext) -> dict[int, list[int]]:
        """Return by frame (from 0) the scores of the characters found in it; one that fails is left out.

        Raises:
            Unmeasured: no reference picture, or no frame says who is on stage.
        """
        if not any(board.characters.values()):
            raise Unmeasured(NO_REFERENCES)
        scripts = [shot_script(board, frame.scene) for frame in board.frames]
        if not any(script.characters for script in scripts):
            raise Unmeasured(NO_CHARACTERS)
        cast = self._cast()
        seen = cast.look(board, cast.references(board, context.features), context.features)
        found: dict[int, list[int]] = {}
        for at, pieces in seen.by_frame.items():
            for name, piece in pieces.items():
                text = scripts[at].action
                prompt = load_prompt("metrics/vistorybench/action").render(text=text, character=name)
                try:
                    score = _ask(board, context, piece, f"action/{at + 1}/{name}", prompt) if text else None
                except Unmeasured:
                    score = None
                if score is not None:
                    found.setdefault(at, []).append(score)
        return found

    def _cast(self) -> CharacterFinder:
        if self._made is None:
            self._made = CharacterFinder(*self._names)
        return self._made


def _ask(board: MetricBoard, context: MetricContext, picture: bytes, name: str, prompt: str) -> int:
    """Return one score; a reply without one is asked again, as the code does, at a higher temperature each time.

    Raises:
        Unmeasured: the question failed, or no reply had a score.
    """
    for attempt in range(_ATTEMPTS):
        question = PlainPrompt(
            parts=(prompt, 0), temperature=attempt / 10, top_p=0.2, max_tokens=_MOST_TOKENS, sample=attempt
        )
        answer: Answer = context.ask("vistory-prompts", board.story_id, board.method, [picture], {name: question})[name]
        score = read_alignment(text_of(answer))
        if score is not None:
            return score
    raise Unmeasured(f"unparseable: no score from 0 to 4 in {_ATTEMPTS} replies")
