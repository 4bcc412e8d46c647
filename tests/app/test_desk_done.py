"""What the desk says when a change is done."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from katha.agents.editor.edits import (
    AddFrame,
    AmendFrame,
    ChangeCharacter,
    ChangeFrame,
    Edit,
    GivePicture,
    LockFrame,
    MoveFrame,
    RemoveFrame,
    TakeFrame,
)
from katha.app.desk.done import said_of


@pytest.mark.parametrize(
    ("edits", "drawn", "said"),
    [
        ([ChangeFrame(frame=3, prompt="A dog runs.")], [3], "Frame 3 is drawn again."),
        ([ChangeFrame(frame=3, notes="Softer.")], [], "Frame 3 is saved."),
        ([AmendFrame(frame=2, words="A bigger dog.")], [2], "Frame 2 is drawn again."),
        ([GivePicture(frame=3, picture="0" * 64)], [], "Frame 3 has its new picture."),
        ([TakeFrame(frame=4, seed=7)], [4], "Frame 4 has its new picture."),
        ([ChangeCharacter(name="Mr Green", age="old")], [1, 4, 5], "Frames 1, 4 and 5 are drawn again."),
        ([MoveFrame(frame=1, to=3)], [2], "Frame 1 is number 3 now."),
        ([AddFrame(at=2, prompt="A dog runs.")], [2], "Frame 2 is new."),
        ([RemoveFrame(frame=2)], [], "Frame 2 is taken out."),
        ([LockFrame(frame=1), LockFrame(frame=2, locked=False)], [], "Frame 1 is locked. Frame 2 is unlocked."),
    ],
)
def test_a_change_is_said_in_a_short_sentence(edits: Sequence[Edit], drawn: Sequence[int], said: str) -> None:
    assert said_of(edits, drawn) == said
