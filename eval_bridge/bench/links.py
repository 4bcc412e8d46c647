"""What does not fit together between the files of a release: variants, validations and gold subsets against stories."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from katha.eval_bridge.bench.files import Problem
from katha.eval_bridge.bench.ledger import Ledger
from katha.eval_bridge.bench.reference import GOLD_TIERS, VARIANTS_PER_STORY

__all__ = ["link_problems"]

_STORY = "(SELECT * FROM stories WHERE file = 'stories')"
_VARIANTS: tuple[tuple[str, str, str], ...] = (
    (
        f"SELECT v.file, v.line, v.story, v.id FROM variants v LEFT JOIN {_STORY} s USING (story)"
        " WHERE s.story IS NULL",
        "base_story_id",
        "variant {!r} belongs to a story that is not in the annotations.",
    ),
    (
        f"SELECT v.file, v.line, v.story, v.id FROM variants v JOIN {_STORY} s USING (story) WHERE v.type != s.type",
        "narrative_type",
        "variant {!r} has another narrative type than its story.",
    ),
    (
        f"SELECT v.file, v.line, v.story, v.id FROM variants v JOIN {_STORY} s USING (story) WHERE v.moral != s.moral",
        "original_moral",
        "variant {!r} has another original moral than its story's label.",
    ),
    (
        "SELECT v.file, v.line, v.story, v.id FROM variants v JOIN texts t USING (story) WHERE v.digest = t.digest",
        "contrastive_story_text",
        "variant {!r} has the text of its story unchanged.",
    ),
    (
        "SELECT p.file, p.line, p.story, p.id FROM promised p LEFT JOIN variants v ON v.id = p.id AND v.story = p.story"
        " WHERE v.id IS NULL",
        "provenance.contrastive_variant_ids",
        "variant {!r} is not in the variants file, or belongs to another story.",
    ),
)
_VALIDATIONS: tuple[tuple[str, str, str], ...] = (
    (
        f"SELECT v.file, v.line, v.story, v.moral FROM validations v LEFT JOIN {_STORY} s USING (story)"
        " WHERE s.story IS NULL",
        "story_id",
        "the story is not in the annotations.",
    ),
    (
        f"SELECT v.file, v.line, v.story, v.moral FROM validations v JOIN {_STORY} s USING (story)"
        " WHERE v.moral != s.moral",
        "final_moral_label",
        "it is {!r}, which is not the label of the story.",
    ),
    (
        f"SELECT v.file, v.line, v.story, v.resolution FROM validations v JOIN {_STORY} s USING (story)"
        " WHERE v.resolution != s.resolution",
        "resolution",
        "it is {!r}, which is not the story's evidence_status.resolution.",
    ),
)


def link_problems(ledger: Ledger, names: Mapping[str, str], *, full: bool) -> Iterator[Problem]:
    """Every link that is broken. `names` maps the kinds of files that are there to their names.

    Links to a file that is not there are not checked. `full`: every story must have its variants and validation.
    """
    has_stories = "stories" in names
    if has_stories and "variants" in names:
        yield from _asked(ledger, _VARIANTS)
        yield from _numbers(ledger, names["variants"], full=full)
    if has_stories and "validation" in names:
        yield from _asked(ledger, _VALIDATIONS)
        if full:
            yield from _unvalidated(ledger, names["validation"])
    for tier in GOLD_TIERS:
        if tier in names:
            yield from _gold(ledger, tier, names, has_stories=has_stories)


def _asked(ledger: Ledger, questions: tuple[tuple[str, str, str], ...]) -> Iterator[Problem]:
    for sql, field, message in questions:
        for file, line, story, detail in ledger.ask(sql):
            yield Problem(file, line, story, field, message.format(detail))


def _numbers(ledger: Ledger, name: str, *, full: bool) -> Iterator[Problem]:
    """Two variants a story (Table 5): never more, and in the full release never fewer."""
    sql = (
        f"SELECT s.story, count(v.id) AS n FROM {_STORY} s LEFT JOIN variants v USING (story)"
        f" GROUP BY s.story HAVING n > ? OR (? AND n < ?)"
    )
    for story, count in ledger.ask(sql, VARIANTS_PER_STORY, full, VARIANTS_PER_STORY):
        yield Problem(name, None, story, "base_story_id", f"it has {count} variants, not {VARIANTS_PER_STORY}.")


def _unvalidated(ledger: Ledger, name: str) -> Iterator[Problem]:
    sql = f"SELECT s.story FROM {_STORY} s LEFT JOIN validations v USING (story) WHERE v.story IS NULL"
    for (story,) in ledger.ask(sql):
        yield Problem(name, None, story, "story_id", "the story has no validation record.")


def _gold(ledger: Ledger, tier: str, names: Mapping[str, str], *, has_stories: bool) -> Iterator[Problem]:
    """A gold subset holds stories of the release as they are; the strict one is part of the other."""
    rows = f"(SELECT * FROM stories WHERE file = '{tier}')"
    checks: list[tuple[str, str, str]] = []
    if has_stories:
        checks = [
            (
                f"SELECT g.line, g.story FROM {rows} g LEFT JOIN {_STORY} s USING (story) WHERE s.story IS NULL",
                "story_id",
                "the story is not in the annotations.",
            ),
            (
                f"SELECT g.line, g.story FROM {rows} g JOIN {_STORY} s USING (story) WHERE g.digest != s.digest",
                "",
                "its text or questions are not those of the annotations.",
            ),
            *(
                (
                    f"SELECT g.line, g.story FROM {rows} g JOIN {_STORY} s USING (story)"
                    f" WHERE g.{column} != s.{column}",
                    field,
                    "it is not that of the annotations.",
                )
                for column, field in (("type", "narrative_type"), ("moral", "moral_label"))
            ),
        ]
    if tier == "strict_gold_400" and "human_gold_1k" in names:
        sql = (
            f"SELECT g.line, g.story FROM {rows} g LEFT JOIN (SELECT story AS h FROM stories WHERE file ="
            " 'human_gold_1k') ON h = g.story WHERE h IS NULL"
        )
        checks.append((sql, "story_id", f"the story is not in {names['human_gold_1k']}."))
    for sql, field, message in checks:
        for line, story in ledger.ask(sql):
            yield Problem(names[tier], line, story, field, message)
