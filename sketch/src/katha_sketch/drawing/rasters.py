"""Pictures made in processes beside this one.

The library that makes pixels of a drawing keeps Python's lock while it works: nothing else of a process gets on in the
meantime. In a process of its own it works on another core, while this one reads the frames before.
"""

from __future__ import annotations

import atexit
import os
import struct
import subprocess
import sys
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from queue import LifoQueue
from typing import IO

from katha_sketch.drawing.svg import rasterise

__all__ = ["MOST", "Rasters", "shared_rasters"]

MOST = 2
"""Processes at once: two draw as fast as one process reads."""

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
    """Processes that rasterise, each begun when those before it are at work. Whatever they fail at is done in this
    process."""

    def __init__(self, most: int = MOST) -> None:
        self._owner, self._able = os.getpid(), (os.cpu_count() or 1) > 1
        self._all = [_Raster() for _ in range(most)]
        self._free: LifoQueue[_Raster] = LifoQueue()
        for raster in reversed(self._all):
            self._free.put(raster)

    @property
    def begun(self) -> bool:
        """Return whether a process is there already, so that another drawing has nothing to wait for."""
        return os.getpid() == self._owner and any(raster.begun for raster in self._all)

    def draw(self, svg: str, width: int, height: int) -> bytes:
        """Return what `rasterise` does."""
        if not self._able or os.getpid() != self._owner:
            return rasterise(svg, width, height)
        raster = self._free.get()
        try:
            return raster.draw(svg.encode(), width, height)
        except (OSError, ImportError):  # from then on all is done here
            self._able = False
            return rasterise(svg, width, height)
        finally:
            self._free.put(raster)

    def close(self) -> None:
        """End the processes."""
        self._able = False
        for raster in self._all if os.getpid() == self._owner else ():
            raster.close()


class _Raster:
    """One process that rasterises, begun with its first drawing."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def begun(self) -> bool:
        return self._process is not None

    def draw(self, svg: bytes, width: int, height: int) -> bytes:
        """Return the picture of one drawing.

        Raises:
            OSError, ImportError: the process cannot be had any more, and has ended.
        """
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
            raise

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None:
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
