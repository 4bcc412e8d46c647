"""What a right answer about a plain text could be taken for: other deeds, said alike, not so at that moment."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from katha.configs import load_config
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.questions.saying import Deed
from katha.text import Entity, Reading, Teller
from katha.text.words import load_words

__all__ = ["Others"]

_WORDS = load_config("questions.yaml")
MOST, DISTRACTORS = 6, 3
_NEAR = 1
_WHOSE = re.compile(r"\b(?:his|her|himself|herself|themselves|each other)\b")
_BEINGS = ("person", "being")


@dataclass(frozen=True)
class Others:
    """Wrong answers from a story's own deeds and things. scene: the number of the scene that a sentence belongs to."""

    reading: Reading
    teller: Teller
    deeds: Sequence[Deed]
    scene: Callable[[int], int]

    def of(self, deed: Deed, cue: Deed | None) -> tuple[str, ...]:
        """Return what could be taken for a deed: the same verb with another thing, what its doer does elsewhere, what
        somebody else does, said of its doer. Nothing that happens between `cue`, by which the question finds its
        moment, and the deed. Empty where the doer has no other deeds that it could be taken for.
        """
        found = [one for one in self.deeds if self._elsewhere(one, deed) and not self._between(one, deed, cue)]
        own = [one for one in found if one.who == deed.who and not one.spoken]
        moved = [one for one in found if one.who != deed.who and self._may(deed, one)]
        first, last = ([one.sentence for one in side] for side in self._sides(own, deed, cue))
        theirs = [one.of(deed) for one in self._some(moved, deed)]
        things = self._things(deed)
        wrong = [*things[:1], *first[:1], *theirs[:1], *first[1:], *theirs[1:], *last, *things[1:]]
        kept = self._kept(wrong, deed, cue)
        return kept if len(kept) >= DISTRACTORS else ()

    def happening(self, deed: Deed, cue: Deed | None) -> tuple[str, ...]:
        """Return what else happens in the story at other moments, then what anybody might do."""
        found = [one for one in self.deeds if self._elsewhere(one, deed) and not self._between(one, deed, cue)]
        sides = self._sides([one for one in found if not one.spoken], deed, cue)
        plain = [one.sentence for side in sides for one in side]
        idle = self._idle(deed) if self._kind(deed) else []
        return self._kept([*self._things(deed)[:1], *plain, *idle], deed, cue)

    def events(self, right: Deed, at: Deed) -> tuple[str, ...]:
        """Return deeds of the story that are neither `right` nor `at`, those of its doer first."""
        found = [one for one in self.deeds if self._elsewhere(one, right) and self._elsewhere(one, at)]
        own = [one.sentence for one in self._some(found, right) if one.people and one.who == right.who]
        rest = [one.sentence for one in self._some(found, right) if one.sentence not in own and not one.spoken]
        return self._kept([*own[:2], *rest], right, at)

    def _some(self, deeds: Sequence[Deed], deed: Deed) -> list[Deed]:
        """Deeds in an order that is the same each time."""
        return random.Random(deed.sentence).sample(list(deeds), len(deeds))

    def _sides(self, deeds: Sequence[Deed], deed: Deed, cue: Deed | None) -> tuple[list[Deed], list[Deed]]:
        """Those on the other side of the moment than the deed, as the question has it, and those on its own."""
        before = cue is not None and cue.event.start > deed.event.start
        off = [one for one in deeds if (one.event.start < deed.event.start) != before]
        return self._some(off, deed), self._some([one for one in deeds if one not in off], deed)

    def _between(self, one: Deed, deed: Deed, cue: Deed | None) -> bool:
        if cue is None:
            return False
        first, last = sorted((cue.event.sentence, deed.event.sentence))
        return first <= one.event.sentence <= last

    def _kept(self, texts: Iterable[str], deed: Deed, cue: Deed | None) -> tuple[str, ...]:
        """Those that are not told of the same moment, each once."""
        near = {one.sentence for one in self.deeds if one.event.sentence == deed.event.sentence}
        barred = {normalise(text) for text in (*near, deed.sentence, cue.sentence if cue is not None else "")}
        return tuple(dict.fromkeys(text for text in texts if normalise(text) not in barred))[:MOST]

    def _elsewhere(self, one: Deed, deed: Deed) -> bool:
        """Whether a deed belongs to another moment and is another deed."""
        if one.still or not one.good or abs(one.event.sentence - deed.event.sentence) < _NEAR:
            return False
        if self.scene(one.event.sentence) == self.scene(deed.event.sentence):
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
