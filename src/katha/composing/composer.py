"""Parts to a prompt within its budget: what does not fit is left out by rank, and told."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from katha.composing.families import PromptFamily, composing_data
from katha.composing.parts import PromptPart, parts_of
from katha.composing.words import capital, inner, listed, without_tail
from katha.configs import load_prompt
from katha.protocols import FrameRequest

Count = Callable[[str], int]


@dataclass(frozen=True)
class Composed:
    """A prompt, the parts that are in it, and those that there was no room for. Of a sentence that was cut, what is
    left of it is kept and its other words are dropped."""

    text: str
    kept: tuple[PromptPart, ...]
    dropped: tuple[PromptPart, ...]

    @property
    def left_out(self) -> tuple[str, ...]:
        """Return what was dropped, for people, what counts most first."""
        return tuple(dict.fromkeys(part.about for part in sorted(self.dropped, key=lambda part: _rank(part.kind))))


def compose(request: FrameRequest, family: PromptFamily, count: Count) -> Composed:
    """Return the prompt of a frame for a family of models.

    count: tokens of a text. The prompt has at most `family.budget` of them, times as many pieces as it takes to keep
    what is essential; a single word stays, however long.
    """
    parts = parts_of(request, family)
    if family.budget is None or count(_render(parts, family)) <= family.budget:
        return Composed(_render(parts, family), tuple(parts), ())
    made = _within(parts, family, count, family.budget)
    for piece in range(2, family.pieces + 1):
        if not any(part.kind in composing_data().essential for part in made.dropped):
            break
        made = _within(parts, family, count, family.budget * piece)
    return made


def left_out(requests: Iterable[FrameRequest]) -> list[str]:
    """Return a sentence on what the prompts of these frames have no room for; none where there is room for all."""
    where: dict[str, list[str]] = {}
    for request in requests:
        for what in request.dropped:
            where.setdefault(what, []).append("bridge" if request.scene is None else str(request.scene))
    told = [f"{what} ({', '.join(dict.fromkeys(scenes))})" for what, scenes in where.items()]
    return [f"No room in the prompts, by scene, for: {'; '.join(told)}."] if told else []


def _rank(kind: str) -> int:
    return composing_data().ranks.index(kind)


def _within(parts: Sequence[PromptPart], family: PromptFamily, count: Count, budget: int) -> Composed:
    """The prompt that holds, by rank, what fits into `budget`; details of all people go in turn."""
    kept: dict[int, PromptPart] = {}
    cut: list[PromptPart] = []
    order = sorted(range(len(parts)), key=lambda at: (_rank(parts[at].kind), parts[at].depth, at))
    for at in order:
        part = parts[at]
        follows = part.kind in ("act", "prop") or (part.glue == " " and part.line != "")
        if follows and part.depth and (at - 1 not in kept or cut):
            continue
        trial = _render([parts[place] for place in sorted((*kept, at))], family)
        if count(trial) <= budget:
            kept[at] = part
        elif part.kind == "act" and not part.depth:
            kept[at], rest = _cut(part, family, count, budget)
            cut.append(rest)
    chosen = [kept[at] for at in sorted(kept)]
    dropped = [*cut, *(part for at, part in enumerate(parts) if at not in kept)]
    return Composed(_render(chosen, family), tuple(chosen), tuple(dropped))


def _cut(part: PromptPart, family: PromptFamily, count: Count, budget: int) -> tuple[PromptPart, PromptPart]:
    """The beginning of a sentence that is too long by itself, and the rest of its words."""
    words = part.text.split(" ")
    for size in range(len(words) - 1, 0, -1):
        short = replace(part, text=without_tail(words[:size]))
        if size == 1 or count(_render([short], family)) <= budget:
            break
    return short, replace(part, text=" ".join(words[len(short.text.split(" ")) :]))


def _lines(parts: Sequence[PromptPart], group: str, family: PromptFamily) -> list[str]:
    """The lines of cast or props that are kept, each under its name."""
    lines: dict[str, str] = {}
    for part in (part for part in parts if part.group == group):
        before = lines.get(part.line)
        lines[part.line] = part.text if before is None else f"{before}{part.glue}{part.text}"
    if not family.names:
        return [capital(told) for told in lines.values()]
    names = {who: inner(who) if family.joins == "phrases" else who for who in lines}
    return [f"{names[who]}{' ' if told.startswith('with ') else ': '}{told}" for who, told in lines.items()]


def _render(parts: Sequence[PromptPart], family: PromptFamily) -> str:
    own: dict[str, list[str]] = {group: _lines(parts, group, family) for group in ("cast", "props")}
    for group in family.order:
        if group not in own:
            own[group] = [part.text for part in parts if part.group == group]
    if family.joins == "phrases":
        at = family.order.index("act")
        before, after = (
            [capital(text) if not place else text for place, text in enumerate(_phrases(own, groups))]
            for groups in (family.order[:at], family.order[at + 1 :])
        )
        text = load_prompt("image/phrases").render(before=before, act=own["act"], after=after)
    else:
        told = {group: _said(group, items) for group, items in own.items()}
        text = load_prompt("image/sentences").render(order=family.order, own=told)
    return " ".join(text.split())


def _said(group: str, items: list[str]) -> list[str]:
    """A group as sentences have it: one list, or an item each."""
    if group in ("act", "cast", "props"):
        return items
    one = "; ".join(items) if group == "contacts" else listed(items)
    return [capital(one) if group == "shot" else one] if one else []


def _phrases(own: dict[str, list[str]], groups: Sequence[str]) -> list[str]:
    """The entries of one list: a line of the cast each, and a group of anything else each."""
    found: list[str] = []
    for group in groups:
        listing = group == "visible" and any("," in item or ":" in item for item in own[group])
        if listing or group in ("cast", "props", "contacts"):
            found += own[group]
        elif own[group]:
            found.append(", ".join(own[group]))
    return found
