"""Parts of a story, and the one moment of each that can be drawn: the main event, who is there, how they feel,
what is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain, count, pairwise
from typing import Any

from katha.configs import load_config
from katha.errors import PlanError
from katha.language import (
    Actor,
    Event,
    SceneReading,
    StoryReading,
    describe_actor,
    describe_deed,
    describe_scene,
    load_vocabulary,
    read_story,
)
from katha.language.looks import clash
from katha.schema import Character, StoryRecord

Key = tuple[str, str | None]
"""What tells a character from every other one: its concept, and its name if it has one."""

_ACCESSORIES = ("red_scarf", "blue_scarf", "green_cap", "yellow_hat", "crowned")


def planning(part: str) -> Mapping[str, Any]:
    """Return a part of `configs/planning.yaml`, where it is explained."""
    found: Mapping[str, Any] = load_config("planning.yaml")[part]
    return found


def has_trait(doer: Event | Actor, *names: str) -> bool:
    """Return whether the action of somebody or of an event has one of the traits of `configs/planning.yaml`."""
    traits = planning("traits")
    return any(doer.action in traits[name] for name in names)


@dataclass(frozen=True)
class Role:
    """One character of the story: its name in the plan and how it is drawn when it does nothing.

    `alike` holds when another character is of the same kind, so that its looks have to be said every time.
    """

    name: str
    actor: Actor
    word: str
    alike: bool = False

    @property
    def plain(self) -> Actor:
        """The actor as a sentence names it: with its looks only where they are needed to tell it apart."""
        return self.actor if self.alike else replace(self.actor, attributes=())

    def character(self) -> Character:
        """Return the plan's record of it: its appearance, and a prompt in which it is alone."""
        words = {self.actor.concept: self.word}
        alone = describe_scene(SceneReading((self.actor,)), words)
        appearance = describe_actor(self.actor, "a", words)
        return Character(name=self.name, kind=self.word, appearance=appearance, anchor_prompt=alone)


def role_key(event: Event) -> Key:
    """Return what tells the actor of `event` from every other character."""
    return (event.actor or "", event.actor_name)


def target_key(event: Event) -> Key:
    """Return what tells the target of `event` from every other character."""
    return (event.target or "", event.target_name)


def is_character(concept: str) -> bool:
    """Return whether a concept's id is that of a character, not of a thing."""
    return load_vocabulary().find(concept, "character") == concept


def in_order(looks: Iterable[str]) -> tuple[str, ...]:
    """Return looks in the vocabulary's order."""
    order = {concept.id: at for at, concept in enumerate(load_vocabulary().concepts("attribute"))}
    return tuple(sorted(looks, key=order.__getitem__))


def cast_of(events: Iterable[Event]) -> dict[Key, Role]:
    """Return every character of the events, in order of appearance.

    Characters of one kind that their looks do not tell apart each get an accessory, always the same.
    """
    first: dict[Key, Event] = {}
    spoken: set[Key] = set()  # characters that are only spoken of: nobody sees them, so nobody can confuse them
    for event in sorted(events, key=lambda event: event.speech):
        known = set(first)
        if event.actor is not None:
            first.setdefault(role_key(event), event)
        if event.target is not None and is_character(event.target):
            stranger = Event(event.sentence, event.text, actor=event.target, actor_name=event.target_name)
            first.setdefault(target_key(event), stranger)
        spoken |= (set(first) - known) if event.speech else set()
    kinds = Counter(key[0] for key in first if key not in spoken)
    roles: dict[Key, Role] = {}
    for key, event in first.items():
        actor = Actor(key[0], attributes=in_order(set(event.attributes)), count=event.count)
        same = [role.actor for role in roles.values() if role.actor.concept == actor.concept]
        rivals = [one for at, one in first.items() if at[0] == key[0] and at != key and at not in spoken]
        others: list[Actor | Event] = [*rivals, *same]
        if any(_confused(actor, other) for other in others):
            taken = {look for other in same for look in other.attributes}
            free = [look for look in _ACCESSORIES if look not in taken and not clash(actor.attributes, (look,))]
            accessory = free[0] if free else _ACCESSORIES[len(same) % len(_ACCESSORIES)]
            actor = replace(actor, attributes=in_order((*actor.attributes, accessory)))
        noun, alike = _noun(key[0], event.actor_word), kinds[key[0]] > 1
        name = key[1] or (load_vocabulary().grammar.inflector.plural(noun) if event.count > 1 else noun)
        names = {role.name for role in roles.values()}
        free_name = next(one for one in chain([name], (f"{name} {at}" for at in count(2))) if one not in names)
        word = noun if kinds[key[0]] == 1 else _noun(key[0], None)
        roles[key] = Role(free_name, actor, word, alike=alike)
    return roles


def _confused(one: Actor, other: Actor | Event) -> bool:
    """Return whether nothing in their looks or number tells two of a kind apart."""
    return not clash(one.attributes, other.attributes) and (one.count > 1) == (other.count > 1)


def _noun(concept: str, word: str | None) -> str:
    """Return the story's own noun for a character where the vocabulary knows it, else the vocabulary's."""
    vocabulary = load_vocabulary()
    known = word is not None and vocabulary.find(word, "character") == concept
    return word if known and word is not None else vocabulary.get("character", concept).words[0]


_MAX_UNITS = 80
_PEAK = 0.5


@cache
def _weights() -> Mapping[str, float]:
    return {action: float(weight) for weight, actions in planning("weights").items() for action in actions}


def salience(event: Event) -> float:
    """Return how much an event is worth drawing: deeds before talk, with somebody or something to be seen."""
    if event.actor is None or event.negated or (event.action is None and event.emotion is None):
        return 0.0
    score = _weights().get(event.action or "", 0.0)
    if not complete(event):
        score *= 0.4
    score += 0.8 if event.target is not None else 0.3 * min(len(event.props), 1)
    score += 0.7 if event.emotion is not None else 0.0
    score += 0.3 if event.cause is not None else 0.0
    return score * (0.25 if event.speech else 1.0)


def complete(event: Event) -> bool:
    """Return whether an event has what its action needs: nobody is seen to hold, give or push nothing."""
    together = event.count > 1 and has_trait(event, "mutual")
    return together or not has_trait(event, "needs_object") or event.target is not None or bool(event.props)


def _units(events: Sequence[Event], panels: int) -> list[list[Event]]:
    """Return what is never cut: the events of one sentence with what is only said after it, or single events where
    there are too few sentences."""
    by_sentence: dict[int, list[Event]] = {}
    for event in events:
        by_sentence.setdefault(event.sentence, []).append(event)
    units: list[list[Event]] = []
    for unit in by_sentence.values():
        if any(salience(event) > 0 and not event.speech for event in unit):
            units.append(unit)
        elif units:
            units[-1].extend(unit)
    if len(units) < panels:
        units = [[event] for event in events if salience(event) > 0]
    size = -(-len(units) // _MAX_UNITS)
    return [[*chain.from_iterable(units[at : at + size])] for at in range(0, len(units), size or 1)]


def _novelty(before: Sequence[Event], after: Sequence[Event]) -> float:
    """Return how good a cut is (0 to about 2): new people, another place, another time, another feeling."""
    people = {event.actor for event in before}, {event.actor for event in after}
    score = 0.8 if not people[0] & people[1] else 0.3 if people[0] != people[1] else 0.0
    score += 0.6 if before[-1].setting != after[0].setting else 0.0
    score += 0.4 if before[-1].time != after[0].time else 0.0
    feelings = {event.emotion for event in before} - {None}, {event.emotion for event in after} - {None}
    return score + (0.3 if feelings[0] != feelings[1] else 0.0)


def segment(events: Sequence[Event], panels: int) -> list[list[Event]]:
    """Return `panels` parts in order, none empty. With too few events the last moments are held (repeated)."""
    units = _units(events, panels)
    if len(units) <= panels:
        return [list(units[min(at * len(units) // panels, len(units) - 1)]) for at in range(panels)]
    bounds = [0, *_best_cuts(units, panels), len(units)]
    return [[*chain.from_iterable(units[start:stop])] for start, stop in pairwise(bounds)]


def _best_cuts(units: Sequence[Sequence[Event]], panels: int) -> list[int]:
    """Return where to cut, by dynamic programming: squared imbalance of the parts' sizes, less the novelty at the cuts
    and the weight of each part's main event, so that the deeds that matter most each get a part of their own."""
    total, mean = len(units), len(units) / panels
    weights = [max(salience(event) for event in unit) for unit in units]
    novelty = [0.0, *(_novelty(units[at - 1], units[at]) for at in range(1, total)), 0.0]
    best: list[list[tuple[float, int]]] = [[(float("inf"), 0)] * (total + 1) for _ in range(panels + 1)]
    best[0][0] = (0.0, 0)
    for part in range(1, panels + 1):
        for stop in range(part, total + 1):
            best[part][stop] = min(
                (
                    best[part - 1][start][0]
                    + ((stop - start - mean) / mean) ** 2
                    - 0.6 * novelty[stop] * (stop < total)
                    - _PEAK * max(weights[start:stop]),
                    start,
                )
                for start in range(part - 1, stop)
            )
    cuts = [total]
    for part in range(panels, 1, -1):
        cuts.append(best[part][cuts[-1]][1])
    return cuts[:0:-1]


_MOST_ACTORS = 3
_AS_GOOD = 0.6
"""How good another event has to be (share of the best) to be shown instead of the deed of the panel before."""
_MOST_PROPS = 4
_FEW = 2


@dataclass(frozen=True)
class Moment:
    """What one panel shows, and the events that it stands for. `roles` are all characters of the story."""

    reading: SceneReading
    key: Event
    cast: tuple[Role, ...]
    events: tuple[Event, ...]
    words: Mapping[str, str]
    roles: Mapping[Key, Role]

    @property
    def prompt(self) -> str:
        """The prompt, in plain sentences that `read_scene` reads back."""
        return describe_scene(self.reading, self.words)

    @property
    def deed(self) -> str:
        """The main event as one sentence."""
        return self.deeds()[0]

    def deeds(self) -> list[str]:
        """Return what each character does and feels, a sentence each."""
        shown = zip(self.cast, self.reading.actors, strict=True)
        plain = [replace(actor, attributes=role.plain.attributes) for role, actor in shown]
        return [describe_deed(one, [two for two in plain if two is not one], self.words) for one in plain]

    def said(self, event: Event) -> str:
        """Return any event of the story as one sentence."""
        actor, others = self.played(event)
        return describe_deed(actor, others, self.words_for(event))

    def words_for(self, event: Event) -> Mapping[str, str]:
        """Return the story's own nouns, with those of the event's characters."""
        played = [self.roles[key] for key in (role_key(event), target_key(event)) if key in self.roles]
        return {**self.words, **{role.actor.concept: role.word for role in played}}

    def played(self, event: Event) -> tuple[Actor, list[Actor]]:
        """Return the event's actor with its deed, and whoever the deed is directed at."""
        actor = replace(
            self.roles[role_key(event)].plain,
            action=event.action,
            target=event.target,
            emotion=event.emotion,
            carries=_handled(event),
        )
        target = self.roles.get(target_key(event))
        return actor, [target.plain] if target is not None else []

    def emotions(self) -> dict[str, str]:
        """Return what each character feels, by its name in the plan."""
        pairs = zip(self.cast, self.reading.actors, strict=True)
        return {role.name: actor.emotion for role, actor in pairs if actor.emotion is not None}

    def must_show(self) -> list[str]:
        """Return what has to be visible: every deed and feeling, every thing, the place."""
        place = [self.reading.setting] if self.reading.setting is not None else []
        things = [prop for actor in self.reading.actors for prop in actor.carries]
        said = [self.words.get(thing, thing.replace("_", " ")) for thing in [*things, *self.reading.props, *place]]
        return list(dict.fromkeys([*(deed.rstrip(".") for deed in self.deeds()), *said]))


@dataclass
class Stage:
    """What goes on from panel to panel: the roles, the story's own nouns, the place and the time.

    held: what each character has in its hands. aims: what it has in view, and the place where that is: gone once it is
    taken, or left behind.
    """

    roles: Mapping[Key, Role]
    words: Mapping[str, str]
    setting: str | None = None
    held: dict[Key, str] = field(default_factory=dict)
    aims: dict[Key, tuple[str, str | None]] = field(default_factory=dict)
    last: Event | None = None

    @classmethod
    def of(cls, events: Sequence[Event], words: Mapping[str, str]) -> Stage:
        """Return the stage before the first event, in the first place that the story names."""
        setting = next((event.setting for event in events if event.setting is not None), None)
        return cls(cast_of(events), words, setting)

    def hand_on(self, events: Sequence[Event]) -> None:
        """Remember what the events aim at, and who holds what: a thing taken stays in hand until given or eaten."""
        for event in events:
            self._aim(event)
        for event in events:
            self.lose(event)
            if not _real(event) or event.actor is None:
                continue
            key = role_key(event)
            if has_trait(event, "lets_go"):
                held = self.held.pop(key, None)
                if event.action == "give" and held is not None and event.target is not None:
                    self.held[target_key(event)] = held
            elif has_trait(event, "keeps") and event.carries:
                self.held = {who: what for who, what in self.held.items() if what != event.carries[0]}
                self.held[key] = event.carries[0]

    def _aim(self, event: Event) -> None:
        """Remember what an event aims at. A deed that fails ("could not reach the grapes") aims as well."""
        target = event.target
        if event.speech or event.actor is None or target is None or target not in event.props:
            return
        if has_trait(event, "seeking"):
            self.aims[role_key(event)] = (target, event.setting)
        elif has_trait(event, "getting") and not event.negated:
            self.aims = {key: aim for key, aim in self.aims.items() if aim[0] != target}

    def aimed(self, event: Event) -> Event:
        """Return `event` with what its actor has in view: as the target of a leap without one, or else just there."""
        thing, where = self.aims.get(role_key(event), (None, None))
        if thing is None or where != event.setting or thing in event.props:
            return event
        target = thing if event.target is None and has_trait(event, "seeking") else event.target
        return replace(event, target=target, props=(*event.props, thing))

    def lose(self, event: Event) -> None:
        """Let what slips out of hands be in nobody's from now on."""
        self.held = {who: what for who, what in self.held.items() if what not in event.lost}


def _real(event: Event) -> bool:
    return not event.negated and not event.speech


def _feeling(key: Key, events: Sequence[Event], until: int) -> str | None:
    """Return what a character feels at the main event: the last feeling told up to its sentence, or in this part."""
    told = [event for event in events if role_key(event) == key and event.emotion is not None and _real(event)]
    before = [event for event in told if event.sentence <= until]
    chosen = [*before[-1:], *told[:1]]
    return chosen[0].emotion if chosen else None


def _doing(key: Key, main: Event, events: Sequence[Event]) -> Event | None:
    """Return what else a character is seen doing at the main event: the same deed, or a state that lasts."""
    own = [event for event in events if role_key(event) == key and event.action is not None and _real(event)]
    together = [event for event in own if event.sentence == main.sentence and event.action == main.action]
    freed = main.action == "free" and main.target == key[0]
    lasting = [event for event in own if has_trait(event, "states") and event.sentence <= main.sentence and not freed]
    return next(iter([*together[:1], *lasting[-1:]]), None)


def _handled(event: Event) -> tuple[str, ...]:
    """Return the one thing that is given, taken, thrown or carried: the deed's own object first."""
    if not has_trait(event, "handled"):
        return ()
    return (event.target,) if event.target is not None and event.target in event.props else event.props[:1]


def _drawn(role: Role, event: Event | None, emotion: str | None, present: Sequence[str]) -> Actor:
    actor = replace(role.actor, emotion=emotion)
    if event is None or event.action is None:
        return actor
    target, carries = event.target, _handled(event)
    if target is not None and target not in present and target not in event.props:
        target = None
    if carries and (target is None or event.action == "carry"):
        target = carries[0]
    if not has_trait(event, "handled", "lets_go", "hands_full") and actor.count == 1:
        carries = event.carries[:1]
    felt = emotion or planning("felt").get(event.action)
    return replace(actor, action=event.action, target=target, carries=carries, emotion=felt)


def _present(main: Event, events: Sequence[Event], roles: Mapping[Key, Role]) -> list[Key]:
    """Return who is in the picture, the main event's actor and target first."""
    acted = [event for event in events if event.actor is not None]
    near = [event for event in acted if event.sentence == main.sentence]
    keys = [role_key(main), target_key(main), *map(role_key, near)]
    keys += [key for event in near for key in event.company]
    keys += [role_key(event) for event in acted if _real(event)]
    return list(dict.fromkeys(key for key in keys if key in roles))[:_MOST_ACTORS]


def _main(events: Sequence[Event], last: Event | None) -> Event:
    """Return the event most worth drawing; one that the panel before shows already gives way to another as good."""
    best = max(reversed(events), key=salience)

    def deed(event: Event) -> tuple[str | None, ...]:
        return (event.actor, event.actor_name, event.action, event.target)

    if last is None or deed(best) != deed(last):
        return best
    others = [event for event in events if deed(event) != deed(last) and salience(event) >= _AS_GOOD * salience(best)]
    return max(reversed(others), key=salience) if others else best


def moment_of(events: Sequence[Event], stage: Stage, *, final: bool = False) -> Moment:
    """Return the moment that stands for `events`, which hold at least one event with an actor.

    The `final` moment of a story shows the feelings with which it ends.
    """
    main = _main(events, stage.last)
    if main.actor is None:
        main = next(event for event in events if event.actor is not None)
    until = events[-1].sentence if final else main.sentence
    keys = _present(main, events, stage.roles)
    cast = tuple(stage.roles[key] for key in keys)
    kinds = [key[0] for key in keys]
    place = next(at for at, event in enumerate(events) if event is main)
    stage.hand_on(events[:place])
    stage.lose(main)
    aiming = stage.aimed(main)
    actors: list[Actor] = []
    taken: set[str] = set()
    for key, role in zip(keys, cast, strict=True):
        doing = _doing(key, main, events) if actors else aiming
        actor = _drawn(role, doing, _feeling(key, events, until), kinds)
        if set(actor.carries) & taken:
            actor = replace(actor, carries=(), action=None, target=None)
        taken.update(actor.carries)
        actors.append(actor)
    for at, (key, actor) in enumerate(zip(keys, actors, strict=True)):
        # What was taken earlier is still in the hands, where that can be shown.
        thing, busy = stage.held.get(key), actor.count > 1 or has_trait(actor, "lets_go", "hands_full")
        if thing is not None and not busy and not actor.carries and thing not in taken:
            taken.add(thing)
            actors[at] = replace(actor, carries=(thing,))
    stage.hand_on(events[place:])
    stage.last = main
    props = _props(aiming, events, actors, taken)
    props = (*props, *_spoken_of(events, main, keys, {*props, *taken, *stage.held.values()}))[:_MOST_PROPS]
    reading = SceneReading(tuple(actors), props, main.setting or stage.setting, main.time)
    words = {**stage.words, **{role.actor.concept: role.word for role in cast}}
    return Moment(reading, main, cast, tuple(events), words, stage.roles)


def _props(main: Event, events: Sequence[Event], actors: Sequence[Actor], taken: set[str]) -> tuple[str, ...]:
    near = [prop for event in events if event.sentence == main.sentence for prop in event.props]
    things = {prop for event in events for prop in event.props}
    targets = [actor.target for actor in actors if actor.target is not None and actor.target in things]
    seen = dict.fromkeys([*targets, *main.props, *near])
    return tuple(prop for prop in seen if prop not in taken)[:_MOST_PROPS]


def _spoken_of(events: Sequence[Event], main: Event, keys: Collection[Key], shown: Collection[str]) -> list[str]:
    """Return one thing that the part tells of up to the main event, or speaks of later, where the main event's own are
    few.

    Only what somebody in the picture says or does something with in the same place, and is not used up.
    """
    if len(shown) >= _FEW:
        return []
    told = [event for event in events if not event.negated and (event.speech or event.sentence <= main.sentence)]
    near = [event for event in told if role_key(event) in keys and event.setting == main.setting]
    used = {thing for event in near for thing in event.lost}
    used |= {event.target for event in near if event.target is not None and has_trait(event, "used_up")}
    return [thing for event in near for thing in event.props if thing not in used and thing not in shown][:1]


def scene_texts(story: StoryRecord) -> list[str]:
    """Return the scenes' texts, each ending as a sentence."""
    texts = [scene.scene_text for scene in story.scenes]
    return [text if text.endswith((".", "!", "?", '"')) else f"{text}." for text in texts]


def annotated_moments(story: StoryRecord, reading: StoryReading) -> list[Moment]:
    """Return one moment for each scene.

    The scenes' texts are read as one story, so that "he" in scene 3 is the character of scene 2. A scene in which
    nobody is known shows what its neighbour shows: the one before, or else the one after.

    Raises:
        PlanError: no scene names anybody that the vocabulary knows.
    """
    texts = scene_texts(story)
    told = read_story("\n\n".join(texts))
    owners = [at for at, text in enumerate(texts) for _ in read_story(text).sentences]
    parts: list[list[Event]] = [[] for _ in texts]
    for event in told.events:
        parts[owners[event.sentence]].append(event)
    acted = [at for at, part in enumerate(parts) if any(event.actor for event in part)]
    if not acted:
        raise PlanError(
            f"Record {story.story_id!r}: nobody in any 'scene_text' is known to planner 'rule'.",
            hint='Name the characters by their kind ("the fox"), or choose another planner with --planner.',
        )
    parts = [parts[max((one for one in acted if one <= at), default=acted[0])] for at in range(len(parts))]
    stage = Stage.of([event for part in parts for event in part], {**reading.words, **told.words})
    return [moment_of(part, stage, final=at == len(parts) - 1) for at, part in enumerate(parts)]
