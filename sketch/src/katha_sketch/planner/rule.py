"""The planner that needs no model: a story's own events, cut into panels, with prompts that name what must be seen."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any

from katha.errors import PlanError
from katha.intake import noted
from katha.jsonio import digest
from katha.planners.base import NEGATIVE_PROMPT, LadderPlanner, fit
from katha.protocols import PlanRequest
from katha.schema import Character, Coverage, Panel, Plan, StoryRecord, Structure, Transition
from katha.schema import Scene as StoryScene
from katha.stories import scene_texts
from katha_sketch.data import load_config
from katha_sketch.english import Scene, TextCheck, check_words, read_story, read_text
from katha_sketch.planner.acts import Beat, words_of
from katha_sketch.planner.cuts import panels_of, parts_of
from katha_sketch.planner.moments import Moment, Story
from katha_sketch.planner.settings import is_indoors
from katha_sketch.planner.sheets import sheet_of
from katha_sketch.planner.whereabouts import hours_of, places_of

_LONGEST_CAPTION = 240
_LOOK = re.compile(r"(?:an?\s+)?(?:[a-z-]+,?\s+){0,3}(?:man|woman|boy|girl|child|[a-z]+)\b(?!:)", re.IGNORECASE)
_ARTICLE = re.compile(r"an?\s", re.IGNORECASE)


class RulePlanner(LadderPlanner):
    """Story to plan by rule: deterministic, offline, in a second.

    A plain text is cut into `panels` parts where place, time, people or mood change. A record with scenes has one panel
    a scene; of its annotations, the scenes' texts alone are seen.
    """

    name = "rule"
    version = 19

    def spec(self) -> Mapping[str, Any]:
        """Return name, version of the rules, and the hash of the tables that they weigh with."""
        return {**super().spec(), "tables": digest([load_config(name) for name in ("planning.yaml", "places.yaml")])}

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Plan `story`; refused is what cannot be read or holds nothing that can be drawn."""
        seen, information = self.seen(story, request)
        if seen.scenes:
            told, parts = _scenes(seen)
            moments, note = _in_scenes(story, told, parts), ""
            captions = [scene.scene_text for scene in seen.scenes]
        else:
            told, note = told_story(seen.story_text, story.story_id, story.structure)
            told.title = told.title or seen.title
            moments = moments_of(told, parts_of(told, request.panels))
            captions = [_caption(moment) for moment in moments]
        places = places_of(moments)
        hours = [hours_of(moment.story)[moment.main.sentence] for moment in moments]
        for at, scene in enumerate(seen.scenes):
            places[at], hours[at] = scene.place or places[at], scene.time_of_day or hours[at]
        panels = [
            _panel(
                at,
                moment,
                moments[at - 2] if at > 1 else None,
                caption,
                places[at - 1],
                hours[at - 1],
                request.prompt_tokens,
            )
            for at, (moment, caption) in enumerate(zip(moments, captions, strict=True), 1)
        ]
        shown = {key for moment in moments for key in moment.cast}
        return self.made(
            story,
            request,
            information,
            panels,
            characters=_looked(sheet_of(told, [key for key in told.teller.names if key in shown]), story.structure),
            transitions=[link(story.story_id, moments, at) for at in range(len(moments) - 1)],
            coverage=_coverage(told, moments, " ".join([*noted(story), note]).strip()),
        )


def told_story(text: str, story_id: str, structure: Structure | None = None) -> tuple[Story, str]:
    """Return a text as read, and what there is to say of its kind ("This is a poem: ..."). structure: of a script.

    Raises:
        PlanError: another language, a recipe, a list, or a text in which nothing can be seen; the message says which.
    """
    check, told = _read(text, _headings(text, structure), script=structure is not None)
    if told is None:
        raise _refusal(f"Story {story_id!r}", check)
    if not told.happens():
        raise PlanError(
            f"Story {story_id!r} has no event that planner 'rule' can draw.",
            hint='Say who does what ("The fox chases the hen."), or choose another planner with --planner.',
        )
    return told, check.message


def _looked(cast: list[Character], structure: Structure | None) -> list[Character]:
    """The cast with the looks that a file gives: "a small girl with a green hat"."""
    named = {one.name for one in cast}
    looks = (
        [one for one in structure.cast if one.name in named and _LOOK.match(one.look)] if structure is not None else []
    )
    if not looks:
        return cast
    told = " ".join(f"{one.name} is {'' if _ARTICLE.match(one.look) else 'a '}{one.look.strip(' .')}." for one in looks)
    introduced = Story(read_story(told))
    known = {one.name: one for one in sheet_of(introduced, list(introduced.teller.names))}
    return [known.get(one.name, one) if known.get(one.name, one).kind != "person" else one for one in cast]


def _headings(text: str, structure: Structure | None) -> tuple[Scene, ...]:
    """Where the scenes of a script begin in its text."""
    starts = [0, *accumulate(len(part) + 2 for part in text.split("\n\n"))]
    found = structure.scenes if structure is not None else ()
    return tuple(
        Scene(starts[one.paragraph], one.place, one.time_of_day, one.outdoors)
        for one in found
        if one.place and one.paragraph < len(starts) - 1
    )


@lru_cache(maxsize=4)
def _read(text: str, scenes: tuple[Scene, ...] = (), *, script: bool = False) -> tuple[TextCheck, Story | None]:
    """A plain text as read, kept for a while: its panels are counted first, and then it is planned."""
    check, reading = read_text(text, scenes, script=script)
    return check, Story(reading) if reading is not None else None


def _refusal(what: str, check: TextCheck) -> PlanError:
    """The error for a text that cannot be read on: what it is, and what to do."""
    said, _, todo = check.message.partition("; ")
    if check.kind == "language":
        todo = "translate it, or use `--planner gemma-st`, which reads other languages (see `katha planners`)."
    return PlanError(f"{what} cannot be drawn: {said[:1].lower()}{said[1:]}.", hint=f"{todo[:1].upper()}{todo[1:]}")


def panels_for(text: str, usual: int) -> int:
    """Return how many panels a plain text calls for; `usual` where it cannot be read."""
    _, told = _read(text)
    return panels_of(told) if told is not None and told.happens() else usual


def moments_of(told: Story, parts: Sequence[Sequence[Beat]]) -> list[Moment]:
    """Return one moment for each part, none telling what the one before it tells where there is something else."""
    moments: list[Moment] = []
    for at, part in enumerate(parts):
        before = moments[-1] if moments else None
        moments.append(told.moment(part, before, final=at == len(parts) - 1))
    return moments


def _scenes(record: StoryRecord) -> tuple[Story, list[list[Beat]]]:
    """The scenes' texts read as one story, so that "he" in scene 3 is somebody of scene 2; and each scene's part."""
    texts = [" ".join(text.split()) for text in scene_texts(record)]
    check = check_words(" ".join(texts))
    if check is not None and check.kind == "language":
        raise _refusal(f"Record {record.story_id!r}", check)
    told = Story(read_story("\n\n".join(texts)))
    parts: list[list[Beat]] = [[] for _ in texts]
    # A first line that reads like a title is none here, and has no sentence.
    shift = len(texts) - 1 - max((beat.sentence.paragraph for beat in told.beats), default=len(texts) - 1)
    for beat in told.beats:
        parts[min(beat.sentence.paragraph + max(0, shift), len(parts) - 1)].append(beat)
    return told, parts


def _in_scenes(story: StoryRecord, told: Story, parts: Sequence[Sequence[Beat]]) -> list[Moment]:
    """One moment for each scene. A scene in which nothing can be drawn shows what its neighbour shows: the one before,
    or else the one after.

    Raises:
        PlanError: no scene tells anything that can be drawn.
    """
    drawn = [at for at, part in enumerate(parts) if any(beat.events for beat in part)]
    if not drawn:
        raise PlanError(
            f"Record {story.story_id!r} shows nobody in any 'scene_text'.",
            hint='Say who does what in each scene ("The fox chases the hen.").',
        )
    shown = dict(zip(drawn, moments_of(told, [parts[at] for at in drawn]), strict=True))
    return [shown[max((one for one in drawn if one <= at), default=drawn[0])] for at in range(len(parts))]


def linked(story_id: str, texts: Sequence[str]) -> list[Transition]:
    """Return the transitions between pictures that are told in `texts`, one after the other.

    Raises:
        PlanError: nothing in them can be drawn, or they are not in English.
    """
    scenes = [StoryScene(story_id=story_id, scene_index=at, scene_text=text) for at, text in enumerate(texts, 1)]
    record = StoryRecord(story_id=story_id, story_text=" ".join(texts), scenes=scenes)
    moments = _in_scenes(record, *_scenes(record))
    return [link(story_id, moments, at) for at in range(len(moments) - 1)]


def _caption(moment: Moment) -> str:
    """The story's own sentences, or acts of one, that the picture shows, as many as there is room for, the main one
    always."""
    story, shown = moment.story, moment.shown()
    main = next(one for one in shown if one.holds(moment.main))
    kept = [main]
    for beat in sorted(shown, key=lambda one: abs(one.start - main.start)):
        trial = sorted({one.start: one for one in (*kept, beat)}.values(), key=lambda one: one.start)
        near = min(abs(beat.sentence.index - one.sentence.index) for one in kept) <= 1
        # Sentences that do not follow each other would read as if they did.
        if near and len(words_of(story, trial)) <= _LONGEST_CAPTION:
            kept = trial
    caption = words_of(story, kept)
    return caption if len(caption) <= _LONGEST_CAPTION else caption[:_LONGEST_CAPTION].rsplit(" ", 1)[0] + " ..."


def _panel(
    index: int, moment: Moment, before: Moment | None, caption: str, place: str, hour: str, tokens: int | None
) -> Panel:
    first, last = moment.source()
    heard = before.cast if before is not None and before.beats[-1].sentence.index + 1 >= first else []
    sentences, text = moment.story.reading.sentences, moment.story.reading.text
    told = [moment.said(one) for one in moment.prompt(inside=is_indoors(place))]
    return Panel(
        index=index,
        prompt=fit(told, tokens, first=[_main(moment, told)]),
        negative_prompt=NEGATIVE_PROMPT,
        caption=caption,
        # "Something ticked": whoever hears it is there.
        characters=[moment.story.teller.names[key] for key in moment.cast or (heard if not moment.must_show() else [])],
        must_show=moment.must_show(),
        source=text[sentences[first].start : sentences[last].end],
        place=moment.said(place),
        time_of_day=hour,
        shot_size=moment.shot(before),
    )


def _main(moment: Moment, told: Sequence[str]) -> int:
    """The place of the main event among the sentences of a prompt: what is kept where there is little room."""
    own = moment.said(moment.deed).rstrip(".")
    return next((at for at, one in enumerate(told) if one.startswith(own)), 0)


def _coverage(told: Story, moments: Sequence[Moment], note: str) -> Coverage:
    """How many of the sentences that tell something visible were read, and how many are in pictures, each act of them;
    of those that are in part, the rest is named."""
    visible = [one for one in told.reading.sentences if one.visible]
    shown = [beat for moment in moments for beat in moment.shown()]
    lost = [words_of(told, (act for act in told.acts[one.index] if act not in shown)) for one in visible]
    return Coverage(
        visible=len(visible),
        read=sum(one.read for one in visible),
        drawn=lost.count(""),
        not_read=[one.text for one in visible if not one.read],
        not_drawn=[text for text in lost if text],
        silent=[one.text for one in told.reading.sentences if not one.visible],
        note=note,
    )


# Transitions: what the text tells of each step; a field that it does not tell stays empty.


def link(story_id: str, moments: Sequence[Moment], index: int) -> Transition:
    """Return the transition from moment `index` (from 0) to the next one."""
    before, after = moments[index], moments[index + 1]
    feeling = _emotion(before, after)
    told, cause = f"{after.story.teller.clause(after.main)}", _causality(after)
    outcome = after.story.teller.outcome(after.main)
    felt = f", and that {feeling.rstrip('.')}" if feeling else ""
    return Transition(
        story_id=story_id,
        from_scene=index + 1,
        to_scene=index + 2,
        transition_type="cause_effect" if cause else "consequence_reveal" if outcome else None,
        action=after.deed,
        causality=cause,
        intention=_intention(after) or None,
        emotion=feeling,
        consequence=outcome,
        expected_change=f"Before: {before.deed} After: {after.deed}",
        recoverability_target=f"A viewer can tell that {told}{felt}.",
    )


def _causality(after: Moment) -> str:
    """Why it happens, where the text says why."""
    teller = after.story.teller
    for event in (after.main, *after.events):
        reasons = [teller.clause(reason) for reason in teller.reasons(event)]
        if reasons:
            return f"{teller.sentence(event).rstrip('.')} because {' and '.join(reasons)}."
    return ""


def _intention(after: Moment) -> str:
    """What somebody in the picture wants: the purpose of a deed, or a wish that the part tells."""
    told, teller = after.story, after.story.teller
    for event in (after.main, *after.events):
        for at in event.purpose:
            aim = told.reading.events[at]
            return _wants(teller.name(event.who("agent")[0]), teller.infinitive(aim)) if event.who("agent") else ""
    events = [event for beat in after.beats for event in told.reading.of(beat.sentence.index)]
    for event in events:
        if event.modality == "want" and not event.negated and event.standing == "intended":
            who = teller.people(event.who("agent"))
            if who and who[0] in after.cast:
                return _wants(teller.name(who[0]), teller.infinitive(event))
    return ""


def _wants(who: str, aim: str) -> str:
    several = " and " in who
    return f"{who[:1].upper()}{who[1:]} want{'' if several else 's'} to {aim}."


def _emotion(before: Moment, after: Moment) -> str | None:
    """Who feels what now, and what they felt before."""
    earlier, teller = before.feelings(), after.story.teller
    found: list[str] = []
    for key, now in after.feelings().items():
        many = after.story.reading.entity(key).count != 1
        name, was = teller.name(key), earlier.get(key)
        who = f"{name[:1].upper()}{name[1:]}"
        if was is None:
            found.append(f"{who} {'are' if many else 'is'} {now}.")
        elif was == now:
            found.append(f"{who} {'are' if many else 'is'} still {now}.")
        else:
            found.append(f"{who} {'change' if many else 'changes'} from {was} to {now}.")
    return " ".join(found) or None
