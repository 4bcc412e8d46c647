"""What many machines share, for tests: a PostgreSQL server in a temporary folder, and an S3 server on loopback."""

from __future__ import annotations

import getpass
import glob
import os
import random
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any, ClassVar

_NOT_ROOT = ("postgres", "nobody")
_QUICK = ("fsync=off", "synchronous_commit=on", "shared_buffers=16MB", "max_connections=60", "listen_addresses=")
_MISSING = "The tests of the shared store need PostgreSQL: apt-get install postgresql"


def quiet_port() -> int:
    """Return a free port that no outgoing connection is given: who serves on it later, or again, finds it free."""
    for port in random.sample(range(25_000, 32_000), 100):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise OSError("a hundred ports are taken")


class PostgresServer:
    """A server of Debian's package on a unix socket in `folder`, which root runs as somebody else: postgres refuses."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._as: dict[str, Any] = {}
        user = getpass.getuser()
        if os.geteuid() == 0:
            import pwd  # this file is read on Windows, too

            known = {entry.pw_name for entry in pwd.getpwall()}
            user = next(name for name in _NOT_ROOT if name in known)
            account = pwd.getpwnam(user)
            shutil.chown(folder, account.pw_uid, account.pw_gid)
            self._as = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self.user = user
        self._count = 0
        self._tool("initdb", "-D", "data", "-U", "katha", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
        self.start()

    def _tool(self, name: str, *words: str) -> None:
        places = [*sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True), os.environ["PATH"]]
        found = shutil.which(name, path=os.pathsep.join(places))
        assert found is not None, _MISSING
        with (self.folder / f"{name}.log").open("ab") as log:
            done = subprocess.run(
                [found, *words],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                timeout=180,
                **self._as,
            )
        assert done.returncode == 0, (self.folder / f"{name}.log").read_text()

    def start(self) -> None:
        """Begin to serve; returns when the server answers."""
        options = " ".join(f"-c {setting}" for setting in _QUICK)
        self._tool("pg_ctl", "-D", "data", "-w", "-l", "server.log", "-o", f"{options} -k {self.folder}", "start")

    def stop(self) -> None:
        """End at once, as a machine does that loses its power; what was committed stays."""
        self._tool("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"postgresql://katha@/postgres?host={self.folder}"

    def fresh(self) -> str:
        """Make a place without a table and return its address: a schema, of which a hundred are soon made and gone."""
        import psycopg

        self._count += 1
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA fresh_{self._count}".encode())
        return f"{self.url}&options=-csearch_path%3Dfresh_{self._count}"


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Yield a server that ends with the block, and its folder with it."""
    with tempfile.TemporaryDirectory(prefix="katha-pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        server = PostgresServer(Path(folder))
        try:
            yield server
        finally:
            server.stop()


_NO_ROOM = b"<Error><Code>XMinioStorageFull</Code><Message>The minimum of free space is reached.</Message></Error>"


class S3Server:
    """moto's server on a free port of loopback. `environment` is what a client needs to find it. `room`: of how many
    bytes more it has the place; None: of any. Servers of one process share moto's memory, so no two make one bucket."""

    _made: ClassVar[Iterator[int]] = count(1)

    def __init__(self) -> None:
        self.room: int | None = None
        self._port = quiet_port()
        self.start()
        self.environment: Mapping[str, str] = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def start(self) -> None:
        """Serve, always on one port; what was written before is still there."""
        from moto.server import ThreadedMotoServer

        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self._port, verbose=False)
        self._server.start()
        served: Any = self._server._server
        inner = served.app

        def app(request: dict[str, Any], begin: Any) -> Any:
            if request["REQUEST_METHOD"] == "PUT" and self.room is not None:
                self.room -= int(request.get("CONTENT_LENGTH") or 0)
                if self.room < 0:
                    begin("507 Insufficient Storage", [("content-type", "application/xml")])
                    return [_NO_ROOM]
            return inner(request, begin)

        served.app = app

    def stop(self) -> None:
        """Stop serving."""
        self._server.stop()

    def bucket(self) -> str:
        """Make an empty bucket and return the address of a folder in it."""
        import boto3

        name = f"bucket-{next(self._made)}"
        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}
        client = boto3.client("s3", endpoint_url=self.environment["AWS_ENDPOINT_URL"], **keys)
        client.create_bucket(Bucket=name)
        client.close()
        return f"s3://{name}/katha"
