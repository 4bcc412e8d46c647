"""A release as a dataset of the Hugging Face Hub: records by split, a card, and `eval.yaml` with its leaderboards."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from katha.configs import load_config
from katha.errors import UsageError
from katha.jsonio import canonical, write_bytes_atomic
from katha.schema import ContrastiveVariant, StoryRecord
from katha.stories import VARIANTS_FILE, load_stories

HIDDEN = "hidden_test"
"""The split whose answers a public repository must not hold."""

_NAME = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))


@dataclass(frozen=True)
class Published:
    """What was written: stories by split, questions, and how many stories of the hidden test stayed out."""

    stories: dict[str, int]
    questions: int
    variants: int
    hidden: int


def require_repository(name: str) -> str:
    """Return `name` if it can name a repository of the Hub.

    Raises:
        UsageError: it is not `ORGANISATION/NAME`.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r} is not a repository of the Hub.", hint="Write ORGANISATION/NAME.")
    return name


def publish(stories: Path, out: Path, name: str, variants: Sequence[ContrastiveVariant] = ()) -> Published:
    """Write the folder that `hf upload NAME OUT --repo-type dataset` takes. Nothing is sent.

    `data/stories/SPLIT.jsonl` holds records in the released form, `data/questions/SPLIT.jsonl` one question a row,
    `eval.yaml` the leaderboards (`configs/hub.yaml`). Stories without a split are the split `train`.

    Raises:
        UsageError: `out` is a folder with something in it, or there is no story outside the hidden test.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{str(out)!r} has something in it.", hint="Name a new folder with --out.")
    records = load_stories(stories)
    by_split: dict[str, list[StoryRecord]] = {}
    for record in records:
        by_split.setdefault(record.split or "train", []).append(record)
    hidden = len(by_split.pop(HIDDEN, []))
    if not by_split:
        raise UsageError(f"{str(stories)!r} has only stories of {HIDDEN}, whose answers are not for a public place.")
    shown = {record.story_id for own in by_split.values() for record in own}
    kept = [item for item in variants if item.base_story_id in shown]
    configs: dict[str, list[str]] = {"stories": [], "questions": []}
    for split, own in sorted(by_split.items()):
        rows = [row for record in own for row in _questions(record)]
        _write_lines(out / "data" / "stories" / f"{split}.jsonl", [one.model_dump(mode="json") for one in own])
        configs["stories"].append(split)
        if rows:
            _write_lines(out / "data" / "questions" / f"{split}.jsonl", rows)
            configs["questions"].append(split)
    if kept:
        _write_lines(out / "data" / VARIANTS_FILE, [item.model_dump(mode="json") for item in kept])
    made = Published(
        {split: len(own) for split, own in sorted(by_split.items())},
        sum(len(record.recoverability_questions) for own in by_split.values() for record in own),
        len(kept),
        hidden,
    )
    write_bytes_atomic(out / "README.md", _card(made, name, configs).encode("utf-8"))
    write_bytes_atomic(out / "eval.yaml", _benchmark(made, configs).encode("utf-8"))
    return made


def _questions(record: StoryRecord) -> list[dict[str, Any]]:
    """Return a story's questions with what a reader needs of the story, every row with the same keys."""
    return [
        {
            "story_id": record.story_id,
            "question_id": item.question_id,
            "story_text": record.story_text,
            "question_type": item.question_type,
            "question": item.question,
            "gold_answer": item.gold_answer,
            "accepted_answers": item.accepted_answers,
            "target_transition": list(item.target_transition) if item.target_transition else None,
        }
        for item in record.recoverability_questions
    ]


def _write_lines(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes_atomic(path, b"".join(canonical(row) + b"\n" for row in rows))


def _card(made: Published, name: str, configs: dict[str, list[str]]) -> str:
    """Return the dataset card: the header that the Hub reads, and what is in the files."""
    total = sum(made.stories.values())
    header: dict[str, Any] = {
        "pretty_name": name.partition("/")[2],
        "language": ["en"],
        "task_categories": ["text-to-image", "visual-question-answering"],
        "tags": ["storyboards", "benchmark"],
        "size_categories": [next((size for limit, size in _SIZES if total < limit), "100K<n<1M")],
        "configs": [
            {
                "config_name": config,
                "data_files": [{"split": split, "path": f"data/{config}/{split}.jsonl"} for split in splits],
            }
            for config, splits in configs.items()
            if splits
        ],
    }
    if made.variants:
        files = [{"split": "train", "path": f"data/{VARIANTS_FILE}"}]
        header["configs"].append({"config_name": "contrastive_variants", "data_files": files})
    counts = Counter(made.stories)
    lines = [f"- `{split}`: {count:,} stories" for split, count in sorted(counts.items())]
    hidden = [f"{made.hidden:,} stories of the hidden test are not in this repository.", ""] if made.hidden else []
    body = load_config("hub.yaml")["card"].format(name=name.partition("/")[2], questions=f"{made.questions:,}")
    told = yaml.safe_dump(header, sort_keys=False, allow_unicode=True)
    return f"---\n{told}---\n\n{body}\n\n" + "\n".join([*lines, "", *hidden])


def _benchmark(made: Published, configs: dict[str, list[str]]) -> str:
    """Return `eval.yaml`: each leaderboard on the public test, or on the last split there is."""
    told = load_config("hub.yaml")["benchmark"]
    splits = configs["questions"] or configs["stories"]
    split = next((name for name in ("public_test", "test", "validation") if name in splits), splits[-1])
    config = "questions" if configs["questions"] else "stories"
    tasks = [{"id": task, "config": config, "split": split} for task in told["tasks"]]
    return yaml.safe_dump(told | {"tasks": tasks}, sort_keys=False, allow_unicode=True)
