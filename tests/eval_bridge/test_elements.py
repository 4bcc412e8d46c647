"""Questions of TIFA, DSG and GenEval by a model: what its reader of the scenes answers otherwise is dropped."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from choosers import Chooser
from evals import draw
from typer.testing import CliRunner

from katha.app.cli.main import app
from katha.errors import RecordError, UsageError
from katha.eval_bridge.questions.elements import KINDS, Kind, write_elements
from katha.eval_bridge.questions.evaluators import evaluator_questions, load_evaluator
from katha.experiments.evaluation.eval_folder import EvalSettings
from katha.experiments.evaluation.evaluate import EvalJob, evaluate
from katha.experiments.inputs.asking import Asking, write_question_set
from katha.experiments.inputs.stories import prepare_stories
from katha.models.base import Completion, Heard, Turn
from katha.schema import StoryRecord
from katha.store import Store
from katha.stories import load_stories

EXAMPLES = Path(__file__).parents[2] / "examples"
RECORD = load_stories(EXAMPLES / "fox_and_crow.json")[0]


def element(scene: int, question: str, answer: str, about: str = "entity", **more: Any) -> dict[str, Any]:
    wrong = more.pop("wrong", [f"no {answer}", f"half {answer}", f"another {answer}"])
    return {"scene": scene, "about": about, "question": question, "answer": answer, "wrong": wrong, **more}


class Scribe:
    """Writes `elements`; as a reader it takes the answer of each question but of those in `otherwise`."""

    def __init__(self, elements: Sequence[Mapping[str, Any]] = (), otherwise: Sequence[str] = ()) -> None:
        self.elements, self.otherwise, self.asked = list(elements), otherwise, list[str]()

    def spec(self) -> Mapping[str, Any]:
        return {"name": "scribe"}

    def complete(
        self, turns: Sequence[Turn], schema: Mapping[str, Any] | None, heard: Heard | None = None
    ) -> Completion:
        assert schema is not None
        self.asked.append(turns[-1].text)
        if "elements" in schema["properties"]:
            return Completion("ok", json.dumps({"elements": self.elements}))
        answers = []
        for block in re.split(r"\n\d+\. ", turns[-1].text)[1:]:
            options = re.findall(r"^ +(\d)\) (.*)$", block, re.MULTILINE)
            right = next(number for number, text in options if not text.startswith(("no ", "half ", "another ")))
            answers.append(0 if any(word in block for word in self.otherwise) else int(right))
        return Completion("ok", json.dumps({"answers": answers}))


FACTS = [
    element(1, "Who sits in the tree?", "a crow"),
    element(1, "What does the crow hold?", "cheese", "relation", depends_on=[1]),
    element(2, "Who comes by?", "a fox"),
    element(2, "What does the fox feel?", "hunger", "emotion", depends_on=[3, 2]),
    element(9, "Who else?", "nobody"),
    element(3, "What falls?", "cheese", wrong=["Cheese", "a leaf", "a stone"]),
]


def test_questions_are_those_that_a_reader_of_the_scenes_answers_alike() -> None:
    author, reader = Scribe(FACTS), Scribe(otherwise=["Who comes by"])
    found = write_elements(author, reader, RECORD, "dsg")
    assert (found.counts.written, found.counts.unusable, found.counts.unread, found.counts.kept) == (6, 2, 1, 3)
    crow, holds, feels = found.questions
    assert crow.question == "Scene 1 of 5: Who sits in the tree?"
    assert (crow.gold_answer, crow.question_type, crow.target_scene) == ("a crow", "action_visibility", 1)
    assert feels.question_type == "emotional"
    assert "depends_on" not in (crow.model_extra or {})
    assert (holds.model_extra or {})["depends_on"] == [crow.question_id]
    assert (feels.model_extra or {})["depends_on"] == [holds.question_id], "the fox was dropped"
    assert all(scene.scene_text.split()[0] in author.asked[0] for scene in RECORD.scenes)
    assert "depends_on" in author.asked[0]
    assert "a crow" not in reader.asked[0].split("1. Scene")[0].split("Scene 1:")[0]


def test_no_place_among_the_options_tells_the_reader() -> None:
    reader = Scribe()
    many = [element(1 + at % 5, f"Thing {at}?", f"thing {at}") for at in range(12)]
    assert len(write_elements(Scribe(many), reader, RECORD, "tifa").questions) == 12
    places = {number for number, text in re.findall(r"^ +(\d)\) (.*)$", reader.asked[0], re.M) if text[:5] == "thing"}
    assert len(places) > 1


def test_a_story_without_scenes_or_without_such_questions_is_refused() -> None:
    with pytest.raises(RecordError, match="has no scenes"):
        write_elements(Scribe(FACTS), Scribe(), StoryRecord(story_id="s", story_text="One."), "tifa")
    with pytest.raises(RecordError, match=r"no questions of the kind 'geneval'") as told:
        evaluator_questions(RECORD, load_evaluator("geneval"))
    assert "--evaluator geneval" in str(told.value.hint)


@pytest.mark.parametrize(("kind", "name"), [("tifa", "tifa-model"), ("dsg", "dsg-model"), ("geneval", "geneval")])
def test_they_are_written_once_kept_beside_the_record_s_own_and_asked(
    kind: Kind, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = KINDS[kind][0]
    author = Scribe([row if row["about"] == "emotion" else {**row, "about": about} for row in FACTS[:3]])
    monkeypatch.setattr("katha.experiments.inputs.asking.make_model", lambda *_, **__: author)
    out = tmp_path / "stories.jsonl"
    asking = Asking("openai:author", evaluator=kind)
    made = write_question_set(EXAMPLES / "fox_and_crow.json", out, asking)
    assert (made.stories, made.making["written"], made.making["kept"], made.making["dropped"]) == (1, 3, 3, 0)
    assert write_question_set(EXAMPLES / "fox_and_crow.json", out, asking).before == 1
    assert len(author.asked) == 2, "nobody is asked again"
    (record,) = load_stories(out)
    assert record.recoverability_questions == RECORD.recoverability_questions
    (ready,) = prepare_stories(str(out), evaluator=load_evaluator(name))([record])
    assert [item.gold_answer for item in ready.recoverability_questions] == ["a crow", "cheese", "a fox"]
    assert all(len(item.options or []) == 5 for item in ready.recoverability_questions)
    # A judge that sees all but the crow: one of three is wrong, and in DSG's kind what depends on it, too.
    wrong = Chooser(lambda _, prompt: next(
        text for text in prompt.options or () if (text in ("A crow", "Cheese", "A fox")) != ("tree" in prompt.question)
    ))  # fmt: skip
    job = EvalJob([ready], [draw(tmp_path / "boards", [ready])], {"j": wrong}, EvalSettings(evaluator=name))
    with Store(tmp_path / "cache") as store:
        block = evaluate(job, tmp_path / "eval", store).scores.methods["boards"].judges["j"].raw
    assert block.image == pytest.approx(100 / 3 if kind == "dsg" else 200 / 3)


def test_what_is_of_own_questions_does_not_go_with_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="for katha's own questions"):
        write_question_set(EXAMPLES / "fox_and_crow.json", tmp_path / "o.jsonl", Asking("m", each=2, evaluator="dsg"))
    words = ["bench", "questions", str(EXAMPLES / "fox_and_crow.json"), "--out", str(tmp_path / "o.jsonl")]
    told = CliRunner().invoke(app, [*words, "--evaluator", "dsg"])
    assert isinstance(told.exception, UsageError)
    assert "needs --model" in told.exception.message
