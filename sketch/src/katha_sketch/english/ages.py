"""How old somebody is: as a text gives it in years, else, for people without a trade, by what their story is about.

A story about a class, a kite and a grandmother is more likely one of children than one about an office. The clues are
words (`young_life` and `grown_life` in `words.yaml`) and ties; their weights (`young` in `scores.yaml`) are fitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from katha.jsonio import shipped_table
from katha_sketch.english.clauses import age_of
from katha_sketch.english.known import Known
from katha_sketch.english.mentions import Key, Mention, Parsed
from katha_sketch.english.words import Words, age_in_years

__all__ = ["tell_ages"]

_NEAR = 4
"""How many words before "aged nine" its name is at most."""


def tell_ages(
    parsed: Sequence[Parsed], mentions: Mapping[Key, Mention], entities: Mapping[str, Known], words: Words
) -> None:
    """Give an age to whoever a text tells one of, in years or by its clues."""
    for who, number in _in_years(parsed, mentions):
        entity = entities.get(who.entity or "") if who is not None else None
        age = int(number) if number.isdigit() else words.numbers.get(number, 0)
        if entity is not None and entity.kind in ("person", "being") and age:
            entity.age = age_in_years(age)
            entity.adjectives = [look for look in entity.adjectives if look != "aged"]
    clues = _Clues(parsed, entities, words)
    young = [one for one in entities.values() if one.age is None and clues.open(one) and clues.score(one) > 0]
    for one in young:
        one.age = "child"


def _in_years(parsed: Sequence[Parsed], mentions: Mapping[Key, Mention]) -> Iterable[tuple[Mention | None, str]]:
    """The ages that a text gives: "I was seven", "nine-year-old Ada", "Ada, aged nine", "she was eighty years old"."""
    for part in parsed:
        for clause in part.clauses:
            for token in clause.state if clause.lemma in ("be", "turn") and clause.standing == "told" else ():
                years = [token, *(w for c in token.children for w in c.subtree)] if token.lower_ == "old" else [token]
                number = next((word.lower_ for word in years if word.pos_ == "NUM"), "")
                yield from ((mentions.get((part.number, one.i)), number) for one in clause.of("agent") if number)
        for token in part.tokens[1:-1]:
            before = (mentions.get((part.number, at)) for at in range(token.i - 1, max(token.i - _NEAR, -1), -1))
            if token.lower_ == "aged" and token.nbor(1).pos_ == "NUM":
                yield next(filter(None, before), None), token.nbor(1).lower_
    for mention in mentions.values():
        yield from ((mention, word.split("-")[0]) for word in mention.adjectives if word.endswith("year-old"))
        if (told_age := age_of(mention.token)) is not None:
            yield mention, told_age.lower_


class _Clues:
    """What a text tells of the age of those of whom it does not tell it."""

    def __init__(self, parsed: Sequence[Parsed], entities: Mapping[str, Known], words: Words) -> None:
        self.entities, self.words = entities, words
        self.weights: Mapping[str, float] = shipped_table("katha_sketch.english", "scores.yaml")["young"]
        self.said: dict[int, set[str]] = {}
        for part in parsed:
            tokens = {word for token in part.tokens for word in (token.lower_, token.lemma_.lower())}
            self.said.setdefault(part.piece.sentence, set()).update(tokens)
        self.all = set().union(*self.said.values()) if self.said else set()
        called = {title.lower() for one in entities.values() for title in (*one.titles, *one.names, *one.phrases)}
        self.family = bool(called & words.sets["family_names"])

    def open(self, one: Known) -> bool:
        """Whether nothing but the story's clues can tell: a person alone, without a trade."""
        words = self.words
        trade = words.sort(one.noun) == "person" and not (
            words.has("kin", one.noun) or words.has("plain_person", one.noun)
        )
        return one.kind == "person" and not one.plural and not one.members and not trade

    def score(self, one: Known) -> float:
        """How likely it is a child."""
        mine = {one.id, *(group.id for group in self.entities.values() if one.id in group.members)}
        kin = {tie.relation for other in self.entities.values() for tie in other.kin if tie.other in mine}
        words, near = self.words, set().union(*(self.said.get(at, set()) for at in one.sentences))
        elders = kin & words.sets["kin_parent"]
        play, work = (len(self.all & words.sets[name]) for name in ("young_life.play", "grown_life"))
        features = {
            "always": 1,
            "school": bool(self.all & words.sets["young_life.school"]),
            "child": bool(self.all & words.sets["young_life.people"]),
            "play": min(play, 2),
            "work": min(work, 2),
            "own_work": bool(near & words.sets["grown_life"]),
            "family": self.family,
            "elder": bool(elders),
            "grand": any(tie.startswith("grand") for tie in elders),
            "partner": bool(kin & {"husband", "wife", *words.sets["kin_child"], "colleague"}),
            "son": words.has("kin_child", one.noun),
            "title": bool(set(map(str.lower, one.titles)) - words.sets["young_titles"]),
            "narrator": one.narrator,
            "peer": any(words.has("kin_equal", tie.relation) for tie in one.kin),
            "surname": any(" " in name for name in one.names),
        }
        return sum(self.weights[name] * float(value) for name, value in features.items())
