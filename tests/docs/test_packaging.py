"""The wheel holds `katha/` and nothing else, with every package and every data file in it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS: dict[str, str] = CONFIG["tool"]["setuptools"]["package-dir"]
DATA = (".yaml", ".json", ".tsv", ".j2", ".onnx", ".css", ".js", ".md", ".typed")


def _tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    return [name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = tmp_path_factory.mktemp("source")
    for name in _tracked():
        target = source / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes((ROOT / name).read_bytes())
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(out), str(source)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel_names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def _expected() -> set[str]:
    """Every source and data file of the listed folders, under its name in the package."""
    names: set[str] = set()
    for package, folder in FOLDERS.items():
        for name in _tracked():
            inside = name.removeprefix(f"{folder}/")
            if inside != name and (name.endswith(".py") or name.endswith(DATA)):
                names.add(f"{package.replace('.', '/')}/{inside}")
    return names


def test_the_wheel_holds_katha_and_nothing_else(wheel_names: list[str]) -> None:
    version = CONFIG["project"]["version"]
    outside = [name for name in wheel_names if not name.startswith(("katha/", f"katha-{version}.dist-info/"))]
    assert outside == []


def test_the_wheel_is_small(wheel: Path) -> None:
    assert wheel.stat().st_size < 3_000_000


def test_no_module_and_no_data_file_is_missing(wheel_names: list[str]) -> None:
    assert sorted(_expected() - set(wheel_names)) == []
    assert "katha/configs/presets/flux.yaml" in wheel_names


def test_the_wheel_brings_the_licence(wheel_names: list[str]) -> None:
    assert any(name.endswith("LICENSE") for name in wheel_names)
