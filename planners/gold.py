"""The planners that draw from annotations: `scene` and `oracle`.

Nothing is read here: what a record says comes as it says it, whole fields at a time, and whoever is in a picture is
known by the name that the record lists.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from katha.errors import PlanError
from katha.planners.base import (
    NEGATIVE_PROMPT,
    SEES_GOLD,
    SEES_STRUCTURE,
    SMALL,
    LadderPlanner,
    as_sentence,
    covered,
    fit,
    literal,
)
from katha.protocols import PlanRequest
from katha.schema import Character, Panel, Plan, Scene, StoryRecord, Transition

_PAUSE = re.compile(r"[.,;:!?\n]+")


@dataclass(frozen=True)
class GoldCast:
    """Whoever the scenes of a record list, each by the name that it lists first."""

    characters: tuple[Character, ...]

    def shown(self, prompt: str, listed: Sequence[str]) -> list[str]:
        """Return who is in a panel: whoever its scene lists, and whoever of the cast its prompt names."""
        keys = {name.strip().lower() for name in listed}
        # "man" is not named by "the old man" where both are in the cast: longer names are found first.
        names = sorted((item.name for item in self.characters), key=len, reverse=True)
        keys |= {found[0].lower() for found in literal(names).finditer(prompt)} if names else set()
        return [item.name for item in self.characters if item.name.lower() in keys]

    def seen_in(self, panels: Sequence[Panel]) -> list[Character]:
        """Return the characters that at least one panel shows."""
        seen = {name for panel in panels for name in panel.characters}
        return [item for item in self.characters if item.name in seen]


def cast_of(story: StoryRecord) -> GoldCast:
    """Return one character for each name that the scenes list; of names that differ in capitals alone the first counts.

    Kind and look are the record's own words: the name, with what its prompts repeat around it.
    """
    names: dict[str, str] = {}
    for name in (name.strip() for scene in story.scenes for name in scene.characters if name.strip()):
        names.setdefault(name.lower(), name)
    prompts = [scene.generation_prompt for scene in story.scenes]
    looks = [(name, look_of(name, prompts)) for name in names.values()]
    return GoldCast(tuple(Character(name=name, kind=name, appearance=look, anchor_prompt=look) for name, look in looks))


def look_of(name: str, prompts: Sequence[str]) -> str:
    """Return a name with the words around it that all prompts that have it repeat ("small grey mouse"); the name alone
    where they repeat none, or where fewer than two have it."""
    mentions = list(dict.fromkeys(found for prompt in prompts if (found := _mention(name, prompt)) is not None))
    if len(mentions) < 2:
        return name
    before = list(_shared([tuple(reversed(words)) for words, _ in mentions]))
    after = list(_shared([words for _, words in mentions]))
    small = next((at for at, word in enumerate(before) if word.lower() in SMALL), len(before))
    before = before[:small] if all(SMALL & {word.lower() for word in words} for words, _ in mentions) else []
    while after and after[-1].lower() in SMALL:
        after.pop()
    # One word after a name is what the character does or is: of two ("in green") it is part of the look.
    return " ".join([*reversed(before), name, *(after if len(after) > 1 else [])])


def _mention(name: str, prompt: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the words before and after the first mention of a name, up to a mark; None where it is not named."""
    for clause in _PAUSE.split(prompt):
        if found := literal([name]).search(clause):
            return tuple(clause[: found.start()].split()), tuple(clause[found.end() :].split())
    return None


def _shared(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the words that all rows begin with."""
    for words in zip(*rows, strict=False):
        if len({word.lower() for word in words}) > 1:
            return
        yield words[0]


class ScenePlanner(LadderPlanner):
    """Structured scene prompts: each scene's text, action, state, characters, objects and feeling, as the record has
    them.

    It needs a record with scenes, and sees no transition, no prompt and no list of what must be visible.
    """

    name = "scene"
    sees = SEES_STRUCTURE
    version = 2
    needs_scenes = True

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Return a plan of one structured prompt a scene."""
        seen, information = self.seen(story, request)
        cast, limit = cast_of(seen), request.prompt_tokens
        panels = [_panel(scene, cast, _structured(scene), [], limit) for scene in seen.scenes]
        return self.made(story, request, information, panels, characters=cast.seen_in(panels))


class OraclePlanner(LadderPlanner):
    """The gold annotation drawn: prompts, what must be visible, and what each transition must make readable.

    An upper bound, not a planner to deploy: it needs a record with scenes and transitions.
    """

    name = "oracle"
    sees = SEES_GOLD
    version = 2
    needs_scenes = True

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Return a plan of one panel a scene, with the record's transitions and questions."""
        seen, information = self.seen(story, request)
        if not seen.transitions:
            raise PlanError(
                f"Record {story.story_id!r} has no transitions, which planner 'oracle' draws.",
                hint="Annotate them, or use --planner scene.",
            )
        cast, transitions = cast_of(seen), sorted(seen.transitions, key=lambda item: item.pair)
        panels = [self._drawn(scene, cast, transitions, request.prompt_tokens) for scene in seen.scenes]
        questions, characters = seen.recoverability_questions, cast.seen_in(panels)
        return self.made(
            story, request, information, panels, characters=characters, transitions=transitions, questions=questions
        )

    def _drawn(self, scene: Scene, cast: GoldCast, transitions: Sequence[Transition], limit: int | None) -> Panel:
        """Return the scene's own prompt, and what the transition that leads into it needs to be seen in it.

        Its deed comes first: a renderer that draws one deed a character draws that one.
        """
        given = as_sentence(scene.generation_prompt)
        sentences = [given] if given else _structured(scene)
        into = [item for item in transitions if item.to_scene == scene.scene_index]
        deeds = [item.action for item in into if item.action.strip()]
        sentences = [*(as_sentence(deed) for deed in deeds if not covered(deed, " ".join(sentences))), *sentences]
        seen = [*deeds, *(item.consequence for item in into if item.consequence.strip())]
        felt = [item.emotion or "" for item in into]
        _complete(sentences, [*scene.visual_must_show, *scene.characters, *scene.objects, *felt, *seen])
        return _panel(scene, cast, sentences, [*scene.visual_must_show, *seen], limit)


def _structured(scene: Scene) -> list[str]:
    """Return the scene's text, and what of action, state, who and what is there and the feeling it does not say."""
    sentences: list[str] = []
    _complete(sentences, [scene.scene_text, scene.action, scene.state])
    _complete(sentences, [*scene.characters, *scene.objects, scene.emotion or ""])
    return sentences


def _complete(sentences: list[str], items: Sequence[str]) -> None:
    """Add, a sentence each, what the sentences do not say yet."""
    for item in items:
        if item.strip() and not covered(item, " ".join(sentences)):
            sentences.append(as_sentence(item))


def _panel(scene: Scene, cast: GoldCast, sentences: Sequence[str], must_show: list[str], limit: int | None) -> Panel:
    prompt = fit(sentences, limit)
    return Panel(
        index=scene.scene_index,
        prompt=prompt,
        negative_prompt=NEGATIVE_PROMPT,
        caption=scene.scene_text,
        characters=cast.shown(prompt, scene.characters),
        must_show=list(dict.fromkeys(item.strip() for item in must_show if item.strip())),
    )
