"""A plain text with the stand-in: what the terminal, the report, the desk and the studies say of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from katha.app.cli.main import app
from katha.app.desk.view import view_of
from katha.errors import UsageError

EXAMPLES = Path(__file__).parents[2] / "examples"
TALE = (
    "The Cake\n\nMarta baked a cake in the kitchen. The dog jumped onto the table and ate the cake. "
    "Marta came back and cried."
)
STAND_IN = ("--preset", "embedded", "--seeds", "42")


def katha(*words: object) -> Result:
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a run of the tale, and what it printed."""
    base = tmp_path_factory.mktemp("made")
    (base / "cake.txt").write_text(TALE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATHA_CACHE", str(base / "cache"))
        return base / "cake", katha("run", base / "cake.txt", *STAND_IN, "--out", base / "cake").output


def test_the_terminal_says_what_reads_back_and_no_score(made: tuple[Path, str]) -> None:
    run, told = made
    assert "sketch-reader judges (0)" in told
    back = json.loads((run / "scores.json").read_text())["methods"]
    for name, row in (("before", back["base"]), ("full", back["full"])):
        found, meant = row["read_back"]["found"], row["read_back"]["meant"]
        assert re.search(rf"^  {name} +{found} of {meant} pictures read back as meant$", told, re.MULTILINE)
    assert "cannot measure them on questions made by rule" in told
    assert not re.search(r"text +image +STG", told)
    assert "valid" not in told


def test_machines_get_the_same_counts(made: tuple[Path, str]) -> None:
    run, _ = made
    told = json.loads(katha("run", run, "--json").stdout)
    methods = json.loads((run / "scores.json").read_text())["methods"]
    assert told["read_back"] == {name: row["read_back"] for name, row in methods.items()}
    assert all(row["stg"] is None and row["image"] is None for row in told["methods"].values())


def test_the_report_shows_no_recoverability_and_no_stg(made: tuple[Path, str]) -> None:
    page = re.sub(
        r"<style>.*?</style>|<script>.*?</script>", "", (made[0] / "report.html").read_text(), flags=re.DOTALL
    )
    assert "Pictures read back as meant" not in page.partition("</header>")[0]  # it is the stand-in's, of itself
    assert "%" not in page.partition("</header>")[0]
    assert "sentences that can be shown were given a frame" in page
    assert "No recoverability and no STG: sketch-reader cannot measure them" in page
    for gone in (
        "Semantic Trajectory Gap",
        "Recoverable from the images",
        "questions are valid",
        'id="dimensions"',
        'id="asked"',
    ):
        assert gone not in page, gone
    assert re.search(r'aria-label="Transition from scene 1 to 2: \d of 2 pictures read back as meant', page)
    assert "Score = weight × pictures read back as meant" in page


def test_the_desk_shows_the_same(made: tuple[Path, str]) -> None:
    view = view_of(made[0])
    assert view.numbers is not None
    assert view.numbers.lost is None
    assert view.numbers.image is None
    methods = json.loads((made[0] / "scores.json").read_text())["methods"]
    counts = [methods[name]["read_back"] for name in ("base", "full")]
    assert view.numbers.read_back == tuple(f"{one['found']} of {one['meant']}" for one in counts)
    assert view.cuts
    assert all(cut.read_back for cut in view.cuts)
    assert view.weakest is None or view.weakest.asked == ()


def test_a_frame_drawn_again_is_read_back_again(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    run, _ = made
    monkeypatch.setenv("KATHA_CACHE", str(run.parent / "cache"))
    told = katha("redo", run, "--frame", 1, "--seed", 7).output
    assert "STG" not in told.replace("No recoverability and no STG", "")
    assert "pictures read back as meant" in told
    assert (run / "answers.jsonl").read_text() == ""
    assert "read_back" in json.loads((run / "scores.json").read_text())["methods"]["full"]


@pytest.mark.parametrize("verb", ["compare", "ablate", "eval", "tune"])
def test_studies_of_it_are_refused_in_a_sentence(verb: str, made: tuple[Path, str], tmp_path: Path) -> None:
    given = {"eval": ("--boards", f"cake={tmp_path}"), "compare": ("--renderer", "sketch", "--renderer", "sketch:ink")}
    preset = ("--preset", "embedded") if verb == "eval" else STAND_IN
    with pytest.raises(UsageError, match="'cake' brings no questions, and this judge cannot measure STG"):
        katha(verb, made[0].parent / "cake.txt", *preset, *given.get(verb, ()), "--out", tmp_path / "out")


def test_a_record_s_table_has_chance_and_blindness_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    told = katha("run", EXAMPLES / "crow_and_pitcher.json", *STAND_IN, "--mode", "base", "--out", tmp_path / "crow")
    assert re.search(r"text +image +STG", told.output)
    assert "sketch-reader reads the clip art of its own house; of other pictures it knows no more than chance." in (
        told.output
    )
    assert re.search(r"A guess among the options is right in \d+\.\d%\.", told.output)
    assert "read back" not in told.output
