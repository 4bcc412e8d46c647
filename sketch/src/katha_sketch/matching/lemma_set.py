"""The rule `lemma-set`: does an answer say what one of the accepted answers says, in other words?

An answer is right when some accepted answer's content words are all in it (by stem and synonym group; a pronoun may
stand for who acts or is acted on), and

- it denies nothing that the accepted answer does not deny, and the other way round;
- who acts and who is acted on are not exchanged, be it active or passive, and nobody else acts;
- what is put in order is in the same order: "A before B", "B after A", "from A to B";
- an accepted noun phrase is what the answer names, not something that its verb acts on;
- nothing else in it is the opposite of what was accepted.

Deterministic, without a model. The order of rejection gives the reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from katha_sketch.matching.lemma_clauses import (
    AUXILIARY,
    BE,
    DETERMINERS,
    PLACES,
    Clause,
    Order,
    clauses,
    moment_of,
    order_of,
    read_clause,
)
from katha_sketch.matching.lemmas import Word, lexicon, read_words

_POSSESSOR = re.compile(r"\w+['\u2019]s?\s")
_ASKING = frozenset(("what", "why", "how", "which", "who", "where", "whom", "whose"))


@lru_cache(maxsize=4096)
def _topic(question: str) -> frozenset[str]:
    """The stems of what the question asks about: its first noun phrase (both, in "between the king and the maid")."""
    words = [word for word in read_words(_POSSESSOR.sub(" ", question)) if not word.mark]
    start = next((at for at, word in enumerate(words) if word.surface in AUXILIARY), None)
    happens = next((at for at, word in enumerate(words) if word.surface.startswith("happen")), None)
    if happens is not None and happens + 1 < len(words) and words[happens + 1].surface in ("to", "between", "with"):
        start = happens + 1
    if start is None:
        start = 0
    found: list[str] = []
    for before, word in pairwise(words[start:]):
        if word.surface in _ASKING:
            continue
        another = word.surface in DETERMINERS and before.surface != "and"
        if found and (another or word.surface in PLACES | AUXILIARY):
            break
        if word.content:
            found.append(word.stem)
    return frozenset(found)


@dataclass(frozen=True)
class Accepted:
    """One accepted answer: its content, what it denies, its clause, and the order that it states."""

    content: frozenset[str]
    negators: frozenset[str]
    clause: Clause
    order: Order | None

    @property
    def text(self) -> str:
        """Its words without marks."""
        return " ".join(word.surface for word in self.clause.words)


@lru_cache(maxsize=2048)
def read_accepted(texts: tuple[str, ...]) -> tuple[Accepted, ...]:
    """The accepted answers as read; those without a content word are left out."""
    made = []
    for text in texts:
        words = tuple(word for word in read_words(text) if not word.mark)
        negative = frozenset(word.stem for word in words if word.negator)
        content = frozenset(word.stem for word in words if word.content and not word.negator) or negative
        if content:
            made.append(Accepted(content, negative, read_clause(words), order_of(text)))
    return tuple(made)


@dataclass(frozen=True)
class Asked:
    """What the question allows: who may act, subject pronouns, and every content word in it.

    same: doers of accepted answers whom neither the question nor an accepted answer knows in another part, so that
    they are one and the same person by several names. unfit: who cannot be the one that acts: a woman where the
    accepted answers say "he" alone, and the one asked about where they say that another of the question does what "he"
    does. moment: before or after what the question asks.
    """

    topic: frozenset[str]
    allowed: frozenset[str]
    pronouns: frozenset[str]
    words: frozenset[str]
    same: frozenset[str]
    unfit: frozenset[str]
    moment: tuple[str, frozenset[str]] | None


def read_asked(items: Sequence[Accepted], question: str) -> Asked:
    """What `question` and its accepted answers allow."""
    none: frozenset[str] = frozenset()
    agents = none.union(*(item.clause.subject for item in items))
    patients = none.union(*(item.clause.patient for item in items))
    doers = none.union(*(item.clause.subject for item in items if _names_doer(item.clause)))
    pronouns = frozenset(item.clause.pronoun for item in items if item.clause.pronoun)
    words = frozenset(word.stem for word in read_words(question) if word.content)
    topic = _topic(question)
    others = {"he": "she", "she": "he"}
    strange = [lexicon().genders[others[word]] for word in pronouns & others.keys() if others[word] not in pronouns]
    spoken = {_verb(item.clause) for item in items if item.clause.pronoun} - {""}
    named = words & none.union(*(item.clause.subject for item in items if _verb(item.clause) in spoken))
    moment = moment_of(read_words(question))
    unfit = none.union(*strange, topic if named and not named & topic else none) - agents
    anyone = lexicon().anyone - words - none.union(*(item.content for item in items))
    return Asked(topic, topic | agents | anyone, pronouns, words, doers - words - patients, unfit, moment)


def _verb(clause: Clause) -> str:
    return clause.words[clause.verb_at].stem if 0 <= clause.verb_at < len(clause.words) else ""


def _names_doer(clause: Clause) -> bool:
    """Whether the subject is one noun before a verb that more follows ("the man cuts it", not "its dull feathers")."""
    return len(clause.subject) == 1 and 0 <= clause.verb_at < len(clause.words) - 1


_HE, _SHE = frozenset(("he", "him")), frozenset(("she",))


def _covered(clause: Clause, item: Accepted, asked: Asked) -> frozenset[str]:
    """What of the accepted content the clause may leave to a pronoun, to the question, or to another name."""
    known = item.clause
    covered: frozenset[str] = frozenset()
    unnamed = not clause.agent and not clause.subject and not clause.pronoun
    renamed = known.agent <= asked.same and bool(clause.agent & asked.same)
    if clause.agent_pronoun or (unnamed and known.agent <= asked.topic) or renamed:
        covered |= known.agent - clause.content
    if clause.patient_pronoun:
        covered |= known.patient - clause.content
    rest = item.content - covered
    return covered if rest and rest - asked.words else frozenset()


def _denied(words: Sequence[Word], content: frozenset[str]) -> frozenset[str]:
    """The negators that bear on `content`: "no" and "without" only on the two content words that follow."""
    found = set()
    for at, word in enumerate(words):
        if not word.negator:
            continue
        following = [item.stem for item in words[at + 1 :] if item.content][:2]
        if word.stem not in lexicon().local or set(following) & content:
            found.add(word.stem)
    return frozenset(found)


def _foreign(clause: Clause, allowed: frozenset[str], asked: Asked) -> bool:
    """Whether the clause is about somebody else: none of its subject is allowed, or it is another asked-about one."""
    if clause.subject:
        strange = (clause.subject - allowed) & asked.words or clause.subject & asked.unfit
        return not clause.subject & allowed or bool(strange)
    other = {"he": _SHE, "she": _HE}.get(clause.pronoun, frozenset())
    return bool(other & asked.pronouns) and clause.pronoun not in asked.pronouns


def _exchanged(clause: Clause, item: Accepted, asked: Asked) -> bool:
    """Whether who acts in one is acted on in the other."""
    known = item.clause
    if clause.verb_at < 0:
        return False
    taken = known.passive and not clause.passive and known.pronoun
    if taken and ((clause.agent_pronoun and not clause.patient_pronoun) or clause.agent & asked.topic):
        return True
    if known.bare_participle and not clause.passive and clause.patient:
        return clause.words[clause.verb_at].stem == known.bare_participle
    if known.passive == clause.passive and known.verb_at >= 0:
        before = {word.stem for word in clause.words[: clause.verb_at]}
        if (known.subject & clause.content) - before:
            return True
    if _turned(clause, known, asked):
        return True
    doer = known.agent & clause.patient - clause.agent
    target = known.patient & clause.agent - clause.patient
    if clause.passive and not clause.agent and known.verb_at >= 0 and not known.passive:
        target = frozenset()
    bare = (
        not known.agent and not known.patient and bool(clause.agent & item.content) and known.words[0].surface == "to"
    )
    return bool(doer or target or bare)


def _turned(clause: Clause, known: Clause, asked: Asked) -> bool:
    """Whether the clause has somebody act whom the accepted answer, or the question, has acted on."""
    if known.verb_at < 0:
        return bool(clause.agent & asked.words - asked.topic) and bool(clause.patient & asked.topic)
    if known.passive or clause.passive or not known.pronoun:
        return False
    after = {word.stem for word in known.words[known.verb_at + 1 :] if word.content}
    return bool(clause.subject) and clause.subject <= after - asked.topic


def _opposed(clause: Clause, content: frozenset[str]) -> bool:
    """Whether something else in the clause is the opposite of what was accepted; an attribute is no statement."""
    pairs = lexicon().opposites
    words = clause.words
    for at, word in enumerate(words):
        attribute = 0 < at < len(words) - 1 and words[at + 1].content and words[at - 1].surface in DETERMINERS
        told = word.content and word.stem not in content and not attribute
        if told and any((word.stem, other) in pairs for other in content):
            return True
    return False


def _why_not(clause: Clause, item: Accepted, asked: Asked) -> str | None:
    """What keeps `clause`, which holds all of the accepted words, from saying the same; None if nothing does."""
    if _denied(clause.words, item.content) != item.negators:
        return "negation"
    if _exchanged(clause, item, asked):
        return "roles exchanged"
    if _foreign(clause, asked.allowed | item.content, asked):
        return "another subject"
    known = item.clause
    if known.passive and not clause.passive and clause.subject & known.patient:
        return "another voice"
    if clause.passive and not known.passive and known.agent and clause.patient & known.agent:
        return "another voice"
    places = [at for at, word in enumerate(clause.words) if word.stem in item.content]
    if places and places[-1] > clause.verb_at >= 0 and _named_by_verb(clause, places[-1], known, asked):
        return "named as something else's object"
    return "the opposite is said as well" if _opposed(clause, item.content) else None


def _named_by_verb(clause: Clause, at: int, known: Clause, asked: Asked) -> bool:
    """Whether an accepted noun phrase is only what the clause's verb acts on, and not by the verb of the question."""
    verb = clause.words[clause.verb_at]
    if known.verb_at >= 0 or verb.surface in BE or verb.stem in asked.words:
        return False
    bare = len(known.words) == 1 and clause.words[at - 1].surface in DETERMINERS and bool(clause.agent & asked.words)
    return known.words[0].surface in DETERMINERS or bare


def _says(item: Accepted, answer: str, everything: Clause, asked: Asked) -> str | None:
    """None if `answer` says `item`; else the reason why it does not."""
    if _same_words(everything, item):
        return None
    if item.order is not None:
        return _ordered(item, answer, everything)
    if item.content <= asked.words:
        return "no accepted answer is said"
    found = clauses(answer)
    reason: str | None = "no accepted answer is said"
    negative = frozenset(word.stem for word in everything.words if word.negator)
    for clause in (*found, everything):
        wanted = item.content - _covered(clause, item, asked)
        if not wanted <= clause.content | negative:
            continue
        reason = _why_not(clause, item, asked)
        first = found[0]
        inherits = clause is not everything and not clause.subject and not clause.pronoun and first.subject
        if reason is None and inherits and _foreign(first, asked.allowed | item.content, asked):
            reason = "another subject"
        return reason
    return reason


def _same_words(everything: Clause, item: Accepted) -> bool:
    """Whether both have the same content words in the same order, in one voice, and deny the same."""

    def told(clause: Clause) -> list[str]:
        return [word.stem for word in clause.words if word.content or word.negator]

    one, two = everything, item.clause
    return told(one) == told(two) and one.passive == two.passive and {one.pronoun, two.pronoun} != {"he", "she"}


def _ordered(item: Accepted, answer: str, everything: Clause) -> str | None:
    """Whether `answer` puts the same things in the same order."""
    found = order_of(answer)
    if found is None or item.order is None or not (item.order[0] <= found[0] and item.order[1] <= found[1]):
        return "another order" if found is not None else "no order is said"
    return None if _denied(everything.words, item.content) == item.negators else "negation"


def _at_another_time(answer: str, asked: Asked) -> bool:
    """Whether `answer` says "before" of what the question says "after" of, or the other way round."""
    told = moment_of(read_words(answer))
    return bool(asked.moment and told and told[0] != asked.moment[0] and told[1] & asked.moment[1])


def same_meaning(answer: str, accepted: Sequence[str], question: str) -> tuple[bool, str]:
    """Whether `answer` says the same as one of `accepted`, and the reason in one phrase."""
    items = read_accepted(tuple(accepted))
    asked = read_asked(items, question)
    everything = read_clause(tuple(word for word in read_words(answer) if not word.mark))
    reason = "no accepted answer is said"
    if _at_another_time(answer, asked):
        return False, "another order than the question's"
    for item in items:
        problem = _says(item, answer, everything, asked) if clauses(answer) else reason
        if problem is None:
            return True, f"says {item.text!r}"
        reason = problem if problem != "no accepted answer is said" else reason
    return False, reason
