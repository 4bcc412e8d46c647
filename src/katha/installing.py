"""The line that installs what is missing, as it works where katha is installed: in a checkout, from a folder, from an
index."""

from __future__ import annotations

import os
import sys
from functools import cache
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from katha.jsonio import loads

_STAND_IN = "sketch"


def install_line(extra: str) -> str:
    """Return the command that installs an extra of katha beside what is installed: `pip install -e ".[desk]"`."""
    folder, editable = _origin()
    if folder is None:
        return f'{_install()} "katha[{extra}]"'
    where = _told(folder)
    return f'{_install()} {"-e " if editable else ""}"{where}[{extra}]"'


def stand_in_line() -> str:
    """Return the command that installs the stand-in, which plans, draws and judges without a model."""
    folder, editable = _origin()
    if folder is None:
        return f'{_install()} "katha[{_STAND_IN}]"'
    place = _told(folder / _STAND_IN)
    # A path alone would be the name of a package.
    return f"{_install()} {'-e ' if editable else ''}{place if os.sep in place else f'./{place}'}"


@cache
def _origin() -> tuple[Path | None, bool]:
    """The folder that katha was installed from, and whether it runs from there; None from an index or an archive."""
    # A checkout's own katha.egg-info, which is found where it is the working folder, does not say where it came from.
    told = next(filter(None, (found.read_text("direct_url.json") for found in distributions(name="katha"))), None)
    origin = loads(told) if told else {}
    parts = urlsplit(str(origin.get("url", "")))
    info = origin.get("dir_info")
    if parts.scheme != "file" or not isinstance(info, dict):
        return None, False
    return Path(url2pathname(parts.path)), info.get("editable") is True


def _told(path: Path) -> str:
    """A path as one types it here: below the working folder by its name there."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _install() -> str:
    """Return what installs packages into the environment that katha runs in, wherever a command called
    `pip` may lead."""
    if os.environ.get("VIRTUAL_ENV") and Path(os.environ["VIRTUAL_ENV"]) == Path(sys.prefix):
        return "pip install"
    python = _told(Path(sys.executable))
    called = f'"{python}"' if " " in python else python
    return f"{called} -m pip install" if find_spec("pip") is not None else f"uv pip install --python {called}"
