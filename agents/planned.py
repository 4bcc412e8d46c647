"""Plans that no model is called for, kept between commands: by story, request, planner, and the code that plans.

What a model plans is made of its kept calls, so that a recording has them; it is not kept here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

from katha.jsonio import digest, file_sha256
from katha.plugin_boundary import spec_of
from katha.protocols import Planner, PlanRequest
from katha.schema import Plan, StoryRecord
from katha.store import PlanIndex

_CODE = (".py", ".yaml", ".json", ".tsv", ".txt", ".gz", ".npz", ".j2")
_OWN = __name__.partition(".")[0]
_SHARED = ("katha.planners", "katha.schema", "katha.configs")


def kept_or_made(
    planner: Planner, story: StoryRecord, request: PlanRequest, plans: PlanIndex | None, make: Callable[[], Plan]
) -> Plan:
    """Return the plan that is kept for exactly this, or make it and keep it."""
    key = _key(planner, story, request) if plans is not None else None
    if plans is None or key is None:
        return make()
    kept = plans.get(key)
    if kept is None:
        kept = make()
        plans.put(key, kept)
    return kept


def _key(planner: Planner, story: StoryRecord, request: PlanRequest) -> str | None:
    """Return what the plan depends on, hashed; None where a model plans, or nobody can say what code does."""
    if planner.question_writer is not None or planner.expected(story, request.panels).tokens:
        return None
    code = code_of(type(planner).__module__)
    if code is None:
        return None
    asked = [item.model_dump(mode="json") for item in request.questions]
    wished = [request.panels, request.most_panels, request.style, request.prompt_tokens, asked]
    return digest([story.model_dump(mode="json"), wished, spec_of(planner, "planner"), code])


@cache
def code_of(module: str) -> str | None:
    """Return a hash of the files of a module's package and of what planners are made of; None of what has no file."""
    top = module.partition(".")[0]
    own = _place(top) if top != _OWN else None
    places = [own or _place(module), *map(_place, _SHARED)]
    return None if None in places else digest([_hashes(place) for place in places if place is not None])


def _place(name: str) -> Path | None:
    """Return the folder of a package, or the file of a module."""
    found = sys.modules.get(name)
    file = getattr(found, "__file__", None)
    if found is None or file is None or name == "__main__":
        return None
    return Path(file).resolve().parent if hasattr(found, "__path__") else Path(file).resolve()


def _hashes(place: Path) -> list[tuple[str, str]]:
    files = [place] if place.is_file() else [path for path in place.rglob("*") if path.suffix in _CODE]
    return sorted((path.relative_to(place.parent).as_posix(), file_sha256(path)) for path in files if path.is_file())
