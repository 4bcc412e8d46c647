"""Which stories a judge remembers: their questions with no evidence at all, and how many of them it has right."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from katha.eval_bridge.judging.answers import Outcome
from katha.eval_bridge.judging.budget import Budget, require_prices
from katha.eval_bridge.judging.engine import Inquiry, JudgingEngine
from katha.eval_bridge.matching.match import Rule, match
from katha.eval_bridge.matching.rules import settle
from katha.eval_bridge.packets.packets import make_packet
from katha.eval_bridge.questions.build import chance_level
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.runner import OnStep
from katha.protocols import Judge
from katha.schema import Answer, Question, StoryRecord
from katha.schema.tables import JudgeMemory, Memory
from katha.store import Store

Asked = tuple[StoryRecord, Question]


@dataclass(frozen=True)
class Recall:
    """What every judge remembers, by its name; what came of the asking; and what has to be said about it."""

    judges: Mapping[str, JudgeMemory]
    outcome: Outcome
    notes: Sequence[str]


def recall(
    records: Sequence[StoryRecord],
    judges: Mapping[str, Judge],
    settings: EvalSettings,
    store: Store,
    rule: Rule,
    *,
    budget: Budget | None = None,
    on_story: OnStep | None = None,
) -> Recall:
    """Ask `judges` every question of `records` without evidence. The answers are those of an evaluation (`none`), so
    that neither asks again what the other has kept.

    Raises:
        JudgeError, UsageError: a judge cannot be asked at all.
    """
    limits = budget or Budget()
    require_prices(judges, limits)
    engine, rows = JudgingEngine(judges, store, budget=limits), dict[str, list[Answer]]()
    for done, record in enumerate(records, 1):
        packet = make_packet(record.story_id, "none")
        inquiry = Inquiry(*packet, settings.selected(record), None, settings.variant, settings.answers)
        for name in judges:
            rows.setdefault(name, []).extend(engine.ask(name, inquiry))
        if on_story is not None:
            on_story(record.story_id, done)
    notes = settle(rule, records, (row for own in rows.values() for row in own))
    found = {
        name: _memory(records, settings, rows.get(name, []), rule, judge.always_chooses)
        for name, judge in judges.items()
    }
    scored = any(row.n for row in found.values())
    return Recall(found, engine.outcome.outcome().model_copy(update={"scored": scored}), notes)


def _memory(
    records: Sequence[StoryRecord], settings: EvalSettings, rows: Iterable[Answer], rule: Rule, chooses: bool
) -> JudgeMemory:
    asked = {
        (record.story_id, item.question_id): (record, item) for record in records for item in settings.selected(record)
    }
    right: dict[tuple[str, str], bool] = {}
    for row in rows:
        key = (row.story_id, row.question_id)
        verdict = match(row, asked[key][1], rule).right if row.status == "ok" and row.answer is not None else None
        if verdict is not None:
            right[key] = verdict
    told = settings.answers == "choice" or chooses

    def among(own: Sequence[Asked]) -> Memory:
        keys = [(record.story_id, item.question_id) for record, item in own]
        hits = [right[key] for key in keys if key in right]
        chance = chance_level(asked[key][1] for key in keys if key in right) if told else None
        return Memory(
            n=len(hits),
            n_unscored=len(keys) - len(hits),
            right=100.0 * sum(hits) / len(hits) if hits else None,
            chance=100.0 * chance if chance is not None else None,
        )

    every = list(asked.values())
    families = sorted({name for record, _ in every if (name := record.source_family) is not None})
    return JudgeMemory(
        **dict(among(every)),
        by_family={name: among([one for one in every if one[0].source_family == name]) for name in families},
        by_story={
            record.story_id: among([one for one in every if one[0].story_id == record.story_id]) for record in records
        },
    )
