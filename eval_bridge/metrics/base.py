"""What a metric is to katha, and how one is run: every failure a typed null with its cause, never 0."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from katha.errors import BudgetError, JudgeError, KathaError, StoreError, UnknownPluginError
from katha.eval_bridge.metrics.boards import MetricBoard
from katha.eval_bridge.metrics.context import MetricContext, Unmeasured
from katha.plugin_boundary import cause
from katha.registry import default_registry
from katha.schema.metrics import MetricCard, MetricMode, MetricValue


@runtime_checkable
class Metric(Protocol):
    """A measure of one board at a time. A class with a card and one method; its options are keyword-only parameters.

    The class is made without arguments, or with its options (`--metric-option model=...`).
    """

    card: ClassVar[MetricCard]

    def spec(self) -> Mapping[str, Any]:
        """Return name, version, models and options: everything but the board and the judge that changes a value."""
        ...

    def measure(self, board: MetricBoard, context: MetricContext) -> Iterable[MetricValue]:
        """Yield the values of one board: of each frame, or of the board as a whole, as the card's level says.

        Raises:
            Unmeasured: this board has none, with the reason. It becomes a null of every part that was not yielded.
        """
        ...


@runtime_checkable
class SetMetric(Protocol):
    """A measure of all boards of one method together (inception score, diversity)."""

    card: ClassVar[MetricCard]

    def spec(self) -> Mapping[str, Any]:
        """Return name, version, models and options."""
        ...

    def measure_set(self, boards: Iterable[MetricBoard], context: MetricContext) -> Iterable[MetricValue]:
        """Yield the values of a method's boards, which come one by one: do not hold their pictures.

        Raises:
            Unmeasured: there is none, with the reason.
        """
        ...


AnyMetric = Metric | SetMetric


def metric_cards() -> dict[str, MetricCard]:
    """Return the card of every metric that is installed, by name; a plug-in that cannot be imported is left out."""
    registry, found = default_registry("metrics"), {}
    for name in registry.names():
        try:
            card = getattr(registry.load(name)[0], "card", None)
        except UnknownPluginError:
            continue
        if isinstance(card, MetricCard):
            found[name] = card
    return found


def mode_of(card: MetricCard, wanted: MetricMode | None) -> MetricMode:
    """Return the mode in which a metric is measured: the one asked for, where it has it, else its first."""
    return wanted if wanted in card.modes else card.modes[0]


def measure_board(metric: Metric, board: MetricBoard, context: MetricContext) -> Iterator[MetricValue]:
    """Yield a metric's values of one board, each sound; what fails is a null of each part that is missing.

    Raises:
        JudgeError, BudgetError, StoreError: nothing more can be measured; what is there is kept.
    """
    yield from _guarded(metric.card, board.method, board.story_id, lambda: metric.measure(board, context))


def measure_set(
    metric: SetMetric, method: str, boards: Iterable[MetricBoard], context: MetricContext
) -> Iterator[MetricValue]:
    """Yield a metric's values of a method's boards together, as `measure_board` does."""
    yield from _guarded(metric.card, method, None, lambda: metric.measure_set(boards, context))


def _guarded(
    card: MetricCard, method: str, story_id: str | None, make: Callable[[], Iterable[MetricValue]]
) -> Iterator[MetricValue]:
    missing = [part.name for part in card.parts]
    reason = "the metric gave no value"
    try:
        for value in make():
            yield (sound := _sound(card, value, method, story_id))
            if sound.part in missing:
                missing.remove(sound.part)
    except (BudgetError, JudgeError, StoreError):
        raise
    except Unmeasured as unmeasured:
        reason = str(unmeasured)
    except KathaError as error:
        reason = error.message.rstrip(".")
    except Exception as error:  # a bug of a plug-in costs this board's values, not the command
        reason = cause(error)
    for part in missing:
        yield MetricValue(metric=card.name, part=part, method=method, story_id=story_id, n=0, reason=reason)


def _sound(card: MetricCard, value: object, method: str, story_id: str | None) -> MetricValue:
    """Return a value that says what it is of; a number that is none is a null with its reason."""
    if not isinstance(value, MetricValue):
        raise TypeError(f"the metric gave a {type(value).__name__}, not a MetricValue")
    part = card.part(value.part)
    labels = {"metric": card.name, "method": method, "story_id": story_id}
    number = value.value
    low, high = (-math.inf if part.low is None else part.low), (math.inf if part.high is None else part.high)
    if number is not None and not (math.isfinite(number) and low - 1e-6 <= number <= high + 1e-6):
        reason = f"the metric gave {number!r}, which is outside of its range"
        return value.model_copy(update={**labels, "value": None, "reason": reason, "n": 0})
    return value.model_copy(update=labels)


def mean_value(board: MetricBoard, part: str, numbers: Sequence[float], nothing: str, item: str = "") -> MetricValue:
    """Return the mean of `numbers` as a board's value, or the null with the reason `nothing` where there is none."""
    found = math.fsum(numbers) / len(numbers) if numbers else None
    return board.value(part, found, n=len(numbers), item=item, reason=None if numbers else nothing)
