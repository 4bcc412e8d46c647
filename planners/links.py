"""What changes between two adjacent moments and why: the six fields of a transition in plain English."""

from __future__ import annotations

from collections.abc import Sequence

from katha.language import describe_actor, describe_aim, load_vocabulary
from katha.planners.moments import Moment
from katha.planners.segments import salience
from katha.schema import Transition, TransitionType

__all__ = ["link"]

_AIMS = {
    "trapped": "get free",
    "fall": "get to safety",
    "die": "live",
    "cry": "be comforted",
    "sleep": "rest",
}
_CHOICES = frozenset({"free", "give", "hug", "beg", "bow", "throw", "take"})


def _lower(sentence: str) -> str:
    return (sentence[0].lower() + sentence[1:]).rstrip(".")


def _outcome(moment: Moment) -> str:
    """How the part ends: its last real event that shows something, or the main one."""
    shown = [
        event
        for event in moment.events
        if event.actor is not None and not event.negated and not event.speech and (event.action or event.emotion)
    ]
    return moment.said(shown[-1]) if shown else moment.deed


def _causality(before: Moment, after: Moment) -> str:
    """Why the later moment follows: the reason that the story gives, or what happened just before."""
    deed = after.deed.rstrip(".")
    if after.key.cause is not None:
        return f"{deed} because {_lower(after.key.cause)}."
    told = [*before.events, *after.events]
    at = next(index for index, event in enumerate(told) if event is after.key)
    earlier = [event for event in told[:at] if salience(event) > 0 and not event.speech]
    others = [event for event in earlier[-3:] if event.actor != after.key.actor] or earlier[-1:]
    reason = before.said(others[-1]) if others else before.deed
    return f"{deed} because {_lower(reason)}."


def _intention(after: Moment) -> str:
    """What the main character wants: what the story says it wishes or says, or else what it does."""
    key = after.key
    wished = next((e for e in after.events if e.speech and e.actor == key.actor and e.action is not None), key)
    actor, others = after.played(wished)
    many = actor.count > 1
    who = describe_actor(after.cast[0].plain, words=after.words)
    aim = _AIMS.get(actor.action or "", "") or describe_aim(actor, others, after.words_for(wished))
    if not aim:
        return f"{who[0].upper()}{who[1:]} {'respond' if many else 'responds'} to what has happened."
    return f"{who[0].upper()}{who[1:]} {'want' if many else 'wants'} to {aim}."


def _emotion(before: Moment, after: Moment) -> str | None:
    """Who feels what now, and what they felt before."""
    earlier, later = before.emotions(), after.emotions()
    roles = {role.name: role for role in after.cast}
    vocabulary = load_vocabulary()

    def name(feeling: str) -> str:
        return vocabulary.get("emotion", feeling).words[0]

    found: list[str] = []
    for who, feeling in later.items():
        plain = roles[who].plain
        many = plain.count > 1
        noun = describe_actor(plain, words={plain.concept: roles[who].word})
        was = earlier.get(who)
        if was is not None and was != feeling:
            found.append(f"{noun} {'change' if many else 'changes'} from {name(was)} to {name(feeling)}.")
        elif was == feeling:
            found.append(f"{noun} {'are' if many else 'is'} still {name(feeling)}.")
        else:
            found.append(f"{noun} {'become' if many else 'becomes'} {name(feeling)}.")
    return " ".join(sentence[0].upper() + sentence[1:] for sentence in found) or None


def _kind(after: Moment, last: bool) -> TransitionType:
    if last:
        return "consequence_reveal"
    return "moral_choice" if after.key.action in _CHOICES else "cause_effect"


def link(story_id: str, moments: Sequence[Moment], index: int, moral: str | None) -> Transition:
    """The transition from moment `index` (from 0) to the next one."""
    before, after = moments[index], moments[index + 1]
    last = index == len(moments) - 2
    feeling = _emotion(before, after)
    return Transition(
        story_id=story_id,
        from_scene=index + 1,
        to_scene=index + 2,
        transition_type=_kind(after, last),
        action=after.deed,
        causality=_causality(before, after),
        intention=_intention(after),
        emotion=feeling,
        consequence=_outcome(after),
        expected_change=f"Before: {before.deed} After: {after.deed}",
        moral_target=moral,
        recoverability_target=f"A viewer can tell that {_lower(after.deed)}"
        + (f", and that {_lower(feeling)}." if feeling else "."),
    )
