"""What changes between two adjacent moments and why: the six fields of a transition in plain English."""

from __future__ import annotations

from collections.abc import Sequence

from katha.language import Actor, Event, describe_deed, load_vocabulary
from katha.planners.moments import Moment
from katha.schema import Transition, TransitionType

__all__ = ["link"]

_CHOICES = frozenset({"free", "give", "hug", "beg", "bow", "throw", "take"})


def _lower(sentence: str) -> str:
    return (sentence[0].lower() + sentence[1:]).rstrip(".")


def _said(event: Event, moment: Moment) -> str:
    """An event in words, with the nouns of the story."""
    targets = (Actor(event.target),) if event.target is not None else ()
    carries: tuple[str, ...] = ()
    target = event.target
    if event.action in {"give", "take", "throw", "carry"}:
        carries = tuple(prop for prop in event.props if prop != target)[:1]
    actor = Actor(event.actor or "", action=event.action, target=target, emotion=event.emotion, carries=carries)
    people = {role.actor.concept for role in moment.cast}
    return describe_deed(actor, tuple(one for one in targets if one.concept in people), moment.words)


def _outcome(moment: Moment) -> str:
    """How the part ends: its last real event that shows something, or the main one."""
    shown = [
        event
        for event in moment.events
        if event.actor is not None and not event.negated and not event.speech and (event.action or event.emotion)
    ]
    return _said(shown[-1], moment) if shown else moment.deed


def _causality(before: Moment, after: Moment) -> str:
    reason = next((event.cause for event in after.events if event.cause is not None), None)
    if reason is not None:
        return f"{after.deed.rstrip('.')} because {_lower(reason)}."
    return f"{after.deed.rstrip('.')} because {_lower(before.deed)}."


def _intention(after: Moment) -> str:
    key = after.key
    who = after.words.get(key.actor or "", (key.actor or "somebody").replace("_", " "))
    wished = next((e for e in after.events if e.speech and e.actor == key.actor and e.action is not None), key)
    says = load_vocabulary().says
    if wished.action is None:
        return f"The {who} reacts to what has happened."
    say = says[wished.action]
    target = after.words.get(wished.target or "", (wished.target or "").replace("_", " "))
    verb = say.verb if target or wished.action != "trapped" else "get free"
    verb = "get free" if wished.action == "trapped" else verb
    aim = f" {say.preposition} the {target}".replace("  ", " ") if target and verb != "get free" else ""
    return f"The {who} wants to {verb}{aim}."


def _emotion(before: Moment, after: Moment) -> str | None:
    """Who feels what now, and what they felt before."""
    earlier, later = before.emotions(), after.emotions()
    words = {role.name: role.word for role in (*before.cast, *after.cast)}
    plural = {role.name: role.actor.count > 1 for role in (*before.cast, *after.cast)}
    vocabulary = load_vocabulary()

    def name(feeling: str) -> str:
        return vocabulary.get("emotion", feeling).words[0]

    found: list[str] = []
    for who, feeling in later.items():
        many = plural[who]
        noun = vocabulary.grammar.inflector.plural(words[who]) if many else words[who]
        was = earlier.get(who)
        if was is not None and was != feeling:
            found.append(f"The {noun} {'change' if many else 'changes'} from {name(was)} to {name(feeling)}.")
        elif was == feeling:
            found.append(f"The {noun} {'are' if many else 'is'} still {name(feeling)}.")
        else:
            found.append(f"The {noun} {'become' if many else 'becomes'} {name(feeling)}.")
    return " ".join(found) or None


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
