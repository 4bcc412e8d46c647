"""A whole story to its ordered events: who does or feels what, to whom, where, and what is only said."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from katha.language.cast import Cast, Member
from katha.language.chunks import Chunk, Noun, Verb, chunk_words
from katha.language.clauses import Fact, read_facts
from katha.language.lexicon import Vocabulary, load_vocabulary
from katha.language.meaning import PEOPLE, Happening, happenings, places, put_right
from katha.language.naming import story_names, titles_of
from katha.language.standing import bystanders, called_again, slipped
from katha.language.tokens import Sentence, split_sentences
from katha.language.types import Event, StoryReading

__all__ = ["read_story", "story_names"]

_HEADING = re.compile(r"\A\s*[^\n.!?\"]{1,80}\n\s*\n(?=\s*\S)")
_INSIDE = frozenset({"in", "at", "into", "to", "through", "across", "on", "inside", ""})
_SPEAKING = frozenset({"talk", "think", "shout"})
_UNDERWAY = re.compile(r"\bon (?:the|his|her|its|their) way\b(?! to)", re.IGNORECASE)
_CAUSE = re.compile(
    r"\b(?:because(?! of)|since|so that|for fear that|now that)\b\s*([^,;]+)", re.IGNORECASE | re.DOTALL
)


@dataclass
class _Draft:
    """An event whose characters may still get a name: final only when the whole story has been read."""

    sentence: int
    text: str
    actor: Member | None
    action: str | None = None
    verb: str | None = None
    target: Member | str | None = None
    emotion: str | None = None
    props: list[str] = field(default_factory=list)
    carries: list[str] = field(default_factory=list)
    setting: str | None = None
    time: str | None = None
    cause: str | None = None
    negated: bool = False
    speech: bool = False
    reason: bool = False
    company: list[Member] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


class _Teller:
    """Reads sentence after sentence and remembers who, where and when."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.cast = Cast(vocabulary.grammar)
        self.setting: str | None = None
        self.time: str | None = None
        self.speaker: list[Member] = []
        self.drafts: list[_Draft] = []
        self.words: dict[str, str] = {}
        self.noticed: dict[int, Noun] = {}
        self.waiting: list[str] = []
        self.slipping: list[str] = []
        self.bound = False

    def sentence(self, index: int, sentence: Sentence, chunks: Sequence[Chunk]) -> None:
        """Read one sentence. A speaker named after the quote is found first, so that "I" is known.

        The things of a clause in which nobody acts ("where grapes hung", "the meat fell out") are still there for the
        deed before it in the sentence, or else for the next deed.
        """
        facts = read_facts(chunks, self.vocabulary.grammar)
        first = len(self.drafts)
        if self.bound and _UNDERWAY.search(sentence.text):  # "walked to the market. On the way ..."
            self.setting, self.bound = "road", False
        for fact in sorted(facts, key=lambda fact: fact.speech):
            known = len(self.drafts)
            self._fact(index, sentence.text, fact)
            if len(self.drafts) > known or fact.speech or fact.wished:
                continue
            if first < known:
                self.drafts[-1].props = list(dict.fromkeys([*self.drafts[-1].props, *_things(fact)]))
            else:
                self.waiting.extend(_things(fact))
        self._stand_by(self.drafts[first:], facts)
        self._propose(self.drafts[first:], [fact for fact in facts if fact.speech])
        cause = _CAUSE.search(sentence.text)
        if cause is not None:
            self._give_cause(self.drafts[first:], cause[1].strip(" .!?\"'"))

    def _stand_by(self, drafts: Sequence[_Draft], facts: Sequence[Fact]) -> None:
        """Who is named beside those that act, and what slipped away, belong to the sentence's last deed."""
        self.slipping.extend(thing for fact in facts for thing in slipped(fact))
        told = [draft for draft in drafts if not draft.speech]
        for draft in told[-1:]:
            near = [noun for fact in facts for noun in bystanders(fact, self.vocabulary.grammar)]
            met = [self.cast.meet(noun, others=self.cast.subject, quiet=True) for noun in near]
            draft.company = [member for members in met for member in members]
            draft.lost, self.slipping = self.slipping, []

    def _propose(self, drafts: Sequence[_Draft], said: Sequence[Fact]) -> None:
        """What somebody speaks of doing something with ("Let us tie a bell to the cat") is there to see."""
        speaking = [draft for draft in drafts if draft.action in _SPEAKING and not draft.speech]
        plans = [fact for fact in said if fact.verb is not None and fact.objects and not fact.verb.negated]
        things = [thing for fact in plans for thing in _things(fact)]
        if speaking and things:
            speaking[0].props = list(dict.fromkeys([*speaking[0].props, things[0]]))

    def _give_cause(self, drafts: Sequence[_Draft], cause: str) -> None:
        """The reason belongs to the deed told just before it ("wept because ..."), or after it ("Because ..., ...")."""
        reasons = [at for at, draft in enumerate(drafts) if draft.reason]
        start = reasons[0] if reasons else len(drafts)
        before = [draft for draft in drafts[:start] if not draft.reason]
        after = [draft for draft in drafts[start:] if not draft.reason]
        for draft in before[-1:] or after[:1]:
            draft.cause = cause

    def _fact(self, index: int, text: str, fact: Fact) -> None:
        put_right(fact, self.vocabulary.grammar)
        called_again(fact, self.words)
        unreal = fact.speech or fact.wished
        found = list(happenings(fact, self.vocabulary))
        if not fact.speech and fact.verb is not None:
            self._introduce(fact, fact.verb)
        subjects = self._members(fact.subjects, [], fact)
        if not unreal:
            self._surroundings(fact)
            aside = fact.verb is not None and fact.verb.copula and len(self.cast.subject) > 1
            if subjects and not (aside and fact.subjects[0].kind == "pronoun"):  # "both saw that he was only a jackal"
                self.cast.subject = subjects
        seen: set[int] = set()
        for happening in found:
            self._happening(index, text, fact, happening, subjects)
            seen.update(id(noun) for noun in happening.actors)
        present = [] if found or unreal else self._present(fact, subjects)
        if len(present) == 1 and not subjects:
            self.cast.subject = present
        felt = next((noun.emotion for noun in fact.subjects if noun.emotion is not None), None)
        for member in present:
            verb = fact.verb.lemma if fact.verb else None
            self._add(index, text, fact, _Draft(index, text, member, verb=verb, emotion=felt))
        if not fact.speech and subjects and fact.verb is not None and not fact.wished:
            self.speaker = subjects
        self._notice(fact)

    def _introduce(self, fact: Fact, verb: Verb) -> None:
        """Names that act are somebody, whatever the story says later about who."""
        kinds = [noun for noun in fact.objects if noun.kind == "character" and not noun.plural]
        for noun in fact.subjects:
            if noun.kind == "name" and noun.name is not None and (not verb.copula or kinds or fact.emotion):
                self.cast.introduce(noun.name, kinds[0] if verb.copula and kinds else None)

    def _present(self, fact: Fact, subjects: list[Member]) -> list[Member]:
        """Who is there in a clause that shows no action ("There was a lion", "A fox lived near a farm")."""
        if fact.verb is not None and fact.verb.copula and not subjects:
            return self._members([*fact.objects, *(noun for _, noun in fact.around)], [], fact)
        return subjects

    def _members(self, nouns: Sequence[Noun], others: list[Member], fact: Fact) -> list[Member]:
        found: list[Member] = []
        for noun in nouns:
            person = noun
            while person.kind not in PEOPLE and person.owner is not None:
                person = person.owner
            speaker = self.speaker if fact.speech else []
            found.extend(
                m for m in self.cast.meet(person, others=others, speaker=speaker, quiet=fact.speech) if m not in found
            )
        return found

    def _happening(self, index: int, text: str, fact: Fact, happening: Happening, subjects: list[Member]) -> None:
        own = all(any(actor is noun for noun in fact.subjects) for actor in happening.actors)
        actors = (
            subjects if own and happening.actors else self._members(happening.actors, subjects if not own else [], fact)
        )
        target = self._target(happening.target, actors, fact)
        target = None if isinstance(target, str) and happening.action == "talk" else target
        feeler: list[Noun | None] = [*happening.actors] or [None]
        for at in range(max(len(actors), 1)):
            actor = actors[at] if at < len(actors) else None
            if actor is None and target is None:
                continue
            noun = feeler[min(at, len(feeler) - 1)]
            mood = noun.emotion if noun is not None else None  # "the happy lion thanked the mouse"
            emotion = happening.emotion or mood
            if mood is not None and mood != emotion and happening.action is not None:
                self._add(index, text, fact, _Draft(index, text, actor, emotion=mood))
            carries = list(happening.carries)
            draft = _Draft(index, text, actor, happening.action, happening.verb, target, emotion, carries, carries)
            draft.negated = happening.negated
            self._add(index, text, fact, draft)

    def _target(self, noun: Noun | None, actors: list[Member], fact: Fact) -> Member | str | None:
        if noun is None:
            return None
        if noun.kind == "prop":
            return noun.concept
        if noun.kind == "pronoun" and noun.word == "it" and self.cast.thing is not None:
            return self.cast.thing
        found = [member for member in self._members([noun], actors, fact) if member not in actors]
        if not found and noun.word == "them":
            return self.cast.things or self.cast.thing
        return found[0] if found else None

    def _add(self, index: int, text: str, fact: Fact, draft: _Draft) -> None:
        direct = [draft.target] if isinstance(draft.target, str) else []
        waiting, self.waiting = ([], self.waiting) if fact.speech or fact.wished else (self.waiting, [])
        draft.props = list(dict.fromkeys([*draft.props, *direct, *_things(fact), *waiting]))
        draft.setting, draft.time = self.setting, self.time
        draft.speech = fact.speech or fact.wished
        draft.reason = self.vocabulary.grammar.has("causes", fact.connective)
        if draft.actor is not None:
            looks = [look for look in fact.looks if look not in draft.actor.attributes]
            draft.actor.attributes.extend(looks)
        self.drafts.append(draft)

    def _surroundings(self, fact: Fact) -> None:
        named = [
            (prep, noun.concept) for prep, noun in places(fact) if prep not in {"from", "out of"} and not noun.none
        ]
        lemma = fact.verb.lemma if fact.verb is not None else ""
        grammar = self.vocabulary.grammar
        unlikely = self.setting is not None and grammar.has("wish_verbs", lemma)
        if named and not unlikely and not (fact.verb is not None and fact.verb.negated):
            self.setting = next((concept for prep, concept in named if prep in _INSIDE), named[-1][1])
            self.bound = all(prep == "to" for prep, _ in named)
        elif self.setting is None and any(grammar.has("indoors", noun.word) for noun in fact.nouns()):
            self.setting = "room"
        for noun in fact.nouns():
            if noun.kind == "time":
                self.time = noun.concept

    def _notice(self, fact: Fact) -> None:
        """Remember what was named last: a thing for "it", and everybody mentioned besides subject and target."""
        for noun in fact.nouns():
            if noun.kind in {"prop", "setting"} and noun.concept is not None and noun.word != "home":
                self.words.setdefault(noun.concept, noun.word)
            if noun.kind == "prop" and noun.plural:
                self.cast.things = noun.concept
            elif noun.kind == "prop":
                self.cast.thing = noun.concept
            elif noun.kind == "character":
                if id(noun) not in self.noticed and noun.concept not in self.vocabulary.grammar.words["people"]:
                    self.cast.thing = None
                if not any(noun is subject for subject in fact.subjects) and ("like", noun) not in fact.around:
                    self._members([noun], [], fact)
            self.noticed[id(noun)] = noun
        direct = [noun.concept for noun in fact.objects if noun.kind == "prop"]
        self.cast.thing = direct[-1] if direct else self.cast.thing

    def events(self) -> tuple[Event, ...]:
        """The finished events."""
        titles = titles_of(self.cast.members, self.vocabulary.grammar.inflector)
        weather = self._weather()
        drafts = [draft for draft in self.drafts if id(draft.actor) not in weather]
        for draft in drafts:
            draft.target = None if id(draft.target) in weather else draft.target
        return tuple(_finish(draft, titles) for draft in drafts)

    def _weather(self) -> set[int]:
        """The sun and the wind (their identities) where they do nothing that only a person does."""
        grammar = self.vocabulary.grammar
        alive = {
            id(draft.actor)
            for draft in self.drafts
            if draft.action is not None and grammar.has("personal", draft.action) and not draft.negated
        }
        elements = [member for member in self.cast.members if grammar.has("elements", member.concept)]
        return {id(member) for member in elements} - alive


def _things(fact: Fact) -> list[str]:
    return [noun.concept for noun in fact.nouns() if noun.kind == "prop" and noun.concept and not noun.none]


def _finish(draft: _Draft, titles: dict[int, str | None]) -> Event:
    actor, target = draft.actor, draft.target
    member = target if isinstance(target, Member) else None
    return Event(
        sentence=draft.sentence,
        text=draft.text,
        actor=actor.concept if actor is not None else None,
        actor_name=titles[id(actor)] if actor is not None else None,
        actor_word=actor.word if actor is not None else None,
        attributes=tuple(actor.attributes) if actor is not None else (),
        action=draft.action,
        verb=draft.verb,
        target=member.concept if member is not None else target if isinstance(target, str) else None,
        target_name=titles[id(member)] if member is not None else None,
        emotion=draft.emotion,
        props=tuple(draft.props),
        carries=tuple(draft.carries),
        setting=draft.setting,
        time=draft.time,
        cause=draft.cause,
        negated=draft.negated,
        speech=draft.speech,
        count=actor.count if actor is not None else 1,
        company=tuple((one.concept, titles[id(one)]) for one in draft.company),
        lost=tuple(draft.lost),
    )


def read_story(text: str) -> StoryReading:
    """The sentences of `text` and the events in them, in the order in which they are told.

    A heading (a first line without a full stop, then an empty line) is left out. A clause that shows nothing drawable
    but names somebody is an event without an action, so that nobody is lost.
    """
    vocabulary = load_vocabulary()
    sentences = split_sentences(_HEADING.sub("", text, count=1))
    names = story_names(sentences, vocabulary)
    teller = _Teller(vocabulary)
    unread: list[str] = []
    for index, sentence in enumerate(sentences):
        chunks, unknown = chunk_words(sentence.words, vocabulary, names)
        unread.extend(unknown)
        teller.sentence(index, sentence, chunks)
    texts = tuple(sentence.text for sentence in sentences)
    return StoryReading(texts, teller.events(), tuple(dict.fromkeys(unread)), teller.words)
