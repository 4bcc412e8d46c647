"""Whom and what pronouns mean: what agrees in number, sex and life is scored, the best is taken.

The features are those of rule systems since Lappin and Leass (1994): how near, in which role, in the same role as the
pronoun, the centre of the sentence before (Grosz, Joshi and Weinstein 1995), and what the verb asks for: who puts,
drives or teaches is alive, what is eaten is food. Weights were set on the stories that the project's tests read.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from typing import TYPE_CHECKING

from katha.jsonio import shipped_table
from katha_sketch.english.known import ALIVE, Known, Memory, Speaking
from katha_sketch.english.mentions import Mention
from katha_sketch.english.repairs import child_of
from katha_sketch.english.types import EntityKind
from katha_sketch.vocabulary.inflect import plural

if TYPE_CHECKING:
    from spacy.tokens import Token

    from katha_sketch.english.clauses import Clause

__all__ = ["Antecedents"]

_SEX = {"he": "male", "she": "female"}
_UNLIKELY = -1.6
_DOUBTFUL = -0.5
_ASIDE = 0.5
"""What a role in "when ..." is worth in the sentence after it, beside one in the main clause."""
_NOBODY = -2.0
_THINGS, _PEOPLE = -1.2, 1.3
"""Below which score things are hardly "they" who act, and what two people are likelier then."""
_OPENS = 3
_UNKNOWN = -4.0
_MOST = 1.5
_EVERYBODY = ("everyone", "everybody", "all", "others", "both", "rest", "some", "most", "many", "few", "several")
_COUNTS = ("some", "most", "many", "few", "several")
_WHOM = ("him", "her", "them")
_PAIR, _SHOWN, _TOGETHER = 2, 5, 6
"""More than a pair and up to how many "three of them" are named one by one, and in how many sentences before."""
_ONES = ("one", "each", "another", "none", "other")


class Antecedents:
    """Resolves the pronouns of one pass. `total` tells how well those fitted whose sex tells something."""

    def __init__(self, memory: Memory, noun: Callable[[Mention], Known | None]) -> None:
        """Begin. noun: resolves a mention that is no pronoun and notes it."""
        self.memory = memory
        self.words = memory.words
        self.noun = noun
        self.total = 0.0
        self.weights: Mapping[str, float] = shipped_table("katha_sketch.english", "scores.yaml")["pronouns"]

    def resolve(self, mention: Mention, speaking: Speaking) -> Known | None:
        """Return what a pronoun means, None if nothing."""
        who, memory = mention.pronoun, self.memory
        if who == "i" or memory.told_to(mention):
            return memory.entities.get(speaking.speaker or "") if mention.quoted else memory.narrator()
        if who == "you":
            return memory.entities.get(speaking.addressees[0]) if speaking.addressees else None
        if who == "we":
            return self._we(mention, speaking)
        if mention.form == "reflexive":
            agent = self._agent(mention)
            if agent is not None and who in _SEX:
                agent.votes[_SEX[who]] += 1.0
            return agent
        if who in _SEX:
            return self._person(mention, speaking)
        if who == "it":
            return self._thing(mention)
        told = child_of(mention.token, "appos") if who in ("they", "it") else None
        if (
            told is not None
            and told.pos_ == "NOUN"
            and (named := self.memory.mentions.get((mention.key[0], told.i))) is not None
        ):
            return self.noun(named)  # "saw them, hundreds of plates"
        if who == "they":
            return self._they(mention)
        if who == "all" and any(child.dep_ == "relcl" for child in mention.token.children):
            return None  # "all she could hear"
        if who in _EVERYBODY:
            return self._everyone(mention)
        if who in _ONES:
            return self._one(mention)
        if who in ("someone", "somebody", "something"):
            found = memory.new("thing" if who == "something" else "person")
            found.vague = True
            return found
        return None

    # ---- scores

    def _score(self, entity: Known, mention: Mention) -> float:
        """How likely a pronoun means this entity, whatever the pronoun."""
        last = entity.last
        if last is None:
            return -9.0
        at = entity.at(mention.sentence)
        weights = self.weights
        score = -weights["far"] * max(0, mention.sentence - at)
        # Who was last one of "they" is hardly "she" next.
        aside = last.clause is not None and last.clause.link in ("advcl", "noun")
        aside = aside and last is not None and last.key[0] == mention.key[0] - 1
        share = _ASIDE if aside else 1.0
        role = weights.get("agent" if last.token.dep_ == "nsubjpass" else last.role, 0.0)
        score += share * role if last.sentence >= at or mention.pronoun == "they" else -0.6
        its = mention.pronoun == "it"
        score += 0.0 if last.role != mention.role else weights["alike_it" if its else "alike"]
        score += weights["named"] if entity.names else 0.0
        score += weights["often"] * min(len(entity.sentences), 6)
        if last.pronoun == mention.pronoun and last.sentence >= mention.sentence - 1:
            score += weights["again_it" if its else "again"]
        score -= 1.2 if entity.unreal else 0.0
        score -= (
            weights["part"] if entity.group is not None and (last.role != "agent" or mention.pronoun in _SEX) else 0.0
        )
        in_noun = last.key[0] == mention.key[0] and last.clause is not None and last.clause.link == "noun"
        inside = last.role != "agent" or last.token.head.dep_ == "relcl"  # "a man whose son played took it apart"
        score -= weights["inside"] if in_noun and inside else 0.0  # "Ann, who ran the branch, put it away"
        if last.key[0] == mention.key[0]:
            again = last.pronoun == mention.pronoun and not entity.plural
            whose = last.role != "agent" and mention.form == "poss" and last.clause is self._clause_of(mention)
            score += 0.4 if again and (mention.pronoun == "it" or whose) else 0.0  # "asked him his name"
            score -= 0.01 * abs(mention.key[1] - last.key[1])
            score += weights["both_do"] if last.role == mention.role == "agent" else 0.0
            if mention.form == "poss":
                agents = mention.clause.of("agent") if mention.clause is not None else self._head_agents(mention)
                taken = self._taken_from(mention)
                who = 0.5 if last.role == "agent" else weights["own"]  # "with a boy who was gripping his leg"
                score += (-weights["own"] if taken else who) if any(token.i == last.key[1] for token in agents) else 0.0
        return score + self._wanted(entity, mention)

    def _clause_of(self, mention: Mention) -> Clause | None:
        """The clause that holds what a possessive owns."""
        owned = self.memory.owned.get(mention.key)
        return owned.clause if owned is not None else mention.clause

    def _taken_from(self, mention: Mention) -> bool:
        """Whether something is pulled out of the hands, bitten, bandaged or laid on a forehead: they are hardly the
        doer's own."""
        owned, has = self.memory.owned.get(mention.key), self.words.has
        if owned is None or owned.clause is None:
            return owned is not None and owned.role == "source" and owned.noun in ("hand", "arm", "finger")
        verb, done, there = owned.clause.lemma, owned.role == "patient", owned.role in ("place", "goal")
        if has("takes_from", verb):
            return done
        if self.words.sort(owned.noun) not in ("body", "abstract") and not has("parts", owned.noun):
            return False
        laid = has("sits_on_others", verb) or (has("laid_on_others", verb) and bool(owned.clause.of("patient")))
        laid = laid and owned.preposition != "under"  # "put the board under his arm"
        beside = owned.preposition in ("at", "by", "beside", "near") and not has("look_verbs", verb)
        found = has("found_so", verb) and owned.role == "place"  # "finds Ben with a tube in his nose"
        return (
            (done and has("done_to_others", verb))
            or (there and (laid or beside or found))
            or (owned.role == "source" and owned.noun in ("hand", "arm", "finger"))
        )

    def _wanted(self, entity: Known, mention: Mention) -> float:
        """How well the entity fits what the verb asks for in the pronoun's role."""
        clause, words = mention.clause, self.words
        if clause is None or mention.form == "poss":
            return 0.0
        verb = clause.lemma
        alive = entity.kind in (*ALIVE, "group") or entity.acts
        things = words.has("things_do", verb) and (bool(clause.state) or not words.has("look_verbs", verb))
        if mention.role == "agent" and not things and not clause.passive:
            return self.weights["alive"] if alive else -self.weights["lifeless"]
        if mention.role == "recipient" and mention.preposition != "for":
            return 0.5 if alive else -0.9
        score = 0.0
        if mention.role == "patient" and not clause.passive:
            wants = words.wants(verb, clause.particle)
            if wants:
                score = 0.8 if any(self._is(entity, kind) for kind in wants) else -0.5
            elif mention.pronoun == "it":
                score = 0.0 if alive else 0.2
        if mention.preposition in ("along", "across", "down", "up") and words.has("motion", verb):
            score += (
                0.9 if entity.kind == "place" or words.sort(entity.noun) in ("place", "land", "structure") else -0.4
            )
        if mention.role == "place" and mention.preposition in ("in", "into", "out"):
            holds = any(words.is_a("opens", noun) for noun in entity.nouns) or entity.kind == "place"
            score += 0.3 if holds else 0.0
        return score

    def _is(self, entity: Known, kind: str) -> bool:
        """Whether an entity is of a kind that a verb asks for: "food", "alive", "opens"."""
        if kind == "alive":
            return entity.kind in (*ALIVE, "group")
        if kind == "small":
            light = self.words.sort(entity.noun) not in ("vehicle", "building", "structure")
            return entity.age == "child" or (light and entity.kind in ("thing", "animal", "being"))
        words, nouns = self.words, [noun for noun in (entity.noun, *entity.nouns) if noun]
        return any(words.is_a(kind, noun) for noun in nouns)

    def _head_agents(self, mention: Mention) -> list[Token]:
        """The agents of the clause that holds what a possessive owns."""
        owned = self.memory.owned.get(mention.key)
        while owned is not None and owned.clause is None:
            owned = self.memory.owned.get(owned.key)  # "his father's leg"
        clause = owned.clause if owned is not None else None
        if clause is not None and clause.parent is not None and owned is not None and owned.role != "place":
            own = owned.token in clause.of("agent") and clause.link not in ("conj", "noun")
            clause = clause.parent if own else clause  # "sat with his back turned"
        return list(clause.of("agent")) if clause is not None else []

    def _best(self, found: Iterable[tuple[float, Known]]) -> list[tuple[float, Known]]:
        return sorted(found, key=lambda item: (item[0], item[1].id), reverse=True)

    def _agent(self, mention: Mention) -> Known | None:
        clause = mention.clause
        tokens = clause.of("agent", "patient") if clause is not None else []
        if clause is not None and clause.parent is not None and clause.link == "content":
            tokens += clause.parent.of("agent")  # "found herself standing there"
        others = (other.entity for other in self.memory.beside(mention, tokens) if other is not mention)
        return next((self.memory.entities[other] for other in others if other is not None), None)

    def _barred(self, mention: Mention) -> set[str]:
        """Entities of the same clause that a pronoun which is not possessive cannot mean; nor does "they" mean those
        who cheer when they win."""
        clause, memory = self._clause(mention), self.memory
        if clause is None or mention.form == "poss":
            owned = memory.owned.get(mention.key)
            mine = [owned] if owned is not None else []
            mine += memory.beside(mention, self._head_agents(mention)) if mention.pronoun == "they" else []
            alone = (known for one in mine if (known := memory.of(one)) is not None and not known.plural)
            return {known.id for known in alone}
        tokens = [filler.token for filler in clause.fillers if filler.token.i != mention.token.i]
        parent = clause.parent
        if parent is not None and any(filler.token.i == mention.token.i for filler in parent.fillers):
            tokens += [filler.token for filler in parent.fillers if filler.token.i != mention.token.i]
        won = any(child.lower_ == "when" for child in clause.chain[0].children) and mention.pronoun == "they"
        if parent is not None and won and clause.link == "advcl" and self.words.has("watchers_do", parent.lemma):
            tokens += parent.of("agent")
        whom = mention.role == "agent" and mention.token.lower_ in _WHOM
        if parent is not None and clause.link == "content" and whom:
            tokens += parent.of("agent")  # "He let him hold the brush"
        found = memory.beside(mention, tokens)
        named = {other.name for other in found if other.entity is None and other.name}
        later = {one.id for one in memory.entities.values() if named & set(one.names)}
        ids = {other.entity for other in found if other.owner != mention.key and other.entity}
        return ids | later | {one for item in ids for one in memory.entities[item].members}

    def _clause(self, mention: Mention) -> Clause | None:
        """The clause that a pronoun stands in, deep in a noun phrase too: "on top of it"."""
        token = mention.token
        while (found := self.memory.mentions.get((mention.key[0], token.i))) is None or found.clause is None:
            if token.head.i == token.i or token.pos_ == "VERB":
                return None
            token = token.head
        return found.clause

    # ---- he and she

    def _person(self, mention: Mention, speaking: Speaking) -> Known | None:
        """Return whom "he" or "she" means."""
        sex = _SEX[mention.pronoun]
        going = {
            e.id
            for e in self.memory.recent(mention, 2)
            if e.last is not None and e.last.pronoun == mention.pronoun and e.told_sex == sex
        }
        barred = self._barred(mention) | ({speaking.speaker} if speaking.speaker else set()) | set(speaking.addressees)
        sure = self._shown(mention, sex, barred)
        if sure is not None:
            return sure
        scored = self._by_owned(self._by_kind(self._able(mention, sex, barred, going), mention, sex), mention)
        opens = mention.form == "poss" and mention.token.head.dep_ == "pobj" and mention.token.head.head.i <= 1
        ahead = (
            self._later(mention) if opens and mention.key[1] <= _OPENS else None
        )  # "On her Mondays Ilse found a note"
        scored = self._best((score + (1.0 if e is ahead else 0.0), e) for score, e in scored)
        later = self._later(mention) if not scored or scored[0][0] < _UNLIKELY else None
        if later is not None:
            scored = [(1.0, later)]
        far = not scored or scored[0][0] < _DOUBTFUL
        own = self._agent(mention) if far and mention.form != "poss" and mention.role == "place" else None
        if own is not None and own.alive and own.sex in (sex, None):
            return own  # "opened the door behind him"
        if not scored:
            self.total += _UNKNOWN
            if mention.quoted:
                return None
            return self._personified(mention, sex) or self._spoken_of(mention) or self.memory.new("person")
        score, best = scored[0]
        self.total += max(_NOBODY, min(score, _MOST))
        margin = score - scored[1][0] if len(scored) > 1 else 9.0
        best.votes[sex] += 1.0 if len(scored) == 1 else 0.6 if margin > 0.6 else 0.3
        return best

    def _shown(self, mention: Mention, sex: str, barred: set[str]) -> Known | None:
        """Return whom "he" or "she" must mean: who was asked for, or whose body it is."""
        asked = self._asked_for(mention) if not mention.quoted else None
        if asked is not None and asked.sex in (sex, None) and asked.id not in barred:
            asked.votes[sex] += 1.0
            return asked
        return self._own_body(mention, sex, barred)

    def _able(self, mention: Mention, sex: str, barred: set[str], going: set[str]) -> list[tuple[float, Known]]:
        """Return who may be "he" or "she", the likeliest first. going: who were it in the sentences before."""
        scored = self._best(
            (self._score(e, mention) + self._likes(e, sex) - self._left(e, going, mention), e)
            for e in self.memory.recent(mention)
            if (e.alive or (e.kind == "thing" and e.acts) or (e.kind in ("thing", "place") and e.told_sex))
            if not e.narrator and e.id not in barred
            if e.sex in (sex, None)
        )
        somebody = any(e.kind == "person" for _, e in scored)
        return [(score, e) for score, e in scored if not (somebody and self._only_thing(e, mention))]

    def _by_kind(self, scored: list[tuple[float, Known]], mention: Mention, sex: str) -> list[tuple[float, Known]]:
        """Score again by what each is: a beast beside people is less likely, and who was just called "his"."""
        people = any(e.kind == "person" and e.told_sex == sex and score > _UNLIKELY for score, e in scored)
        return self._best(
            (
                score
                - self.weights["his"] * self._is_his(e, mention)
                - 1.0 * _nameless(e)
                - self.weights["beast"]
                * (people and e.kind == "animal" and not (e.names or e.speaks or e.told_sex == sex)),
                e,
            )
            for score, e in scored
        )

    def _by_owned(self, scored: list[tuple[float, Known]], mention: Mention) -> list[tuple[float, Known]]:
        """Score again by what is his or hers: a beak is a beast's, and a father hardly a father's."""
        owned = self.memory.owned.get(mention.key)
        if owned is None:
            return scored
        if scored and scored[0][1].kind == "person" and self.words.has("of_beasts", owned.noun):
            # "He caught a fish in his beak": it is not the fish's.
            beasts = {e.id for _, e in scored if e.kind in ("animal", "being") and e.sentences[0] < mention.sentence}
            scored = self._best((score + 1.5 * (e.id in beasts), e) for score, e in scored)
        if self.words.has("kin", owned.noun):
            # "His father" is hardly the father's own.
            unlike = (0.8 * (e.kind != "person" and not e.speaks) + 0.8 * (owned.noun in e.nouns) for _, e in scored)
            scored = self._best((score - less, e) for (score, e), less in zip(scored, list(unlike), strict=True))
        if self.words.is_a("clothing", owned.noun):
            scored = self._best((score - 1.0 * (e.kind == "animal"), e) for score, e in scored)
        return scored

    def _own_body(self, mention: Mention, sex: str, barred: Container[str]) -> Known | None:
        """Whose a part of the body is with which somebody acts: "The vicar, who had come out, shook his head"."""
        owned = self.memory.owned.get(mention.key)
        if mention.form != "poss" or owned is None or owned.clause is None or owned.clause.passive:
            return None
        if (
            self.words.sort(owned.noun) != "body"
            or owned.role not in ("patient", "instrument")
            or self._taken_from(mention)
        ):
            return None
        doers = self.memory.beside(mention, self._head_agents(mention))
        own = self.memory.of(doers[0]) if len(doers) == 1 and not doers[0].pronoun else None
        able = own is not None and own.kind == "person" and not (own.plural or own.members or own.narrator)
        if own is None or not able or own.sex not in (sex, None) or own.id in barred:
            return None
        own.votes[sex] += 1.0
        self.total += _MOST
        return own

    def _is_his(self, entity: Known, mention: Mention) -> bool:
        """Whether somebody was just called the pronoun's own: "When his partner fell ill, he got ready alone"."""
        last = entity.last
        beside = last is not None and last.key[0] == mention.key[0] and mention.form == ""
        owner = self.memory.mentions.get(last.owner) if last is not None and last.owner is not None else None
        return beside and owner is not None and owner.pronoun == mention.pronoun

    def _only_thing(self, entity: Known, mention: Mention) -> bool:
        """Whether a thing without a name has not been "he" or "she" right before, as no ship or moon is."""
        thing = entity.kind in ("thing", "place") and not entity.names
        again = entity.last is not None and entity.last.pronoun == mention.pronoun
        return thing and not again and not self.words.has("personified", entity.noun)

    def _personified(self, mention: Mention, sex: str) -> Known | None:
        """The thing that a text speaks of as of somebody: "The moon was so smooth that they used her as a mirror"."""
        things = [e for e in self.memory.recent(mention, 1) if self.words.has("personified", e.noun) and not e.plural]
        found = self.memory.nearest((e for e in things if e.last and e.last.role == "agent"), mention)
        if found is not None:
            found.votes[sex] += 1.0
        return found

    def _spoken_of(self, mention: Mention) -> Known | None:
        """The one who was only spoken of by name so far: '"Tell Lotte," it said. We looked her up'."""
        near = range(mention.sentence - 2, mention.sentence)
        named = [one for one in self.memory.mentions.values() if one.quoted and one.name and one.sentence in near]
        people = [one for one in named if one.entity is None and one.role in ("recipient", "patient", "agent")]
        return self.noun(people[-1]) if len({one.name for one in people}) == 1 else None

    def _asked_for(self, mention: Mention) -> Known | None:
        """Whom somebody just asked for: '"Where's the boy?" she shouted. Nobody had seen him'."""
        for one in self.memory.mentions.values():
            be = one.token.head if one.quoted and one.sentence == mention.sentence - 1 else None
            where = be is not None and be.lemma_ == "be" and one.token.dep_ in ("nsubj", "attr") and not one.pronoun
            if where and be is not None and any(child.lower_ == "where" for child in be.children) and not one.plural:
                found = self.noun(one)
                return found if found is not None and found.kind in ALIVE else None
        return None

    def _left(self, entity: Known, going: set[str], mention: Mention) -> float:
        """How unlikely somebody of no told sex is while "he" goes on to mean another: "Anna paid him. He ..."."""
        here = entity.at(mention.sentence) == mention.sentence
        return (
            self.weights["left"] if going and entity.id not in going and entity.told_sex is None and not here else 0.0
        )

    def _likes(self, entity: Known, sex: str) -> float:
        known = self.weights["sex"] if entity.told_sex == sex else 0.3 if entity.given == sex else 0.0
        if entity.kind == "person" or ((entity.speaks or (entity.names and entity.kind != "thing")) and not entity.its):
            return known
        return known * (0.5 if entity.given else 1.0) - (
            0.35 if entity.kind in ("animal", "being") and not entity.its else 0.9
        )

    def _later(self, mention: Mention) -> Known | None:
        """Who is named only after the pronoun: "When she got home, Mina lay down", "On his first shift Oscar slept"."""
        verb = next((up for up in mention.token.ancestors if up.pos_ in ("VERB", "AUX")), None)
        if verb is None:
            return None
        own = list(verb.children) if mention.form == "poss" else []
        above = list(verb.head.children) if verb.dep_ == "advcl" else []
        named = [child for child in (*own, *above) if child.dep_ in ("nsubj", "nsubjpass", "dative", "dobj")]
        for other in self.memory.beside(mention, named):
            if other.key > mention.key and not other.pronoun and other.owner is None:
                found = self.noun(other)
                if found is not None and found.alive and found.sex in (_SEX[mention.pronoun], None):
                    return found
        return None

    # ---- it

    def _thing(self, mention: Mention) -> Known | None:
        done = mention.role == "patient" and mention.clause is not None and mention.clause.lemma == "do"
        if done or self._dummy(mention):
            return None
        inside = mention.role == "place" and mention.preposition in ("in", "on", "into", "onto", "inside")
        told = self._told_what(mention)
        if told is not None:
            return told
        barred, words = self._barred(mention), self.words
        scored: list[tuple[float, Known]] = []
        for entity in self.memory.recent(mention, 4):
            if entity.plural or entity.id in barred:
                continue
            its = entity.kind == "group" and mention.form == "poss" and entity.at(mention.sentence) == mention.sentence
            its |= entity.kind == "group" and words.has("group", entity.noun) and not entity.plural  # a swarm is it
            its &= entity.last is not None and entity.last.pronoun not in ("we", "they")
            if (entity.kind in ("person", "group") and not its) or entity.narrator:
                continue
            living = entity.kind in ALIVE
            score = self._score(entity, mention)
            if living and not entity.its:
                score -= 0.9 if entity.names and entity.kind == "animal" else 0.3 if entity.names else 0.0
            score -= 0.7 if living and inside else 0.0  # coals are laid in a pot, not in a tiger
            score -= 0.8 if entity.vague else 0.0  # "something in it ticked": it is what it was before
            score -= {"place": 0.6, "abstract": 1.2}.get(entity.kind, 0.0)
            inner = entity.last is not None and entity.last.clause is None and not entity.last.pronoun
            score -= 0.5 if inner else 0.0  # "A boy on a bicycle dived in after it"
            score -= 0.6 if self._sat_on(entity) and mention.role != "place" else 0.0
            score -= {"body": 0.8, "weather": 0.8}.get(words.sort(entity.noun), 0.0)
            if mention.form == "poss":
                score += 0.3 if living or entity.acts else -0.5 if words.has("mass", entity.noun) else 0.0
            scored.append((score, entity))
        best = self._best(scored)[0][1] if scored else None
        if best is not None:
            best.its = True
        return best

    def _sat_on(self, entity: Known) -> bool:
        """Whether somebody only sits or stands there: "sat on a bench and looked at it"."""
        last = entity.last
        if last is None or last.clause is None or last.role != "place" or last.pronoun:
            return False
        return last.preposition in ("on", "in", "at") and self.words.has("stays", last.clause.lemma)

    def _told_what(self, mention: Mention) -> Known | None:
        """What "it" turns out to be: "Something moved. It was a fox!" """
        clause = mention.clause
        if clause is None or clause.lemma != "be" or mention.role != "agent":
            return None
        for told in self.memory.beside(mention, clause.state):
            vague = [e for e in self.memory.near(mention, 2) if e.vague]
            if vague or self.words.sort(told.noun) in ALIVE or told.name or self.words.has("kin", told.noun):
                return self.memory.nearest(vague, mention) or self.noun(told)
        return None

    def _dummy(self, mention: Mention) -> bool:
        """Whether "it" means nothing: "it was raining", "it was late", "it took an hour"."""
        clause, words = mention.clause, self.words
        if clause is None or mention.role != "agent":
            return False
        if words.has("weather_verbs", clause.lemma) or clause.lemma in ("take", "seem", "happen"):
            things = (f.token for f in clause.fillers if f.role == "patient")
            return clause.lemma != "take" or not any(
                words.sort(token.lemma_) not in ("time", "abstract") for token in things
            )
        states = [token.lemma_.lower() for token in clause.state]
        if any(words.is_time(one, "") for one in states):
            return True
        if not states and clause.time and clause.lemma == "be" and not clause.of("place"):
            return True
        turns = clause.lemma in ("be", "get", "become", "grow")
        return turns and any(words.has("dummy_adjectives", one) for one in states)

    # ---- several

    def _we(self, mention: Mention, speaking: Speaking) -> Known | None:
        memory = self.memory
        one = memory.entities.get(speaking.speaker or "") if mention.quoted else memory.narrator()
        if one is None:
            return None
        barred = self._barred(mention) - {one.id}
        if (crowd := self._so_many(mention, [one])) is not None:
            return crowd
        groups = (memory.entities[key] for key in memory.groups)
        mine = [group for group in groups if one.id in group.members and not barred & set(group.members)]
        known = memory.nearest(mine, mention)
        if known is not None:
            return known
        others = [e for e in memory.entities.values() if e.alive and e.sentences and e.id != one.id]
        ranked = self._best(
            (self._score(e, mention) - (0.0 if e.kind == "person" else 1.0) + self._mine(e, one), e)
            for e in others
            if e.id not in barred and not e.unreal and not self.words.has("made_beings", e.noun)
        )
        mine_all = (
            e for e in memory.recent(mention) if e.plural and e.owner == one.id and self.words.has("kin", e.noun)
        )
        whole = [
            e
            for e in memory.recent(mention)
            if e.kind == "group" and not e.plural and not e.members and e.id not in barred
            if e.owner == one.id or self._mine(memory.entities.get(e.owner or "", e), one) or one.id in _included(e)
        ]
        if whole and not mention.quoted:
            return memory.nearest(whole, mention)  # "our whole class ... we"
        members = speaking.addressees[:1] or tuple(e.id for _, e in ranked[:1]) or tuple(e.id for e in mine_all)[:1]
        if members:
            return memory.group((one.id, *members), mention)
        included = (group for group in groups if any(kin.other == one.id for kin in group.kin))
        return next(included, None) or memory.crowd(one)

    def _so_many(self, mention: Mention, own: list[Known]) -> Known | None:
        """Those of "the three of them", "the four of us", if so many were spoken of one by one. own: who is one."""
        memory, beside = self.memory, child_of(mention.token, "appos")  # "we sat there, the three of us"
        told = mention.token.head.head if mention.part else beside
        count = self.words.number(told.lower_) if told is not None and told.is_alpha else 0
        if not _PAIR < count <= _SHOWN:
            return None
        near = [e for e in memory.near(mention, _TOGETHER) if e.alive and not (e.unreal or e.vague or e.members)]
        barred = {one.id for one in own} | self._barred(mention)
        free = [e for e in near if e.id not in barred and not e.narrator]
        here = {e.id for e in free if e.at(mention.sentence) == mention.sentence}
        ranked = self._best((self._score(e, mention) + (e.kind == "person") + 1.5 * (e.id in here), e) for e in free)
        chosen = [*own, *(e for _, e in ranked[: count - len(own)])]
        if len(chosen) < count:
            return None
        chosen.sort(key=lambda e: e.last.key if e.last is not None else (0, 0))
        return memory.group(tuple(e.id for e in chosen), mention)

    def _mine(self, entity: Known, narrator: Known) -> float:
        return 0.8 if any(kin.other == narrator.id for kin in entity.kin) else 0.0

    def _they(self, mention: Mention) -> Known | None:
        everybody = any(child.lower_ == "all" for child in mention.token.children) or any(
            child.lower_ == "all" and child.i == mention.token.i + 1 for child in mention.token.head.children
        )
        memory, barred = self.memory, self._barred(mention)
        single = [e for e in memory.recent(mention) if (e.alive or (e.acts and not e.plural)) and not e.narrator]
        single = [e for e in single if not e.unreal]
        people = [e for e in single if e.alive]
        if everybody:
            single = people if len(people) > 1 else single
            near = tuple(e.id for e in single if mention.sentence - e.at(mention.sentence) <= 5 and e.id not in barred)
            if len(near) > 1:
                return memory.group(near, mention)
        if (crowd := self._so_many(mention, [])) is not None:
            return crowd
        states = mention.clause.state if mention.clause is not None and mention.clause.lemma == "be" else []
        things = any(self.words.sort(one.lemma_) in ("thing", "food", "clothing", "text") for one in states)
        best = self._best(self._several(mention, barred))
        doing = mention.token.head.subtree if mention.role == "agent" else ()
        done = any(one.dep_ in ("dobj", "nsubj") and one.lower_ in _WHOM[:2] for one in doing)
        # "They pushed him": he is none of them. "They were his invitations."
        pair = self._pair(single, mention, barred) if not (done or things) else None
        if best and best[0][0] > (pair[0] + self._rather(best[0], mention) if pair is not None else _UNLIKELY):
            return best[0][1]
        if pair is not None:
            return memory.group(pair[1], mention)
        free = [e for e in single if e.id not in barred and mention.sentence - e.at(mention.sentence) <= 3]
        return best[0][1] if best else memory.crowd() if done or not free else memory.nearest(free, mention)

    def _several(self, mention: Mention, barred: set[str]) -> Iterable[tuple[float, Known]]:
        memory, owns = self.memory, mention.form == "poss"
        owned = memory.owned.get(mention.key)
        kin = owned is not None and self.words.has("kin", owned.noun) and owned.noun != "owner"
        for entity in memory.recent(mention):
            town = entity.kind == "place" and entity.acts  # "the whole village watched"
            if not (entity.plural or entity.kind == "group" or town or _each(entity)) or entity.id in barred:
                continue
            members = set(entity.members)
            if members and (members <= barred or (mention.role == "agent" and barred & members)):
                continue  # "They dragged Ines up": she is none of them
            mine = entity.narrator or any(memory.entities[item].narrator for item in entity.members)
            if mine or entity.kind == "abstract":
                continue
            living = entity.kind in ("group", *ALIVE) or entity.acts
            if mention.role == "agent" and not living and mention.clause is not None and self._done(mention.clause):
                continue  # they who take something apart are no socks
            if owns and not living and kin:
                continue
            score = self._score(entity, mention) + (0.5 if living and owns else -0.6 if owns else 0.0)
            score -= 0.6 if entity.kind == "place" and not town else 0.0
            body = self.words.sort(entity.noun) in ("body", "clothing")
            score -= 0.8 if body and mention.role == "agent" else 0.0
            both = entity.last is not None and entity.last.role == mention.role == "patient"
            score += 0.3 if both and not living and not mention.part else 0.0
            score -= 1.5 if kin and self.words.sort(entity.noun) == "animal" else 0.0
            score -= 0.0 if entity.plural or town else 0.1 if _each(entity) else 0.4
            yield score + (self.weights["together"] if entity.members and living else 0.0), entity

    def _rather(self, best: tuple[float, Known], mention: Mention) -> float:
        """How much likelier two people do something than things of which it is unlikely: lamps that "went in"."""
        score, entity = best
        living = entity.kind in ("group", *ALIVE) or entity.acts
        return _PEOPLE if mention.role == "agent" and not living and score < _THINGS else 0.0

    def _done(self, clause: Clause) -> bool:
        """Whether a deed is one that no thing does."""
        takes = clause.lemma == "take" and bool(clause.of("patient"))
        return (takes or not self.words.has("things_do", clause.lemma)) and not (clause.state or clause.passive)

    def _pair(self, single: list[Known], mention: Mention, barred: set[str]) -> tuple[float, tuple[str, ...]] | None:
        """The two who were spoken of last, persons first, and how likely they are meant."""
        free = [e for e in single if e.id not in barred and mention.sentence - e.at(mention.sentence) <= 4]
        people = [e for e in free if e.kind == "person" or e.speaks]
        chosen = people if len(people) > 1 else free
        here = {e.id for e in free if mention.part and e.at(mention.sentence) == mention.sentence}  # "the two of them"
        scores = (
            (
                self._score(e, mention)
                - 0.5 * self._past(e)
                + self.weights["pair_people"] * (e.kind == "person")
                + (e.id in here),
                e,
            )
            for e in (chosen if len(here) < len(_SEX) else free)
        )
        ranked = self._best(scores)[:2]
        if len(ranked) < 2:
            return None
        first, second = sorted((e for _, e in ranked), key=lambda e: e.last.key if e.last else (0, 0))
        return ranked[1][0] - (0.9 if mention.part else 0.2), (first.id, second.id)

    def _past(self, entity: Known) -> bool:
        """Whether somebody was last told of in what had been before: "dug where his mother had seen grass"."""
        clause = entity.last.clause if entity.last is not None else None
        above = clause.chain if clause is not None and clause.link else ()
        return any(child.lower_ == "had" and child.dep_ == "aux" for token in above for child in token.children)

    def _everyone(self, mention: Mention) -> Known | None:
        memory, whole = self.memory, self._of(mention)
        if whole is not None:
            return self.noun(whole)
        if mention.pronoun == "both" or (mention.role == "patient" and mention.pronoun in ("all", *_COUNTS)):
            return self._they(mention)
        near = [e for e in memory.near(mention, 2) if e.kind == "group"]
        sorts = {e.id: {e.noun, *(memory.entities[one].noun for one in e.members)} for e in near}
        people = [e for e in near if not any(self.words.sort(noun) == "animal" for noun in sorts[e.id])]
        near = people or [e for e in near if e.acts]
        if mention.pronoun in ("everyone", "everybody") and child_of(mention.token, "prep") is not None:
            return memory.crowd()  # "everyone in the hall"
        if mention.pronoun in ("others", "rest"):
            parts = [e for e in memory.near(mention, 3) if e.group is not None]
            part = memory.nearest(parts, mention)
            barred = self._barred(mention)
            near = [e for e in near if e.id not in barred and e.last and e.last.sentence < mention.sentence]
            near = [e for e in near if not any(memory.entities[item].narrator for item in e.members)]
            near = [memory.entities[part.group]] if part is not None and part.group is not None else near
        near = [
            e
            for e in near
            if mention.pronoun not in ("everyone", "everybody") or e.at(mention.sentence) < mention.sentence
        ]
        known = memory.nearest(near, mention)
        return known or (memory.crowd() if mention.pronoun not in _COUNTS else None)

    def _one(self, mention: Mention) -> Known | None:
        """ "One of them": somebody new of the group's kind; "each of them": the group; "a smaller one": a ball.

        "Every one of them" is the group as well."""
        other = self._of(mention)
        if any(child.lower_ in ("no", "each") for child in mention.token.children):
            return None  # "no one", "each other"
        if other is None:
            head = mention.token.head
            if mention.pronoun in ("another", "other") and head.dep_ == "prep" and head.lower_ in ("after", "by"):
                return None  # "one strand after another" is no second mouse
            return self._like(mention) if mention.pronoun in ("one", "another", "other") else None
        if mention.pronoun == "none":
            return None
        group = self.noun(other)
        every = any(child.lower_ == "every" for child in mention.token.children)
        if group is None or mention.pronoun == "each" or every:
            return group
        return self._part(group, self._kind_of(group), whole=group)

    def _of(self, mention: Mention) -> Mention | None:
        """What is named after "of": a pronoun there stands for what "one" of it does."""
        inner = [c for p in mention.token.children if p.lower_ == "of" for c in p.children if c.dep_ == "pobj"]
        other = next(iter(self.memory.beside(mention, inner[:1])), None)
        if other is not None and other.clause is None and other.pronoun:
            other.clause, other.role, other.part = mention.clause, mention.role, True
        return other

    def _part(self, like: Known, kind: EntityKind, whole: Known | None = None) -> Known:
        one = self.memory.new(kind)
        one.noun, one.nouns, one.age, one.group = like.noun, list(like.nouns), like.age, whole.id if whole else None
        sex = self.words.sexes.get(like.noun)
        if sex is not None and kind == "person":
            one.votes[sex] += 3.0  # one of two old men is a man
            one.sure = True
        return one

    def _kind_of(self, group: Known) -> EntityKind:
        sorts: dict[str, EntityKind] = {"person": "person", "animal": "animal", "being": "being"}
        members = [self.memory.entities[item].kind for item in group.members]
        found = sorts.get(self.words.sort(group.noun)) or next(iter(members), None)
        return found or ("person" if group.kind == "group" else group.kind)

    def _draws(self, mention: Mention) -> bool:
        """Whether one is painted or made, be it a river."""
        return mention.clause is not None and self.words.has("draw", mention.clause.lemma)

    def _like(self, mention: Mention) -> Known | None:
        """Another of what was named before: "Max rolled a ball and put a smaller one on top"."""
        barred, named = self._barred(mention), bool(mention.also)  # "one was called Bao"
        more = mention.pronoun == "another" or any(child.lower_ == "more" for child in mention.token.children)
        kinds = [
            (
                self._score(e, mention)
                + (0.6 if e.plural else 0.0)
                + (0.5 if e.last and e.last.role == "patient" else 0.0)
                + (0.4 if e.kind == "thing" else 0.0)
                + (0.8 if e.plural and more else 0.0)
                - (1.5 if more and self.words.has("mass", e.noun) else 0.0)
                + (1.5 if named and (e.alive or e.kind == "group") else 0.0),
                e,
            )
            for e in self.memory.recent(mention, 4)
            if e.noun and not e.narrator and not e.members
            if e.kind not in ("place", "abstract") or (e.kind == "place" and self._draws(mention))
            if not mention.plural or self.words.sort(e.noun) != "weather"
            if e.id not in barred and not e.unreal
        ]
        if not kinds:
            return None
        beside = [mention.token.head] if mention.token.dep_ == "conj" else []
        said = self.memory.of(next(iter(self.memory.beside(mention, beside)), None))
        like = said if said is not None and said.noun else self._best(kinds)[0][1]  # "one hoof and then another"
        one = self._part(like, self._kind_of(like), like if like.plural else None)
        mention.adjectives = tuple(look for look in mention.adjectives if look != "more")
        looks = " ".join(mention.adjectives)
        one.adjectives = list(mention.adjectives)
        one.plural, one.count = mention.plural, mention.count
        looks = mention.token.lower_ if mention.plural and mention.count else looks  # "laid three on the counter"
        one.phrases.append(" ".join(f"the {looks} {plural(like.noun) if mention.plural else like.noun}".split()))
        one.names += [name for kind, name in mention.also if kind == "name"]
        one.group = one.group if not looks and not one.names else None
        return one


def _included(entity: Known) -> set[str]:
    """Of whom it is told that a crowd holds them."""
    return {tie.other for tie in entity.kin if tie.relation == "including"}


def _nameless(entity: Known) -> bool:
    """Whether somebody is only "somebody" so far."""
    return entity.first is not None and entity.first.pronoun in ("someone", "somebody") and not entity.nouns


def _each(entity: Known) -> bool:
    """Whether somebody or something was last told of as each of several: "bought every kind of tea"."""
    return entity.last is not None and any(one.lower_ in ("every", "each") for one in entity.last.token.children)
