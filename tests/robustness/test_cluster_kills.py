"""A suite on two raylets with PostgreSQL, an S3 store and a service: what dies, is lost or is full under it."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator

import cluster_kills
import crews
import pytest
import soak
from cluster_kills import VICTIMS, WORKERS, Site, Whole
from commands import finish

from katha.experiments.cluster.work import open_store


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with cluster_kills.site(soak._server(), tmp_path_factory.mktemp("cluster"), stories=1) as made:
        yield made


@pytest.fixture(scope="module")
def whole(here: Site) -> Whole:
    return cluster_kills.undisturbed(here)


def test_parts_of_a_cluster_are_killed_and_nothing_is_lost(here: Site, whole: Whole) -> None:
    found = cluster_kills.one_round(here, whole, 0, VICTIMS)
    assert found.faults == []
    assert found.killed  # on a quick machine the suite ends before the last
    assert found.twice <= found.may


def test_the_parts_of_a_soak_are_counted(here: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two rounds that are told of, one with a fault."""
    made = [
        cluster_kills.Round(7, ["worker", "objects"], [], 1, 1, 0),
        cluster_kills.Round(8, ["command"], ["other bytes in table.json"], 9, 10, 1),
    ]
    monkeypatch.setattr(cluster_kills, "rounds", lambda *_, **__: iter(made))
    found = soak.cluster(here, 3, 1.0)
    assert (found.done, found.faults) == (3, ["round 8: other bytes in table.json"])
    victims = {"worker": 1, "objects": 1, "command": 1}
    assert found.counts == victims | {"suites": 2, "given again": 1, "paid twice": 10, "in flight": 11}


LOST = {
    "database": r"The database postgresql:///postgres cannot be used: .*Check KATHA_STORE",
    "objects": r"The object store s3://bucket-\d+/katha cannot .*Check KATHA_OBJECTS",
    "room": r"The object store s3://bucket-\d+/katha cannot take a picture: .*free space.*Free some space there",
}


@pytest.mark.parametrize("lost", LOST)
def test_what_is_lost_for_good_is_one_sentence_and_nothing_is_paid_twice(here: Site, whole: Whole, lost: str) -> None:
    """The network to it is cut, or it is full; when it is back, the same command goes on."""
    here.fresh()
    process = here.begin(patience=1.0)
    assert cluster_kills.reaches(here, process, 8.0)
    if lost == "room":
        here.objects.room = 0
    else:
        server = here.database if lost == "database" else here.objects
        server.stop()
    try:
        assert finish(process) == 1
    finally:
        here.objects.room = None
        if lost != "room":
            server.start()
    said = (here.place / "work" / "said").read_text()
    assert re.match(LOST[lost], said), said
    assert "\n" not in said
    assert finish(here.begin()) == 0
    assert crews.results(here.place / "out") == whole.results
    paid = here.paid()
    assert set(paid) == set(whole.paid)
    assert (paid - whole.paid).total() <= WORKERS  # which end with the command, in the middle of a call


def test_a_worker_that_begins_while_the_database_restarts_waits_for_it(
    here: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.fresh()
    for name, value in here.environment(0, 30.0).items():
        monkeypatch.setenv(name, value)
    here.database.stop()
    starter = threading.Thread(target=here.database.start)
    starter.start()
    try:
        with open_store("worker") as store:
            assert store.index.get("frame", "none") is None
    finally:
        starter.join()
