"""Evaluation sets at a mixing ratio (VCMS, Sec. 4): closed-ended stories, and a share of open-ended ones.

The paper mixes `T_mix = (1 - a) T_closed u a T_open`, trains a discrete diffusion language model on it, has that go on
from the beginnings of the closed stories, and mends the grammar by a language model. That model is not published: here
any language model goes on from the same beginnings, with stories of the mix as its examples, so that the ratio enters
by what it is shown. Without a model the mix itself is the set.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from katha.configs import load_prompt
from katha.errors import MissingExtraError, UsageError
from katha.models.base import TextModel, Turn
from katha.models.checkpoints import find_folder, load_pretrained, need, require_local
from katha.models.replies import object_of
from katha.schema import StoryRecord
from katha.sentences import whole_sentences

_EXAMPLES = 4
_MAUVE = "MAUVE (mauve-text)"
_CAUSAL = "A perplexity needs a causal language model, such as gpt2-large."
# GPT-2's window; models with a longer one read no more of a text, so that numbers compare.
_WINDOW = 1024


@dataclass(frozen=True)
class Mixed:
    """A mixed set. `sources`: by story id, `closed` or `open`."""

    stories: tuple[StoryRecord, ...]
    sources: Mapping[str, str]


def mix_stories(closed: Sequence[StoryRecord], opened: Sequence[StoryRecord], ratio: float, seed: int = 42) -> Mixed:
    """Return as many stories as `closed` has, a share `ratio` of them open-ended, drawn without replacement.

    The number is the paper's: as many as in the original evaluation set. Closed ones stay in their order, open ones
    follow; the draw depends on the seed and the ids alone, and a higher ratio keeps the open stories of a lower one.

    Raises:
        UsageError: the ratio is not from 0 to 1, there are not enough open-ended stories, or an id is in both.
    """
    if not 0 <= ratio <= 1:
        raise UsageError(f"--ratio {ratio:g} is not from 0 to 1.", hint="0.25 is a quarter of open-ended stories.")
    wanted = round(ratio * len(closed))
    if wanted > len(opened):
        raise UsageError(
            f"--ratio {ratio:g} of {len(closed)} stories needs {wanted} open-ended ones; there are {len(opened)}.",
            hint="Give more of them, or a lower ratio.",
        )
    twice = sorted({story.story_id for story in closed} & {story.story_id for story in opened})
    if twice:
        raise UsageError(f"The story {twice[0]!r} is in both sets.", hint="Give each story its own id.")
    chance = random.Random(seed)
    left = set(_drawn(closed, len(closed), chance)[: len(closed) - wanted])
    taken = _drawn(opened, len(opened), random.Random(seed + 1))[:wanted]
    by_id = {story.story_id: story for story in opened}
    kept = [story for story in closed if story.story_id in left]
    stories = (*kept, *(by_id[name] for name in taken))
    return Mixed(stories, {story.story_id: "closed" if story.story_id in left else "open" for story in stories})


def _drawn(stories: Sequence[StoryRecord], count: int, chance: random.Random) -> list[str]:
    return chance.sample(sorted(story.story_id for story in stories), count)


def continue_stories(
    model: TextModel, closed: Sequence[StoryRecord], mixed: Mixed, *, ratio: float, seed: int = 42
) -> tuple[list[StoryRecord], dict[str, str]]:
    """Return a new story for each closed one that begins with its first sentence, and why others could not be written.

    Each is shown examples drawn from the mix, is asked for as many sentences as the original has and for its names, and
    has its grammar mended (App. B). Its id is the original's with the ratio.

    Raises:
        ModelError: the model cannot be used.
    """
    written: list[StoryRecord] = []
    failed: dict[str, str] = {}
    for story in closed:
        sentences = whole_sentences(story.story_text) or [story.story_text]
        chance = random.Random(f"{seed} {story.story_id}")
        others = [item for item in mixed.stories if item.story_id != story.story_id]
        shown = chance.sample(others, min(_EXAMPLES, len(others)))
        names = sorted({name for scene in story.scenes for name in scene.characters})
        told = load_prompt("build/continuation").render(
            examples=[item.story_text for item in shown],
            beginning=sentences[0],
            names=names,
            count=max(2, len(sentences)),
        )
        text, reason = _written(model, told, "story")
        if text is not None:
            text, reason = _written(model, load_prompt("build/grammar").render(text=text), "sentence")
        if text is None:
            failed[story.story_id] = reason
            continue
        written.append(
            StoryRecord(
                story_id=f"{story.story_id}_mix{round(100 * ratio)}",
                title=story.title,
                story_text=text,
                provenance={"mixed_from": story.story_id, "ratio": ratio, "shown": [item.story_id for item in shown]},
            )
        )
    return written, failed


def _written(model: TextModel, told: str, field: str) -> tuple[str | None, str]:
    text = {"type": "string", "minLength": 1, "maxLength": 8_000}
    schema = {"type": "object", "properties": {field: text}, "required": [field], "additionalProperties": False}
    reply = model.complete([Turn("user", told)], schema)
    if reply.status != "ok":
        return None, f"{reply.status}: {reply.error or 'no reply'}"
    try:
        value = object_of(reply.text)[field]
    except (ValueError, KeyError, TypeError):
        return None, f"unparseable: no text {field!r}"
    return (value.strip(), "") if isinstance(value, str) and value.strip() else (None, f"unparseable: empty {field!r}")


@dataclass(frozen=True)
class Mauve:
    """How near the set's texts are to the closed ones (Table 1), 0 to 1, or why it is not known."""

    value: float | None
    reason: str | None = None


def mauve(closed: Sequence[str], written: Sequence[str], *, model: str = "gpt2-large", seed: int = 42) -> Mauve:
    """Return MAUVE of two lists of texts by the package of its authors, where a user has installed it.

    It is GPL-3.0, so that it is not a dependency: `pip install mauve-text`. model: whose features, a name or a folder.
    """
    if not closed or not written:
        return Mauve(None, "one of the two sets is empty")
    try:
        package: Any = need("mauve", _MAUVE)
    except MissingExtraError:
        return Mauve(None, "mauve-text is not installed (GPL-3.0): pip install mauve-text")
    try:
        found = package.compute_mauve(
            p_text=list(closed),
            q_text=list(written),
            featurize_model_name=model,
            seed=seed,
            verbose=False,
            device_id=-1,
        )
    except Exception as error:  # the package and the model below it raise many kinds
        return Mauve(None, f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}")
    return Mauve(float(found.mauve))


def perplexities(sets: Sequence[Sequence[str]], name: str) -> list[float]:
    """Return the perplexity of each set of texts by a causal language model of this machine (VCMS, Table 3): e to the
    mean negative log likelihood of a token, each text by itself, in windows of the model's length.

    name: a folder, or a name that was fetched before. The first token counts where the tokenizer has one that begins a
    text.

    Raises:
        UsageError: torch is missing, a set has no text, or the model does not fit into memory. InputFileError: the
            files are no such model.
    """
    require_local("A perplexity")
    import transformers

    kinds = transformers.AutoModelForCausalLM, transformers.AutoTokenizer
    try:
        model, tokenizer = load_pretrained(*kinds, find_folder(name), name, untrained=_CAUSAL)
    except MemoryError as error:
        raise UsageError(f"{name!r} does not fit into memory.", hint="Use a smaller model.") from error
    model = model.float().eval()
    return [_perplexity(texts, model, tokenizer) for texts in sets]


def _perplexity(texts: Sequence[str], model: Any, tokenizer: Any) -> float:
    import torch

    longest = min(int(getattr(model.config, "max_position_embeddings", 0) or _WINDOW), _WINDOW)
    begin = [tokenizer.bos_token_id] if tokenizer.bos_token_id is not None else []
    total, count = 0.0, 0
    for text in texts:
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        for start in range(0, len(ids), longest - len(begin)):
            window = torch.tensor([[*begin, *ids[start : start + longest - len(begin)]]])
            if window.shape[1] > 1:
                with torch.no_grad():
                    scores = torch.log_softmax(model(input_ids=window).logits[0, :-1], dim=-1)
                told = scores.gather(1, window[0, 1:, None])
                total, count = total - float(told.sum()), count + len(told)
    if not count:
        raise UsageError("There is no text to measure a perplexity of.", hint="Give stories with a text.")
    return math.exp(total / count)


def vocabulary_size(texts: Sequence[str]) -> int:
    """Return how many different words the texts have; it grows with the ratio (Sec. 4.2)."""
    return len({word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower())})
