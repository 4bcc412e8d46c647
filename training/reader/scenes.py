"""Random moments to draw: every concept equally often, up to five characters and five props, any place and time.

Training frames are fuller than the frames of a story, for the sake of what they teach; frames to measure on are not."""

from __future__ import annotations

from random import Random

from katha.language import Actor, SceneReading, load_vocabulary

__all__ = ["random_scene"]

_ACTORS, _FULL_ACTORS = (1, 2, 2, 2, 3), (2, 3, 3, 4, 4, 5)
_PROPS, _FULL_PROPS = (0, 1, 1, 2, 2, 3, 4), (2, 3, 4, 5)
_HANDLED = frozenset({"give", "carry", "take", "throw"})


def _ids(kind: str) -> list[str]:
    return [concept.id for concept in load_vocabulary().concepts(kind)]  # type: ignore[arg-type]


def _actor(rng: Random, concept: str, others: list[str]) -> Actor:
    action = rng.choice(_ids("action")) if rng.random() < 0.92 else None
    carries: tuple[str, ...] = ()
    if rng.random() < (0.8 if action in _HANDLED else 0.06):
        carries = (rng.choice(_ids("prop")),)
    looks = tuple(rng.sample(_ids("attribute"), rng.choice((1, 1, 2)))) if rng.random() < 0.3 else ()
    return Actor(
        concept,
        attributes=looks,
        action=action,
        target=rng.choice(others) if others and action is not None and rng.random() < 0.6 else None,
        emotion=rng.choice(_ids("emotion")) if rng.random() < 0.8 else None,
        carries=carries,
        count=rng.choice((2, 3)) if rng.random() < 0.05 else 1,
    )


def random_scene(rng: Random, full: bool = False) -> SceneReading:
    """One random moment, `full` or not. Concepts are drawn uniformly: rare ones are learnt as well as common ones."""
    cast = rng.sample(_ids("character"), rng.choice(_FULL_ACTORS if full else _ACTORS))
    props = tuple(rng.sample(_ids("prop"), rng.choice(_FULL_PROPS if full else _PROPS)))
    actors = tuple(_actor(rng, who, [other for other in (*cast, *props[:1]) if other != who]) for who in cast)
    return SceneReading(
        actors=actors,
        props=props,
        setting=rng.choice(_ids("setting")) if rng.random() < 0.95 else None,
        time=rng.choice(_ids("time")) if rng.random() < 0.9 else None,
        weather=rng.choice(_ids("weather")) if rng.random() < 0.08 else None,
    )
