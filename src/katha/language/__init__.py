"""A small deterministic English reader over a closed vocabulary."""

from katha.language.describe import describe_actor, describe_aim, describe_deed, describe_scene, describe_thing
from katha.language.lexicon import Vocabulary, load_vocabulary
from katha.language.phrase import PhraseEvent, PhraseReading, read_phrase
from katha.language.scene import read_scene
from katha.language.story import read_story
from katha.language.types import Actor, Concept, ConceptKind, Event, SceneReading, StoryReading

__all__ = [
    "Actor",
    "Concept",
    "ConceptKind",
    "Event",
    "PhraseEvent",
    "PhraseReading",
    "SceneReading",
    "StoryReading",
    "Vocabulary",
    "describe_actor",
    "describe_aim",
    "describe_deed",
    "describe_scene",
    "describe_thing",
    "load_vocabulary",
    "read_phrase",
    "read_scene",
    "read_story",
]
