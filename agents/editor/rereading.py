"""What rests on an edited board: its transitions, read again where the pictures' words changed, and their questions.

Questions that katha made from the transitions are made anew, and those that come out the same keep their name, half and
options, so that nothing is asked twice. Questions written by a person move with their scenes, or go with them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from katha.agents.editor.board_edits import EditResult
from katha.agents.editor.edits import Pair
from katha.eval_bridge.questions.build import build_questions, prepare_questions
from katha.planners.plan_revision import resealed
from katha.reading import story_reader
from katha.schema import Plan, Question, Scene, StoryRecord, Transition


@dataclass(frozen=True)
class Reread:
    """The plan and story that go with an edited board. `asked_anew`: some question is another than before. `remarks`:
    on its transitions and questions."""

    plan: Plan
    story: StoryRecord
    asked_anew: bool
    remarks: tuple[str, ...]


def reread(old: Plan, story: StoryRecord, settled: EditResult) -> Reread:
    """Return what the plan `old` and its prepared `story` become with an edited board."""
    transitions, fresh, remarks = _transitions(settled, story)
    own = bool(story.transitions)
    plan = resealed(settled.plan.model_copy(update={"transitions": transitions}), story, old)
    changes: dict[str, object] = {"transitions": transitions} if own else {}
    if story.scenes:
        changes["scenes"] = _scenes(story.scenes, plan, settled.scenes)
    moved = story.model_copy(update=changes)
    if plan == old and moved == story and all(was == now for was, now in settled.scenes.items()):
        told = (*_told(fresh, asked=False), *remarks)
        return Reread(plan, story, False, told)  # another picture of the same words
    questions, more = _questions(old, story, plan, moved, settled)
    before = {item.question_id: _asked(item) for item in story.recoverability_questions}
    anew = before != {item.question_id: _asked(item) for item in questions}
    final = moved.model_copy(update={"recoverability_questions": questions})
    return Reread(plan, final, anew, (*_told(fresh, asked=anew), *remarks, *more))


def _told(fresh: Sequence[Pair], *, asked: bool) -> list[str]:
    """Return the note about transitions that were read again; asked: questions were made of them."""
    if not fresh:
        return []
    named = _named(fresh)
    if asked:
        return [f"Read again from the new prompts, and their questions made again: scenes {named}."]
    return [f"Read again from the new prompts: scenes {named}. The questions are those of the text, and stay."]


def _asked(item: Question) -> tuple[object, ...]:
    return (item.question, item.gold_answer, item.target_transition, tuple(item.options or ()), item.role)


def _named(pairs: Sequence[Pair]) -> str:
    return ", ".join(f"{one} to {two}" for one, two in pairs)


def _transitions(settled: EditResult, story: StoryRecord) -> tuple[list[Transition], list[Pair], list[str]]:
    """The transitions by their new numbers, and those that were read from changed prompts, where they can be."""
    known = {item.pair: item for item in settled.plan.transitions}
    # A rule's reading would write over what a model said of the change, and of how it is seen.
    written = any(item.device or item.shown for item in settled.plan.transitions)
    read = _read(settled.plan, story, settled.reread) if settled.reread and not written else {}
    anew: list[Pair] = []
    kept: list[Pair] = []
    none: list[Pair] = []
    for pair in settled.reread:
        if pair in read:
            known[pair] = read[pair].model_copy(update={"moral_target": _moral(known, pair, read[pair])})
            anew.append(pair)
        else:
            (kept if pair in known else none).append(pair)
    remarks = []
    if kept:
        why = "nobody who does anything can be read in one of their prompts"
        if written:
            why = "a model wrote them"
        remarks.append(f"Kept as they were, because {why}: the transitions of scenes {_named(kept)}.")
    if none:
        remarks.append(
            f"Nothing is asked of scenes {_named(none)}: their prompts do not tell what happens from one to the next."
        )
    return [known[pair] for pair in sorted(known)], anew, remarks


def _moral(known: Mapping[Pair, Transition], pair: Pair, read: Transition) -> str | None:
    """The story's lesson, which no edit of a panel changes."""
    told = [known[pair]] if pair in known else list(known.values())
    return next((item.moral_target for item in told if item.moral_target), read.moral_target)


def _read(plan: Plan, story: StoryRecord, pairs: Sequence[Pair]) -> dict[Pair, Transition]:
    """Return what the installed reader reads of these pairs in the prompts, which are what is drawn, each with all of
    them around it; pairs that tell of nobody are left out."""
    reader, asked = story_reader(), {number for pair in pairs for number in pair}
    made = reader.linked(story.story_id, [panel.prompt for panel in plan.panels])
    acting = {panel.index for panel in plan.panels if panel.index in asked and reader.acts(panel.prompt)}
    return {item.pair: item for item in made if acting.issuperset(item.pair)}


def _scenes(scenes: Sequence[Scene], plan: Plan, numbers: Mapping[int, int]) -> list[Scene]:
    """The record's scenes by their new numbers; a new panel is a scene that says what its prompt says."""
    moved = {numbers[item.scene_index]: item for item in scenes if item.scene_index in numbers}
    return [
        moved[panel.index].model_copy(update={"scene_index": panel.index})
        if panel.index in moved
        else Scene(
            story_id=plan.story_id,
            scene_index=panel.index,
            scene_text=panel.caption or panel.prompt,
            characters=panel.characters,
        )
        for panel in plan.panels
    ]


def _questions(
    old: Plan, story: StoryRecord, plan: Plan, moved: StoryRecord, settled: EditResult
) -> tuple[list[Question], list[str]]:
    """The questions of the edited board, and what of them was dropped."""
    bare: dict[str, list[Question]] = {"recoverability_questions": []}
    was = _built(story.model_copy(update=bare), old)
    built = {_content(item) for item in was}
    made = [item for item in story.recoverability_questions if _content(item) in built]
    own = [item for item in story.recoverability_questions if _content(item) not in built]
    kept = [item for item in (_renumbered(item, settled.scenes) for item in own) if item is not None]
    remarks = []
    if len(kept) < len(own):
        gone = len(own) - len(kept)
        many = "s went" if gone > 1 else " went"
        remarks.append(f"{gone} of the story's own question{many} with the scenes that they ask about.")
    touched = [item for item in kept if item.target_transition in settled.reread]
    if touched:
        remarks.append(
            f"{len(touched)} of the story's own questions ask about changed scenes and were kept: "
            "katha does not write over what a person wrote."
        )
    if made or not own:
        kept += _renewed(made, _built(moved.model_copy(update=bare), plan), settled.scenes, story)
    return prepare_questions(kept, (), seed=42), remarks


def _built(story: StoryRecord, plan: Plan) -> list[Question]:
    """The questions that katha makes of a plan without questions, as `prepare_story` does."""
    annotated = plan.model_copy(update={"transitions": story.transitions}) if story.transitions else plan
    return build_questions(story, annotated)


def _content(item: Question) -> tuple[object, ...]:
    return (item.question_type, item.target_transition, item.question, item.gold_answer)


def _renumbered(item: Question, numbers: Mapping[int, int]) -> Question | None:
    """Return a question written by a person, by the new numbers; None when its scene is gone or moved."""
    pair = item.target_transition
    named = [*(pair or ()), *item.evidence_scenes, *([item.target_scene] if item.target_scene else [])]
    if any(number not in numbers for number in named):
        return None
    if pair is not None and numbers[pair[1]] != numbers[pair[0]] + 1:
        return None
    return item.model_copy(
        update={
            "target_transition": (numbers[pair[0]], numbers[pair[1]]) if pair is not None else None,
            "target_scene": numbers[item.target_scene] if item.target_scene else item.target_scene,
            "evidence_scenes": [numbers[number] for number in item.evidence_scenes],
        }
    )


def _renewed(
    made: Sequence[Question], now: Sequence[Question], numbers: Mapping[int, int], story: StoryRecord
) -> list[Question]:
    """`now` with the name, half and options of every question that was there before, and new names for the others."""
    before = {_content(item): item for item in (_renumbered(one, numbers) for one in made) if item is not None}
    used = {item.question_id for item in story.recoverability_questions}
    number, found = len(used), []
    for item in now:
        known = before.get(_content(item))
        if known is not None:
            found.append(known)
            continue
        while f"{story.story_id}_q{number + 1}" in used:
            number += 1
        number += 1
        found.append(item.model_copy(update={"question_id": f"{story.story_id}_q{number}"}))
    return found
