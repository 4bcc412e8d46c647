"""Where plug-ins come in: what one is and says of itself is checked before any work, and what it raises gets a name.

A plug-in is code that the person chose to run, so it is not kept from doing harm; but a mistake in it is told as one,
with its name, instead of ending as a finished run. `SystemExit` in a plug-in is such a mistake. `KeyboardInterrupt` is
a person's and passes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter, ValidationError

from katha.errors import KathaError, UnknownPluginError, first_line
from katha.jsonio import canonical
from katha.protocols import Capabilities, Renderer, Similarity
from katha.registry import OWN_PLUGINS

# A specification is part of every cache key; a megabyte of it is weights that were put there by mistake.
_MOST_SPEC = 1_000_000
_LONGEST_SIDE = 16_384
# Half-precision encoders give lengths within a hundredth of 1.
_ROUGHLY_ONE = 1e-2


def cause(error: BaseException) -> str:
    """Return what an error of a plug-in's own says in one line: `ValueError: half a body`."""
    if isinstance(error, SystemExit):
        return f"it would end the program (SystemExit {error.code!r})"
    said, name = first_line(error), type(error).__name__
    told = name if said == name else f"{name}: {said}"
    return told[:500].rstrip(".").encode("utf-8", "backslashreplace").decode("utf-8")


@contextmanager
def named_failures(who: str, kind: type[KathaError] = UnknownPluginError, what: str = "failed") -> Iterator[None]:
    """Turn what a plug-in raises that is not a `KathaError` into one of `kind` that names it."""
    try:
        yield
    except (KathaError, GeneratorExit):
        raise
    except (Exception, SystemExit) as error:
        raise kind(f"The {who} {what}: {cause(error)}.") from error


def checked(made: object, kind: type[Any], who: str) -> Any:
    """Return a plug-in whose class inherits the base `kind`; who: `renderer 'blocks'`.

    Raises:
        UnknownPluginError: it does not, or a renderer's capabilities are not what they can be.
    """
    if not isinstance(made, kind):
        raise UnknownPluginError(
            f"The {who} is none: its class does not inherit {kind.__module__}.{kind.__name__}.", hint=OWN_PLUGINS
        )
    if isinstance(made, Renderer):
        with named_failures(who, what="cannot be used"):
            _check_capabilities(getattr(made, "capabilities", None), who)
    return made


def _check_capabilities(able: object, who: str) -> None:
    try:
        if not isinstance(able, Capabilities):
            raise TypeError(f"they are a {type(able).__name__}, not Capabilities")
        TypeAdapter(Capabilities).validate_python(vars(able), strict=False)
        sides = [side for size in (able.default_size, *(able.sizes or ())) for side in size]
        if any(not 1 <= side <= _LONGEST_SIDE for side in sides):
            raise ValueError(f"a side of a frame is 1 to {_LONGEST_SIDE} pixels")
        if not 1 <= able.size_multiple <= _LONGEST_SIDE or able.sizes == ():
            raise ValueError("there is no size that can be drawn")
        if able.prompt_tokens is not None and able.prompt_tokens < 1:
            raise ValueError("a prompt of no token cannot be drawn")
    except ValidationError as error:
        first = error.errors()[0]
        reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise UnknownPluginError(f"The {who} has no capabilities that can be used: {reason}.") from error
    except (TypeError, ValueError) as error:
        raise UnknownPluginError(f"The {who} has no capabilities that can be used: {error}.") from error


def spec_of(plugin: Any, who: str) -> dict[str, Any]:
    """Return what a plug-in says it is, as JSON that can be hashed.

    Raises:
        UnknownPluginError: it says nothing of that kind.
    """
    with named_failures(who, what="cannot say what it is, spec()"):
        spec = plugin.spec()
        if not isinstance(spec, Mapping):
            raise TypeError(f"it gives a {type(spec).__name__}, not a mapping")
        found = dict(spec)
        if len(canonical(found)) > _MOST_SPEC:
            raise ValueError(f"it holds more than {_MOST_SPEC:,} bytes")
    return found


class CheckedSimilarity(Similarity):
    """A similarity whose vectors are looked at: finite, of one length, and unit vectors (or nothing at all)."""

    def __init__(self, inner: Similarity, who: str) -> None:
        self._inner, self._who, self._length = inner, who, 0

    def spec(self) -> Mapping[str, Any]:
        """Return the similarity's own."""
        return spec_of(self._inner, self._who)

    def encode_image(self, png: bytes) -> NDArray[np.float64]:
        """Return the vector of a frame.

        Raises:
            UnknownPluginError: it is none.
        """
        return self._vector(lambda: self._inner.encode_image(png))

    def encode_text(self, text: str) -> NDArray[np.float64]:
        """Return the vector of a text.

        Raises:
            UnknownPluginError: it is none.
        """
        return self._vector(lambda: self._inner.encode_text(text))

    def _vector(self, make: Callable[[], object]) -> NDArray[np.float64]:
        with named_failures(self._who, what="gave no vector"):
            vector = np.asarray(make(), dtype=np.float64)
            length = float(np.linalg.norm(vector))
            self._length = self._length or vector.size
            if vector.ndim != 1 or not vector.size or vector.size != self._length or not math.isfinite(length):
                raise ValueError(f"its shape is {vector.shape}, its length {length:g}")
            if length and abs(length - 1.0) > _ROUGHLY_ONE:
                raise ValueError(f"its length is {length:g}, not 1")
        return vector
