"""Whether stories are read as a careful reader reads them: who and what is in each frame, and where it plays.

`tests/data/readings/*.jsonl` holds a story a line with its gold reading: `cast` (name and what would be drawn), and
for each sentence its `place` and what it `shows` (`who` does what `with` whom, and the things in it: `what`). The
command plans each story with the embedded planner, takes the scenes that the sketch would draw, and counts:

- who, with, what: gold members, partners and things that are among the drawn actors and things;
- extra: drawn actors that the sentence's reading does not know;
- place: sentences drawn in the setting that the gold place is drawn as (sentences with an unknown place are left out);
- kind: cast drawn as what it is (a woman, an owl).

Words are compared by stem, so a synonym counts as missing: the figures are floors, to be compared with one another.
Stories with an even number were never looked at while reading and drawing were worked on; only their sums were.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from katha import plan_story
from katha.agents.requests import frame_request
from katha.protocols import FrameRequest
from katha.schema import Frame, Panel, Plan
from katha_sketch.drawing.scenes import SceneActor, tell

__all__ = ["Counted", "compare", "main", "readings"]

READINGS = Path(__file__).parent.parent / "tests" / "data" / "readings"
_WORD = re.compile(r"[a-z]+")
_CROWDS = frozenset({"crowd", "people", "child", "team", "family", "class", "crew", "guest", "villager"})
_PEOPLE = {
    "man": {"man", "teen_boy"},
    "old man": {"man", "old_man"},
    "woman": {"woman", "teen_girl"},
    "old woman": {"woman", "old_woman"},
    "boy": {"boy", "teen_boy", "child", "baby"},
    "girl": {"girl", "teen_girl", "child", "baby"},
}
"""What a person of the gold reading may be drawn as, beside a figure of unknown sex and age."""
_SMALL = frozenset(
    ("the", "a", "an", "of", "his", "her", "their", "my", "our", "old", "young", "little", "big", "mr", "mrs", "ms",
     "dr")
)  # fmt: skip
"""Words that tell nobody from another."""
_SHARES = {
    "who": "who_all",
    "with": "with_all",
    "what": "what_all",
    "extra": "actors",
    "place": "place_all",
    "kind": "kind_all",
}


@dataclass
class Counted:
    """Counts of one or several stories; `misses` says what was missing, sentence by sentence."""

    counts: Counter[str] = field(default_factory=Counter)
    misses: list[str] = field(default_factory=list)

    def share(self, name: str) -> float:
        """Return a share in per cent: who, with, what, extra, place or kind."""
        return 100 * self.counts[name] / max(1, self.counts[_SHARES[name]])

    def __str__(self) -> str:
        return ", ".join(f"{name} {self.share(name):.1f}% of {self.counts[_SHARES[name]]}" for name in _SHARES)


def readings(folder: Path = READINGS) -> list[dict[str, Any]]:
    """Return the gold readings, in order of their names."""
    lines = [line for path in sorted(folder.glob("*.jsonl")) for line in path.read_text("utf-8").splitlines()]
    return [json.loads(line) for line in lines if line.strip()]


def stems(text: str) -> set[str]:
    """Return the words of a text without plural endings; titles and sizes tell nobody from another."""
    found = {_singular(word) for word in _WORD.findall(text.lower().replace("'s", "").replace("_", " "))}
    return found - _SMALL or found


def _singular(word: str) -> str:
    for ending, less, more in (("men", 3, "man"), ("ies", 3, "y"), ("ses", 2, ""), ("xes", 2, ""), ("hes", 2, "")):
        if word.endswith(ending) and len(word) > 4:
            return word[:-less] + more
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _request(plan: Plan, panel: Panel) -> FrameRequest:
    """A panel's request, as the run makes it for its scene."""
    made = Frame.model_construct(kind="scene", scene=panel.index, prompt=panel.prompt, seed=42, negative_prompt="")
    return frame_request(plan, made, (768, 512))


def _flat(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _is(name: str, kind: str, actor: SceneActor) -> bool:
    """Whether a drawn actor is a member of the cast."""
    drawn = stems(f"{actor.id} {actor.concept or ''} {actor.pictogram or ''}")
    alike = stems(name) & drawn or (kind not in _PEOPLE and stems(kind) & drawn)
    return bool(alike or (actor.count > 1 and stems(name) & _CROWDS))


def _drawn_as(kind: str, actor: SceneActor) -> bool:
    """Whether an actor is drawn as what it is: sex and age of people, else the word."""
    if actor.kind == "person":
        return kind not in _PEOPLE or actor.look.base in _PEOPLE[kind] | {"person", "teen"}
    drawn = stems(f"{actor.concept or ''} {actor.pictogram or ''}")
    return bool(stems(kind) & drawn) or (kind in _PEOPLE and bool(drawn & {"king", "queen", "prince", "princess"}))


def compare(gold: Mapping[str, Any]) -> Counted:
    """Plan a story and count what of its gold reading is drawn."""
    plan = plan_story(gold["text"])
    scenes = {panel.index: tell(_request(plan, panel)).scene for panel in plan.panels}
    kinds = {one["name"]: one["kind"] for one in gold["cast"]}
    found, seen = Counted(), dict[str, SceneActor]()
    for sentence in gold["sentences"]:
        panels = list(_panels(plan, sentence["text"]))
        if not sentence["shows"] or not panels:
            continue
        drawn = [scenes[panel.index] for panel in panels]
        actors = [actor for scene in drawn for actor in scene.actors]
        things = {
            word for scene in drawn for one in scene.things for word in stems(f"{one.word} {one.pictogram or ''}")
        }
        about = {
            word for one in actors for word in stems(f"{one.id} {one.says or ''} {one.deed} {one.pictogram or ''}")
        }
        where = {word for scene in drawn for word in stems(scene.setting or "")}
        missing = []
        for role in ("who", "with", "what"):
            for name in _members(sentence["shows"], role):
                hit = next((actor for actor in actors if _is(name, kinds.get(name, ""), actor)), None)
                seen.update({name: hit} if hit and name in kinds and name not in seen else {})
                there = hit is not None or stems(name) & (things | (about | where if role == "what" else set()))
                found.counts.update({f"{role}_all": 1, role: int(bool(there))})
                missing += [] if there else [f"{role} {name}"]
        known = [name for role in ("who", "with", "what") for name in _members(sentence["shows"], role)]
        extra = [one.id for one in actors if not any(_is(name, kinds.get(name, ""), one) for name in known)]
        found.counts.update(actors=len(actors), extra=len(extra))
        missing += [f"extra {name}" for name in extra] + list(_misplaced(plan, panels, sentence["place"], found.counts))
        if missing:
            found.misses.append(f"{sentence['text']}\n    {'; '.join(missing)}")
    for name, actor in seen.items():
        right = _drawn_as(kinds[name], actor)
        found.counts.update(kind_all=1, kind=int(right))
        found.misses += (
            []
            if right
            else [f"{name} is {kinds[name]}, drawn as {actor.look.base or actor.concept or actor.pictogram}"]
        )
    return found


def _panels(plan: Plan, sentence: str) -> Iterator[Panel]:
    """The panels that draw a sentence or a part of it."""
    told = _flat(sentence)
    for panel in plan.panels:
        caption, source = _flat(panel.caption), _flat(panel.source or panel.caption)
        if (caption and caption in told) or (source and source in told) or told in source:
            yield panel


def _members(shows: Sequence[Mapping[str, Any]], role: str) -> Iterable[str]:
    return dict.fromkeys(name for one in shows for name in one.get(role, ()))


def _misplaced(plan: Plan, panels: Sequence[Panel], place: str, counts: Counter[str]) -> Iterator[str]:
    """Count a sentence's place, and say what it is drawn as if that is another setting."""
    moved = panels[0].model_copy(update={"place": f"the {place}"})
    gold = tell(
        _request(
            plan.model_copy(update={"panels": [moved if one.index == moved.index else one for one in plan.panels]}),
            moved,
        )
    )
    if place == "unknown" or gold.scene.setting is None:
        return
    drawn = [tell(_request(plan, panel)).scene.setting for panel in panels]
    counts.update(place_all=1, place=int(gold.scene.setting in drawn))
    if gold.scene.setting not in drawn:
        yield f"place {drawn[0]} for {place}"


def main(argv: Sequence[str] | None = None) -> int:
    """Compare every story, print the sums of both halves, and with `--verbose` what is missing in the odd one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stories", nargs="*", help="names; without any all")
    parser.add_argument("--verbose", action="store_true", help="print what is missing in stories with odd numbers")
    chosen = parser.parse_args(argv)
    sums = {"odd": Counted(), "even": Counted()}
    for gold in readings():
        if chosen.stories and gold["story"] not in chosen.stories:
            continue
        half = "odd" if int(gold["story"][1:]) % 2 else "even"
        found = compare(gold)
        sums[half].counts.update(found.counts)
        if chosen.verbose and half == "odd":
            print(f"## {gold['story']}", *found.misses, sep="\n  ")
    for half, total in sums.items():
        print(f"{half}: {total}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
