"""What the two encoder rules share: a transformers model from a folder or the local cache, and its settings as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

import yaml

from katha.errors import InputFileError, first_line
from katha.eval_bridge.extras import need
from katha.eval_bridge.matching import accepted_set
from katha.eval_bridge.normal import normalise
from katha.models.source import find_folder, folder_revision, read_config
from katha.prompting import load_prompt
from katha.schema import Question

__all__ = ["Encoder", "accepted_texts", "chunks", "claim", "settings"]

T = TypeVar("T")


@cache
def settings(family: str) -> Mapping[str, Any]:
    """The rule's section of `configs/matching.yaml`."""
    text = files("katha.configs").joinpath("matching.yaml").read_text(encoding="utf-8")
    section: Mapping[str, Any] = yaml.safe_load(text)[family]
    return section


def claim(question: str, answer: str) -> str:
    """An answer in its question's context, as one text."""
    return load_prompt("match/claim").render(question=question, answer=answer)


def accepted_texts(question: Question) -> list[str]:
    """The canonical answer and its paraphrases as they are written, each once, in a fixed order."""
    found = {normalise(text): text for text in (*question.accepted_answers, question.gold_answer)}
    return [found[key] for key in sorted(accepted_set(question))]


def chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """`items` in pieces of at most `size`."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


@dataclass
class Encoder:
    """A model's folder and revision; weights are read at the first use. auto: the transformers class for them."""

    family: str
    name: str
    auto: str

    def __post_init__(self) -> None:
        """Find the files and check what they are.

        Raises:
            MissingExtraError: torch or transformers is missing. InputFileError: no such folder, or no model in it.
            ModelError: the model is not on this machine; the hint is the command that fetches it.
        """
        for module in ("torch", "transformers"):
            need(module, f"The matching rule {self.family!r}", "local")
        folder = find_folder(self.name)
        self.folder, self.config = folder, read_config(self.name, folder)
        self.revision = folder_revision(folder)
        self._loaded: tuple[Any, Any] | None = None

    def spec(self) -> dict[str, Any]:
        """Everything that can change a score."""
        return {
            "rule": self.family,
            "model": self.folder.name if Path(self.name).is_dir() else self.name,
            "revision": self.revision,
            "claim": load_prompt("match/claim").sha256,
            **settings(self.family),
            "versions": {name: version(name) for name in ("torch", "transformers")},
        }

    def load(self) -> tuple[Any, Any]:
        """Tokenizer and model, ready; safetensors only, nothing is fetched and no code of the model's is run.

        Raises:
            InputFileError: the files cannot be loaded.
        """
        if self._loaded is None:
            transformers = need("transformers", f"The matching rule {self.family!r}", "local")
            try:
                tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
                model, report = getattr(transformers, self.auto).from_pretrained(
                    self.folder, local_files_only=True, use_safetensors=True, output_loading_info=True
                )
            except Exception as error:  # from_pretrained raises many kinds, all meaning that these files are no model
                reason = first_line(error)
                raise InputFileError(f"{self.name!r} cannot be loaded: {reason}", hint="Download it again.") from error
            missing = [name for name in report["missing_keys"] if "pooler" not in name]
            if missing:
                raise InputFileError(
                    f"{self.name!r} lacks {len(missing)} weights, the first {sorted(missing)[0]!r}.",
                    hint=f"The rule {self.family!r} needs a model that was trained for it.",
                )
            self._loaded = (tokenizer, model.float().eval())
        return self._loaded

    def encode(self, *texts: Sequence[str]) -> Any:
        """The tokenizer's batch of one or two lists of texts, cut at the rule's `longest`."""
        tokenizer, _ = self.load()
        longest = int(settings(self.family)["longest"])
        return tokenizer(*map(list, texts), padding=True, truncation=True, max_length=longest, return_tensors="pt")
