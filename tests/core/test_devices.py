"""Models in one process have each other let go of a device."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from katha.errors import UsageError
from katha.models.checkpoints import DeviceModels
from katha.renderers.diffusion import memory


class Holder:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_newcomer_has_the_others_of_its_device_let_go() -> None:
    models, first, second, elsewhere = DeviceModels(), Holder(), Holder(), Holder()
    for device, holder in (("cuda:0", first), ("cuda", second), ("cpu", elsewhere)):
        models.register(device, holder)
    assert models.make_room("cuda", second)
    assert (first.closed, second.closed, elsewhere.closed) == (1, 0, 0)
    assert not models.make_room("cuda:0", second)
    models.release(elsewhere)
    assert not models.make_room("cpu", first)
    assert first.closed == 1


def test_another_device_of_the_same_kind_is_left_alone() -> None:
    models, first, second = DeviceModels(), Holder(), Holder()
    models.register("cuda:0", first)
    models.register("cuda:1", second)
    assert models.make_room("cuda:1", Holder())
    assert (first.closed, second.closed) == (0, 1)


def test_a_holder_that_is_gone_is_forgotten() -> None:
    models = DeviceModels()
    models.register("cuda", Holder())
    gc.collect()
    assert not models.make_room("cuda", Holder())


def test_the_folder_of_locks_is_the_user_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the temporary folder anybody may have made a link of that name."""
    monkeypatch.setattr(memory.tempfile, "gettempdir", lambda: str(tmp_path))
    folder = memory._own_folder()
    assert (folder.stat().st_mode & 0o777) == 0o700
    assert memory._own_folder() == folder
    folder.rmdir()
    (tmp_path / "elsewhere").mkdir()
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="own folder"):
        memory._own_folder()
