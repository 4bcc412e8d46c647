"""Makes what the documents' commands print again: `python -m docs.make_transcripts [PAGE]`, from a checkout's root.

On the pages of `docs/tutorial` and `docs/howto` a block ```sh is run, and a block with `title="FILE"` is written to
FILE first. A block ```text title="output" behind one that is run holds what that printed: a test compares it, and this
program writes it anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]
BLOCK = re.compile(r"^```(\w+)?(?: title=\"([^\"]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)
OUTPUT = "output"
_PROGRESS = re.compile(r"\[\d+:\d\d\] ")


def follow(page: Path, folder: Path, cache: Path) -> Iterator[tuple[str, str]]:
    """Do what `page` says in `folder`; yield each block that was run with what it printed.

    Raises:
        RuntimeError: a command failed.
    """
    commands = folder / "bin"
    commands.mkdir()
    starts = {"katha": "-c 'from katha.app.cli.main import main; main()'", "pytest": "-m pytest", "python": ""}
    path = f'PYTHONPATH="$PYTHONPATH:{os.environ.get("PYTHONPATH", "")}"'
    for name, start in starts.items():
        (commands / name).write_text(f'#!/bin/sh\n{path} exec "{sys.executable}" {start} "$@"\n')
        (commands / name).chmod(0o755)
    work = folder / "work"
    work.mkdir()
    (work / "examples").symlink_to(ROOT / "examples")
    environment = {
        **os.environ,
        "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}",
        "KATHA_CACHE": str(cache),
        "KATHA_NO_PROBE": "1",
    }
    for language, title, text in BLOCK.findall(page.read_text(encoding="utf-8")):
        if title and title != OUTPUT:
            (work / title).write_text(text, encoding="utf-8")
        if language == "sh":
            done = subprocess.run(
                ["sh", "-e"],
                input=text,
                cwd=work,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            if done.returncode != 0:
                raise RuntimeError(f"{text}\n{done.stdout}")
            yield text, printed(done.stdout)


def printed(text: str) -> str:
    """Return what a command printed, without blanks at the ends of lines, and without how far it was after how long."""
    lines = (line.rstrip() for line in text.strip("\n").splitlines())
    return "\n".join(line for line in lines if not _PROGRESS.match(line)) + "\n"


def transcripts(page: str) -> list[tuple[str, str]]:
    """Return the blocks of a page whose output it shows, each with that output."""
    blocks = BLOCK.findall(page)
    pairs = pairwise(blocks)
    return [(run[2], shown[2]) for run, shown in pairs if run[0] == "sh" and shown[1] == OUTPUT]


def rewritten(page: str, outputs: dict[str, str]) -> str:
    """Return a page with what its blocks print now."""
    for run, shown in transcripts(page):
        old = f'```text title="{OUTPUT}"\n{shown}```'
        start = page.index(old, page.index(run))
        page = page[:start] + old.replace(shown, outputs[run]) + page[start + len(old) :]
    return page


def main() -> None:
    """Write the outputs of every page that shows some."""
    pages = [*sorted((ROOT / "docs").glob("tutorial/*.md")), *sorted((ROOT / "docs").glob("howto/*.md"))]
    with tempfile.TemporaryDirectory() as cache:
        for page in pages:
            if sys.argv[1:] and page.stem not in sys.argv[1:]:
                continue
            text = page.read_text(encoding="utf-8")
            if not transcripts(text):
                continue
            with tempfile.TemporaryDirectory() as folder:
                outputs = dict(follow(page, Path(folder), Path(cache)))
            page.write_text(rewritten(text, outputs), encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
