"""`gemma-st`: a language model plans how a story is seen (Gemma 3 by default), held to a schema, its faults mended."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from katha.configs import load_prompt
from katha.errors import ModelError, PlanError, ReplyError
from katha.models.base import Completion, Heard, Purse, TextModel, Turn
from katha.models.checkpoints import adapter_note, folder_revision
from katha.models.registry import make_model, served_by_own
from katha.planners.base import ABOUT, NEGATIVE_PROMPT, ModelPlanner, as_sentence, parts_without
from katha.planners.draft import (
    DraftCharacter,
    DraftTransition,
    FieldProblem,
    PlanDraft,
    PlanShape,
    draft_problems,
    fixes_schema,
    mended,
    read_draft,
    read_reply,
    reply_schema,
    within,
)
from katha.planners.narrated import cut
from katha.protocols import WIDE, Expected, PlanRequest
from katha.schema import Character, Panel, Plan, Question, Scene, StoryRecord, Transition, Visual
from katha.sentences import raw_sentences
from katha.stories import scene_texts

# The story, whole or in parts.

_LETTERS_A_TOKEN = 4
_PROMPT_TOKENS, _PLAN_TOKENS, _PANEL_TOKENS = 4_200, 1_600, 600
_QUESTION_TOKENS = (
    *((800, 2_600), (600, 400), (600, 900), (2_400, 500)),
    *((1_200, 900), (300, 150), (400, 300), (900, 200)),
)
"""Read, beside the story, and written: by the writer of questions, by the readers without the story and with it, and by
who compares their answers; and the same again for what is written once more."""
_PLACING_TOKENS = (1_200, 300)
"""The same of saying in which frames the answers to given questions are seen."""
_CONTEXT = 32_000
"""Tokens that a model reads, where its data does not tell."""
_OF_STORY = 0.6
"""Of those, the share that a story may take."""
_BREAK = re.compile(r"\s*(?:#|\*\s?\*|-{3}|(?:chapter|part|kapitel|chapitre)\b|[IVXLC\d]+\.?\s*$)", re.IGNORECASE)
_AHEAD, _LONGEST_LINE = 12, 200
"""Lines of what comes after a part, and the letters of one."""


@dataclass(frozen=True)
class StoryPart:
    """A story, or one part of a story that no model could read at once. sentences: its raw pieces (a plain text);
    scenes: the texts of its scenes (a record). first: the number of the first of them. shape: how much is asked for."""

    sentences: tuple[str, ...]
    scenes: tuple[str, ...]
    first: int
    shape: PlanShape


def parts_of(story: StoryRecord, request: PlanRequest, letters: int) -> list[StoryPart]:
    """Return a story as one part; as several of about the same length only where it has many more than `letters`.

    Raises:
        PlanError: there are more parts than panels.
    """
    pieces = scene_texts(story) if story.scenes else raw_sentences(story.story_text)
    most, asked = request.most_panels or request.panels, len(request.questions)
    bounds = [0, *_breaks(pieces, -(-sum(map(len, pieces)) // letters)), len(pieces)]
    count = len(bounds) - 1
    if count > most:
        said = (
            f"Story {story.story_id!r} is so long that the model reads it in {count} parts, too many for {most} panels."
        )
        raise PlanError(said, hint=f"Use --panels {count}, one chapter, or a model that reads more.")
    shares = [[len(share) for share in cut(["x"] * panels, count)] for panels in (max(request.panels, count), most)]
    found: list[StoryPart] = []
    for at, (start, stop) in enumerate(pairwise(bounds)):
        least, highest = (stop - start,) * 2 if story.scenes else (shares[0][at], shares[1][at])
        told = None if story.scenes else (start + 1, stop)
        shape = PlanShape(least, max(least, highest), told, joined=at > 0, asked=asked)
        own = tuple(pieces[start:stop])
        found.append(StoryPart((), own, start + 1, shape) if story.scenes else StoryPart(own, (), start + 1, shape))
    return found


def _breaks(pieces: Sequence[str], count: int) -> Iterator[int]:
    """Yield where the parts after the first begin: at a chapter or scene, else at a paragraph, else at a sentence."""
    total, before, places = sum(map(len, pieces)), 0, list[tuple[int, int, int]]()
    for at, piece in enumerate(pieces):
        paragraph = at > 0 and pieces[at - 1].count("\n") > 1
        places.append((before, 2 * bool(paragraph and _BREAK.match(piece)) + paragraph, at))
        before += len(piece)
    last = 0
    for number in range(1, count):
        aim, reach = total * number // count, total // count // 5
        later = [place for place in places if place[2] > last]
        near = [place for place in later if abs(place[0] - aim) <= reach] or later
        if not near:
            return
        *_, last = max(near, key=lambda place: (place[1] if abs(place[0] - aim) <= reach else 0, -abs(place[0] - aim)))
        yield last


def _context(model: TextModel) -> int:
    """Return how many tokens a model reads, as far as it is known."""
    vendor = getattr(model, "vendor", None)
    return int(vendor.card.get("context") or _CONTEXT) if vendor is not None else _CONTEXT


def letters_for(text: str, context: int) -> int:
    """Return how many letters of a text like this a model that reads `context` tokens may be given at once."""
    letters = [letter for letter in text[:20_000] if letter.isalpha()] or ["a"]
    wide, latin = (sum(map(kind, letters)) / len(letters) for kind in (lambda one: ord(one) >= WIDE, str.isascii))
    return int(_OF_STORY * context * (1 if wide > 0.5 else 4 if latin > 0.5 else 3))


@dataclass
class PlannedParts:
    """What is planned so far: panels, and what all parts of a story share."""

    panels: list[Panel] = field(default_factory=list)
    cast: list[DraftCharacter] = field(default_factory=list)
    pairs: list[tuple[Transition, DraftTransition]] = field(default_factory=list)
    board: Visual = field(default_factory=Visual)
    seen: dict[int, int] = field(default_factory=dict)
    """By the number of a question, the panel in which its answer is seen."""

    @property
    def names(self) -> list[str]:
        return [one.name for one in self.cast]

    def add(self, story: StoryRecord, part: StoryPart, draft: PlanDraft) -> None:
        """Take in the draft of the next part."""
        offset = len(self.panels)
        self.cast += [one for one in draft.cast if one.name not in self.names]
        order = {name: at for at, name in enumerate(self.names)}
        for at, (source, caption) in enumerate(_sources(part, draft)):
            panel = draft.panels[at]
            shown = sorted((name for name in panel.characters if name in order), key=order.__getitem__)
            fields = panel.model_dump(exclude={"first_sentence", "characters", "time_of_day"})
            time = "" if panel.time_of_day == "unclear" else panel.time_of_day
            balloon = _BALLOON.search(panel.seen) is not None
            never = NEGATIVE_PROMPT.replace("speech bubbles, ", "") if balloon else NEGATIVE_PROMPT
            made = {**fields, "time_of_day": time, "characters": shown, "negative_prompt": never}
            self.panels.append(Panel(index=offset + at + 1, source=source, caption=caption, **made))
        first = max(1, offset)
        for at, change in enumerate(draft.transitions, first):
            self.pairs.append((_transition(story.story_id, at, change), change))
        for row in draft.coverage:
            if row.panel is not None and 1 <= row.panel <= len(draft.panels):
                self.seen.setdefault(row.question, offset + row.panel)
        self.board = _merged(self.board, draft) if offset else _board(draft)


_BALLOON = re.compile(r"\b(?:balloon|bubble|cloud)s?\b", re.IGNORECASE)
"""A pictured word: it is not a fault of the picture."""


def _board(draft: PlanDraft) -> Visual:
    told = draft.visual.model_dump(include=set(Visual.model_fields) - {"props", "unseen"})
    return Visual(**told, props=draft.props)


def _merged(board: Visual, draft: PlanDraft) -> Visual:
    """Return what holds for a board with what a later part adds to it."""
    known = {prop.name for prop in board.props}
    update: dict[str, Any] = {"props": [*board.props, *(prop for prop in draft.props if prop.name not in known)]}
    for name in ("places", "left_out", "added"):
        update[name] = list(dict.fromkeys([*getattr(board, name), *getattr(draft.visual, name)]))
    return board.model_copy(update=update)


def _sources(part: StoryPart, draft: PlanDraft) -> list[tuple[str, str]]:
    """Return what each panel is made of, and its caption; joined in the story's order, the sources are the text.

    Of panels that share a sentence the first one has it as its source, and all have it as their caption.
    """
    if part.scenes:
        return [(text, " ".join(text.split())) for text in part.scenes]
    starts = [(panel.first_sentence or part.first) - part.first for panel in draft.panels]
    firsts = sorted(set(starts))
    bounds = zip([0, *firsts[1:]], [*firsts[1:], len(part.sentences)], strict=True)
    pieces = {first: "".join(part.sentences[slice(*bound)]) for first, bound in zip(firsts, bounds, strict=True)}
    told = [" ".join(pieces[start].split()) for start in starts]
    return [("" if start in starts[:at] else pieces[start], told[at]) for at, start in enumerate(starts)]


def _transition(story_id: str, at: int, change: DraftTransition) -> Transition:
    return Transition(
        story_id=story_id,
        from_scene=at,
        to_scene=at + 1,
        expected_change=change.consequence,
        recoverability_target=change.action,
        **change.model_dump(exclude={"questions"}),
    )


def _questions(story_id: str, pairs: Sequence[tuple[Transition, DraftTransition]]) -> list[Question]:
    """Return the questions of all transitions, the canonical answer among the accepted ones."""
    asked = [(transition, item) for transition, draft in pairs for item in draft.questions]
    return [
        Question(
            question_id=f"{story_id}_q{number}",
            story_id=story_id,
            question_type=item.dimension,
            question=item.question,
            gold_answer=item.answer,
            accepted_answers=list(dict.fromkeys([item.answer, *item.accepted])),
            target_scene=transition.to_scene,
            target_transition=transition.pair,
            evidence_scenes=list(transition.pair),
            required_evidence=transition.action,
        )
        for number, (transition, item) in enumerate(asked, 1)
    ]


def _placed(questions: Sequence[Question], seen: Mapping[int, int], panels: int) -> list[Question]:
    """Return the questions that were asked for, each with the panel in which its answer is seen, where there is one."""
    placed: list[Question] = []
    for number, question in enumerate(questions, 1):
        at = seen.get(number)
        found: dict[str, Any] = {"target_scene": at, "target_transition": None, "evidence_scenes": []}
        if at is not None:
            last = max(2, at)
            found |= {"target_transition": (last - 1, last) if panels > 1 else None, "evidence_scenes": [at]}
        placed.append(question.model_copy(update=found))
    return placed


# Of a panel's prompt: the most where a renderer sets no limit, and the least where it sets one.
_FEWEST_WORDS, _MOST_WORDS = 12, 60
_ADDED_WORDS = 24
"""Room that is left in a prompt for looks, place and shot."""
_ALONE = "alone, full body, plain background"
# A second repair mends most of what the first left; a third hardly anything.
_REPAIRS, _MOST_PROBLEMS = 2, 12
_MOST_TOKENS = 16_000
"""Of a reply: a plan of five panels takes about 4,000, one of seventeen about 10,000."""


class GemmaPlanner(ModelPlanner):
    """Transition-aware plans by a language model: local (Gemma 3), Anthropic, OpenAI or a compatible server.

    Its argument is MODEL_OR_PATH, `anthropic:MODEL` or `openai:MODEL`. It sees the story's text and, in a record, the
    text of each scene. Stories may be in any language; prompts are English.
    """

    name = "gemma-st"
    version = 2
    chooses_scenes = True

    def __init__(
        self,
        argument: str | None = None,
        *,
        adapter: Path | None = None,
        without: tuple[str, ...] = (),
        device: str | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        base_url: str | None = None,
        max_tokens: int | None = None,
        questions: bool = False,
        writes: bool | None = None,
        timeout: float | None = None,
    ) -> None:
        """Name the model; nothing is loaded or called yet.

        adapter: a LoRA adapter for a local model, or the one that a server of one's own serves under this name.
        without: parts of a plan to leave out (`ABOUT` in `base.py`). base_url: of a compatible server. questions: have
        the model write questions of its own plan as well. writes: have it write free questions from the text before it
        plans, in calls of their own; models behind a vendor's address do so unless told. timeout: seconds that one
        reply of a server may take.

        Raises:
            UsageError, InputFileError, ModelError, MissingExtraError: the model cannot be used.
        """
        # A server has the adapter already, under the name that it serves it by; its note still tells what to ask for.
        self._served_adapter = adapter if adapter is not None and served_by_own(argument) else None
        self._model: TextModel = make_model(
            argument,
            adapter=None if self._served_adapter else adapter,
            device=device,
            dtype=dtype,
            revision=revision,
            base_url=base_url,
            timeout=timeout,
            # The window of a server of one's own holds prompt and reply; how much may be reply is its own default.
            max_tokens=max_tokens or (None if served_by_own(argument) else _MOST_TOKENS),
        )
        # An adapter writes what it was taught to write, and its note says what that leaves out.
        # A merged model has the note beside it.
        noted = adapter or (Path(argument) if argument else None)
        untaught = adapter_note(noted).get("without", []) if noted is not None else []
        self._parts = parts_without([*without, *untaught, *(() if questions else ("questions",))])

        vendor = getattr(self._model, "vendor", None) is not None and not served_by_own(argument)
        self._writes = vendor if writes is None else writes
        self.question_writer = self._model if self._writes else None

    def expected(self, story: StoryRecord, panels: int) -> Expected:
        """Return what a plan of `story` is reckoned at: measured on plans of 2026-11-28, and a repair in ten."""
        text = len(story.story_text) // _LETTERS_A_TOKEN
        work = [(_PROMPT_TOKENS + text, _PLAN_TOKENS + _PANEL_TOKENS * panels)]
        asked = [_PLACING_TOKENS] if story.recoverability_questions else _QUESTION_TOKENS
        work += [(text + read, wrote) for read, wrote in asked] if self._writes else []
        return Expected(len(work), {"input": sum(read for read, _ in work), "output": sum(wrote for _, wrote in work)})

    def pay_from(self, purse: Purse, each: float) -> None:
        """Ask `purse` before every call from now on."""
        super().pay_from(purse, each)
        self.question_writer = self._model if self._writes else None

    def spec(self) -> Mapping[str, Any]:
        """Return the model, the prompts' hashes and what is turned off."""
        return {
            **super().spec(),
            "model": dict(self._model.spec()),
            **({"adapter": folder_revision(self._served_adapter)} if self._served_adapter else {}),
            "prompts": {name: load_prompt(f"planner/{name}").sha256 for name in ("plan", "example", "repair")},
            "without": [name for name in ABOUT if name not in self._parts],
            "writes": self._writes,
        }

    def plan(self, story: StoryRecord, request: PlanRequest) -> Plan:
        """Plan `story` with one request that sees all of it; in parts only where the model could not read it whole.

        Raises:
            PlanError: the story cannot be planned (no event). ReplyError: the model wrote no usable plan, even after
            repairs; its status and what it wrote are kept. ModelError: the model gave no answer.
        """
        scenes = len(story.scenes)
        if request.panels <= scenes <= (request.most_panels or request.panels):
            request = replace(request, panels=scenes, most_panels=None)
        seen, information = self.seen(story, request)
        parts = parts_of(seen, request, letters_for(seen.story_text, _context(self._model)))
        told = PlannedParts()
        for number, part in enumerate(parts, 1):
            prompt = plan_prompt(seen, parts, number, self._parts, request, told)
            heard = _heard(request.heard, f"part {number} of {len(parts)}: " if len(parts) > 1 else "")
            told.add(story, part, self._draft(seen, part.shape, prompt, told.names, heard))
        questions = _questions(story.story_id, told.pairs)
        questions += _placed(request.questions, told.seen, len(told.panels))
        unseen = [item.question for at, item in enumerate(request.questions, 1) if at not in told.seen]
        board = told.board.model_copy(update={"unseen": unseen})
        characters = [
            Character(
                **one.model_dump(), anchor_prompt=as_sentence(f"{one.name}: {one.appearance.strip(' .')}, {_ALONE}")
            )
            for one in told.cast
        ]
        return self.made(
            story,
            request,
            [*information, *(["steering_questions"] if request.questions else [])],
            told.panels,
            characters=characters,
            transitions=[transition for transition, _ in told.pairs],
            questions=questions,
            visual=board if "visual" in self._parts or unseen else None,
        )

    def _draft(
        self, story: StoryRecord, shape: PlanShape, prompt: str, known: Sequence[str], heard: Heard | None
    ) -> PlanDraft:
        """Return the model's draft of one part. What is wrong with it is asked for field by field, twice at most; a
        reply that is not JSON is asked for again whole. Faults that only make a plan worse are asked about once."""
        form, turn = reply_schema(shape, self._parts), Turn("user", prompt)
        reply = self._asked(story, [turn], form, heard)
        best = tried = self._attempt(*read_reply(reply.text), form, shape, known)
        for again in range(_REPAIRS):
            if not best.problems or (again and best.usable):
                break
            repair = load_prompt("planner/repair").render(
                problems=tried.problems[:_MOST_PROBLEMS], whole=tried.value is None
            )
            wrote = reply.text if tried.value is None else json.dumps(tried.value, ensure_ascii=False)
            turns = [turn, Turn("assistant", wrote), Turn("user", repair)]
            try:
                reply = self._asked(story, turns, form if tried.value is None else fixes_schema(form), heard)
            except ReplyError:
                if best.usable:
                    break
                raise
            tried = self._repaired(tried, reply.text, form, shape, known)
            best = tried if tried.usable or not best.usable else best
        if best.usable is None:
            hard = next(item for item in best.problems if not item.soft)
            raise ReplyError(
                f"The model wrote no plan of {story.story_id!r} that can be drawn, not even after a repair: {hard}",
                hint="Try a larger model, an adapter from `katha train planner`, or another of `katha planners`.",
                raw=reply.text,
            )
        if not best.usable.tells_events:
            raise PlanError(
                f"Story {story.story_id!r} tells of no event, says the model.",
                hint="Tell who does what, in a few sentences.",
            )
        return best.usable

    def _attempt(
        self,
        value: Mapping[str, Any] | None,
        problem: str,
        form: Mapping[str, Any],
        shape: PlanShape,
        known: Sequence[str],
        more: Sequence[FieldProblem] = (),
    ) -> _Attempt:
        """Return what a reply holds, and what is wrong with it: `problem` where it holds nothing."""
        empty = value is not None and value.get("tells_events") is not False and not value.get("panels")
        if value is None or empty:
            return _Attempt(None, None, [FieldProblem("", problem or "It has no panels.")])
        kept = within(value, form)
        draft, problems = read_draft(kept, known)
        if draft is not None and draft.tells_events:
            problems = [*draft_problems(draft, shape, self._parts, known)]
        return _Attempt(kept, draft, [*problems, *more])

    def _repaired(
        self, tried: _Attempt, text: str, form: Mapping[str, Any], shape: PlanShape, known: Sequence[str]
    ) -> _Attempt:
        """Return an attempt with the fixes of a reply made; a whole plan stands for itself."""
        value, problem = read_reply(text)
        if tried.value is None or (value is not None and "panels" in value):
            return self._attempt(value, problem, form, shape, known)
        fixes = value.get("fixes") if value is not None else None
        made, wrong = mended(tried.value, fixes, form)
        return self._attempt(made, "", form, shape, known, wrong)

    def _asked(
        self, story: StoryRecord, turns: Sequence[Turn], schema: Mapping[str, Any], heard: Heard | None
    ) -> Completion:
        """Return a whole reply; one that was refused, cut off or not asked is an error."""
        reply = self._model.complete(turns, schema, heard)
        if reply.status == "ok":
            return reply
        cause = (reply.error or "no reason given").rstrip(".")
        said = f"The model's plan of {story.story_id!r} failed ({reply.status}): {cause}."
        if reply.status == "transport_failed":
            raise ModelError(said, hint="Give the same command again when the server answers.")
        hint = _HINTS.get(reply.status, "Try another model.")
        raise ReplyError(said, hint=hint, status=reply.status, raw=reply.text)


@dataclass(frozen=True)
class _Attempt:
    """A reply: its JSON (None: it has none that could be mended), what it says, and what is wrong with it."""

    value: dict[str, Any] | None
    draft: PlanDraft | None
    problems: list[FieldProblem]

    @property
    def usable(self) -> PlanDraft | None:
        """The draft, where nothing in it forbids to draw it."""
        return self.draft if all(item.soft for item in self.problems) else None


def _heard(heard: Callable[[str], None] | None, part: str) -> Heard | None:
    """Return what a model tells its tokens to, in words: `1,204 of at most 8,192 tokens`."""
    if heard is None:
        return None
    tell = heard
    return lambda done, most: tell(f"{part}{done:,} of at most {most:,} tokens")


_HINTS: Mapping[str, str] = {
    "truncated": "Raise the limit (--planner-option max_tokens=N), use fewer --panels, or another model.",
    "refused": "The model would not plan this story; try another model.",
    "not_asked": "Use a shorter story or a model that reads more.",
}


def plan_prompt(
    story: StoryRecord,
    parts: Sequence[StoryPart],
    number: int,
    switches: Collection[str],
    request: PlanRequest,
    told: PlannedParts | None = None,
) -> str:
    """Return what the model is asked for part `number`, from 1, of a story; `told` is what is planned already."""
    part, so_far, limit = parts[number - 1], told or PlannedParts(), request.prompt_tokens
    words = _MOST_WORDS if limit is None else max(_FEWEST_WORDS, min(_MOST_WORDS, limit * 3 // 4 - _ADDED_WORDS))
    form = reply_schema(part.shape, switches)
    headings = _headings(story)
    return load_prompt("planner/plan").render(
        title=story.title,
        part={"number": number, "count": len(parts)} if len(parts) > 1 else None,
        told=[panel.prompt for panel in so_far.panels],
        cast=so_far.cast,
        board=_in_words(so_far.board),
        ahead=_outline(parts[number:]),
        scenes=[
            {"number": at, "text": text, "where": _where(story.scenes[at - 1])}
            for at, text in enumerate(part.scenes, part.first)
        ],
        sentences=[
            {"number": at, "text": " ".join(text.split()), "where": headings.get(at, "")}
            for at, text in enumerate(part.sentences, part.first)
        ],
        people=story.structure.cast if story.structure is not None else [],
        least=part.shape.least,
        most=part.shape.most,
        transitions=part.shape.transitions(part.shape.least),
        joined=part.shape.joined,
        asked=request.questions,
        words=words,
        example=_example(form),
        **{name: name in switches for name in ABOUT},
    )


def _where(scene: Scene) -> str:
    return ", ".join(part for part in (scene.place, scene.time_of_day) if part)


def _headings(story: StoryRecord) -> dict[int, str]:
    """Return the places and times of a script's headings, by the number of the sentence that stands below each."""
    found: dict[int, str] = {}
    if story.structure is None or not story.structure.scenes:
        return found
    starts: dict[int, int] = {}
    paragraph = 0
    for number, piece in enumerate(raw_sentences(story.story_text), 1):
        starts.setdefault(paragraph, number)
        paragraph += piece.count("\n\n")
    for scene in story.structure.scenes:
        side = "outdoors" if scene.outdoors else ""
        told = ", ".join(part for part in (scene.place, side, scene.time_of_day) if part)
        if scene.paragraph in starts and told:
            found[starts[scene.paragraph]] = told
    return found


def _example(form: Mapping[str, Any]) -> str:
    """Return the worked example in the form that is asked for, a line an item."""
    told = within(json.loads(load_prompt("planner/example").text), form)

    def line(value: object) -> str:
        if isinstance(value, list):
            return "[\n" + ",\n".join(json.dumps(one, ensure_ascii=False) for one in value) + "]"
        return json.dumps(value, ensure_ascii=False)

    return "{" + ",\n".join(f'"{name}": {line(value)}' for name, value in told.items()) + "}"


def _in_words(board: Visual) -> str:
    """Return what holds for the panels so far, in one line."""
    pivot = f"the {board.pivot_colour} {board.pivot}".replace("the  ", "the ") if board.pivot else ""
    props = ", ".join(f"{prop.name} ({prop.looks})" if prop.looks else prop.name for prop in board.props)
    told = {"places": ", ".join(board.places), "the story turns on": pivot, "props": props}
    return "; ".join([*filter(None, (board.geography, board.direction)), *(f"{k}: {v}" for k, v in told.items() if v)])


def _outline(parts: Sequence[StoryPart]) -> list[str]:
    """Return the first sentences of the paragraphs to come, or of the scenes, some of them where there are many."""
    pieces = [piece for part in parts for piece in part.scenes or part.sentences]
    opening = [piece for before, piece in zip(["\n\n", *pieces], pieces, strict=False) if before.count("\n") > 1]
    lines = opening if len(opening) > 1 else pieces
    step = max(1, -(-len(lines) // _AHEAD))
    return [" ".join(line.split())[:_LONGEST_LINE] for line in lines[::step]]
