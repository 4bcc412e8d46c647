"""What a result was made with beside its settings: commit, Python, platform, processors, versions of packages."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

# git on a network drive may hang; the record is then without a commit.
_SECONDS = 5
_PACKAGES = (
    *("numpy", "pillow", "pydantic", "langgraph", "katha-sketch", "resvg-py", "scipy", "scikit-image", "onnxruntime"),
    *("torch", "torchvision", "transformers", "diffusers", "peft", "open-clip-torch", "anthropic", "openai"),
    *("google-genai", "rapidocr", "av", "ray", "torchmetrics"),
)
"""Packages that a number may depend on."""


@cache
def environment() -> Mapping[str, object]:
    """Return where this process runs; what cannot be found out is left out."""
    commit = _commit()
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        **({"commit": commit} if commit else {}),
        "packages": {name: found for name in _PACKAGES if (found := _version(name)) is not None},
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    """Return the commit that katha was installed from, or that of the checkout it runs in; `+` if that was changed."""
    try:
        told = distribution("katha").read_text("direct_url.json")
        installed = json.loads(told or "{}").get("vcs_info", {}).get("commit_id")
    except (PackageNotFoundError, ValueError):
        installed = None
    if installed is not None:
        return str(installed)
    folder = Path(__file__).resolve().parent
    top = _git(folder, "rev-parse", "--show-toplevel")
    if top is None or folder != Path(top) / "src" / "katha":  # another repository
        return None
    head = _git(folder, "rev-parse", "HEAD")
    changed = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return f"{head}+" if head and changed else head


def _git(folder: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=_SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
