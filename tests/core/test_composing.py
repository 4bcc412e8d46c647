"""Fields to prompt: grammar for any cast, budgets to the token, and what is left out by rank."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from katha.agents.requests import panel_request
from katha.composing import Composed, PromptFamily, compose, left_out, load_family, parts_of, within
from katha.composing.families import composing_data
from katha.composing.parts import look_head
from katha.composing.words import (
    alone,
    as_sentence,
    clean,
    label,
    looks_at,
    named_in,
    of_one,
    phrases,
    sentences_of,
    standing,
    taken_off,
    told_of,
    without,
)
from katha.protocols import FrameRequest, tokens_of
from katha.schema import Character, Gaze, Panel, Plan, Prop, Seen, Visual

FAMILIES = tuple(composing_data().families)
BUDGETS = (None, 24, 77, 256)
Count = Callable[[str], int]


def person(name: str, kind: str, look: str) -> Character:
    return Character(name=name, kind=kind, appearance=look)


CASTS = {
    "labels": [
        person("the woman with the ladder", "woman", "a tall, thin woman in blue overalls, grey bun, steel glasses"),
        person("the smaller boy", "boy", "thin, eight years old, freckled, in a yellow raincoat"),
    ],
    "beasts": [
        person("the oldest she-camel", "she-camel", "The only white camel; red collar with tassels, torn ear"),
        person("camels", "camels", "brown coats, red halters, two millet sacks each"),
        person("Ghali", "old man", "an old man with indigo-blue turban and robe, white beard"),
    ],
    "possessives": [
        person("Tobi's cloth duck", "toy", "yellow cloth, one button eye"),
        person("her little brother", "boy", "He is four. He has short tousled hair. He wears striped pyjamas."),
        person("my grandmother", "old woman", "My grandmother has white curls and a green shawl."),
    ],
    "foreign": [
        person("Jürgen der Größte", "Riese", "a giant with a red beard, patched boots"),
        person("小明", "boy", "a boy of nine, short black hair, blue jacket"),
        person("Étienne d'Aubigné", "baker", "round baker, flour on his nose, white apron"),
    ],
    "plurals": [
        person("the three merchants", "merchants", "green turbans, cream robes, curled moustaches (black)"),
        person("2 geese", "geese", "white geese, orange beaks"),
        person("The Great Bellini", "magician", "the tall magician with slicked black hair and a cape, red bow tie"),
    ],
}
ACTS = (
    "{0} climbs onto the wagon and holds out a hand. {1} stays below.",
    "At night {0} waits by the well; {1} is asleep",
    'a door opens. {0} says "run" and everybody runs...',
    "{0} and {1} look into the box ,, astonished..",
)


def plan_of(cast: list[Character], act: str) -> Plan:
    first, last = cast[0].name, cast[-1].name
    panel = Panel(
        index=1,
        prompt=act.format(within(first), within(last)),
        characters=[one.name for one in cast],
        must_show=["an open door.", "Lamp with a pull cord, lit", within(first), "two wet footprints"],
        place="in the old mill",
        time_of_day="evening",
        light="red dusk, a lamp inside; as in panel 3",
        shot_size="medium",
        shot_angle="low angle",
        camera="as frame 1, closer",
        state=[
            Seen(name=first, state="She holds a lantern, sleeves torn", mood="frightened"),
            Seen(name=last, state="is wet", mood="neutral"),
            Seen(name="the lamp", state="lit"),
            Seen(name="wagon", state="one wheel off"),
        ],
        gaze=[Gaze(who=first, at="the window", not_at="the box"), Gaze(who=last, at=first), Gaze(who="owl", at="up")],
        contacts=["the lantern hangs from the left hand", "both hands on the rail."],
    )
    props = [Prop(name="lamp (the night-light)", looks="brass, green shade"), Prop(name="violin", looks="dark wood")]
    return Plan(
        story_id="s",
        planner="gemma-st",
        style="Soft watercolour, ink outlines.",
        characters=cast,
        panels=[panel],
        visual=Visual(props=props),
    )


def request_of(cast: str, act: str) -> FrameRequest:
    plan = plan_of(CASTS[cast], act)
    return panel_request(plan, plan.panels[0], 1, (64, 64))


@cache
def bytes_count() -> Count:
    """A byte-pair tokenizer of toy size, as those of CLIP and Qwen are built."""
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers import decoders, models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    known = trainers.BpeTrainer(vocab_size=600, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    made.train_from_iterator([request_of(name, act).prompt for name in CASTS for act in ACTS], known)
    return lambda text: len(made.encode(text).ids)


@cache
def pieces_count() -> Count:
    """A unigram tokenizer of toy size, as T5's is built; one token more for the end."""
    tokenizers = pytest.importorskip("tokenizers")
    from tokenizers import models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    known = trainers.UnigramTrainer(vocab_size=300, unk_token="<unk>", special_tokens=["<unk>"])
    made.train_from_iterator([request_of(name, act).prompt for name in CASTS for act in ACTS], known)
    return lambda text: len(made.encode(text).ids) + 1


COUNTS: dict[str, Callable[[], Count]] = {
    "estimate": lambda: tokens_of,
    "byte pairs": bytes_count,
    "pieces": pieces_count,
}
FAULTS = (
    r"\.\.",
    r",\s*,",
    r"[,;:]\s*[.;]",
    r"\b(?:a|an|the) (?:a|an|the)\b",
    r"\(\s*\)",
    r"\s[,.;:]",
    r",[^.:]*\S, 's\b",
    r": *(?:[.;,]|$)",
    r"\bframe \d|\bpanel \d",
    r"[A-Za-z]\s's\b",
)


def check_grammar(made: Composed, family: PromptFamily, request: FrameRequest) -> None:
    text = made.text
    assert text.strip(), "there is no empty prompt"
    for fault in FAULTS:
        assert not re.search(fault, text, re.IGNORECASE), f"{fault!r} in {text!r}"
    assert text[0].isupper() or not text[0].isalpha() or text[0].lower() == text[0].upper(), text
    assert text.rstrip("\"'\u201d)")[-1] in ".!?\u2026", text
    for before, after in re.findall(r"([.!?\u2026]) (\S)", text):
        assert not after.islower(), f"{before} {after} in {text!r}"
    for one in request.characters:
        head = within(one.name) if family.joins == "phrases" else label(one.name)
        lines = len(re.findall(rf"(?:^|[.;!?\u2026] |\" ){re.escape(head)}: ", text, re.IGNORECASE))
        wanted = any(part.group == "cast" and part.line == label(one.name) for part in made.kept)
        assert lines == wanted, f"{head!r}: {lines} lines in {text!r}"


@pytest.mark.parametrize("counted", COUNTS)
@pytest.mark.parametrize("family", FAMILIES)
def test_prompts_are_grammatical_and_within_their_budget(family: str, counted: str) -> None:
    count = COUNTS[counted]()
    for name, act, budget in product(CASTS, ACTS, BUDGETS):
        own = replace(load_family(family), budget=budget, pieces=1)
        asked = request_of(name, act)
        made = compose(asked, own, count)
        check_grammar(made, own, asked)
        if budget is not None:
            assert count(made.text) <= budget, made.text
        else:
            assert not made.dropped
            lines = {part.line for part in made.kept if part.group == "cast"}
            assert lines == {label(one.name) for one in asked.characters}


def test_a_prompt_of_each_join() -> None:
    asked = request_of("labels", ACTS[0])
    whole = compose(asked, load_family("services"), tokens_of).text
    assert whole == (
        "The woman with the ladder climbs onto the wagon and holds out a hand. The smaller boy stays below. "
        "The woman with the ladder: a tall, thin woman in blue overalls, grey bun, steel glasses, holding a lantern, "
        "sleeves torn, frightened, looking at the window, not at the box. "
        "The smaller boy: thin, eight years old, freckled, in a yellow raincoat, wet, "
        "looking at the woman with the ladder. "
        "The lamp: brass, green shade. The wagon: one wheel off. The owl: looking up. "
        "Contact: the lantern hangs from the left hand; both hands on the rail. "
        "Visible: an open door; Lamp with a pull cord, lit; two wet footprints. "
        "Setting: the old mill, evening, red dusk, a lamp inside. Medium shot, low angle. "
        "Style: Soft watercolour, ink outlines."
    )
    short = compose(asked, replace(load_family("clip"), pieces=1), tokens_of)
    assert short.text == (
        "The woman with the ladder climbs onto the wagon and holds out a hand. The smaller boy stays below. "
        "The woman with the ladder: a tall, thin woman in blue overalls, grey bun, frightened; the smaller boy: thin; "
        "an open door; Lamp with a pull cord, lit; two wet footprints; medium shot; Soft watercolour, ink outlines."
    )
    assert short.left_out[:3] == ("the place", "details of looks", "the hour")


def test_what_is_dropped_goes_by_rank_and_the_act_stays_longest() -> None:
    asked, ranks = request_of("beasts", ACTS[0]), composing_data().ranks
    family = load_family("t5-512")
    seen: list[int] = []
    for budget in range(200, 20, -4):
        made = compose(asked, replace(family, budget=budget), tokens_of)
        assert tokens_of(made.text) <= budget
        seen.append(max((ranks.index(part.kind) for part in made.kept), default=0))
        if made.dropped:
            assert made.kept[0].kind in ("act", "style")
    tight = compose(asked, replace(family, budget=tokens_of(asked.prompt)), tokens_of)
    assert tight.text == "The oldest she-camel climbs onto the wagon and holds out a hand. Ghali stays below."
    cut = compose(asked, replace(family, budget=8), tokens_of)
    assert cut.text == "The oldest she-camel climbs."
    assert "part of the sentences" in cut.left_out


def test_pieces_are_added_for_what_is_essential_only() -> None:
    family = load_family("clip")
    asked = request_of("beasts", ACTS[0])
    assert tokens_of(compose(asked, family, tokens_of).text) <= 75
    long = replace(asked, prompt=" ".join([asked.prompt] * 6))
    made = compose(long, family, tokens_of)
    assert 75 < tokens_of(made.text) <= 150
    assert not any(part.kind in composing_data().essential for part in made.dropped)


def test_whoever_has_a_picture_is_described_only_where_the_family_says_so() -> None:
    asked = replace(request_of("labels", ACTS[0]), pictures=(("the smaller boy", b"png"),))
    assert "freckled" not in compose(asked, load_family("services"), tokens_of).text
    assert "freckled" in compose(asked, load_family("paragraph"), tokens_of).text
    nameless = replace(load_family("paragraph"), names=False)
    assert "Thin, eight years old" in compose(asked, nameless, tokens_of).text


def test_what_there_was_no_room_for_is_told_once_a_board() -> None:
    one = FrameRequest("A.", 1, 8, 8, scene=1, dropped=("light", "gazes"))
    two = FrameRequest("B.", 1, 8, 8, scene=2, dropped=("light",))
    assert left_out([one, two]) == ["No room in the prompts, by scene, for: light (1, 2); gazes (1)."]
    assert left_out([FrameRequest("A.", 1, 8, 8)]) == []


def test_labels() -> None:
    wanted = {"the lion": "The lion", "a lion": "The lion", "lion": "The lion", "Mila": "Mila", "小明": "小明"}
    wanted |= {"the Great Bellini": "The Great Bellini", "her brother": "Her brother", "12 men": "The 12 men"}
    assert {name: label(name) for name in wanted} == wanted
    assert (within("the Great Bellini"), within("Mila")) == ("the Great Bellini", "Mila")


def test_small_pieces_of_english() -> None:
    assert clean("a ,, b .. c...") == "a, b. c\u2026"
    assert clean("in the the lake") == "in the lake"
    assert as_sentence('he says "run"') == 'He says "run".'
    assert sentences_of("Dr. Fox runs. 'Stop!' said he. End") == ["Dr. Fox runs.", "'Stop!' said he.", "End."]
    assert phrases("a coat (red, long), boots; and a hat. Old") == ["a coat (red, long)", "boots", "a hat", "Old"]
    assert told_of("Mila is wet, holds a duck. She has braids", "Mila") == ["wet", "holding a duck", "braids"]
    assert alone("as frame 1, closer") == []
    assert alone("from the bunk, as panel 2") == ["from the bunk"]


words = st.text(alphabet="abcdefgäß '’", min_size=1, max_size=9)
texts = st.lists(words, min_size=1, max_size=9).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(
    act=st.lists(texts, min_size=1, max_size=3).map(". ".join),
    looks=st.lists(st.tuples(words, texts), max_size=3, unique_by=lambda item: label(item[0]).lower()),
    shown=st.lists(texts, max_size=3),
    place=texts,
    budget=st.integers(12, 120),
    family=st.sampled_from(FAMILIES),
)
def test_a_prompt_is_within_its_budget_and_nothing_gets_lost(
    act: str, looks: list[tuple[str, str]], shown: list[str], place: str, budget: int, family: str
) -> None:
    own = replace(load_family(family), budget=budget, pieces=1)
    cast = tuple(Character(name=name, kind="", appearance=look) for name, look in looks)
    asked = FrameRequest(act, 1, 8, 8, characters=cast, must_show=tuple(shown), place=place, style="ink")
    made = compose(asked, own, tokens_of)
    assert tokens_of(made.text) <= budget
    parts = parts_of(asked, own)
    whole = Counter(word for part in (*made.kept, *made.dropped) for word in letters(part.text))
    assert whole == Counter(word for part in parts for word in letters(part.text))
    if not any(part.kind == "act" for part in made.dropped):
        assert sorted(map(repr, (*made.kept, *made.dropped))) == sorted(map(repr, parts))


def letters(text: str) -> list[str]:
    return re.findall(r"[^\W_]", text.lower())


def test_a_look_keeps_the_noun_that_the_rest_hangs_on_and_says_it_once() -> None:
    assert told_of("the third rung of the ladder from below", "the third rung") == [
        "the third rung of the ladder from below"
    ]
    assert told_of("the girl has red hair", "the girl") == ["red hair"]
    bram = Character(name="Bram", kind="old man", appearance="thin bony man of seventy, long white beard")
    assert look_head(bram).startswith("thin bony man of seventy")
    assert look_head(Character(name="Gus", kind="fox", appearance="thin, red")) == "fox, thin"


def test_a_line_says_nothing_twice_and_nothing_of_other_pictures() -> None:
    plan = plan_of(CASTS["labels"], "{0} holds the lamp.")
    who = plan.panels[0].characters[0]
    people = [
        one.model_copy(update={"appearance": "eight brown hens, in pink slippers"}) if one.name == who else one
        for one in plan.characters
    ]
    props = [
        Prop(name="lamp", looks="brass lamp, the only golden thing in any picture"),
        Prop(name="third rung", looks="third rung of the ladder"),
    ]
    states = [Seen(name=who, state="eight, asleep by the wall, in slippers", mood="asleep")]
    gazes = [Gaze(who=who, at="the own hand")]
    panel = plan.panels[0].model_copy(update={"state": states, "gaze": gazes, "must_show": ["third rung", "lamp"]})
    plan = plan.model_copy(update={"characters": people, "visual": Visual(props=props), "panels": [panel]})
    text = compose(panel_request(plan, panel, 1, (64, 64)), load_family("paragraph"), tokens_of).text
    assert text.count("asleep") == text.count("slippers") == 1
    assert "eight brown hens, in pink slippers, asleep by the wall, looking" in text
    assert "any picture" not in text
    assert told_of("large white beans, later vines, the only white ones", "beans") == ["large white beans"]
    assert "brass lamp" in text
    assert "third rung of the ladder" not in text
    assert "looking at their own hand" in text


def test_a_state_is_said_whole_or_not_at_all_and_a_way_to_look_is_nothing_looked_at() -> None:
    plan = plan_of(CASTS["labels"], "{0} holds the steaming plate. Two sacks are burnt black in the granary.")
    panel = plan.panels[0].model_copy(
        update={
            "state": [
                Seen(name="plates", state="one, steaming"),
                Seen(name="granary", state="two sacks burnt black, all others whole"),
            ],
            "gaze": [
                Gaze(who="owl", at="stiffly straight ahead"),
                Gaze(who="lamp", at="steely nails; pleading", not_at="the box"),
            ],
            "time_of_day": "dusk",
        }
    )
    props = (
        [
            *plan.visual.props,
            Prop(name="plates", looks="two blue plates"),
            Prop(name="granary", looks="with a thatched roof"),
        ]
        if plan.visual
        else []
    )
    plan = plan.model_copy(update={"visual": Visual(props=props)})
    text = compose(panel_request(plan, panel, 1, (64, 64)), load_family("services"), tokens_of).text
    assert "The plates: two blue plates, now one, steaming." in text
    assert "The granary with a thatched roof, now two sacks burnt black, all others whole." in text
    assert "The owl: looking stiffly straight ahead." in text
    assert "looking at steely nails, not at the box, pleading" in text
    assert "Setting: the old mill, red dusk" in text, "the light says the time"


def test_a_gaze_says_its_way_and_agrees_with_who_looks() -> None:
    assert looks_at("Hedvig", "along the trail of petals", "the dentist") == (
        "Hedvig looks along the trail of petals, not at the dentist"
    )
    assert looks_at("the hens", "Helve", "") == "the hens look at Helve"
    assert looks_at("the duchess", "back over her shoulder", "") == "the duchess looks back over her shoulder"
    assert looks_at("Nils", "up", "") == "Nils looks up"
    assert looks_at("the boy with the scissors", "Tom and Ann", "") == "the boy with the scissors looks at Tom and Ann"
    gazes = [
        Gaze(who="the smaller boy", at="the box, over his shoulder", not_at="the owl"),
        Gaze(who="owl", at="the boy, as at a mouse", not_at="the box"),
    ]
    plan = plan_of(CASTS["labels"], "{0} waits for {1}.")
    panel = plan.panels[0].model_copy(update={"gaze": gazes})
    text = compose(panel_request(plan, panel, 1, (64, 64)), load_family("services"), tokens_of).text
    assert "looking over his shoulder at the box, not at the owl." in text
    assert "The owl: looking at the boy as at a mouse, not at the box." in text


def test_what_another_picture_would_be_needed_for_is_said_of_this_one_alone() -> None:
    views = {"closer to the step": "close to the step", "nearer to the quay": "near the quay", "lower": "low"}
    views |= {"farther back and lower": "far back and low", "from the closer bank": "from the closer bank"}
    assert {view: standing(view) for view in views} == views
    assert alone("same view and sides") == []
    assert alone("same height, with the floor in view") == ["with the floor in view"]
    assert alone("two of the same age") == ["two of the same age"]


def test_what_a_state_takes_away_is_in_no_look() -> None:
    assert taken_off("soaked, capless, without the blue apron") == {"cap", "apron"}
    assert taken_off("barefoot") == {"shoes", "boots", "sandals", "slippers"}
    assert without("orange overalls and orange cap", frozenset({"cap"})) == "orange overalls"
    assert without("blue apron", frozenset({"apron"})) == ""
    plan = plan_of([person("Chucho", "man", "a wiry man of thirty, orange cap, boots")], "{0} climbs.")
    state = [Seen(name="Chucho", state="soaked, capless")]
    panel = plan.panels[0].model_copy(update={"state": state, "gaze": []})
    text = compose(panel_request(plan, panel, 1, (64, 64)), load_family("services"), tokens_of).text
    assert "Chucho: a wiry man of thirty, boots, soaked, capless." in text


def test_a_phrase_that_is_read_alone_names_who_he_or_she_is() -> None:
    people = [("the thin man", "man thin man of sixty"), ("Mrs Oduya", "woman stout woman")]
    assert named_in("brush and glue tube behind him", people) == "brush and glue tube behind the thin man"
    assert named_in("his furtive look over the fence", people) == "the thin man's furtive look over the fence"
    assert named_in("her cloud with a jar", people) == "Mrs Oduya's cloud with a jar"
    assert named_in("the ladder beside her", people) == "the ladder beside Mrs Oduya"
    whole = ("Mrs Oduya with her back turned", "boy rubbing his shin", "pears", "goose in its crate")
    for phrase in (*whole, "driver on his bike", "driver holding a bag beside him"):
        assert named_in(phrase, people) == phrase
    two = [*people, ("the boy", "boy")]
    assert named_in("pot behind him", two) == "pot behind him", "nobody can tell which"


def test_a_line_has_one_colon_and_says_a_kind_once() -> None:
    assert told_of("dark, a face: two lamps, a grille", "lift") == ["dark", "a face (two lamps, a grille)"]
    assert look_head(Character(name="Sigrid", kind="woman", appearance="Norwegian fisherwoman, grey")) == (
        "Norwegian fisherwoman"
    )
    assert look_head(Character(name="Zeno's aunt", kind="woman", appearance="the same snub nose")) == "woman, snub nose"
    assert of_one("the shipowner's one hand holds the ruby") == "one hand of the shipowner holds the ruby"
    plan = plan_of(CASTS["labels"], "{0} opens the hen house.")
    props = [Prop(name="hen house", looks="small, one board nailed over a gap")]
    state = [Seen(name="hen house", state="one board over the gap")]
    panel = plan.panels[0].model_copy(update={"state": state})
    plan = plan.model_copy(update={"visual": Visual(props=props), "panels": [panel]})
    text = compose(panel_request(plan, panel, 1, (64, 64)), load_family("services"), tokens_of).text
    assert "The hen house: small, one board nailed over a gap." in text
