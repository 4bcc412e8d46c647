"""One composer, fields to prompt: what is seen in a frame, who is in it and how they look, in the words, order and
length that a family of models reads best (`configs/composing.yaml`).

Nothing is put into anybody's sentences: the panel's own come as they are, and what they do not say stands beside them,
each cast member in one line under the name that the sentences use.

Imports: `protocols`, `configs`, `schema`.
"""

from katha.composing.composer import Composed, Count, compose, left_out
from katha.composing.families import PromptFamily, load_family
from katha.composing.looks import LOOK_FIELDS, LookField, dressed, says, worded_look
from katha.composing.parts import PromptPart, look_head, parts_of
from katha.composing.words import within

__all__ = [
    "LOOK_FIELDS",
    "Composed",
    "Count",
    "LookField",
    "PromptFamily",
    "PromptPart",
    "compose",
    "dressed",
    "left_out",
    "load_family",
    "look_head",
    "parts_of",
    "says",
    "within",
    "worded_look",
]
