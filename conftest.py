"""Fixtures that several test files share, and the marks that say of which kind a test is."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from kinds import PROCESSES, SLOW, UNIT, listed
from services import PostgresServer, S3Server, postgres_server


def pytest_configure() -> None:
    """Let nothing fail because the machine is busy: how long an example takes to make is no property of the code.

    Toy models get one thread, in this process and in those that it starts: several wait for each other where tests run
    side by side, many times as long as one computes.
    """
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("busy")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave other modules unread where only unit tests are wanted: importing torch takes longer than those tests."""
    if config.option.markexpr != "unit" or not collection_path.name.startswith("test_"):
        return None
    return None if listed(collection_path, UNIT) else True


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark each test as `unit` or `integration`, as `slow` and of `processes`, by tests/support/kinds.py."""
    for item in items:
        item.add_marker("unit" if listed(item.path, UNIT) else "integration")
        if listed(item.path, SLOW):
            item.add_marker("slow")
        if listed(item.path, PROCESSES):
            item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(autouse=True, scope="session")
def _no_token_of_ray() -> Iterator[None]:
    """Have Ray ask for no token: the first cluster would leave one in the home folder and for the whole process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_AUTH_MODE", "disabled")
        yield


@pytest.fixture(autouse=True, scope="session")
def _nothing_of_the_developer() -> Iterator[None]:
    """Have no test take what is on the machine it runs on: neither keys, nor servers of models, nor a card."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "OPENAI_BASE_URL"):
            patch.delenv(name, raising=False)
        patch.setenv("KATHA_NO_PROBE", "1")
        yield


_VENDORS = ("api.anthropic.com", "api.openai.com", "googleapis.com", "huggingface.co")


@pytest.fixture(autouse=True, scope="session")
def _nobody_outside() -> Iterator[None]:
    """Fail a test that asks a vendor: it would wait through every retry for a network that tests do without."""
    look_up = socket.getaddrinfo

    def found(host: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(host, str) and host.endswith(_VENDORS):
            pytest.fail(f"A test asks {host}: give it a loopback server, or a rule that needs no model.")
        return look_up(host, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket, "getaddrinfo", found)
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    """The folder of a toy diffusion model of a family, made when it is first asked for."""
    from tiny_diffusion import build

    from katha.renderers.diffusion.memory import process_pool

    folder = tmp_path_factory.mktemp("models")
    yield lambda family: folder / family if (folder / family).exists() else build(family, folder / family)
    process_pool().release()


@pytest.fixture
def toy_diffusion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A cache of its own, pictures of toy size for the models that fix theirs, one thread."""
    import torch
    from tiny_diffusion import shrink

    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    shrink(monkeypatch)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server; whoever stops it starts it again."""
    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def s3() -> Iterator[S3Server]:
    """An S3 server on loopback; `s3_keys` lets a test find it."""
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def s3_keys(s3: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The S3 server, in the environment."""
    for name, value in s3.environment.items():
        monkeypatch.setenv(name, value)
    return s3
