"""Answers that are the rest of a sentence, made whole for the parser."""

from __future__ import annotations

import re

from katha.eval_bridge.matching.asked import Asking
from katha.eval_bridge.matching.lemmas import lexicon
from katha.eval_bridge.matching.wordnet import usage, verb_form, wordnet

_LEAD = re.compile(
    r"^(?:it(?: i|')s |it was )?(?:just |simply )?"
    r"(?:because(?! of)|since|so that|so|that|thanks to|due to|because of|how)\s+(?=\S)"
)


def plain(text: str) -> str:
    """Return an answer without what judges say around it."""
    made = " ".join(text.replace("\u2019", "'").split()).strip(" .!\"'")
    for pattern, instead in lexicon().around:
        made = re.sub(pattern.pattern, instead, made, flags=re.IGNORECASE)
    for pattern, instead in usage().sayings:
        made = pattern.sub(instead, made)
    return made


def complete(text: str, asks: Asking) -> str:
    """Return an answer as a sentence where it is the rest of one: "ripping it up" becomes "they are ripping it up".

    asks: what the question asks for; after "what does she do" a first word that can be a verb is one, and after "what
    happens to it" a participle tells what is done to it.
    """
    deed = asks == "deed"
    made = _LEAD.sub("", plain(text), count=1) if len(text.split()) > 1 else plain(text)
    first, _, rest = made.partition(" ")
    low = first.lower()
    if low == "by" and rest.split(" ")[0].endswith("ing"):
        return f"they are {rest}"
    if low == "not" and rest:
        inner = complete(rest, asks)
        return inner.replace("they are ", "they are not ", 1) if inner.startswith("they are ") else made
    if low == "to" and verb_form(rest.split(" ")[0].lower()):
        return f"they {rest}"
    thing = ("n", low) in wordnet().senses and asks in ("other", "what", "event", "order")
    object_next = rest.split(" ")[0].lower() in usage().sets["determiners"]
    if low.endswith("ing") and len(low) > 4 and verb_form(low) and (not thing or object_next):
        return f"they are {made}"
    if low in ("never", "always", "then") or (low.endswith("ly") and deed):
        second = rest.split(" ")[0].lower()
        return f"they {made}" if verb_form(second) else made
    determined = rest.split(" ")[0].lower() in (*usage().sets["determiners"], "out", "into")
    participle = low in lexicon().irregular or low.endswith("ed")
    if asks in ("event", "state") and not determined and participle and verb_form(low) != low:
        return f"they {made}" if low in usage().sets["past"] else f"they are {made}"
    if asks == "event" and low.endswith("s") and verb_form(low):
        return f"they {made}"
    if deed and verb_form(low) and low not in ("a", "an", "the"):
        return f"they are {made}" if low.endswith("ed") and rest.startswith("by ") else f"they {made}"
    return made
