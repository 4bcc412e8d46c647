"""Six small boards: three stories by two methods, one of which inserted a bridge; and a study made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evals import picture

from katha.app.people import PackedStudy, pack_study
from katha.eval_bridge.matching.match import Rule
from katha.eval_bridge.matching.rules import open_rule
from katha.eval_bridge.people.design import Material
from katha.experiments.people import PeopleStudyOptions
from katha.jsonio import sha256_hex
from katha.schema import Question, StoryRecord

STORIES = ("ant", "bee", "cow")
KINDS = ("causal", "emotional", "moral")


def records() -> list[StoryRecord]:
    """Stories with three questions each; the accepted answers say SECRET beside what a page may show."""

    def question(story: str, kind: str) -> Question:
        return Question(
            question_id=f"{story}_{kind}",
            story_id=story,
            question_type=kind,  # type: ignore[arg-type]
            question=f"What about {story} and {kind}?",
            gold_answer="gold",
            accepted_answers=["SECRET"],
            options=["gold", "silver", "iron", "tin", "Unclear"],
        )

    return [
        StoryRecord(
            story_id=name,
            story_text=f"Once the {name} went out <b>alone</b> & came back.",
            moral_label="courage",
            recoverability_questions=[question(name, kind) for kind in KINDS],
        )
        for name in STORIES
    ]


def material() -> Material:
    """The same as it is laid out, without files."""
    every = frozenset(STORIES)
    return Material(records(), {"fixed": every, "plain": every}, {"fixed": every, "plain": frozenset()})


def draw_boards(folder: Path) -> None:
    """Draw `plain` (five pictures) and `fixed` (the same with a bridge after the second) for every story."""
    for at, story in enumerate(STORIES):
        plain = folder / "plain" / story
        fixed = folder / "fixed" / story
        for place in (plain, fixed):
            place.mkdir(parents=True)
        frames: list[dict[str, Any]] = []
        for number in range(1, 6):
            data = picture(number + 7 * at)
            (plain / f"{number}.png").write_bytes(data)
            (fixed / f"{number}.png").write_bytes(data)
            frames.append({"kind": "scene", "scene": number, "image": f"{number}.png", "sha256": sha256_hex(data)})
        bridge = picture(6 + 7 * at + 100)
        (fixed / "bridge.png").write_bytes(bridge)
        frames.insert(2, {"kind": "bridge", "transition": [2, 3], "image": "bridge.png", "sha256": sha256_hex(bridge)})
        told = [{**frame, "index": index, "prompt": "SECRET prompt"} for index, frame in enumerate(frames, 1)]
        (fixed / "storyboard.json").write_text(json.dumps({"story_id": story, "frames": told}))


def pack(folder: Path, **options: Any) -> PackedStudy:
    """Make the study `folder/study`; `methods` are the boards that are shown, both unless told."""
    methods = options.pop("methods", ("fixed", "plain"))
    if not (folder / "boards").exists():
        draw_boards(folder / "boards")
        lines = [record.model_dump_json() for record in records()]
        (folder / "stories.jsonl").write_text("\n".join(lines) + "\n")
    boards = [f"{name}={folder / 'boards' / name}" for name in methods]
    return pack_study(str(folder / "stories.jsonl"), boards, folder / "study", PeopleStudyOptions(**options))


def recorded() -> Rule:
    """The rule that answers are matched by."""
    return open_rule("lemma-set", [])
