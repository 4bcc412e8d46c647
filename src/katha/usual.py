"""How judges are asked, and who matches their free answers, where nobody says so. Nothing is called to find it out."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Literal

from katha.configs import load_config
from katha.errors import KathaError
from katha.protocols import Judge, can
from katha.registry import default_registry

MATCHING_NOTES = ("Free answers are matched by ", "No model is there to match free answers: ")
"""How notes on who matches free answers begin."""
_NLI_NEEDS = ("torch", "transformers", "huggingface_hub")


def usual_rule() -> str:
    """Return the rule for free answers where none is named and no model is there to match them: that of the first
    installed matcher, else `exact-set`."""
    return next(iter(default_registry("matchers").names()), "exact-set")


def usual_answers(judges: Sequence[str]) -> Literal["choice", "free"]:
    """Return how judges of these names are asked: `choice` where none of them writes, else `free`."""
    return "choice" if judges and not any(map(_writes, judges)) else "free"


def usual_matching(judges: Sequence[str], base_url: str | None = None) -> str:
    """Return the rule that matches the free answers of judges of these names.

    Where one is a provider's model: another model of that provider (`matches` in `configs/matching.yaml`), else itself.
    Else the recommended rule if its model is installed, then a judge's own model, then `usual_rule`. base_url: where
    the judges call; which other models such a server has is not known, nor for one that the environment names.
    """
    able = [judge for judge in judges if _reads_prompts(judge)]
    providers = load_config("providers.yaml")
    provided = [judge for judge in able if judge.partition(":")[0] in providers]
    another = next((one for judge in provided for one in _others(judge, base_url) if one not in judges), None)
    matcher = another or next(iter(provided), None)
    if matcher is not None:
        return f"llm:{matcher}"
    if any(map(_writes, judges)) and _recommended_is_here():
        return str(load_config("matching.yaml")["recommended"])
    return f"llm:{able[0]}" if able else usual_rule()


def matching_note(judges: Sequence[str], answers: str, matching: str, base_url: str | None = None) -> str:
    """Return what a reader has to know of who matches free answers; "" where another model than the judges does."""
    if answers != "free" or not any(map(_writes, judges)):
        return ""
    if matching in {f"llm:{judge}" for judge in judges}:
        return f"{MATCHING_NOTES[0]}{matching}, which is a judge itself; --matching llm:JUDGE names another."
    if matching == usual_rule() == usual_matching(judges, base_url):
        return f"{MATCHING_NOTES[1]}{matching}, a rule."
    return ""


def _others(judge: str, base_url: str | None) -> Iterator[str]:
    """Yield the models of the judge's provider that match answers; none where it is called elsewhere."""
    provider = judge.partition(":")[0]
    place = str(load_config("providers.yaml")[provider]["text"]["url_variable"])
    if base_url is None and not os.environ.get(place):
        yield from (f"{provider}:{model}" for model in load_config("matching.yaml")["matches"].get(provider, ()))


def _class_of(judge: str) -> type[Judge] | None:
    """Return the class of a judge that is known by name; None where it is code, or cannot be imported."""
    registry = default_registry("judges")
    if judge.partition(":")[0] not in registry.names():
        return None
    try:
        found = registry.load(judge)[0]
    except KathaError:  # whoever makes the judge says so
        return None
    return found if isinstance(found, type) and issubclass(found, Judge) else None


def _writes(judge: str) -> bool:
    """Return whether a judge writes answers of its own: it does not only choose, and replays no archive."""
    kind = _class_of(judge)
    return kind is None or not (kind.always_chooses or can(kind, Judge.recall))


def _reads_prompts(judge: str) -> bool:
    kind = _class_of(judge)
    return kind is not None and _writes(judge) and can(kind, Judge.ask_plainly)


def _recommended_is_here() -> bool:
    """Return whether the recommended rule's packages and model are on this machine."""
    if any(find_spec(name) is None for name in _NLI_NEEDS):
        return False
    from huggingface_hub import try_to_load_from_cache

    model = str(load_config("matching.yaml")["recommended"]).partition(":")[2]
    return isinstance(try_to_load_from_cache(model, "config.json"), str)
