"""A short soak: every part of `make soak` with as many cases as fit into a test run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import soak
import typer
from bad_inputs import APART, VERBS
from fault_server import KINDS
from pydantic import ValidationError
from schemas import MODELS, text_of

from katha.app.cli import main as cli
from katha.errors import KathaError


def test_bad_inputs_are_sentences(tmp_path: Path) -> None:
    """In a process of its own: what forks beside the threads of other tests' libraries can hang."""
    said, words = tmp_path / "said.json", ("--part", "inputs", "--minutes", "0.42", "--json")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, soak.__file__, *words, said], env=environment, timeout=600, check=False)
    (found,) = json.loads(said.read_text("utf-8"))
    assert found["faults"] == []
    assert found["done"] >= 20


def test_nothing_that_is_brought_to_a_door_is_lost_or_unexpected() -> None:
    found = soak.doors(200, 120)
    assert found.faults == []
    assert found.done == 200


def test_every_verb_is_given_bad_files() -> None:
    every, verbs = set[str](), typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
    for name in cli.VERBS:
        inner = list(getattr(verbs[name], "commands", ()))
        every |= {f"{name} {one}" for one in inner} if inner and name not in APART else {name}
    given = {" ".join(words[:2]) for _, _, words in VERBS} | {words[0] for _, _, words in VERBS}
    assert every - given - set(APART) == set()
    assert set(APART) <= every


def test_files_are_made_from_schemas_whole_and_broken() -> None:
    outcomes = Counter[bool]()
    for kind, model in MODELS.items():
        texts = [text_of(kind, number) for number in range(6)]
        assert texts[:2] == [text_of(kind, number) for number in range(2)]
        assert len(set(texts)) > 3
        for text in texts:
            try:
                model.model_validate_json(text)
                outcomes[True] += 1
            except (ValidationError, KathaError):  # and nothing else: a validator sees what it was not written for
                outcomes[False] += 1
    assert outcomes[False] > outcomes[True] > 5


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
