"""Pictures of SVG that nobody vouches for, made in processes that may be killed.

A drawing of ordinary size costs at most its seconds of a processor and 300 MB: the process that goes beyond is ended
by the system, or by this one where the system cannot, and the next drawing gets a new process.
"""

from __future__ import annotations

import atexit
import os
import re
import signal
import struct
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from queue import LifoQueue
from typing import IO, TYPE_CHECKING

from katha.errors import RenderError
from katha.pictures import MAX_PIXELS, as_png, decode
from katha.renderers.vector.svg import DrawingFault

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["layers", "rasterise"]

# A drawing that needs more is a bomb of filters or tiles.
MOST_MEMORY = 300_000_000
SECONDS = 2.0
SECONDS_PASSED = 8.0
"""For a drawing that was made within `SECONDS` at half the width and height, or nearly."""
_ORDINARY = 1_000_000
"""Pixels of a picture that gets no more than its seconds."""
_FOR_EACH = 4
"""Pictures of a batch for which another process is worth while."""
# Each holds a renderer of its own; a board has some ten frames.
_MOST_PROCESSES = 4
_WALL = 30.0 if hasattr(signal, "setitimer") else 3.0
"""How many times its seconds a drawing may take by the clock, where other work may be in its way."""
_ASKED = struct.Struct("<IIId")
"""Bytes of the drawing, width, height, seconds."""
_GIVEN = struct.Struct("<BI")
"""Whether it is a picture, and its bytes."""
_WORK = """
import signal, struct, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path.append(sys.argv[1])
import resvg_py
try:
    import resource
    for kind, most in ((resource.RLIMIT_AS, int(sys.argv[2])), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, most))
except (ImportError, ValueError, OSError):
    pass
timed = getattr(signal, "setitimer", None)
asked, given = sys.stdin.buffer, sys.stdout.buffer
while len(head := asked.read(20)) == 20:
    size, width, height, seconds = struct.unpack("<IIId", head)
    svg = asked.read(size).decode()
    if timed:
        timed(signal.ITIMER_PROF, seconds)
    try:
        drawn = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=width, height=height, skip_system_fonts=True))
        good = 1
    except MemoryError:
        sys.exit(1)
    except BaseException as error:
        good, drawn = 0, str(error)[:200].encode()
    if timed:
        timed(signal.ITIMER_PROF, 0)
    given.write(struct.pack("<BI", good, len(drawn)))
    given.write(drawn)
    given.flush()
"""
"""What a process does until nobody asks any more. It is ended by the signal of its timer, and nothing catches that."""
_ROOT = re.compile(r"""<svg\b(?:[^<>"']|"[^"]*"|'[^']*')*?(/?>)""")
_EFFECT = re.compile(r"""\s(filter|mask|clip-path)\s*=\s*["']url\(#([\w.:-]+)\)""")
_SIZED = re.compile(r"""\s(?:width|height|preserveAspectRatio)\s*=\s*(?:"[^"]*"|'[^']*')""")


def rasterise(svg: str, width: int, height: int, *, seconds: float = SECONDS) -> bytes:
    """Return the PNG (RGB, no metadata) of an SVG that `read_svg` let pass, what is bare in it white. seconds: for a
    picture of a million pixels; a larger one has as many times more.

    Raises:
        DrawingFault: it takes too long or too much memory, or is not an SVG.
        RenderError: no process can be begun.
    """
    return as_png(decode(_drawn([(svg, width, height)], seconds)[0], "The drawing"))


def layers(asked: Sequence[tuple[str, int, int]], *, seconds: float = SECONDS) -> list[Image]:
    """Return SVGs, each of a width and height, as RGBA pictures, in order; several are made at once.

    Raises:
        DrawingFault, RenderError: see `rasterise`.
    """
    hands = max(1, min(len(_processes()), len(asked) // _FOR_EACH))
    with ThreadPoolExecutor(hands) as pool:
        shares = [pool.submit(_drawn, asked[place::hands], seconds) for place in range(hands)]
    pictures: dict[int, bytes] = {}
    for place, share in enumerate(shares):
        pictures.update(zip(range(place, len(asked), hands), share.result(), strict=True))
    return [decode(pictures[place], "The drawing", alpha=True) for place in range(len(asked))]


def _drawn(asked: Sequence[tuple[str, int, int]], seconds: float) -> list[bytes]:
    with _processes().one() as process:
        return [
            process.draw(_sized(svg, wide, high), wide, high, seconds * max(1.0, wide * high / _ORDINARY))
            for svg, wide, high in asked
        ]


def _sized(svg: str, width: int, height: int) -> bytes:
    """Return the SVG with a root of that size, which its picture fills."""
    if not 0 < width * height <= MAX_PIXELS or min(width, height) < 1:
        raise DrawingFault(f"A picture of {width} x {height} pixels is not drawn: at most {MAX_PIXELS:,} pixels are.")
    found = _ROOT.search(svg)
    if found is None:
        raise DrawingFault("There is no <svg> to draw: write one whole <svg> element.")
    tag = _SIZED.sub("", found[0]).removesuffix(found[1])
    size = f'width="{width}" height="{height}" preserveAspectRatio="xMidYMid slice"'
    return f"{svg[: found.start()]}{tag} {size}{found[1]}{svg[found.end() :]}".encode(errors="replace")


class _Processes:
    """The processes of this program, each begun when those before it are at work."""

    def __init__(self, program: int) -> None:
        self._owner = program
        self._all = [_Process() for _ in range(max(1, min(_MOST_PROCESSES, os.cpu_count() or 1)))]
        self._free: LifoQueue[_Process] = LifoQueue()
        for process in reversed(self._all):
            self._free.put(process)

    def __len__(self) -> int:
        return len(self._all)

    @contextmanager
    def one(self) -> Iterator[_Process]:
        """Lend a process to one thread."""
        process = self._free.get()
        try:
            yield process
        finally:
            self._free.put(process)

    def close(self) -> None:
        """End the processes, where this program began them."""
        for process in self._all if os.getpid() == self._owner else ():
            process.end()


class _Process:
    """One process that rasterises, begun with its first drawing and again after each that it did not survive."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def draw(self, svg: bytes, width: int, height: int, seconds: float) -> bytes:
        """Return the PNG of one drawing.

        Raises:
            DrawingFault: the drawing ended the process, or is none. RenderError: there is no process to be had.
        """
        process = self._process
        if process is None or process.poll() is not None:
            self.end()
            process = self._process = _begun()
        late = threading.Event()
        timer = threading.Timer(_WALL * seconds, _kill, (process, late))
        timer.daemon = True
        timer.start()
        try:
            asked, given = process.stdin, process.stdout
            if asked is None or given is None:
                raise OSError
            asked.write(_ASKED.pack(len(svg), width, height, seconds) + svg)
            asked.flush()
            good, size = _GIVEN.unpack(_taken(given, _GIVEN.size))
            data = _taken(given, size)
        except OSError:
            raise DrawingFault(self._why(process, late.is_set(), seconds) + _costly(svg)) from None
        except BaseException:
            self.end()
            raise
        finally:
            timer.cancel()
        if late.is_set():  # the picture is there, the process is gone
            self.end()
        if not good:
            raise DrawingFault(f"The SVG cannot be drawn ({data.decode(errors='replace')}): correct it.")
        return data

    def end(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            with suppress(OSError):  # what was still to be written, to one that is gone
                if pipe is not None:
                    pipe.close()

    def _why(self, process: subprocess.Popen[bytes], late: bool, seconds: float) -> str:
        """Return why the process ended, and see that it did."""
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.5)
        code = process.returncode
        self.end()
        if late or (code is not None and code == -getattr(signal, "SIGPROF", 0)):
            return f"Drawing it takes more than {seconds:g} seconds: use fewer shapes, filters, masks and patterns."
        return "Drawing it takes too much memory: use fewer layers in each other, and smaller filters and patterns."


def _costly(svg: bytes) -> str:
    """Return which filters, masks and clips a drawing uses most, as a sentence; "" where it uses none."""
    used = Counter(found.groups() for found in _EFFECT.finditer(svg.decode(errors="replace")))
    told = [f'{kind} "{name}" {times} times' for (kind, name), times in used.most_common(3)]
    return f" It uses {', '.join(told)}." if told else ""


def _kill(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _taken(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise OSError("It ended.")
    return data


def _begun() -> subprocess.Popen[bytes]:
    """Begin a process, which needs no more of this installation than the library."""
    found = find_spec("resvg_py")
    if found is None or found.origin is None or not sys.executable:
        raise RenderError("resvg_py is not installed.", hint="Install katha again.")
    folder = Path(found.origin).parent
    place = folder.parent if found.submodule_search_locations else folder
    try:
        return subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _WORK, str(place), str(MOST_MEMORY)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError as error:
        said = f"No process to draw in can be begun: {error.strerror}."
        raise RenderError(said, hint="Let this user start processes.") from error


def _processes() -> _Processes:
    return _processes_of(os.getpid())


@cache
def _processes_of(program: int) -> _Processes:
    """Return the ones of this program, ended with it; a fork of it has its own."""
    processes = _Processes(program)
    atexit.register(processes.close)
    return processes
