"""Parts of a story, and the one moment of each that can be drawn: the main event, who is there, how they feel,
what is seen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from katha.errors import PlanError
from katha.language import Actor, Event, SceneReading, StoryReading, describe_deed, describe_scene, read_story
from katha.planners.prompts import Key, Role, cast_of, role_key
from katha.schema import StoryRecord

_SEEKING = frozenset({"look", "jump", "climb", "point"})
_GETTING = frozenset({"take", "carry", "eat", "drink", "give", "throw", "free"})
_USED_UP = frozenset({"eat", "drink"})
_FEW = 2


@dataclass
class Aims:
    """What each character has in view, and the place where it is: gone once it is taken, or left behind."""

    seen: dict[Key, tuple[str, str | None]] = field(default_factory=dict)

    def follow(self, events: Sequence[Event]) -> None:
        """Remember what the events aim at. A deed that fails ("could not reach the grapes") aims as well."""
        for event in events:
            target = event.target
            if event.speech or event.actor is None or target is None or target not in event.props:
                continue
            if event.action in _SEEKING:
                self.seen[role_key(event)] = (target, event.setting)
            elif event.action in _GETTING and not event.negated:
                self.seen = {key: aim for key, aim in self.seen.items() if aim[0] != target}

    def of(self, key: Key, setting: str | None) -> str | None:
        """The thing that a character has in view in this place, if any."""
        thing, where = self.seen.get(key, (None, None))
        return thing if where == setting else None

    def aimed(self, event: Event) -> Event:
        """`event` with what its actor has in view: as the target of a leap without one, or else just there."""
        thing = self.of(role_key(event), event.setting)
        if thing is None or thing in event.props:
            return event
        target = thing if event.target is None and event.action in _SEEKING else event.target
        return replace(event, target=target, props=(*event.props, thing))


def spoken_of(events: Sequence[Event], main: Event, keys: Collection[Key], shown: Collection[str]) -> list[str]:
    """One thing that the part tells of up to the main event, or speaks of later, where the main event's own are few.

    Only what somebody in the picture says or does something with in the same place, and is not used up.
    """
    if len(shown) >= _FEW:
        return []
    told = [event for event in events if not event.negated and (event.speech or event.sentence <= main.sentence)]
    near = [event for event in told if role_key(event) in keys and event.setting == main.setting]
    used = {event.target for event in near if event.action in _USED_UP} | {thing for one in near for thing in one.lost}
    return [thing for event in near for thing in event.props if thing not in used and thing not in shown][:1]


_MAX_UNITS = 80
_WEIGHTS = {
    3.0: "free bite",
    2.6: "trapped fall fight chase die throw jump climb hug chop build plant give take blow",
    2.2: "eat push pull swim fly run dig drink carry cook ride dance bow beg play cry",
    1.6: "hide sing sleep laugh shout point",
    1.0: "look talk walk sit think",
}
_NEEDS_OBJECT = frozenset(
    ("take", "carry", "give", "throw", "hug", "free", "bite", "push", "pull", "chase", "fight", "chop")
)
_MUTUAL = frozenset({"hug", "fight"})
_PEAK = 0.5
_WEIGHT_OF = {action: weight for weight, actions in _WEIGHTS.items() for action in actions.split()}


def salience(event: Event) -> float:
    """How much an event is worth drawing: deeds before talk, with somebody or something to be seen."""
    if event.actor is None or event.negated or (event.action is None and event.emotion is None):
        return 0.0
    score = _WEIGHT_OF.get(event.action or "", 0.0)
    if not complete(event):
        score *= 0.4
    score += 0.8 if event.target is not None else 0.3 * min(len(event.props), 1)
    score += 0.7 if event.emotion is not None else 0.0
    score += 0.3 if event.cause is not None else 0.0
    return score * (0.25 if event.speech else 1.0)


def complete(event: Event) -> bool:
    """Whether an event has what its action needs: nobody is seen to hold, give or push nothing."""
    together = event.count > 1 and event.action in _MUTUAL
    return together or event.action not in _NEEDS_OBJECT or event.target is not None or bool(event.props)


def _units(events: Sequence[Event], panels: int) -> list[list[Event]]:
    """What is never cut: the events of one sentence with what is only said after it, or single events where there are
    too few sentences."""
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
    if size > 1:
        units = [[event for unit in units[at : at + size] for event in unit] for at in range(0, len(units), size)]
    return units


def _novelty(before: Sequence[Event], after: Sequence[Event]) -> float:
    """How good a cut between two units is (0 to about 2): new people, another place, another time, another feeling."""
    people = {event.actor for event in before}, {event.actor for event in after}
    score = 0.8 if not people[0] & people[1] else 0.3 if people[0] != people[1] else 0.0
    score += 0.6 if before[-1].setting != after[0].setting else 0.0
    score += 0.4 if before[-1].time != after[0].time else 0.0
    feelings = {event.emotion for event in before} - {None}, {event.emotion for event in after} - {None}
    return score + (0.3 if feelings[0] != feelings[1] else 0.0)


def segment(events: Sequence[Event], panels: int) -> list[list[Event]]:
    """`panels` parts in order, none empty. With too few events the last moments are held (repeated)."""
    units = _units(events, panels)
    if len(units) <= panels:
        held = [units[min(at * len(units) // panels, len(units) - 1)] for at in range(panels)]
        return [list(unit) for unit in held]
    cuts = _best_cuts(units, panels)
    bounds = [0, *cuts, len(units)]
    return [[event for unit in units[start:stop] for event in unit] for start, stop in pairwise(bounds)]


def _best_cuts(units: Sequence[Sequence[Event]], panels: int) -> list[int]:
    """Where to cut, by dynamic programming: squared imbalance of the parts' sizes, less the novelty at the cuts and the
    weight of each part's main event, so that the deeds that matter most each get a part of their own."""
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
    cuts: list[int] = []
    stop = total
    for part in range(panels, 1, -1):
        stop = best[part][stop][1]
        cuts.append(stop)
    return cuts[::-1]


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


def scene_texts(story: StoryRecord) -> list[str]:
    """The scenes' texts in order of their index, each ending as a sentence."""
    scenes = sorted(story.scenes, key=lambda scene: scene.scene_index)
    return [
        scene.scene_text if scene.scene_text.endswith((".", "!", "?", '"')) else f"{scene.scene_text}."
        for scene in scenes
    ]


def annotated_moments(story: StoryRecord, reading: StoryReading) -> list[Moment]:
    """One moment for each scene, in order of their index.

    The scenes' texts are read as one story, so that "he" in scene 3 is the character of scene 2. A scene in which
    nobody is known shows what its neighbour shows.

    Raises:
        PlanError: no scene names anybody that the vocabulary knows.
    """
    texts = scene_texts(story)
    told = read_story("\n\n".join(texts))
    owners = _owners(texts)
    parts: list[list[Event]] = [[] for _ in texts]
    for event in told.events:
        parts[owners[event.sentence]].append(event)
    parts = _held(story, parts)
    everything = [event for part in parts for event in part]
    setting = next((event.setting for event in everything if event.setting is not None), None)
    stage = Stage(cast_of(everything), {**reading.words, **told.words}, setting)
    return [moment_of(part, stage, final=at == len(parts) - 1) for at, part in enumerate(parts)]


def _owners(texts: Sequence[str]) -> list[int]:
    """The scene (from 0) of every sentence of the joined text."""
    return [at for at, text in enumerate(texts) for _ in read_story(text).sentences]


def _held(story: StoryRecord, parts: Sequence[list[Event]]) -> list[list[Event]]:
    """The parts, with the events of the scene before (or else after) where a scene has no actor."""
    acted = [at for at, part in enumerate(parts) if any(event.actor for event in part)]
    if not acted:
        raise PlanError(
            f"Record {story.story_id!r}: nobody in any 'scene_text' is known to planner 'rule'.",
            hint='Name the characters by their kind ("the fox"), or choose another planner with --planner.',
        )
    return [parts[max((one for one in acted if one <= at), default=acted[0])] for at in range(len(parts))]
