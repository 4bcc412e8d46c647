"""The index that many machines share: records and claims in PostgreSQL.

A claim is a lease: it is renewed while its holder lives, and another may take it over when it has run out, by the
database's clock and nobody else's. A holder that was only slow then finds that the first writer's record stands.
"""

from __future__ import annotations

import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from katha.addresses import shown
from katha.errors import MissingExtraError, StoreError, UsageError, first_line
from katha.installing import install_line
from katha.jsonio import sha256_hex
from katha.sqlite_index import IndexRecord, keep_broken, retry_while_locked

if TYPE_CHECKING:
    from psycopg import Connection

_CONNECTIONS = 4
"""At most so many a process: a database has a hundred, and a statement takes a millisecond."""
_LINE: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "katha",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""What the address does not say otherwise: a machine that has gone without a word is found out within half a minute."""
# Rows a round trip: a list of millions does not fill the memory.
_PAGE = 500
_LONGEST_WORK = 500
_SCHEMA = (
    "SELECT pg_advisory_xact_lock(7310591240)",  # two machines that begin at once make the tables once
    """CREATE TABLE IF NOT EXISTS katha_entries (
    kind text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL, owner text NOT NULL, sha256 text NOT NULL,
    value bytea NOT NULL, PRIMARY KEY (kind, key))""",
    "CREATE INDEX IF NOT EXISTS katha_entries_owner ON katha_entries (owner, kind)",
    """CREATE TABLE IF NOT EXISTS katha_claims (
    work text COLLATE "C" PRIMARY KEY, holder text NOT NULL, until timestamptz NOT NULL)""",
)
_TAKE = """INSERT INTO katha_claims (work, holder, until)
VALUES (%(work)s, %(holder)s, clock_timestamp() + make_interval(secs => %(lease)s))
ON CONFLICT (work) DO UPDATE SET holder = EXCLUDED.holder, until = EXCLUDED.until
WHERE katha_claims.until < clock_timestamp() OR katha_claims.holder = EXCLUDED.holder RETURNING 1"""
_RENEW = """UPDATE katha_claims SET until = clock_timestamp() + make_interval(secs => %(lease)s)
WHERE holder = ANY(%(holders)s)"""


class PostgresIndex:
    """Records by `(kind, key)`, each with the sha256 of its bytes and the run (`owner`) that paid for it; claims."""

    def __init__(
        self,
        url: str,
        quarantine: Path,
        owner: str = "",
        *,
        lease: float = 60.0,
        patience: float = 30.0,
        outbox: Callable[[IndexRecord], None] | None = None,
    ) -> None:
        """outbox: where a record goes that the database does not take. lease, patience: seconds; see `StoreAddress`.

        Raises:
            MissingExtraError: psycopg is not installed. StoreError: the database cannot be reached.
        """
        self.place = shown(url)
        self.quarantine = quarantine
        self._owner, self._lease, self._patience = owner, lease, patience
        self._outbox = outbox
        self._places = threading.BoundedSemaphore(_CONNECTIONS)
        self._idle: deque[Connection[Any]] = deque()
        self._held: set[str] = set()
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._heart: threading.Thread | None = None
        self._connect, self._error = connector(url)
        self._prepare()

    def get(self, kind: str, key: str) -> bytes | None:
        """Return the record, verified; a record that fails its hash is quarantined and gone."""
        rows = self._run("SELECT value, sha256 FROM katha_entries WHERE kind = %s AND key = %s", kind, key)
        if not rows or sha256_hex(rows[0][0]) == rows[0][1]:
            return bytes(rows[0][0]) if rows else None
        keep_broken(self.quarantine, kind, key, bytes(rows[0][0]))
        self._run(
            "DELETE FROM katha_entries WHERE kind = %s AND key = %s AND sha256 = %s AND value = %s",
            *(kind, key, rows[0][1], rows[0][0]),
        )
        return None

    def put(self, kind: str, key: str, value: bytes, owner: str | None = None) -> None:
        """Record `value`; the first writer wins. `owner` paid for it: the index's unless told.

        Raises:
            StoreError: the database is lost or refuses the record. This machine keeps it, for when it is back.
        """
        whose = self._owner if owner is None else owner
        try:
            self._run(
                "INSERT INTO katha_entries (kind, key, owner, sha256, value) VALUES (%s, %s, %s, %s, %s) "
                "ON CONFLICT DO NOTHING",
                *(kind, key, whose, sha256_hex(value), value),
            )
        except StoreError:
            if self._outbox is not None:
                self._outbox(IndexRecord(kind, key, whose, value))
            raise

    def drop(self, kind: str, key: str) -> None:
        """Forget one record."""
        self._run("DELETE FROM katha_entries WHERE kind = %s AND key = %s", kind, key)

    def paid(self, kind: str) -> int:
        """Return how many records of `kind` the owner has paid for, over all its processes and machines."""
        if not self._owner:
            return 0
        counted = self._run("SELECT COUNT(*) FROM katha_entries WHERE kind = %s AND owner = %s", kind, self._owner)
        return int(counted[0][0])

    def records(self, kind: str = "") -> Iterator[IndexRecord]:
        """Yield the records (of one kind) in the order of their keys; broken ones are left out."""
        for of, key, owner, sha256, value in self._rows(kind):
            if sha256_hex(value) == sha256:
                yield IndexRecord(of, key, owner, bytes(value))

    def check(self) -> tuple[int, int]:
        """Look at every record; return how many there are, and how many were broken (they are in quarantine now)."""
        count = broken = 0
        for kind, key, _, sha256, value in self._rows(""):
            count += 1
            if sha256_hex(value) != sha256:
                broken += self.get(kind, key) is None
        return count, broken

    @contextmanager
    def claim(self, work: str) -> Iterator[None]:
        """Hold a piece of work alone, between threads, processes and machines; who dies loses it after the lease."""
        name = work if len(work) <= _LONGEST_WORK and "\0" not in work else sha256_hex(work.encode("utf-8"))
        holder = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex}"
        pause = 0.005
        while not self._run(_TAKE, {"work": name, "holder": holder, "lease": self._lease}):
            self._closed.wait(pause)
            pause = min(pause * 1.5, 0.25)
        with self._lock:
            self._held.add(holder)
            if self._heart is None:
                self._heart = threading.Thread(target=self._beat, name="katha-leases", daemon=True)
                self._heart.start()
        give_back = self._once  # what failed may have failed by a lost database, which was waited for
        try:
            yield
            give_back = self._run
        finally:
            with self._lock:
                self._held.discard(holder)
            with suppress(self._error, StoreError):  # a claim that cannot be given back runs out
                give_back("DELETE FROM katha_claims WHERE work = %s AND holder = %s", name, holder)

    def _beat(self) -> None:
        """Renew what is held, three times a lease; what is lost to another stays lost."""
        while not self._closed.wait(self._lease / 3):
            with self._lock:
                holders = list(self._held)
            if holders:
                with suppress(self._error):
                    self._once(_RENEW, {"lease": self._lease, "holders": holders})

    def sweep(self) -> int:
        """Remove the claims whose lease is over; return how many."""
        return len(self._run("DELETE FROM katha_claims WHERE until < clock_timestamp() RETURNING 1"))

    def flush(self) -> None:
        """Everything recorded is durable: the database commits record by record."""

    def close(self) -> None:
        """Let go of the database; the records stay."""
        self._closed.set()
        if self._heart is not None:
            self._heart.join()
        self._forget()

    def _rows(self, kind: str) -> Iterator[tuple[Any, ...]]:
        last = ("", "")
        page = (
            "SELECT kind, key, owner, sha256, value FROM katha_entries WHERE (kind, key) > (%s, %s) "
            "AND (%s = '' OR kind = %s) ORDER BY kind, key LIMIT %s"
        )
        while rows := self._run(page, *last, kind, kind, _PAGE):
            last = (rows[-1][0], rows[-1][1])
            yield from rows

    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Return the rows of one statement; a database that is away is waited for. Each may be given twice."""
        try:
            return retry_while_locked(lambda: self._once(statement, *values), self._patience, _passes)
        except self._error as error:
            raise explained(self.place, error) from error

    def _once(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        given = values[0] if values and isinstance(values[0], dict) else values
        with self._places:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            try:
                cursor = connection.execute(statement.encode(), given)
                rows = cursor.fetchall() if cursor.description else []
            except BaseException:
                connection.close()
                self._forget()  # the server that ended this one has ended the others
                raise
            self._idle.append(connection)
            return rows

    def _forget(self) -> None:
        while self._idle:
            with suppress(IndexError):
                self._idle.pop().close()

    def _prepare(self) -> None:
        """Make the tables where there are none. At once or not at all: an address that is wrong should say so."""
        try:
            connection = self._connect()
            try:
                with connection.transaction():
                    for statement in _SCHEMA:
                        connection.execute(statement.encode())
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)
        except self._error as error:
            raise explained(self.place, error) from error


_FULL = "53100"


def _passes(error: BaseException) -> bool:
    """Return whether an error of the database is one of its absence: a restart, a lost line, no place left."""
    import psycopg

    gone = isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return gone and getattr(error, "sqlstate", None) != _FULL


def connector(url: str) -> tuple[Callable[..., Connection[Any]], type[Exception]]:
    """Return what connects to a database (with more arguments of psycopg's), and the errors that it may raise.

    Raises:
        MissingExtraError: psycopg is not installed. UsageError: `url` is not an address of a database.
    """
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError("PostgreSQL needs psycopg.", hint=install_line("cluster")) from error
    try:
        where = {**_LINE, **psycopg.conninfo.conninfo_to_dict(url)}
    except psycopg.ProgrammingError as error:
        raise UsageError(f"KATHA_STORE cannot be {shown(url)!r}: {first_line(error).rstrip('.')}.") from error
    # No prepared statements: a pooler between katha and the database may hand each statement to another session.
    return partial(psycopg.connect, autocommit=True, prepare_threshold=None, **where), psycopg.Error


def explained(place: str, error: Exception) -> StoreError:
    """Return what to say of a database that fails."""
    full = getattr(error, "sqlstate", None) == _FULL
    hint = "Free some space there" if full else "Check KATHA_STORE and that PostgreSQL runs there"
    return StoreError(
        f"The database {place} cannot be used: {first_line(error)[:300].rstrip('.')}.",
        hint=f"{hint}, and run the same command again: what is done is kept.",
    )
