"""`table.json` and `scores.json` of an ablation (Tables 55, 74 and 75): what each row reaches, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from katha.compass.modes import SuiteRow
from katha.eval_bridge.matching.match import normalise
from katha.eval_bridge.scoring.gate import CANNOT, doubts, thin_block
from katha.eval_bridge.scoring.intervals import FEWEST_STORIES, METHOD
from katha.eval_bridge.scoring.rows import RowCounts, row_numbers
from katha.eval_bridge.scoring.scores import Compared, score
from katha.eval_bridge.scoring.statistics import averages
from katha.eval_bridge.scoring.steering import steering_words
from katha.experiments.ablate.conclusions import (
    NOTHING,
    ROW_BLOCKS,
    Blocks,
    blocks_of,
    compared,
    conclude,
    repair_cases,
)
from katha.experiments.ablate.job import HELD_OUT, AblationJob, protocol_of
from katha.experiments.ablate.tally import SuiteFolder, human_columns
from katha.jsonio import write_json
from katha.schema import CONDITIONS, MORAL_LABELS
from katha.schema.scores import RowNumbers
from katha.schema.tables import AblationBudget, AblationRow, AblationTable, BlockNumbers, RowComparison

_IMAGE = CONDITIONS.index("image")


def notes_of(tally: SuiteFolder) -> list[str]:
    """Return what a reader of the table has to know: what each number means, and why one is missing."""
    job, baseline, stories = tally.job, tally.job.suite.baseline, len(tally.results)
    notes = [
        f"{baseline}: what the others are compared with, so it has no difference of its own.",
        f"delta_stg, ci95, p_corrected: STG minus the baseline's on each row's own valid questions; 95% by {METHOD} "
        "over stories; Wilcoxon's p (exact), of the declared contrast alone and of the others by Holm's steps "
        f"({job.suite.secondary} declared), whichever rows were run. common_valid, raw: the same on the questions "
        "valid for every row that is scored alike, and on every scored one; conclusions are drawn from common_valid.",
        "STG is a macro average over dimensions; scores.json has the one over stories, too (`by_story`).",
        "ambiguity_leakage: of the questions that people find defective under text and images, those that the row "
        "keeps; null without such labels.",
        "harmed, equal, improved: shares of stories by image recoverability on the reporting questions, against the "
        "baseline; null where a row measures the baseline's own boards.",
        "frames_naive, questions_naive: had every board been made and judged on its own; *_by_rows: every row.",
    ]
    if job.chooses_nothing:
        named = ", ".join(job.chooses_nothing)
        notes.append(
            f"{named}: the lock has one candidate, so there is nothing to choose among; they report every seed's own "
            "board, as the rows do that choose nothing, and equal boards are marked as that."
        )
    if any(tally.given_away.values()):
        notes.append(
            "given_away: the percentage of a row's questions whose answer stands in the prompt of a frame that it has "
            "inserted or redrawn; rest: the row on the common-valid questions that no row was told the answer of."
        )
    if any(tally.guessed(row) is not None for row in job.suite.rows):
        notes.append(
            "unguessed: the row on the common-valid questions that its judge had wrong without any evidence; the "
            "conclusions' difference has the same guesses on both sides."
        )
    notes += [*filter(None, (job.config.matching_note,)), *_judges_apart(tally)]
    notes += [f"{name}: not run, so it has no number. {reason}" for name, reason in job.not_run.items()]
    if baseline != job.whole.baseline:
        notes.append(f"{job.whole.baseline} was not run, so {baseline} is the baseline instead.")
    if stories < FEWEST_STORIES:
        few = f"fewer than {FEWEST_STORIES}: intervals and p-values are null."
        notes.append(f"Stories: {stories}, {few}")
    notes += _rows_apart(tally)
    scorings = [row.scoring for row in job.suite.rows]
    if _chooses(job) and len({(item.matching, item.accepted) for item in scorings}) > 1:
        notes.append(
            "Answers are options, which every matching rule reads alike; to compare them, ask a judge that writes, and "
            "without --answers choice."
        )
    if len(job.config.judges) == 1 and len({item.judge for item in scorings}) > 1:
        only = job.config.judges[0]
        notes.append(f"There is one judge, {only}, so the ensemble is that judge; give several --judge.")
    notes += [_human(tally), *tally.unsettled, *(judge.caveat for judge in job.made.judges.values() if judge.caveat)]
    if any(row.steered for row in job.whole.rows):
        notes.append("Rows marked steered use steering questions or prompts: they are no held-out numbers.")
    return notes


def _rows_apart(tally: SuiteFolder) -> list[str]:
    """Return which rows have no gap, no board of a story, or nothing asked under a condition, and why."""
    notes = []
    for row in tally.job.suite.rows:
        if (why := tally.unmeasured(row)) is not None:
            notes.append(f"{row.name}: {CANNOT}: {why}.")
        left = tally.invalid(row)
        if left:
            shown = "; ".join(f"{story}: {reason}" for story, reason in list(left.items())[:5])
            notes.append(f"{row.name}: {len(left)} stories have no board and are left out ({shown}).")
        missing = [name for name in ("text", "image") if name not in row.scoring.conditions]
        if missing:
            notes.append(f"{row.name}: asks nothing under {' and '.join(missing)}, so what needs it is null.")
    return notes


def _chooses(job: AblationJob) -> bool:
    """Return whether every answer is one of the options: by the settings, or because no judge can write."""
    judges = job.plugins(job.suite.rows[0]).judges.values()
    return job.config.answers == "choice" or all(judge.always_chooses for judge in judges)


def _judges_apart(tally: SuiteFolder) -> list[str]:
    """Return what the judges' parts mean for the numbers: who chose, who reports, and who reads no instruction."""
    job, notes = tally.job, []
    made = job.plugins(job.suite.rows[0])
    chosen = [row.name for row in job.suite.rows if job.mode(row).steers]
    if chosen and made.steering is None and len(made.judges) > 1:
        notes.append(
            f"Held out by judge: {', '.join(made.judges)} each report the boards of {', '.join(chosen)} that the "
            "others chose, so that no judge reports its own choice; the ensemble joins these reports. optimism: how "
            "much more image recoverability a judge sees in the boards that it helped to choose than in those that it "
            "reports."
        )
    elif chosen and made.steering is None:
        notes.append(
            f"Held out by question, not by judge: {', '.join(made.judges)} chose the boards of {', '.join(chosen)} and "
            "reports them, and a judge flatters its own choice. Give --steering-judge for another one to choose, or "
            "several judges; optimism is null without."
        )
    elif chosen:
        notes.append(
            f"optimism: what {', '.join(made.asked('steering'))}, which chose the boards, sees them gain in image "
            f"recoverability over {job.suite.baseline}, minus what {', '.join(made.asked('reporting'))} sees."
        )
    deaf = [name for name, judge in made.judges.items() if judge.ignores_instructions]
    if len({row.prompts for row in job.whole.rows}) > 1 and len(deaf) == len(made.judges):
        notes.append(
            f"{', '.join(deaf)} reads no instruction, so rows that differ by their prompts alone cannot differ: of "
            "this suite only the questions are tried."
        )
    return notes


def _human(tally: SuiteFolder) -> str:
    people = tally.job.people
    if people is None:
        return (
            "human: no judgments by people were given (--human FILE), so what needs them is null: human recoverability "
            "and STG, HMR@1 and HMR@3, ratings, dimension localization, correlation and agreement with people."
        )
    unused = people.unused(tally.names)
    lost = f"; {unused:,} are about other stories or boards and are left out" if unused else ""
    crossed = [row.name for row in tally.job.suite.rows if tally.job.reporters(row) != [None]]
    which = f" {', '.join(crossed)}: a judgment is taken to be about the boards of every judge." if crossed else ""
    return f"human: {len(people.rows):,} judgments of {people.path.name}{lost}. What nobody judged is null.{which}"


def write_table(tally: SuiteFolder, notes: Sequence[str] = ()) -> AblationTable:
    """Make `stories.jsonl`, `answers.jsonl`, `scores.json` and, last, `table.json` from the stories' files.

    notes: those of the table beside its own.
    """
    job, folder = tally.job, tally.folder
    folder.gather(result.story_id for result in tally.results)
    held_out = [row for row in job.suite.rows if protocol_of(row) == HELD_OUT]
    if held_out:
        scores = score(
            tally.stories,
            tally.rows(HELD_OUT),
            matching=job.rule(job.config.matching, folder.path),
            resamples=job.resamples,
            seed=job.seed,
            frozen=job.lock is not None,
            invalid={row.name: tally.invalid(row) for row in held_out},
            pooled={row.name: tally.methods(row) for row in held_out},
            compared=Compared(tuple(job.suite.pairs), job.suite.secondary, steps=True, primary=job.suite.primary),
        )
        write_json(folder.scores, scores.model_dump(mode="json"))
    table = build_table(tally)
    table = table.model_copy(update={"notes": [*table.notes, *notes]}) if notes else table
    write_json(folder.table, table.model_dump(mode="json"))
    return table


def build_table(tally: SuiteFolder) -> AblationTable:
    """Return the rows with their paired differences, the comparisons at equal length, costs, cases and conclusion."""
    job, suite = tally.job, tally.job.suite
    counts = {row.name: blocks_of(tally, row) for row in suite.rows}
    pooled = {name: {block: own.pooled() for block, own in blocks.items()} for name, blocks in counts.items()}
    numbers = {block: row_numbers({name: blocks[block] for name, blocks in pooled.items()}) for block in ROW_BLOCKS}
    _empty(tally, pooled, numbers)
    comparisons = compared(tally, pooled, suite.pairs)
    deltas = {item.a: item for item in comparisons if item.b == suite.baseline}
    rows = []
    for row in suite.rows:
        made = _row(tally, row, numbers["filtered"][row.name], deltas.get(row.name))
        if any(row.scored_like(other) for other in suite.rows if other is not row):
            own = {block: numbers[block][row.name] for block in ROW_BLOCKS}
            made = made.model_copy(update=_beside(tally, row, own, counts[row.name], deltas.get(row.name)))
        rows.append(_flagged(made, counts[row.name]))
    steers = any(job.mode(row).steers for row in suite.rows)
    return AblationTable(
        suite=suite.name,
        about=suite.about,
        tables=list(suite.tables),
        baseline=suite.baseline,
        focus=suite.focus,
        stories=len(tally.results),
        judges=list(job.config.judges),
        rows=_every_row(job, rows),
        comparisons=comparisons,
        budget=_budget(tally),
        cases=repair_cases(tally),
        human=job.people.mark() if job.people is not None else None,
        frozen=job.lock is not None,
        lock=job.lock["file"] if job.lock else None,
        scores="scores.json" if any(protocol_of(row) == HELD_OUT for row in suite.rows) else None,
        notes=[
            *notes_of(tally),
            *doubts((row.mode, row.thin, row.inspect) for row in rows),
        ],  # after everything above: what could not be matched is known only then
        conclusion=conclude(
            comparisons,
            suite.focus,
            suite.baseline,
            asked=suite.asked if suite.primary is None else None,
            steering=steering_words(tally.steering) if steers else None,
        ),
        steering=tally.steering if steers else None,
        intervals=METHOD,
    )


def _flagged(row: AblationRow, counts: Mapping[str, RowCounts]) -> AblationRow:
    """Return the row with what makes its headline doubtful: dimensions of one or two questions, a gap below zero."""
    shown = row.headline
    if shown is None or shown.stg is None:
        return row
    thin = counts["common_valid" if row.common_valid is not None else "filtered"].thin
    return row.model_copy(update={"thin": thin, "inspect": shown.stg < -NOTHING})


def _empty(tally: SuiteFolder, pooled: Mapping[str, Blocks], numbers: dict[str, dict[str, RowNumbers]]) -> None:
    """Take out the numbers of rows that cannot be measured, and of blocks that too few stories have."""
    for block in ROW_BLOCKS:
        for row in tally.job.suite.rows:
            thin = block != "raw" and thin_block(pooled[row.name][block], len(tally.results))
            if thin or tally.unmeasured(row) is not None:
                numbers[block][row.name] = _emptied(numbers[block][row.name], raw=block == "raw")


def _emptied(numbers: RowNumbers, *, raw: bool) -> RowNumbers:
    """Return a row's numbers without the gap that cannot be had; the shares of every scored question stay."""
    gone = ("stg", "stg_ci95") if raw else tuple(RowNumbers.model_fields)
    return numbers.model_copy(update=dict.fromkeys(gone))


def _beside(
    tally: SuiteFolder,
    row: SuiteRow,
    numbers: Mapping[str, RowNumbers],
    counts: Mapping[str, RowCounts],
    delta: RowComparison | None,
) -> dict[str, BlockNumbers]:
    """Return the row on the questions valid for all rows scored alike, and on every scored one."""
    told, seen = "text" not in row.lacks, "image" not in row.lacks
    found = {}
    beside = [
        *(["rest"] if any(tally.given_away.values()) else []),
        *(["unguessed"] if tally.guessed(row) is not None else []),
    ]
    for block in ("common_valid", "raw", *beside):
        own, change = numbers[block], getattr(delta, block) if delta is not None else None
        found[block] = BlockNumbers(
            n=counts[block].valid,
            text=own.text if told else None,
            image=own.image if seen else None,
            stg=own.stg if told and seen else None,
            image_ci95=own.image_ci95 if seen else None,
            stg_ci95=own.stg_ci95 if told and seen else None,
            delta_stg=change.difference if change else None,
            ci95=change.ci95 if change else None,
            p_corrected=change.p_corrected if change else None,
            p_bootstrap_corrected=change.p_bootstrap_corrected if change else None,
        )
    return found


def _every_row(job: AblationJob, rows: Sequence[AblationRow]) -> list[AblationRow]:
    """Return the suite's rows in its order; one that was not run has its reason and no number."""
    made = {row.mode: row for row in rows}
    labels: dict[str, None] = dict.fromkeys({"labels", "chance"} & rows[0].model_fields_set)  # null, as the numbers are
    return [
        made.get(row.name)
        or AblationRow.model_validate(
            {"mode": row.name, "about": row.build_mode().about, "steered": row.steered}
            | {"not_run": job.not_run.get(row.name), **labels}
        )
        for row in job.whole.rows
    ]


def _row(tally: SuiteFolder, row: SuiteRow, numbers: RowNumbers, delta: RowComparison | None) -> AblationRow:
    """Return one line of the table; its differences are to the baseline, on the stories with a board of both."""
    counts, people = tally.counts(row), tally.job.people
    boards = [board for _, board in tally.boards(row)]
    methods = max(1, len(tally.labels(row)))
    frames, questions = tally.needs([row])
    told, seen = "text" in row.scoring.conditions, "image" in row.scoring.conditions
    human = human_columns(people, tally, row) if people is not None else None
    defects = human.ambiguity_detected if human is not None else None
    made = AblationRow(
        mode=row.name,
        about=row.build_mode().about,
        text=numbers.text if told else None,
        image=numbers.image if seen else None,
        stg=numbers.stg if told and seen else None,
        delta_stg=delta.difference if delta else None,
        ci95=delta.ci95 if delta else None,
        p_corrected=delta.p_corrected if delta else None,
        image_ci95=numbers.image_ci95 if seen else None,
        stg_ci95=numbers.stg_ci95 if told and seen else None,
        stories=len({place for place, _ in tally.boards(row)}),
        invalid_stories=tally.invalid(row),
        valid=counts.valid,
        scored=counts.scored,
        valid_rate=_percent(counts.valid, counts.scored),
        frames=float(np.mean([len(board.board.frames) for board in boards])) if boards else None,
        frames_rendered=frames,
        questions_asked=questions,
        accepted_bridges=sum(any(frame.kind == "bridge" for frame in item.board.frames) for item in boards) / methods,
        copy_rate=100.0 * float(np.mean([board.score.copy_penalty for board in boards])) if boards else None,
        boards_per_story=methods,
        ambiguity_leakage=100.0 - defects.detected if defects is not None else None,
        human=human,
        steered=row.steered,
        unmeasured=tally.unmeasured(row),
        given_away=tally.given_rate(row),
        optimism=tally.optimism(row),
        stg_reliability=tally.reliability(row),
    )
    changed = _better_or_worse(tally, row) if delta and delta.same is None else {}
    return made.model_copy(update={**changed, **_moral(tally, row)})


def _percent(part: int, whole: int) -> float | None:
    return 100.0 * part / whole if whole else None


def _moral(tally: SuiteFolder, row: SuiteRow) -> dict[str, float]:
    """Return how many labels a row that scores moral labels alone tells apart (Table 65), and how often a guess is
    right: one in so many, or as the options that were offered make it."""
    if row.scoring.dimensions != ("moral",):
        return {}
    labels = row.scoring.labels
    count = len(set(labels.values())) or len(MORAL_LABELS)

    def coarse(label: str) -> str:
        return labels.get(normalise(label), normalise(label))

    offered = tally.moral_options(row) if _chooses(tally.job) else []
    rates = [np.mean([coarse(item) == coarse(gold) for item in options]) for gold, options in offered]
    return {"labels": count, "chance": 100.0 * float(np.mean(rates)) if rates else 100.0 / count}


def _better_or_worse(tally: SuiteFolder, row: SuiteRow) -> dict[str, float]:
    """Return the shares of stories whose boards are worse, equal or better than the baseline's.

    By image recoverability on every scored question: no filter, so that a board cannot lose a question by failing it.
    """
    base = tally.job.suite.row(tally.job.suite.baseline)
    ours, theirs = (averages(tally.counts(item, filtered=False).pooled())[:, _IMAGE] for item in (row, base))
    change = (ours - theirs)[~np.isnan(ours - theirs)]
    if not change.size:
        return {}
    worse, better = float((change < -NOTHING).mean()), float((change > NOTHING).mean())
    return {"harmed": 100.0 * worse, "equal": 100.0 * (1.0 - worse - better), "improved": 100.0 * better}


def _budget(tally: SuiteFolder) -> AblationBudget:
    """Return what the whole suite draws and asks, beside what its rows would one by one (Table 74)."""
    rows = tally.job.suite.rows
    alone = [tally.needs([row]) for row in rows]
    boards = [board for result in tally.results for board in result.boards]
    frames, questions = tally.needs(rows)
    return AblationBudget(
        frames_distinct=frames,
        frames_by_rows=sum(item[0] for item in alone),
        frames_naive=sum(len(board.frames) for board in boards),
        questions_distinct=questions,
        questions_by_rows=sum(item[1] for item in alone),
        questions_naive=sum(len(board.questions) for board in boards),
    )
