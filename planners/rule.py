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
from katha.planners.checks import LadderPlanner, check_language
from katha.planners.moments import Moment, Stage, annotated_moments, complete, moment_of, salience, segment
from katha.planners.prompts import NEGATIVE_PROMPT, cast_of, fit
from katha.protocols import PlanRequest
from katha.schema import Panel, Plan, StoryRecord, Transition, TransitionType

_AIMS = {
    "trapped": "get free",
    "fall": "get to safety",
    "die": "live",
    "cry": "be comforted",
    "sleep": "rest",
    "sit": "rest",
    "hide": "stay out of sight",
    "look": "see what is there",
    "shout": "be heard",
    "laugh": "show scorn or joy",
    "sing": "be heard",
    "think": "find a way",
    "dance": "have a good time",
}
_AIMED = {
    "free": "help {}",
    "give": "do {} a kindness",
    "chase": "catch {}",
    "fight": "defeat {}",
    "beg": "be spared by {}",
    "bow": "thank {}",
    "take": "have {}",
    "look": "know more about {}",
    "talk": "be listened to by {}",
    "laugh": "make fun of {}",
    "hug": "be a friend of {}",
    "run": "get to {}",
    "walk": "get to {}",
}
_CHOICES = frozenset({"free", "give", "hug", "beg", "bow", "throw", "take"})


def _lower(sentence: str) -> str:
    return (sentence[0].lower() + sentence[1:]).rstrip(".")


def _outcome(moment: Moment, later: Moment | None) -> str:
    """What comes of the main event: how its part ends, what another character in the picture does or feels then, what
    the actor feels, or what happens next.

    An outcome says something that the deed alone does not, wherever the story holds such a thing.
    """
    reactions = [
        deed
        for deed, actor in zip(moment.deeds()[1:], moment.reading.actors[1:], strict=True)
        if actor.action is not None or actor.emotion is not None
    ]
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
    """Why the later moment follows: the reason that the story gives, or what happened just before."""
    deed = after.deed.rstrip(".")
    if after.key.cause is not None:
        return f"{deed} because {_lower(after.key.cause)}."
    told = [*before.events, *after.events]
    at = next(index for index, event in enumerate(told) if event is after.key)
    earlier = [event for event in told[:at] if salience(event) > 0 and not event.speech and complete(event)]
    return f"{deed} because {_lower(_reason(before, after, earlier, deed))}."


def _reason(before: Moment, after: Moment, earlier: Sequence[Event], deed: str) -> str:
    """The last thing done to whoever acts now, else the last thing another did, else the last that is not the deed."""
    key = after.key
    done_to = [event for event in earlier[-6:] if event.target == key.actor and event.actor != key.actor]
    party = [event for event in earlier[-6:] if event.actor != key.actor and event.actor == key.target]
    others = [event for event in earlier[-4:] if event.actor != key.actor]
    for group in (done_to, party, others, earlier):
        for event in reversed(group):
            said = before.said(event)
            if _lower(said) != _lower(deed):
                return said
    return before.deed


def _intention(after: Moment) -> str:
    """What the main character wants: what the story says it wishes or says, or else what it does."""
    key = after.key
    wished = next((e for e in after.events if e.speech and e.actor == key.actor and e.action is not None), key)
    actor, others = after.played(wished)
    many = actor.count > 1
    who = describe_actor(after.cast[0].plain, words=after.words)
    aim = _aim(actor, others, after.words_for(wished), wished=wished is not key)
    if not aim:
        return f"{who[0].upper()}{who[1:]} {'respond' if many else 'responds'} to what has happened."
    return f"{who[0].upper()}{who[1:]} {'want' if many else 'wants'} to {aim}."


def _aim(actor: Actor, others: Sequence[Actor], words: Mapping[str, str], *, wished: bool) -> str:
    """What somebody is after: the deed itself where the story says that it is wished, else what such a deed is for."""
    said = describe_aim(actor, others, words)
    if wished and said:
        return said
    target = actor.target
    if target is not None and actor.action in _AIMED:
        character = load_vocabulary().find(target, "character") == target
        plain = next((other for other in others if other.concept == target), Actor(target))
        whom = describe_actor(plain, words=words) if character else describe_thing(target, "the", words)
        return _AIMED[actor.action].format(whom)
    return _AIMS.get(actor.action or "", "") or said


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
        consequence=_outcome(after, None if last else moments[index + 2]),
        expected_change=f"Before: {before.deed} After: {after.deed}",
        moral_target=moral,
        recoverability_target=f"A viewer can tell that {_lower(after.deed)}"
        + (f", and that {_lower(feeling)}." if feeling else "."),
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
        check_language(story)
        reading = read_story(seen.story_text)
        make = self._from_scenes if seen.scenes else self._from_text
        return make(seen, reading, request).model_copy(update={"information": information})

    def _from_text(self, story: StoryRecord, reading: StoryReading, request: PlanRequest) -> Plan:
        if not any(salience(event) > 0 for event in reading.events):
            raise PlanError(
                f"Story {story.story_id!r} has no event that planner 'rule' can draw.",
                hint='Say who does what ("The fox chases the hen."), or choose another planner with --planner.',
            )
        stage = _stage(reading, reading.events)
        parts = segment(reading.events, request.panels)
        moments = [moment_of(part, stage, final=part is parts[-1]) for part in parts]
        panels = [
            _panel(at, moment, reading.sentences[moment.key.sentence], request.prompt_tokens)
            for at, moment in enumerate(moments, 1)
        ]
        return self._plan(story, reading, request, moments, panels)

    def _from_scenes(self, story: StoryRecord, reading: StoryReading, request: PlanRequest) -> Plan:
        moments = annotated_moments(story, reading)
        captions = [scene.scene_text for scene in sorted(story.scenes, key=lambda scene: scene.scene_index)]
        panels = [
            _panel(at, moment, caption, request.prompt_tokens)
            for at, (moment, caption) in enumerate(zip(moments, captions, strict=True), 1)
        ]
        return self._plan(story, reading, request, moments, panels)

    def _plan(
        self,
        story: StoryRecord,
        reading: StoryReading,
        request: PlanRequest,
        moments: Sequence[Moment],
        panels: list[Panel],
    ) -> Plan:
        moral = guess_moral(story.story_text, reading)
        shown = {name for panel in panels for name in panel.characters}
        roles = moments[0].roles.values()
        return Plan(
            story_id=story.story_id,
            title=story.title,
            planner="rule",
            style=request.style,
            characters=[role.character() for role in roles if role.name in shown],
            panels=panels,
            transitions=[link(story.story_id, moments, at, moral) for at in range(len(moments) - 1)],
        )


def _stage(reading: StoryReading, events: Sequence[Event]) -> Stage:
    """The roles, and the first place that the story names, for what happens before it is named."""
    setting = next((event.setting for event in events if event.setting is not None), None)
    return Stage(cast_of(events), reading.words, setting)


def _panel(index: int, moment: Moment, caption: str, tokens: int | None) -> Panel:
    names = [role.name for role in moment.cast]
    return Panel(
        index=index,
        prompt=fit(_SENTENCE_END.split(moment.prompt), tokens),
        negative_prompt=NEGATIVE_PROMPT,
        caption=_caption(caption),
        characters=names,
        must_show=moment.must_show(),
    )


def _caption(sentence: str) -> str:
    if len(sentence) <= _LONGEST_CAPTION:
        return sentence
    return sentence[:_LONGEST_CAPTION].rsplit(" ", 1)[0] + " ..."
