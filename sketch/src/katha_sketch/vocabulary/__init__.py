"""The closed vocabulary: what the sketch's own rig draws, what can be swapped in a question, and the words for each."""

from katha_sketch.vocabulary.inflect import Inflector, VerbForm
from katha_sketch.vocabulary.lexicon import Concept, ConceptKind, Say, Sense, Vocabulary, load_vocabulary

__all__ = ["Concept", "ConceptKind", "Inflector", "Say", "Sense", "VerbForm", "Vocabulary", "load_vocabulary"]
