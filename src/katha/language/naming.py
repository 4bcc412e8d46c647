"""Names: which words of a story are proper names, and what tells two characters of one kind apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from katha.language.cast import Member
from katha.language.inflect import Inflector
from katha.language.lexicon import Vocabulary
from katha.language.tokens import Sentence

__all__ = ["story_names", "titles_of"]


def titles_of(members: Sequence[Member], inflector: Inflector) -> dict[int, str | None]:
    """A name for every member that needs one: its own, or what tells it apart from others of its kind."""
    kinds = Counter(member.concept for member in members)
    called = Counter((member.concept, member.word, member.plural) for member in members)
    seen: Counter[str] = Counter()
    titles: dict[int, str | None] = {}
    for member in members:
        seen[member.concept] += not member.plural
        title = member.name
        if title is None and kinds[member.concept] > 1:
            alone = called[member.concept, member.word, member.plural] == 1 and not member.plural
            title = member.word if alone else _told_apart(member, seen[member.concept], inflector)
        titles[id(member)] = title
    used: Counter[str] = Counter()
    for member in members:
        title = titles[id(member)]
        if title is not None:
            used[title] += 1
            titles[id(member)] = title if used[title] == 1 else f"{title} {used[title]}"
    return titles


def _told_apart(member: Member, nth: int, inflector: Inflector) -> str:
    if member.plural:
        return inflector.plural(member.word)
    if member.labels and member.labels[0] != "other":
        return f"{member.labels[0]} {member.word}"
    if nth == 1:
        return member.word
    return f"{member.attributes[0].split('_')[0] if member.attributes else 'second'} {member.word}"


def _leading_name(sentence: Sentence, vocabulary: Vocabulary, closed: frozenset[str]) -> list[str]:
    """An unknown word that begins a sentence as its subject ("Patty the milkmaid ...", "Patty wept")."""
    if len(sentence.words) < 2:
        return []
    first, second = sentence.words[:2]
    unknown = first.text[:1].isupper() and first.lower not in vocabulary.senses and first.lower not in closed
    if not unknown or first.text.isupper() or first.lower.endswith("ly"):
        return []
    third = sentence.words[2].lower if len(sentence.words) > 2 else ""
    titled = second.lower == "the" and any(sense.kind == "character" for sense in vocabulary.senses.get(third, ()))
    senses = vocabulary.senses.get(second.lower, ())
    acts = any(sense.part == "verb" and sense.form in {"past", "third"} for sense in senses)
    return [first.text] if titled or acts or vocabulary.grammar.has("be", second.lower) else []


def story_names(sentences: Sequence[Sentence], vocabulary: Vocabulary) -> frozenset[str]:
    """Proper names: capitalised words that the vocabulary does not know and that also stand inside a sentence."""
    grammar = vocabulary.grammar
    closed = frozenset().union(*grammar.words.values(), grammar.pronouns, grammar.numbers)
    found: set[str] = set()
    for sentence in sentences:
        previous = "."
        found.update(_leading_name(sentence, vocabulary, closed))
        for at, word in enumerate(sentence.words):
            if f"{word.lower} {sentence.words[min(at + 1, len(sentence.words) - 1)].lower}" in vocabulary.senses:
                previous = word.text  # "the North Wind"
                continue
            inside = previous not in {".", "!", "?", '"', ":"} or previous in grammar.words["name_cues"]
            capital = word.text[:1].isupper() and len(word.text) > 1 and not word.text.isupper()
            if inside and capital and word.lower not in vocabulary.senses and word.lower not in closed:
                found.add(word.text)
            previous = word.lower
    return frozenset(found)
