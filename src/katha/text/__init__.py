"""Reading English: what a story tells, who is in it, where and when. `read_story` is the way in."""

from katha.text.reading import read_story



from katha.text.types import Entity, Event, Kin, Place, Reading, Role, Sentence, Speech, TextCheck

__all__ = [
    "Entity",
    "Event",
    "Kin",
    "Place",
    "Reading",
    "Role",
    "Sentence",
    "Speech",
    "TextCheck",
    "check_input",
    "read_story",
]
