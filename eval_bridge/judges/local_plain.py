"""Plain prompts to a vision-language model in memory: what the metrics ask, with the first token's probabilities.

Imported only where torch and transformers are to be loaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from katha.eval_bridge.judges.local_model import LoadedModel
from katha.models.base import neutral
from katha.pictures import decode
from katha.protocols import Evidence, JudgeReply, PlainPrompt


def answer_plainly(loaded: LoadedModel, evidence: Evidence, prompt: PlainPrompt) -> JudgeReply:
    """Return the reply to one prompt: greedy at temperature 0 (or none), else drawn with the prompt's `sample` as seed.

    A word's probability is that of its first token, alone or after a blank, of the whole vocabulary and before any
    temperature.
    """
    inputs = loaded.full_inputs(_messages(loaded, evidence, prompt))
    length = inputs["input_ids"].shape[1]
    if length + prompt.max_tokens > loaded.window:
        error = f"The prompt is longer than the model's {loaded.window} tokens."
        return JudgeReply("not_asked", error=error)
    drawn: dict[str, object] = {}
    if prompt.temperature:
        drawn = {"do_sample": True, "temperature": prompt.temperature, "top_p": prompt.top_p or 1.0, "top_k": 0}
    devices = [loaded.device] if loaded.device.startswith("cuda") else []
    with torch.inference_mode(), torch.random.fork_rng(devices):
        torch.manual_seed(prompt.sample)
        made = loaded.model.generate(
            **inputs, **drawn, max_new_tokens=prompt.max_tokens, return_dict_in_generate=True, output_logits=True
        )
    ids = made.sequences[0][length:].tolist()
    stop = next((place for place, one in enumerate(ids) if one in loaded.stops), None)
    text = loaded.decode(ids[:stop])
    usage: dict[str, object] = {"tokens": {"input": length, "output": len(ids)}}
    if prompt.words:
        usage["probabilities"] = _probabilities(loaded, made.logits[0][0], prompt.words)
    elif stop is None:
        error = f"the reply did not end within {prompt.max_tokens} tokens"
        return JudgeReply("truncated", raw=text, error=error, usage=usage)
    if not text.strip():
        return JudgeReply("ok" if prompt.words else "unparseable", answer="-", raw=text, usage=usage)
    return JudgeReply("ok", answer=text, raw=text, usage=usage)


def _messages(loaded: LoadedModel, evidence: Evidence, prompt: PlainPrompt) -> list[dict[str, Any]]:
    def turn(role: str, parts: Sequence[str | int]) -> dict[str, Any]:
        content = [
            {"type": "text", "text": neutral(part, loaded.tokenizer)}
            if isinstance(part, str)
            else {"type": "image", "image": decode(evidence.images[part])}
            for part in parts
        ]
        return {"role": role, "content": content}

    messages = [turn("system", (prompt.system,))] if prompt.system else []
    for example in prompt.examples:
        messages += [turn("user", example.parts), turn("assistant", (example.answer,))]
    return [*messages, turn("user", prompt.parts)]


def _probabilities(loaded: LoadedModel, logits: Any, words: Sequence[str]) -> dict[str, float]:
    """Return the probability of each word's first token; words that begin alike share it, so it counts once."""
    shares, taken = torch.softmax(logits.float(), dim=-1), set[int]()
    found: dict[str, float] = {}
    for word in words:
        firsts = {loaded.tokenizer(form, add_special_tokens=False)["input_ids"][0] for form in (word, f" {word}")}
        fresh = firsts - taken
        taken |= fresh
        found[word] = float(sum(shares[one] for one in fresh))
    return found
