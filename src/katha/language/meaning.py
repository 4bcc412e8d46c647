"""Facts to happenings: which drawable action a clause shows, at what it is directed, and who feels what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from katha.language.chunks import Noun, Verb
from katha.language.clauses import Fact
from katha.language.lexicon import Grammar, Vocabulary

__all__ = ["PEOPLE", "Happening", "happenings", "places", "put_right"]

PEOPLE = frozenset({"character", "pronoun", "referring", "name"})
_PLACE_PREPS = frozenset(
    {
        "in",
        "at",
        "to",
        "into",
        "by",
        "near",
        "through",
        "across",
        "over",
        "inside",
        "on",
        "toward",
        "towards",
        "from",
        "around",
        "along",
        "beside",
        "outside",
        "under",
        "behind",
        "within",
        "above",
        "upon",
        "beyond",
        "up",
        "down",
    }
)
_HOLDERS = frozenset({"net", "trap", "cage"})
_CLOTHES = frozenset({"cloak", "hat", "crown"})
_HOLDING = frozenset({"in", "by", "under", "to"})
_TO_PREPS = frozenset(
    {
        "to",
        "at",
        "on",
        "upon",
        "toward",
        "towards",
        "after",
        "with",
        "over",
        "against",
        "into",
        "from",
        "around",
        "beside",
    }
)


@dataclass
class Happening:
    """One drawable thing: actors (noun phrases that do or feel it), target noun phrase, things handled and seen."""

    fact: Fact
    actors: list[Noun]
    action: str | None = None
    verb: str | None = None
    target: Noun | None = None
    emotion: str | None = None
    carries: list[str] = field(default_factory=list)
    negated: bool = False


def _first(nouns: list[Noun], kinds: frozenset[str]) -> Noun | None:
    return next((noun for noun in nouns if noun.kind in kinds), None)


_THINGS = frozenset({"prop"})


def _person(noun: Noun) -> Noun | None:
    """The person or animal a noun phrase stands for: itself, or the owner of a paw, nose or tail."""
    if noun.kind in PEOPLE:
        return noun
    if noun.kind == "known" and noun.owner is not None:
        return _person(noun.owner)
    return None


def _doer(noun: Noun) -> Noun | None:
    """Who a subject stands for; "his tail was caught" is about him."""
    if noun.kind == "known" and noun.owner is None and noun.possessor is not None:
        return Noun("pronoun", None, noun.possessor, plural=noun.possessor == "they")
    return _person(noun)


def _target(fact: Fact, action: str) -> Noun | None:
    """What the action is directed at: the direct object if it is somebody, else whoever is reached, else the thing."""
    persons = [person for noun in fact.objects if (person := _person(noun)) is not None]
    things = [noun for noun in fact.objects if noun.kind == "prop"]
    reached = [person for prep, noun in fact.around if prep in _TO_PREPS and (person := _person(noun)) is not None]
    near = [
        noun
        for prep, noun in fact.around
        if noun.kind == "prop" and prep not in {"with", "without", "like", "of"} and not _is_worn(prep, noun)
    ]
    if action == "give" and len(persons) + len(reached) > 1 and reached:
        return reached[0]
    for found in (persons, [] if action in {"eat", "drink"} and things else reached, things, near):
        if found:
            return found[0]
    around = [
        person for prep, noun in fact.around if prep not in {"by", "like", "than", "of"} and (person := _person(noun))
    ]
    return around[0] if around else None


def _is_worn(prep: str, noun: Noun) -> bool:
    """ "came in a warm cloak"."""
    return prep == "in" and noun.concept in _CLOTHES


def _shown(fact: Fact, verb: Verb, vocabulary: Vocabulary) -> str | None:
    """The action that a verb shows here: "cried" beside a quotation is a shout, to drop a stone is to throw it."""
    if verb.action == "cry" and fact.quoting:
        return "shout"
    things = [noun for noun in fact.objects if noun.kind in {"prop", "pronoun"}]
    if things and verb.lemma in vocabulary.grammar.transitive:
        return vocabulary.grammar.transitive[verb.lemma]
    vague = fact.objects and all(noun.kind in {"known", "time"} and noun.owner is None for noun in fact.objects)
    return None if vague and verb.action in {"give", "take", "throw"} else verb.action


def _carries(fact: Fact, action: str, vocabulary: Vocabulary) -> list[str]:
    handled = [noun.concept for noun in fact.objects if noun.kind == "prop" and noun.concept]
    tools = [
        noun.concept
        for prep, noun in fact.around
        if noun.kind == "prop" and noun.concept and (prep == "with" or _is_worn(prep, noun))
    ]
    if not vocabulary.grammar.has("handling", action):
        handled = []
    return list(dict.fromkeys([*handled, *tools]))


def happenings(fact: Fact, vocabulary: Vocabulary, *, loose: bool = False) -> Iterator[Happening]:
    """What a fact shows, one happening per action; nothing for a clause without a known verb or feeling.

    With `loose`, a verb without a subject ("gnaws the rope") is a happening without actors.
    """
    verb = fact.verb
    held = _held(fact)
    people = [person for noun in fact.subjects if (person := _doer(noun)) is not None and not noun.none]
    if people and held is not None:
        yield Happening(fact, people, "trapped", None, held, fact.emotion, negated=verb is not None and verb.negated)
        return
    if verb is None:
        if people and (fact.emotion or fact.looks):
            yield Happening(fact, people, emotion=fact.emotion)
        return
    negated = verb.negated or any(noun.none for noun in fact.subjects)
    emotion = fact.emotion or verb.emotion
    binds = vocabulary.grammar.has("binding_verbs", verb.lemma)
    caught = [person for noun in fact.objects if (person := _person(noun)) is not None]
    if verb.passive:
        yield from _passive(fact, people, emotion, negated)
    elif binds and caught and not (verb.action == "carry" and people):
        if people:
            yield Happening(fact, people, verb.action or "take", verb.lemma, caught[0], emotion, negated=negated)
        holder = _first([*fact.subjects, *(noun for _, noun in fact.around)], _THINGS)
        if not negated and (holder is not None or verb.lemma not in {"catch", "hold", "seize"}):
            yield Happening(fact, caught[:1], "trapped", verb.lemma, holder)
    elif verb.stirs is not None and caught:
        yield Happening(fact, caught[:1], None, verb.lemma, None, verb.stirs, negated=negated)
    elif verb.action == "build" and verb.lemma == "make" and caught:
        return  # "made him their king"
    elif verb.action is not None and (people or (loose and not fact.subjects)):
        action = _shown(fact, verb, vocabulary)
        against = next((noun for prep, noun in fact.around if prep in {"upon", "on", "against"}), None)
        if verb.lemma in {"strike", "hit"} and not fact.objects and against is not None and against.kind == "prop":
            action = "fall"  # "struck upon a rock"
        target = _target(fact, action) if action is not None else None
        carries = _carries(fact, action, vocabulary) if action is not None else []
        yield Happening(fact, people, action, verb.lemma, target, emotion, carries, negated)
    elif people and (emotion is not None or fact.looks):
        yield Happening(fact, people, None, verb.lemma, None, emotion, negated=negated)


def _held(fact: Fact) -> Noun | None:
    """The net, trap or cage that somebody simply is in ("a lion in a net", "the bird is in a cage")."""
    if fact.verb is not None and not fact.verb.copula:
        return None
    return next((noun for prep, noun in fact.around if prep in {"in", "inside"} and noun.concept in _HOLDERS), None)


def _passive(fact: Fact, people: list[Noun], emotion: str | None, negated: bool) -> Iterator[Happening]:
    verb = fact.verb
    assert verb is not None
    agents = [noun for prep, noun in fact.around if prep == "by" and noun.kind in PEOPLE]
    holder = next((noun for prep, noun in fact.around if noun.kind == "prop" and prep in _HOLDING), None)
    holder = holder or next((noun for prep, noun in fact.around if noun.kind in PEOPLE and prep == "in"), None)
    if verb.action == "trapped":
        if agents:
            yield Happening(fact, agents, "take", verb.lemma, people[0] if people else None, negated=negated)
        yield Happening(fact, people, "trapped", verb.lemma, holder, emotion, negated=negated)
    elif verb.stirs is not None:
        yield Happening(fact, people, None, verb.lemma, None, verb.stirs, negated=negated)
    elif verb.action in {"die", "sleep", "fall"}:
        yield Happening(fact, people, verb.action, verb.lemma, None, emotion, negated=negated)
    elif verb.action is not None and agents:
        target = people[0] if people else next((noun for noun in fact.subjects if noun.kind == "prop"), None)
        yield Happening(fact, agents, verb.action, verb.lemma, target, None, negated=negated)
    elif people and verb.action is not None:
        yield Happening(fact, [], verb.action, verb.lemma, people[0], emotion, negated=negated)
    elif people and emotion is not None:
        yield Happening(fact, people, None, verb.lemma, None, emotion, negated=negated)


def places(fact: Fact) -> list[tuple[str, Noun]]:
    """The settings a fact names, each with its preposition ("" for a direct object or a bare mention)."""
    named = [noun for noun in [*fact.subjects, *fact.objects] if noun.kind == "setting"]
    bare = [("", noun) for noun in named if noun.word != "home"]  # "carried it home" goes there, it is not there
    return [*((prep, noun) for prep, noun in fact.around if noun.kind == "setting" and prep in _PLACE_PREPS), *bare]


def put_right(fact: Fact, grammar: Grammar) -> None:
    """Turn "it was the turn of a hare", "there lived a lion" and "made him king" the plain way round."""
    verb = fact.verb
    if verb is None:
        return
    persons = [noun for noun in [*fact.objects, *(noun for _, noun in fact.around)] if noun.kind in PEOPLE]
    if verb.copula and persons and [noun.word for noun in fact.subjects if noun.kind != "time"] == ["it"]:
        fact.subjects = persons[:1] if fact.emotion else []
    elif verb.copula and fact.emotion is None and not verb.negated:
        fact.emotion = next((noun.emotion for noun in fact.objects if noun.kind == "referring"), None)
    elif not fact.subjects and grammar.has("being_verbs", verb.lemma) and verb.form == "past":
        fact.subjects = [noun for noun in fact.objects if noun.kind in PEOPLE]
        fact.objects = [noun for noun in fact.objects if noun.kind not in PEOPLE]
    elif grammar.has("naming_verbs", verb.lemma):
        called = [noun for noun in fact.objects if noun.kind in PEOPLE]
        if len(called) > 1 and called[-1].kind == "character":
            fact.objects = [noun for noun in fact.objects if noun is not called[-1]]
