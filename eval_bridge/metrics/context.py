"""What a metric works with: the judging engine for questions, the features of pictures and texts, the set's pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine, OnAnswer, PlainQuestion
from katha.eval_bridge.metrics.features import Features
from katha.eval_bridge.packets.packets import clean_image
from katha.protocols import Evidence, PlainPrompt
from katha.schema import Answer, Packet
from katha.schema.metrics import MetricMode


class Unmeasured(Exception):
    """A board has no value of a metric; the words are the typed null's reason and equal for equal causes."""


Pool = Callable[[], Iterator[tuple[str, bytes]]]
"""The gold pictures of the whole set, one by one, each with its story's id."""


def no_pool() -> Iterator[tuple[str, bytes]]:
    """Yield nothing: the set has no reference pictures."""
    yield from ()


@dataclass(frozen=True)
class MetricContext:
    """What a metric may use.

    mode: `paper` or `code`, one that the metric has. features: vectors of pictures and texts, computed once. engine,
    judge: who answers plain prompts; None where no judge was given. pool: the set's gold pictures. seed: for whatever
    is drawn. on_answer: called with each answer.
    """

    mode: MetricMode
    features: Features
    engine: JudgingEngine | None = None
    judge: str | None = None
    pool: Pool = no_pool
    seed: int = 42
    on_answer: OnAnswer | None = None

    def ask(
        self, metric: str, story_id: str, method: str, images: Sequence[bytes], prompts: Mapping[str, PlainPrompt]
    ) -> dict[str, Answer]:
        """Return the judge's answer to each prompt about the same pictures, by the prompt's id.

        An answer whose status is not `ok` is a typed failure; `text_of` and `share_of` make an `Unmeasured` of it.
        Equal prompts about equal pictures are asked once, ever.

        Raises:
            Unmeasured: there is no judge. JudgeError, BudgetError: asking is over.
        """
        if self.engine is None or self.judge is None:
            raise Unmeasured("there is no judge: give --judge")
        clean = [clean_image(data, f"Picture {number}") for number, data in enumerate(images, 1)]
        packet = Packet(story_id=story_id, condition="image", images=tuple(each.sha256 for each in clean))
        evidence = Evidence("image", tuple(each.png for each in clean))
        questions = [PlainQuestion(f"{metric}/{name}", prompt) for name, prompt in prompts.items()]
        answers = self.engine.ask(self.judge, Inquiry(packet, evidence, questions, method), self.on_answer)
        return dict(zip(prompts, answers, strict=True))


def text_of(answer: Answer) -> str:
    """Return what the judge said.

    Raises:
        Unmeasured: it said nothing; the reason is the failure's status and cause.
    """
    if answer.status != "ok" or answer.answer is None:
        raise Unmeasured(f"{answer.status}: {answer.error or 'no answer'}")
    return answer.answer


def share_of(answer: Answer, words: Sequence[str]) -> float:
    """Return the probability (0 to 1) that the first token is one of `words`.

    Raises:
        Unmeasured: the question failed, or the judge gives no probabilities.
    """
    text_of(answer)
    given = answer.usage.get("probabilities")
    if not isinstance(given, Mapping):
        raise Unmeasured("the judge gives no probabilities of its first token")
    return min(1.0, sum(float(given.get(word, 0.0)) for word in words))
