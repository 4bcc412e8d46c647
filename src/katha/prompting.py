"""Prompts are files: one template each under `prompts/`, addressed by the hash of its text.

A template that names a variable it is not given is an error, never an empty string.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

from katha.errors import UsageError
from katha.jsonio import sha256_hex

if TYPE_CHECKING:
    from jinja2 import Template


@dataclass(frozen=True)
class Prompt:
    """A prompt template: its name (path under `prompts/` without `.j2`), text and sha256."""

    name: str
    text: str
    sha256: str

    def render(self, **variables: object) -> str:
        """Return the prompt with its variables filled in, blanks at both ends removed."""
        from jinja2 import UndefinedError

        try:
            return _compiled(self.text).render(**variables).strip()
        except UndefinedError as error:
            raise UsageError(f"Prompt {self.name!r}: {error}.") from error


@cache
def _compiled(text: str) -> Template:
    from jinja2 import Environment, StrictUndefined

    # autoescape stays off: a prompt is plain text for a model, never markup for a browser.
    return Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True).from_string(text)


@cache
def load_prompt(name: str) -> Prompt:
    """Return the prompt file `prompts/NAME.j2`.

    Raises:
        UsageError: there is no such prompt.
    """
    source = files("katha.prompts").joinpath(f"{name}.j2")
    try:
        text = source.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"No prompt is called {name!r}.") from error
    return Prompt(name, text, sha256_hex(text.encode("utf-8")))
