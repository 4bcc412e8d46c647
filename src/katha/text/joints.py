"""Where a sentence of several deeds one after the other can be taken apart: "ran in, dropped her bag and ..."."""

from __future__ import annotations

from typing import TYPE_CHECKING

from katha.text.repairs import child_of, has_to

if TYPE_CHECKING:
    from spacy.tokens import Token

    from katha.text.clauses import Clause

__all__ = ["joint_of"]

_FINITE = ("VBD", "VBZ", "VBP")
_SUBJECTS = ("nsubj", "nsubjpass", "expl")
_ASIDE = ("relcl", "acl", "appos", "advcl")
"""What of a subject is not said again: "the old man, who was tired, and ..."."""


def joint_of(clause: Clause) -> tuple[int, str] | None:
    """Return where in its parsed text a clause begins that is joined to one before it, the "and" not counted, and the
    subject (with its auxiliary) that it leaves out because both have it, or "".

    None for a clause that is joined to none, or whose verb cannot stand alone ("wanted to run and shout").
    """
    top = clause.chain[0]
    if clause.link != "conj" or top.dep_ != "conj":
        return None
    above, root = top.head, top.head
    while root.dep_ == "conj":
        root = root.head
    own = any(child_of(token, *_SUBJECTS) is not None for token in clause.chain)
    helped = any(child.dep_ in ("aux", "auxpass") and child.lower_ != "to" for child in top.children)
    shared = top.tag_ == above.tag_ == "VBN" and not helped and child_of(above, "aux", "auxpass") is not None
    mistaken = top.tag_ in ("VB", "VBN") and above.tag_ == "VBD"  # "sighed and cut the line"
    finite = top.tag_ in _FINITE or helped or shared or mistaken
    if has_to(top) or not finite or root.dep_ not in ("ROOT", "ccomp", "parataxis"):
        return None
    first = min(token.i for token in top.subtree)
    if first <= above.i:
        return None
    start: int = top.doc[first].idx
    if own:
        return start, ""
    subject = _subject(above)
    if not subject:
        return None
    helpers = [child.text for child in above.children if child.dep_ in ("aux", "auxpass")] if shared else []
    return start, " ".join((subject, *helpers))


def _subject(verb: Token) -> str:
    """The words of the subject that a verb has, or shares with the one it is joined to; "" for "who" and none."""
    while (found := child_of(verb, "nsubj", "nsubjpass")) is None and verb.dep_ == "conj":
        verb = verb.head
    if found is None or found.tag_ in ("WP", "WDT"):
        return ""
    left_out: set[int] = set()
    for child in found.children:
        part = list(child.subtree)
        named = child.dep_ == "appos" and part[0].i == found.i + 1  # "her brother Tom"
        left_out |= {token.i for token in part if child.dep_ in _ASIDE and not named}
    words = [token for token in found.subtree if token.i not in left_out]
    while words and words[-1].is_punct:
        words.pop()
    return "".join(token.text_with_ws for token in words).strip()
