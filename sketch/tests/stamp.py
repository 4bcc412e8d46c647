"""Say whether the stand-in's own tests have passed on what is here; `--write` that they have.

The stand-in is frozen and its tests take a third of the whole suite's time, so they run when something of `sketch/` has
changed since they passed last. `passed.txt` holds the hash of what they passed on.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
STAMP = Path(__file__).with_name("passed.txt")
_TOLD = (".md", ".txt")
"""Files that change no behaviour."""


def digest() -> str:
    """Return the hash of the names and bytes of what git knows of `sketch/`, documents left out."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=True,
    )  # fmt: skip
    names = sorted({name for name in listed.stdout.decode().split("\0") if name and not name.endswith(_TOLD)})
    total = hashlib.sha256()
    for name in names:
        path = ROOT / name
        if path.is_file():
            total.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def main() -> int:
    """Return 0 where the tests have passed on what is here, 1 where they have not; write that they have."""
    now = digest()
    if "--write" in sys.argv[1:]:
        STAMP.write_text(f"{now}\n", encoding="utf-8")
        return 0
    return 0 if STAMP.is_file() and STAMP.read_text(encoding="utf-8").strip() == now else 1


if __name__ == "__main__":
    sys.exit(main())
