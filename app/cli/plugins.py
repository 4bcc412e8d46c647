"""Plug-ins: what is installed, what it can do, what would run (`katha doctor`); and a skeleton for one of your own."""

from __future__ import annotations

import dataclasses
import keyword
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from katha.addresses import is_loopback, shown, store_address
from katha.app.cli.console import echo_json
from katha.app.cli.options import Json
from katha.app.cli.store import check as look
from katha.app.day_one import NO_PROBE, Choice, card, choose, keys_set, servers, settings_of, unfit
from katha.app.presets import choose_countable, lacks
from katha.config import Settings, cache_folder, require_chosen, resolve, usual_preset
from katha.configs import config_names, load_config, load_prompt
from katha.errors import KathaError, OutputFolderError, UnknownPluginError, UsageError
from katha.eval_bridge.judges.none import NOBODY
from katha.installing import install_line, stand_in_line
from katha.jsonio import write_bytes_atomic
from katha.models.base import TextModel, Turn
from katha.models.checkpoints import find_folder
from katha.models.client import AnthropicClient, Fault, OpenAIClient, ProviderClient, find_vendor
from katha.models.lifecycle import ending, models_of, standing
from katha.models.registry import make_model
from katha.models.served import ENGINES, ModelServer, address_variable
from katha.registry import Family, default_registry, option_names
from katha.usual import usual_rule

_REQUIREMENT, _EXTRA = re.compile(r"[\w.-]+"), re.compile(r"extra == ['\"]([\w-]+)")
_KEYS = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY")

Kind = Literal["renderer", "judge", "planner", "metric"]
Name = Annotated[str, typer.Argument(help="What it is called: small letters, digits, hyphens.")]
Out = Annotated[Path | None, typer.Option("--out", help="The package's folder; katha-NAME unless told.")]
_CLIENTS: Mapping[str, type[ProviderClient]] = {
    "anthropic": AnthropicClient,
    "openai": OpenAIClient,
    "gemini": OpenAIClient,
}
_LOOK = 10.0
"""Seconds that a vendor has to list its models."""
_TRY_SECONDS = 60.0
_TRY_TOKENS = 1024
_DRAW_TOKENS = 8_000
"""At most: models that think do so before they say one word."""
_FAMILIES: Mapping[Kind, Family] = {
    "renderer": "renderers",
    "judge": "judges",
    "planner": "planners",
    "metric": "metrics",
}
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


def doctor(
    cache: Annotated[
        bool, typer.Option("--cache", help="Look at everything in the cache instead; set aside what is damaged.")
    ] = False,
    tried: Annotated[
        bool, typer.Option("--try", help="Try each model that a key or server offers with one call of about 20 tokens.")
    ] = False,
    drawn: Annotated[
        bool,
        typer.Option("--draw", help="Have each draw one head and one hand, about 4,000 tokens: can it draw boards?"),
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every package, preset and model, not only what works or is wrong.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show which keys, servers and devices are there, what would run with them, and what to do next.

    A vendor whose key is set is asked for its list of models, which costs nothing; --try makes one short call to each
    model that `katha run STORY` would take, which costs less than a cent; --draw has each that would draw as vectors
    take the entrance test, which costs some cents.
    """
    if cache:
        look(as_json)
        return
    value = _diagnosis()
    if tried:
        value = {**value, "tried": tries(_answers, max_tokens=_TRY_TOKENS, timeout=_TRY_SECONDS)}
    if drawn:
        value = {**value, "drawn": tries(_draws, part="renderer", max_tokens=_DRAW_TOKENS)}
    if as_json:
        echo_json(value)
        return
    for section, items in value.items():
        shown_here = items if everything else {name: state for name, state in items.items() if _matters(section, state)}
        if shown_here:
            typer.echo(f"{section}:")
        for name, state in shown_here.items():
            typer.echo(f"  {name:<34} {state}")
    if not everything:
        typer.echo("Every package, preset and model: katha doctor --all")


def _matters(section: str, state: str) -> bool:
    """Return whether a row says what works here or is broken; the others are shown where all are wanted."""
    if section == "packages":
        return state.startswith("missing")
    if section == "would run":
        return state.endswith("(ready)")
    return section not in ("models", "free answers")


def _lister(family: Family, about: str) -> Callable[..., None]:
    def verb(as_json: Json = False) -> None:
        rows = [_describe(family, name) for name in default_registry(family).names()]
        if as_json:
            echo_json(rows)
            return
        for row in rows:
            typer.echo(f"{row['name']:<18}{row['about']}")
            for key, value in row["capabilities"].items():
                typer.echo(f"{'':<18}  {key}: {value}")
            for key, value in row["options"].items():
                typer.echo(f"{'':<18}  option {key}: {value}")

    verb.__doc__ = about
    return verb


renderers = _lister("renderers", "List the renderers: what each is, and what it can do.")
planners = _lister("planners", "List the planners.")
judges = _lister("judges", "List the judges.")


def _describe(family: Family, name: str) -> dict[str, Any]:
    try:
        factory, _ = default_registry(family).load(name)
    except UnknownPluginError as error:  # one that is broken hides none of the others
        return {"name": name, "about": str(error), "capabilities": {}, "options": {}}
    about = (factory.__doc__ or "").strip().partition("\n")[0]
    capabilities = getattr(factory, "capabilities", None)
    known = dataclasses.asdict(capabilities) if dataclasses.is_dataclass(capabilities) else {}  # type: ignore[arg-type]
    return {"name": name, "about": about, "capabilities": known, "options": option_names(factory)}


def _diagnosis() -> dict[str, dict[str, str]]:
    folder = cache_folder()
    nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
    usable = "writable" if os.access(nearest, os.W_OK) else "not writable: set KATHA_CACHE to a folder that is"
    size, choice = card(), choose({})
    gpu = f"{size} GB" if size else "driver found, no card" if shutil.which("nvidia-smi") else "none found"
    return {
        "katha": {"version": version("katha"), "python": sys.version.split()[0]},
        "packages": _packages(),
        "keys": {key: "set" if os.environ.get(key) else "not set" for key in _KEYS},
        "servers": _servers(),
        "devices": {"cpu cores": str(os.cpu_count()), "nvidia gpu": gpu},
        "models": _models(),
        "free answers": {"default": usual_rule(), "recommended": _recommended()},
        "folders": {"cache": f"{folder} ({usable})", **_shared()},
        **_presets(size, choice),
        "next": _next(choice),
    }


def _presets(size: int | None, choice: Choice | None = None) -> dict[str, dict[str, str]]:
    """Return every preset as this machine would run it, and the command for the best one that is whole here.

    size: GB of the largest card; None where there is none. choice: what `katha run STORY` takes here.
    """
    found = {}
    for name in config_names("presets"):
        config, problem = lacks(name)
        found[name] = (config, problem or unfit(name, size) or _elsewhere(config))
    usual, _ = usual_preset()
    ranked = [*load_config("day-one.yaml")["best"], *filter(None, (usual,))]
    best = next((name for name in ranked if name in found and not found[name][1]), usual)
    command = f"katha run STORY --preset {best}"
    if choice is not None and not (choice.paid or choice.stand_in or choice.preset):
        best, command = "what is there", "katha run STORY"
    return {
        "would run": {name: _presented(config, problem) for name, (config, problem) in found.items()},
        "best here": {best: command} if best else {},
    }


def _replaced(provider: str) -> str:
    """Return the variable that puts a server on this machine in a vendor's place, "" where none does."""
    variable = str(load_config("providers.yaml")[provider]["text"]["url_variable"])
    return variable if is_loopback(os.environ.get(variable, "")) else ""


def _elsewhere(config: Settings) -> str:
    """Return why a preset's models cannot be had where a server stands in their vendor's place; "" where they can."""
    for spec in (config.planner, config.renderer, *config.judges):
        for provider in _CLIENTS:
            _, found, model = f":{spec}".partition(f":{provider}:")
            if found and (variable := _replaced(provider)):
                return f"{variable} names a server on this machine, which is asked for its own models, not for {model}"
    return ""


def _servers() -> dict[str, str]:
    """Return what the servers of one's own have that the environment names, by engine."""
    found: dict[str, str] = {}
    for provider, engine in ENGINES.items():
        variable = address_variable(provider)
        if not os.environ.get(variable):
            found[provider] = f"not named: set {variable} to the address of one"
            continue
        try:
            vendor = find_vendor(provider, "-")
            names = ", ".join(ModelServer(engine, vendor).names())
            found[provider] = f"serves {names or 'nothing'} ({vendor.endpoint})"
        except KathaError as error:
            found[provider] = error.message
    for server in servers() if not os.environ.get(NO_PROBE) else ():
        found[server.name] = f"serves {', '.join(server.models)} ({server.url})"
    return found


def _next(choice: Choice | None) -> dict[str, str]:
    """Return what `katha run STORY` takes here, and the one command to give next."""
    if choice is None:
        return {"katha run STORY": "takes what KATHA_PLANNER, KATHA_RENDERER and KATHA_JUDGES name"}
    config = resolve(choice.over({}), preset=choice.preset, choose=choose_countable)
    without = load_config("day-one.yaml")["without"]
    try:
        require_chosen(config)
    except UsageError as error:
        return {
            "katha run STORY": error.message,
            "for a model": without,
            "without a model": stand_in_line(),
        }
    steps = {"katha run STORY": choice.told(config, None, counted=True)}
    if choice.paid:
        return {**steps, "katha doctor --try": "tries each with one call of about 20 tokens"}
    if choice.stand_in:
        return {**steps, "for a real model": without}
    return steps


def tries(asked: Callable[[TextModel], str], part: str = "planner", **limits: Any) -> dict[str, str]:
    """Return what came of asking each model that a key or a server on this machine offers. part: whose models; judges
    are asked with the planners. limits: of one reply."""
    rows = [(settings, "") for _, settings in keys_set()]
    rows += [(settings_of(server), server.url) for server in (() if os.environ.get(NO_PROBE) else servers())]
    found: dict[str, str] = {}
    for settings, url in rows:
        named = (settings[part].removeprefix("gemma-st:").removeprefix("vector:"),)
        for spec in dict.fromkeys((*named, *(settings["judges"] if part == "planner" else ()))):
            if ":" in spec:
                found[spec] = _try(spec, url, asked, limits)
    return found or {"nothing": "no key is set, and no server of models listens on this machine"}


def _try(spec: str, url: str, asked: Callable[[TextModel], str], limits: Mapping[str, Any]) -> str:
    try:
        return asked(make_model(spec, **limits, base_url=url or None))
    except KathaError as error:
        return f"does not work: {error}"


def _answers(model: TextModel) -> str:
    began = time.monotonic()
    done = model.complete([Turn("user", load_prompt("doctor/try").render())], None)
    if done.status != "ok":
        return f"does not work: {done.error or done.status}"
    cost = done.usage.get("cost")
    spent = f", ${cost:.5f}" if cost else ""
    return f"works ({time.monotonic() - began:.1f} s, {sum(done.usage.get('tokens', {}).values())} tokens{spent})"


def _draws(model: TextModel) -> str:
    from katha.renderers.vector.entrance import enter

    found = enter(model)
    cost = f", ${found.spent.cost:.3f}" if found.spent.cost else ""
    return f"{found} ({found.spent.calls} calls, {found.spent.tokens['output']} tokens out{cost})"


def _models() -> dict[str, str]:
    """The vendors' models that katha has data of: by the vendor's own list where there is a key, else known ends."""
    found: dict[str, str] = {}
    for provider, kind in _CLIENTS.items():
        section, offered = load_config("providers.yaml")[provider], None
        if variable := _replaced(provider):
            found[provider] = f"{variable} names a server on this machine: see servers"
            continue
        if any(os.environ.get(name) for name in (*section["key"], section["text"]["url_variable"])):
            try:
                client = kind(find_vendor(provider, "-"), timeout=_LOOK)
                offered = client.typed(client.offered)
                client.close()
            except (Fault, KathaError) as error:
                found[provider] = f"did not list its models: {error.message[:100]}"
        for model in models_of(provider):
            if offered is not None or ending(provider, model) is not None:
                found[f"{provider}:{model}"] = standing(provider, model, offered)
    return found


def _recommended() -> str:
    """The matching rule to use where its model is installed, and whether it is. Nothing is loaded or fetched."""
    rule = str(load_config("matching.yaml")["recommended"])
    try:
        find_folder(rule.partition(":")[2])
    except ImportError:
        return f"{rule} (not now: {install_line('local')})"
    except KathaError as error:
        return f"{rule} (not now: {error.hint})"
    return f"{rule} (installed: --matching {rule})"


def _shared() -> dict[str, str]:
    """Return what the environment names beside the cache folder; nothing is opened."""
    address = store_address()
    return {name: shown(place) for name, place in vars(address).items() if place and name in ("index", "objects")}


def _packages() -> dict[str, str]:
    found: dict[str, str] = {}
    missing: dict[str, list[str]] = {}
    for line in requires("katha") or []:
        name, extra = _REQUIREMENT.match(line), _EXTRA.search(line)
        if name is None:
            continue
        try:
            state = version(name[0])
        except PackageNotFoundError:
            state = ""
        if extra is None:
            found[name[0]] = state or f"missing: pip install {name[0]}"
        elif extra[1] != "dev":
            missing.setdefault(extra[1], []).extend([] if state else [name[0]])
    for extra_name, absent in missing.items():
        state = f"without {', '.join(absent)}: {install_line(extra_name)}" if absent else "installed"
        found[f"extra [{extra_name}]"] = state
    return found


def _presented(config: Settings, problem: str) -> str:
    """A preset, and whether it would run, or the first thing that it lacks. Nothing is loaded, fetched or asked."""
    able = f"not now: {problem}" if problem else "ready"
    judges = ", ".join(config.judges)
    return f"{config.planner or NOBODY} + {config.renderer or NOBODY} + {judges or NOBODY}, mode {config.mode} ({able})"


# `katha new renderer|judge|planner NAME`: a small package that installs, is found by its entry point and keeps the
# contract.


new = typer.Typer(help="Write the skeleton of a plug-in of your own.", no_args_is_help=True, add_completion=False)


def _writer(kind: Kind) -> Callable[..., None]:
    def verb(name: Name, out: Out = None) -> None:
        folder = out if out is not None else Path(f"katha-{name}")
        for path in new_plugin(kind, name, folder):
            typer.echo(str(path))
        typer.echo(f"Now: pip install -e {folder}  and  pytest {folder}")

    verb.__doc__ = f"Write a package with a {kind} that works, its entry point and its contract test."
    return verb


for _kind in _FAMILIES:
    new.command(_kind)(_writer(_kind))


def new_plugin(kind: Kind, name: str, folder: Path) -> list[Path]:
    """Write the package of a plug-in called `name` into `folder`; return its files.

    Raises:
        UsageError: the name cannot be one, or is taken. OutputFolderError: `folder` holds something already.
    """
    if _NAME.fullmatch(name) is None or keyword.iskeyword(name):
        raise UsageError(f"{name!r} cannot name a {kind}.", hint="Use small letters, digits and hyphens.")
    if name in default_registry(_FAMILIES[kind]).names():
        raise UsageError(f"There is a {kind} called {name!r} already.", hint="Choose another name.")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputFolderError(f"{str(folder)!r} is not empty.", hint="Choose another --out.")
    module = "katha_" + name.replace("-", "_")
    class_name = "".join(part.capitalize() for part in name.split("-")) + kind.capitalize()
    words = {"kind": kind, "name": name, "module": module, "class_name": class_name}
    sources = {
        "pyproject.toml": "pyproject.toml.j2",
        "README.md": "README.md.j2",
        f"{module}.py": f"{kind}.py.j2",
        f"test_{module}.py": "test_module.py.j2",
    }
    return [_write(folder / target, source, words) for target, source in sources.items()]


def _write(path: Path, source: str, words: Mapping[str, str]) -> Path:
    from jinja2 import Environment, StrictUndefined

    text = files("katha.app.cli").joinpath("skeleton", source).read_text(encoding="utf-8")
    # autoescape stays off: this is source code, not markup.
    template = Environment(undefined=StrictUndefined, keep_trailing_newline=True).from_string(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputFolderError(f"Cannot write {str(path.parent)!r}: {error.strerror}.") from error
    write_bytes_atomic(path, template.render(**words).encode("utf-8"))
    return path
