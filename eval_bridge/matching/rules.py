"""A matching rule by its name, opened with the verdicts that it needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from katha.eval_bridge.matching.match import MODEL_RULES, RULES, Rule, require_rule
from katha.eval_bridge.matching.verdicts import VERDICTS, Decider, ModelRule, pairs_of
from katha.schema import Answer, StoryRecord


def make_decider(name: str, base_url: str | None = None) -> Decider | None:
    """The model behind a rule; None for a rule that words alone decide. Weights are not read yet.

    Raises:
        UsageError: no such rule or model. MissingExtraError: a package is missing. ModelError: the model is not here.
    """
    family, _, argument = require_rule(name).partition(":")
    if family not in MODEL_RULES:
        return None
    # Not at the top: these classes are only needed where a model decides.
    from katha.eval_bridge.matching import models

    if family == "llm":
        return models.LlmDecider(argument, base_url=base_url)
    return models.NliDecider(argument) if family == "nli" else models.EmbeddingDecider(argument)


def open_rule(
    name: str, archives: Sequence[Path] = (), *, decider: Decider | None = None, keep: Path | None = None
) -> Rule:
    """The rule `name`. A model's rule reads `archives` and asks `decider` for what they lack, into the file `keep`.

    Raises:
        UsageError: no such rule. InputFileError: an archive is broken.
    """
    if require_rule(name) in RULES:
        return RULES[name]
    return ModelRule(name, archives, decider=decider, keep=keep)


def folder_rule(name: str, folder: Path) -> Rule:
    """The rule `name` with the verdicts that a run or an evaluation left in its folder."""
    return open_rule(name, [folder / VERDICTS])


def kept_rule(name: str, folder: Path) -> Rule:
    """Return the rule `name`; what a model decides for it is kept in `folder`, and not asked again."""
    path = folder / VERDICTS
    return open_rule(name, [path], decider=make_decider(name), keep=path)


def settle(rule: Rule, records: Iterable[StoryRecord], answers: Iterable[Answer]) -> list[str]:
    """Have every verdict that scoring `answers` needs, before it begins; a note where some could not be had.

    Raises:
        UsageError: verdicts are missing and there is no model to ask.
    """
    if not isinstance(rule, ModelRule):
        return []
    without = rule.settle(pairs_of(records, answers))
    rule.tidy()
    return [f"{without:,} different answers got no verdict by {rule.name} and are unscored."] if without else []
