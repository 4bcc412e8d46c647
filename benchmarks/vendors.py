"""What the vendors' SDKs list and `configs/providers.yaml` lacks: `python -m benchmarks.vendors`.

`--prices FILE` fills in prices from a table in the form of litellm's `model_prices_and_context_window.json`; `--write`
puts the rows into the file, where somebody has to look at them before they are committed.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, get_args

import yaml

PROVIDERS = Path(__file__).parents[1] / "configs" / "providers.yaml"
_OTHER = re.compile(r"audio|search|codex|chat|preview|latest|16k|32k|gpt-3\.5|gpt-4$|gpt-4-|dall-e")
"""Models that neither plan, judge nor draw here, or that are gone."""
_SNAPSHOT = re.compile(r"-(\d{4}-\d{2}-\d{2}|\d{8}|\d{4})$")
_SUCCESSOR = {"anthropic": "claude-sonnet-5-5", "openai": "gpt-6-luna"}
_KINDS = ("input", "cache_write", "cached", "output")
_TABLE = (
    "input_cost_per_token",
    "cache_creation_input_token_cost",
    "cache_read_input_token_cost",
    "output_cost_per_token",
)


@dataclass(frozen=True)
class Lacking:
    """What a section has no row for: models, by kind, and the ends of models with their day."""

    text: tuple[str, ...]
    pictures: tuple[str, ...]
    ends: Mapping[str, date]


def sdk_models(provider: str) -> tuple[list[str], list[str], dict[str, date]]:
    """Return what the vendor's SDK lists: models that write, models that draw, and days on which models end."""
    if provider == "anthropic":
        from anthropic._data import DEPRECATED_MODELS
        from anthropic.types.model import Model

        told = {name: re.sub(r"(\d)(st|nd|rd|th)", r"\1", day) for name, day in DEPRECATED_MODELS.items()}
        ends = {name: datetime.strptime(day, "%B %d, %Y").replace(tzinfo=UTC).date() for name, day in told.items()}
        return list(get_args(get_args(Model)[0])), [], ends
    from openai.types import image_model
    from openai.types.shared import chat_model

    source = Path(str(chat_model.__file__)).read_text("utf-8")
    return list(get_args(chat_model.ChatModel)), list(get_args(image_model.ImageModel)), dict(_shutdowns(source))


def _shutdowns(source: str) -> Iterator[tuple[str, date]]:
    """Yield each model and the day that the SDK's own words announce for it."""
    notes = " ".join(source.rpartition('"""Deprecated values:')[2].split())
    for names, day in re.findall(r'- ((?:"[^"]+",? ?)+):? ?[^"]*?(\d{4}-\d{2}-\d{2})', notes):
        yield from ((name, date.fromisoformat(day)) for name in re.findall(r'"([^"]+)"', names))


def lacking(provider: str, section: Mapping[str, Any], today: date) -> Lacking:
    """Return what a section of the data lacks of what the SDK lists; dated snapshots are their model's."""
    text, pictures, ends = sdk_models(provider)
    wanted = {name: day for name, day in ends.items() if not _OTHER.search(name) and not _SNAPSHOT.search(name)}
    gone = {name for name, day in ends.items() if day <= today}

    def without(kind: str, listed: list[str]) -> tuple[str, ...]:
        known = section.get(kind, {}).get("models", {})
        names = (name for name in listed if not _OTHER.search(name) and not _SNAPSHOT.search(name) and name not in gone)
        return tuple(name for name in names if name not in known and name not in section.get("ends", {}))

    known = {name: row["date"] for name, row in section.get("ends", {}).items()}
    return Lacking(
        without("text", text),
        without("pictures", pictures),
        {name: day for name, day in wanted.items() if known.get(name) != day},
    )


def rows(provider: str, found: Lacking, prices: Mapping[str, Any], today: date) -> dict[str, list[str]]:
    """Return the lines that the data lacks, by the part of the section that they belong to."""
    made: dict[str, list[str]] = {"ends": [], "text": [], "pictures": []}
    for name, day in found.ends.items():
        made["ends"].append(f"    {name}: {{date: {day}, instead: {_SUCCESSOR[provider]}}}  # look up the successor")
    for name in found.text:
        told = prices.get(name, {})
        each = {kind: told.get(column) for kind, column in zip(_KINDS, _TABLE, strict=True)}
        each["cache_write"] = each["cache_write"] or each["input"]
        each["cached"] = each["cached"] or each["input"]
        dollars = ", ".join(f"{kind}: {round(value * 1e6, 4)}" for kind, value in each.items() if value is not None)
        price = f"{{{dollars}}}" if each["input"] is not None else "null"
        made["text"].append(f"      {name}: {{price: {price}, read: {today}}}")
    made["pictures"] += [f"      {name}: {{price: null, read: {today}}}" for name in found.pictures]
    return made


def with_rows(text: str, provider: str, made: Mapping[str, list[str]]) -> str:
    """Return the data file's text with the lines put first in their parts."""
    lines, out, section, part = text.splitlines(), list[str](), "", ""
    for line in lines:
        out.append(line)
        if re.match(r"\w+:", line):
            section, part = line.partition(":")[0], ""
        elif (name := re.match(r"  (\w+):", line)) is not None:
            part = name[1]
        if section == provider and (line.startswith("  ends:") or (line == "    models:" and part in made)):
            out += made["ends" if line.startswith("  ends:") else part]
    return "\n".join(out) + "\n"


def main(given: list[str] | None = None) -> None:
    """Print the rows that are missing, or write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--prices", type=Path, help="a table of prices in litellm's form")
    parser.add_argument("--write", action="store_true", help="write the rows into the data file")
    parser.add_argument("--file", type=Path, default=PROVIDERS, help="the data file")
    told = parser.parse_args(given)
    prices = json.loads(told.prices.read_text("utf-8")) if told.prices is not None else {}
    text, today = told.file.read_text("utf-8"), datetime.now(UTC).date()
    data = yaml.safe_load(text)
    for provider in _SUCCESSOR:
        made = rows(provider, lacking(provider, data[provider], today), prices, today)
        for part, lines in made.items():
            sys.stdout.write("".join(f"{provider}.{part}: {line.strip()}\n" for line in lines))
        text = with_rows(text, provider, made)
    if told.write:
        told.file.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
