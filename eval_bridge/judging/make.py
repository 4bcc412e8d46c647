"""Judges from their names, with the options of a command handed to those that have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from katha.errors import UsageError
from katha.protocols import Judge
from katha.registry import default_registry, option_names

_FLAGS = {
    "base_url": ("--base-url is given, but no judge here calls a server.", "Use --judge openai:MODEL."),
    "verify_reuse": ("--verify-reuse is given, but no judge here shares a prefix.", "Use --judge local:MODEL."),
    "concurrency": ("--concurrency is given, but no judge here calls a server.", "Use --judge openai:MODEL."),
}


def make_judges(
    specs: Sequence[str],
    *,
    base_url: str | None = None,
    verify_reuse: float | None = None,
    concurrency: int | None = None,
    options: Mapping[str, Any] | None = None,
) -> list[tuple[str, Judge]]:
    """The judges that `specs` name, in order; what is not None, and each of `options`, goes to every judge that has it.

    Raises:
        UnknownPluginError, MissingExtraError: a judge cannot be made. UsageError: no judge here has an option, or its
        value does not fit.
    """
    flags: Mapping[str, Any] = {"base_url": base_url, "verify_reuse": verify_reuse, "concurrency": concurrency}
    own = next((name for name in _FLAGS if name in (options or {})), None)
    if own is not None:
        raise UsageError(f"The judge option {own!r} has a flag of its own.", hint=f"Use --{own.replace('_', '-')}.")
    wanted = {name: value for name, value in flags.items() if value is not None} | dict(options or {})
    registry, taken = default_registry("judges"), set[str]()
    made: list[tuple[str, Judge]] = []
    for spec in specs:
        known = option_names(registry.load(spec)[0])
        fitting = {name: value for name, value in wanted.items() if name in known}
        taken |= set(fitting)
        made.append((spec, registry.configure(spec, fitting)))
    for name in sorted(wanted.keys() - taken):
        message, hint = _FLAGS.get(name, (f"No judge here has an option {name!r}.", "See `katha judges`."))
        raise UsageError(message, hint=hint)
    return made
