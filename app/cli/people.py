"""`katha people`: pages for a study with people, and the scores of what they hand back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from katha.app.cli.console import echo_json, interval, points, tell_order
from katha.app.cli.options import Boards, GivenOptions, Json, Stories, options_from
from katha.app.people import pack_study, score_study
from katha.app.review import OPEN, pack_review, score_review
from katha.config import read_settings
from katha.experiments.people import PeopleOptions, PeopleStudyOptions
from katha.schema.people import BoardJudgments, PeopleScores, PreferencePair

people = typer.Typer(
    help="Ask people about boards and records: make pages, and score what they hand back.",
    no_args_is_help=True,
    add_completion=False,
)
_SHOWN = 8
_METHOD = "  {:<26}{:>8}{:>8}{:>8}{:>18}{:>18}"
_CRITERION = "  {:<8}{:>8}{:>18}{:>18}{:>10}{:>8}  {}"


@people.command()
@options_from(PeopleStudyOptions, into="options", preset=False, limits=False)
def pack(
    stories: Stories,
    boards: Boards,
    out: Annotated[Path, typer.Option("--out", help="The folder of the study.")],
    options: GivenOptions,
    as_json: Json = False,
) -> None:
    """Make one self-contained page for each participant, and the key that stays with you.

    Hand out the files in OUT/pages, one each; nothing in them names a method or an accepted answer. Preferences count
    as positive for the board that was named first, and for a board with its bridge.
    """
    made = pack_study(stories, boards, out, read_settings(PeopleStudyOptions, options.changes), tell_order)
    study = made.study
    screens = [len(page.screens) for page in study.pages]
    items = [sum(1 for _ in page.items()) for page in study.pages]
    if as_json:
        told = {"study": study.study, "tasks": study.tasks, "design": study.design, "notes": study.notes}
        counted = zip(made.pages, screens, items, strict=True)
        pages = [{"page": str(path), "screens": shown, "items": asked} for path, shown, asked in counted]
        echo_json({"out": str(out), "reused": made.reused, **told, "pages": pages, "invalid": made.invalid})
        return
    typer.echo(f"Study {study.study}: {', '.join(study.tasks)}; {study.design} participants.")
    typer.echo(
        f"{len(study.pages)} pages of {min(screens)} to {max(screens)} screens and {min(items)} to {max(items)} items."
    )
    for name, reasons in made.invalid.items():
        for story, reason in list(reasons.items())[:_SHOWN]:
            typer.echo(f"  {name}, {story}: not shown, {reason.removesuffix('.')}.", err=True)
        if len(reasons) > _SHOWN:
            typer.echo(f"  {name}: {len(reasons) - _SHOWN} more stories are not shown.", err=True)
    for note in study.notes:
        typer.echo(f"Note: {note}")
    typer.echo(f"Hand out: {made.pages[0].parent} (one file each). Keep: {out / 'study.json'}")


@people.command()
def review(
    stories: Stories,
    out: Annotated[Path, typer.Option("--out", help="The folder of the review.")],
    reviewers: Annotated[int, typer.Option("--reviewers", min=1, max=99, help="How many people, a page each.")] = 3,
    per_item: Annotated[int, typer.Option("--per-item", min=1, help="How many people review each story.")] = 3,
    variants: Annotated[
        Path | None, typer.Option("--variants", help="contrastive_variants.jsonl, to be reviewed, too.")
    ] = None,
) -> None:
    """Make a page for each reviewer of STORIES: are types, morals, scenes, transitions and questions right?

    Hand out the files in OUT/pages, one each; `katha people adjudicate` says what their decisions come to.
    """
    pages = pack_review(stories, out, reviewers=reviewers, per_item=per_item, variants=variants)
    typer.echo(f"Hand out: {pages[0].parent} ({len(pages)} files, one each). Keep: {out / 'study.json'}")


@people.command()
def adjudicate(
    answers: Annotated[list[Path], typer.Argument(help="Files that the reviewers' pages saved, or their folder.")],
    study: Annotated[Path, typer.Option("--study", help="The folder of `katha people review`.")],
    out: Annotated[Path, typer.Option("--out", help="The folder of what it comes to.")],
    decisions: Annotated[
        Path | None, typer.Option("--decisions", help="adjudicate.jsonl with `decision` filled in: an adjudicator's.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what reviewers' decisions come to: edit and rejection rates, agreement, and the stories that may be released.

    What has no majority, or has to be edited, is written to OUT/adjudicate.jsonl; fill in `decision`, `note` and
    `corrected` (new values by field), and give it as --decisions.
    """
    found = score_review(answers, study, out, decisions)
    if as_json:
        echo_json({"out": str(out), "units": [row.model_dump(mode="json") for row in found.rows]})
        return
    for row in found.rows:
        kappa = "-" if row.fleiss_kappa is None else f"{row.fleiss_kappa:.3f}"
        typer.echo(
            f"  {row.unit}: {row.items} items, {points(row.edit_or_reject)}% edited, rejected or ambiguous; "
            f"{row.open} open; kappa {kappa}"
        )
    typer.echo(f"Stories: {out / 'stories.jsonl'}; open: {out / OPEN}")


@people.command()
@options_from(PeopleOptions, into="options", preset=False, limits=False)
def score(
    answers: Annotated[
        list[Path],
        typer.Argument(help="Files that the pages saved, or their folder; or judgments (CSV, JSON Lines)."),
    ],
    out: Annotated[Path, typer.Option("--out", help="The folder of the scores.")],
    options: GivenOptions,
    as_json: Json = False,
) -> None:
    """Score what people handed back: recoverability, ratings, preferences, agreement, and judges beside them.

    With --study, ANSWERS are what its pages saved; without, they are files of judgments, as `katha bench calibrate`
    reads them. Methods are never pooled.
    """
    scored, report = score_study(answers, out, read_settings(PeopleOptions, options.changes))
    if as_json:
        echo_json({"out": str(out), "report": str(report), "scores": scored.scores.model_dump(mode="json")})
        return
    _tell(scored.scores)
    typer.echo(f"Report: {report}")


def _tell(scores: PeopleScores) -> None:
    if scores.participants:
        out = sum(bool(who.excluded) for who in scores.participants)
        typer.echo(f"{len(scores.participants)} participants, {out} against the rules; {scores.rows:,} judgments.")
    methods = scores.methods or {"": scores}
    if any(own.recoverability for own in methods.values()):
        typer.echo(_METHOD.format("boards", "text", "image", "STG", "95% participants", "and stories"))
    for name, own in methods.items():
        _tell_method(name, own)
    for row in scores.comparisons or ():
        if row.difference is not None:
            span = f"{interval(row.ci95_both, '+.1f')} over participants and stories"
            typer.echo(
                f"  {row.a} against {row.b}: human STG differs by {row.difference:+.1f} ({span}): {row.reading}."
            )
    for pair in scores.preferences or ():
        _tell_pair(pair)
    for choice in scores.pictures or ():
        typer.echo(
            f"  {choice.a}'s pictures are chosen over {choice.b}'s in {points(choice.rate)}% of {choice.responses} "
            f"responses (chance {points(choice.chance)}%, p {choice.p:.4f})."
        )
    for note in scores.notes:
        typer.echo(f"Note: {note}")


def _tell_method(name: str, own: BoardJudgments) -> None:
    found = own.recoverability
    if found is not None:
        numbers = (points(found.text), points(found.image), points(found.stg))
        typer.echo(_METHOD.format(name[:25], *numbers, interval(found.ci95_raters.stg), interval(found.ci95_both.stg)))
        if found.none is not None and found.gain_image is not None:
            span = interval(found.ci95_both.gain_image, "+.1f")
            typer.echo(
                f"    {points(found.none)} without any evidence; the images add {found.gain_image:+.1f} "
                f"({span} over participants and stories)"
            )
    named = {"NCS": own.ncs, "MAS": own.mas, "EES": own.ees, "visual": own.visual}
    means = [f"{word} {item.mean:.2f}" for word, item in named.items() if item is not None and item.mean is not None]
    if own.moral is not None:
        means += [f"HMR@1 {points(own.moral.hmr1)}", f"HMR@3 {points(own.moral.hmr3)}"]
    if means:
        typer.echo(f"  {name}: {', '.join(means)}")
    for judge, row in (own.judges or {}).items():
        image = row.agreement.get("image")
        told = f"{points(image.agreement)}% of {image.n} image answers" if image is not None else "no image answer"
        rho = "-" if row.image.spearman is None else f"{row.image.spearman:.2f}"
        typer.echo(f"  {name}, {judge}: agrees with most people on {told}; Spearman {rho} over {row.image.n} boards")


def _tell_pair(pair: PreferencePair) -> None:
    typer.echo(f"  {pair.a} (positive) against {pair.b}")
    typer.echo(_CRITERION.format("", "mean", "95% participants", "and stories", "p", "alpha", ""))
    for name, row in pair.criteria.items():
        numbers = (
            "-" if row.mean is None else f"{row.mean:+.2f}",
            interval(row.ci95_raters, "+.2f"),
            interval(row.ci95_both, "+.2f"),
            "-" if row.p_corrected is None else f"{row.p_corrected:.4f}",
            "-" if row.krippendorff_alpha is None else f"{row.krippendorff_alpha:.2f}",
        )
        typer.echo(_CRITERION.format(name, *numbers, "preferred" if row.shown else ""))
