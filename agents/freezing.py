"""A run under a lock: its settings are the frozen ones, and everything that they were chosen with must be the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from katha.agents.context import Plugins
from katha.agents.record import prompt_hashes
from katha.compass.lock import read_lock
from katha.config import RunConfig
from katha.eval_bridge import STEERING_VARIANT
from katha.jsonio import digest
from katha.schema import StoryRecord

__all__ = ["freeze", "models_of", "protocol_of_config"]


def protocol_of_config(config: RunConfig) -> dict[str, str]:
    """How questions are asked and matched, as a lock holds it."""
    return {
        "answers": config.answers,
        "matching": config.matching,
        "steering_prompts": STEERING_VARIANT,
        "reporting_prompts": config.variant,
    }


def models_of(specs: Mapping[str, Any]) -> dict[str, str]:
    """The hash of each kind of plug-in's specification."""
    return {name: digest(spec) for name, spec in specs.items()}


def freeze(config: RunConfig, path: Path, plugins: Plugins, records: Iterable[StoryRecord]) -> RunConfig:
    """`config` with the weights, thresholds, seeds and candidate count that the lock at `path` froze.

    Raises:
        InputFileError: no lock, or an edited one. UsageError: models, prompts, protocol, code or a story's questions
            are not those of the lock, or a story is one that was tuned on; what differs is named.
    """
    lock = read_lock(path)
    lock.require(protocol_of_config(config), models_of(plugins.specs()), prompt_hashes(), str(path))
    lock.require_stories(records, str(path))
    return config.model_copy(
        update={
            "compass": lock.settings,
            "seeds": lock.seeds,
            "candidates": lock.candidates,
            "lock": lock.sha256,
        }
    )
