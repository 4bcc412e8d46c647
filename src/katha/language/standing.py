"""What is there although nobody does anything with it: bystanders, things that slip away, a thing named by less."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from katha.language.chunks import Noun
from katha.language.clauses import Fact
from katha.language.lexicon import Grammar

__all__ = ["bystanders", "called_again", "slipped"]

_BESIDE = frozenset(
    ["to", "at", "by", "near", "beside", "behind", "with", "into", "from", "upon", "on", "over", "among"]
)
_FALLING = frozenset({"fall", "drop", "spill", "slip", "tumble", "sink", "vanish", "disappear"})
_OTHERS = frozenset({"him", "her", "them"})
_REFLECTION = "reflection"
_LIKENESS = frozenset({"shadow", "image", "likeness"})


def bystanders(fact: Fact, grammar: Grammar) -> list[Noun]:
    """Who is named in a clause beside those that act, or has the part of a body that it names ("the wolf's mouth").

    Nobody where the clause is only said, wished, thought or denied: they need not be there.
    """
    verb = fact.verb
    unreal = fact.speech or fact.wished or verb is None or verb.negated or verb.modal
    if unreal or verb is None or grammar.has("wish_verbs", verb.lemma) or grammar.has("belief_verbs", verb.lemma):
        return []
    near = [*fact.objects, *(noun for prep, noun in fact.around if prep in _BESIDE)]
    owners = [noun.owner if noun.kind == "known" and noun.owner is not None else noun for noun in near]
    named = [noun for noun in owners if noun.kind == "character" and noun.definite and not noun.none]
    return [*named, *(noun for noun in fact.objects if noun.kind == "pronoun" and noun.word in _OTHERS)]


def slipped(fact: Fact) -> list[str]:
    """The things that are no longer in anybody's hands after the clause ("his meat fell into the water")."""
    if fact.speech or fact.wished or fact.verb is None or fact.verb.negated or fact.verb.lemma not in _FALLING:
        return []
    return [noun.concept for noun in fact.subjects if noun.kind == "prop" and noun.concept is not None]


def called_again(fact: Fact, seen: Collection[str]) -> None:
    """Read "the shadow" and "the image" as the reflection, where the story has told of one."""
    if _REFLECTION not in seen:
        return

    def known(noun: Noun) -> Noun:
        meant = noun.kind == "known" and noun.definite and noun.word in _LIKENESS
        return replace(noun, kind="prop", concept=_REFLECTION) if meant else noun

    fact.subjects = [known(noun) for noun in fact.subjects]
    fact.objects = [known(noun) for noun in fact.objects]
    fact.around = [(prep, known(noun)) for prep, noun in fact.around]
