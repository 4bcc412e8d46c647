"""Workers on two machines, which are two raylets of Ray's here, one of which is lost in the middle."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import crews
import pytest
from evals import draw, records

from katha.config import Settings
from katha.errors import KathaError
from katha.experiments.cluster.fleet import Fleet, Place
from katha.experiments.cluster.judged import make_judge
from katha.experiments.cluster.standing import Standing
from katha.experiments.eval_folder import EvalSettings
from katha.experiments.evaluate import EvalJob, evaluate
from katha.store import Store

MEMORY = 80 * 2**20
pytestmark = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <_io.FileIO name='.*ray_client_server:pytest.PytestUnraisableExceptionWarning"
)  # Ray leaves its logs' files open where its client server begins


@pytest.fixture(scope="module")
def machines() -> Iterator[Any]:
    """A cluster whose head does no work, and two machines of one processor each: three workers need both."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(crews.__file__).parent))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        from ray.cluster_utils import Cluster

        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        head = {"num_cpus": 0, "object_store_memory": MEMORY, "include_dashboard": False}
        cluster = Cluster(initialize_head=True, head_node_args={**head, "ray_client_server_port": port})
        cluster.door = f"ray://127.0.0.1:{port}"
        cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
        cluster.lost = cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
        yield cluster
        cluster.shutdown()


def judged(out: Path, work: Path, fleet: Fleet | None, count: int = 12) -> Path:
    config = Settings(judges=("crews:FullJudge",), judge_options={"log": work / "answers"})
    stories, judges = records(count), {"full": make_judge("crews:FullJudge", config)}
    job = EvalJob(stories, [draw(work / "flux", stories)], judges, EvalSettings(resamples=20), config=config)
    with Store(Path(os.environ["KATHA_CACHE"])) as store:
        evaluate(job, out, store, fleet=fleet)
    return out


def test_a_machine_is_lost_and_the_rest_goes_on(machines: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def place(name: str) -> Path:
        (tmp_path / name).mkdir()
        monkeypatch.setenv("KATHA_CACHE", str(tmp_path / name / "cache"))
        return tmp_path / name

    alone = judged(tmp_path / "alone", place("first"), None)
    said: list[str] = []
    gone: list[Any] = []

    def heard(standing: Standing, sentence: str) -> None:
        said.extend([sentence] if sentence else [])
        if not gone and standing.ended:  # the first item has ended: a machine falls out of the network
            gone.append(machines.lost)
            machines.remove_node(machines.lost, allow_graceful=False)

    with Fleet(Place(None, count=3, address=machines.address), heard) as fleet:
        out = judged(tmp_path / "out", place("second"), fleet)
    assert gone
    for name in ("answers.jsonl", "scores.json"):
        assert (out / name).read_bytes() == (alone / name).read_bytes()
    before, after = (crews.lines(tmp_path / name / "answers") for name in ("first", "second"))
    assert set(before) == set(after)
    assert all("died" in sentence or "has found no room" in sentence for sentence in said)


@pytest.mark.skipif(
    "KATHA_RAY_CLIENT" not in os.environ,
    reason="Ray's client server may not begin in its 30 s beside other tests; KATHA_RAY_CLIENT=1 runs it",
)
def test_a_command_outside_of_the_cluster_works_through_its_client_server(
    machines: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ray://`: the driver is a process of the head's; the command's own has only a line to it, which breaks."""
    import ray

    said: list[str] = []
    lines = [machines.head_node]

    def place(name: str) -> Path:
        (tmp_path / name).mkdir()
        monkeypatch.setenv("KATHA_CACHE", str(tmp_path / name / "cache"))
        return tmp_path / name

    def heard(standing: Standing, sentence: str) -> None:
        said.extend([sentence] if sentence else [])

    def breaks(standing: Standing, sentence: str) -> None:
        if standing.ended and lines:
            lines.pop()._kill_process_type("ray_client_server")

    monkeypatch.setenv("RAY_CLIENT_RECONNECT_GRACE_PERIOD", "1")
    alone, there = judged(tmp_path / "alone", place("first"), None, 4), Place(None, count=2, address=machines.door)
    with Fleet(there, heard) as fleet:
        out = judged(tmp_path / "out", place("second"), fleet, 4)
        assert ray.util.client.ray.is_connected()
    assert not said
    for name in ("answers.jsonl", "scores.json"):
        assert (out / name).read_bytes() == (alone / name).read_bytes()
    assert "begins on" in (out / "workers/worker-1.log").read_text()
    with Fleet(there, breaks) as fleet, pytest.raises(KathaError, match="broke: "):
        judged(tmp_path / "broken", place("third"), fleet, 4)
