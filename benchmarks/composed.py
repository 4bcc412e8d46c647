"""A random sample of the prompts that recorded plans come to, for a reader who judges whether an illustrator could draw
from them.

    python -m benchmarks.composed RECORDING... --sample 100 --seed 20261130 > prompts.txt

Every plan of the recordings is read as the planner reads it; every panel of it is said in the words of every family of
renderers, and as `vector` asks for the frame. A family's budget is counted in estimated tokens.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from katha.agents.requests import panel_request
from katha.composing import compose, load_family
from katha.composing.families import composing_data
from katha.configs import load_config
from katha.models.recordings import last_words, read_recording
from katha.planners.draft import PlanShape, read_draft, read_reply
from katha.planners.gemma_st import PlannedParts, StoryPart
from katha.protocols import tokens_of
from katha.renderers.vector.brief import Brief
from katha.schema import Character, Plan, StoryRecord

__all__ = ["plans_in", "said_of"]

_BEGINS = "You plan a storyboard"
_CANVAS = (1280, 720)


def plans_in(recording: Path) -> Iterator[Plan]:
    """Yield the plans of a recording, each as its first reply has it."""
    read = read_recording(recording)
    for number, key in enumerate(read.lines):
        kept = read.get(key)
        if kept is None or not last_words(kept.call.request).startswith(_BEGINS):
            continue
        value, _ = read_reply(kept.reply.received.text)
        draft = read_draft(value)[0] if value is not None else None
        if draft is None or not draft.panels:
            continue
        last = max(panel.first_sentence or 1 for panel in draft.panels)
        told, sentences = PlannedParts(), tuple("x" for _ in range(last))
        shape = PlanShape(1, len(draft.panels), (1, last))
        told.add(StoryRecord(story_id="x", story_text="x"), StoryPart(sentences, (), 1, shape), draft)
        yield Plan(
            story_id=f"{recording.parent.name}/{recording.stem}/{number}",
            planner="gemma-st",
            style=load_config("presets/flux.yaml")["style"],
            characters=[Character(**one.model_dump()) for one in told.cast],
            panels=told.panels,
            transitions=[transition for transition, _ in told.pairs],
            visual=told.board,
        )


def said_of(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield what each family of renderers, and `vector`, is told of each panel: the family, and the prompt."""
    brief = Brief(plan, _CANVAS, load_config("vector.yaml")["styles"]["picture-book"])
    for panel in plan.panels:
        request = panel_request(plan, panel, 42, _CANVAS)
        for name in composing_data().families:
            yield name, compose(request, load_family(name), tokens_of).text
        yield "vector", brief.asks(request, "")


def main(words: Sequence[str] | None = None) -> None:
    """Print a numbered sample, as many of each family as of the others."""
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("recordings", nargs="+", type=Path)
    given.add_argument("--sample", type=int, default=100)
    given.add_argument("--seed", type=int, default=20261130)
    asked = given.parse_args(words)
    prompts: dict[str, dict[str, None]] = {}
    for recording in asked.recordings:
        for plan in plans_in(recording):
            for family, text in said_of(plan):
                prompts.setdefault(family, {})[text] = None
    chosen = random.Random(asked.seed)
    drawn = {family: chosen.sample(list(texts), len(texts)) for family, texts in prompts.items()}
    turns = [drawn[family][at] for at in range(asked.sample) for family in drawn if at < len(drawn[family])]
    sample = turns[: asked.sample]
    chosen.shuffle(sample)
    for number, text in enumerate(sample, 1):
        print(f"{number}. {text.strip()}\n")


if __name__ == "__main__":
    main()
