"""A judge and boards for the tests of `katha eval`: what it answers is known, and it goes wrong when a test says so."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from asked import reply_to
from PIL import Image

from katha.eval_bridge.bench.boards import MethodBoards
from katha.eval_bridge.judging.engine import Retry
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, EvalResult, evaluate, name_judges
from katha.protocols import Evidence, Judge, JudgePrompt, JudgeReply
from katha.schema import Question, StoryRecord
from katha.store import Store

AT_ONCE = Retry(attempts=2, first_wait=0.0)
KINDS = ("causal", "temporal_order", "moral")


def picture(number: int = 0, mode: str = "RGB", form: str = "PNG", **options: object) -> bytes:
    buffer = io.BytesIO()
    image = Image.new("RGB", (24, 16), (40 * number % 256, 90, 200))
    image.paste((250, 240, 60), (2, 2, 12, 12))
    image.convert(mode).save(buffer, form, **options)
    return buffer.getvalue()


class Watcher(Judge):
    """Right by text; by images right for every second question. `faults` makes calls go wrong in turn."""

    price = {"input": 1.0, "output": 1.0}

    def __init__(self, faults: Sequence[JudgeReply | Exception | None] = (None,), name: str = "watcher") -> None:
        self.faults, self.name, self.asked = list(faults), name, 0

    def spec(self) -> Mapping[str, Any]:
        return {"name": self.name}

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for prompt in prompts:
            fault = self.faults[self.asked % len(self.faults)]
            self.asked += 1
            if isinstance(fault, Exception):
                raise fault
            known = evidence.text is not None or hashlib.sha256(prompt.question.encode()).digest()[0] % 2
            usage = {"cost": 0.5, "tokens": {"input": 10}}
            yield fault or JudgeReply("ok", "gold" if known else "other", confidence="high", usage=usage)


class Together(Watcher):
    """The same, and its calls are counted: one for all questions of a packet, where it is asked so."""

    asks_together = True

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def ask(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        for reply in super().ask(evidence, prompts):
            self.calls += 1
            yield reply

    def ask_together(self, evidence: Evidence, prompts: Sequence[JudgePrompt]) -> Iterator[JudgeReply]:
        self.calls += 1
        yield from super().ask(evidence, prompts)


def records(count: int = 3, **changes: object) -> list[StoryRecord]:
    def question(story: str, kind: str) -> Question:
        values = {
            "question_id": f"{story}_{kind}",
            "story_id": story,
            "question_type": kind,
            "question": f"What about {story} and {kind}?",
            "gold_answer": "gold",
            "options": ["gold", "other", "third", "fourth", "Unclear"],
        }
        return Question.model_validate(values | changes)

    names = [f"s{number}" for number in range(count)]
    return [
        StoryRecord(story_id=n, story_text=f"Story {n}.", recoverability_questions=[question(n, k) for k in KINDS])
        for n in names
    ]


def draw(folder: Path, stories: Sequence[StoryRecord], shift: int = 0) -> MethodBoards:
    for at, record in enumerate(stories):
        place = folder / record.story_id
        place.mkdir(parents=True, exist_ok=True)
        for number in range(1, 6):
            path = place / f"{number}.png"
            if not path.exists():
                path.write_bytes(picture(number + 7 * at + shift))
    return MethodBoards(folder.name, folder)


def go(tmp: Path, judges: Sequence[Watcher], out: str = "out", **options: Any) -> EvalResult:
    stories = options.pop("stories", None) or records()
    methods = [draw(tmp / "flux", stories), draw(tmp / "kontext", stories, 1)]
    for spoiled in options.pop("spoil", ()):
        (tmp / spoiled).unlink()
    settings = EvalSettings(resamples=50, controls=options.pop("controls", ()), ask=options.pop("ask", "singly"))
    job = EvalJob(stories, methods, name_judges([(judge.name, judge) for judge in judges]), settings)
    with Store(tmp / "cache") as store:
        return evaluate(job, tmp / out, store, retry=AT_ONCE, **options)


def answer(body: dict[str, Any]) -> str:
    """Right with the text, and by the images alone for every question but the moral's; else the first option."""
    parts = body["messages"][0]["content"]
    right = "causal" in parts[-1]["text"] or any("Story s" in part.get("text", "") for part in parts)
    fields = body["response_format"]["json_schema"]["schema"]["properties"]
    if "answers" in fields:
        return reply_to(body)
    values = {name: "high" if name == "confidence" else rule.get("enum", ["gold"])[0] for name, rule in fields.items()}
    chosen, said = "final_answer" if "final_answer" in values else "answer", "gold" if right else "other"
    return json.dumps(values | ({chosen: said} if said in fields[chosen].get("enum", [said]) else {}))
