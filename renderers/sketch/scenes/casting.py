"""From a word of the story to the actor or thing of a scene, by the noun table; what it lacks gets a stand-in."""

from __future__ import annotations

from typing import Literal

from katha.renderers.sketch.deeds import Look, base_of, by_rig, people
from katha.renderers.sketch.pictograms import find_noun
from katha.renderers.sketch.scenes.record import SceneActor, SceneThing

__all__ = ["actor_of", "thing_of"]


def actor_of(
    name: str, word: str, *, base: str | None = None, kind_of: str = "animal", cm: float | None = None
) -> SceneActor:
    """The actor called `name` that is a `word` (teacher, dog, robot), doing nothing yet.

    `base` is what the story says of sex and age (an id of people.yaml's bases) and goes before the word's own. What the
    table does not have is a plain shape of `kind_of` and `cm`.
    """
    noun = find_noun(word)
    if noun is None:
        return SceneActor(name, "pictogram", kind_of=kind_of, cm=cm)
    if noun.kind != "person" or not by_rig(noun.pictogram):
        return SceneActor(name, "pictogram", pictogram=noun.pictogram, kind_of=noun.kind, cm=cm or noun.cm)
    outfit = noun.pictogram if noun.pictogram in people()["outfits"] else None
    usual = base_of(noun.pictogram)
    if usual in ("man", "woman", "person") and noun.cm < 150:
        usual = {"man": "boy", "woman": "girl", "person": "child"}[usual]
    return SceneActor(name, "person", look=Look(base or usual, outfit), cm=noun.cm)


def thing_of(
    name: str,
    word: str,
    *,
    held_by: str | None = None,
    role: Literal["object", "instrument", "scenery"] = "scenery",
    kind: str = "thing",
    cm: float = 30.0,
) -> SceneThing:
    """The thing `word`; a plain shape of `kind` and `cm` when the table does not have it."""
    noun = find_noun(word)
    if noun is None:
        return SceneThing(name, word, None, kind, cm, "ground", role, held_by)
    return SceneThing(name, word, noun.pictogram, noun.kind, noun.cm, noun.stands, role, held_by)
