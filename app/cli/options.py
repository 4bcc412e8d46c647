"""Options of the command line: those of the settings, made from their fields, and the few that several verbs share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from katha.app.recording import recorded
from katha.config import Flag, Settings
from katha.eval_bridge.judging.budget import Budget
from katha.experiments.inputs.stories import SPLIT_HELP

CALLED = ("judges", "judge_options", "base_url", "patience", "keep_going")
"""The settings of a verb that calls judges."""
JUDGED = (*CALLED, "answers", "matching", "variant", "mapping")
"""The settings of a verb that asks judges katha's own questions."""
STORY_HELP = "A text file, a record (.json), or FILE.jsonl#story_id."
ANY_HELP = "A text file, a record (.json), FILE.jsonl#story_id; or a JSON Lines file or folder of many."
Story = Annotated[str, typer.Argument(help=STORY_HELP)]
Stories = Annotated[str, typer.Argument(help="A JSON Lines file, a record, or a folder of them.")]
Boards = Annotated[
    list[str],
    typer.Option("--boards", help="DIR or NAME=DIR, a folder with one folder per story. Several are compared."),
]
Adapter = Annotated[
    str | None, typer.Option("--adapter", help="A LoRA adapter for --planner gemma-st (`katha train planner`).")
]
Lock = Annotated[Path | None, typer.Option("--lock", help="compass.lock.yaml of `katha tune`: frozen settings.")]
Split = Annotated[str | None, typer.Option("--split", help=SPLIT_HELP)]
Panels = Annotated[str | None, typer.Option("--panels", help=Settings.model_fields["panels"].description)]
Matching = Annotated[str | None, typer.Option("--matching", help=Settings.model_fields["matching"].description)]
Resamples = Annotated[int, typer.Option("--resamples", min=0, help="Bootstrap resamples of stories.")]
Seed = Annotated[int, typer.Option("--seed", help="The seed of the bootstrap.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Draw and ask nothing; print calls, tokens and dollars.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object for machines instead of text.")]

_PRESET = Annotated[
    str | None,
    typer.Option(
        "--preset", help="Settings by name, or a YAML file of your own.", rich_help_panel="Money, pace and machines"
    ),
]
_MAX_CALLS = Annotated[
    int | None,
    typer.Option(
        "--max-calls",
        min=0,
        help="Stop cleanly after so many calls of judges and image services.",
        rich_help_panel="Money, pace and machines",
    ),
]
_MAX_COST = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        min=0,
        help="Stop cleanly before so many US dollars, of answers and pictures.",
        rich_help_panel="Money, pace and machines",
    ),
]
_RECORD = Annotated[
    Path | None,
    typer.Option("--record", help="Write every call of a language model, and its reply, into this file."),
]
_REPLAY = Annotated[
    Path | None,
    typer.Option("--replay", help="Take every reply from this file (--record); nobody is called, no key is needed."),
]
Verb = Callable[..., None]
GROUPS = {
    "Story and pictures": (
        "planner planner_options renderer renderer_options bridge_renderer bridge_renderer_options guide guide_options "
        "memory seeds panels size style characters mapping"
    ),
    "Judges": (
        "judges steering_judges judge_options answers ask matching variant verify_reuse keep_going similarity metrics"
    ),
    "Repair": "mode writer moves review",
    "Money, pace and machines": "preset max_calls max_cost base_url patience workers cluster",
}
"""Under which heading a verb's help lists an option, by the name of its field."""


@dataclass(frozen=True)
class GivenOptions:
    """What a command line says of a record of settings: a preset, and by the fields' names what was given."""

    changes: dict[str, Any]
    preset: str | None = None
    budget: Budget | None = None


def options_from(
    settings: type[BaseModel],
    *,
    only: Collection[str] | None = None,
    leave_out: Collection[str] = (),
    into: str = "given",
    preset: bool = True,
    limits: bool = True,
) -> Callable[[Verb], Verb]:
    """Give a verb one option for each field of `settings`; it takes all of them as one parameter of type
    `GivenOptions`.

    A field's description is the option's help and its annotation the option's type; texts that the field itself reads
    (sizes, seeds) stay texts. Ranges and choices are the field's own to refuse, so that a flag, a file and the
    environment meet the same sentence.

    Args:
        settings: The model whose fields become options; a `Flag` in a field's annotation names its option.
        only: The fields to take; all of them unless told.
        leave_out: Fields to leave out.
        into: The parameter that takes what was given.
        preset: Whether `--preset` comes with them.
        limits: Whether `--max-calls` and `--max-cost` come with them.
    """
    wanted = [name for name in settings.model_fields if (only is None or name in only) and name not in leave_out]
    made = [item for name in wanted for item in _parameters(name, settings.model_fields[name])]
    made += [_parameter("preset", _PRESET)] if preset else []
    made += [_parameter("max_calls", _MAX_CALLS), _parameter("max_cost", _MAX_COST)] if limits else []

    def decorate(verb: Verb) -> Verb:
        own = list(inspect.signature(verb, eval_str=True).parameters.values())
        place = next(at for at, item in enumerate(own) if item.name == into)

        def command(**values: Any) -> None:
            told = {item.name: values.pop(item.name) for item in made}
            most = (told.pop("max_calls", None), told.pop("max_cost", None))
            chosen = told.pop("preset", None)
            # By identity: a 0 that was given is equal to False and is not an absent flag.
            changes = {name: value for name, value in told.items() if not _absent(value)}
            budget = Budget(*most) if most != (None, None) else None
            verb(**values, **{into: GivenOptions(changes, chosen, budget)})

        return _as_verb(command, verb, [*own[:place], *made, *own[place + 1 :]])

    return decorate


def with_recordings(verb: Verb) -> Verb:
    """Give a verb `--record` and `--replay`; without them, its models' calls are found and kept in the store."""
    own = list(inspect.signature(verb, eval_str=True).parameters.values())
    name = verb.__name__

    def command(**values: Any) -> None:
        left: typer.Exit | None = None
        with recorded(values.pop("record"), values.pop("replay"), command=name):
            try:
                verb(**values)
            except typer.Exit as leave:  # what is unfinished is recorded, too
                left = leave
        if left is not None:
            raise left

    return _as_verb(command, verb, [*own, _parameter("record", _RECORD), _parameter("replay", _REPLAY)])


def _as_verb(command: Callable[..., None], verb: Verb, parameters: list[inspect.Parameter]) -> Verb:
    """Give `command` the name and the help of `verb`, and these parameters."""
    command.__name__, command.__doc__, command.__module__ = verb.__name__, verb.__doc__, verb.__module__
    # Keyword-only, so that an argument without a default may stand behind options that have one.
    told = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY) for item in parameters]
    command.__signature__ = inspect.Signature(told)  # type: ignore[attr-defined]
    command.__annotations__ = {item.name: item.annotation for item in told}
    return command


def _absent(value: object) -> bool:
    return value is None or value is False or value == []


def _parameters(name: str, field: FieldInfo) -> Iterator[inspect.Parameter]:
    """The option for one field; none for a field that the command line has not."""
    flag = next((item for item in field.metadata if isinstance(item, Flag)), Flag())
    # A field of several values that one text holds (`--seeds 1,2`, `--panels 4-8`) reads the text itself.
    one_text = flag.text or (get_origin(field.annotation) is tuple and not flag.many)
    kinds = set() if one_text else {field.annotation, *get_args(field.annotation)}
    kind: Any = next((known for known in (bool, int, float, Path) if known in kinds), str)
    typed: Any = list[kind] | None if flag.many else bool if kind is bool else kind | None
    names = flag.names or (f"--{name.replace('_', '-')}",)
    if flag.hidden:
        return
    group = next((heading for heading, fields in GROUPS.items() if name in fields.split()), None)
    told = f"{field.description} (KATHA_{name.upper()})" if name in Settings.model_fields else field.description
    yield _parameter(name, Annotated[typed, typer.Option(*names, help=told, rich_help_panel=group)])


def _parameter(name: str, annotation: Any) -> inspect.Parameter:
    default = False if get_args(annotation)[0] is bool else None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
