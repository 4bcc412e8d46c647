"""What ships as data, and how it is read: presets, modes, suites and price lists, which are YAML files of this package,
and prompts, one template each under `prompts/`, which are addressed by the hash of their text. Installed packages may
offer presets and suites of their own.

A template that names a variable it is not given is an error, never an empty string.

Imports: `registry`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from katha.errors import UnknownPluginError, UsageError
from katha.jsonio import parse_yaml, read_yaml, sha256_hex, shipped_table
from katha.registry import offered

if TYPE_CHECKING:
    from jinja2 import Template


OFFERED = ("presets", "suites")
"""The folders to which installed packages may add: the entry point `NAME = "package.folder"` of the group
`katha.presets` is the file `NAME.yaml` in that folder of that package."""


def config_text(*parts: str) -> str:
    """Return the text of a file of this package, `config_text("presets", "flux.yaml")`."""
    return files("katha.configs").joinpath(*parts).read_text(encoding="utf-8")


def load_config(*parts: str) -> Any:
    """Return the parsed YAML of a file of this package; it is read once, so do not change what comes back."""
    return shipped_table("katha.configs", *parts)


def config_names(folder: str) -> list[str]:
    """Return the names of the YAML files in a folder of this package, and of those that others offer, sorted."""
    return sorted({*_shipped(folder), *(entry.name for entry in _offered(folder))})


def load_chosen(folder: str, name: str, said: str) -> Any:
    """Return the YAML that `name` means: a file in a folder of this package, one that an installed package offers, or
    any file at that path.

    said: what a message about a broken file calls it (`Preset`).

    Raises:
        UnknownPluginError: there is no such file. InputFileError: it cannot be read, or is not YAML.
    """
    if name in _shipped(folder):
        return parse_yaml(config_text(folder, f"{name}.yaml"), f"{said} {name!r}")
    offers = load_offered(folder, name, said)
    if offers:
        return offers[0]
    if name.endswith((".yaml", ".yml")) and "\0" not in name and Path(name).exists():
        return read_yaml(Path(name))
    hint = f"Known: {', '.join(config_names(folder))}; or name a YAML file."
    raise UnknownPluginError(f"No {folder.removesuffix('s')} is called {name[:200]!r}.", hint=hint)


def load_offered(folder: str, name: str, said: str) -> list[Any]:
    """Return the YAML that installed packages offer by that name, one of each package (`OFFERED`).

    Raises:
        UnknownPluginError: the file is not where its entry point says. InputFileError: it is not YAML.
    """
    return [
        parse_yaml(_text_of(entry, said), f"{said} {name!r} of {entry.module!r}")
        for entry in _offered(folder)
        if entry.name == name
    ]


def _shipped(folder: str) -> list[str]:
    entries = files("katha.configs").joinpath(folder).iterdir()
    return [entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml")]


def _offered(folder: str) -> Sequence[EntryPoint]:
    return offered(folder) if folder in OFFERED else ()


def _text_of(entry: EntryPoint, said: str) -> str:
    try:
        return files(entry.module).joinpath(f"{entry.name}.yaml").read_text(encoding="utf-8")
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise UnknownPluginError(f"{said} {entry.name!r} of {entry.value!r} cannot be read: {error}.") from error


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
