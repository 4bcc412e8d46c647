"""What a person types at the desk: kept on disk from the first keystroke until it is saved, over reload and crash."""

from __future__ import annotations

import hashlib
import os
import threading
from pathlib import Path

from katha.errors import InputFileError
from katha.jsonio import read_json, write_json

Values = dict[str, str | list[str]]
"""A form's fields by their names; of boxes those that are ticked."""
_FILE = "typed.json"


class Typed:
    """The forms of one desk that were typed into and not saved, by a key that the page gives each."""

    def __init__(self, home: Path) -> None:
        self._path, self._lock = home / _FILE, threading.Lock()
        self.home_key = hashlib.sha256(os.fsencode(home.absolute())).hexdigest()[:16]
        """A name of the folder for the browser, which keeps apart what it holds for several."""

    def forms(self) -> dict[str, Values]:
        """Return every form that was typed into and not saved; none where the file cannot be read."""
        if not self._path.is_file():
            return {}
        try:
            found = read_json(self._path)
        except InputFileError:
            return {}
        return {str(key): dict(values) for key, values in found.items()} if isinstance(found, dict) else {}

    def move(self, key: str, to: str) -> None:
        """Keep a form under another key, where there is one and the other is free."""
        with self._lock:
            forms = self.forms()
            if key in forms and to not in forms:
                forms[to] = forms.pop(key)
                write_json(self._path, forms)

    def exchange(self, one: str, other: str) -> None:
        """Keep two forms each under the other's key; what is missing is missing there."""
        with self._lock:
            forms = self.forms()
            first, second = forms.pop(one, None), forms.pop(other, None)
            forms |= {key: form for key, form in ((one, second), (other, first)) if form is not None}
            write_json(self._path, forms)

    def keep(self, key: str, values: Values | None) -> None:
        """Keep a form as it stands; None: it was saved, or what was typed was taken back."""
        with self._lock:
            forms = self.forms()
            forms.pop(key, None)
            if values is not None:
                forms[key] = values
            if forms:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                write_json(self._path, forms)
            else:
                self._path.unlink(missing_ok=True)
