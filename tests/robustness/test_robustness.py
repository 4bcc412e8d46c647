"""A short soak: every part of `make soak` with as many cases as fit into a test run."""

from __future__ import annotations

from pathlib import Path

import soak
from fault_server import KINDS


def test_bad_inputs_are_sentences(tmp_path: Path) -> None:
    found = soak.bad_inputs(tmp_path, 80, 25.0)
    assert found.faults == []
    assert found.done >= 20


def test_questions_to_a_failing_server_are_all_accounted_for(tmp_path: Path) -> None:
    assert len(KINDS) >= 30
    found = soak.faults(tmp_path, 360)
    assert found.faults == []
    assert found.done == 360
    assert found.counts["kinds of faults"] >= 30
    assert found.counts["transport_failed"] > 10


def test_kills_leave_the_same_bytes(tmp_path: Path) -> None:
    found = soak.kills(tmp_path, 6, 20.0, ("eval",))
    assert found.faults == []
    assert found.done


def test_four_processes_share_one_cache(tmp_path: Path) -> None:
    found = soak.together(tmp_path)
    assert found.faults == []
    assert found.done == 4


def test_damaged_pictures_are_one_type_of_error() -> None:
    found = soak.pictures(1_200, 10.0)
    assert found.faults == []
    assert found.done
