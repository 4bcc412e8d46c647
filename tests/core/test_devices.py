"""Models in one process have each other let go of a device."""

from __future__ import annotations

import gc

from katha.models.checkpoints import Tenants


class Holder:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


def test_a_newcomer_has_the_others_of_its_device_let_go() -> None:
    tenants, first, second, elsewhere = Tenants(), Holder(), Holder(), Holder()
    for device, tenant in (("cuda:0", first), ("cuda", second), ("cpu", elsewhere)):
        tenants.move_in(device, tenant)
    assert tenants.make_room("cuda", second)
    assert (first.closed, second.closed, elsewhere.closed) == (1, 0, 0)
    assert not tenants.make_room("cuda:0", second)
    tenants.move_out(elsewhere)
    assert not tenants.make_room("cpu", first)
    assert first.closed == 1


def test_a_tenant_that_is_gone_is_forgotten() -> None:
    tenants = Tenants()
    tenants.move_in("cuda", Holder())
    gc.collect()
    assert not tenants.make_room("cuda", Holder())
