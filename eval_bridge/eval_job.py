"""What is to be evaluated, by what its folder is known again, and what comes out."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from katha import __version__
from katha.errors import UsageError
from katha.eval_bridge.asking import judge_name
from katha.eval_bridge.boards import Boards
from katha.eval_bridge.drawn_words import WordScanner
from katha.eval_bridge.evaluate import EvalSettings
from katha.eval_bridge.instructions import prompt_hashes
from katha.eval_bridge.outcomes import ENSEMBLE
from katha.eval_bridge.verdicts import Decider
from katha.jsonio import canonical, digest
from katha.protocols import Judge
from katha.schema import ContrastiveVariant, StoryRecord

__all__ = ["EvalJob", "EvalResult", "name_judges"]

Prepare = Callable[[Sequence[StoryRecord]], list[StoryRecord]]


@dataclass(frozen=True)
class EvalJob:
    """What is to be evaluated. `records` are as given; `prepare` fills in questions and options.

    variants: contrastive variants whose pairs are asked, too. decider: the model behind `settings.matching`, where that
    rule has one. scanner: looks for words drawn into the pictures.
    """

    records: Sequence[StoryRecord]
    methods: Sequence[Boards]
    judges: Mapping[str, Judge]
    settings: EvalSettings
    prepare: Prepare = list
    decider: Decider | None = None
    variants: Sequence[ContrastiveVariant] = ()
    scanner: WordScanner | None = None
    command: tuple[str, ...] = ()

    def identity(self) -> str:
        """The hash of what a folder's answers are answers to: stories, form of asking, prompts."""
        hashed = hashlib.sha256()
        for record in self.records:
            hashed.update(canonical(record.model_dump(mode="json")))
        for variant in self.variants:
            hashed.update(canonical(variant.model_dump(mode="json")))
        settings = self.settings
        asked = (settings.answers, settings.variant, settings.questions, settings.seed, settings.evaluator)
        return digest([hashed.hexdigest(), asked, prompt_hashes()])

    def fingerprint(self, identity: str) -> str:
        """The hash of everything that decides a finished evaluation's files (pictures by size and time)."""
        boards = [
            [method.name, str(method.folder.resolve()), record.story_id, method.files(record.story_id)]
            for method in self.methods
            for record in self.records
        ]
        settings = self.settings
        decider = dict(self.decider.spec()) if self.decider is not None else None
        scored = [settings.matching, decider, settings.controls, settings.resamples, self.scanner is not None]
        return digest([identity, boards, self.specs(), scored, __version__])

    def specs(self) -> dict[str, dict[str, Any]]:
        """The judges' specifications by name."""
        return {name: dict(judge.spec()) for name, judge in self.judges.items()}


@dataclass(frozen=True)
class EvalResult:
    """Where the files are, what `eval.json` and `scores.json` hold, and whether all of it was there already."""

    out: Path
    state: dict[str, Any]
    scores: dict[str, Any]
    reused: bool


def name_judges(judges: Sequence[tuple[str, Judge]]) -> dict[str, Judge]:
    """Judges by the name that their answers carry: their own, or, where two share one, as each was asked for.

    Raises:
        UsageError: a judge is given twice, or is called `ensemble`.
    """
    own = [judge_name(judge) for _, judge in judges]
    named: dict[str, Judge] = {}
    for (asked_for, judge), name in zip(judges, own, strict=True):
        label = name if own.count(name) == 1 else asked_for
        if label in named or label == ENSEMBLE:
            raise UsageError(f"The judge {label!r} cannot be used under this name twice.", hint="Give each judge once.")
        named[label] = judge
    if not named:
        raise UsageError("There is no judge.", hint="Give --judge; see `katha judges`.")
    return named
