"""Pictures made in a process beside this one.

The library that makes pixels of a drawing keeps Python's lock while it works: nothing else of a process gets on in the
meantime. In a process of its own it works on another core, while this one reads the frames before.
"""

from __future__ import annotations

import atexit
import os
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from katha.renderers.sketch.svg import rasterise

__all__ = ["Rasters", "shared_rasters"]

_ASKED = struct.Struct("<III")
"""Bytes of the drawing, width, height."""
_GIVEN = struct.Struct("<I")
_WORK = """
import signal, struct, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path.append(sys.argv[1])
import resvg_py
asked, given = sys.stdin.buffer, sys.stdout.buffer
while len(head := asked.read(12)) == 12:
    size, width, height = struct.unpack("<III", head)
    svg = asked.read(size).decode()
    png = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width, height=height, skip_system_fonts=True))
    given.write(struct.pack("<I", len(png)) + png)
    given.flush()
"""
"""What the process does until nobody asks any more: the same as `rasterise`."""
_PATIENCE = 5.0


class Rasters:
    """One process that rasterises, begun with the first drawing. Whatever it fails at is done in this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self._able = (os.cpu_count() or 1) > 1

    @property
    def begun(self) -> bool:
        """Return whether the process is there already, so that another drawing costs nothing to begin."""
        return self._process is not None and os.getpid() == self._owner

    def draw(self, svg: str, width: int, height: int) -> bytes:
        """Return what `rasterise` does."""
        with self._lock:
            png = self._drawn(svg.encode(), width, height) if self._able and os.getpid() == self._owner else None
        return rasterise(svg, width, height) if png is None else png

    def close(self) -> None:
        """End the process."""
        process, self._process, self._able = self._process, None, False
        if process is None or os.getpid() != self._owner:
            return
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # what was still to be written, to one that is gone
                if pipe is not None:
                    pipe.close()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _drawn(self, svg: bytes, width: int, height: int) -> bytes | None:
        """The picture from the other process; None, from then on, where that cannot be had."""
        try:
            process = self._process = self._process or _begun()
            asked, given = process.stdin, process.stdout
            if asked is None or given is None:
                raise OSError
            asked.write(_ASKED.pack(len(svg), width, height) + svg)
            asked.flush()
            return _taken(given, _GIVEN.unpack(_taken(given, _GIVEN.size))[0])
        except (OSError, ImportError):
            self.close()
            return None


def _taken(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise OSError("It ended.")
    return data


def _begun() -> subprocess.Popen[bytes]:
    """The process, which needs no more of this installation than the library.

    Raises:
        OSError, ImportError: it cannot be had.
    """
    found = find_spec("resvg_py")
    if found is None or found.origin is None or not sys.executable:
        raise ImportError("resvg_py")
    folder = Path(found.origin).parent
    place = folder.parent if found.submodule_search_locations else folder
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _WORK, str(place)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


@cache
def shared_rasters() -> Rasters:
    """Return the one of this process, ended with it."""
    rasters = Rasters()
    atexit.register(rasters.close)
    return rasters
