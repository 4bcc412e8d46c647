"""Studies with people, as the command line does them: pages for participants, and scores of what they hand back."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from katha.app.reports.rater_pages import write_rater_pages
from katha.app.reports.study_pages import write_people_report
from katha.app.reports.study_tables import people_tables
from katha.errors import UsageError
from katha.eval_bridge.bench.boards import parse_boards, tell_orders
from katha.eval_bridge.people.study import PAGES, STUDY, Study
from katha.experiments.people import (
    SCORES,
    STORIES,
    PeopleOptions,
    PeopleStudyOptions,
    Scored,
    StudyJob,
    make_study,
    score_people,
    write_scored,
)
from katha.jsonio import write_bytes_atomic
from katha.store import Workspace
from katha.stories import load_stories
from katha.tables import write_tables


@dataclass(frozen=True)
class PackedStudy:
    """A study's folder. invalid: by method and story, why a board is not shown. reused: it was there already."""

    out: Path
    study: Study
    pages: list[Path]
    invalid: Mapping[str, Mapping[str, str]]
    reused: bool


def pack_study(
    stories: str,
    boards: Sequence[str],
    out: Path,
    options: PeopleStudyOptions,
    on_order: Callable[[str], None] | None = None,
) -> PackedStudy:
    """Make a study of boards that anyone drew: `out/pages` for participants, `out/study.json` as the key.

    The same call again does nothing; after a kill it writes what is missing. on_order: hears in which order pictures
    are taken whose names say it.

    Raises:
        UsageError: stories, boards, an option or the folder are wrong; nothing is written.
    """
    records, methods = load_stories(stories), parse_boards(boards, order=options.order)
    if on_order is not None:
        tell_orders(methods, records, on_order)
    packed = make_study(StudyJob(records, methods, options, stories))
    folder = Workspace(out, STUDY)
    with folder.claim():
        known = folder.resume(packed.study)
        pages = [out / PAGES / f"{page.page}.html" for page in packed.study.pages]
        names = [STORIES, *(str(page.relative_to(out)) for page in pages)]
        reused = known is not None and known.status == "finished" and not folder.missing(names)
        if not reused:
            folder.write(packed.study)
            lines = (record.model_dump_json() + "\n" for record in packed.records.values())
            write_bytes_atomic(out / STORIES, "".join(lines).encode("utf-8"))
            write_rater_pages(packed, out)
            folder.finish(packed.study)
    return PackedStudy(out, packed.study, pages, packed.invalid, reused)


def score_study(answers: Sequence[Path], out: Path, options: PeopleOptions) -> tuple[Scored, Path]:
    """Score what people handed back: `people.json`, `judgments.jsonl`, tables (CSV, LaTeX), figures and `report.html`
    in `out`.

    Returns:
        The scores with the judgments that they are made of, and the report.

    Raises:
        UsageError: a file or the folder is wrong; nothing is written.
    """
    if options.study is not None and os.path.realpath(out) == os.path.realpath(options.study):
        raise UsageError("--out is the study's own folder.", hint="Give another: a study stays as it is.")
    scored = score_people(answers, options)
    with Workspace(out, SCORES).claim():
        write_scored(out, scored)
        report = write_people_report(out, scored.scores)
        write_tables(out, people_tables(scored.scores))
    return scored, report
