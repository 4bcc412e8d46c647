"""The planner that needs no model: a story's own events, cut into panels, with prompts that name what must be seen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from katha.errors import PlanError
from katha.language import (
    Actor,
    Event,
    StoryReading,
    describe_actor,
    describe_aim,
    describe_deed,
    describe_thing,
    guess_moral,
    load_vocabulary,
    read_story,
)
from katha.language.lexicon import vocabulary_sha256
from katha.planners.base import NEGATIVE_PROMPT, LadderPlanner, capital, fit, reads_as_english
from katha.planners.moments import (
    Moment,
    Stage,
    annotated_moments,
    complete,
    has_trait,
    is_character,
    moment_of,
    planning,
    salience,
    segment,
)
from katha.protocols import PlanRequest
from katha.schema import Panel, Plan, StoryRecord, Transition


def _lower(sentence: str) -> str:
    return (sentence[0].lower() + sentence[1:]).rstrip(".")


def _outcome(moment: Moment, later: Moment | None) -> str:
    """Return what comes of the main event: how its part ends, what another character in the picture does or feels then,
    what the actor feels, or what happens next.

    An outcome says something that the deed alone does not, wherever the story holds such a thing.
    """
    acting = zip(moment.deeds()[1:], moment.reading.actors[1:], strict=True)
    reactions = [deed for deed, actor in acting if actor.action is not None or actor.emotion is not None]
    shown = [
        event
        for event in moment.events
        if event.actor is not None and not event.negated and not event.speech and (event.action or event.emotion)
        if complete(event)
    ]
    after = [moment.said(event) for event in shown[-1:] if event is not moment.key]
    felt = moment.reading.actors[0].emotion
    feeling = [describe_deed(replace(moment.cast[0].plain, emotion=felt), (), moment.words)] if felt else []
    follows = [later.deed] if later is not None else []
    told = (text for text in (*after, *reactions, *feeling, *follows) if _lower(text) != _lower(moment.deed))
    return next(told, moment.deed)


def _causality(before: Moment, after: Moment) -> str:
    """Return why the later moment follows: the reason that the story gives, or what happened just before."""
    reason = after.key.cause
    if reason is None:
        told = [*before.events, *after.events]
        at = next(index for index, event in enumerate(told) if event is after.key)
        earlier = [event for event in told[:at] if salience(event) > 0 and not event.speech and complete(event)]
        reason = _reason(before, after, earlier)
    return f"{after.deed.rstrip('.')} because {_lower(reason)}."


def _reason(before: Moment, after: Moment, earlier: Sequence[Event]) -> str:
    """Return the last thing done to whoever acts now, else the last that another did, else the last that is not the
    deed."""
    key = after.key
    others = [event for event in earlier[-6:] if event.actor != key.actor]
    done_to = [event for event in others if event.target == key.actor]
    party = [event for event in others if event.actor == key.target]
    near = [event for event in earlier[-4:] if event.actor != key.actor]
    said = (before.said(event) for group in (done_to, party, near, earlier) for event in reversed(group))
    return next((text for text in said if _lower(text) != _lower(after.deed)), before.deed)


def _intention(after: Moment) -> str:
    """Return what the main character wants: what the story says it wishes or says, or else what it does."""
    key = after.key
    wished = next((e for e in after.events if e.speech and e.actor == key.actor and e.action is not None), key)
    actor, others = after.played(wished)
    ending = "" if actor.count > 1 else "s"
    who = capital(describe_actor(after.cast[0].plain, words=after.words))
    aim = _aim(actor, others, after.words_for(wished), wished=wished is not key)
    return f"{who} want{ending} to {aim}." if aim else f"{who} respond{ending} to what has happened."


def _aim(actor: Actor, others: Sequence[Actor], words: Mapping[str, str], *, wished: bool) -> str:
    """Return what somebody is after: the deed itself where the story says that it is wished, else what such a deed is
    for."""
    said, target, action = describe_aim(actor, others, words), actor.target, actor.action or ""
    if wished and said:
        return said
    if target is not None and action in planning("aimed"):
        plain = next((other for other in others if other.concept == target), Actor(target))
        known = is_character(target)
        whom = describe_actor(plain, words=words) if known else describe_thing(target, "the", words)
        return str(planning("aimed")[action]).format(whom)
    return planning("aims").get(action) or said


def _emotion(before: Moment, after: Moment) -> str | None:
    """Return who feels what now, and what they felt before."""
    earlier = before.emotions()
    roles = {role.name: role for role in after.cast}
    vocabulary = load_vocabulary()
    found: list[str] = []
    for who, feeling in after.emotions().items():
        plain, was = roles[who].plain, earlier.get(who)
        many = plain.count > 1
        noun = capital(describe_actor(plain, words={plain.concept: roles[who].word}))
        now = vocabulary.get("emotion", feeling).words[0]
        if was is None:
            found.append(f"{noun} {'become' if many else 'becomes'} {now}.")
        elif was == feeling:
            found.append(f"{noun} {'are' if many else 'is'} still {now}.")
        else:
            then = vocabulary.get("emotion", was).words[0]
            found.append(f"{noun} {'change' if many else 'changes'} from {then} to {now}.")
    return " ".join(found) or None


def link(story_id: str, moments: Sequence[Moment], index: int, moral: str | None) -> Transition:
    """Return the transition from moment `index` (from 0) to the next one."""
    before, after = moments[index], moments[index + 1]
    last = index == len(moments) - 2
    feeling = _emotion(before, after)
    told = f"{_lower(after.deed)}, and that {_lower(feeling)}" if feeling else _lower(after.deed)
    choice = has_trait(after.key, "choices")
    return Transition(
        story_id=story_id,
        from_scene=index + 1,
        to_scene=index + 2,
        transition_type="consequence_reveal" if last else "moral_choice" if choice else "cause_effect",
        action=after.deed,
        causality=_causality(before, after),
        intention=_intention(after),
        emotion=feeling,
        consequence=_outcome(after, None if last else moments[index + 2]),
        expected_change=f"Before: {before.deed} After: {after.deed}",
        moral_target=moral,
        recoverability_target=f"A viewer can tell that {told}.",
    )


_LONGEST_CAPTION = 240
_SENTENCE_END = re.compile(r"(?<=\.) ")


class RulePlanner(LadderPlanner):
    """Story to plan by rule: deterministic, offline, in milliseconds.

    A plain text is cut into `panels` parts (setup, action, complication, consequence, resolution for five). A record
    with scenes has one panel a scene; of its annotations, the scenes' texts alone are seen.
    """

    name = "rule"
    version = 3

    def spec(self) -> Mapping[str, Any]:
        """Return name, version of the rules, and the hash of the vocabulary that they read with."""
        return {**super().spec(), "vocabulary": vocabulary_sha256()}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Plan `story`.

        Raises:
            PlanError: the story cannot be planned (too short or long, not English, nothing that can be drawn, or
                annotations that do not fit).
        """
        seen, information = self.seen(story, request)
        if not reads_as_english(story):
            hint = "Translate it, or use a planner that reads its language: --planner gemma-st (see `katha planners`)."
            said = f"Story {story.story_id!r} does not read as English, the only language planner 'rule' knows."
            raise PlanError(said, hint=hint)
        reading = read_story(seen.story_text)
        if seen.scenes:
            moments = annotated_moments(seen, reading)
            captions = [scene.scene_text for scene in seen.scenes]
        else:
            moments = _told_moments(seen, reading, request.panels)
            captions = [reading.sentences[moment.key.sentence] for moment in moments]
        told = enumerate(zip(moments, captions, strict=True), 1)
        panels = [_panel(at, moment, caption, request.prompt_tokens) for at, (moment, caption) in told]
        moral = guess_moral(seen.story_text, reading)
        shown = {name for panel in panels for name in panel.characters}
        return self.made(
            story,
            request,
            information,
            panels,
            characters=[role.character() for role in moments[0].roles.values() if role.name in shown],
            transitions=[link(story.story_id, moments, at, moral) for at in range(len(moments) - 1)],
        )


def _told_moments(story: StoryRecord, reading: StoryReading, panels: int) -> list[Moment]:
    if not any(salience(event) > 0 for event in reading.events):
        raise PlanError(
            f"Story {story.story_id!r} has no event that planner 'rule' can draw.",
            hint='Say who does what ("The fox chases the hen."), or choose another planner with --planner.',
        )
    stage = Stage.of(reading.events, reading.words)
    parts = segment(reading.events, panels)
    return [moment_of(part, stage, final=part is parts[-1]) for part in parts]


def _panel(index: int, moment: Moment, caption: str, tokens: int | None) -> Panel:
    short = caption if len(caption) <= _LONGEST_CAPTION else caption[:_LONGEST_CAPTION].rsplit(" ", 1)[0] + " ..."
    return Panel(
        index=index,
        prompt=fit(_SENTENCE_END.split(moment.prompt), tokens),
        negative_prompt=NEGATIVE_PROMPT,
        caption=short,
        characters=[role.name for role in moment.cast],
        must_show=moment.must_show(),
    )
