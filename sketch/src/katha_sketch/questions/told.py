"""The questions that a plain text itself calls for: one for each sentence that tells something visible, read or not.

They come from the reading of the text (`english`), never from a plan, so that a board which leaves a sentence out is
asked about it all the same. Of the plan, only which panel stands for which sentence is used."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.questions.build import ORDERED, gives_away, sentence
from katha.schema import Dimension, Plan, StoryRecord
from katha_sketch.data import load_config
from katha_sketch.english import Entity, Event, Reading, Sentence, Teller, read_text
from katha_sketch.english.words import load_words
from katha_sketch.questions.saying import Deed, Sayer
from katha_sketch.questions.sight import Sight, sight_of

__all__ = ["Draft", "Others", "TextQuestions", "text_questions"]

_WORDS = load_config("questions.yaml")
MOST, DISTRACTORS = 6, 3
_NEAR = 1
_WHOSE = re.compile(r"\b(?:his|her|himself|herself|themselves|each other)\b")
_BEINGS = ("person", "being")
_QUOTES = ('"', "\u201c", "'")


@dataclass(frozen=True)
class Others:
    """Wrong answers from a story's own deeds and things. scene: the number of the scene that a deed belongs to. sight:
    what a picture can show of it; what looks otherwise than the answer comes before what does not."""

    reading: Reading
    teller: Teller
    deeds: Sequence[Deed]
    scene: Callable[[Deed], int]
    sight: Callable[[Deed], Sight]

    def of(self, deed: Deed, cues: Sequence[Deed]) -> tuple[str, ...]:
        """Return what could be taken for a deed: the same verb with another thing, what its doer does elsewhere, what
        somebody else does, said of its doer. Nothing that happens between `cues`, by which the question finds its
        moment, and the deed. Empty where the doer has no other deeds that it could be taken for.
        """
        found = self._apart(deed, cues)
        own = [one for one in found if one.who == deed.who and not one.spoken]
        moved = [one for one in found if one.who != deed.who and self._may(deed, one)]
        first, last = ([one.sentence for one in side] for side in self._sides(own, deed, cues))
        theirs = [one.of(deed) for one in self._some(moved, deed)]
        things = self._things(deed)
        wrong = [*things[:1], *first[:1], *theirs[:1], *first[1:], *theirs[1:], *last, *things[1:]]
        kept = self._kept(wrong, deed, cues)
        return kept if len(kept) >= DISTRACTORS else ()

    def happening(self, deed: Deed, cues: Sequence[Deed]) -> tuple[str, ...]:
        """Return what else happens in the story at other moments, then what anybody might do."""
        found = self._apart(deed, cues)
        sides = self._sides([one for one in found if not one.spoken], deed, cues)
        plain = [one.sentence for side in sides for one in side]
        idle = self._idle(deed) if self._kind(deed) else []
        return self._kept([*self._things(deed)[:1], *plain, *idle], deed, cues)

    def events(self, right: Deed, at: Deed) -> tuple[str, ...]:
        """Return deeds of the story that are neither `right` nor `at`, those of its doer first."""
        found = [one for one in self.deeds if self._elsewhere(one, right) and self._elsewhere(one, at)]
        own = [one.sentence for one in self._some(found, right) if one.people and one.who == right.who]
        rest = [one.sentence for one in self._some(found, right) if one.sentence not in own and not one.spoken]
        return self._kept([*own[:2], *rest], right, (at,))

    def _apart(self, deed: Deed, cues: Sequence[Deed]) -> list[Deed]:
        """Deeds of other moments: those that a picture shows otherwise than this one, if they are enough."""
        found = [one for one in self.deeds if self._elsewhere(one, deed) and not self._between(one, deed, cues)]
        clear = [one for one in found if self._clear(one, deed)]
        return clear if len(clear) > DISTRACTORS else found

    def _clear(self, one: Deed, deed: Deed) -> bool:
        """Whether a picture shows a deed, and otherwise than the other."""
        seen = self.sight(one)
        return seen.plain and seen.apart(self.sight(deed))

    def _some(self, deeds: Sequence[Deed], deed: Deed) -> list[Deed]:
        """Deeds in an order that is the same each time, those first that a picture shows otherwise than this one."""
        order = random.Random(deed.sentence).sample(list(deeds), len(deeds))
        return sorted(order, key=lambda one: not self._clear(one, deed))

    def _sides(self, deeds: Sequence[Deed], deed: Deed, cues: Sequence[Deed]) -> tuple[list[Deed], list[Deed]]:
        """Those on the other side of the moment than the deed, as the question has it, and those on its own."""
        before = bool(cues) and cues[0].event.start > deed.event.start
        off = [one for one in deeds if (one.event.start < deed.event.start) != before]
        return self._some(off, deed), self._some([one for one in deeds if one not in off], deed)

    def _between(self, one: Deed, deed: Deed, cues: Sequence[Deed]) -> bool:
        around = sorted((deed.event.sentence, *(cue.event.sentence for cue in cues)))
        return bool(cues) and around[0] <= one.event.sentence <= around[-1]

    def _kept(self, texts: Iterable[str], deed: Deed, cues: Sequence[Deed]) -> tuple[str, ...]:
        """Those that are not told of the same moment, each once."""
        near = {one.sentence for one in self.deeds if one.event.sentence == deed.event.sentence}
        barred = {normalise(text) for text in (*near, deed.sentence, *(cue.sentence for cue in cues))}
        return tuple(dict.fromkeys(text for text in texts if normalise(text) not in barred))[:MOST]

    def _elsewhere(self, one: Deed, deed: Deed) -> bool:
        """Whether a deed belongs to another moment and is another deed."""
        if one.still or not one.good or abs(one.event.sentence - deed.event.sentence) < _NEAR:
            return False
        if self.scene(one) == self.scene(deed):
            return False
        same = set(one.event.who("patient", "recipient")) & set(deed.event.who("patient", "recipient"))
        return one.event.verb != deed.event.verb or not (same or one.rest == deed.rest)

    def _may(self, deed: Deed, one: Deed) -> bool:
        """Whether what somebody does elsewhere can be said of a deed's doer, who then has no part in it."""
        if not one.people or not deed.people or one.spoken or set(one.people) & set(deed.people):
            return False
        if one.passive or one.event.state or _WHOSE.search(one.rest):
            return False
        parts = set(self.teller.people(key for role in one.event.roles if (key := role.entity) is not None))
        if parts & set(deed.people) or any(self.teller.name(key) in one.rest for key in deed.people):
            return False
        return self._kind(deed) == self._kind(one)

    def _kind(self, deed: Deed) -> str:
        kinds = {"person" if one.kind in (*_BEINGS, "group") else one.kind for one in map(self.teller.one, deed.people)}
        return kinds.pop() if len(kinds) == 1 else ""

    def _things(self, deed: Deed) -> list[str]:
        """The deed with other things that its verb can be done to: the story's own, then any of the kind."""
        words, event = load_words(), deed.event
        found: list[str] = []
        for role in event.all("patient"):
            noun = role.head
            kind = next(
                (kind for kind in sorted(words.wants(event.verb, event.particle)) if words.is_a(kind, noun)), ""
            )
            if not kind or noun not in deed.rest:
                continue
            own = [one for one in self.reading.entities if self._thing(one, kind) and one.noun not in deed.rest]
            told = [one.noun for one in own if not self._done(deed, one)]
            table = sorted(words.sets.get(f"is_a.{kind}", ()))
            other = [one for one in table if one in _WORDS["things"].split() and one not in self.reading.text.lower()]
            more = random.Random(deed.sentence).sample(other, len(other))
            found += [deed.with_thing(noun, f"the {one}" if one in told else _one(one)) for one in (*told, *more[:1])]
        return [text for text in found if text]

    def _thing(self, entity: Entity, kind: str) -> bool:
        plain = entity.kind == "thing" and entity.count == 1 and bool(entity.noun)
        return plain and load_words().is_a(kind, entity.noun) and not load_words().has("parts", entity.noun)

    def _done(self, deed: Deed, entity: Entity) -> bool:
        """Whether the same is told of another thing."""
        return any(entity.id in one.who("patient") for one in self.reading.events if one.verb == deed.event.verb)

    def _idle(self, deed: Deed) -> list[str]:
        """What anybody might do, and nobody in the story does."""
        verbs = {one.verb for one in self.reading.events}
        kind = "animal" if self._kind(deed) == "animal" else "person"
        rows = (row.partition(" ") for row in _WORDS["idle"][kind])
        said = [deed.instead(verb, rest) for verb, _, rest in rows if verb not in verbs]
        return random.Random(deed.sentence).sample(said, len(said))


def _one(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


_UNFELT = frozenset(_WORDS["unfelt"].split())
_FEELS = ("be", "feel", "become")
_ALIVE = ("person", "animal", "being", "group")
_MOST_CUES = 3
_NEXT = 2
"""So many scenes off, something is no longer right before or after."""
_LONG, _SHORT = 14, 3
_LEAD = re.compile(r"^(?:but|and|so|then),? ", re.IGNORECASE)
_GOES_ON = re.compile(r"[,;:]? (?:but|because|although|while|which|where|who|until)\b|[,;] (?:and|so)\b|;")
_SO = re.compile(r"so (?!that\b)", re.IGNORECASE)
_ARTICLE = re.compile(r"(?<!\w)(?:the|an?|his|her|its|their|my|our)\s+$", re.IGNORECASE)


@dataclass(frozen=True)
class Draft:
    """One question before it has an id. `made_from`: the reading of the text, or a sentence that was not read."""

    dimension: Dimension
    question: str
    answer: str
    pair: tuple[int, int]
    accepted: tuple[str, ...] = ()
    distractors: tuple[str, ...] = ()
    made_from: str = ""


def text_questions(record: StoryRecord, plan: Plan) -> list[Draft] | None:
    """Return the drafts for a record without transitions of its own; None where its text cannot be read."""
    texts = [scene.scene_text for scene in sorted(record.scenes, key=lambda scene: scene.scene_index)]
    _, reading = read_text("\n\n".join(texts) if texts else record.story_text)
    if reading is None or not any(one.visible for one in reading.sentences):
        return None
    pieces = [(text, text) for text in texts]
    pieces = pieces or [(panel.source or panel.caption, panel.caption) for panel in plan.panels]
    return list(TextQuestions(reading, pieces).drafts())


class TextQuestions:
    """Drafts of a reading's questions. pieces: what each scene stands for, sentences of the text and the part of them
    that the scene shows."""

    def __init__(self, reading: Reading, pieces: Sequence[tuple[str, str]]) -> None:
        self.reading = reading
        self.teller = Teller(reading)
        self._pieces = [(" ".join(told.split()), _words(shown)) for told, shown in pieces]
        self._sayer = Sayer(reading, self.teller)
        self._shown: dict[int, list[Deed]] = {}
        deeds = [deed for event in reading.events if (deed := self._sayer.deed(event.id)) is not None]
        fair = [deed for deed in deeds if deed.fair]
        self._sight = cache(lambda at: sight_of(reading, reading.events[at]))
        self._others = Others(reading, self.teller, fair, self._scene, self._looks)
        self._asked: set[str] = set()
        self._told = Counter(deed.sentence for deed in fair)
        mains = [deed for one in reading.sentences if one.visible and (deed := self._main(one)) is not None]
        self._spoken = Counter(deed.who for deed in mains if deed.spoken)

    def drafts(self) -> Iterator[Draft]:
        """Yield every question in the order of the text."""
        seen = [one for one in self.reading.sentences if one.visible]
        steps = [deed for one in seen for deed in self._deeds(one)]
        for at, one in enumerate(seen):
            deeds = self._deeds(one)
            if not deeds and self._unread(one):
                yield self._by_itself(at, seen, steps)
            for deed in deeds:
                if not (deed.event.verb in _FEELS and deed.event.feeling in _WORDS["feelings"]):
                    yield self._action(deed, steps)
            yield from self._feelings(one, steps)
            yield from self._reasons(one)
        yield from self._orders(steps)

    def pair(self, one: Sentence, deed: Deed | None = None) -> tuple[int, int]:
        """Return the transition that leads into the scene which stands for a sentence, or for one of its deeds."""
        scene = self._place(one, deed)
        return (scene - 1, scene) if scene > 1 else (1, 2)

    def _place(self, one: Sentence, deed: Deed | None = None) -> int:
        """The number of the scene that stands for a sentence, or for one of its deeds."""
        text = " ".join(one.text.split())
        told = [at for at, (piece, _) in enumerate(self._pieces, 1) if text in piece]
        if not told:
            return min(one.index * len(self._pieces) // len(self.reading.sentences) + 1, len(self._pieces))
        words = _words(deed.event.text if deed is not None else "")
        return max(told, key=lambda at: (len(words & self._pieces[at - 1][1]), -at))

    def _scene(self, deed: Deed) -> int:
        return self._place(self.reading.sentences[deed.event.sentence], deed)

    def _deeds(self, one: Sentence) -> list[Deed]:
        """The deeds that a sentence is asked about: what it tells most plainly, and what else it tells that has a scene
        of its own."""
        if one.index not in self._shown:
            main = self._main(one)
            found = [main] if main is not None else []
            for event in self.reading.of(one.index) if main is not None else ():
                deed = self._sayer.deed(event.id)
                if deed is not None and self._counts(deed) and all(self._scene(deed) != self._scene(x) for x in found):
                    found.append(deed)
            self._shown[one.index] = sorted(found, key=lambda deed: deed.event.start)
        return self._shown[one.index]

    def _counts(self, deed: Deed) -> bool:
        """Whether a deed beside its sentence's main one is worth a question."""
        return deed.clear and self._points(deed) and not deed.still and not deed.event.modality and not deed.guessed

    def _main(self, one: Sentence) -> Deed | None:
        """The deed that a sentence is asked about: what it tells most plainly."""
        deeds = [deed for event in self.reading.of(one.index) if (deed := self._sayer.deed(event.id)) is not None]
        best = max(
            (deed for deed in deeds if self._seen(deed)), key=lambda deed: (deed.worth, -deed.event.id), default=None
        )
        return best if best is not None and best.fair else self._sayer.spoken(one.index)

    def _seen(self, deed: Deed) -> bool:
        """Whether a picture of the story's now can show a deed or state: not what was before it, what somebody owns or
        is, nor how many there are."""
        event = deed.event
        if event.perfect:
            return False
        if event.verb != "be" or event.passive:
            return event.verb not in _WORDS["unshown"].split()
        spots = [role.entity for role in event.all("place", "companion") if role.entity is not None]
        somewhere = any(self.reading.entity(key).kind != "abstract" for key in spots)
        return (bool(deed.people) and somewhere) or bool(set(event.state) & set(_WORDS["states"].split()))

    def _unread(self, one: Sentence) -> bool:
        """Whether nothing of a sentence was understood, though it tells something that can be seen."""
        return not one.read and not one.text.startswith(_QUOTES)

    def _looks(self, deed: Deed) -> Sight:
        return self._sight(deed.event.id)

    # Questions.

    def _placed(
        self, start: int, scene: int, steps: Sequence[Deed], asking: str, answer: str, who: str = ""
    ) -> tuple[str, tuple[Deed, ...]]:
        """A question with the moment that it asks for, by what happens right before and right after it, else by one of
        the two or by what is farther off, and the deeds by which it is told."""
        before = [deed for deed in reversed(steps) if deed.event.start < start and self._points(deed)][:_MOST_CUES]
        after = [deed for deed in steps if deed.event.start > start and self._points(deed)][:_MOST_CUES]
        first = all(deed.event.start >= start for deed in steps)

        def said(how: str, deed: Deed) -> str:
            right = "right " if abs(self._scene(deed) - scene) < _NEXT else ""
            return f"{right}{how} {_again(deed, who)}"

        tried: list[tuple[str, tuple[Deed, ...]]] = []
        if first:
            tried.append(("at the start", ()))
        for early, late in zip(before[:1], after[:1], strict=False):
            tried.append((f"{said('after', early)} and {said('before', late)}", (early, late)))
        for part in (slice(1), slice(1, None)):
            cues = [(said("after", deed), (deed,)) for deed in before[part]]
            cues += [(said("before", deed), (deed,)) for deed in after[part]]
            tried += sorted(cues, key=lambda one: self._blurred(one[1][0]))
        for cue, deeds in tried:
            asked = f"{asking} {cue}?"
            if asked not in self._asked and not gives_away(asked, answer):
                self._asked.add(asked)
                return asked, deeds
        return f"{asking} {'at the start' if first else 'next'}?", ()

    def _blurred(self, deed: Deed) -> int:
        """How poorly a picture points out a deed: it shows nothing of it, or the same of others, the same people
        most of all."""
        seen = self._looks(deed)
        if not seen.plain:
            return 3
        alike = [one for one in self._others.deeds if one is not deed and not self._looks(one).apart(seen)]
        return 2 if any(set(one.people) & set(deed.people) for one in alike) else 1 if alike else 0

    def _points(self, deed: Deed) -> bool:
        """Whether a deed can point out a moment: it happens once."""
        return deed.good and self._once(deed) and not deed.event.perfect and deed.event.verb not in _FEELS

    def _action(self, deed: Deed, steps: Sequence[Deed]) -> Draft:
        """Ask what somebody is seen to do, or what happens."""
        pair, start = self.pair(self.reading.sentences[deed.event.sentence], deed), deed.event.start
        scene = self._scene(deed)
        if self._does(deed):
            known = set(self._asked)
            asking = f"What {'do' if deed.plural else 'does'} {deed.who} do"
            asked, cues = self._placed(start, scene, steps, asking, deed.sentence, deed.who)
            wrong = self._others.of(deed, cues)
            if wrong:
                return Draft("action_visibility", asked, deed.sentence, pair, (), wrong, "text")
            self._asked = known
        asked, cues = self._placed(start, scene, steps, "What happens", deed.sentence)
        wrong = self._others.happening(deed, cues)
        return Draft("action_visibility", asked, deed.sentence, pair, (), wrong, "text")

    def _once(self, deed: Deed) -> bool:
        """Whether a deed is told but once, so that it has a place in the order: who speaks may speak again."""
        return (self._spoken[deed.who] if deed.spoken else self._told[deed.sentence]) < 2

    def _does(self, deed: Deed) -> bool:
        """Whether somebody does something, and is not only so."""
        return bool(deed.people) and deed.event.verb != "be" and not deed.passive

    def _by_itself(self, at: int, seen: Sequence[Sentence], steps: Sequence[Deed]) -> Draft:
        """Ask for a sentence that was not read: which of these happens, the others being the story's own, changed."""
        one = seen[at]
        answer = sentence(_first_part(one.text))
        asked, _ = self._placed(one.start, self._place(one), steps, "Which of these happens", answer)
        others = [text for other in self.reading.sentences if other is not one if (text := self._changed(other))]
        wrong = [self._changed(one), *random.Random(one.text).sample(others, len(others))]
        made = dict.fromkeys(sentence(text) for text in wrong if text)
        made.pop(answer, None)
        return Draft("action_visibility", asked, answer, self.pair(one), (), tuple(made)[:MOST], "sentence")

    def _feelings(self, one: Sentence, steps: Sequence[Deed]) -> Iterator[Draft]:
        """Ask how somebody feels, where the sentence tells it plainly of one moment."""
        names = _WORDS["feelings"]
        main = self._main(one)
        found = [deed for event in self.reading.of(one.index) if (deed := self._felt(event)) is not None]
        for deed in found:
            feeling = str(deed.event.feeling)
            if any(other.who == deed.who and other.event.feeling != feeling for other in found):
                continue
            be = "are" if deed.plural else "is"
            answer = sentence(f"{deed.who} {be} {feeling}")
            asking = f"How {'do' if deed.plural else 'does'} {deed.who} feel"
            asked = ""
            if main is not None and main.event is not deed.event and main.clear and not main.event.feeling:
                asked = f"{asking} when {_again(main, deed.who)}?"
            if not asked or gives_away(asked, answer):
                asked, _ = self._placed(deed.event.start, self._scene(deed), steps, asking, answer, deed.who)
            told = {event.feeling or "" for event in self.reading.events if event.feeling in names}
            far = [name for name in names if name not in (feeling, *_WORDS["alike"][feeling])]
            order = sorted(random.Random(asked).sample(far, len(far)), key=lambda name: name not in told)
            wrong = tuple(f"{answer.removesuffix(feeling)}{name}" for name in order)
            own = tuple(f"{answer.removesuffix(feeling)}{word}" for word in deed.event.state)
            yield Draft("emotional", asked, answer, self.pair(one), own, wrong[:MOST], "text")

    def _felt(self, event: Event) -> Deed | None:
        """The deed or state by which somebody alive is told to feel something."""
        deed = self._sayer.deed(event.id)
        plain = event.happens and not event.perfect and event.phase != "stop" and not event.modality
        told = event.feeling in _WORDS["feelings"] and event.verb not in _UNFELT
        if deed is None or not (plain and told) or not deed.people:
            return None
        alive = all(self.teller.one(key).kind in _ALIVE for key in deed.people)
        return deed if alive and not deed.guessed else None

    def _reasons(self, one: Sentence) -> Iterator[Draft]:
        """Ask why something happens and what comes of it, where the text says so: of the deeds of one sentence that end
        alike, what comes of the last."""
        outcomes: dict[str, Draft] = {}
        for event in self.reading.of(one.index):
            deed = self._sayer.deed(event.id)
            if deed is None or not deed.fair:
                continue
            for cause in self._causes(event) if self._seen(deed) else ():
                asked = f"Why is it that {deed.clause}?"
                if not gives_away(asked, cause.sentence):
                    wrong = self._others.events(cause, deed)
                    yield Draft("causal", asked, cause.sentence, self.pair(one), (), wrong, "text")
            outcome = self._outcome(deed)
            if outcome is not None:
                asked = f"What happens because {deed.clause}?"
                if not gives_away(asked, outcome.sentence):
                    wrong = self._others.events(outcome, deed)
                    told = Draft("consequence", asked, outcome.sentence, self.pair(one), (), wrong, "text")
                    outcomes[outcome.sentence] = told
        yield from outcomes.values()

    def _causes(self, event: Event) -> list[Deed]:
        """What the text names as the reason of an event, by "because" or "so": the first that can be said."""
        named = [deed for at in event.because if (deed := self._sayer.deed(at)) is not None]
        if not named and _SO.match(event.text):
            before = [one for one in self.reading.of(event.sentence) if one.start < event.start]
            named = [deed for one in reversed(before) if (deed := self._sayer.deed(one.id)) is not None and deed.fair]
        return [deed for deed in named[:1] if self._shows(deed)]

    def _shows(self, deed: Deed) -> bool:
        """Whether a picture can tell a reason or an outcome: a deed, neither denied nor only possible."""
        event = deed.event
        plain = not event.negated and not event.modality and not event.perfect
        return plain and deed.sure and not deed.guessed and event.verb not in ("be", *_WORDS["unshown"].split())

    def _outcome(self, deed: Deed) -> Deed | None:
        """What the text tells to come of a deed: "so hard that", "until", or at once by whom or what it was done to.

        What the next sentence is asked about anyway ("What does he do after ...?") is not asked for twice.
        """
        event = deed.event
        later = [one for one in self.reading.events if one.start > event.start and one.sentence - event.sentence <= 1]
        said = [found for one in later if (found := self._sayer.deed(one.id)) is not None and found.sure]
        told = [one for one in said if one.event.sentence == event.sentence and self._follows(event, one.event)]
        if told and deed.good:
            return told[0] if self._shows(told[0]) else None
        done = set(event.who("patient", "recipient"))
        if deed.still or deed.spoken or event.passive or event.negated or not deed.clear:
            return None
        answers = [one for one in said if done == set(self.teller.doers(one.event)) and one.clear]
        found = next((one for one in answers if not one.still and not one.event.negated and not one.spoken), None)
        asked = found is not None and self._main(self.reading.sentences[found.event.sentence]) == found
        return None if asked else found

    def _follows(self, event: Event, other: Event) -> bool:
        """Whether the words say that something comes of an event."""
        if other.text.lower().startswith("until "):
            between = [one for one in self.reading.of(event.sentence) if event.start < one.start < other.start]
            return not between and not event.negated
        so = other.within == event.id and other.text.lower().startswith("that ")
        return so and re.search(r"\bso\b", self.reading.text[event.start : other.start]) is not None

    def _orders(self, steps: Sequence[Deed]) -> Iterator[Draft]:
        """Ask which of two deeds comes first: those of two scenes that follow each other by which a picture points them
        out best. Two that no picture tells apart have no order."""
        first: dict[int, Deed] = {}
        for deed in steps:
            if deed.fair and not deed.event.perfect and deed.event.verb not in _FEELS:
                known = first.get(self._scene(deed))
                if known is None or self._order_worth(deed) > self._order_worth(known):
                    first[self._scene(deed)] = deed
        told = [first[scene] for scene in sorted(first)]
        for at in range(1, len(told)):
            early, late = told[at - 1], told[at]
            apart = self._looks(early).apart(self._looks(late)) or set(early.people).isdisjoint(late.people)
            if early.sentence != late.sentence and apart and self._once(early) and self._once(late):
                yield self._ordered(told, at, self.reading.sentences[late.event.sentence])

    def _order_worth(self, deed: Deed) -> tuple[bool, bool]:
        return (deed.clear, self._looks(deed).plain)

    def _ordered(self, steps: Sequence[Deed], at: int, one: Sentence) -> Draft:
        """Ask in which order two deeds happen; the other options turn them round, or one of them and a third."""
        texts, clauses = [deed.sentence for deed in steps], [deed.clause for deed in steps]
        named = sorted((clauses[at - 1], clauses[at]))
        pairs = [(at, at - 1), *((other, at) for other in range(at + 1, len(steps)))]
        pairs += [(other, at - 1) for other in range(at + 1, len(steps))]
        pairs += [(at, other) for other in range(at - 1)] + [(at - 1, other) for other in range(at - 1)]
        wrong = tuple(f"{texts[a]}{ORDERED}{clauses[b]}" for a, b in pairs if texts[a] != texts[b])
        asked = f"In which order do these happen: {named[0]}; {named[1]}?"
        right = f"{texts[at - 1]}{ORDERED}{clauses[at]}"
        return Draft("temporal_order", asked, right, self.pair(one, steps[at]), (), wrong[:MOST], "text")

    def _changed(self, one: Sentence) -> str:
        """What a sentence tells, with another name or thing in it, so that it did not happen; "" where none fits."""
        text = _first_part(one.text)
        for entity in self.reading.entities if not one.text.startswith(_QUOTES) else ():
            for alias in sorted({entity.name, *entity.aliases}, key=lambda name: (-len(name), name)):
                whole = rf"(?<!\w)(?<!\. ){re.escape(alias)}(?![\w'’]| [A-Z])"
                found = re.search(whole, text) if len(alias) > 1 else None
                others = [other for other in self._like(entity) if other.name not in text and not other.narrator]
                if found is None or not others:
                    continue
                other = self._sayer.name(random.Random(text).choice(others).id)
                before = text[: found.start()]
                if other.startswith("the ") and not alias.lower().startswith("the "):
                    before = _ARTICLE.sub("", before)
                return f"{before}{other}{text[found.end() :]}" if other else ""
        return ""

    def _like(self, entity: Entity) -> list[Entity]:
        """The other characters of the same kind and number, for a place the other places of its sort."""
        names = self.teller.names
        if entity.id in names:
            same = [self.reading.entity(key) for key in names if key != entity.id]
        elif entity.kind == "place" and entity.sort:
            same = [one for one in self.reading.entities if one.sort == entity.sort and one.noun != entity.noun]
        else:
            same = []
        return [one for one in same if one.kind == entity.kind and (one.count == 1) == (entity.count == 1)]


def _words(text: str) -> frozenset[str]:
    return frozenset(normalise(text).split())


def _again(deed: Deed, who: str) -> str:
    """The clause of a deed in a question about `who`: by "she" where it is hers."""
    return deed.again if deed.who == who and deed.again else deed.clause


def _first_part(text: str) -> str:
    """A long sentence up to where it goes on with another ("..., and he ...")."""
    text = _LEAD.sub("", text)
    parts = _GOES_ON.split(text, maxsplit=1)
    return parts[0] if len(text.split()) > _LONG and len(parts[0].split()) > _SHORT else text
