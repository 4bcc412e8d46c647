"""The README's commands are run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", README, flags=re.S)
COMMANDS = [line.split("  #")[0].strip() for block in BLOCKS for line in block.splitlines() if line.strip()]


def test_the_readme_opens_with_the_two_commands() -> None:
    assert [command.split("#")[0].strip() for command in COMMANDS[:2]] == ["make story", "make test"]
    assert README.index("make story") < README.index("![")


def test_the_first_screen_has_the_picture_and_what_make_story_prints(tmp_path: Path) -> None:
    head = README[: README.index("export ANTHROPIC_API_KEY")]
    assert len(head.splitlines()) <= 35
    assert "![" in head
    (shown,) = re.findall(r'```text title="make story"\n(.*?)```', head, flags=re.S)
    recorded = ROOT / "examples" / "recorded" / "the_coat_in_the_barley"
    words = [
        "run",
        recorded / "story.json",
        "--replay",
        recorded / "board.katha",
        "--out",
        "out/the_coat_in_the_barley",
    ]
    done = subprocess.run(
        [sys.executable, "-c", "from katha.app.cli.main import main; main()", *map(str, words)],
        cwd=tmp_path, env={**os.environ, "KATHA_CACHE": str(tmp_path / "cache")}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown


def test_every_link_of_the_readme_leads_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert [link for link in links if not link.startswith("http") and not (ROOT / link).exists()] == []


def test_make_knows_the_two_commands() -> None:
    for target in ("story", "test"):
        done = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert (
        "katha run examples/"
        in subprocess.run(["make", "-n", "story"], cwd=ROOT, capture_output=True, text=True).stdout
    )


@pytest.mark.timeout(600)
def test_every_katha_command_of_the_readme_works(tmp_path: Path) -> None:
    scripts = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
        "KATHA_CACHE": str(tmp_path / "cache"),
    }
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = [command for command in COMMANDS if command.startswith("katha ")]
    assert len(commands) >= 10
    for command in commands:
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    assert (tmp_path / "out" / "lion" / "report.html").is_file()
    assert (tmp_path / "out" / "lion.png").is_file()
