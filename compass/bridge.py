"""What an inserted frame is asked to show, and prompts that are planned again."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from katha.compass.modes import Content, Mode
from katha.configs import load_prompt
from katha.protocols import Similarity
from katha.schema import Panel, Plan, Transition

MASTER_SEED = 42
"""The seed of every random choice that is not a generation (Table 44)."""

_CHANGE = re.compile(r"(.+?) (?:(?:changes|goes|turns) from .+? to|becomes|stays) (.+)", re.DOTALL)
_WORD = re.compile(r"\w+")
_ARTICLE = re.compile(r"^(?:the|an?) ", re.IGNORECASE)


@dataclass(frozen=True)
class Insertion:
    """One frame to insert: its prompts, the characters in it, and whether it needs another seed than the board's."""

    prompt: str
    negative_prompt: str
    characters: tuple[str, ...]
    other_seed: bool = False


def dice(story_id: str) -> random.Random:
    """The story's own source of chance, by seed 42."""
    return random.Random(int.from_bytes(hashlib.sha256(f"{MASTER_SEED}:{story_id}".encode()).digest()[:8], "big"))


def random_pair(pairs: Sequence[tuple[int, int]], story_id: str) -> tuple[int, int]:
    """The transition of the random modes: the same for all of them, by seed 42 and the story's id."""
    return dice(story_id).choice(list(pairs))


def transition_text(transition: Transition) -> str:
    """r_t of Eqs. 25 and 27 as text: what is done, why, with what intention and feeling, and what comes of it."""
    parts = [transition.action, transition.causality, transition.intention or "", transition.emotion or ""]
    return _sentences([*parts, transition.consequence])


def insertion(content: Content, plan: Plan, transition: Transition, story_id: str) -> Insertion:
    """The frame that `content` puts into `transition`."""
    panels = {panel.index: panel for panel in plan.panels}
    pair = (panels[transition.from_scene], panels[transition.to_scene])
    return _BUILDERS[content](plan, transition, pair, story_id)


def told_transition(transition: Transition) -> list[str]:
    """What a picture of `transition` has to show, as sentences: what is done, what comes of it, how they feel, why."""
    feeling = _CHANGE.sub(r"\1 is \2", transition.emotion or "")
    cause = transition.causality.rsplit(" because ", 1)[-1]
    return _told_once([transition.action, transition.consequence, feeling, cause])


def _neighbour(plan: Plan, transition: Transition, pair: tuple[Panel, Panel], story_id: str) -> Insertion:
    throw = dice(story_id)
    throw.random()  # the first draw chose the transition
    panel = throw.choice(pair)
    return Insertion(panel.prompt, panel.negative_prompt, tuple(panel.characters), other_seed=True)


def _establishing(plan: Plan, transition: Transition, pair: tuple[Panel, Panel], story_id: str) -> Insertion:
    names = _in_either(pair)
    looks = [character.appearance or character.name for character in plan.characters if character.name in names]
    place, time = _where(pair[0])
    prompt = load_prompt("bridge/establishing").render(characters=_listed(looks) or "nobody", place=place, time=time)
    return Insertion(prompt, pair[0].negative_prompt, names)


def _captions(plan: Plan, transition: Transition, pair: tuple[Panel, Panel], story_id: str) -> Insertion:
    before, after = (_sentences([panel.caption or panel.prompt]) for panel in pair)
    prompt = load_prompt("bridge/captions").render(before=before, after=after)
    return Insertion(prompt, pair[1].negative_prompt, _in_either(pair))


def _transition(plan: Plan, transition: Transition, pair: tuple[Panel, Panel], story_id: str) -> Insertion:
    """What is done, what comes of it, how they feel, and last what caused it: a drawing gives a character the first
    thing that is said of it, so the cause shows in those that do nothing else."""
    place, time = _where(pair[1])
    where = " ".join(part for part in (place, f"by {time}" if time else "") if part)
    events = told_transition(transition)
    prompt = load_prompt("bridge/transition").render(place=_sentences([_capital(where)]), events=events)
    names = _in_either(pair)
    return Insertion(_dressed(" ".join(prompt.split()), plan, pair, names), pair[1].negative_prompt, names)


def _told_once(parts: Sequence[str]) -> list[str]:
    """`parts` as sentences, without those that an earlier one says already."""
    kept: list[str] = []
    for part in parts:
        words = set(_WORD.findall(part.lower()))
        if words and not any(words <= set(_WORD.findall(other.lower())) for other in kept):
            kept.append(_sentences([_capital(part)]))
    return kept


def _capital(text: str) -> str:
    return text.strip()[:1].upper() + text.strip()[1:]


def _dressed(text: str, plan: Plan, pair: tuple[Panel, Panel], names: Sequence[str]) -> str:
    """`text` with each character as the panels describe it ("the mouse": "the small grey mouse"), so that the
    inserted frame shows the same ones."""
    for character in plan.characters:
        if character.name not in names:
            continue
        look = _ARTICLE.sub("", character.appearance) or character.kind
        known = set(_WORD.findall(look.lower()))
        more = [word for panel in pair for word in _adjectives(panel.prompt, character.kind) if word not in known]
        phrase = look.replace(character.kind, " ".join([*dict.fromkeys(more), character.kind]), 1)
        if character.kind in look and phrase != character.kind:
            text = re.sub(rf"\b([Tt]he|[Aa]n?) {re.escape(character.kind)}\b", rf"\1 {phrase}", text)
    return text


def _adjectives(prompt: str, kind: str) -> list[str]:
    """The lasting attributes (not feelings) that `prompt` puts before `kind`."""
    from katha.language import load_vocabulary

    found = re.findall(rf"\b(?:the|an?) ((?:\w+ ){{1,3}}){re.escape(kind)}\b", prompt.lower())
    words = load_vocabulary()
    return [word for run in found for word in run.split() if words.find(word, "attribute")]


def _where(panel: Panel) -> tuple[str, str]:
    """The place and the time of day that a panel's prompt names, in plain words; blank when it names none."""
    from katha.language import load_vocabulary, read_scene

    scene, words = read_scene(panel.prompt), load_vocabulary()
    place = words.get("setting", scene.setting).words[0] if scene.setting else ""
    return place, words.get("time", scene.time).words[0] if scene.time else ""


def _in_either(pair: tuple[Panel, Panel]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([*pair[0].characters, *pair[1].characters]))


def _listed(items: Sequence[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)


def _sentences(parts: Sequence[str]) -> str:
    """`parts` as sentences: blank ones dropped, repeated ones once, each ended by a full stop."""
    clean = dict.fromkeys(part.strip() for part in parts if part.strip())
    return " ".join(part if part[-1] in ".!?" else f"{part}." for part in clean)


_BUILDERS: dict[Content, Callable[[Plan, Transition, tuple[Panel, Panel], str], Insertion]] = {
    "neighbour_scene": _neighbour,
    "establishing": _establishing,
    "captions": _captions,
    "transition": _transition,
}


_TOKENS_A_WORD = 1.4


def weakest_prompts(plan: Plan, transitions: Sequence[Transition], similarity: Similarity) -> tuple[int, int] | None:
    """The pair of scenes whose prompts are least like their transition: Eq. 25's maximum over prompts, not pictures."""
    prompts = {panel.index: similarity.encode_text(panel.prompt) for panel in plan.panels}

    def told(step: Transition) -> float:
        text = similarity.encode_text(transition_text(step))
        return max(float(prompts[scene] @ text) for scene in step.pair)

    return min(transitions, key=lambda step: (told(step), step.pair)).pair if transitions else None


def replan(
    plan: Plan,
    transitions: Sequence[Transition],
    mode: Mode,
    similarity: Similarity,
    story_id: str,
    limit: int | None = None,
) -> Plan:
    """`plan` with one panel's prompt telling a transition, as `mode.replan` says; the same plan again is not changed.

    limit: the renderer's prompt tokens; sentences that would not fit are left out.
    """
    if mode.replan == "none" or plan.replanned is not None or not transitions:
        return plan
    pairs = [step.pair for step in transitions]
    weakest = weakest_prompts(plan, transitions, similarity)
    pair = random_pair(pairs, story_id) if mode.replan == "random" or weakest is None else weakest
    step = next(item for item in transitions if item.pair == pair)
    panels = [_told(panel, step, limit) if panel.index == step.to_scene else panel for panel in plan.panels]
    return plan.model_copy(update={"panels": panels, "replanned": pair})


def _told(panel: Panel, step: Transition, limit: int | None) -> Panel:
    events = [text for text in told_transition(step) if text.lower().rstrip(".") not in panel.prompt.lower()]
    prompt = load_prompt("bridge/replan").render(prompt=panel.prompt, events=events)
    while events and limit is not None and len(prompt.split()) * _TOKENS_A_WORD > limit:
        events.pop()
        prompt = load_prompt("bridge/replan").render(prompt=panel.prompt, events=events)
    return panel.model_copy(update={"prompt": prompt})
