"""Reading English: what a story tells, who is in it, where and when.

`read_text` says what kind of text it is and reads it; `read_story` reads what is known to be a story.
"""

from katha_sketch.english.checks import check_input, check_words, read_text
from katha_sketch.english.reading import Scene, read_story
from katha_sketch.english.telling import Teller
from katha_sketch.english.types import Entity, Event, Kin, Place, Reading, Role, Sentence, Speech, TextCheck

__all__ = [
    "Entity",
    "Event",
    "Kin",
    "Place",
    "Reading",
    "Role",
    "Scene",
    "Sentence",
    "Speech",
    "Teller",
    "TextCheck",
    "check_input",
    "check_words",
    "read_story",
    "read_text",
]
