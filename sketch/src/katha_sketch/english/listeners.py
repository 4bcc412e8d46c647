"""To whom somebody speaks where the text does not say it: each who is there is scored, the best is taken.

The weights (`listeners` in `scores.yaml`) were fitted on stories that people had read; each feature is a plain count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from katha.jsonio import shipped_table
from katha_sketch.english.known import ALIVE, Known
from katha_sketch.english.mentions import Mention
from katha_sketch.english.words import Words

__all__ = ["Listeners"]

_BACK, _ON = 7, 1
"""How many sentences before and after a speech somebody is there who may hear it."""
_TURNS = 4
_MAIN = ("agent", "patient", "recipient", "companion")


class Listeners:
    """Finds the listeners of one text.

    Attributes:
        turns: who spoke so far, to whom, in which sentence; whoever finds a speaker adds to it.
    """

    def __init__(self, mentions: Iterable[Mention], entities: Mapping[str, Known], words: Words) -> None:
        """Note who is in which sentence, in which roles. mentions: of the whole text, their entities known."""
        self.entities, self.words = entities, words
        self.roles: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.spoken: dict[int, set[str]] = defaultdict(set)
        self.turns: list[tuple[int, str, tuple[str, ...]]] = []
        for mention in mentions:
            known = entities.get(mention.entity or "")
            for one in self._each(known) if known is not None else ():
                if mention.quoted:
                    self.spoken[mention.sentence] |= {one} if mention.pronoun not in ("i", "you", "we") else set()
                else:
                    role = mention.role if mention.clause is not None else mention.form or "inner"
                    self.roles[mention.sentence][one].add(role)
        self.often = {key: sum(key in there for there in self.roles.values()) for key in entities}

    def _each(self, known: Known) -> Sequence[str]:
        return known.members or (known.id,)

    def spoke(self, sentence: int, speaker: str | None, to: tuple[str, ...]) -> None:
        """Note a turn."""
        if speaker is not None and not (self.turns and self.turns[-1][:2] == (sentence, speaker)):
            self.turns.append((sentence, speaker, to))

    def of(self, speaker: str | None, sentence: int) -> tuple[str, ...]:
        """Return to whom `speaker` speaks in a sentence, nobody if it is likely that nobody hears it."""
        known = self.entities.get(speaker or "")
        own = self._each(known) if known is not None else ()
        near = range(sentence - _BACK, sentence + _ON + 1)
        there = dict.fromkeys(key for at in near for key in self.roles.get(at, ()))
        weights: Mapping[str, float] = shipped_table("katha_sketch.english", "scores.yaml")["listeners"]
        scored = [
            (sum(weights.get(name, 0.0) * value for name, value in self.features(key, own, sentence).items()), key)
            for key in there
            if key not in own and self._hears(self.entities[key])
        ]
        score, best = max(scored, default=(-9.0, ""))
        return (best,) if score > weights["nobody"] else ()

    def _hears(self, known: Known) -> bool:
        return (known.kind in (*ALIVE, "group") or known.acts) and known.kind not in ("place", "abstract") and not (
            known.unreal or known.vague
        )  # fmt: skip

    def features(self, key: str, own: Sequence[str], sentence: int) -> dict[str, float]:
        """Return what speaks for and against somebody as the listener."""
        known, roles = self.entities[key], self.roles
        ats = [at for at in range(sentence, sentence - _BACK - 1, -1) if key in roles.get(at, ())]
        last = roles[ats[0]][key] if ats else set()
        others = [turn for turn in self.turns if sentence - _TURNS <= turn[0] < sentence and turn[1] not in own]
        mine = [turn for turn in self.turns if turn[1] in own and key in turn[2]]
        theirs = [turn for turn in self.turns if turn[1] == key and set(own) & set(turn[2])]
        most = max((self.often[one] for one in self.often if one not in own), default=1) or 1
        return {
            "here": float(bool(ats) and ats[0] == sentence),
            "before": float(bool(ats) and ats[0] == sentence - 1),
            "far": float(sentence - ats[0] if ats else _BACK),
            "next": float(key in roles.get(sentence + 1, ())),
            "next_agent": float("agent" in roles.get(sentence + 1, {}).get(key, ())),
            "aside": float(not last & set(_MAIN)),
            "turn": float(bool(others) and others[-1][1] == key),
            "mine": float(bool(mine)),
            "theirs": float(bool(theirs)),
            "narrator": float(known.narrator),
            "share": self.often[key] / most,
            "main": float(self.often[key] == most),
            "group": float(known.plural or known.kind == "group"),
            "beast": float(known.kind == "animal" and not any(self.entities[one].kind == "animal" for one in own)),
            "thing": float(known.kind not in (*ALIVE, "group")),
            "spoken_of": float(key in self.spoken.get(sentence, ())),
            "later": float(min((at for at, there in roles.items() if key in there), default=0) > sentence),
            "once": float(self.often[key] <= 1),
        }
