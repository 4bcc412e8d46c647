"""Zip archives that are the same bytes each time."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable
from pathlib import Path

_DATE = (1980, 1, 1, 0, 0, 0)


def write_zip(target: Path, files: Iterable[tuple[str, bytes]]) -> None:
    """Write a zip of stored files in this order, without times of the day."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, data in files:
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
