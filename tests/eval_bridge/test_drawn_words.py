"""Words drawn into a picture: found by the real OCR, refused where they tell the story, reported where they do not."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
from evals import Watcher, records
from PIL import Image, ImageDraw, ImageFont
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import MissingExtraError
from katha.eval_bridge.bench.boards import MethodBoards
from katha.eval_bridge.packets.packets import leaked_words
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, evaluate
from katha.installing import install_line
from katha.lettering import WordScanner
from katha.store import Store


def picture(words: str = "", shade: int = 0) -> bytes:
    image = Image.new("RGB", (480, 160), (200, 220, 240 - shade))
    pen = ImageDraw.Draw(image)
    pen.ellipse((300, 90, 340, 150), fill=(90, 140, 60))
    if words:
        pen.text((20, 20), words, fill=(0, 0, 0), font=ImageFont.load_default(size=40))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def test_only_words_of_the_story_are_a_leak() -> None:
    secrets = ["A lion slept in the shade.", "gratitude"]
    assert leaked_words(["THE LION SLEEPS", "BAKERY", "ASLEEP", "gratitude!"], secrets) == [
        "THE LION SLEEPS",
        "gratitude!",
    ]
    assert leaked_words(["the of and", "LIONSLEPT"], secrets) == ["LIONSLEPT"]
    assert leaked_words([], secrets) == []


def test_a_picture_with_the_storys_words_leaves_the_board_unjudged(tmp_path: Path) -> None:
    stories = [record.model_copy(update={"story_text": "The lion sleeps in the shade."}) for record in records(2)]
    drawn = {"s0": "THE LION SLEEPS", "s1": "BAKERY"}
    for record in stories:
        place = tmp_path / "boards" / record.story_id
        place.mkdir(parents=True)
        for number in range(1, 6):
            words = drawn[record.story_id] if number == 2 else ""
            (place / f"{number}.png").write_bytes(picture(words, number))
    judge = Watcher()
    boards = [MethodBoards("boards", tmp_path / "boards")]
    job = EvalJob(stories, boards, {"watcher": judge}, EvalSettings(resamples=20), scanner=WordScanner())
    with Store(tmp_path / "cache") as store:
        results = evaluate(job, tmp_path / "out", store).state.done
    assert set(results.invalid["boards"]) == {"s0"}
    assert "frame 2 has words of the story drawn into it, 'THE LION SLEEPS'" in results.invalid["boards"]["s0"]
    assert results.leakage.pictures_read == 10
    assert results.leakage.drawn == ["s0, frame 2: THE LION SLEEPS", "s1, frame 2: BAKERY"]
    assert results.leakage.detected == 50.0
    assert judge.asked == 3 * 4, "three questions of one story, under each condition"


def test_the_missing_extra_names_its_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    source = tmp_path / "stories.jsonl"
    source.write_text("".join(record.model_dump_json() + "\n" for record in records(1)))
    (tmp_path / "boards").mkdir()
    words = ["eval", source, "--boards", tmp_path / "boards", "--out", tmp_path / "out", "--scan-words"]
    told = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(told.exception, MissingExtraError)
    assert install_line("ocr") in str(told.exception)
    assert not (tmp_path / "out").exists()
