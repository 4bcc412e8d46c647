"""What a verb that draws takes where nobody names who plans, draws and judges: the first that is there of a key, a
server on this machine and a card (`configs/day-one.yaml`), else the default, an installed preset. Said in one line
before it begins.

One precedence: flag, then preset, then environment (`KATHA_...`), then this. Python's functions do not look: what a
program calls never depends on which keys happen to be set.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from katha.addresses import is_loopback
from katha.app.presets import choose_here
from katha.config import Settings, resolve, usual_preset
from katha.configs import load_config
from katha.errors import KathaError
from katha.eval_bridge.judges.none import NOBODY
from katha.models.calls import is_replayed

NO_PROBE = "KATHA_NO_PROBE"
"""The variable that has neither servers nor cards looked for."""
_WHO = ("planner", "renderer", "judges", "planner_options", "renderer_options", "judge_options", "base_url", "memory")
"""Settings that say who plans, draws or judges, or are of one who does: where one is given, nobody is chosen."""
_SIZE = re.compile(r"(\d+(?:\.\d+)?)b\b", re.IGNORECASE)
_MOST_BYTES = 1_000_000
_SMI = ("nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits")
_SMI_SECONDS = 5.0
_NAMED = "The server of OPENAI_BASE_URL"
_STAND_IN = "No key, server or card is here"


@dataclass(frozen=True)
class LocalServer:
    """A server on this machine: what usually listens at its port, its address, and the models that it lists."""

    name: str
    url: str
    models: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name} at {urlsplit(self.url).netloc}"


@dataclass(frozen=True)
class Choice:
    """Who plans, draws and judges. found: what was there. settings: over the environment's. paid: calls cost money.
    unpriced: they may, since it is a server that the environment names, such as a proxy."""

    found: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    preset: str | None = None
    paid: bool = False
    unpriced: bool = False

    @property
    def stand_in(self) -> bool:
        """Return whether nothing was there."""
        return self.found == _STAND_IN

    def over(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what was given over the choice."""
        return {**self.settings, **given}

    def told(self, config: Settings, cost: float | None, *, plans_only: bool = False, counted: bool = False) -> str:
        """Return the line that says what is taken. cost: US dollars at most; None where a price is unknown. counted:
        it is told elsewhere."""
        who = [f"{config.planner} plans"]
        judges = ", ".join(judge if judge != NOBODY else "nobody" for judge in config.judges)
        who += [] if plans_only else [f"{config.renderer} draws", f"{judges} judges"]
        free = "what it costs is not known here" if self.unpriced else "free of charge"
        price = free if not self.paid else "price unknown" if cost is None else f"about ${cost:.2f} at most"
        price = "the price is told before anything is paid" if counted and self.paid else price
        usual, _ = usual_preset()
        hint = f" (--preset {usual}: free of charge)" if self.paid and usual else ""
        hint = " (`katha doctor` says what a model needs)" if self.stand_in else hint
        return f"{self.found}: {', '.join(who)}; {price}{hint}."


def choose(
    given: Mapping[str, Any], preset: str | None = None, environment: Mapping[str, str] = os.environ
) -> Choice | None:
    """Return what this machine offers; None where a flag, a preset or the environment says who plans, draws or judges.
    That nobody judges (`none`) leaves open who plans and draws.

    Servers and cards are looked for only where no key is set. A replay takes what its recording was made with.
    """
    told = {name for name in Settings.model_fields if environment.get(f"KATHA_{name.upper()}")}
    named = told | {name for name, value in given.items() if value is not None}
    if _only(given.get("judges"), NOBODY) and "judges" not in told:
        named.discard("judges")  # that nobody judges does not say who plans and draws
    if preset is not None or is_replayed() or named & set(_WHO):
        return None
    found = next(_choices(environment), Choice(_STAND_IN))
    return Choice(
        found.found,
        {name: value for name, value in found.settings.items() if name not in told},
        found.preset,
        found.paid,
        found.unpriced,
    )


def _only(given: object, name: str) -> bool:
    """Return whether a setting that takes several names was given this one alone."""
    return given == name or (isinstance(given, (list, tuple)) and list(given) == [name])


def _choices(environment: Mapping[str, str]) -> Iterator[Choice]:
    for variable, row in keys_set(environment):
        settings = {name: value for name, value in row.items() if name != "provider"}
        yield Choice(f"{variable} is set", settings, paid=True)
    if environment.get(NO_PROBE):
        return
    for server in servers(environment):
        yield Choice(f"{server} is there", settings_of(server), unpriced=server.name == _NAMED)
    size = card()
    for row in load_config("day-one.yaml")["cards"] if size else ():
        choice = Choice(
            f"A card of {size} GB is there", {k: v for k, v in row.items() if k not in ("gb", "preset")}, row["preset"]
        )
        if row["gb"] <= size and not _missing(choice):
            yield choice


def _missing(choice: Choice) -> str:
    """Return what a preset with the changes for a card lacks on this machine."""
    from katha.agents.context import load_plugins

    try:
        load_plugins(resolve(choice.settings, preset=choice.preset, environment={}, choose=choose_here))
    except KathaError as error:
        return str(error)
    return ""


# Keys: variables of the vendors, where the vendor is not replaced by a server on this machine.


def keys_set(environment: Mapping[str, str] = os.environ) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the variables that hold keys, each with the row of `configs/day-one.yaml` for its vendor. A word that
    stands for no key (`OPENAI_API_KEY=x`, for a server that asks for one) is none."""
    providers, data = load_config("providers.yaml"), load_config("day-one.yaml")
    none = {str(word) for word in data["placeholders"]}
    for row in data["keys"]:
        section = providers[row["provider"]]
        given = ((name, environment.get(name, "").strip().lower()) for name in section["key"])
        variable = next((name for name, value in given if value and value not in none), None)
        if variable is not None and not is_loopback(environment.get(section["text"]["url_variable"], "")):
            yield variable, row


# Servers on this machine.


def servers(environment: Mapping[str, str] = os.environ) -> Iterator[LocalServer]:
    """Yield the servers that answer at their usual ports, and where OPENAI_BASE_URL says that there is one here."""
    data = load_config("day-one.yaml")["servers"]
    named = environment.get("OPENAI_BASE_URL", "")
    places = [(_NAMED, named)] if is_loopback(named) else []
    places += [(name, f"http://127.0.0.1:{port}/v1") for name, port in data["ports"].items()]
    for name, url in places:
        models = _writers(listed(url, data["seconds"]), data["no_text"])
        if models:
            yield LocalServer(name, url, tuple(models))


def listed(url: str, seconds: float) -> list[str]:
    """Return the models that the server at `url` lists; nothing where none answers in time. It is asked once."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not is_loopback(url):
        return []
    connection = HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80, timeout=seconds)
    try:
        connection.request("GET", f"{parts.path.rstrip('/')}/models", headers={"accept": "application/json"})
        response = connection.getresponse()
        rows = json.loads(response.read(_MOST_BYTES))["data"] if response.status == 200 else []
        return [row["id"] for row in rows if isinstance(row, dict) and isinstance(row.get("id"), str)]
    except (OSError, HTTPException, ValueError, KeyError, TypeError, RecursionError):
        return []
    finally:
        connection.close()


def _writers(names: Iterable[str], no_text: Iterable[str]) -> list[str]:
    """Return the models that write text, the largest first; those whose names tell no size as they are listed."""
    kept = [name for name in names if not any(word in name.lower() for word in no_text)]
    return sorted(kept, key=_size, reverse=True)


def _size(name: str) -> float:
    return max((float(found) for found in _SIZE.findall(name)), default=0.0)


def settings_of(server: LocalServer) -> dict[str, Any]:
    """Return the settings of a server: its largest model plans and draws, the largest that sees judges, if one does."""
    data = load_config("day-one.yaml")["servers"]
    model = server.models[0]
    seeing = [name for name in server.models if any(word in name.lower() for word in data["sees"])]
    at = {"base_url": server.url}
    return {
        "planner": f"gemma-st:openai:{model}",
        "planner_options": at,
        "renderer": f"vector:openai:{model}",
        "renderer_options": {**at, "contract": "tried", **({} if model in seeing else {"eyes": False})},
        "seeds": tuple(data["seeds"]),
        **({"judges": (f"openai:{seeing[0]}",), **at} if seeing else {"judges": (NOBODY,), "mode": "base"}),
    }


# Cards.


def card() -> int | None:
    """Return the size of the largest NVIDIA card in GB, as it is printed on it; None where there is none."""
    if shutil.which(_SMI[0]) is None:
        return None
    try:
        done = subprocess.run(_SMI, capture_output=True, text=True, timeout=_SMI_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return None
    sizes = [int(line) for line in done.stdout.split() if line.isdigit()]
    return round(max(sizes) / 1024) if done.returncode == 0 and sizes else None


def unfit(preset: str, size: int | None) -> str:
    """Return why a preset's largest model has no room here: no card, or one of `size` GB; "" where it has."""
    takes = load_config("day-one.yaml")["takes"].get(preset)
    if takes is None or (size is not None and size >= takes):
        return ""
    if size is None:
        return f"it needs a card with {takes} GB, and no NVIDIA card was found"
    return f"it needs a card with {takes} GB, and the largest here has {size} GB"
