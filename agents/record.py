"""`run.json`: what a run was made from and what it cost; and runs under a lock."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from uuid import uuid4

from pydantic import BaseModel

from katha.agents.context import Plugins
from katha.agents.folder import RunRecord
from katha.compass.lock import read_lock
from katha.config import RunConfig, katha_version
from katha.eval_bridge.packets.instructions import STEERING_VARIANT
from katha.jsonio import digest, sha256_hex
from katha.schema import Answer, Candidates, Plan, StoryRecord
from katha.schema.tables import ServiceUse
from katha.store import Store

_PACKAGES = ("langgraph", "langgraph-checkpoint-sqlite", "pydantic", "numpy", "pillow", "onnxruntime", "resvg-py")


def new_record(record: StoryRecord, config: RunConfig, plugins: Plugins, given: Plan | None) -> RunRecord:
    """Return the record of a run that begins."""
    return RunRecord.model_validate(
        {
            "format": 1,
            "katha": katha_version(),
            "run_id": uuid4().hex,
            "story_id": record.story_id,
            "record_sha256": digest(record.model_dump(mode="json")),
            "given_plan_sha256": digest(given.model_dump(mode="json")) if given is not None else None,
            "config": config.model_dump(mode="json"),
            **plugins.specs(),
            "matching": config.matching,
            "prompts": prompt_hashes(),
            "versions": _versions(),
            "seeds": list(config.seeds),
            "command": list(sys.argv),
        }
    )


def prompt_hashes() -> dict[str, str]:
    """Return the sha256 of every file under `prompts/` that can reach a model, by its name."""
    found: dict[str, str] = {}

    def walk(folder: Traversable, prefix: str) -> None:
        for entry in folder.iterdir():
            if entry.is_dir():
                walk(entry, f"{prefix}{entry.name}/")
            elif entry.name.endswith((".j2", ".yaml")):
                found[prefix + entry.name] = sha256_hex(entry.read_bytes())

    walk(files("katha.prompts"), "")
    return dict(sorted(found.items()))


def _versions() -> dict[str, str]:
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


class _Receipt(BaseModel):
    """How a service says that a frame came about."""

    service: str
    model: str
    served: str
    date: str
    tokens: dict[str, int]
    cost: float | None


def by_service(store: Store, hashes: Iterable[str]) -> list[ServiceUse]:
    """Return which services drew these frames: model as asked and as served, dates, frames, tokens and dollars (G.5).

    A frame that another run paid for counts with its own date; `cost` is None while a price is unknown.
    """
    found: dict[tuple[str, str, str], list[_Receipt]] = {}
    for known in filter(None, map(store.frames.receipt, sorted(set(hashes)))):
        receipt = _Receipt.model_validate(known)
        found.setdefault((receipt.service, receipt.model, receipt.served), []).append(receipt)
    return [
        ServiceUse(
            service=service,
            model=model,
            served=served,
            dates=sorted({item.date for item in receipts}),
            frames=len(receipts),
            tokens={kind: sum(item.tokens.get(kind, 0) for item in receipts) for kind in _kinds(receipts)},
            cost=_total(item.cost for item in receipts),
        )
        for (service, model, served), receipts in sorted(found.items())
    ]


def _kinds(receipts: Iterable[_Receipt]) -> list[str]:
    return list(dict.fromkeys(kind for item in receipts for kind in item.tokens))


def _total(costs: Iterable[float | None]) -> float | None:
    known, total = list(costs), 0.0
    for cost in known:
        total += cost or 0.0
    return None if None in known else total


def paid(store: Store, candidates: Candidates, answers: Iterable[Answer]) -> dict[str, int]:
    """Return what this run drew and asked itself, over all its processes, and what it found already paid for."""
    frames = {
        (frame.sha256, frame.prompt, frame.seed, frame.kind, frame.scene, frame.transition)
        for item in candidates.candidates
        for frame in item.board.frames
    }
    questions = {(row.judge, row.packet_sha256, row.prompt_sha256) for row in answers if row.status == "ok"}
    rendered, asked = store.frames.rendered(), store.answers.asked()
    return {
        "frames_rendered": rendered,
        "frames_reused": max(0, len(frames) - rendered),
        "questions_asked": asked,
        "questions_reused": max(0, len(questions) - asked),
    }


# A run under a lock: its settings are the frozen ones, and everything that they were chosen with must be the same.


def protocol_of_config(config: RunConfig) -> dict[str, str]:
    """Return how questions are asked and matched, as a lock holds it."""
    return {
        "answers": config.answers,
        "matching": config.matching,
        "steering_prompts": STEERING_VARIANT,
        "reporting_prompts": config.variant,
    }


def models_of(specs: Mapping[str, object]) -> dict[str, str]:
    """Return the hash of each kind of plug-in's specification."""
    return {name: digest(spec) for name, spec in specs.items()}


def freeze(config: RunConfig, path: Path, plugins: Plugins, records: Iterable[StoryRecord]) -> RunConfig:
    """Return `config` with the weights, thresholds, seeds and candidate count that the lock at `path` froze.

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
