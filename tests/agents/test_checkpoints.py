"""What LangGraph keeps of the state comes back as the records that it was, and nothing else is made from a file."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from doubles import plugins, story
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from katha.agents.run import run_story
from katha.agents.state import CHECKPOINTED, InsertionPlace, ReviewChoice
from katha.config import Settings
from katha.schema import CompassSettings, Missed, Move, Panel, RepairEvidence, Tried


def test_every_record_of_the_state_comes_back_from_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    config = Settings(planner="scenes", renderer="block", judges=("pixel",), compass={"repair_threshold": 1.0})
    found = run_story(story(), config, tmp_path / "out", plugins=plugins()).candidates
    candidate = found.candidates[-1]
    move = Move(kind="again", pair=(1, 2), panels=[Panel(index=1, prompt="A lion.")], reason="Why not.")
    missed = Missed(question_id="q", question="Who?", dimension="causal", wanted="A lion", answered={"pixel": "A cat"})
    values = [
        candidate,
        candidate.board,
        found.decision,
        InsertionPlace(pair=(1, 2), reason="weak", insert=True),
        ReviewChoice("edit", prompt="The lion sits."),
        move,
        RepairEvidence(pair=(1, 2), asked=1, missed=[missed], seen={"pixel": "A lion."}),
        Tried(round=1, move=move, candidates=["move.1.1:42"], best="move.1.1:42", gain=0.1, accepted=True, reason="."),
    ]
    assert {type(value) for value in values} == set(CHECKPOINTED)
    serializer = JsonPlusSerializer(allowed_msgpack_modules=CHECKPOINTED)
    with caplog.at_level(logging.WARNING):
        assert serializer.loads_typed(serializer.dumps_typed({"all": values})) == {"all": values}
    assert caplog.records == []
    assert not isinstance(serializer.loads_typed(serializer.dumps_typed(CompassSettings())), CompassSettings)
