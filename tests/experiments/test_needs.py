"""What a dry run counts: never less than what is drawn and asked, and exactly that where nothing has to be decided."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import katha
from katha.app.cli.main import app
from katha.app.needs import needs_of_run, needs_of_tuning
from katha.config import Settings
from katha.errors import RecordError, UsageError
from katha.eval_bridge.judging.abilities import make_judges
from katha.experiments.inputs.stories import choose_stories
from katha.experiments.needs import Absent, Needs, PluginNeed, countable_judges
from katha.models.client import keyless
from katha.schema import StoryRecord

FABLE = Path(__file__).parents[1] / "data" / "fables" / "jackal_and_drum.txt"
KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY")


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))


def calls(needs: Needs, kind: str) -> int:
    return sum(need.calls for need in needs.needs if need.kind == kind)


@pytest.mark.parametrize("mode", ["base", "full"])
def test_a_run_takes_no_more_than_its_dry_run_says(mode: str, tmp_path: Path) -> None:
    needs = needs_of_run(FABLE, mode=mode, seeds=(1, 2))
    done = katha.run_story(FABLE, out=tmp_path / "out", mode=mode, seeds=(1, 2))
    assert done.out.is_dir()
    drawn = len(list((tmp_path / "out" / "panels").glob("*.png")))
    rows = [json.loads(line) for line in (tmp_path / "out" / "answers.jsonl").read_text().splitlines()]
    asked = {(row["packet_sha256"], row["prompt_sha256"], row["judge"]) for row in rows}
    assert drawn <= calls(needs, "pictures")
    assert len(asked) <= calls(needs, "answers")
    if mode == "base":
        assert drawn == calls(needs, "pictures") == 7
        assert len(asked) == calls(needs, "answers")


def test_prices_need_no_key_and_no_weights() -> None:
    judges = ["anthropic:claude-haiku-4-5", "openai:gpt-99", "local:nobody/nothing"]
    needs = needs_of_run(FABLE, judges=judges, renderer="openai:gpt-image-1.5", mode="base", seeds=(1,))
    by_name = {need.name: need for need in needs.needs}
    haiku = by_name["anthropic:claude-haiku-4-5"]
    assert haiku.cost == pytest.approx((haiku.input_tokens * 1.0 + haiku.output_tokens * 5.0) / 1e6)
    assert by_name["openai:gpt-99"].cost is None
    assert by_name["local:nobody/nothing"].cost == 0.0
    assert "hf download nobody/nothing" in by_name["local:nobody/nothing"].note
    assert by_name["openai:gpt-image-1.5"].cost == pytest.approx(8 * 0.20468 + 7 * 0.052)
    assert needs.cost is None


def test_without_a_dry_run_a_key_is_needed_again() -> None:
    with keyless():
        make_judges(["anthropic:claude-haiku-4-5"])
    with pytest.raises(UsageError, match="needs a key"):
        make_judges(["anthropic:claude-haiku-4-5"])


def test_an_absent_judge_has_a_stand_in() -> None:
    config = Settings(judges=("local:nobody/nothing", "anthropic:claude-haiku-4-5"))
    (_, absent), (_, served) = countable_judges(config)
    assert isinstance(absent, Absent)
    assert not isinstance(served, Absent)


def test_needs_of_one_plug_in_are_added_up() -> None:
    one = PluginNeed(kind="answers", name="a", calls=2, input_tokens=3, cost=1.5)
    total = Needs.total(1, [one, one, PluginNeed(kind="answers", name="b", calls=1, cost=0.25)], ["x", "x"])
    assert [(need.name, need.calls, need.input_tokens, need.cost) for need in total.needs] == [
        ("a", 4, 6, 3.0),
        ("b", 1, 0, 0.25),
    ]
    assert (total.cost, total.notes) == (3.25, ("x",))
    assert Needs.total(1, [one, one.model_copy(update={"cost": None})]).cost is None


def test_tuning_counts_a_repair_at_every_transition() -> None:
    needs = needs_of_tuning(FABLE, seeds=(1, 2, 3))
    assert calls(needs, "pictures") == 3 * 7 + 3 * 6 * 3


@pytest.mark.parametrize(
    "words",
    [
        ["run", str(FABLE)],
        ["ablate", str(FABLE), "--suite", "length", "--rows", "base,full"],
        ["compare", str(FABLE), "--renderer", "sketch", "--renderer", "openai:gpt-image-1.5"],
        ["tune", str(FABLE)],
    ],
    ids=lambda words: str(words[0]),
)
def test_every_verb_that_draws_has_a_dry_run(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, [*words, "--judge", "anthropic:claude-haiku-4-5", "--dry-run"])
    assert done.exit_code == 0, done.output
    assert "Nothing was drawn or asked." in done.stdout
    assert "anthropic:claude-haiku-4-5" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_stories_are_chosen_by_split_and_by_id(tmp_path: Path) -> None:
    splits = {"a": "public_test", "b": "hidden_test", "c": "train", "d": None}
    records = [StoryRecord(story_id=name, story_text="x", split=split) for name, split in splits.items()]

    def names(split: str | None, ids: str | None = None) -> list[str]:
        return [record.story_id for record in choose_stories(records, split, ids)]

    assert names(None) == ["a", "b", "c", "d"]
    assert (names("test"), names("public_test")) == (["a", "b"], ["a"])
    assert (names(None, "d, a"), names("test", "b")) == (["a", "d"], ["b"])
    (tmp_path / "gold.txt").write_text("c\n\na\n")
    (tmp_path / "gold.jsonl").write_text('{"story_id": "b", "tier": "gold"}\n"d"\n')
    assert names(None, str(tmp_path / "gold.txt")) == ["a", "c"]
    assert names(None, str(tmp_path / "gold.jsonl")) == ["b", "d"]
    (tmp_path / "bad.jsonl").write_text('{"id": "b"}\n')
    with pytest.raises(RecordError, match="line 1, has no story_id"):
        names(None, str(tmp_path / "bad.jsonl"))
    with pytest.raises(UsageError, match=r"no story 'z' and 1 more of --ids"):
        names(None, "z,y")
    with pytest.raises(UsageError, match=r"no story 'c' in the split 'test'"):
        names("test", "c")
    with pytest.raises(UsageError, match="no story of the split 'gold'"):
        names("gold")


def test_a_range_of_panels_is_counted_by_its_most() -> None:
    at = {"base_url": "http://127.0.0.1:9/v1"}
    drawn = [
        calls(
            needs_of_run(FABLE, planner="gemma-st:openai:m", planner_options=at, seeds=(42,), panels=panels), "pictures"
        )
        for panels in ("4", "4-8", "8")
    ]
    assert drawn[0] < drawn[1] == drawn[2]
