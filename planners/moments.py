"""One part of a story to one moment that can be drawn: the main event, who is there, how they feel, what is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from katha.language import Actor, Event, SceneReading, describe_deed, describe_scene
from katha.planners.cast import Key, Role, role_key
from katha.planners.continuing import Aims, spoken_of
from katha.planners.segments import salience

__all__ = ["HANDLED", "Moment", "Stage", "moment_of"]

HANDLED = frozenset({"give", "take", "throw", "carry"})
_FELT = {"trapped": "afraid", "cry": "sad", "dance": "happy"}
_STATES = frozenset({"trapped", "sleep", "die", "cry", "sit"})
_LETS_GO = frozenset({"give", "throw", "eat", "drink", "bite", "trapped", "die", "fall", "build", "cook", "plant"})
_HANDS_FULL = frozenset({"sleep", "hug", "swim", "climb", "dig", "push", "pull", "free"})
_KEEPS = frozenset({"take", "carry", "walk", "run", "fly", "swim"})
_MOST_ACTORS = 3
_AS_GOOD = 0.6
"""How good another event has to be (share of the best) to be shown instead of the deed of the panel before."""
_MOST_PROPS = 4


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
        """What each character does and feels, a sentence each."""
        plain = [
            replace(actor, attributes=role.plain.attributes)
            for role, actor in zip(self.cast, self.reading.actors, strict=True)
        ]
        return [describe_deed(one, [two for two in plain if two is not one], self.words) for one in plain]

    def said(self, event: Event) -> str:
        """Any event of the story as one sentence."""
        actor, others = self.played(event)
        return describe_deed(actor, others, self.words_for(event))

    def words_for(self, event: Event) -> Mapping[str, str]:
        """The story's own nouns, with those of the event's characters."""
        keys = (role_key(event), (event.target or "", event.target_name))
        return {
            **self.words,
            **{self.roles[key].actor.concept: self.roles[key].word for key in keys if key in self.roles},
        }

    def played(self, event: Event) -> tuple[Actor, list[Actor]]:
        """The event's actor with its deed, and whoever the deed is directed at."""
        carries: tuple[str, ...] = ()
        if event.action in HANDLED:
            carries = _handled(event)
        role = self.roles[role_key(event)]
        actor = replace(role.plain, action=event.action, target=event.target, emotion=event.emotion, carries=carries)
        target = self.roles.get((event.target or "", event.target_name))
        return actor, [target.plain] if target is not None else []

    def emotions(self) -> dict[str, str]:
        """What each character feels, by its name in the plan."""
        pairs = zip(self.cast, self.reading.actors, strict=True)
        return {role.name: actor.emotion for role, actor in pairs if actor.emotion is not None}

    def must_show(self) -> list[str]:
        """What has to be visible: every deed and feeling, every thing, the place."""
        place = [self.reading.setting] if self.reading.setting is not None else []
        things = [prop for actor in self.reading.actors for prop in actor.carries]
        named = [self.words.get(thing, thing.replace("_", " ")) for thing in [*things, *self.reading.props, *place]]
        return list(dict.fromkeys([*(deed.rstrip(".") for deed in self.deeds()), *named]))


@dataclass
class Stage:
    """What goes on from panel to panel: the roles, the story's own nouns, the place and the time."""

    roles: Mapping[Key, Role]
    words: Mapping[str, str]
    setting: str | None = None
    time: str | None = None
    held: dict[Key, str] = field(default_factory=dict)
    aims: Aims = field(default_factory=Aims)
    last: Event | None = None

    def hand_on(self, events: Sequence[Event]) -> None:
        """Remember who holds what after `events`: a thing taken stays in hand until given, thrown or eaten."""
        self.aims.follow(events)
        for event in events:
            self.lose(event)
            if not _real(event) or event.actor is None:
                continue
            key = role_key(event)
            if event.action in _LETS_GO:
                held = self.held.pop(key, None)
                if event.action == "give" and held is not None and event.target is not None:
                    self.held[event.target, event.target_name] = held
            elif event.action in _KEEPS and event.carries:
                self.held = {who: what for who, what in self.held.items() if what != event.carries[0]}
                self.held[key] = event.carries[0]

    def lose(self, event: Event) -> None:
        """What slips out of hands is in nobody's from now on."""
        self.held = {who: what for who, what in self.held.items() if what not in event.lost}


def _feeling(key: Key, events: Sequence[Event], until: int) -> str | None:
    """What a character feels at the main event: the last feeling told up to its sentence, or else in this part."""
    told = [event for event in events if role_key(event) == key and event.emotion is not None and _real(event)]
    before = [event for event in told if event.sentence <= until]
    chosen = before[-1] if before else told[0] if told else None
    return chosen.emotion if chosen is not None else None


def _doing(key: Key, main: Event, events: Sequence[Event]) -> Event | None:
    """What else a character is seen doing at the main event: the same deed, or a state that lasts."""
    own = [event for event in events if role_key(event) == key and event.action is not None and _real(event)]
    together = [event for event in own if event.sentence == main.sentence and event.action == main.action]
    lasting = [event for event in own if event.action in _STATES and event.sentence <= main.sentence]
    freed = main.action == "free"
    chosen = together or ([] if freed and main.target == key[0] else lasting[-1:])
    return chosen[0] if chosen else None


def _real(event: Event) -> bool:
    return not event.negated and not event.speech


def _handled(event: Event) -> tuple[str, ...]:
    """The one thing that is given, taken, thrown or carried: the deed's own object first."""
    if event.target in event.props and event.target is not None:
        return (event.target,)
    return event.props[:1]


def _drawn(role: Role, event: Event | None, emotion: str | None, present: Sequence[str]) -> Actor:
    actor = replace(role.actor, emotion=emotion)
    if event is None or event.action is None:
        return actor
    target = event.target
    if target is not None and target not in present and target not in event.props:
        target = None
    carries: tuple[str, ...] = ()
    if event.action in HANDLED:
        carries = _handled(event)
        target = target or (carries[0] if carries else None)
        if event.action == "carry" and carries:
            target = carries[0]
    elif event.action not in _LETS_GO | _HANDS_FULL and actor.count == 1:
        carries = event.carries[:1]
    felt = emotion or _FELT.get(event.action)
    return replace(actor, action=event.action, target=target, carries=carries, emotion=felt)


def _present(main: Event, events: Sequence[Event], roles: Mapping[Key, Role]) -> list[Key]:
    """Who is in the picture, the main event's actor and target first."""
    keys = [role_key(main)]
    if main.target is not None:
        keys.append((main.target, main.target_name))
    near = [event for event in events if event.actor is not None and event.sentence == main.sentence]
    rest = [event for event in events if event.actor is not None and _real(event)]
    keys.extend(role_key(event) for event in near)
    keys.extend(key for event in near for key in event.company)
    keys.extend(role_key(event) for event in rest)
    return list(dict.fromkeys(key for key in keys if key in roles))[:_MOST_ACTORS]


def _main(events: Sequence[Event], last: Event | None) -> Event:
    """The event most worth drawing; one that the panel before shows already gives way to another as good."""
    best = max(reversed(events), key=salience)

    def shown(event: Event) -> bool:
        return last is not None and (event.actor, event.actor_name, event.action, event.target) == (
            *(last.actor, last.actor_name),
            *(last.action, last.target),
        )

    if not shown(best):
        return best
    others = [event for event in events if not shown(event) and salience(event) >= _AS_GOOD * salience(best)]
    return max(reversed(others), key=salience) if others else best


def _holding(actor: Actor, thing: str | None, taken: set[str]) -> Actor:
    """`actor` with what it took earlier still in its hands, where that can be shown."""
    busy = actor.action in _LETS_GO or actor.action in _HANDS_FULL or actor.count > 1
    if thing is None or busy or actor.carries or thing in taken:
        return actor
    taken.add(thing)
    return replace(actor, carries=(thing,))


def moment_of(events: Sequence[Event], stage: Stage, *, final: bool = False) -> Moment:
    """The moment that stands for `events`, which hold at least one event with an actor.

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
    aiming = stage.aims.aimed(main)
    actors = [_drawn(cast[0], aiming, _feeling(keys[0], events, until), kinds)]
    taken = set(actors[0].carries)
    for key, role in zip(keys[1:], cast[1:], strict=True):
        doing = _doing(key, main, events)
        drawn = _drawn(role, doing, _feeling(key, events, until), kinds)
        if set(drawn.carries) & taken:
            drawn = replace(drawn, carries=(), action=None, target=None)
        taken.update(drawn.carries)
        actors.append(drawn)
    actors = [_holding(actor, stage.held.get(key), taken) for key, actor in zip(keys, actors, strict=True)]
    stage.hand_on(events[place:])
    stage.last = main
    props = _props(aiming, events, actors, taken)
    props = (*props, *spoken_of(events, main, keys, {*props, *taken, *stage.held.values()}))[:_MOST_PROPS]
    reading = SceneReading(tuple(actors), props, main.setting or stage.setting, main.time)
    words = {**stage.words, **{role.actor.concept: role.word for role in cast}}
    return Moment(reading, main, cast, tuple(events), words, stage.roles)


def _props(main: Event, events: Sequence[Event], actors: Sequence[Actor], taken: set[str]) -> tuple[str, ...]:
    near = [prop for event in events if event.sentence == main.sentence for prop in event.props]
    targets = [actor.target for actor in actors if actor.target is not None]
    things = {prop for event in events for prop in event.props}
    seen = [*(target for target in targets if target in things), *main.props, *near]
    return tuple(prop for prop in dict.fromkeys(seen) if prop not in taken)[:_MOST_PROPS]
