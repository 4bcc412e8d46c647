"""What ships as data, and how it is read: presets, modes, suites and price lists, which are YAML files of this package,
and prompts, one template each under `prompts/`, which are addressed by the hash of their text.

A template that names a variable it is not given is an error, never an empty string.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.errors import UnknownPluginError, UsageError
from katha.jsonio import parse_yaml, read_yaml, sha256_hex, shipped_table

if TYPE_CHECKING:
    from jinja2 import Template


def config_text(*parts: str) -> str:
    """Return the text of a file of this package, `config_text("presets", "embedded.yaml")`."""
    return files("katha.configs").joinpath(*parts).read_text(encoding="utf-8")


def load_config(*parts: str) -> Any:
    """Return the parsed YAML of a file of this package; it is read once, so do not change what comes back."""
    return shipped_table("katha.configs", *parts)


def config_names(folder: str) -> list[str]:
    """Return the names of the YAML files in a folder of this package, sorted."""
    entries = files("katha.configs").joinpath(folder).iterdir()
    return sorted(entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml"))


def load_chosen(folder: str, name: str, said: str) -> Any:
    """Return the YAML that `name` means: a file in a folder of this package, or any file at that path.

    said: what a message about a broken file calls it (`Preset`).

    Raises:
        UnknownPluginError: there is no such file. InputFileError: it cannot be read, or is not YAML.
    """
    if name in config_names(folder):
        return parse_yaml(config_text(folder, f"{name}.yaml"), f"{said} {name!r}")
    if name.endswith((".yaml", ".yml")) and "\0" not in name and Path(name).exists():
        return read_yaml(Path(name))
    hint = f"Known: {', '.join(config_names(folder))}; or name a YAML file."
    raise UnknownPluginError(f"No {folder.removesuffix('s')} is called {name[:200]!r}.", hint=hint)


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
