"""Score boards, find the weakest transition, and repair it by one frame (Eqs. 24 to 28, Algorithm 1)."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from katha.compass.modes import Content
from katha.composing import within
from katha.configs import load_prompt
from katha.jsonio import digest
from katha.schema import (
    Board,
    Candidate,
    CandidateScore,
    Character,
    CompassSettings,
    Frame,
    Panel,
    Plan,
    ReadBack,
    Record,
    Seen,
    Transition,
    TransitionScore,
)

# The annotation of T scenes has T-1 transitions whatever the number of displayed frames is. Coverage (Eq. 25)
# averages over the annotated transitions; a frame inserted in a transition counts for it, so the maximum runs over t,
# the inserted frame, and t+1. The copy penalty (Eq. 26) averages over the adjacent pairs of the displayed frames.
# Without an inserted frame both are the paper's formulas to the letter.

Vectors = NDArray[np.float64]


def span(frames: Sequence[Frame], pair: tuple[int, int]) -> list[int]:
    """Return the positions (from 0) of the frames of a transition: its two scenes and what was inserted between."""
    first, last = pair
    return [
        position
        for position, frame in enumerate(frames)
        if (frame.scene in (first, last) if frame.kind == "scene" else frame.transition == pair)
    ]


def transition_similarity(images: Vectors, text: Vectors) -> float:
    """Return Eq. 25's maximum: the best of the images (of shape (n, D)) for a transition's text (of shape (D,))."""
    return float(np.max(images @ text)) if len(images) else 0.0


def transition_coverage(similarities: Sequence[float], delta: float) -> float:
    """Return Eq. 25: the share of annotated transitions whose similarity is above `delta`; 0 when there is none."""
    return sum(value > delta for value in similarities) / len(similarities) if similarities else 0.0


def adjacent_similarities(images: Vectors) -> list[float]:
    """Return sim() of each pair of adjacent displayed frames; `images` holds unit vectors, of shape (N, D)."""
    return [float(value) for value in np.einsum("nd,nd->n", images[:-1], images[1:])]


def copy_penalty(adjacent: Sequence[float], gamma: float) -> float:
    """Return Eq. 26: the share of adjacent pairs that are near-duplicates (above `gamma`); 0 for a single frame."""
    return sum(value > gamma for value in adjacent) / len(adjacent) if adjacent else 0.0


def candidate_score(
    recoverability: float | None,
    coverage: float,
    copy: float,
    settings: CompassSettings,
    read_back: ReadBack | None = None,
    noise: float | None = None,
) -> CandidateScore:
    """Return Eq. 24, every term in 0..1; without recoverability (no steering question was scored) the share of pictures
    that read back as meant stands in its place, or the other two terms are all."""
    told = read_back.share if read_back is not None else 0.0
    gained = settings.lambda_r * (recoverability if recoverability is not None else told)
    total = gained + settings.lambda_t * coverage - settings.lambda_p * copy
    return CandidateScore(
        recoverability=recoverability,
        coverage=coverage,
        copy_penalty=copy,
        total=total,
        read_back=read_back,
        noise=noise,
    )


# A board is measured once; any number of weights and thresholds can be tried on its features, without judge or
# renderer.

_UNSCORED = "No steering question was scored; coverage alone counts."

BoardKey = tuple[tuple[str, str, int | None, tuple[int, int] | None], ...]
TransitionKey = tuple[tuple[int, int], BoardKey]
"""A transition and the frames that show it, whatever the rest of the board is."""


class TransitionFeatures(Record):
    """One transition on the frames that show it: recoverability in 0..1 or None, Eq. 25's maximum and the largest
    similarity of neighbouring frames (both before thresholding); and of its frames, where no question is asked, how
    many read back as meant."""

    pair: tuple[int, int]
    recoverability: float | None
    n_questions: int
    similarity: float
    adjacent: float
    read_back: ReadBack | None = Field(default=None, exclude_if=lambda told: told is None)


class BoardFeatures(Record):
    """One board: recoverability in 0..1 or None, the similarity of each adjacent pair of frames, its transitions, and
    short names of the questions that measuring it takes; where none is asked, how many pictures read back as meant."""

    recoverability: float | None
    adjacent: list[float]
    transitions: list[TransitionFeatures]
    asked: list[str] = []
    read_back: ReadBack | None = Field(default=None, exclude_if=lambda told: told is None)
    noise: float | None = Field(default=None, exclude_if=lambda told: told is None)
    """Half of what recoverability differs by between two steering prompt variants, where both were asked."""


def board_key(frames: Sequence[Frame]) -> BoardKey:
    """Return what a board's features depend on: its pictures in order, and what each stands for."""
    return tuple((frame.sha256, frame.kind, frame.scene, frame.transition) for frame in frames)


def board_mark(frames: Sequence[Frame]) -> str:
    """Return a short name of a board by its `board_key`: other boards of a story have another."""
    return digest([list(part) for part in board_key(frames)])[:8]


def weigh(name: str, board: Board, features: BoardFeatures, settings: CompassSettings) -> Candidate:
    """Return `board` with its score by Eq. 24 under `settings`."""
    # The last one that holds is told: an inserted frame may stand beside redrawn ones.
    kind: Literal["base", "inserted", "redrawn"] = "base"
    if any(frame.panel is not None for frame in board.frames):
        kind = "redrawn"
    if any(frame.transition is not None for frame in board.frames):
        kind = "inserted"
    score = candidate_score(
        features.recoverability,
        transition_coverage([item.similarity for item in features.transitions], settings.delta),
        copy_penalty(features.adjacent, settings.gamma),
        settings,
        features.read_back,
        features.noise,
    )
    transitions = [
        TransitionScore(
            **dict(item),
            covered=item.similarity > settings.delta,
            copied=item.adjacent > settings.gamma,
            note=None if item.recoverability is not None or item.read_back is not None else _UNSCORED,
        )
        for item in features.transitions
    ]
    return Candidate(name=name, kind=kind, board=board, score=score, transitions=transitions)


# Each choice comes with a sentence of reason that holds the numbers it rests on.


@dataclass(frozen=True)
class Weakest:
    """The transition of Eq. 27: its pair of scenes, its score in 0..1, and why it is the weakest."""

    pair: tuple[int, int]
    score: float
    reason: str


@dataclass(frozen=True)
class Acceptance:
    """Whether the inserted frame stays, and why."""

    accepted: bool
    reason: str


def best_candidate(candidates: Sequence[Candidate]) -> Candidate:
    """Return the arg max of Eq. 24; of equals the first. One without scored questions comes after the others."""
    return max(candidates, key=lambda item: (item.score.recoverability is not None, item.score.total))


def transition_score(transition: TransitionScore) -> float:
    """Return what Eq. 27 minimises, in 0..1: recoverability; where no question was asked the share of its pictures that
    read back as meant; where none was scored coverage alone."""
    if transition.recoverability is not None:
        return transition.recoverability
    return transition.read_back.share if transition.read_back is not None else float(transition.covered)


def weakest_transition(transitions: Sequence[TransitionScore]) -> Weakest | None:
    """Return Eq. 27's arg min, if any; ties go to the lower coverage similarity, then to the earlier transition.

    Shares of answers and coverage of 0 or 1 are two scales, which are never ranked together: where any transition has a
    scored question, only such ones are candidates; else coverage decides among all.
    """
    if not transitions:
        return None
    asked = [item for item in transitions if item.recoverability is not None or item.read_back is not None]
    ranked = sorted(asked or transitions, key=lambda item: (transition_score(item), item.similarity, item.pair))
    worst = ranked[0]
    score = transition_score(worst)
    names = f"scenes {worst.pair[0]} and {worst.pair[1]}"
    if worst.read_back is not None and worst.recoverability is None:
        reason = f"Of the frames of {names}, {worst.read_back.told()}, the smallest share of {len(asked)} transition"
        reason += f"{'s' if len(asked) != 1 else ''}."
    elif worst.recoverability is None:
        reason = (
            f"The transition between {names} has no scored steering question; by coverage alone it scores {score:.2f} "
            f"(similarity {worst.similarity:.2f})."
        )
    else:
        reason = (
            f"From the frames of {names} alone, {100 * score:.0f}% of the {worst.n_questions} steering "
            f"question{'s' if worst.n_questions != 1 else ''} could be answered, the least of {len(asked)} "
            f"transition{'s' if len(asked) != 1 else ''}."
        )
        if len(asked) < len(transitions):
            reason += f" {len(transitions) - len(asked)} without a scored question are not ranked among these."
    tied = [item for item in ranked[1:] if transition_score(item) == score]
    if tied:
        rule = "lower coverage similarity" if tied[0].similarity > worst.similarity else "earlier place"
        reason += f" It ties with {len(tied)} more and comes first by its {rule}."
    return Weakest(worst.pair, score, reason)


def accept(before: Candidate, after: Candidate, settings: CompassSettings) -> Acceptance:
    """Decide by Algorithm 1, line 13: the frozen score must rise, and no fresh frame may copy a neighbour.

    Where the boards were measured in two prompt variants the score must rise by more than its noise, the larger of the
    two boards'.

    The copy threshold is gamma of Eq. 26, held against the pairs that the insertion made; a copy elsewhere in the
    board is no reason to refuse a repair. Where no judge could answer anything there is no score to rise: coverage
    alone decides only where there is nothing to ask.
    """
    old, new = before.score, after.score
    rise = f"the score goes from {old.total:.3f} to {new.total:.3f}"
    if (old.recoverability is None) != (new.recoverability is None):
        return Acceptance(
            False, "Not inserted: only one of the two boards has scored questions, so they do not compare."
        )
    if new.recoverability is None and any(item.n_questions for item in after.transitions):
        return Acceptance(
            False,
            "Not inserted: no judge could answer a steering question about either board, so nothing shows a gain.",
        )
    closest = max((item.adjacent for item in after.transitions if item.pair in _touched(before, after)), default=0.0)
    against = f"its similarity to a neighbour is {closest:.2f}, the copy threshold {settings.gamma:.2f}"
    longer = len(after.board.frames) != len(before.board.frames)
    done, undone = ("Inserted", "Not inserted") if longer else ("Kept", "Not kept")
    noise = settings.lambda_r * max(old.noise or 0.0, new.noise or 0.0)
    if not new.total > old.total:
        return Acceptance(False, f"{undone}: {rise}, which is no improvement.")
    if not new.total - old.total > noise:
        return Acceptance(False, f"{undone}: {rise}, by no more than its noise ({noise:.3f}).")
    if closest > settings.gamma:
        return Acceptance(False, f"{undone}: {rise}, but it nearly repeats a neighbour ({against}).")
    return Acceptance(True, f"{done}: {rise}, and it repeats no neighbour ({against}).")


def _touched(before: Candidate, after: Candidate) -> set[tuple[int, int]]:
    """Return the transitions that frames stand in which only the later board has."""
    old = {frame.sha256 for frame in before.board.frames}
    fresh = [frame for frame in after.board.frames if frame.sha256 not in old]
    inserted = {frame.transition for frame in fresh or after.board.frames if frame.transition is not None}
    redrawn = {frame.scene for frame in fresh if frame.transition is None}
    return inserted | {item.pair for item in after.transitions if redrawn & {*item.pair}}


# What an inserted frame is asked to show, and prompts that are planned again.

MASTER_SEED = 42
"""The seed of every random choice that is not a generation (Table 44)."""

_CHANGE = re.compile(r"(.+?) (?:(?:changes|goes|turns) from .+? to|becomes|stays) (.+)", re.DOTALL)
_WORD = re.compile(r"\w+")
_ARTICLE = re.compile(r"^(?:the|an?) ", re.IGNORECASE)


@dataclass(frozen=True)
class Insertion:
    """One frame to insert: its prompts, the characters in it, whether it needs another seed than the board's, the
    scene whose place and time it is about, and moods that its prompt does not tell."""

    prompt: str
    negative_prompt: str
    characters: tuple[str, ...]
    other_seed: bool = False
    scene: int | None = None
    moods: tuple[Seen, ...] = ()
    panel: Panel | None = None
    """What a move wrote of it in full: where it is given, the frame is asked for by its fields."""


def written(panel: Panel) -> Insertion:
    """Return what a move inserts: a frame with fields of its own."""
    return Insertion(panel.prompt, panel.negative_prompt, tuple(panel.characters), panel=panel)


def story_rng(story_id: str) -> random.Random:
    """Return the story's own source of chance, by seed 42."""
    return random.Random(int.from_bytes(hashlib.sha256(f"{MASTER_SEED}:{story_id}".encode()).digest()[:8], "big"))


def random_pair(pairs: Sequence[tuple[int, int]], story_id: str) -> tuple[int, int]:
    """Return the transition of the random modes: the same for all of them, by seed 42 and the story's id."""
    return story_rng(story_id).choice(list(pairs))


def transition_text(transition: Transition) -> str:
    """Return r_t of Eqs. 25 and 27 as text: what is done, why, with what intention and feeling, what comes of it."""
    parts = [transition.action, transition.causality, transition.intention or "", transition.emotion or ""]
    return _sentences([*parts, transition.consequence])


def insertion(content: Content, plan: Plan, transition: Transition, story_id: str) -> Insertion:
    """Return the frame that `content` puts into `transition`.

    Where a plan says how it is seen (`Plan.visual`), a prompt tells what happens alone: looks, place and time stand
    beside it when it is composed. Else it says them itself, as the plan's fields have them.
    """
    panels = {panel.index: panel for panel in plan.panels}
    pair = before, after = panels[transition.from_scene], panels[transition.to_scene]
    names = tuple(dict.fromkeys([*before.characters, *after.characters]))
    if content == "neighbour_scene":
        throw = story_rng(story_id)
        throw.random()  # the first draw chose the transition
        panel = throw.choice(pair)
        names = tuple(panel.characters)
        return Insertion(panel.prompt, panel.negative_prompt, names, other_seed=True, scene=panel.index)
    if content == "captions":
        told = [_sentences([panel.caption or panel.prompt]) for panel in pair]
        prompt = load_prompt("bridge/captions").render(before=told[0], after=told[1])
        return Insertion(prompt, after.negative_prompt, names, scene=after.index)
    seen = plan.visual is not None
    people = [item for item in plan.characters if item.name in names]
    about = before if content == "establishing" else after
    setting = [] if seen else [part for part in (about.place, about.time_of_day) if part]
    if content == "establishing":
        looks = [within(item.name) if seen else item.appearance or item.name for item in people]
        listed = " and ".join([", ".join(looks[:-1]), looks[-1]] if len(looks) > 1 else looks)
        prompt = load_prompt("bridge/establishing").render(characters=listed or "nobody", setting=setting)
        return Insertion(prompt, before.negative_prompt, names, scene=about.index)
    shown = transition.model_copy(update={"emotion": ""}) if seen else transition
    where = _sentences([_capital(", ".join(setting))])
    plain = " ".join(load_prompt("bridge/transition").render(place=where, events=told_transition(shown)).split())
    moods = _moods(transition, names) if seen else ()
    prompt = plain if seen else _dressed(plain, people)
    return Insertion(prompt, after.negative_prompt, names, scene=about.index, moods=moods)


def _dressed(text: str, people: Sequence[Character]) -> str:
    """Return `text` with the look of each of `people`, to the letter, where it is first called by a kind that is its
    alone ("the mouse": "the small grey mouse").

    A look that is more than that noun with what belongs to it can be part of no sentence; it stands beside them when
    the prompt is composed, as all looks do.
    """
    kinds = [one.kind for one in people]
    for one in people:
        look, kind = _ARTICLE.sub("", one.appearance), re.escape(one.kind)
        found = re.search(rf"\b(the) {kind}\b(?!['\u2019-])", text, re.IGNORECASE)
        if found and kinds.count(one.kind) == 1 and re.fullmatch(rf"[^;:.()]*\b{kind}\b[^,;:.()]*", look):
            text = f"{text[: found.end(1)]} {look}{text[found.end() :]}"
    return text


def _moods(transition: Transition, names: Sequence[str]) -> tuple[Seen, ...]:
    """Return who of the cast feels what in the end: "the lion goes from calm to anger" is the lion's anger."""
    found = []
    for clause in re.split(r"[;.]\s*", transition.emotion or ""):
        change = _CHANGE.match(clause)
        who, mood = (change[1], change[2]) if change is not None else ("", "")
        found += [Seen(name=name, mood=mood) for name in names if within(name).lower() == within(who or " ").lower()]
    return tuple(found)


def told_transition(transition: Transition) -> list[str]:
    """Return what a picture of `transition` has to show, as sentences, without those that an earlier one says.

    What is done, what comes of it, how they feel, and last what caused it: a prompt that is too long loses its end, and
    the cause is what the scene before shows already.
    """
    feeling = _CHANGE.sub(r"\1 is \2", transition.emotion or "")
    cause = transition.causality.rsplit(" because ", 1)[-1]
    kept: list[str] = []
    for part in (transition.action, transition.consequence, feeling, cause):
        words = set(_WORD.findall(part.lower()))
        if words and not any(words <= set(_WORD.findall(other.lower())) for other in kept):
            kept.append(_sentences([_capital(part)]))
    return kept


def _capital(text: str) -> str:
    return text.strip()[:1].upper() + text.strip()[1:]


def _sentences(parts: Sequence[str]) -> str:
    """Return `parts` as sentences: blank ones dropped, repeated ones once, each ended by a full stop."""
    clean = dict.fromkeys(part.strip() for part in parts if part.strip())
    return " ".join(part if part[-1] in ".!?" else f"{part}." for part in clean)
