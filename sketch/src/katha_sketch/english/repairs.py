"""What the parser gets wrong again and again in stories, put right in its trees before they are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from katha_sketch.english.words import Words

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

__all__ = ["child_of", "has_to", "is_time", "lemma_of", "repair"]

_MEASURES = frozenset(("size", "colour", "color", "shape", "height", "length", "weight", "age"))
_BEHIND_IT = frozenset(("it", "him", "her", "them", "me", "us", "that", "this"))
_HELD = ("dobj", "advcl", "pobj", "ccomp")
_SUBJECTS = frozenset(("nsubj", "nsubjpass", "csubj", "expl"))


def child_of(token: Token, *deps: str) -> Token | None:
    return next((child for child in token.children if child.dep_ in deps), None)


def has_to(token: Token) -> bool:
    """Whether a verb is an infinitive with "to"."""
    return any(child.lower_ == "to" and child.dep_ == "aux" for child in token.children)


def lemma_of(token: Token) -> str:
    return str(token.lemma_.lower())


def is_time(token: Token, words: Words) -> bool:
    lemma = lemma_of(token)
    if token.ent_type_:
        return False  # "May jumped"
    if token.dep_ == "dobj" and (lemma == "spring" or words.is_a("food", lemma) or not words.tells_when(lemma)):
        return False  # what is unscrewed is a coil, what is eaten is lunch, what one has is a picnic
    return words.is_time(lemma_of(token), token.pos_)


def repair(doc: Doc, quoted: Sequence[bool], words: Words) -> None:
    """Put right what the parser gets wrong again and again in stories.

    A subject taken for an adverbial ("The wolf huffed"), a subject after "said" taken for its object, two objects taken
    for a small clause ("made her a crown"), a preposition taken for a particle ("chased up a tree"), a result taken for
    an object ("slammed shut").
    """
    for token in doc:
        if token.i == 0 and len(doc) > 1 and token.head.i == 1 and words.has("away", token.lower_):
            token.pos_, token.tag_, token.dep_ = "ADV", "RB", "advmod"  # "Off went the captain", "Up climbed Miguel"
            token.head.tag_ = "VBD" if token.head.tag_ == "VBN" else token.head.tag_
        if token.i > 1 and quoted[token.i - 2] and not quoted[token.i] and words.has("say", lemma_of(token)):
            _repair_saying(token, quoted)
        _repair_tags(token, words)
        if (token.dep_, token.tag_) == ("ROOT", "VBN") and child_of(token, "aux", "auxpass", *_SUBJECTS) is None:
            token.tag_ = "VBD"  # "The wolf howled"
    for token in doc:
        _repair_measures(token, words)
        _repair_owned(token, words)
        _repair_compared(token)
        _repair_done(token, words)
        _repair_watched(token, words)
        _repair_paired(token)
        _repair_inverted(token, words)
        _take_subject(token)
        _repair_series(token, words)
        _repair_looks(token, words)
        _repair_counted(token, words)
    for token in doc:
        _repair_had(token, words)
        _repair_results(token, words)
        _repair_subjects(token, words)
        if token.dep_ == "ROOT" and token.pos_ in ("NOUN", "PROPN") and words.has("past_forms", token.lower_):
            token.pos_, token.tag_, token.lemma_ = "VERB", "VBD", words.lemmas.get(token.lower_, token.lower_)
        _repair_home(token, words)
        if token.pos_ in ("VERB", "AUX") and token.tag_ in ("VBD", "VBZ", "VBP"):
            _repair_doers(token, quoted, words)
        _repair_clauses(token, words)
        if token.dep_ == "dobj" and words.has("give", lemma_of(token.head)):
            _split_objects(token)
        _repair_rows(token, words)
        _repair_objects(token, words)
        _repair_particles(token, words)
    _keep_tree(doc)


def _repair_home(token: Token, words: Words) -> None:
    """Part "home" from what stands before it, which was taken for one thing with it: "carried the sack home"."""
    load = child_of(token, "compound") if token.lower_ == "home" and token.dep_ in ("pobj", "dobj") else None
    if load is None:
        return
    moved = words.has("motion", lemma_of(token.head)) or words.has("carrying", lemma_of(token.head))
    if token.dep_ == "pobj":
        load.head, load.dep_ = token.head, "pobj"
        token.dep_ = "nmod"
    elif moved:
        for child in [one for one in token.children if one.i < load.i]:
            child.head = load
        load.head, load.dep_, token.dep_ = token.head, "dobj", "advmod"


def _repair_doers(verb: Token, quoted: Sequence[bool], words: Words) -> None:
    """Take from a finite verb a doer that belongs to the quotes, and find one for a verb without any."""
    if not quoted[verb.i] and words.has("say", lemma_of(verb)):
        for child in verb.children:
            if child.dep_ == "nsubj" and quoted[child.i]:
                child.dep_ = "intj"
    if not any(one.dep_ in _SUBJECTS and (one.dep_ != "expl" or lemma_of(verb) == "be") for one in verb.children):
        _find_subject(verb, words)


def _repair_clauses(token: Token, words: Words) -> None:
    """Make objects again of a noun and its owner, which were taken for a small clause: "made her a crown"."""
    owner = child_of(token, "nsubj") if token.dep_ == "ccomp" and token.pos_ in ("NOUN", "PROPN") else None
    if owner is not None and owner.lower_ == "her" and not words.has("give", lemma_of(token.head)):
        owner.dep_, owner.tag_, token.dep_ = "poss", "PRP$", "dobj"  # "turns her face up"
    elif owner is not None and token.head.i < owner.i:
        owner.head, owner.dep_ = token.head, "dative"
        token.dep_ = "dobj"


def _repair_particles(token: Token, words: Words) -> None:
    """Put right a particle taken for a preposition, and the other way round: "hung up the washing", "chased up a
    tree"."""
    if token.dep_ == "prep" and token.lower_ == "up" and (thing := child_of(token, "pobj")) is not None:
        moves = any(words.has(name, lemma_of(token.head)) for name in ("motion", "look_verbs"))
        if not moves and words.sort(lemma_of(thing)) == "thing" and child_of(token.head, "dobj") is None:
            token.dep_, thing.head, thing.dep_ = "prt", token.head, "dobj"  # "hung up the washing"
    if token.dep_ == "prt" and words.has("not_particle", token.lower_) and token.i + 1 < len(token.doc):
        thing = child_of(token.head, "dobj")
        passive = any(child.dep_ == "nsubjpass" for child in token.head.children)
        moves = words.has("motion", lemma_of(token.head)) and not words.has("carrying", lemma_of(token.head))
        moves = moves and (thing is None or not words.is_a("clothing", lemma_of(thing)))  # "rolled up her sleeves"
        if thing is not None and (passive or moves) and thing.left_edge.i == token.i + 1:
            token.dep_, thing.head, thing.dep_ = "prep", token, "pobj"


def _repair_measures(token: Token, words: Words) -> None:
    """Put right what stands beside measures, and halves of prepositions: "a scarf nine metres long", "took five steps
    back", "came down her steps", "squeezed in between two uncles"."""
    head, doc = token.head, token.doc
    much = child_of(token, "npadvmod") if token.dep_ in ("acomp", "attr") else None
    many = child_of(much, "nummod") if much is not None else None
    thing = many.nbor(-1) if many is not None and many.i > 1 else token
    known = thing.tag_ in ("NN", "JJ", "NNS") and words.sort(thing.lower_) not in ("", "abstract", "time")
    if known and head.i < thing.i < token.i and thing.head in (much, head, token):
        for child in [one for one in doc[head.i + 1 : thing.i] if one.head == much]:
            child.head = thing
        thing.pos_, thing.tag_, thing.head, thing.dep_ = "NOUN", "NN", head, "attr"
        token.head, token.dep_ = thing, "amod"
    below = child_of(head, "dobj") if token.dep_ == "prep" and not list(token.children) else None
    if below is not None and below.left_edge.i == token.i + 1 and words.has("motion", lemma_of(head)):
        below.head, below.dep_ = token, "pobj"
    if token.lower_ == "between" and token.dep_ == "quantmod" and token.i and token.nbor(-1).lower_ == "in":
        into = token.nbor(-1)
        token.head, token.dep_, token.pos_ = into.head, "prep", "ADP"
        for child in [one for one in into.children if one.dep_ == "pobj"]:
            child.head = token
        into.dep_ = "advmod"
    back = head.head if token.dep_ == "npadvmod" and words.has("ways", head.lower_) else None
    free = back is not None and back.i == token.left_edge.i - 1 and child_of(back, "dobj") is None
    if back is not None and free and lemma_of(token) in words.sets.get(f"light.{lemma_of(back)}", ()):
        token.head, token.dep_ = back, "dobj"


def _repair_owned(token: Token, words: Words) -> None:
    """Put right "her" and "had": "towed her home", "moved her jaw about", "had his sleeves rolled up and was lying
    there"; and a past form with a doer of its own: "tiny men scattered"."""
    head = token.head
    whom = child_of(token, "poss") if token.lower_ == "home" and token.dep_ == "dobj" else None
    if whom is not None and whom.lower_ == "her" and whom.i == token.i - 1 and words.has("brings_home", lemma_of(head)):
        whom.head, whom.dep_, whom.pos_, whom.tag_ = head, "dobj", "PRON", "PRP"
        token.pos_, token.tag_, token.dep_ = "ADV", "RB", "advmod"
    if token.lower_ == "her" and (token.tag_, token.dep_) == ("PRP", "dobj") and token.i + 1 < len(token.doc):
        part = token.nbor(1)
        if (
            part.lower_ != "back"
            and part.head == head
            and part.dep_ in ("advmod", "npadvmod", "dep")
            and words.sort(lemma_of(part)) == "body"
        ):
            token.head, token.dep_, token.tag_, part.dep_ = part, "poss", "PRP$", "dobj"
            part.pos_, part.tag_ = "NOUN", "NN"
    if token.tag_ == "VBN" and token.dep_ in ("ROOT", "conj") and child_of(token, "aux", "auxpass") is None:
        doer = child_of(token, "nsubj")
        if doer is not None and doer.i < token.i and child_of(token, "agent") is None:
            token.tag_ = "VBD"
    had = (
        token.dep_ == "conj" and token.tag_ == "VBG" and head.dep_ == "ccomp" and lemma_of(head.head) in ("have", "get")
    )
    if (
        had
        and head.head.i < head.i < token.i
        and child_of(token, "aux") is not None
        and child_of(token, "nsubj") is None
    ):
        token.head = head.head


def _keep_tree(doc: Doc) -> None:
    """Give every sentence one root again where repairs that met have left a circle of words or a root below another."""
    for token in doc:
        above, met = token, {token.i}
        while above.head.i != above.i and above.head.i not in met:
            above = above.head
            met.add(above.i)
        if above.head.i != above.i:
            above.head = above
        above.dep_ = "ROOT"
    for token in doc:
        if token.dep_ == "ROOT" and token.head.i != token.i:
            token.dep_ = "dep"


def _repair_tags(token: Token, words: Words) -> None:
    """Put right a word that was taken for another part of speech: "put on her goggles and her rubber boots", "made her
    brother Max cough", "painted his toenails red"."""
    head, doer = token.head, child_of(token, "nsubj")
    if doer is not None and _is_told_first(token, words):
        between = [one.text for one in token.doc[token.i : head.i]]
        if between[-1] == "," and not any(one.tag_ in ("WRB", "IN") for one in token.lefts):
            above, dep = head.head, head.dep_
            token.head, token.dep_ = (token, dep) if above == head else (above, dep)
            head.head, head.dep_ = token, "conj"
    elif token.tag_ == "JJ" and token.dep_ == "advcl" and token.lower_.endswith("ed") and head.tag_ == "VBD":
        _make_deed(token)
    elif token.tag_ == "VBZ" and token.dep_ == "conj":
        _repair_plural(token)
    elif token.dep_ == "ccomp" and token.pos_ == "ADJ" and doer is not None and doer.i < token.i:
        _make_result(token, doer, words)
    elif token.lower_ == "back" and token.pos_ == "ADV" and token.i and token.nbor(-1).lower_ in ("her", "his", "my"):
        _make_back(token, words)
    elif token.dep_ in ("advcl", "xcomp", "ccomp") and token.pos_ == "VERB" and words.has("colours", token.lower_):
        token.pos_, token.dep_ = "ADJ", "oprd"  # "painted his toenails red"
    elif token.dep_ == "pcomp" and token.pos_ == "VERB" and words.has("colours", token.lower_) and doer is not None:
        doer.head, doer.dep_, token.pos_, token.dep_, token.head = head, "pobj", "ADJ", "amod", doer
        # "with his lips blue with cold"
    elif token.dep_ == "pcomp" and token.tag_ == "VBG" and head.lower_ == "of":
        _make_stuff(token, words)
    elif token.dep_ == "acl" and token.tag_ == "VBD" and head.dep_ == "pobj" and head.head.head.dep_ == "conj":
        doer = head.head.head
        verb = next((up for up in doer.ancestors if up.pos_ == "VERB"), None)
        if verb is not None and doer.head.dep_ in (*_SUBJECTS, "ROOT") and verb.i < doer.i and list(doer.lefts):
            doer.head, doer.dep_ = token, "nsubj"  # "and a robot in a bow tie swept the floor"
            token.head, token.dep_ = verb, "conj"


def _is_told_first(token: Token, words: Words) -> bool:
    """Tell whether a verb hangs from a later one without a doer, with which it is told: "took off her shoe, sat down
    and left"."""
    head = token.head
    speaks = token.dep_ == "ccomp" and words.has("say", lemma_of(head)) and head.i + 1 < len(token.doc)
    speaks = speaks and token.doc[head.i + 1].text != '"'  # 'took a pen, wrote "no" and'
    joined = token.dep_ in ("advcl", "ccomp", "parataxis") and head.tag_ in ("VBD", "VBZ", "VBP") and not speaks
    joined = joined and child_of(head, *_SUBJECTS) is None and child_of(token, "mark") is None
    return joined and token.tag_ == head.tag_ and token.i < head.i


def _make_deed(token: Token) -> None:
    """Make a deed of a look that has an object and stands behind a comma."""
    thing = child_of(token, "npadvmod", "dobj")
    if thing is not None and thing.i > token.i > token.head.i and token.nbor(-1).text == ",":
        token.pos_, token.tag_, token.dep_, token.lemma_ = "VERB", "VBD", "conj", token.lower_[:-2]
        thing.dep_ = "dobj"


def _make_result(look: Token, thing: Token, words: Words) -> None:
    """Make what somebody finds or makes a thing of a clause about it: "found her asleep", "wiped the table dry"."""
    head = look.head
    so = words.has("found_so", lemma_of(head)) or thing.left_edge.i == head.i + 1  # "wiped the table dry"
    so = so and not any(words.has(name, lemma_of(head)) for name in ("report", "think", "make", "wish"))
    if so and child_of(look, "mark", "aux") is None:
        thing.head, thing.dep_, look.dep_ = head, "dobj", "oprd"
        for one in [one for one in look.children if one.dep_ == "prep"]:
            one.head = head


def _make_back(back: Token, words: Words) -> None:
    """Make a part of the body of "back": "sat with her back against it", "turned his back"."""
    whose, turns = back.nbor(-1), back.nbor(-1).lower_ != "her" or words.has("turns_back", lemma_of(back.head))
    if whose.dep_ == "pobj" or (whose.dep_ == "dobj" and turns):
        back.pos_, back.tag_, back.head, back.dep_ = "NOUN", "NN", whose.head, whose.dep_
        whose.head, whose.dep_, whose.tag_ = back, "poss", "PRP$"


def _make_stuff(token: Token, words: Words) -> None:
    """Make a look of what was taken for a deed with stuff: "sheets of packing paper"."""
    of, stuff = token.head, child_of(token, "dobj")
    some = words.has("quantity", lemma_of(of.head)) or words.sort(lemma_of(of.head)) not in ("abstract", "")
    if some and stuff is not None and stuff.i == token.i + 1 and stuff.tag_ == "NN":
        stuff.head, stuff.dep_ = of, "pobj"
        token.head, token.dep_, token.pos_, token.tag_ = stuff, "amod", "ADJ", "JJ"


def _repair_saying(said: Token, quoted: Sequence[bool]) -> None:
    """Make the verb of what was taken for a part of the quotes: '"Who is there?" called Omar', '"Hurry," called Finn,
    jumping into the boat'."""
    for helper in [one for one in said.children if one.dep_ in ("aux", "auxpass") and quoted[one.i]]:
        helper.dep_ = "ccomp"  # '"Where are you?" asked Grandpa'
    words = said.head
    said.tag_ = "VBD" if said.tag_ == "VBN" else said.tag_
    if said.tag_ == "VBD" and said.pos_ == "VERB" and said.dep_ != "ROOT" and quoted[words.i] and words.dep_ == "ROOT":
        for one in [one for one in words.children if one.i > said.i and not quoted[one.i]]:
            one.head = said
        said.head, said.dep_, words.head, words.dep_ = said, "ROOT", said, "ccomp"


def _repair_compared(token: Token) -> None:
    """Give a verb the doer before what that is likened to: "a shape as wide as a field rose"."""
    if token.lower_ != "as" or token.i < len(("a", "shape", "as")) or token.nbor(-2).lower_ != "as":
        return
    like, thing = token.nbor(-1), token.nbor(-1).head
    doer = next((one for one in token.doc[token.i :] if one.dep_ == "nsubj" and one.left_edge.i == token.i + 1), None)
    if like.dep_ != "amod" or doer is None or doer.head.i < doer.i:
        return
    verb = doer.head
    if verb.dep_ in ("relcl", "advcl"):
        verb.dep_, verb.head = thing.dep_, verb if thing.dep_ == "ROOT" else thing.head
    elif thing.head != verb:
        return
    thing.head, thing.dep_, doer.head, doer.dep_ = verb, "nsubj", token, "pobj"
    token.head, token.dep_ = like, "prep"


def _repair_done(token: Token, words: Words) -> None:
    """Make a deed of what was taken for a noun's look: "something whimpered", "and her tail twitched in the snow",
    "One morning a driver hurried in"."""
    doer = token.head
    if token.tag_ != "VBN" or token.dep_ != "acl" or doer.i >= token.i or not token.lower_.endswith("ed"):
        return
    above, left = doer.head, doer.dep_
    opens = (
        left == "ROOT"
        or (left == "dep" and above.i > token.i)
        or (left == "appos" and above.dep_ == "ROOT" and is_time(above, words))
    )
    joined = left == "conj" and above.pos_ == "VERB" and doer.nbor(-1).text != ","
    near = token.i == doer.i + 1 and doer.pos_ in ("NOUN", "PROPN", "PRON")
    if not near or not (opens or joined) or any(one.dep_ == "agent" and list(one.children) for one in token.children):
        return
    first = left == "dep" and above.pos_ == "VERB"  # "a bolt pinged, a plank tipped"
    token.tag_, token.dep_ = "VBD", "ccomp" if first else "conj" if joined else "ROOT"
    token.head = above if joined or first else token
    for one in [one for one in doer.children if one.dep_ == "advcl" and one.i < doer.i]:
        one.head = token
    if above.dep_ == "ROOT" and above not in (doer, token) and not (joined or first):
        above.head, above.dep_ = token, "npadvmod"
    doer.head, doer.dep_ = token, "nsubj"


def _repair_watched(token: Token, words: Words) -> None:
    """Make a thing again of what was taken for a doer: "ate it standing up", "carried her shopping", "found a coin
    lying there"."""
    verb, doer = token.head, child_of(token, "nsubj", "compound")
    if token.tag_ == "VB" and token.dep_ == "dobj" and doer is not None and doer.dep_ == "compound":
        for one in [one for one in token.lefts if one != doer]:
            one.head = doer
        doer.dep_, token.dep_ = "nsubj", "ccomp"  # "felt a hand touch her shoulder"
    beside = doer is not None and doer.i == token.i - 1 and (token.dep_ != "ccomp" or doer.dep_ == "compound")
    if token.tag_ == "VBG" and doer is not None and beside and token.dep_ in _HELD:
        first = token.left_edge
        apart = first.i == 0 or first.nbor(-1).text == ","
        if doer.dep_ == "compound":
            for one in [one for one in token.lefts if one != doer]:
                one.head = doer
            doer.dep_ = "nsubj"
        if token.dep_ == "pobj":
            token.dep_ = "pcomp"  # "with his coat dripping"
        elif apart:
            token.dep_ = "advcl"  # "his scarf flapping, he limped along"
        elif token.dep_ == "dobj":
            doer.head, doer.dep_, token.head, token.dep_ = verb, "dobj", doer, "acl"
        return
    if token.tag_ == "VBG" and token.dep_ == "dobj" and child_of(verb, "dobj") not in (None, token):
        token.dep_ = "xcomp"  # "left the nurse kneeling beside the bed"
    if token.tag_ == "VBG" and token.i and token.nbor(-1).text == ",":
        if token.dep_ in ("appos", "conj") and verb.pos_ in ("NOUN", "PROPN"):
            token.dep_ = "acl"  # "Marco, laughing, threw it"
        elif token.dep_ in ("prep", "nsubj", "dep"):
            token.head = verb if verb.pos_ == "VERB" else verb.head
            token.dep_ = "advcl"
            if (thing := child_of(token, "pobj")) is not None:
                thing.dep_ = "dobj"  # "following a book"
    _repair_beside_things(token, words)
    _repair_told(token, verb, words)
    seen = any(words.has(name, lemma_of(verb)) for name in ("perceive", "make"))
    if token.dep_ in ("relcl", "acl") and verb.dep_ == "dobj" and lemma_of(verb.head) == "get" and has_to(token):
        token.head, token.dep_ = verb.head, "xcomp"  # "got the donkey to drink"
    if doer is None or doer.i > token.i or verb.pos_ != "VERB":
        return
    if (
        token.dep_ == "ccomp"
        and doer.lower_ == "her"
        and doer.i == token.i - 1
        and words.has("carrying", lemma_of(verb))
    ):
        token.pos_, token.tag_, token.dep_, doer.dep_ = "NOUN", "NN", "dobj", "poss"  # "carried her shopping"
        token.lemma_ = token.lower_
    elif (token.dep_, token.tag_, doer.lower_, doer.i) == ("ccomp", "VBG", "it", verb.i + 1) and not seen:
        doer.head, doer.dep_, token.dep_ = verb, "dobj", "advcl"


def _repair_beside_things(token: Token, words: Words) -> None:
    """Put into its row, or beside whom it tells of, what was taken for another word for a thing: "bread, then a hen",
    "a courier with a pizza, a woman in a coat and a lawyer", "She stood above my tent, a thin wolf"."""
    head, doc = token.head, token.doc
    then = token.left_edge.lower_ == "then" or (token.left_edge.i and doc[token.left_edge.i - 1].lower_ == "then")
    if token.dep_ in ("appos", "npadvmod") and head.pos_ == "NOUN" and then:
        token.dep_ = "conj"
        return
    alive, root = ("person", "animal", "being"), doc[:].root
    stray = token.dep_ == "acl" and token.tag_ == "VBD" and token.nbor(-1).text == ","
    if stray and root.pos_ in ("NOUN", "PROPN") and root.i < token.i:
        root.head, root.dep_, token.head, token.dep_ = (
            token,
            "nsubj",
            token,
            "ROOT",
        )  # "The thief, chased by dogs, fell"
        return
    if token.dep_ == "acl" and token.tag_ == "VBN" and head.dep_ == "pobj" and token.nbor(-1).text == ",":
        verb = next((up for up in head.ancestors if up.pos_ in ("VERB", "AUX")), head)
        doer = child_of(verb, "nsubj")
        if (
            doer is not None
            and doer.i < verb.i
            and head.pos_ == "NOUN"
            and child_of(token, "agent", "prep") is not None
        ):
            token.head, token.dep_ = verb, "advcl"  # "The coat lay on the stones, folded by the waves"
        return
    strange = token.dep_ == "appos" and words.sort(lemma_of(token)) in alive and words.sort(lemma_of(head)) not in alive
    if not strange or head.dep_ != "pobj" or not any(c.lower_ in ("a", "an", "the") for c in token.lefts):
        return
    if head.pos_ != "NOUN" or doc[token.left_edge.i - 1].text != ",":
        return
    above = head.head.head
    if root.tag_ in ("VBD", "VBZ") and root.i > token.i and child_of(root, *_SUBJECTS) is None:
        token.head, token.dep_ = root, "nsubj"  # "Long ago in the bamboo hills, a widow kept the fire"
        return
    if child_of(token, "conj") is not None and above.pos_ == "NOUN":
        token.head, token.dep_ = above, "conj"
    elif (doer := child_of(above, "nsubj")) is not None and doer.i < above.i and doer.pos_ in ("PRON", "PROPN", "NOUN"):
        token.head, token.dep_ = doer, "appos"


def _repair_told(told: Token, verb: Token, words: Words) -> None:
    """Give a thing what is told of it right behind it: "washed the box Grandpa had hidden"."""
    doer, thing, that = child_of(told, "nsubj"), child_of(verb, "dobj"), child_of(told, "dobj")
    heard = any(words.has(name, lemma_of(verb)) for name in ("report", "told_to", "fact", "make", "think"))
    sort = words.sort(lemma_of(thing)) if thing is not None else "person"
    dead = not heard and sort not in ("person", "animal", "being", "abstract")
    mark = child_of(told, "mark") if dead and that is None and told.dep_ == "ccomp" else None
    if mark is not None and mark.lower_ == "that" and thing is not None and mark.i == thing.i + 1:
        that, mark.dep_ = mark, "dobj"
    if that is not None and that.lower_ == "that" and thing is not None and that.i == thing.i + 1:
        told.head, told.dep_ = thing, "relcl"  # "dropped the coat that he had found"
    if told.dep_ != "ccomp" or doer is None or thing is None or doer.left_edge.i != thing.i + 1:
        return
    if not heard and child_of(told, "dobj", "mark") is None and "VB" != told.tag_ != "VBG":
        told.head, told.dep_ = thing, "relcl"


def _repair_plural(token: Token) -> None:
    """Make a noun again of a plural that was taken for a verb of the present in a told past."""
    head, things = token.head, [one for one in token.children if one.dep_ in ("dobj", "acomp", "attr", "prt")]
    if things:
        return
    verb = next((one for one in (head, *head.ancestors) if one.pos_ == "VERB"), head)
    if head.pos_ == "NOUN" and verb.tag_ == "VBD" and head.dep_ in ("dobj", "pobj", "conj"):
        token.pos_, token.tag_, token.lemma_ = "NOUN", "NNS", token.lower_[:-1]
        token.head, token.dep_ = head, "conj"


def _repair_paired(token: Token) -> None:
    """Take out of the clause what only says how several do it: "One by one they left", "sat side by side"."""
    if token.i + 2 >= len(token.doc) or token.nbor(1).lower_ not in ("by", "in", "to"):
        return
    like, again = token.nbor(1), token.nbor(2)
    if again.lower_ == token.lower_ and token.pos_ in ("NOUN", "NUM", "PRON", "ADV") and token.dep_ != "pobj":
        token.dep_, like.dep_, like.pos_ = "dep", "dep", "ADP"
        for child in [one for one in (*token.children, *again.children) if one.i > again.i]:
            child.head = token.head


def _repair_inverted(token: Token, words: Words) -> None:
    """Make a doer of what stands behind the verb: "Behind it walked a woman", "and on it sat the groom", "In it were a
    banker and a bride"."""
    verb, prep = token.head, token.nbor(-1) if token.i else token
    if token.dep_ != "nsubj" or token.lower_ not in _BEHIND_IT or verb.i != token.i + 1 or prep.head != verb:
        return
    opens = prep.i == 0 or prep.nbor(-1).is_punct or prep.nbor(-1).tag_ == "CC"
    lemma = words.lemmas.get(lemma_of(verb), lemma_of(verb))
    still = verb.lower_ == "lay" or any(words.has(name, lemma) for name in ("intransitive", "motion"))
    known = words.has("prep_place", prep.lower_) or prep.lower_ in ("after", "from")
    known &= not (lemma == "be" and prep.lower_ in ("inside", "outside"))  # "Outside it was all one noise"
    if not (opens and known and (still or lemma == "be")):
        return
    nouns = [one for one in verb.rights if one.dep_ in ("dobj", "attr", "nsubj", "oprd", "npadvmod")]
    nouns = [one for one in nouns if one.pos_ in ("NOUN", "PROPN", "NUM") and not is_time(one, words)]
    if not nouns or nouns[0].left_edge.i != verb.i + 1:
        return
    for late in nouns[1:]:
        late.head, late.dep_ = nouns[0], "conj"
    nouns[0].dep_, token.head, token.dep_ = "nsubj", prep, "pobj"
    prep.pos_, prep.tag_, prep.dep_ = "ADP", "IN", "prep"
    verb.lemma_ = "lie" if verb.lower_ == "lay" else verb.lemma_


def _repair_series(token: Token, words: Words) -> None:
    """Make one deed of several what was taken for a state or a noun, and a noun or a state of what was taken for a
    deed: "took off the panel, put on his glasses and shone a lamp", "a smell of paint, and rain"."""
    head = token.head
    if token.tag_ == "VBZ" and token.dep_ == "dobj":
        token.pos_, token.tag_, token.lemma_ = "NOUN", "NNS", token.lower_[:-1]  # "hung sheets"
    bare = not any(child.dep_ in (*_SUBJECTS, "aux", "auxpass", "agent") for child in token.children)
    if not bare or not token.i or _tells_how(token) or _tells_feeling(token, words):
        return
    alike = token.tag_ == "VBD" or (token.dep_ == "dep" and token.tag_ == "VB" and token.lower_ == lemma_of(token))
    stray = token.dep_ in ("dep", "ccomp") and alike and head.tag_ == "VBD" and head.i < token.i
    if stray and "," in token.doc[head.i : token.i].text:
        token.dep_, token.tag_ = "conj", "VBD"  # "ate it, then took a picture out"
    _join_deed(token)


def _tells_how(token: Token) -> bool:
    """Make a clause of what somebody has or does with a part: "with her nose touching it", "with their boots braced";
    tell whether it is one."""
    beside = token.nbor(-1) if token.nbor(-1).dep_ != "advmod" or token.i == 1 else token.nbor(-2)
    held = token.tag_ in ("VBG", "VBN") and token.dep_ in ("advcl", "acl") and beside.dep_ == "pobj"
    held = held and token.nbor(-1) == beside and beside.head.lower_ == "with"
    if not held or child_of(beside, "poss") is None:
        return False
    token.dep_, token.head = "advcl", beside.head.head
    beside.head.head, beside.head.dep_, beside.head, beside.dep_ = token, "mark", token, "nsubj"
    return True


def _tells_feeling(token: Token, words: Words) -> bool:
    """Make a state of a feeling that was taken for a deed: "came back, ashamed, carrying a bar"; tell whether it is
    one."""
    head = token.head
    felt = token.pos_ == "VERB" and token.dep_ in ("advcl", "conj") and token.lower_ in words.feelings
    if not (felt and head.i < token.i and token.nbor(-1).text == "," and token.nbor(1).is_punct):
        return False
    token.pos_, token.tag_, token.dep_ = "ADJ", "JJ", "acomp"
    for child in [one for one in token.children if one.dep_ == "advcl"]:
        child.head = head
    return True


def _join_deed(token: Token) -> None:
    """Hang one deed of several from the first, and not from what stands between: "turned left because the road ended,
    and found a gate"."""
    doc, head = token.doc, token.head
    if token.tag_ == "VBN" and token.dep_ in ("advcl", "acl", "conj") and token.nbor(-1).text in (",", "and"):
        first = head if head.pos_ == "VERB" else next((up for up in token.ancestors if up.pos_ == "VERB"), head)
        told = first.tag_ == "VBD" and first.i < token.i and child_of(first, "auxpass") is None
        if told and (token.nbor(-1).text == "and" or _goes_on(doc, token.i)):
            token.tag_, token.dep_, token.head = "VBD", "conj", first
    elif token.dep_ == "conj" and token.tag_ == "VB" and head.pos_ == "NOUN" and token.nbor(-1).tag_ == "CC":
        verb = next((up for up in head.ancestors if up.pos_ == "VERB"), head)
        if verb.tag_ == "VBP" and verb.i < head.i:
            token.head, token.tag_ = verb, "VBP"  # "We hold on to the edge and kick"
    elif token.dep_ == "conj" and token.tag_ == "VBD" and head.tag_ in ("VBG", "VB") and child_of(head, "aux") is None:
        verb = next((up for up in head.ancestors if up.tag_ == "VBD"), head)
        token.head = verb if verb.i < head.i else head  # "got the engine running and wiped his hands"
    elif token.dep_ == "conj" and token.tag_ == "VBD" and (last := _last_doer(token)) is not None:
        token.head = last
    elif token.dep_ == "conj" and token.tag_ == "VBD" and head.dep_ in ("advcl", "relcl", "ccomp"):
        before = next((one for one in doc[head.i : token.i] if one.tag_ == "CC" and one.head == head), None)
        above = next((up for up in head.ancestors if up.pos_ == "VERB"), head)
        # "told him that it was three and straightened his blanket": who told did
        time = lemma_of(head) == "be" and (doer := child_of(head, "nsubj")) is not None and doer.lower_ == "it"
        apart = head.dep_ != "ccomp" and before is not None and before.nbor(-1).text == ","
        if above.i < head.i and (apart or time):
            token.head = above


def _repair_looks(token: Token, words: Words) -> None:
    """Make a deed of a series of what was taken for a look of the next one's doer: "She laughed, mixed flour and water,
    wrapped the dough and left"; and one doer of two: "and the plant and I fall"."""
    thing = token.head
    verb = thing.head
    if token.tag_ in ("JJ", "VBN", "VBD") and token.dep_ == "amod" and thing.dep_ == "nsubj" and verb.tag_ == "VBD":
        first = verb.head
        past = token.lower_.endswith("ed") or words.has("past_forms", token.lower_)
        bare = thing.left_edge == token and token.i and token.nbor(-1).text == "," and thing.nbor(-1) == token
        series = verb.dep_ == "conj" and first.tag_ == "VBD" and first.i < token.i and verb.nbor(-1).text == ","
        if past and bare and series and child_of(first, "nsubj") is not None:
            token.pos_, token.tag_, token.dep_, token.head = "VERB", "VBD", "conj", first
            token.lemma_ = words.lemmas.get(token.lower_, _stem(token.lower_))
            thing.head, thing.dep_ = token, "dobj"
    doer = child_of(token, "nsubj")
    if token.dep_ == "conj" and token.pos_ == "VERB" and doer is not None and doer.tag_ == "PRP" and doer.i > 1:
        other = next((one for one in thing.children if one.i < doer.i and one.right_edge.i == doer.i - 2), None)
        joined = doer.nbor(-1).lower_ == "and" and other is not None and other.pos_ in ("NOUN", "PROPN")
        if (
            joined
            and other is not None
            and other.dep_ == "conj"
            and other.left_edge.i
            and other.left_edge.nbor(-1).tag_ == "CC"
        ):
            doer.nbor(-1).head = other
            other.head, other.dep_, doer.head, doer.dep_ = token, "nsubj", other, "conj"


def _stem(past: str) -> str:
    """The verb of a regular past form that the parser took for an adjective: "mixed", "grated", "chopped"."""
    bare = past.removesuffix("d").removesuffix("e")
    double = len(bare) > 3 and bare[-1] == bare[-2] and bare[-1] not in "lsz"
    return past[:-1] if bare.endswith(("at", "ic", "as", "uc", "iv", "av", "ut")) else bare[:-1] if double else bare


def _last_doer(token: Token) -> Token | None:
    """The joined verb with a doer of its own that stands between a verb and what it hangs from: "Ed kept the keys and
    Obi unscrewed the wheel and took it away"."""
    between = [one for one in token.head.children if one.dep_ == "conj" and one.i < token.i and one.tag_ == "VBD"]
    return next((one for one in reversed(between) if child_of(one, "nsubj") is not None), None)


def _repair_counted(token: Token, words: Words) -> None:
    """Make a deed of "the first to V"."""
    if token.tag_ == "VB" and has_to(token) and token.head.dep_ == "attr" and lemma_of(token.head.head) == "be":
        first = token.head.lower_ in ("first", "last", "only")
        if first and token.dep_ in ("relcl", "acl", "xcomp", "advcl"):
            be = token.head.head
            token.head, token.dep_ = be, "xcomp"


def _goes_on(doc: Doc, at: int) -> bool:
    """Whether a deed follows after "and" without a comma, as the last of a series."""
    for one in doc[at + 1 :]:
        if one.text == ";":
            return False
        if one.tag_ == "CC" and one.lower_ in ("and", "but"):
            after = [next_one.tag_ for next_one in doc[one.i + 1 : one.i + 4]]
            if after[:1] == ["VBD"] or after[:2] == ["RB", "VBD"]:
                return True
            if one.nbor(-1).text != "," and {"VBD", "VBN"} & set(after) and not {"DT", "PRP$", "PRP"} & set(after[:1]):
                return True
    return False


def _repair_had(token: Token, words: Words) -> None:
    """Leave with a thing what tells how somebody has it: "stood with her arms out", "ran with his eyes shut"."""
    had = token.nbor(-1) if token.i else token
    if had.dep_ != "pobj" or had.head.lower_ != "with" or token.head != had.head.head or token.head.i > had.i:
        return
    so = token.dep_ in ("prt", "advmod", "prep") and words.has("away", token.lower_) and not list(token.children)
    if so or (words.has("results", token.lower_) and child_of(token, *_SUBJECTS, "aux") is None):
        token.head, token.dep_ = had, "advmod"


def _repair_results(token: Token, words: Words) -> None:
    """Make what something ends up as a particle of its verb: "the door creaked open", "she pushed the window open"."""
    if token.i == 0 or not words.has("results", token.lower_) or words.has("make", lemma_of(token.head)):
        return
    before, thing = token.nbor(-1), child_of(token, "nsubj")
    if any(one.lower_ == "with" and one.dep_ == "mark" for one in token.children):
        for child in [one for one in token.children if one.dep_ in ("prep", "conj", "cc")]:
            child.head = token.head  # "ran with her eyes shut, through the gate"
        return
    verb = before if before.pos_ == "VERB" else token.head
    bound = verb is before or (thing is not None and verb.i < thing.i) or token.dep_ in ("acomp", "oprd", "advmod")
    bound |= token.dep_ == "advcl" and before.dep_ == "dobj" and not list(token.children)  # "pulled the door shut"
    if verb.pos_ != "VERB" or verb.i > token.i or not bound or words.has("linking", lemma_of(verb)):
        return
    if verb in token.subtree or token.dep_ in ("amod", "compound") or verb.i < token.i - 6:
        return
    if thing is not None and thing.i > verb.i:
        thing.head, thing.dep_ = verb, "dobj"
    for child in list(token.children):
        if child.dep_ in ("prep", "punct", "advcl", "conj", "cc", "dobj"):
            child.head = verb  # "throws open the door"
    token.head, token.dep_ = verb, "prt"


def _repair_subjects(token: Token, words: Words) -> None:
    """Give subjects to the verbs that they were taken from: "and it was raining", "Emil and I hid", "her husband Jon
    slept", "held the string and Bo ran", "On the way it broke down"."""
    if token.dep_ in _SUBJECTS and token.head.dep_ in ("aux", "auxpass"):
        token.head = token.head.head
    subjects = [child for child in token.children if child.dep_ == "nsubj"]
    _join_name(token, subjects, words)
    if not subjects or _parts_but(token, subjects):
        return
    first = subjects[0]
    if len(subjects) == 1 and token.tag_ == "VBD" and child_of(first, "cc") and not child_of(first, "conj"):
        acls = [one for one in first.subtree if (one.tag_, one.dep_) == ("VBN", "acl") and one.i > first.i]
        if acls and not child_of(acls[-1], "agent"):  # "A girl with a red cap paddled over and waved"
            acls[-1].head, acls[-1].dep_, acls[-1].tag_ = token, "advcl", "VBD"
    thing = child_of(token, "dobj") if lemma_of(token) == "go" else None
    if thing is not None and words.has("sounds", first.lower_):
        thing.dep_, first.dep_ = "nsubj", "advmod"  # "Crash went the ball"
    if len(subjects) > 1:
        _part_subjects(token, first, subjects[1], words)
    if token.dep_ == "ccomp" and token.head.i < first.i and token.tag_ in ("VBD", "VBZ", "VBP"):
        _part_told(token, first, words)


def _parts_but(verb: Token, subjects: Sequence[Token]) -> bool:
    """Part two clauses whose doers were taken for one with "but" in it: "The hunter aimed at the stag, but his hands
    shook"; tell whether there were two."""
    first = subjects[0]
    but = next((c for c in first.children if c.lower_ == "but"), None)
    other = (child_of(first, "conj") or next(iter(subjects[1:]), None)) if but is not None else None
    done = next((c for c in first.children if (c.tag_, c.dep_) == ("VBN", "acl")), None)
    if done is None or other is None:
        return False
    done.tag_, done.dep_, done.head = "VBD", "ccomp", verb
    first.head, other.head, other.dep_ = done, verb, "nsubj"
    return True


def _part_subjects(verb: Token, first: Token, second: Token, words: Words) -> None:
    """Say what each of two doers of one verb is: a time, a measure, a name with what it is called, or one of a pair."""
    if first.lower_ in ("last", "first", "next") and second.i > verb.i:
        first.dep_ = "advmod"  # "Last of all came a large man"
        for one in [one for one in first.children if one.lower_ == "of"]:
            one.dep_ = "dep"
    elif first.i + 2 == second.i and second.tag_ == "PRP" and is_time(first.nbor(1), words):
        first.dep_ = "dep"  # "One windy Tuesday he arrives"
    if child_of(first, "poss") is not None and first.doc[second.left_edge.i - 1].text == "," and first.i < second.i:
        first.dep_ = "dep"  # "Her arms full of books, Lucy pushed the door"
    elif first.tag_ == "NNP" and second.left_edge.i == first.i + 1 and child_of(second, "det") is not None:
        _name_it(first, second)  # "Mr Haddad the tailor cut"
    elif child_of(first, "nummod") is not None and second.i < verb.i and child_of(second, "det") is not None:
        first.dep_ = "dep"  # "Two streets from the office a dog ran out"
    between = first.doc[first.i + 1 : second.i].text
    if between == "and" and second.tag_ == "PRP" and child_of(first, "conj") is None:
        second.head, second.dep_ = first, "conj"  # "Mr Pym and I stopped"
    if second.tag_ == "NNP" and (not between or (between == "," and first.tag_ == "NNS")):
        second.head, second.dep_ = first, "appos"


def _part_told(verb: Token, doer: Token, words: Words) -> None:
    """Part what is done to the first of two from what the other does: "held the string and Bo ran"."""
    above, other = verb.head, child_of(doer, "conj")
    known = any(words.has(name, lemma_of(above)) for name in ("fact", "report", "say", "think", "wish", "make"))
    known = known or words.has("have", lemma_of(verb)) or child_of(above, "dobj") is not None
    if other is not None and not known:
        doer.head, doer.dep_ = above, "dobj"
        other.head, other.dep_, verb.dep_ = verb, "nsubj", "conj"


def _take_subject(verb: Token) -> None:
    """Give a joined verb the noun before it, which was taken for one more thing: "kept the keys and Obi left"."""
    if verb.dep_ not in ("conj", "oprd") or verb.tag_ != "VBD" or not verb.i or child_of(verb, *_SUBJECTS) is not None:
        return
    before = verb.nbor(-1)
    thing = before.head
    joined = before.dep_ == "conj" and thing.dep_ in ("dobj", "pobj") and thing.i > verb.head.i
    if joined and before.tag_ in ("NNP", "PRP") and any(child.tag_ == "CC" for child in thing.children):
        before.head, before.dep_, verb.dep_ = verb, "nsubj", "conj"


def _join_name(verb: Token, subjects: Sequence[Token], words: Words) -> None:
    """Give a name to the kin before it: "His grandson Tim sat down"."""
    for child in verb.children:
        stray = child.tag_ == "NNP" and child.dep_ in ("npadvmod", "dep", "advmod", "oprd")
        for subject in subjects if stray else ():
            if child.i == subject.i + 1 and words.has("kin", lemma_of(subject)) and child.i < verb.i:
                child.head, child.dep_ = subject, "appos"
                return
            the = subject.doc[subject.left_edge.i]
            lives = words.sort(lemma_of(subject).lower()) in ("person", "animal", "being")
            if child.i + 1 == the.i and the.lower_ == "the" and lives and not is_time(child, words):
                child.head, child.dep_ = verb, "nsubj"
                _name_it(child, subject)
                return


def _name_it(name: Token, noun: Token) -> None:
    """Let a noun say what somebody is, and what is joined to it be joined to the name: "Fergus the frog and Flora"."""
    for child in noun.children:
        if child.dep_ in ("cc", "conj"):
            child.head = name
    noun.head, noun.dep_ = name, "appos"


def _split_objects(thing: Token) -> None:
    """Part two objects that were taken for one noun phrase: "served the guests hot soup"."""
    first = child_of(thing, "compound")
    between = [child for child in thing.children if child.dep_ == "amod" and first is not None and child.i > first.i]
    if first is not None and first.tag_ == "NNS" and between:
        for child in list(thing.children):
            if child.i < first.i:
                child.head = first
        first.head, first.dep_ = thing.head, "dative"


def _repair_rows(token: Token, words: Words) -> None:
    """Put things into their row again: "soaked the cat, the curtains and her apron", "found nothing but pots"."""
    verb = token.head
    but = next((one for one in token.children if one.lower_ == "but" and one.dep_ == "prep"), None)
    if token.lower_ == "nothing" and but is not None and (what := child_of(but, "pobj")) is not None:
        what.head, what.dep_, token.dep_ = token.head, token.dep_, "dep"  # "found nothing but pots"
        but.head, but.dep_ = token, "dep"
        return
    row = child_of(verb, "dobj") if token.dep_ == "conj" and token.pos_ == "NOUN" and verb.pos_ == "VERB" else None
    on = child_of(verb, "prep") if token.dep_ == "conj" and token.pos_ == "NOUN" and verb.pos_ == "VERB" else None
    if on is not None and words.has("prepositional", f"{lemma_of(verb)}_{on.lower_}"):
        row = row or child_of(on, "pobj")  # "put on her helmet and her boots"
    if row is not None and row.i < token.i and row.lower_ != "nothing" and child_of(token, *_SUBJECTS, "acl") is None:
        token.head = row  # "soaked the cat, the curtains and her apron"
        return
    late = child_of(verb, "conj") if token.lower_ == "nothing" and token.dep_ == "dobj" else None
    if late is not None and late.pos_ == "NOUN" and any(one.lower_ == "but" for one in verb.rights if one.i < late.i):
        token.dep_, late.dep_ = "dep", "dobj"


def _repair_objects(token: Token, words: Words) -> None:
    """Put right what belongs to an object: "put on his coat", "painted the fence green", "threw his sister the towel",
    "saw a fox cross the line"."""
    below, beside = child_of(token, "pobj"), child_of(token, "compound")
    verb = token.head
    first = child_of(verb, "dobj")
    alone = first is not None and first.lower_.endswith(("self", "selves")) and token != first
    if first is not None and alone:
        late = token.dep_ == "dative" and token.nbor(-1) != verb and token.i < first.i
        alone = token.tag_ == "WDT" or late
    if token.dep_ == "dative" and (alone or (token.pos_ == "PRON" and first is None)):
        token.dep_ = "dobj"  # "gave it all to him"
    if first is not None and alone:
        first.dep_ = "dep"  # "a tree that she had painted herself", "had built the boat himself"
    if token.dep_ == "appos" and token.lower_.endswith("self"):
        token.dep_ = "dep"  # "had built the boat himself"
    whom, gives = token.head, words.has("give", lemma_of(token.head.head))
    thing = token.text.islower() and words.sort(lemma_of(token)) not in ("person", "animal", "being")
    apart = whom.dep_ in ("dobj", "dative") and "," not in token.doc[whom.i : token.i].text
    if token.dep_ == "appos" and gives and thing and apart:
        token.head, token.dep_, whom.dep_ = whom.head, "dobj", "dative"  # "showed her mother the cup"
        verb = token.head
    _repair_beside(token, words)
    other_thing = child_of(verb, "dobj")
    if token.dep_ == "dobj" and (token.lower_ == "each" or token.lower_ in _MEASURES) and token != other_thing:
        token.dep_ = "dep"  # "left the coast, each with a sack", "cut a tomato the size of a marble"
    owned = any(child.lower_ in ("first", "last", "own", "new", "old", "best") for child in token.children)
    if (
        token.dep_ == "dobj"
        and words.has("hand_over", lemma_of(verb))
        and child_of(verb, "dative") is None
        and not owned
    ):
        whose, doer = child_of(token, "poss"), child_of(verb, "nsubj")
        told = whose is not None and whose.lower_ == "her" and words.sort(lemma_of(token)) not in ("body", "person")
        other = doer is not None and doer.lower_ != "she" and not any(c.lower_ == "to" for c in verb.children)
        if whose is not None and told and other:
            whose.head, whose.dep_, whose.tag_ = verb, "dative", "PRP"  # "gave her water"
    if token.dep_ == "prt" and below is not None:
        if child_of(verb, "dobj") is None:
            below.head, below.dep_ = verb, "dobj"
        else:
            token.dep_ = "prep"
    elif token.dep_ == "dobj" and words.has("colours", token.lower_) and beside is not None:
        for child in [child for child in token.lefts if child.i < beside.i]:
            child.head = beside
        beside.head, beside.dep_ = verb, "dobj"
        token.dep_, token.pos_ = "oprd", "ADJ"
    elif token.dep_ == "npadvmod" and words.has("give", lemma_of(verb)) and not is_time(token, words):
        first = child_of(verb, "dobj")
        if (
            first is not None
            and verb.i < token.i > first.i
            and words.sort(lemma_of(first)) in ("person", "animal", "being")
        ):
            first.dep_, token.dep_ = "dative", "dobj"
    elif token.dep_ == "ccomp" and token.tag_ == "VB" and beside is not None and beside.pos_ == "NOUN":
        beside.dep_ = "nsubj"


def _repair_beside(token: Token, words: Words) -> None:
    """Make an object of a noun that stands right behind its verb ("climbed the mast"), and a result of an adjective
    behind the object ("licked the plate clean", "painted the boat blue")."""
    last = token.i + 1 < len(token.doc) and token.nbor(1).is_punct and token.i == token.head.i + 1
    if last and (token.dep_, token.head.dep_, token.head.pos_) == ("amod", "dobj", "NOUN"):
        token.dep_, token.head = "oprd", token.head.head  # "squashed the box flat"
    verb, thing = token.head, child_of(token.head, "dobj")
    if verb.pos_ != "VERB" or token.i <= verb.i:
        return
    if token.dep_ == "npadvmod" and token.pos_ == "NOUN" and not is_time(token, words) and thing is None:
        near = token.left_edge.i == verb.i + 1
        near = near and any(child.dep_ in ("det", "poss", "nummod") for child in token.children)
        light = lemma_of(token) in words.sets.get(f"light.{lemma_of(verb)}", ())  # "took five steps back"
        seen = light or words.sort(lemma_of(token)) not in ("abstract", "")
        token.dep_ = "dobj" if near and seen else token.dep_
    elif token.pos_ == "ADJ" and token.dep_ in ("dobj", "advcl") and thing is not None and token.i == thing.i + 1:
        token.dep_ = "oprd" if child_of(token, *_SUBJECTS, "mark", "aux") is None else token.dep_


def _find_subject(verb: Token, words: Words) -> None:
    joined = verb.dep_ == "conj"
    stray = [child for child in verb.lefts if child.dep_ in ("npadvmod", "dep", "nmod", "compound", "amod")]
    stray = [] if joined else stray
    for child in stray:
        if child.pos_ == "ADJ" and words.sort(child.lower_) in ("person", "animal", "being"):
            child.pos_, child.tag_, child.lemma_ = "NOUN", "NN", child.lower_
    nouns = [child for child in stray if child.pos_ in ("NOUN", "PROPN", "PRON") and not is_time(child, words)]
    if nouns and verb.pos_ == "VERB":
        nouns[-1].dep_ = "nsubj"
        for child in verb.children:
            if child.dep_ in ("det", "amod") and child.i < nouns[-1].i:
                child.head = nouns[-1]
        return
    before = any(child.dep_ in ("ccomp", "punct", "intj", "dobj") and child.i < verb.i for child in verb.children)
    thing = child_of(verb, "dobj", "oprd", "attr", "npadvmod")
    quoted = verb.i > 0 and verb.nbor(-1).text in ('"', ",", "!", "?")
    if thing is None or thing.i < verb.i:
        return
    first = min((child.i for child in verb.subtree if child.dep_ != "punct"), default=verb.i)
    ahead = any(child.dep_ in ("prep", "advmod", "prt", "expl") and child.i < verb.i for child in verb.children)
    still = lemma_of(verb) in ("live", "be", "lay") or words.has("intransitive", lemma_of(verb))
    moves = still or (words.has("motion", lemma_of(verb)) and not (joined and words.has("carrying", lemma_of(verb))))
    if joined:  # "and in it lay a banana", "and there stood a dog"
        ahead = any(child.dep_ in ("prep", "expl") and child.i < verb.i for child in verb.children)
    speaker = thing.pos_ in ("PROPN", "PRON") or words.sort(lemma_of(thing)) in ("person", "animal", "being")
    speaks = words.has("say", lemma_of(verb)) and (verb.nbor(-1).text != "," if verb.i and not speaker else True)
    if (speaks and (before or quoted)) or (ahead and moves and first < verb.i):
        thing.dep_ = "nsubj"
        verb.lemma_ = "lie" if verb.lower_ == "lay" else verb.lemma_
