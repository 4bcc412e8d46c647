"""Start the desk: a server on loopback under an address that holds a token, and a browser on it."""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import webbrowser
import zlib
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import quote

from katha.app.desk.guard import Guard
from katha.app.desk.room import Room
from katha.app.desk.server import make_application, new_token
from katha.errors import MissingExtraError, UsageError
from katha.installing import install_line

HOST = "127.0.0.1"
_STOP_SECONDS = 3.0
_PORTS = range(20_000, 32_000)
"""Below those that systems give out by themselves."""


def _listening(room: Room, port: int) -> socket.socket:
    """Return a socket that listens on loopback; without a port at the folder's own, where a browser gives back what it
    kept while no desk was open.

    Raises:
        UsageError: the port that was told is taken.
    """
    usual = _PORTS[zlib.crc32(os.fsencode(room.front.home.absolute())) % len(_PORTS)]
    if not port:
        with suppress(OSError):
            return _bound(usual)
    try:
        return _bound(port)
    except OSError as error:
        said = f"Port {port} of this machine cannot be used: {error.strerror}."
        raise UsageError(said, hint="Leave --port out, and a free one is taken.") from error


def _bound(port: int) -> socket.socket:
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((HOST, port))
        made.listen(128)
    except OSError:
        made.close()
        raise
    return made


def serve(
    room: Room, run: str = "", *, port: int = 0, browse: bool = True, ready: Callable[[str], None] = print
) -> None:
    """Serve the desk until it is stopped (Ctrl-C); what is under way is stopped, and what it did is kept.

    A step that takes long (a frame of a large model) is left where it is: its run goes on from the step before.

    run: the board that the address leads to; empty for the list of boards.
    port: 0 for the folder's own, or any that is free. browse: open a browser on it. ready: hears the address.

    Raises:
        MissingExtraError: the extra `desk` is not installed. UsageError: the port is taken.
    """
    try:
        import uvicorn

        application = make_application(room)
    except ImportError as error:
        hint = f"Install it: {install_line('desk')}."
        raise MissingExtraError(f"The desk needs {error.name!r}, which is not installed.", hint=hint) from error
    with _listening(room, port) as listening:
        own, token = listening.getsockname()[1], new_token()
        address = f"http://{HOST}:{own}/{token}/{f'#/board/{quote(run)}' if run else ''}"
        config = uvicorn.Config(
            Guard(application, token, own),
            log_level="error",
            access_log=False,  # it would write the token down
            server_header=False,
            date_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=1,
        )
        server = uvicorn.Server(config)
        ready(address)
        if browse:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        ended = 128 + signal.SIGINT
        try:
            server.run(sockets=[listening])
        except BaseException as error:  # the system's request to end brings its exit code along
            ended = next((code for code in error.args if isinstance(code, int)), ended)
            raise
        finally:
            room.stop()
            if not room.join(_STOP_SECONDS):
                sys.stdout.flush()
                os._exit(ended)  # else the interpreter would wait for the renderer's thread
