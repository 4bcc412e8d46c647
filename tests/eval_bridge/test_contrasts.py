"""STG of contrastive twins beside that of their stories, recomputed from the rows."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from independent_scorer import difference_span
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.eval_bridge.scoring.contrastive import TWIN_OF, PairScorer
from katha.eval_bridge.scoring.scores import score
from katha.schema import Answer, ContrastiveVariant, Question, StoryRecord
from katha.stories import load_stories

KITE = Path(__file__).parent.parent / "data" / "shipped" / "released.jsonl"
KINDS = ("causal", "consequence", "moral")


def story(name: str, source: str | None = None) -> StoryRecord:
    questions = [
        Question(
            question_id=f"q{n}",
            question_type=KINDS[n % 3],
            question=f"What of {n}?",
            gold_answer="right",
            story_id=name,
        )
        for n in range(4)
    ]
    where = {TWIN_OF: source} if source else {}
    return StoryRecord(story_id=name, story_text=name, recoverability_questions=questions, provenance=where)


def answers(records: list[StoryRecord]) -> list[Answer]:
    dice = random.Random(3)
    return [
        Answer(
            method=None if condition == "text" else "flux",
            judge="j",
            story_id=one.story_id,
            question_id=item.question_id,
            condition=condition,
            status="ok",
            answer="right" if dice.random() < share - (0.25 if TWIN_OF in one.provenance else 0.0) else "wrong",
        )
        for one in records
        for item in one.recoverability_questions
        for condition, share in (("text", 0.95), ("image", 0.6), ("text+image", 0.95))
    ]


def by_hand(records: list[StoryRecord], rows: list[Answer], picked: set[str]) -> float:
    """STG in points over the stories that are picked, each question's own verdicts, means over dimensions."""
    right = {(row.story_id, row.question_id, row.condition): row.answer == "right" for row in rows}
    sides = []
    for condition in ("text", "image"):
        rates = []
        for kind in KINDS:
            cells = [
                right[one.story_id, item.question_id, condition]
                for one in records
                for item in one.recoverability_questions
                if one.story_id in picked
                and item.question_type == kind
                and right[one.story_id, item.question_id, "text+image"]
            ]
            rates += [sum(cells) / len(cells)] if cells else []
        sides.append(sum(rates) / len(rates))
    return 100.0 * (sides[0] - sides[1])


def test_twins_stand_beside_their_stories_and_nowhere_else() -> None:
    sources = [story(f"s{n}") for n in range(9)]
    twins = [story(f"s{n}_{side}", f"s{n}") for n in range(8) for side in "ab"]
    rows = answers([*sources, *twins])
    found = score([*sources, *twins], rows, matching="lemma-set", questions="all", resamples=60)
    alone = score(
        sources, [row for row in rows if len(row.story_id) == 2], matching="lemma-set", questions="all", resamples=60
    )
    assert found.methods == alone.methods
    assert alone.contrasts is None
    assert "contrasts" not in alone.model_dump(mode="json")
    gap = (found.contrasts or {})["flux"]["j"]
    paired = {f"s{n}" for n in range(8)}
    source, twin = by_hand(sources, rows, paired), by_hand(twins, rows, {one.story_id for one in twins})
    assert gap.n_stories == 8
    assert gap.source.stg == pytest.approx(source, abs=1e-9)
    assert gap.contrast.stg == pytest.approx(twin, abs=1e-9)
    assert gap.difference == pytest.approx(twin - source, abs=1e-9)
    left = []
    for out in sorted(paired):
        theirs = {one.story_id for one in twins if one.provenance.get(TWIN_OF) != out}
        left.append((by_hand(twins, rows, theirs) - by_hand(sources, rows, paired - {out})) / 100.0)
    assert gap.ci95 == pytest.approx(difference_span((twin - source) / 100.0, list(left)), abs=1e-6)


def test_variants_become_stories_with_the_questions_that_the_change_leaves_alone(tmp_path: Path) -> None:
    (record,) = load_stories(KITE)
    changed = record.scenes[-1].scene_index
    variant = {
        "variant_id": "kite_v1",
        "base_story_id": record.story_id,
        "changed_scene_id": changed,
        "change_type": "outcome",
        "contrastive_moral": "patience",
        "contrastive_scene_text": "The boy laughs and a girl climbs the tree.",
    }
    off = variant | {"variant_id": "kite_v2", "has_variant": False}
    odd = variant | {"variant_id": "kite_v3", "recoverability_questions": [{"question_type": "weather"}]}
    (tmp_path / "v.jsonl").write_text("".join(json.dumps(row) + "\n" for row in (variant, off, odd)))
    told = CliRunner().invoke(
        app,
        ["bench", "contrasts", str(KITE), "--variants", str(tmp_path / "v.jsonl"), "--out", str(tmp_path / "o.jsonl")],
    )
    assert told.exit_code == 0, told.output
    assert "has_variant" in told.output
    assert "kite_v3 (outcome): its question field" in told.output
    source, twin = load_stories(tmp_path / "o.jsonl")
    assert source.story_id == record.story_id
    assert (twin.story_id, twin.provenance[TWIN_OF]) == ("kite_v1", record.story_id)
    assert twin.scenes[-1].scene_text == variant["contrastive_scene_text"]
    assert variant["contrastive_scene_text"] in twin.story_text
    untouched = [
        item.question
        for item in record.recoverability_questions
        if item.question_type != "moral"
        and changed not in {item.target_scene, *(item.target_transition or ()), *item.evidence_scenes}
    ]
    asked = {item.question: item for item in twin.recoverability_questions}
    assert set(untouched) <= asked.keys()
    for item in record.recoverability_questions:
        if item.question_type == "moral":
            assert asked[item.question].gold_answer == "patience"
        elif item.question not in untouched and item.question in asked:
            assert asked[item.question].gold_answer != item.gold_answer


def test_an_inactive_variant_is_counted_and_is_no_pair() -> None:
    (record,) = load_stories(KITE)
    told = {"base_story_id": record.story_id, "contrastive_story_text": "The kite stays in the air."}
    pair = ContrastiveVariant(variant_id="v1", **told)
    found = PairScorer([record], [pair, ContrastiveVariant(variant_id="v2", has_variant=False, **told)]).scores()
    assert found.n_pairs == 1
    assert found.notes[0] == "1 variants are marked as inactive (has_variant)."
