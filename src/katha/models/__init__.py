"""Language models: local, behind an API, or scripted; all held to a JSON schema."""

from katha.models.choose import make_model
from katha.models.types import Completion, TextModel, Turn

__all__ = ["Completion", "TextModel", "Turn", "make_model"]
