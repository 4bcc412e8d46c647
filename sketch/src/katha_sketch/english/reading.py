"""The way in: a text becomes a `Reading`."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

from katha.intake.names import names_that_are_words
from katha_sketch.english.ages import tell_ages
from katha_sketch.english.beasts import beasts_of
from katha_sketch.english.clauses import Clause, clauses_of, phrase_of
from katha_sketch.english.entities import Resolver
from katha_sketch.english.known import ALIVE, Speaking, finish
from katha_sketch.english.listeners import Listeners
from katha_sketch.english.mentions import Key, Mention, Parsed, mentions_of
from katha_sketch.english.parsing import load_parser
from katha_sketch.english.repairs import child_of, has_to
from katha_sketch.english.senses import about
from katha_sketch.english.sentences import Piece, clean, pieces_of
from katha_sketch.english.tracks import Setting, track
from katha_sketch.english.types import Entity, Event, Place, Reading, Role, Sentence, Speech
from katha_sketch.english.words import Words, load_words

if TYPE_CHECKING:
    from spacy.tokens import Token

    from katha_sketch.english.clauses import Clause

__all__ = ["Scene", "joint_of", "read_story"]

_FINITE = ("VBD", "VBZ", "VBP")
_SUBJECTS = ("nsubj", "nsubjpass", "expl")
_PARTS = frozenset((",", ";", ":", "-", "\u2013", "\u2014"))
_ASIDE = ("relcl", "acl", "appos", "advcl")
"""What of a subject is not said again: "the old man, who was tired, and ..."."""


def joint_of(clause: Clause) -> tuple[int, str] | None:
    """Return where in its parsed text a clause begins that is joined to one before it, the "and" not counted, and the
    subject (with its auxiliary) that it leaves out because both have it, or "".

    None for a clause that is joined to none, or whose verb cannot stand alone ("wanted to run and shout").
    """
    top = clause.chain[0]
    first = [one for one in top.lefts if one.dep_ == "ccomp" and one.tag_ in _FINITE and child_of(one, *_SUBJECTS)]
    if clause.link == "" and first and child_of(top, *_SUBJECTS):  # "First she washed them, then she cut them up"
        rest = top.doc[max(token.i for token in first[-1].subtree) + 1 : top.i]
        opens = next((token for token in rest if not token.is_punct and token.tag_ != "CC"), None)
        return (opens.idx, "") if opens is not None and rest[0].text in _PARTS else None
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
    opening = min(token.i for token in top.subtree)
    if opening <= above.i:
        return None
    start: int = top.doc[opening].idx
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


_CONTENT = ("NOUN", "PROPN", "VERB", "ADJ", "NUM")


@dataclass(frozen=True)
class Scene:
    """Where a script says that a scene begins: from `start` in its text on, at a place and time of day."""

    start: int
    place: str
    time: str = ""
    outdoors: bool = False


@lru_cache(maxsize=512)
def read_story(text: str, scenes: tuple[Scene, ...] = ()) -> Reading:
    """Read an English text. scenes: of a script, by its headings; they hold before what the text says itself."""
    title, plain = _titled(clean(text))
    words, names = about(load_words(), plain), [*names_that_are_words(plain), *_named_by_use(plain, load_words())]
    parsed = _parse(pieces_of(plain), names)
    mentions, resolver = _resolved(parsed, words)
    speaking, told_to = _speakers(parsed, mentions, resolver, words)
    resolver.said(speaking)
    tell_ages(parsed, mentions, resolver.entities, words)
    beasts_of(resolver.entities, mentions, words)
    kept = {mention.entity for mention in mentions.values()} | set(resolver.memory.groups)
    told = [entity for entity in resolver.entities.values() if entity.id in kept]
    kept |= {key for entity in told for key in (entity.owner, *entity.members) if key is not None}
    found = [finish(entity, resolver.entities, words) for entity in resolver.entities.values() if entity.id in kept]
    entities = _without_circles(found)
    by_id = {entity.id: entity for entity in entities}
    speeches, speech_at = _speeches(parsed, speaking)
    events = _Events(parsed, mentions, by_id, speech_at, told_to, words).all()
    count = parsed[-1].piece.sentence + 1 if parsed else 0
    sentences = [_sentence(index, parsed, events, mentions, plain, words) for index in range(count)]
    headings = {_first(sentences, scene.start): scene for scene in scenes}
    settings = track(events, count, by_id, words, {at: _heading(at, one, words) for at, one in headings.items()})
    placed = [
        replace(one, place=at.place, time=at.time, weather=at.weather, season=at.season)
        for one, at in zip(sentences, settings, strict=True)
    ]
    order = sorted(entities, key=lambda entity: (entity.sentences[:1] or (count,), int(entity.id[1:])))
    return Reading(plain, tuple(placed), tuple(events), tuple(order), tuple(speeches), title)


def _without_circles(entities: Sequence[Entity]) -> list[Entity]:
    """Nobody is their owner's owner, and no group a part of what it holds: where it was read so, that is dropped."""
    known = {one.id: one for one in entities}

    def leads_back(start: str, end: str) -> bool:
        seen, left = set[str](), [start]
        while left and end not in seen:
            at = known.get(left.pop())
            if at is not None and at.id not in seen:
                seen.add(at.id)
                left += [*at.members, *([at.owner] if at.owner is not None else [])]
        return end in seen

    for one in entities:
        if one.owner is not None and leads_back(one.owner, one.id):
            known[one.id] = replace(known[one.id], owner=None)
        members = tuple(member for member in one.members if not leads_back(member, one.id))
        known[one.id] = replace(known[one.id], members=members) if members != one.members else known[one.id]
    return list(known.values())


def _resolved(parsed: Sequence[Parsed], words: Words) -> tuple[dict[Key, Mention], Resolver]:
    """What the narrator tells of, with those sexes for whom the text names none with which its pronouns fit best."""
    mentions: dict[Key, Mention] = {}

    def once(names: frozenset[str], sexes: Mapping[Key, str]) -> Resolver:
        mentions.update(mentions_of(parsed, words, names))
        resolver = Resolver(mentions, words, sexes)
        resolver.told()
        return resolver

    first = once(frozenset(), {})
    known = list(first.entities.values())
    names = frozenset(name for entity in known for name in entity.names)
    first = once(names, {})
    told = [one for one in first.entities.values() if one.first is not None and one.alive and not one.narrator]
    sure = {one.first.key: one.told_sex for one in told if one.first and one.told_sex and one.names}
    open_ = [one for one in told if not one.sure and one.first is not None and not one.first.pronoun]
    open_.sort(key=lambda one: (not one.names, -len(one.sentences)))
    keys = [one.first.key for one in open_[: _MOST_OPEN if len(parsed) < _LONG else 0] if one.first is not None]
    every = ({**sure, **dict(zip(keys, sexes, strict=True))} for sexes in product(("male", "female"), repeat=len(keys)))
    if any(mention.pronoun for mention in mentions.values()):
        best = max(every, key=lambda supposed: once(names, supposed).pronouns.total)
    else:  # nothing tells one from another
        best = next(every)
    return mentions, once(names, best)


def _titled(text: str) -> tuple[str, str]:
    """A first line that ends like no sentence, and the text below it."""
    first, _, rest = text.partition("\n\n")
    headed = all(word[0].isupper() for word in re.findall(r"[^\W\d_]{4,}", first))  # "Have You Seen Biscuit?"
    ends = r"[.…:,;\"]$" if headed and "\n" not in rest[:1] else r"[.!?…:,;\"]$"
    short = len(first.split()) <= _LONGEST_TITLE and not re.search(ends, first)
    return (first, rest) if rest and short else ("", text)


def _first(sentences: Sequence[Sentence], start: int) -> int:
    return next((one.index for one in sentences if one.start >= start), len(sentences))


def _heading(at: int, scene: Scene, words: Words) -> Setting:
    """The setting that a script's heading gives: "INT. PIP'S KITCHEN - NIGHT"."""
    named = [word for word in scene.place.replace("/", " ").split() if words.is_place(word)]
    if len(named) == 1 and words.sort(named[0]) == "vehicle":
        named = []  # "BUS STOP"
    noun = named[-1] if named else scene.place.split()[-1]
    place = Place(noun, scene.place, at, None, "", words.sort(noun))
    time = next((part for word in scene.time.split() if (part := words.group("times", word))), None)
    return Setting(place, time)


_OPENS = re.compile(r"(?:\A|[.!?]\s+|\n)([A-Z][a-z]{2,11})(?= [a-z]+(?:ed|s)\b)")


def _named_by_use(text: str, words: Words) -> list[str]:
    """Nouns that are names ("Pia"): they open sentences before verbs, never with an article or a small letter."""
    opening = _OPENS.findall(text)
    often = [word for word in dict.fromkeys(opening) if opening.count(word) > 1 and not word.endswith("s")]
    often = [word for word in often if not re.search(rf"\b(?:{word.lower()}|(?:the|a|an) {word})\b", text)]
    plain = ("", "time", "person", "animal", "being", "place", "weather")
    sets = ("mass", "english", "indefinite_pronouns", "kin")
    return [
        one
        for one in often
        if words.sort(one.lower()) not in plain and not any(words.has(k, one.lower()) for k in sets)
    ]


_MOST_OPEN, _MOSTLY = 4, 0.6
_LONG = 80
_LONGEST_TITLE = 10


def _parse(pieces: Sequence[Piece], names: Collection[str]) -> list[Parsed]:
    found: list[Parsed] = []
    docs = load_parser().parse([piece.text for piece in pieces], names)
    for number, (piece, doc) in enumerate(zip(pieces, docs, strict=True)):
        quoted = [any(a <= token.idx < b for a, b in piece.quoted) for token in doc]
        found.append(Parsed(piece, number, list(doc), quoted, clauses_of(doc, quoted)))
    _as_told(found)
    return found


def _as_told(parsed: Sequence[Parsed]) -> None:
    """Read a story that is told in the future ("Mia will climb the hill") as what happens."""
    own = [[clause for clause in part.clauses if not part.quoted[clause.verb.i]] for part in parsed]
    ahead = [any(clause.modality == "will" and not clause.negated for clause in clauses) for clauses in own if clauses]
    if sum(ahead) < max(2, _MOSTLY * len(ahead)):
        return
    told: list[Clause] = []
    for clause in (clause for clauses in own for clause in clauses):
        goes_on = clause.parent in told and clause.link in ("conj", "advcl", "because")
        if (clause.modality == "will" or goes_on) and clause.standing in ("intended", "told"):
            clause.modality, clause.standing = clause.modality.removeprefix("will"), "told"
            told.append(clause)


def _frame(
    parts: Sequence[Parsed], mentions: Mapping[Key, Mention], words: Words
) -> tuple[str | None, tuple[str, ...]]:
    """Who a sentence says speaks, and to whom."""
    for part in parts:
        for clause in part.clauses:
            if part.quoted[clause.verb.i] or not words.has("say", clause.lemma):
                continue
            who = [mentions.get((part.number, token.i)) for token in clause.of("agent")]
            to = [mentions.get((part.number, token.i)) for token in clause.of("recipient", "goal")]
            speaker = next((item.entity for item in who if item is not None and item.entity), None)
            if speaker is not None:
                return speaker, tuple(item.entity for item in to if item is not None and item.entity)
    return None, ()


def _speakers(
    parsed: Sequence[Parsed], mentions: Mapping[Key, Mention], resolver: Resolver, words: Words
) -> tuple[dict[int, Speaking], dict[Key, tuple[str, ...]]]:
    """Who says what is quoted: by "said", else whoever spoke or acted just before in the paragraph, else by turns; and
    to whom, also by the verb of what is told as said."""
    found: dict[int, Speaking] = {}
    told: dict[Key, tuple[str, ...]] = {}
    listeners = Listeners(mentions.values(), resolver.entities, words)
    heard: tuple[str, ...] = ()
    before: tuple[int, str | None] = (-1, None)
    for index in range(parsed[-1].piece.sentence + 1 if parsed else 0):
        parts = [part for part in parsed if part.piece.sentence == index]
        speaks = any(any(part.quoted) for part in parts)
        paragraph = parts[0].piece.paragraph if parts else -1
        speaker, to = _frame(parts, mentions, words) if speaks else (None, ())
        acting = _acting(parts, mentions, resolver)
        if speaks and speaker is None:
            turns = listeners.turns
            speaker = acting or (before[1] if before[0] == paragraph else None)
            speaker = turns[-2][1] if speaker is None and len(turns) > 1 else speaker
        if speaks:
            to = to or _called(parts, resolver, speaker) or (heard if before == (paragraph, speaker) else ())
            heard = to = to or listeners.of(speaker, index)
            found.update({part.number: Speaking(speaker, to) for part in parts})
            listeners.spoke(index, speaker, to)
        told |= _told(parts, mentions, listeners, speaker, to)
        before = (paragraph, (speaker if speaks else acting) or (before[1] if before[0] == paragraph else None))
    return found, told


def _told(
    parts: Sequence[Parsed],
    mentions: Mapping[Key, Mention],
    listeners: Listeners,
    speaker: str | None,
    to: tuple[str, ...],
) -> dict[Key, tuple[str, ...]]:
    """To whom is said what a sentence tells as said, by the verbs. speaker, to: of what is quoted in it."""
    found: dict[Key, tuple[str, ...]] = {}
    for part in parts:
        for clause in part.clauses:
            agents = [mentions.get((part.number, token.i)) for token in clause.of("agent")]
            who = next((one.entity for one in agents if one is not None and one.entity), None)
            deed = f"{clause.lemma}_{clause.particle}".strip("_")
            talks, turns = listeners.words.has("talk", clause.lemma), listeners.words.has("partners", deed)
            if part.quoted[clause.verb.i] or who is None or clause.negated or not (talks or turns):
                continue
            named = [mentions.get((part.number, token.i)) for token in clause.of("recipient")]
            known = tuple(one.entity for one in named if one is not None and one.entity)
            found[part.number, clause.verb.i] = known or (
                to if who == speaker else listeners.of(who, part.piece.sentence)
            )
            if who != speaker and talks:
                listeners.spoke(part.piece.sentence, who, found[part.number, clause.verb.i])
    return found


def _acting(parts: Sequence[Parsed], mentions: Mapping[Key, Mention], resolver: Resolver) -> str | None:
    clauses = [(part, clause) for part in parts for clause in part.clauses if not part.quoted[clause.verb.i]]
    clauses.sort(key=lambda one: one[1].link == "advcl")  # "When she came home, her mother was waiting"
    found = (mentions.get((part.number, token.i)) for part, clause in clauses for token in clause.of("agent"))
    known = (resolver.memory.of(mention) for mention in found)
    return next((one.id for one in known if one is not None and one.kind in ALIVE), None)


def _called(parts: Sequence[Parsed], resolver: Resolver, speaker: str | None) -> tuple[str, ...]:
    """Who is called by name in the quotes: "Come here, Tom"."""
    names = [
        token.text
        for part in parts
        for token in part.tokens
        if part.quoted[token.i]
        and token.pos_ in ("PROPN", "NOUN")
        and any(
            token.i + step in range(len(part.tokens)) and part.tokens[token.i + step].text in ',!?."'
            for step in (1, -1)
        )
        and token.dep_ in ("npadvmod", "ROOT", "nsubj", "appos", "intj", "dobj", "dep", "compound", "attr")
    ]
    for entity in resolver.entities.values():
        called = {part for name in entity.names for part in name.split()} | {
            noun.capitalize() for noun in entity.nouns if noun in resolver.words.sets["kin"]
        }
        if entity.id != speaker and called & set(names) and entity.kind != "place":
            return (entity.id,)
    return ()


def _speeches(parsed: Sequence[Parsed], speaking: Mapping[int, Speaking]) -> tuple[list[Speech], dict[Key, int]]:
    speeches: list[Speech] = []
    at: dict[Key, int] = {}
    for part in parsed:
        for begin, end in part.piece.quoted:
            said = part.piece.text[begin:end].strip()
            if not said:
                continue
            who = speaking.get(part.number, Speaking())
            if part.piece.open and begin == 0 and speeches:
                speeches[-1] = replace(speeches[-1], text=f"{speeches[-1].text} {said}")
            else:
                start = part.piece.start + begin
                speeches.append(Speech(part.piece.sentence, said, start, who.speaker, who.addressees))
            for token in part.tokens:
                if begin <= token.idx < end:
                    at[part.number, token.i] = len(speeches) - 1
    return speeches, at


class _Events:
    """Turns clauses into events, entities put in."""

    def __init__(
        self,
        parsed: Sequence[Parsed],
        mentions: Mapping[Key, Mention],
        entities: Mapping[str, Entity],
        speech_at: Mapping[Key, int],
        told_to: Mapping[Key, tuple[str, ...]],
        words: Words,
    ) -> None:
        self.parsed = parsed
        self.mentions = mentions
        self.entities = entities
        self.speech_at = speech_at
        self.told_to = told_to
        self.words = words
        self.listed = [(part, clause) for part in parsed for clause in part.clauses]
        self.ids = {id(clause): at for at, (_, clause) in enumerate(self.listed)}

    def all(self) -> list[Event]:
        events = [self._event(at, part, clause) for at, (part, clause) in enumerate(self.listed)]
        for at, (_, clause) in enumerate(self.listed):
            parent = self.ids.get(id(clause.parent)) if clause.parent is not None else None
            if parent is None or clause.link not in ("purpose", "because"):
                continue
            if clause.link == "purpose":
                events[parent] = replace(events[parent], purpose=(*events[parent].purpose, at))
            else:
                events[parent] = replace(events[parent], because=(*events[parent].because, at))
        return events

    def _role(self, part: Parsed, clause: Clause, at: int) -> Role:
        filler = clause.fillers[at]
        mention = self.mentions.get((part.number, filler.token.i))
        head = self.words.noun_lemma(filler.token.lemma_.lower())
        if mention is not None:
            head = mention.pronoun or (filler.token.text if mention.name else head)
        entity = mention.entity if mention is not None and mention.entity in self.entities else None
        start = part.piece.start + filler.token.idx
        return Role(filler.role, phrase_of(filler.token), head, entity, filler.preposition, start)

    def _event(self, at: int, part: Parsed, clause: Clause) -> Event:
        roles = [self._role(part, clause, index) for index in range(len(clause.fillers))]
        speech = self.speech_at.get((part.number, clause.verb.i))
        if speech is not None and clause.imperative and not any(role.role == "agent" for role in roles):
            roles = [Role("agent", "you", "you", self._addressee(part), "", -1), *roles]
        parent = self.ids.get(id(clause.parent)) if clause.parent is not None else None
        tags = {child.tag_ for token in clause.chain for child in token.children if child.dep_ in ("aux", "auxpass")}
        finite = {token.tag_ for token in clause.chain} | tags
        helpers = [child for token in clause.chain for child in token.children if child.dep_ == "aux"]
        had = any(child.lemma_ in ("have", "having") for child in helpers)
        above = clause.parent.verb if clause.link == "conj" and clause.parent is not None else None
        if above is not None and not tags and clause.verb.tag_ == above.tag_ == "VBN":  # "had hit the nail and bent it"
            had = any(child.lemma_ == "have" and child.dep_ == "aux" for child in above.children)
        present = bool(finite & {"VBZ", "VBP"}) and "VBD" not in finite
        freed = [token for token in clause.state if self.words.has("frees", f"{clause.lemma}_{token.lower_}")]
        objects = {f"{clause.lemma}_{token.lemma_.lower()}" for token in clause.of("patient")}
        shut = bool(objects & self.words.sets["closes"])  # who draws the curtains has no pencil
        joint = joint_of(clause)
        event = Event(
            id=at,
            sentence=part.piece.sentence,
            verb="free" if freed else "close" if shut else clause.lemma,  # who sets somebody free sets no table
            text=self._text(part, clause),
            start=part.piece.start + clause.verb.idx,
            particle=clause.particle,
            roles=tuple(roles),
            state=tuple(
                token.text.lower() if token.pos_ in ("ADJ", "VERB", "ADV") else token.lemma_.lower()
                for token in clause.state
                if token not in freed
            ),
            manner=tuple(clause.manner),
            time=tuple(clause.time),
            reason=tuple(clause.reason),
            negated=clause.negated,
            modality=clause.modality,
            phase=clause.phase,
            tense="future" if clause.modality == "will" else "present" if present else "past",
            perfect=had and not present,
            standing=clause.standing,
            within=parent if clause.link == "content" else None,
            passive=clause.passive,
            existential=clause.existential,
            speech=speech,
            to=self.told_to.get((part.number, clause.verb.i), ()),
            aside=clause.aside,
            joint=part.piece.start + joint[0] if joint is not None else -1,
            shared=joint[1] if joint is not None else "",
        )
        event = replace(event, feeling=self._feeling(event, part, clause))
        return replace(event, visible=self._visible(event))

    def _addressee(self, part: Parsed) -> str | None:
        found = (one for key, one in self.mentions.items() if key[0] == part.number and one.pronoun == "you")
        return next((one.entity for one in found if one.entity), None)

    def _text(self, part: Parsed, clause: Clause) -> str:
        """The clause's own words: its subtree without the clauses in it."""
        others = {other.chain[0].i for other in part.clauses} - {token.i for token in clause.chain}
        inner = {token.i for upper in clause.chain for token in upper.subtree}
        for other in sorted(others & inner):
            inner -= {token.i for token in part.tokens[other].subtree}
        return "".join(token.text_with_ws for token in part.tokens if token.i in inner).strip(' ,.;:!?"')

    def _feeling(self, event: Event, part: Parsed, clause: Clause) -> str | None:
        feelings = self.words.feelings
        if event.negated:
            return None
        for token in clause.state:
            found = feelings.get(token.text.lower()) or feelings.get(token.lemma_.lower())
            if found and not any(child.dep_ == "neg" for child in token.children):
                return found
        if event.passive and not event.who("agent") and (found := feelings.get(clause.verb.text.lower())):
            return found  # "was astonished"
        calls = event.verb in ("cry", "sigh", "laugh") and any(part.quoted)
        if self.words.has("feel_verbs", event.verb) and event.verb in feelings and not calls:
            return feelings[event.verb]
        for phrase in event.manner:
            if phrase.split()[-1] in feelings:
                return feelings[phrase.split()[-1]]
        for token in clause.of("patient") if event.verb in ("feel", "have", "show") else ():
            if token.lemma_.lower() in feelings:
                return feelings[token.lemma_.lower()]
        for token in clause.of("agent"):
            mention = self.mentions.get((part.number, token.i))
            for word in mention.adjectives if mention is not None else ():
                if word in feelings and word != "old":
                    return feelings[word]
        return None

    def _visible(self, event: Event) -> bool:
        if event.standing != "told" or (event.negated and event.modality not in ("can", "try")):
            return False
        if event.feeling or event.phase:
            return True
        agents = [self.entities[item].kind for item in event.who("agent")]
        if event.verb == "be":
            told = event.state or event.all("place", "goal") or event.existential
            dim = not agents and not any(role.head in ("it", "that") for role in event.all("agent"))
            return bool(told) and not dim and not (agents and all(kind == "abstract" for kind in agents))
        concrete = [self.entities[item].kind != "abstract" for item in event.who("agent", "patient", "recipient")]
        if concrete and not any(concrete):
            return False
        whole = event.verb if event.who("patient") else event.predicate.replace(" ", "_")  # "it turned out that ..."
        return not (self.words.has("unseen", event.verb) or self.words.has("unseen", whole))


def _sentence(
    index: int,
    parsed: Sequence[Parsed],
    events: Sequence[Event],
    mentions: Mapping[Key, Mention],
    plain: str,
    words: Words,
) -> Sentence:
    """One sentence with what was understood of it."""
    parts = [part for part in parsed if part.piece.sentence == index]
    own = [event for event in events if event.sentence == index]
    understood: list[str] = []
    missed: list[str] = []
    concrete = False
    for part in parts:
        known = _known(part, mentions)
        for token in part.tokens:
            if part.quoted[token.i] or token.pos_ not in _CONTENT:
                continue
            (understood if token.i in known else missed).append(token.text)
            concrete |= token.pos_ == "NOUN" and words.sort(token.lemma_.lower()) not in ("abstract", "time", "feeling")
    speaks = any(any(part.quoted) for part in parts)
    seen = [event for event in own if event.visible]
    told = [event for event in own if event.standing == "told"]
    visible = bool(seen) or speaks or (not own and concrete)
    filled = [e for e in seen if e.who("agent", "patient") or words.has("weather_verbs", e.verb) or e.state]
    said = any(event.speech is not None for event in own) and any(
        words.has("say", event.verb) and event.who("agent") for event in told
    )
    start = parts[0].piece.start
    end = parts[-1].piece.start + len(parts[-1].piece.text)
    return Sentence(
        index=index,
        text=plain[start:end],
        start=start,
        end=end,
        paragraph=parts[0].piece.paragraph,
        events=tuple(event.id for event in own),
        visible=visible,
        read=visible and (bool(filled) or said or (speaks and not told)),
        understood=tuple(understood),
        missed=tuple(missed),
    )


def _known(part: Parsed, mentions: Mapping[Key, Mention]) -> set[int]:
    """The words of a piece that have a place in its events."""
    found: set[int] = set()
    for clause in part.clauses:
        found |= {token.i for token in clause.chain} | {token.i for token in clause.state}
        for filler in clause.fillers:
            found |= {token.i for token in filler.token.subtree if token.dep_ not in ("relcl", "acl", "advcl")}
        for child in clause.verb.children:
            if child.dep_ in ("npadvmod", "prep", "advmod"):
                found |= {token.i for token in child.subtree if token.pos_ != "VERB"}
    return found | {key[1] for key, mention in mentions.items() if key[0] == part.number and mention.also}
