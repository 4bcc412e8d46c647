"""Review of records by people, and adjudication (KathaTrace, Tables 17 to 19, 21 and 25): what is asked, and what the
votes come to.

Each unit of a record (its type, moral, scenes, transitions, questions, variants) gets a decision and a note from
several reviewers. More than half of the votes decide; what they leave open waits for an adjudicator.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from katha.configs import load_config
from katha.errors import RecordError
from katha.eval_bridge.people.agreement import fleiss_kappa
from katha.eval_bridge.people.collected import Collected
from katha.eval_bridge.people.study import Screen, StudyItem, StudyPage
from katha.schema import ContrastiveVariant, StoryRecord
from katha.schema.scores import Result

CORRECTABLE: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "category": ("narrative_type",),
        "moral": ("moral_label",),
        "scenes": (),
        "transition": ("action", "causality", "emotion", "consequence"),
        "question": ("question", "gold_answer", "accepted_answers", "options"),
        "variant": (),
    }
)
"""The fields of each unit that an adjudicator may correct; of scenes it is the text, by the scene's number."""
Effect = Literal["pass", "edit", "reject", "ambiguous"]
Standing = Literal["unanimous", "majority", "adjudicated", "open"]


class UnitSpec(BaseModel):
    """One kind of thing that is reviewed: a row of `configs/review.yaml`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    asks: str
    decisions: Mapping[str, Effect]


class Unit(NamedTuple):
    """One thing to be reviewed: of which kind, its id within the story, and what is shown of it."""

    kind: str
    id: str
    value: str


class UnitOutcome(Result):
    """What became of one unit.

    votes: the decision of each reviewer. notes: what they wrote. corrected: an adjudicator's new values by field.
    """

    story_id: str
    unit: str
    id: str
    standing: Standing
    decision: str | None
    effect: Effect | None
    votes: dict[str, str]
    notes: dict[str, str]
    corrected: dict[str, Any] = Field(default={}, exclude_if=lambda value: not value)


class UnitReview(Result):
    """One kind of unit (Tables 17 and 21): how many there are and were judged, what became of them in per cent of those
    decided, and the agreement of reviewers before adjudication.

    edit_or_reject: what the paper calls the edit or rejection rate: everything but `pass`.
    """

    unit: str
    items: int
    judgments: int
    unanimous: int
    majority: int
    adjudicated: int
    open: int
    passed: float | None
    edited: float | None
    rejected: float | None
    ambiguous: float | None
    edit_or_reject: float | None
    final: int
    fleiss_kappa: float | None


def load_units() -> dict[str, UnitSpec]:
    """Return what is reviewed, by kind, in the file's order."""
    return {name: UnitSpec.model_validate(row) for name, row in load_config("review.yaml")["units"].items()}


def units_of(record: StoryRecord, variants: Sequence[ContrastiveVariant] = ()) -> Iterator[Unit]:
    """Yield what a record has to be reviewed."""
    if record.narrative_type:
        yield Unit("category", "narrative_type", record.narrative_type.replace("_", " "))
    if record.moral_label:
        yield Unit("moral", "moral_label", record.moral_label.replace("_", " "))
    if record.scenes:
        told = " ".join(f"({scene.scene_index}) {scene.scene_text.strip()}" for scene in record.scenes)
        yield Unit("scenes", "scenes", told)
    for step in record.transitions:
        named = {"action": step.action, "cause": step.causality, "emotion": step.emotion, "outcome": step.consequence}
        value = "; ".join(f"{name}: {text}" for name, text in named.items() if text)
        yield Unit("transition", f"{step.from_scene} to {step.to_scene}", value)
    for question in record.recoverability_questions:
        accepted = "; ".join(dict.fromkeys([question.gold_answer, *question.accepted_answers]))
        yield Unit("question", question.question_id, f"{question.question} Accepted: {accepted}.")
    for variant in variants:
        yield Unit("variant", variant.variant_id, variant.contrastive_story_text or variant.contrastive_scene_text)


def review_pages(
    records: Sequence[StoryRecord], variants: Mapping[str, Sequence[ContrastiveVariant]], reviewers: int, per_item: int
) -> list[StudyPage]:
    """Return a page for each reviewer; every story goes to `per_item` of them, in turn.

    Raises:
        RecordError: no record has anything to review.
    """
    pages: list[list[Screen]] = [[] for _ in range(reviewers)]
    specs, number = load_units(), 0
    for at, record in enumerate(records):
        items: list[StudyItem] = []
        for unit in units_of(record, variants.get(record.story_id, ())):
            number += 1
            spec, key = specs[unit.kind], {"criterion": unit.kind, "question_id": unit.id}
            text = spec.asks.format(id=unit.id, value=unit.value)
            items.append(
                StudyItem(item=f"d{number:05}", kind="choice", text=text, options=tuple(spec.decisions), **key)
            )
            note = str(load_config("review.yaml")["note"])
            items.append(StudyItem(item=f"n{number:05}", kind="note", text=note, options=(), **key))
        if items:
            screen = Screen(task="review", story_id=record.story_id, condition="text", boards=(), items=tuple(items))
            for turn in range(min(per_item, reviewers)):
                pages[(at * per_item + turn) % reviewers].append(screen)
    if not any(pages):
        raise RecordError("The stories have nothing to review.", hint="Give records with scenes, questions or labels.")
    width = max(2, len(str(reviewers)))
    return [StudyPage(page=f"reviewer-{at:0{width}}", screens=tuple(own)) for at, own in enumerate(pages, 1) if own]


class AdjudicatorLine(BaseModel):
    """One line of an adjudicator's file. corrected: new values of an edited unit, by field (`CORRECTABLE`)."""

    model_config = ConfigDict(extra="allow")

    story_id: str
    unit: str
    id: str
    decision: str | None = None
    note: str = ""
    corrected: dict[str, Any] = {}


def adjudicate(collected: Sequence[Collected], decided: Sequence[AdjudicatorLine] = ()) -> list[UnitOutcome]:
    """Return what became of each unit that was reviewed, in the order of the pages.

    decided: an adjudicator's decisions, which go over the votes.

    Raises:
        RecordError: a decision is about nothing that was reviewed, or is none of its unit's; or a correction is of
            another field, or of a unit that is not edited.
    """
    specs = load_units()
    votes: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    notes: dict[tuple[str, str, str], dict[str, str]] = defaultdict(dict)
    for one in collected:
        for screen, item in one.page.items():
            given = one.answers.get(item.item)
            key = (screen.story_id, item.criterion or "", item.question_id or "")
            if given is not None and item.kind == "choice":
                votes[key][one.file.rater] = str(given.value)
            elif given is not None and str(given.value).strip():
                notes[key][one.file.rater] = str(given.value).strip()
    final: dict[tuple[str, str, str], AdjudicatorLine] = {}
    for row in decided:
        key = (row.story_id, row.unit, row.id)
        if row.decision is None:
            continue
        if key not in votes or row.decision not in specs[row.unit].decisions:
            known = ", ".join(specs[row.unit].decisions) if row.unit in specs else ", ".join(specs)
            raise RecordError(
                f"The decision {row.decision!r} about {row.unit} {row.id!r} of {row.story_id!r} cannot be used.",
                hint=f"It is about what was reviewed, and one of {known}.",
            )
        _require_correctable(row, specs[row.unit].decisions[row.decision])
        final[key] = row
    return [_verdict(key, own, notes[key], final.get(key), specs) for key, own in votes.items()]


def _require_correctable(row: AdjudicatorLine, effect: Effect) -> None:
    known = CORRECTABLE[row.unit]
    if row.corrected and effect != "edit":
        raise RecordError(
            f"{row.unit} {row.id!r} of {row.story_id!r} is corrected, and its decision {row.decision!r} edits nothing.",
            hint="Take `corrected` out, or decide that it is edited.",
        )
    strange = [name for name in row.corrected if name not in known and not (row.unit == "scenes" and name.isdigit())]
    if strange:
        told = ", ".join(known) or ("scene numbers" if row.unit == "scenes" else "nothing")
        raise RecordError(
            f"{strange[0]!r} of {row.unit} {row.id!r} of {row.story_id!r} cannot be corrected.",
            hint=f"What can be corrected: {told}.",
        )


def _verdict(
    key: tuple[str, str, str],
    votes: Mapping[str, str],
    notes: Mapping[str, str],
    final: AdjudicatorLine | None,
    specs: Mapping[str, UnitSpec],
) -> UnitOutcome:
    (first, count), *_ = Counter(votes.values()).most_common()
    standing: Standing = "open"
    decision: str | None = None
    told = dict(notes)
    if 2 * count > len(votes):
        standing, decision = ("unanimous" if count == len(votes) else "majority"), first
    if final is not None:
        # Who confirms what the votes decided, to correct a text, has adjudicated nothing.
        standing, decision = (standing if final.decision == decision else "adjudicated"), final.decision
        told |= {"adjudicator": final.note} if final.note else {}
    return UnitOutcome(
        story_id=key[0],
        unit=key[1],
        id=key[2],
        standing=standing,
        decision=decision,
        effect=specs[key[1]].decisions[decision] if decision is not None else None,
        votes=dict(votes),
        notes=told,
        corrected=final.corrected if final is not None else {},
    )


def review_tables(verdicts: Sequence[UnitOutcome]) -> list[UnitReview]:
    """Return a row for each kind of unit that was reviewed."""
    return [
        _unit_row(name, own)
        for name in load_units()
        if (own := [verdict for verdict in verdicts if verdict.unit == name])
    ]


def _unit_row(name: str, own: Sequence[UnitOutcome]) -> UnitReview:
    effects = Counter(verdict.effect for verdict in own if verdict.effect is not None)
    standings = Counter(verdict.standing for verdict in own)
    decided = sum(effects.values())
    shares = {effect: 100.0 * effects[effect] / decided if decided else None for effect in get_args(Effect)}
    sizes = Counter(len(verdict.votes) for verdict in own if len(verdict.votes) > 1)
    most = max(sizes, key=lambda size: (sizes[size], size), default=0)
    rated = {
        f"{verdict.story_id} {verdict.id}": list(verdict.votes.values())
        for verdict in own
        if len(verdict.votes) == most
    }
    return UnitReview(
        unit=name,
        items=len(own),
        judgments=sum(len(verdict.votes) for verdict in own),
        **{standing: standings[standing] for standing in get_args(Standing)},
        passed=shares["pass"],
        edited=shares["edit"],
        rejected=shares["reject"],
        ambiguous=shares["ambiguous"],
        edit_or_reject=100.0 - shares["pass"] if shares["pass"] is not None else None,
        final=decided - effects["reject"],
        fleiss_kappa=fleiss_kappa(rated) if most else None,
    )


def _corrected(record: StoryRecord, verdicts: Sequence[UnitOutcome]) -> StoryRecord:
    """Return the record with every correction of its edited units."""
    edits = [verdict for verdict in verdicts if verdict.corrected]
    if not edits:
        return record
    data = record.model_dump(mode="json")
    for verdict in edits:
        if verdict.unit == "scenes":
            places = [(row, "scene_text", verdict.corrected.get(str(row["scene_index"]))) for row in data["scenes"]]
        else:
            rows = {
                "transition": {f"{row['from_scene']} to {row['to_scene']}": row for row in data["transitions"]},
                "question": {row["question_id"]: row for row in data["recoverability_questions"]},
            }.get(verdict.unit, {verdict.id: data})
            places = [(rows[verdict.id], name, value) for name, value in verdict.corrected.items()]
        for row, name, value in places:
            row[name] = value if value is not None else row[name]
    try:
        return StoryRecord.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise RecordError(f"A correction of {record.story_id!r} does not fit {where}: {first['msg']}.") from error


def released(records: Sequence[StoryRecord], verdicts: Sequence[UnitOutcome]) -> Iterator[StoryRecord]:
    """Yield the records that may be released (Table 19): without stories whose scenes are unusable, without invalid
    questions, and with what was corrected. `validation_status` says how far each was reviewed, `evidence_status.review`
    what became of its units.

    Raises:
        RecordError: a corrected value does not fit its field.
    """
    found: dict[str, list[UnitOutcome]] = defaultdict(list)
    for verdict in verdicts:
        found[verdict.story_id].append(verdict)
    for record in records:
        own = found[record.story_id]
        if any(verdict.unit == "scenes" and verdict.effect == "reject" for verdict in own):
            continue
        invalid = {verdict.id for verdict in own if verdict.unit == "question" and verdict.effect == "reject"}
        standings = {verdict.standing for verdict in own}
        status = next((name for name in ("open", "adjudicated", "majority", "unanimous") if name in standings), None)
        review = [
            {"unit": verdict.unit, "id": verdict.id, "decision": verdict.decision, "standing": verdict.standing}
            for verdict in own
        ]
        kept = [item for item in record.recoverability_questions if item.question_id not in invalid]
        corrected = _corrected(record.model_copy(update={"recoverability_questions": kept}), own)
        yield corrected.model_copy(
            update={
                "validation_status": f"reviewed: {status}" if status else record.validation_status,
                "evidence_status": {**record.evidence_status, **({"review": review} if review else {})},
            }
        )
