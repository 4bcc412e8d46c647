"""Scenes by their number: "Scene 2 of 5: ..." in a text, and "scene 2 of 5" in a question about it or about pictures.

Evaluators that ask scene by scene number the text's scenes (`configs/evaluators.yaml`), for a story itself does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from katha.eval_bridge.judges.moments import Moment

__all__ = ["at_scene", "numbered_scenes"]

_LINE = re.compile(r"Scene \d+ of \d+: (\S.*)")
_ASKED = re.compile(r"\bscene (\d+) of (\d+)\b", re.IGNORECASE)


def numbered_scenes(text: str) -> list[str] | None:
    """The scenes of a text that consists of nothing but numbered scenes, a line each, closed by a stop; else None."""
    lines = [_LINE.fullmatch(line.strip()) for line in text.splitlines() if line.strip()]
    scenes = [line[1] for line in lines if line is not None]
    if not scenes or len(scenes) < len(lines):
        return None
    return [scene if scene[-1] in ".!?\"'”’" else f"{scene}." for scene in scenes]


def at_scene(question: str, moments: Sequence[Moment]) -> list[Moment]:
    """The moments of the scene that `question` names; all of them where it names none, or where the numbers of the
    moments count something else (a board with more pictures than scenes)."""
    asked = _ASKED.search(question)
    if asked is None or {moment.scenes for moment in moments} != {int(asked[2])}:
        return list(moments)
    return [moment for moment in moments if moment.scene == int(asked[1])]
