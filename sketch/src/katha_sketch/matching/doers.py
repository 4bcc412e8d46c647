"""Does the one act whom the question asks about? An answer may name its own doer where the accepted one has a pronoun.

"Because Dana hurt her wrist" is no "he hurt his wrist" for why Ivo cannot play, and "Leila gets it down for Sam with a
broom" no "with a broom" for how Sam gets it down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from katha_sketch.english.words import load_words
from katha_sketch.matching.asked import Asked
from katha_sketch.matching.statements import Frame, Statement, Word
from katha_sketch.matching.wordnet import Lemma, ancestors, entails, is_somebody, same, usage

_ASKED_OF = ("deed", "how", "other", "what", "why")
"""What a question asks for whose subject is who acts in the answer as well."""
_HELD = ("content", "purpose", "pcomp")
_ALONE = ("he", "she", "it")
OBJECTS = {"he": "him", "she": "her", "it": "it", "they": "them"}


class Known(Protocol):
    """All accepted answers: who acts in any of them, and every word in them."""

    @property
    def agents(self) -> tuple[Lemma, ...]: ...

    @property
    def words(self) -> tuple[Lemma, ...]: ...


class Trial(Protocol):
    """One answer held against one accepted answer, as far as it is asked here."""

    @property
    def wanted(self) -> Statement: ...

    @property
    def said(self) -> Statement: ...

    @property
    def known(self) -> Known: ...

    @property
    def asked(self) -> Asked: ...

    def asks_of(self, frame: Frame) -> bool: ...


def _is_one(lemma: Lemma, known: Iterable[Lemma]) -> bool:
    return any(entails(lemma, other) or entails(other, lemma) for other in known)


def _parts(statement: Statement, lemmas: Sequence[Lemma], doer: Word) -> bool:
    """Whether one of the words takes part in the statement otherwise than as who acts."""
    return any(
        word.at != doer.at
        and word.part != "agent"
        and word.owner != doer.at
        and any(same(word.lemma, x) for x in lemmas)
        for word in statement.words
        if word.lemma[0] == "n"
    )


def _of_topic(trial: Trial, wanted: Frame | None) -> bool:
    """Whether who acts in an accepted clause is the one asked about: by name, by a pronoun that fits, or unsaid."""
    if wanted is None:
        return trial.asked.asks != "why"
    named = trial.wanted.filled(wanted.agents)
    if named:
        return any(_is_one(word.lemma, trial.asked.topic) for word in named)
    if trial.asked.asks != "why":
        return True
    pronoun, given = wanted.agent_pronoun, trial.wanted.given.lower().split()
    return pronoun in given and (pronoun in _ALONE if len(trial.asked.topic) == 1 else pronoun == "they")


def _another(trial: Trial, doer: Word) -> bool:
    """Whether a doer of the answer is not the one asked about: another name or kind, or one who acts on that one."""
    asked, known = trial.asked, trial.known
    somebody = doer.proper or is_somebody(doer.lemma[1]) or doer.lemma[1] in usage().sets["anyone"]
    apart = usage().sets["others"] - {lemma[1] for lemma in (*asked.words, *known.words)}
    if not apart.isdisjoint(word.lemma[1] for word in trial.said.words if word.owner == doer.at):
        return somebody or doer.lemma[1] == "one"
    if not somebody or _is_one(doer.lemma, asked.topic) or _is_one(doer.lemma, known.agents):
        return False
    return doer.proper or _of_another_kind(trial, doer.lemma) or _parts(trial.said, asked.topic, doer)


def is_kind(lemma: Lemma, known: Iterable[Lemma]) -> bool:
    """Return whether a word is a wider one for somebody known: "the little bird" for the wren."""
    words = load_words()
    return is_somebody(lemma[1]) and any(
        lemma[1] in ancestors(each)
        or (not ancestors(each) and words.sort(each[1]) == "animal" and lemma[1] in usage().sets["classes"])
        for each in known
    )


def _of_another_kind(trial: Trial, lemma: Lemma) -> bool:
    """Whether a word is for an animal that the one asked about is not."""
    sorts, known = load_words(), (*trial.asked.words, *trial.known.words)
    topic = {sorts.sort(each[1]) for each in trial.asked.topic}
    animals = sorts.sort(lemma[1]) == "animal" and topic <= {"animal", "person"}
    said = lemma in known or is_kind(lemma, trial.asked.topic) or lemma[1] in usage().sets["vague"]
    return animals and trial.asked.asks != "why" and not said


def _caused(trial: Trial, frame: Frame) -> bool:
    """Whether a clause is what the one asked about brings about: "he makes sure that Claire gets it"."""
    above = trial.said.frames[frame.above] if frame.above >= 0 and frame.link == "content" else None
    ordered = above is not None and above.verb[1] in usage().sets["controlling"]
    return above is not None and not (above.agents or ordered) and not load_words().has("say", above.verb[1])


def _clauses(trial: Trial, pairs: Sequence[tuple[Word, Word]]) -> dict[int, Frame | None]:
    """The clauses of the answer that say what is accepted, or hold it ("lets him ride"), with what each stands for."""
    found: dict[int, Frame | None] = {}
    for word, other in pairs:
        frame = trial.wanted.frame_of(word)
        number, says = other.frame, word.part in ("verb", "state")
        if number < 0 or other.part == "modifier" or (trial.asked.asks == "why" and not says):
            continue
        found.setdefault(number, frame)
        while trial.asked.asks != "why" and trial.said.frames[number].link in _HELD:
            if trial.said.frames[number].agents or trial.said.frames[number].above < 0:
                break
            number = trial.said.frames[number].above
            found.setdefault(number, frame)
    return found


_MAIN = ("", "conj", "advcl", "because")
_CONTRASTS = frozenset(("but", "while", "whereas", "although", "though"))


def _contrasted(trial: Trial, pairs: Sequence[tuple[Word, Word]]) -> bool:
    """Whether it is said of another, and something else of the one asked about: "it stays up, but the baker falls"."""
    asked, frames = trial.asked, trial.said.frames
    clauses = {found.frame: trial.wanted.frame_of(word) for word, found in pairs if word.part in ("verb", "state")}
    contrast = not _CONTRASTS.isdisjoint(trial.said.given.lower().split())
    if (
        not asked.topic
        or not clauses
        or any(number < 0 for number in clauses)
        or (asked.asks == "why" and not contrast)
    ):
        return False
    for number, wanted in clauses.items():
        frame = frames[number]
        doers = trial.said.filled(frame.agents) or _subjects(trial.said, frame)
        undergone = wanted is not None and wanted.passive and frame.other_pronoun and not frame.passive
        if wanted is None or undergone or frame.link not in _MAIN or not doers:
            return False
        acted = frame.other_pronoun or any(
            word.part == "other" and _is_one(word.lemma, asked.topic) for word in trial.said.filled(frame.others)
        )
        named = trial.wanted.filled(wanted.agents) or _subjects(trial.wanted, wanted)
        known = [*asked.topic, *(word.lemma for word in named if acted or not wanted.other_pronoun)]
        if any(_is_one(doer.lemma, known) for doer in doers):
            return False
    return any(
        any(_is_one(word.lemma, asked.topic) for word in trial.said.filled(frame.agents))
        or (contrast and frame.agent_pronoun in (*_ALONE, "they") and not frame.passive)
        for number, frame in enumerate(frames)
        if number not in clauses and frame.link in _MAIN
    )


def _subjects(statement: Statement, frame: Frame) -> list[Word]:
    """Whom a passive clause is about."""
    acted = [word for word in statement.filled(frame.others) if word.part == "other" and not word.preposition]
    return acted if frame.passive else []


def _befalls_another(trial: Trial, pairs: Sequence[tuple[Word, Word]]) -> bool:
    """Whether what befalls a thing befalls another of the question, or somebody: "the rain gets wet" for a letter."""
    asked = trial.asked
    if asked.asks != "event" or any(lemma in asked.people for lemma in asked.topic) or not asked.topic:
        return False
    for word, found in pairs:
        one, two = trial.wanted.frame_of(word), trial.said.frame_of(found)
        if one is None or two is None or word.part not in ("verb", "state") or two.passive or one.passive or one.agents:
            continue
        doers = trial.said.filled(two.agents)
        others = [each for each in trial.said.filled(two.others) if each.part == "other"]
        about = [each.lemma for each in trial.said.words if each.part != "agent" or each.at not in two.agents]
        strange = [
            doer
            for doer in doers
            if not _is_one(doer.lemma, asked.topic) and (is_somebody(doer.lemma[1]) or doer.lemma in asked.others)
        ]
        acts = any(_is_one(lemma, asked.topic) for lemma in about if lemma[0] == "n") or two.other_pronoun or others
        if strange and len(strange) == len(doers) and one.agent_pronoun and not acts:
            return True
    return False


def another_owner(trial: Trial, pairs: Sequence[tuple[Word, Word]], items: Iterable[Statement]) -> bool:
    """Return whether something is another's: "the peacock's feathers are plain" for the crane's."""
    for word, found in pairs:
        if word.lemma[0] != "n" or found.lemma[0] != "n" or word.part not in ("agent", "head", "other"):
            continue
        said = _owners(trial.said, found.at)
        if not said:
            continue
        owners = [
            owner
            for item in items
            for each in item.words
            if entails(found.lemma, each.lemma)
            for owner in _owners(item, each.at)
        ]
        if owners and all(lemma in trial.asked.words for lemma in said) and not any(_is_one(x, owners) for x in said):
            return True
    return False


def _owners(statement: Statement, at: int) -> list[Lemma]:
    """Who has what stands at a place, by name: not "his"."""
    return [
        word.lemma
        for word in statement.words
        if word.owner == at and word.preposition == "of" and (word.proper or is_somebody(word.lemma[1]))
    ]


def beside_the_point(trial: Trial, found: Word, told: Mapping[int, int]) -> bool:
    """Return whether what is asked for is only met in an aside: "the movers, while the brothers watch"."""
    if found.frame < 0 or found.part not in ("agent", "other"):
        return False
    frame, said = trial.said.frames[found.frame], trial.said
    if trial.asks_of(frame) or frame.passive:
        return False
    heads = [word for word in said.words if word.part == "head" and word.frame < 0]
    if heads and not any(word.at in told for word in heads) and not _CONTRASTS.isdisjoint(said.given.lower().split()):
        return True
    idle = found.part == "agent" and not frame.stative and not frame.other_pronoun and not said.filled(frame.others)
    return trial.asked.asks == "how" and trial.wanted.lead in ("with", "by") and idle


def kept_from(trial: Trial, pairs: Sequence[tuple[Word, Word]]) -> bool:
    """Return whether what one is kept from is what is kept: "protect the bees from her" for "her from the bees"."""
    verbs = {(word.frame, found.frame) for word, found in pairs if word.part == found.part == "verb"}
    return any(
        (word.frame, found.frame) in verbs
        and {word.preposition, found.preposition} == {"from", ""}
        and {word.part, found.part} == {"other", "adjunct"}
        and not trial.said.frames[found.frame].passive
        and not trial.wanted.frames[word.frame].passive
        and "from" in {each.preposition for each in trial.said.words if each.frame == found.frame}
        for word, found in pairs
        if word.frame >= 0 and found.frame >= 0
    )


def another_doer(trial: Trial, pairs: Sequence[tuple[Word, Word]]) -> bool:
    """Return whether somebody else does in the answer what the one asked about does in the accepted answer."""
    asked = trial.asked
    if _contrasted(trial, pairs) or _befalls_another(trial, pairs):
        return True
    if asked.asks not in _ASKED_OF or not any(lemma in asked.people for lemma in asked.topic):
        return False
    return any(
        _of_topic(trial, wanted) and _another(trial, doer)
        for number, wanted in _clauses(trial, pairs).items()
        if not _caused(trial, trial.said.frames[number])
        for doer in trial.said.filled(trial.said.frames[number].agents)
    )


def turned(trial: Trial, one: Frame | None, two: Frame) -> bool:
    """Return whether pronouns change places: "they ask her" for "she asks them", told or only asked about."""
    acts, acted = two.agent_pronoun, two.other_pronoun
    if not acts or acted not in OBJECTS.values() or OBJECTS.get(acts) == acted:
        return False
    if one is not None and one.agent_pronoun and one.other_pronoun and not one.passive and not two.passive:
        return OBJECTS.get(acts) == one.other_pronoun and OBJECTS.get(one.agent_pronoun) == acted
    whom = trial.asked.acted
    plain = OBJECTS.get(acts) == whom and acted not in ("it", whom)
    return one is None and plain and trial.asked.asks in _ASKED_OF and trial.asks_of(two)
