"""The entrance test of a judge: six questions with plain answers, paid once, beside every score."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from katha.eval_bridge.judging.engine import JudgingEngine
from katha.eval_bridge.judging.entrance import can_take, inquiries, known, take, untested
from katha.pictures import decode, is_blank
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.store import Store


class Looker(Judge):
    """Answers from the pixels: how much red there is, and where. `blind`: it takes the first option."""

    def __init__(self, blind: bool = False) -> None:
        self.blind, self.asked = blind, 0

    def spec(self) -> Mapping[str, Any]:
        return {"name": "looker", "blind": self.blind}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt in prompts:
            self.asked += 1
            options = prompt.options or ()
            yield JudgeReply("ok", answer=options[0] if self.blind else self._seen(evidence, prompt, options))

    def _seen(self, evidence: Evidence, prompt: JudgePrompt, options: Sequence[str]) -> str:
        pictures = [decode(png) for png in evidence.images]
        if all(map(is_blank, pictures)):
            return "Unclear"
        when = [moment(image) for image in pictures]
        if "shuffled" in prompt.question:
            order = sorted(range(len(when)), key=lambda at: when[at])
            return ", ".join(str(at + 1) for at in order)
        kinds = [kind for kind, _ in when]
        later = [at for at in (2, 3) if kinds[at] == kinds[0] and when[at] > when[1]]
        return f"Picture {later[0] + 1}."


def moment(image: Image.Image) -> tuple[str, int]:
    """The subject and how late it is: the lower the red, the later."""
    band = image.convert("RGB")
    red = [(x, y) for x in range(band.width) for y in range(band.height) if band.getpixel((x, y)) == (192, 48, 48)]
    table = any(band.getpixel((x, 60)) == (160, 106, 58) for x in range(band.width))
    return ("ball" if table else "candle"), min(y for _, y in red)


def test_who_sees_passes_and_who_guesses_does_not(tmp_path: Path) -> None:
    with Store(tmp_path) as store:
        results = {}
        for blind in (False, True):
            judge = Looker(blind)
            engine = JudgingEngine({"looker": judge}, store)
            assert known(engine, "looker") is None
            take(engine, "looker")
            results[blind] = known(engine, "looker")
            take(engine, "looker")
            assert judge.asked == len(inquiries()) == 6  # the second time costs nothing
    seen, guessed = results[False], results[True]
    assert seen is not None
    assert guessed is not None
    assert seen.told("looker") == "Entrance test (looker): 6 of 6 right (blank 2/2, order 2/2, next 2/2)."
    assert guessed.right <= 1


def test_no_answer_is_counted_as_none(tmp_path: Path) -> None:
    class Silent(Looker):
        def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
            for at, reply in enumerate(super().ask(evidence, prompts)):
                yield reply if "shuffled" in prompts[at].question else JudgeReply("unparseable", error="not JSON")

    with Store(tmp_path) as store:
        engine = JudgingEngine({"silent": Silent()}, store)
        take(engine, "silent")
        found = known(engine, "silent")
    assert found is not None
    assert "2 of 6 right (blank 0/2, order 2/2, next 0/2; 4 without an answer)" in found.told("silent")
    assert "--entrance" in untested("silent")
    assert can_take(Silent())


def test_the_pictures_are_small_and_unlike() -> None:
    shown = {png for inquiry in inquiries() for png in inquiry.evidence.images}
    assert len(shown) == 7
    for png in shown:
        with Image.open(io.BytesIO(png)) as image:
            assert image.size == (240, 160)
