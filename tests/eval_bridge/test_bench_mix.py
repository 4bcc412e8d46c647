"""Evaluation sets at a mixing ratio, and ViStoryBench's dataset and results as stories and boards."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from metric_boards import plain_picture
from tiny_gemma import build_gemma
from transformers import AutoModelForCausalLM, AutoTokenizer
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import InputFileError, RecordError, UsageError
from katha.eval_bridge.bench.boards import MethodBoards, read_board
from katha.eval_bridge.bench.mix import continue_stories, mauve, mix_stories, perplexities, vocabulary_size
from katha.eval_bridge.bench.vistorybench import LITE, copy_results, read_dataset, read_story
from katha.eval_bridge.metrics import MetricBoard
from katha.eval_bridge.metrics.vistory_characters import character_tags, shot_script
from katha.models.base import Completion, Heard, Turn
from katha.schema import StoryRecord
from katha.sentences import whole_sentences
from katha.stories import load_stories, record_problems


def stories(name: str, count: int) -> list[StoryRecord]:
    return [
        StoryRecord(story_id=f"{name}{at}", title="", story_text=f"Pororo {name} thing {at}. Then he ran. He slept.")
        for at in range(count)
    ]


@settings(deadline=None)
@given(st.integers(1, 12), st.integers(0, 100), st.integers(0, 5))
def test_the_mix_has_as_many_stories_and_the_ratio_of_open_ones(count: int, percent: int, seed: int) -> None:
    closed, opened, ratio = stories("closed", count), stories("open", count), percent / 100
    mixed = mix_stories(closed, opened, ratio, seed)
    assert len({story.story_id for story in mixed.stories}) == count
    assert Counter(mixed.sources.values())["open"] == round(ratio * count)
    assert all(mixed.sources[story.story_id] == story.story_id.rstrip("0123456789") for story in mixed.stories)
    assert mix_stories(list(reversed(closed)), list(reversed(opened)), ratio, seed).sources == mixed.sources
    more = mix_stories(closed, opened, 1.0, seed)
    shown = [story.story_id for story in mixed.stories if mixed.sources[story.story_id] == "open"]
    assert [story.story_id for story in more.stories][: len(shown)] == shown


@pytest.mark.parametrize(
    ("ratio", "opened", "said"),
    [
        (1.5, stories("open", 9), "not from 0 to 1"),
        (0.5, stories("open", 1), "needs 2"),
        (0.25, stories("closed", 4), "both"),
    ],
)
def test_a_mix_that_cannot_be_is_refused(ratio: float, opened: list[StoryRecord], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        mix_stories(stories("closed", 4), opened, ratio)


class Generator:
    """Goes on from a beginning, and then mends the grammar; fails on one story."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def spec(self) -> Mapping[str, Any]:
        return {"name": "generator"}

    def complete(self, turns: Sequence[Turn], schema: Mapping[str, Any], heard: Heard | None = None) -> Completion:
        told = turns[-1].text
        self.asked.append(told)
        (field,) = schema["properties"]
        if "thing 2" in told.partition("Beginning:")[2]:
            return Completion("refused", error="no")
        text = told.partition("sentence: ")[2].partition(". only")[0] if field == "sentence" else "He fly away"
        return Completion("ok", json.dumps({field: text.replace("fly", "flies")}))


def test_a_model_goes_on_from_each_closed_beginning() -> None:
    closed, opened = stories("closed", 3), stories("open", 3)
    mixed = mix_stories(closed, opened, 1 / 3)
    model = Generator()
    written, failed = continue_stories(model, closed, mixed, ratio=1 / 3)
    assert [story.story_id for story in written] == ["closed0_mix33", "closed1_mix33"]
    assert failed == {"closed2": "refused: no"}
    assert written[0].story_text == "He flies away"
    assert "Beginning: Pororo closed thing 0.\n" in model.asked[0]
    assert "has 3 sentences in all" in model.asked[0]
    assert model.asked[0].count("Story: ") == len(written[0].provenance["shown"]) >= 2
    assert written[0].provenance["mixed_from"] == "closed0"


def test_a_beginning_is_a_whole_sentence_in_any_language() -> None:
    told = {
        '"Stop!" said\n Mr. Fox. He ran. Then... nothing.': '"Stop!" said Mr. Fox.|He ran.|Then... nothing.',
        "他跑了。他睡了。": "他跑了。|他睡了。",
        "सिंह सोया। चूहा भागा।": "सिंह सोया।|चूहा भागा।",
        "The Fox\n\nHe ran": "The Fox|He ran",
        " ": "",
    }
    assert {text: "|".join(whole_sentences(text)) for text in told} == told


def test_mauve_is_the_package_of_its_authors_or_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mauve", None)
    missing = mauve(["a"], ["b"])
    assert (missing.value, missing.reason) == (None, "mauve-text is not installed (GPL-3.0): pip install mauve-text")
    calls: list[dict[str, Any]] = []
    fake = SimpleNamespace(compute_mauve=lambda **given: calls.append(given) or SimpleNamespace(mauve=0.41))
    monkeypatch.setitem(sys.modules, "mauve", fake)
    assert mauve(["a"], ["b"], model="tiny").value == 0.41
    assert (calls[0]["p_text"], calls[0]["q_text"], calls[0]["featurize_model_name"]) == (["a"], ["b"], "tiny")
    assert mauve([], ["b"]).reason == "one of the two sets is empty"
    monkeypatch.setitem(sys.modules, "mauve", SimpleNamespace())
    assert str(mauve(["a"], ["b"]).reason).startswith("AttributeError")
    assert vocabulary_size(["A fox, a Fox.", "ran 3"]) == 3


def _jsonl(path: Path, records: Sequence[StoryRecord]) -> Path:
    path.write_text("".join(f"{record.model_dump_json()}\n" for record in records))
    return path


def test_the_command_writes_the_mix_and_says_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mauve", None)
    closed, opened = (
        _jsonl(tmp_path / "c.jsonl", stories("closed", 4)),
        _jsonl(tmp_path / "o.jsonl", stories("open", 4)),
    )
    out = tmp_path / "mix.jsonl"
    args = ["bench", "mix", str(closed), str(opened), "--ratio", "0.25", "--out", str(out)]
    told = CliRunner().invoke(app, args)
    assert told.exit_code == 0, told.output
    assert "4 stories of a mix of 3 closed and 1 open ones" in told.output
    assert "MAUVE to the closed stories: not known, mauve-text is not installed" in told.output
    assert sum(story.story_id.startswith("open") for story in load_stories(out)) == 1
    found = json.loads(CliRunner().invoke(app, [*args, "--json"]).output)
    assert (found["generator"], found["mauve"]["value"]) == ("none: the mix as it is drawn", None)


def test_a_perplexity_is_that_of_every_token_by_itself(tmp_path: Path) -> None:
    """A toy model of random weights; each token asked for on its own, by torch alone."""
    told = ["The fox ran down the hill and the crow sang.", "A crab."]
    folder = build_gemma(tmp_path / "toy", told, size=300, hidden=16)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    losses = []
    for text in told:
        ids = [tokenizer.bos_token_id, *tokenizer(text, add_special_tokens=False)["input_ids"]]
        for at in range(1, len(ids)):
            with torch.no_grad():
                logits = model(input_ids=torch.tensor([ids[:at]])).logits[0, -1]
            losses.append(-torch.log_softmax(logits, dim=-1)[ids[at]].item())
    assert perplexities([told], str(folder)) == pytest.approx([math.exp(sum(losses) / len(losses))], rel=1e-3)
    with pytest.raises(UsageError, match="no text"):
        perplexities([told, ["", ""]], str(folder))


def test_the_command_tells_perplexities_where_a_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mauve", None)
    closed, opened = stories("closed", 4), stories("open", 4)
    folder = build_gemma(tmp_path / "toy", [story.story_text for story in closed], size=300, hidden=16)
    files = [_jsonl(tmp_path / f"{at}.jsonl", rows) for at, rows in enumerate((closed, opened))]
    args = ["bench", "mix", *map(str, files), "--ratio", "0.25", "--out", str(tmp_path / "mix.jsonl")]
    told = CliRunner().invoke(app, [*args, "--ppl-model", str(folder)], catch_exceptions=False)
    (before,) = perplexities([[story.story_text for story in closed]], str(folder))
    assert f"the closed stories {before:,.1f}" in told.output
    assert "perplexity" not in CliRunner().invoke(app, args).output


def _dataset(root: Path, names: Sequence[str] = ("01", "02")) -> Path:
    for name in names:
        shots = [
            {
                "index": at,
                "Plot Correspondence": {"en": f"Fern walks, {at}.", "ch": "走"},
                "Setting Description": {"en": "Twilight, stone street"},
                "Shot Perspective Design": {"en": "Medium shot, eye level shot"},
                "Characters Appearing": {"en": ["Fern"] if at > 1 else [], "ch": []},
                "Static Shot Description": {"en": f"Fern stands at the tower, {at}."},
            }
            for at in (1, 2, 3)
        ]
        cast = {"Fern": {"name_en": "Fern", "prompt_en": "long purple hair", "tag": "unrealistic_human"}}
        place = root / name / "image" / "Fern"
        place.mkdir(parents=True)
        (place / "00.jpg").write_bytes(plain_picture(1))
        (root / name / "story.json").write_text(
            json.dumps({"Shots": shots, "Characters": cast, "Story_type": {"en": "fantasy"}})
        )
    return root


def test_scripts_are_stories_that_katha_and_its_metrics_read(tmp_path: Path) -> None:
    assert len(LITE) == 20
    root = _dataset(tmp_path)
    record = read_story(root / "01")
    assert list(record_problems(record)) == []
    assert [scene.scene_text for scene in record.scenes] == ["Fern walks, 1.", "Fern walks, 2.", "Fern walks, 3."]
    board = MetricBoard("mine", record, ())
    script = shot_script(board, 2)
    assert script.setting == "Twilight, stone street"
    assert script.camera == "Medium shot, eye level shot"
    assert script.action == "Fern stands at the tower, 2."
    assert script.characters == ("Fern",)
    assert character_tags(board) == {"Fern": "unrealistic_human"}
    assert [story.story_id for story in read_dataset(root, lite=True)] == ["01"]
    with pytest.raises(RecordError, match=r"shot 1: field 'Setting Description' is missing in 'ch'"):
        read_story(root / "01", "ch")
    with pytest.raises(InputFileError, match="holds no story"):
        list(read_dataset(root / "01"))


def _changed(folder: Path, change: Callable[[Any], object]) -> Path:
    path = folder / "story.json"
    told = json.loads(path.read_text())
    change(told)
    path.write_text(json.dumps(told))
    return folder


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda told: told.update(Characters=["Fern"]), "field 'Characters'"),
        (lambda told: told.update(Characters={"Fern": None}), "field 'Characters.Fern'"),
        (lambda told: told.update(Shots={}), "field 'Shots'"),
        (lambda told: told.update(Shots=[7]), "field 'Shots.0'"),
        (lambda told: told["Shots"][0].update({"Plot Correspondence": 7}), "'Plot Correspondence' is missing"),
        (lambda told: told["Characters"].update({"..": {}}), r"'\.\.' cannot be the name of a character"),
        (lambda told: told["Characters"].update({"x": {"name_en": "."}}), r"'\.' cannot be the name"),
        (lambda told: told["Characters"].update({"/": {}}), "is out of the folder"),
        (lambda told: told["Characters"].update({"../../02/image/Fern": {}}), "is out of the folder"),
    ],
)
def test_a_script_that_is_none_is_one_sentence(tmp_path: Path, change: Callable[[Any], object], says: str) -> None:
    with pytest.raises((RecordError, InputFileError), match=says):
        read_story(_changed(_dataset(tmp_path) / "01", change))


def test_who_appears_may_be_left_out_and_pictures_are_no_links_out(tmp_path: Path) -> None:
    folder = _changed(_dataset(tmp_path) / "01", lambda told: told["Shots"][1].update({"Characters Appearing": 3}))
    assert [scene.characters for scene in read_story(folder).scenes] == [[], [], ["Fern"]]
    (tmp_path / "secret.png").write_bytes(b"secret")
    (folder / "image" / "Fern" / "01.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(InputFileError, match="is out of the folder"):
        read_story(folder)


def test_the_command_writes_stories_references_and_boards(tmp_path: Path) -> None:
    root, results = _dataset(tmp_path / "data"), tmp_path / "UNO" / "base" / "en"
    for at in (0, 1, 2):
        for time, name in (("20250101-000000", "01"), ("20250202_000000", "01"), ("20250202_000000", "02")):
            place = results / time / "shots" / name
            place.mkdir(parents=True, exist_ok=True)
            if name == "01" or at < 2:
                (place / f"shot_{at:02d}.png").write_bytes(plain_picture(at + 10 * (time[4:8] == "0202")))
    out = tmp_path / "made"
    args = ["bench", "vistorybench", str(root), "--results", str(results), "--out", str(out)]
    told = CliRunner().invoke(app, args)
    assert told.exit_code == 1, "one story lacks a picture"
    assert "No board: 02: 2 pictures of 3 shots" in told.output
    records = load_stories(out / "stories.jsonl")
    board = read_board(MethodBoards("UNO", out / "boards"), records[0])
    assert [frame.data for frame in board.frames] == [plain_picture(at) for at in (10, 11, 12)]
    assert [frame.scene for frame in board.frames] == [1, 2, 3]
    assert (out / "characters" / "01" / "Fern" / "00.jpg").read_bytes() == plain_picture(1)
    again = CliRunner().invoke(app, args)
    assert isinstance(again.exception, UsageError)
    assert copy_results(results / "20250101-000000", records, tmp_path / "b") == {"02": "0 pictures of 3 shots"}
    with pytest.raises(InputFileError, match="no folder"):
        copy_results(tmp_path / "nowhere", records, out)
