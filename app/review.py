"""Review of records by people: pages for reviewers, and what their decisions come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from katha.app.reports.rater_pages import write_rater_pages
from katha.config import katha_version
from katha.configs import load_config
from katha.errors import RecordError, UsageError
from katha.eval_bridge.people.collected import read_answer_files
from katha.eval_bridge.people.review import (
    AdjudicatorLine,
    UnitOutcome,
    UnitReview,
    adjudicate,
    released,
    review_pages,
    review_tables,
)
from katha.eval_bridge.people.study import PAGES, STUDY, Rules, Study
from katha.eval_bridge.scoring.contrastive import iter_variants
from katha.experiments.people import STORIES, Packed, read_study
from katha.jsonio import canonical, digest, iter_lines, write_bytes_atomic, write_json
from katha.schema import ContrastiveVariant
from katha.store import Workspace
from katha.stories import load_stories
from katha.tables import Column, DataTable, write_tables

OPEN = "adjudicate.jsonl"
"""What the votes leave open, a line each, for an adjudicator to fill in."""


@dataclass(frozen=True)
class Reviewed:
    """What a review came to: rows by kind of unit, and everything that was decided."""

    rows: list[UnitReview]
    verdicts: list[UnitOutcome]


def pack_review(
    stories: str, out: Path, *, reviewers: int = 3, per_item: int = 3, variants: Path | None = None
) -> list[Path]:
    """Write a page for each reviewer into `out/pages`, and the key beside them; return the pages.

    Raises:
        UsageError: the stories or the folder cannot be used, or there is nothing to review.
    """
    records = load_stories(stories)
    changed: dict[str, list[ContrastiveVariant]] = {}
    for variant in iter_variants(variants) if variants is not None else ():
        changed.setdefault(variant.base_story_id, []).append(variant)
    pages = review_pages(records, changed, reviewers, per_item)
    identity = digest([[page.model_dump(mode="json") for page in pages], load_config("review.yaml")])
    study = Study(
        katha=katha_version(),
        identity_sha256=identity,
        study=identity[:12],
        title="Review of stories",
        design="within",
        tasks=("review",),
        per_item=min(per_item, reviewers),
        seed=0,
        methods={},
        rules=Rules(),
        consent=str(load_config("review.yaml")["consent"]),
        pages=tuple(pages),
    )
    folder = Workspace(out, STUDY)
    with folder.claim():
        folder.resume(study)
        folder.write(study)
        lines = (record.model_dump_json() + "\n" for record in records)
        write_bytes_atomic(out / STORIES, "".join(lines).encode("utf-8"))
        write_rater_pages(Packed(study, {record.story_id: record for record in records}, {}, {}), out)
        folder.finish(study)
    return [out / PAGES / f"{page.page}.html" for page in pages]


def score_review(answers: Sequence[Path], study: Path, out: Path, decisions: Path | None = None) -> Reviewed:
    """Write what reviewers' decisions come to into `out`: `review.json`, `verdicts.jsonl`, tables, `stories.jsonl` as
    it may be released, and `adjudicate.jsonl` with what is open, or is to be edited and not corrected.

    Raises:
        UsageError: a file is none of the review's, or a decision cannot be used; nothing is written.
    """
    if out.resolve() == study.resolve():
        raise UsageError("--out is the review's own folder.", hint="Give another: a review stays as it is.")
    key, records = read_study(study)
    if key.tasks != ("review",):
        raise UsageError(f"{str(study)!r} is a study, no review.", hint="Score it with `katha people score`.")
    collected, notes = read_answer_files(answers, key)
    verdicts = adjudicate(collected, _decisions(decisions) if decisions is not None else ())
    rows = review_tables(verdicts)
    kept = "".join(record.model_dump_json() + "\n" for record in released(records, verdicts))
    out.mkdir(parents=True, exist_ok=True)
    told = {"format": 1, "study": key.study, "reviewers": len(collected), "notes": notes}
    write_json(out / "review.json", {**told, "units": [row.model_dump(mode="json") for row in rows]})
    lines = [canonical(verdict.model_dump(mode="json")) + b"\n" for verdict in verdicts]
    write_bytes_atomic(out / "verdicts.jsonl", b"".join(lines))
    still = [
        {
            **verdict.model_dump(mode="json", include={"story_id", "unit", "id", "votes", "notes", "decision"}),
            "corrected": {},
        }
        for verdict in verdicts
        if verdict.standing == "open" or (verdict.effect == "edit" and not verdict.corrected)
    ]
    write_bytes_atomic(out / OPEN, b"".join(canonical(row) + b"\n" for row in still))
    write_bytes_atomic(out / STORIES, kept.encode("utf-8"))
    write_tables(out, [_table(rows)])
    return Reviewed(rows, verdicts)


def _decisions(path: Path) -> list[AdjudicatorLine]:
    found = []
    for number, line in iter_lines(path):
        try:
            found.append(AdjudicatorLine.model_validate_json(line))
        except ValidationError as error:
            raise RecordError(
                f"{str(path)!r}, line {number}, is not a decision.", hint=f"Fill in `decision` in {OPEN}."
            ) from error
    return found


def _table(rows: Sequence[UnitReview]) -> DataTable:
    names = ("Items", "Judgments", "Unanimous", "Majority", "Adjudicated", "Open", "Final")
    shares = ("Passed", "Edited", "Rejected", "Ambiguous", "Edit or reject")
    return DataTable(
        name="review",
        title="Human review by unit: edit and rejection rates in per cent of what was decided.",
        columns=(
            Column(heading="Unit"),
            *(Column(heading=name, digits=0) for name in names),
            *(Column(heading=name) for name in shares),
            Column(heading="Kappa", digits=3),
        ),
        rows=tuple(
            (
                *(
                    row.unit,
                    row.items,
                    row.judgments,
                    row.unanimous,
                    row.majority,
                    row.adjudicated,
                    row.open,
                    row.final,
                ),
                *(row.passed, row.edited, row.rejected, row.ambiguous, row.edit_or_reject, row.fleiss_kappa),
            )
            for row in rows
        ),
        best=False,
    )
