"""Text that goes into a local model's prompt."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["neutral"]


def neutral(text: str, tokenizer: Any) -> str:
    """`text` in which no special token can be forged: a blank goes into each."""
    special = {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
    names = sorted(special | set(tokenizer.all_special_tokens), key=len, reverse=True)
    if not names:
        return text
    return re.sub("|".join(map(re.escape, names)), lambda found: f"{found[0][0]} {found[0][1:]}", text)
