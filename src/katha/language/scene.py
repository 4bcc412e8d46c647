"""One moment, as a prompt describes it, to what is to be drawn."""

from __future__ import annotations

from dataclasses import replace

from katha.language.chunks import Noun, chunk_words
from katha.language.clauses import Fact, read_facts
from katha.language.lexicon import Vocabulary, load_vocabulary
from katha.language.looks import clash
from katha.language.meaning import PEOPLE, Happening, happenings, places
from katha.language.tokens import split_sentences
from katha.language.types import Actor, SceneReading

__all__ = ["read_scene"]


class _Stage:
    """The characters and things of one moment, merged over its sentences."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.order = {concept.id: at for at, concept in enumerate(vocabulary.concepts("attribute"))}
        self.actors: list[Actor] = []
        self.met: dict[int, tuple[Noun, int]] = {}
        self.props: list[str] = []
        self.setting: str | None = None
        self.time: str | None = None
        self.weather: str | None = None
        self.shot: str | None = None

    def find(self, noun: Noun) -> int | None:
        """The index of the actor that `noun` means, added if it is new; None if nobody fits."""
        if id(noun) in self.met:
            return self.met[id(noun)][1]
        at = self._find(noun)
        if at is not None:
            self.met[id(noun)] = (noun, at)
        return at

    def _find(self, noun: Noun) -> int | None:
        if noun.kind in {"pronoun", "referring"}:
            return self._recent(noun)
        if noun.kind != "character" or noun.concept is None or noun.none:
            return None
        fits = [
            at
            for at, actor in enumerate(self.actors)
            if actor.concept == noun.concept
            and (actor.count > 1) == noun.plural
            and not clash(actor.attributes, noun.attributes)
            and (noun.name is None or actor.name in {None, noun.name})
            and not (noun.fresh or "other" in noun.labels)
        ]
        exact = [at for at in fits if set(noun.attributes) <= set(self.actors[at].attributes)]
        if exact or fits:
            at = (exact or fits)[0]
            self._add_looks(at, noun)
            return at
        looks = tuple(sorted(set(noun.attributes), key=self.order.__getitem__))
        self.actors.append(
            Actor(noun.concept, name=noun.name, attributes=looks, emotion=noun.emotion, count=noun.count)
        )
        return len(self.actors) - 1

    def _recent(self, noun: Noun) -> int | None:
        pronoun = self.vocabulary.grammar.pronouns.get(noun.word, {"gender": "any"})
        if pronoun["gender"] not in {"m", "f", "n", "any"} or not self.actors:
            return None
        plural = [at for at, actor in enumerate(self.actors) if actor.count > 1]
        single = [at for at, actor in enumerate(self.actors) if actor.count == 1]
        chosen = plural if noun.plural and plural else single
        return chosen[-1] if chosen else None

    def _add_looks(self, at: int, noun: Noun) -> None:
        actor = self.actors[at]
        looks = tuple(sorted({*actor.attributes, *noun.attributes}, key=self.order.__getitem__))
        self.actors[at] = replace(
            actor,
            attributes=looks,
            emotion=actor.emotion or noun.emotion,
            name=actor.name or noun.name,
            count=max(actor.count, noun.count),
        )

    def see(self, fact: Fact) -> None:
        """Put everything that a fact names on the stage."""
        for noun in fact.nouns():
            self._see_noun(noun)
        for label in fact.labels:
            self.shot = self.shot or label.removeprefix("shot/")
        for _, noun in places(fact):
            self.setting = self.setting or noun.concept

    def _see_noun(self, noun: Noun) -> None:
        if noun.owner is not None:
            self._see_noun(noun.owner)
        if noun.none:
            return
        if noun.kind == "character":
            self.find(noun)
        elif noun.kind == "prop" and noun.concept is not None and noun.concept not in self.props:
            self.props.append(noun.concept)
        elif noun.kind == "time":
            self.time = self.time or noun.concept
        elif noun.kind == "weather":
            self.weather = self.weather or noun.concept

    def hold(self, fact: Fact) -> None:
        """ "a fox with a basket": the thing belongs to the character before it."""
        if fact.verb is not None and not fact.verb.copula and fact.subjects:
            return
        if not fact.subjects or fact.subjects[-1].kind not in PEOPLE:
            return
        at = self.find(fact.subjects[-1])
        held = [noun.concept for prep, noun in fact.around if prep == "with" and noun.kind == "prop" and noun.concept]
        if at is not None:
            self._carry(at, held)

    def _carry(self, at: int, held: list[str]) -> None:
        actor = self.actors[at]
        self.actors[at] = replace(actor, carries=tuple(dict.fromkeys([*actor.carries, *held])))

    def happen(self, happening: Happening) -> None:
        """Apply one happening to its actors; the first action that a character is given stays."""
        if happening.negated:
            return
        target = self._target_id(happening.target)
        for noun in happening.actors:
            at = self.find(noun)
            if at is None:
                continue
            actor = self.actors[at]
            looks = tuple(sorted({*actor.attributes, *happening.fact.looks}, key=self.order.__getitem__))
            actor = replace(actor, emotion=actor.emotion or happening.emotion, attributes=looks)
            if happening.action is not None and actor.action is None:
                actor = replace(actor, action=happening.action, target=target)
            self.actors[at] = actor
            self._carry(at, happening.carries)

    def _target_id(self, noun: Noun | None) -> str | None:
        if noun is None:
            return None
        if noun.kind in {"pronoun", "referring"}:
            at = self.find(noun)
            return self.actors[at].concept if at is not None else None
        return noun.concept

    def reading(self, unread: list[str]) -> SceneReading:
        """The finished moment; what somebody carries is not also a prop of its own."""
        carried = {prop for actor in self.actors for prop in actor.carries}
        props = tuple(prop for prop in self.props if prop not in carried)
        return SceneReading(
            tuple(self.actors), props, self.setting, self.time, self.weather, self.shot, tuple(dict.fromkeys(unread))
        )


def read_scene(text: str) -> SceneReading:
    """What the prompt `text` asks to be drawn.

    What an actor carries, gives, takes or throws is in its `carries` and not in `props`; every other thing named,
    targets included, is in `props`. Looks are in the order of the vocabulary.
    """
    vocabulary = load_vocabulary()
    stage = _Stage(vocabulary)
    unread: list[str] = []
    for sentence in split_sentences(text):
        chunks, unknown = chunk_words(sentence.words, vocabulary)
        unread.extend(unknown)
        for fact in read_facts(chunks, vocabulary.grammar):
            stage.see(fact)
            stage.hold(fact)
            for happening in happenings(fact, vocabulary) if not fact.wished else ():
                stage.happen(happening)
    return stage.reading(unread)
