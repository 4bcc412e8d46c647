"""Requests to scenes: each sentence becomes the place, deeds, actors and things that it tells, and no others."""

from __future__ import annotations

from dataclasses import replace
from importlib import resources
from random import Random
from typing import Any

import pytest
import yaml

from katha.agents.frames import _dump
from katha.protocols import BoardContext, FrameRequest
from katha.schema import Character
from katha_sketch.drawing import SketchRenderer
from katha_sketch.drawing.deeds import Look, deed, deed_ids, draw_person
from katha_sketch.drawing.pictograms import pictogram
from katha_sketch.drawing.places import place_ids
from katha_sketch.drawing.scenes import Scene, SceneActor, SceneThing, frame_scene, scene_of, tell
from katha_sketch.drawing.scenes.senses import concept_of, features_of, noun_of, place_of
from katha_sketch.drawing.scenes.stage import arrange
from katha_sketch.drawing.scenes.things import put_thing

SENTENCES = [
    # sentence, setting (None: not asked), {actor: deed or deed>target}, things
    ("Ben kicked the ball.", None, {"ben": "kick"}, ["football"]),
    ("In the kitchen, Mum cut the onions.", "kitchen", {"mum": "cut"}, ["onion"]),
    ("The girl threw the ball to the dog.", None, {"girl": "throw>dog", "dog": "stand"}, ["ball"]),
    ("A boy read a book in the library.", "library", {"boy": "read"}, ["book"]),
    ("The teacher wrote a letter in the classroom.", "classroom", {"teacher": "write"}, ["letter"]),
    ("The dog chased the cat through the park.", "park", {"dog": "chase>cat", "cat": "run"}, []),
    ("Anna gave her brother an apple.", None, {"anna": "give>anna's brother", "anna's brother": "stand"}, ["apple"]),
    ("The old woman knocked at the door.", None, {"old woman": "knock"}, ["door"]),
    ("The pilot took off her helmet.", None, {"pilot": "take_off"}, ["helmet"]),
    ("Tom put on his coat.", None, {"tom": "get_into"}, []),
    ("Lena blew out the candles.", None, {"lena": "blow"}, ["candle"]),
    ("Sam played the violin on the stage.", "theatre", {"sam": "play_music"}, ["violin"]),
    ("Sam played the drum.", None, {"sam": "drum"}, ["drum"]),
    ("Tom handed Anna the kitten.", None, {"tom": "give>anna", "anna": "stand"}, ["kitten"]),
    ("Sam cut the rope with a pair of scissors.", None, {"sam": "cut"}, ["rope", "scissors"]),
    ("Anna wrapped a scarf around Ben's neck.", None, {"anna": "fit>ben", "ben": "stand"}, []),
    ("The children played football in the park.", "park", {"children": "kick"}, ["football"]),
    ("The nurse phoned the hospital.", None, {"nurse": "phone"}, []),
    ("A man drove a bus along the street.", "street", {"man": "drive"}, ["bus"]),
    ("The girl rode a horse.", None, {"girl": "ride>horse", "horse": "stand"}, []),
    ("Fatou chased the thief on her bicycle.", None, {"fatou": "ride", "thief": "run"}, ["bicycle"]),
    ("The boy climbed a tree in the garden.", "garden", {"boy": "climb"}, ["tree"]),
    ("Grandma sat on a chair and knitted a scarf.", None, {"grandma": "knit"}, ["chair", "scarf"]),
    ("The sailor swam in the sea.", "open_sea", {"sailor": "swim"}, []),
    ("The mouse bit the rope.", None, {"mouse": "bite"}, ["rope"]),
    ("The small mouse bites the rope.", None, {"small mouse": "bite"}, ["rope"]),
    ("The hare is ashamed and runs.", None, {"hare": "run"}, []),
    ("In the forest. The lion is afraid and is trapped in the net.", "forest", {"lion": "trapped"}, ["net"]),
    ("The crow sat in a tree with a piece of cheese.", None, {"crow": "sit"}, ["tree", "cheese"]),
    ("The fox looked at the crow.", None, {"fox": "look>crow", "crow": "stand"}, []),
    ("The monkey rides the crocodile.", None, {"monkey": "ride>crocodile", "crocodile": "stand"}, []),
    ("A robot carried a box in the workshop.", "workshop", {"robot": "carry"}, ["box"]),
    ("A ghost danced in the attic of the castle.", "attic", {"ghost": "dance"}, []),
    ("Mia and Tom hugged.", None, {"mia": "hug>tom", "tom": "hug>mia"}, []),
    ("The woman shook the man's hand.", None, {"woman": "shake_hands>man", "man": "stand"}, []),
    ("The boy held the girl's hand.", None, {"boy": "hold_hands>girl", "girl": "stand"}, []),
    ("The baby slept in the bedroom.", "bedroom", {"baby": "sleep"}, []),
    ("The boy fell asleep.", None, {"boy": "sleep"}, []),
    ("The girl was asleep.", None, {"girl": "sleep"}, []),
    ("The farmer dug a hole with a spade.", None, {"farmer": "dig"}, ["hole", "spade"]),
    ("The cook stirred the soup.", "kitchen", {"cook": "cook"}, ["soup"]),
    ("Mum poured tea into the cups.", None, {"mum": "pour"}, ["cup", "tea"]),
    ("The waiter served pizza in the restaurant.", "restaurant", {"waiter": "serve"}, ["pizza"]),
    ("The man repaired the bicycle with a hammer.", None, {"man": "hammer"}, ["bicycle", "hammer"]),
    ("She put the book on the table.", None, {"someone": "put"}, ["book", "table"]),
    ("The astronaut planted a flag on the moon.", "moon", {"astronaut": "plant"}, ["flag"]),
    ("The king sat on a throne.", None, {"king": "sit"}, ["throne"]),
    ("The boy could not reach the kite.", None, {"boy": "reach_out"}, ["kite"]),
    ("The girl did not run.", None, {"girl": "stand"}, []),
    ("The man hid behind a bush.", None, {"man": "hide"}, ["bush"]),
    ("The boy opened the door and cried.", None, {"boy": "open"}, ["door"]),
    ("The witch and the wizard eat soup.", None, {"witch": "spoon_up", "wizard": "spoon_up"}, ["soup"]),
    ("The pigeon steals a pretzel from the tourist.", None,
     {"pigeon": "snatch>tourist", "tourist": "stand"}, ["pretzel"]),
    ("The doctor listens to the boy's heart with a stethoscope.", None,
     {"doctor": "examine>boy", "boy": "stand"}, ["stethoscope"]),
    ("The nurse measures the boy's temperature with a thermometer.", None,
     {"nurse": "examine>boy", "boy": "stand"}, ["thermometer"]),
    ("The pupils paint masks.", None, {"pupils": "paint"}, ["mask"]),
    ("The computer smokes.", None, {"computer": "smoulder"}, []),
    ("A huge wave sweeps the cat away.", None, {"cat": "fall"}, ["wave"]),
    ("Max calls the plumber on the phone.", None, {"max": "phone>plumber", "plumber": "stand"}, ["phone"]),
    ("The lady tries on a pair of boots.", None, {"lady": "put_on"}, ["boots"]),
    ("The boy grabbed a basket and ran.", None, {"boy": "snatch"}, ["basket"]),
    # Who cannot, who waits, who searches: no idle figures.
    ("Paul could not lift the box.", None, {"paul": "strain"}, ["box"]),
    ("Emil could not find Lucy.", None, {"emil": "lose>lucy", "lucy": "stand"}, []),
    ("At night Sam could not sleep.", None, {"sam": "sleepless"}, []),
    ("The woman waited at the bus stop.", "bus_stop", {"woman": "wait"}, ["bus stop"]),
    ("She searched under the bed.", None, {"someone": "look_under"}, ["bed"]),
    ("The boy stopped crying.", None, {"boy": "wipe_tears"}, []),
    # Contact between two, and whose thing it is.
    ("Ali pulled the girl up.", None, {"ali": "tug>girl", "girl": "stand"}, []),
    ("The man stole the woman's handbag.", None, {"man": "snatch>woman", "woman": "stand"}, ["handbag"]),
    ("The girl threw her arms around the postman.", None, {"girl": "hug>postman", "postman": "stand"}, []),
    ("Vera fell into the old man's arms.", None, {"vera": "hug>old man", "old man": "stand"}, []),
    ("The officer handcuffed the thief.", None, {"officer": "arrest>thief", "thief": "stand"}, []),
    ("The father lifted his son.", None, {"father": "raise_up>father's son", "father's son": "stand"}, []),
    ("Ben and Karl carried the sofa.", None, {"ben": "carry_together>karl", "karl": "carry_together>ben"}, ["sofa"]),
    ("Leo covered his face.", None, {"leo": "cover_face"}, []),
    ("The woman shook her head.", None, {"woman": "shake_head"}, []),
    ("Vera tore up the letter.", None, {"vera": "tear"}, ["letter"]),
    ("Clara practised the piano.", None, {"clara": "drum"}, ["piano"]),
    ("Nadia brought two apples and handed one to Theo.", None, {"nadia": "give>theo", "theo": "stand"}, ["apple"]),
    ("The ball flew over the fence.", None, {"ball": "fly"}, ["fence"]),
    ("The dog was bitten by a snake.", None, {"snake": "bite>dog", "dog": "stand"}, []),
    ("The woman dreamed of a cake.", None, {"woman": "think"}, ["cake"]),
    ("The boy thought of a cake.", None, {"boy": "think"}, ["cake"]),
    ("The girl waved at the captain in the harbour.", "harbour", {"girl": "wave>captain", "captain": "stand"}, []),
    ("The boy and the girl danced at the market.", "market", {"boy": "dance>girl", "girl": "dance>boy"}, []),
    ("Grandpa rowed a boat on the lake.", "lake", {"grandpa": "row"}, ["boat"]),
    ("The doctor listened to the girl.", None, {"doctor": "listen>girl", "girl": "stand"}, []),
    ("The policeman caught the thief near the bridge.", "bridge", {"policeman": "seize>thief", "thief": "stand"}, []),
    ("The girl brushed her teeth in the bathroom.", "bathroom", {"girl": "brush_teeth"}, []),
    ("A boy walked home in the rain.", None, {"boy": "walk"}, []),
    (
        "The detective looked at the letter through a magnifying glass.",
        None,
        {"detective": "look_through"},
        ["letter", "magnifying glass"],
    ),
    ("Wide shot of a lion in the desert", "desert", {"lion": "stand"}, []),
    ("In the meadow. The ant carries the grain. A nest.", "hill", {"ant": "carry"}, ["grain", "nest"]),
    ("A tall tree stood on the hill.", "hill", {}, ["tree"]),
]  # fmt: skip


def request(prompt: str, **fields: object) -> FrameRequest:
    """A request of the usual size."""
    return replace(FrameRequest(prompt, 7, 384, 256), **fields)  # type: ignore[arg-type]


def deeds(scene: Scene) -> dict[str, str]:
    """Who does what, and to whom where that is somebody."""
    ids = {actor.id for actor in scene.actors}
    return {one.id: one.deed + (f">{one.target}" if one.target in ids else "") for one in scene.actors}


def words(scene: Scene) -> set[str]:
    """The things of a scene."""
    return {thing.word for thing in scene.things}


def png(asked: FrameRequest, argument: str | None = None) -> bytes:
    """The picture of a request."""
    return next(iter(SketchRenderer(argument).render_board([asked])))


def hollow() -> dict[str, list[str]]:
    """The table of what has room for somebody."""
    text = resources.files("katha_sketch.drawing.scenes").joinpath("senses.yaml").read_text(encoding="utf-8")
    return {name: row.split() for name, row in yaml.safe_load(text)["hollow"].items()}


def only(scene: Scene) -> SceneActor:
    """The one actor."""
    (actor,) = scene.actors
    return actor


ACTS = [
    # sentence, who does what
    ("The woman whispers to the boy.", {"woman": "whisper>boy", "boy": "stand"}),
    ("The woman thanks the man.", {"woman": "thank>man", "man": "stand"}),
    ("The man apologises to the woman.", {"man": "apologise>woman", "woman": "stand"}),
    ("The teacher teaches the children.", {"teacher": "teach>children", "children": "stand"}),
    ("The boy protects the girl.", {"boy": "protect>girl", "girl": "stand"}),
    ("The police officer stops the car.", {"police officer": "stop_hand"}),
    ("The man ignores the woman.", {"man": "ignore>woman", "woman": "stand"}),
    ("The girl glares at the boy.", {"girl": "glare>boy", "boy": "stand"}),
    ("The man yawns.", {"man": "yawn"}),
    ("The child vomits.", {"child": "sick"}),
    ("The man forgets his umbrella.", {"man": "forget"}),
    ("The dog wags its tail.", {"dog": "wag"}),
    ("The woman comes into the kitchen.", {"woman": "enter"}),
    ("The woman leaves the office.", {"woman": "leave"}),
    ("The girl gets off the train.", {"girl": "get_off"}),
    ("The man leans against the wall.", {"man": "lean_on"}),
    ("The monkey hangs from the branch.", {"monkey": "hang"}),
    ("The boy does a handstand.", {"boy": "handstand"}),
    ("The acrobat balances on the rope.", {"acrobat": "balance"}),
    ("The girl swings on the swing.", {"girl": "swing"}),
    ("The boy slides down the slide.", {"boy": "slide_down"}),
    ("The man ties his shoelaces.", {"man": "tie_laces"}),
    ("The man walks the dog.", {"man": "walk_dog>dog", "dog": "stand"}),
    ("The woman presses the button.", {"woman": "press"}),
    ("The woman switches off the lamp.", {"woman": "switch"}),
    ("The girl washes her hands.", {"girl": "run_tap"}),
    ("The man washes the car.", {"man": "scrub"}),
    ("The man paints the fence.", {"man": "paint_wall"}),
    ("The artist paints a portrait.", {"artist": "paint"}),
    ("The woman fills the bottle.", {"woman": "fill"}),
    ("The man empties the bin.", {"man": "tip"}),
    ("The man shakes the bottle.", {"man": "shake_thing"}),
    ("The dog shakes itself.", {"dog": "shake_self"}),
    ("The woman drops in three potatoes.", {"woman": "add_in"}),
    ("The woman turns the picture over.", {"woman": "turn_over"}),
    ("The man turns over the page.", {"man": "read"}),
    ("The man pulls a key out of his pocket.", {"man": "produce"}),
    ("The man pulls the rope.", {"man": "pull"}),
    ("The horse clears the fence.", {"horse": "jump"}),
    ("The woman clears the table.", {"woman": "lay_table"}),
    ("The man strikes a match.", {"man": "strike_match"}),
    ("The man plants himself in front of the door.", {"man": "hands_on_hips"}),
    ("The woman takes the first mouthful.", {"woman": "spoon_up"}),
    ("The man draws his sword.", {"man": "produce"}),
    ("The horse draws the cart.", {"horse": "pull"}),
    ("The man answers the door.", {"man": "open"}),
    ("The woman puts on the kettle.", {"woman": "switch"}),
    ("The man reaches into the box.", {"man": "reach_in"}),
    ("The woman flings open the window.", {"woman": "open"}),
    ("The girl goes to sleep.", {"girl": "sleep"}),
    ("Tom shrugs. Tom talks to the boy about the lion.", {"tom": "shrug", "boy": "stand"}),
    ("Tom talks to the boy about the lion.", {"tom": "talk>boy", "boy": "stand"}),
    ("The boy holds up both hands.", {"boy": "hands_up"}),
    ("The boy draws a line on the step.", {"boy": "chalk_ground"}),
    ("The girl draws a horse.", {"girl": "draw"}),
    ("The man lays out the keys on the counter.", {"man": "put_in"}),
    ("The woman rolls the wool into a ball.", {"woman": "handle"}),
    ("The old woman shuffles across the room.", {"old woman": "walk"}),
    ("The man mends the net.", {"man": "sew"}),
    ("The boy spends the night at the inn.", {"boy": "stand"}),
    ("The woman listens at the door.", {"woman": "listen_at"}),
    ("The woman posts a letter.", {"woman": "post"}),
    ("The man loads the van.", {"man": "load"}),
    ("The woman shops.", {"woman": "shop"}),
    ("The man checks his watch.", {"man": "check_watch"}),
    ("The man shaves.", {"man": "shave"}),
    ("The girl combs her hair.", {"girl": "comb"}),
    ("The woman vacuums the carpet.", {"woman": "vacuum"}),
    ("The man shoots an arrow.", {"man": "shoot_bow"}),
    ("The player shot the ball.", {"player": "kick"}),
    ("The mother wakes the boy.", {"mother": "wake_up>boy", "boy": "stand"}),
    ("The boy wakes up.", {"boy": "wake"}),
    ("The man puts the baby to bed.", {"man": "tuck_in>baby", "baby": "stand"}),
    ("The woman holds the baby.", {"woman": "cradle>baby", "baby": "stand"}),
    ("The boy slips an egg into his coat.", {"boy": "put_in"}),
    ("The boy slips on the ice.", {"boy": "fall"}),
    ("The man takes the telephone from the drawer.", {"man": "take"}),
    ("The thief takes the purse from the woman.", {"thief": "snatch>woman", "woman": "stand"}),
    ("The mother gives orders.", {"mother": "point"}),
    ("The boy whistles.", {"boy": "whistle"}),
    ("The baker calls.", {"baker": "call"}),
    # Where it is done makes another deed.
    ("Ada puts her hand over her mouth.", {"ada": "cover_mouth"}),
    ("Ada puts her hands on her hips.", {"ada": "hands_on_hips"}),
    ("Ben wipes the plate with his sleeve.", {"ben": "rub_off"}),
    ("Ben polishes a shoe with a brush.", {"ben": "polish"}),
    ("Ben cleans the window.", {"ben": "clean"}),
    ("Ben counts the boxes on the table.", {"ben": "count_out"}),
    ("Ben counts to ten.", {"ben": "cover_face"}),
    ("Ada climbs the steps with a candle.", {"ada": "climb_stairs"}),
    ("Ada climbs the tree.", {"ada": "climb"}),
    ("Ada is asleep against Ben's shoulder.", {"ada": "nod_off", "ben": "sit"}),
    ("The people lean with torches out of the windows.", {"people": "lean_out"}),
    ("The team lands in a puddle.", {"team": "pile_on"}),
    ("The nurse pulls the curtains back.", {"nurse": "open"}),
    ("The father rows home with a loaf.", {"father": "row"}),
    ("The man lifts out the cuckoo clock.", {"man": "lift_out"}),
    ("The dog bites into the tall man's trousers.", {"dog": "bite>tall man", "tall man": "stand"}),
    (
        "Ada and Ben form a chain with the neighbours.",
        {"ada": "pass_along", "ben": "pass_along", "neighbours": "pass_along"},
    ),
    ("The woman changes the tyre.", {"woman": "hammer"}),
    ("The girl blushes.", {"girl": "blush"}),
    ("The man stares at the screen.", {"man": "look"}),
    ("The woman writes.", {"woman": "write"}),
    ("The swimmer floats.", {"swimmer": "swim"}),
    ("The astronaut floats in space.", {"astronaut": "fly"}),
    ("The boy put his hand into his pocket.", {"boy": "pocket"}),
    ("Mbeki laid a hand on the man's shoulder.", {"mbeki": "lay_hand>man", "man": "stand"}),
    # Things of their own accord.
    ("The bus stops.", {"bus": "halt"}),
    ("The police officer stops.", {"police officer": "stand"}),
    ("The car skids.", {"car": "skid"}),
    ("The ship sinks.", {"ship": "sink"}),
    ("The boat floats.", {"boat": "bob"}),
    ("The balloon floats.", {"balloon": "fly"}),
    ("The flower grows.", {"flower": "sprout"}),
    ("The flag waves.", {"flag": "flutter"}),
    ("The ball rolls.", {"ball": "roll_along"}),
    ("The train runs along the rails.", {"train": "walk"}),
    ("The girl clutches the knee.", {"girl": "hurt"}),
    ("Ben blows off the dust.", {"ben": "blow"}),
    ("Ben undoes the clasps.", {"ben": "open"}),
    ("The kettle whistles.", {"kettle": "ring"}),
    ("The woman peels the potato.", {"woman": "peel"}),
    ("The woman rolls out the dough.", {"woman": "roll_out"}),
    ("The farmer scares the birds away.", {"farmer": "drive_on>birds", "birds": "stand"}),
    ("The woman scrapes the carrot.", {"woman": "peel"}),
    ("The man leads the donkey.", {"man": "lead_beast>donkey", "donkey": "stand"}),
    ("The girl feeds the hens.", {"girl": "scatter_feed>hens", "hens": "stand"}),
    ("Hedwig is given the bag.", {"hedwig": "take"}),
    ("The wind blows the hat off.", {"hat": "fly"}),
    ("The man stands with folded arms.", {"man": "cross_arms"}),
    ("Ingrid slips in the rain.", {"ingrid": "fall"}),
    ("The goat bares its teeth.", {"goat": "fists"}),
    ("The horse gallops.", {"horse": "run"}),
    ("The man carries the sack home.", {"man": "carry"}),
    ("The crow opens the beak to sing.", {"crow": "sing"}),
    ("The girl draws a picture.", {"girl": "draw"}),
    ("The people shout into the well.", {"people": "shout_down"}),
    ("The boy held the matchbox in both hands.", {"boy": "hold"}),
    ("He knelt by the clock with a screwdriver.", {"someone": "kneel"}),
    ("The twins pressed their noses to the glass.", {"twins": "press_face"}),
    ("The man stood in water up to his chest.", {"man": "wade"}),
    ("She buttoned the puppy into her cardigan.", {"someone": "cradle>puppy", "puppy": "stand"}),
    ("They lower the boy into the well.", {"everyone": "lower_down>boy", "boy": "hang"}),
    ("The donkey put one hoof into the puddle.", {"donkey": "dip_toe"}),
    ("The dog carried the newspaper in its mouth.", {"dog": "carry_mouth"}),
    ("The goat was wedged in a crack.", {"goat": "trapped"}),
    ("The firemen hang on to the man's boots.", {"firemen": "tug>man", "man": "stand"}),
    ("The man is on his knees.", {"man": "kneel"}),
    ("The mother shook the boy awake.", {"mother": "wake_up>boy", "boy": "stand"}),
    ("Dad pulls the sleeping bag over the ears.", {"dad": "lie"}),
    ("Dad shakes the boy awake.", {"dad": "wake_up>boy", "boy": "stand"}),
    ("The water came up to the boy's chest.", {"boy": "wade"}),
]


@pytest.mark.parametrize(("sentence", "actors"), ACTS, ids=[row[0] for row in ACTS])
def test_each_verb_has_the_deed_that_a_viewer_would_name(sentence: str, actors: dict[str, str]) -> None:
    assert deeds(scene_of(request(sentence))) == actors


def test_a_bubble_shows_that_somebody_asks_and_a_vehicle_that_acts_is_seen_from_outside() -> None:
    said = {
        verb: scene_of(request(f"The boy {verb} the woman.")).actors[0].says for verb in ("asks", "thanks", "tells")
    }
    assert said == {"asks": "red-question-mark", "thanks": "red-heart", "tells": None}
    assert scene_of(request("The woman asks for a cake.")).actors[0].says == "birthday-cake"
    assert scene_of(request("The bus stops.")).setting != "bus"
    written = frame_scene(scene_of(request("The woman writes.")), 384, 256, 1)
    assert "page-facing-up" in {sprite.id.rpartition(":")[2] for sprite in written.sprites}
    assert scene_of(request("The man sits on the bus.")).setting == "bus"


STATED = [
    # sentence, thing or actor, its states
    ("The boy carried the broken vase.", "vase", ("broken",)),
    ("The vase broke.", "vase", ("broken",)),
    ("The girl dried her wet skirt.", "skirt", ("wet",)),
    ("The man knocked at the locked door.", "door", ("locked",)),
    ("Petra opened the window.", "window", ("open",)),
    ("The baker threw the burnt rolls into the bin.", "roll", ("burnt",)),
    ("Smoke came out of the printer.", "printer", ("smoking",)),
    ("The lamp went out.", "lamp", ("unlit",)),
    ("The door was not locked.", "door", ()),
    ("The boy wanted to break the vase.", "vase", ()),
]


@pytest.mark.parametrize(("sentence", "name", "states"), STATED, ids=[row[0] for row in STATED])
def test_what_has_become_of_a_thing_is_in_the_scene(sentence: str, name: str, states: tuple[str, ...]) -> None:
    scene = scene_of(FrameRequest(sentence, 1, 768, 512))
    found = {thing.word: thing.states for thing in scene.things} | {actor.id: actor.states for actor in scene.actors}
    assert found.get(name, ()) == states


PLACED = [
    # sentence, the panel's place, the stage, what it is in
    ("Jamie pressed the button.", "the lift", "lift", ()),
    ("The nurse ran.", "the corridor", "corridor", ()),
    ("Lucia hit the ball.", "the tennis court", "tennis_court", ()),
    ("The man slept.", "the tent", "tent_inside", ()),
    ("The captain rang the bell.", "the sea", "ship_deck", ()),
    ("The sailor swam.", "the sea", "open_sea", ()),
    ("The spaceship Orion flies past the planet.", "the space station", "space", ()),
    ("The street was flooded.", "the street", "street", ("flood",)),
    ("Rita paid.", "the post office", "post_office", ()),
    ("Rita waited.", "the bus stop", "bus_stop", ()),
    ("Rita paid.", "the bank", "bank", ()),
    ("The crocodile swam to the bank.", "the bank", "river", ()),
    ("Rita sat on the bank.", "the bank", "river", ()),
    ("Rita waited.", "the dentist's", "dentist", ()),
    ("Rita looked around.", "the toy shop", "toy_shop", ()),
    ("The lights went out.", "the living room", "living_room", ("dark",)),
    ("Rita laughed.", "the smoky, crowded market", "market", ("smoky", "crowded")),
]


@pytest.mark.parametrize(("sentence", "place", "stage", "states"), PLACED, ids=[row[0] for row in PLACED])
def test_a_panel_is_where_it_says(sentence: str, place: str, stage: str, states: tuple[str, ...]) -> None:
    scene = scene_of(FrameRequest(sentence, 1, 768, 512, place=place))
    assert (scene.setting, scene.states) == (stage, states)


def test_a_thing_is_what_its_place_makes_of_it_and_a_lift_that_is_given_is_none() -> None:
    court = scene_of(FrameRequest("Lucia hit the ball.", 1, 768, 512, place="the tennis court", must_show=("ball",)))
    assert {thing.word for thing in court.things} == {"tennis ball"}
    lift = scene_of(FrameRequest("The farmer gave a lift to the boy.", 1, 768, 512, must_show=("lift",)))
    assert lift.things == ()
    large, small = (scene_of(FrameRequest(f"The boy carried a {word} box.", 1, 768, 512)) for word in ("huge", "tiny"))
    assert large.things[0].cm > 2 * small.things[0].cm


@pytest.mark.parametrize(("prompt", "setting", "actors", "things"), SENTENCES, ids=[one[0] for one in SENTENCES])
def test_a_sentence_is_drawn_as_it_says(
    prompt: str, setting: str | None, actors: dict[str, str], things: list[str]
) -> None:
    scene = scene_of(request(prompt))
    assert deeds(scene) == actors
    assert words(scene) == set(things)
    if setting is not None:
        assert scene.setting == setting


@pytest.mark.parametrize(
    ("prompt", "who", "where", "at"),
    [
        ("The cat sat under the table.", "cat", "under", "table"),
        ("The fox hid in the hay and watched the hens.", "fox", "in", "hay"),
        ("The dog waits behind the door.", "dog", "behind", "door"),
        ("Tim watches behind the door.", "tim", "behind", "door"),
        ("The kitten crawls under the sofa.", "kitten", "under", "sofa"),
        ("Mia takes a pan from the shelf. Mia stands on a chair.", "mia", "on", "chair"),
        ("Lena finds a kitten. Lena opens the box.", "kitten", "in", "box"),
        ("The kitten jumps onto Lena's lap.", "kitten", "lap", "lena"),
        ("The girl sat in a box.", "girl", "in", "box"),
        ("An owl sat in a tree and saw the girl.", "owl", "on", "tree"),
        ("The cat sleeps in the basket.", "cat", "in", "basket"),
        ("A boy hides in the wardrobe.", "boy", "in", "wardrobe"),
        ("The boy climbs out of the barrel.", "boy", "in", "barrel"),
        ("The cat sits in front of the door.", "cat", "before", "door"),
        ("The boy stands on top of the wall.", "boy", "on", "wall"),
        ("The cat slept on the roof of the car.", "cat", "atop", "car"),
        ("The groom stood on top of the truck.", "groom", "atop", "truck"),
        ("The old man sat on the roof of the bus.", "old man", "atop", "bus"),
        ("The father's head rose through the hatch.", "father", "in", "hatch"),
        ("She pulled the blanket over her head.", "someone", "covered", "blanket"),
        ("The dog stands on the girl's back.", "dog", "back", "girl"),
        ("The cat was stuck up the tree.", "cat", "on", "tree"),
        ("The old man is wrapped in a quilt.", "old man", "covered", "quilt"),
        ("The man stands on a bucket.", "man", "on", "bucket"),
        ("The boy stands at the window.", "boy", "before", "window"),
        ("The woman sits at the sewing machine.", "woman", "before", "sewing machine"),
        ("The girl crawls under the blanket.", "girl", "covered", "blanket"),
        ("The boy hides under the bed.", "boy", "under", "bed"),
        ("Tom hides behind the door.", "tom", "behind", "door"),
        ("The children sit in a rowing boat.", "children", "in", "rowing boat"),
        ("The dog sits between the two children.", "dog", "between", "two children"),
        ("Tom carries the boy on his back.", "boy", "back", "tom"),
        ("The teacher writes a word on the blackboard.", "teacher", None, None),
        ("The girl looks into the box.", "girl", None, None),
        ("Ben looks behind the door.", "ben", None, None),
    ],
)
def test_prepositions_say_who_is_beside_what(prompt: str, who: str, where: str | None, at: str | None) -> None:
    scene = scene_of(request(prompt))
    named = {thing.id: thing.word for thing in scene.things}
    actor = next(one for one in scene.actors if one.id == who)
    assert (actor.where, named.get(actor.at or "", actor.at)) == (where, at)


@pytest.mark.parametrize(
    ("prompt", "thing", "where", "at"),
    [
        ("Ben drops a coin into the jar.", "coin", "in", "jar"),
        ("Mia puts a candle on the cake.", "candle", "on", "cake"),
        ("The coat hangs on a hook.", "coat", "below", "hook"),
        ("The coat hangs over a chair.", "coat", "across", "chair"),
        ("The lamp hangs over the table.", "lamp", "aloft", "table"),
        ("The scarf hangs out of the window.", "scarf", "out", "window"),
        ("Mia throws a blanket over the dog.", "blanket", "across", "dog"),
        ("The boy puts his cap on the dog's head.", "cap", "head", "dog"),
    ],
)
def test_things_hang_and_are_put_where_the_text_says(prompt: str, thing: str, where: str, at: str) -> None:
    scene = scene_of(request(prompt))
    named = {one.id: one.word for one in scene.things}
    one = next(one for one in scene.things if one.word == thing)
    assert (one.where, named.get(one.at or "", one.at)) == (where, at)


def test_what_hangs_on_the_wall_or_from_the_ceiling_needs_no_picture_of_these() -> None:
    (picture,) = scene_of(request("The picture hangs on the wall.", must_show=("wall",))).things
    (lamp,) = scene_of(request("A lamp hangs from the ceiling.")).things
    assert (picture.stands, lamp.stands) == ("wall", "sky")


def test_what_is_hollow_is_open_where_somebody_is_in_it() -> None:
    assert scene_of(request("A boy hides in the wardrobe.")).things[0].states == ("open",)
    assert scene_of(request("A boy stands beside the wardrobe.")).things[0].states == ()
    listed = " ".join(entry for row in hollow().values() for entry in row).split()
    assert listed
    assert all(pictogram(entry.partition("=")[0]).id for entry in listed)


@pytest.mark.parametrize(
    ("prompt", "deed"),
    [
        ("Tom holds his hands over his ears.", "cover_ears"),
        ("Tom rests his chin on his hand.", "chin_in_hand"),
        ("Tom stands on one leg.", "one_leg"),
        ("Tom lies on his stomach.", "lie_prone"),
        ("Tom holds the flowers behind his back.", "hide_back"),
        ("The family sits around the table.", "sit_at"),
        ("The judge sits behind a desk.", "sit_at"),
    ],
)
def test_where_hands_and_bodies_are_is_a_deed(prompt: str, deed: str) -> None:
    assert only(scene_of(request(prompt))).deed == deed


def test_who_sits_with_the_hands_over_the_mouth_sits() -> None:
    anna = only(scene_of(request("Anna sits with her hands over her mouth.")))
    assert (anna.deed, anna.posture) == ("cover_mouth", "sit")
    assert only(scene_of(request("Tom stands with his face in his hands."))).deed == "cover_face"


def test_who_goes_to_somebody_faces_them_and_through_a_crowd_they_are_among_it() -> None:
    scene = scene_of(request("The boy runs to his mother."))
    boy = next(one for one in scene.actors if one.id == "boy")
    assert boy.where == "towards"
    drawn = {sprite.id: sprite for sprite in arrange(scene, Random(3))}
    mother = next(sprite for name, sprite in drawn.items() if "mother" in name)
    assert (mother.x - drawn["boy"].x) * drawn["boy"].facing > 0
    crowd = scene_of(request("The boy runs through the crowd.")).actors
    assert [one.where for one in crowd if one.id == "boy"] == ["between"]
    (boy, *_) = scene_of(request("The boy runs through the door.")).actors
    assert boy.where == "in"
    around = scene_of(request("The children stand around the teacher.")).actors
    assert [one.where for one in around if one.id == "teacher"] == ["between"]


def test_things_are_put_behind_others_and_on_the_own_head() -> None:
    scene = scene_of(request("Priya hides the cup behind the printer."))
    cup, printer = (next(one for one in scene.things if one.word == word) for word in ("cup", "printer"))
    assert (cup.at, cup.where) == (printer.id, "behind")
    assert deeds(scene_of(request("Tom puts the hat on his head."))) == {"tom": "don"}
    assert deeds(scene_of(request("Tom puts the hat on the table."))) == {"tom": "put"}


def test_who_does_something_while_sitting_sits() -> None:
    reader = only(scene_of(request("Anna reads a book. Anna sits beside the bed.")))
    assert (reader.deed, reader.posture, reader.where) == ("read", "sit", "beside")
    crying = only(scene_of(request("Anna sits on the floor. Anna cries.")))
    assert (crying.deed, crying.posture) == ("cry", "sit_floor")
    calling = scene_of(request("The old woman leans out of the window and shouts."))
    assert (only(calling).deed, only(calling).posture, calling.things) == ("shout", "lean_out", ())


@pytest.mark.parametrize(
    ("prompt", "who", "deed", "posture", "where"),
    [
        ("Tom sits at the table.", "tom", "sit_at", None, "at"),
        ("Tom sat at the table and ate soup.", "tom", "spoon_up", "sit_at", "at"),
        ("Tom sat in the armchair and read a book.", "tom", "read", "sit", "on"),
        ("Tom gave the orders from his chair.", "tom", "point", "sit", "on"),
        ("Tom lay in bed and read a book.", "tom", "read", "in_bed", "at"),
        ("Grandpa sat Tom down at the kitchen table.", "tom", "stand", "sit_at", "at"),
        ("Tom put the letter on the chair.", "tom", "put_in", None, None),
        ("Conti lifted the boy onto the table.", "boy", "stand", "sit", "on"),
        ("The neighbours leaned out to see.", "neighbours", "lean_out", None, None),
        ("Tom looked at the table.", "tom", "look", None, None),
    ],
)
def test_who_sits_at_a_table_on_a_seat_or_in_bed_has_the_hands_free(
    prompt: str, who: str, deed: str, posture: str | None, where: str | None
) -> None:
    actor = next(one for one in scene_of(request(prompt)).actors if one.id == who)
    assert (actor.deed, actor.posture, actor.where) == (deed, posture, where)


@pytest.mark.parametrize(
    ("prompt", "deed", "mood"),
    [
        ("Her hand flew to her mouth.", "cover_mouth", None),
        ("Maria's hand flies to Maria's mouth.", "cover_mouth", None),
        ("Tears ran down Mia's cheeks.", "cry", None),
        ("Tom's hands were trembling.", "shiver", "afraid"),
        ("Tom's ears turned red.", "stand", "ashamed"),
        ("Mia's eyes widened.", "stand", "surprised"),
    ],
)
def test_what_is_told_of_a_body_is_done_or_felt_by_whose_it_is(prompt: str, deed: str, mood: str | None) -> None:
    actor = only(scene_of(request(prompt)))
    assert (actor.deed, actor.mood) == (deed, mood)


def test_clothes_are_on_those_who_wear_them() -> None:
    tied = scene_of(request("Jana tied an apron over her dress."))
    assert (only(tied).deed, only(tied).look.features, tied.things) == ("wear", ("apron",), ())
    fitted = scene_of(request("Ada pulled the gown over Nora's jeans."))
    assert deeds(fitted) == {"ada": "fit>nora", "nora": "stand"}
    assert {actor.id: actor.look.features for actor in fitted.actors} == {"ada": (), "nora": ("dress",)}
    running = scene_of(request("Tom ran in wearing his yellow slippers."))
    assert (only(running).deed, running.things) == ("run", ())
    seen = scene_of(request("Tom looked at Ben's torn trousers."))
    assert deeds(seen) == {"tom": "look>ben", "ben": "stand"}
    assert seen.things == ()
    assert {actor.id: actor.states for actor in seen.actors} == {"tom": (), "ben": ("torn",)}


def test_what_somebody_wears_and_has_along_is_on_them_or_in_the_hand() -> None:
    hat = scene_of(request("The man sits with the hat on the bench. The man wears the hat."))
    assert (only(hat).look.features, [thing.word for thing in hat.things]) == (("hat",), ["bench"])
    shoe = scene_of(request("The man runs with one shoe. The man wears the one shoe."))
    assert [thing.held_by for thing in shoe.things] == ["man"]  # of which nobody sees that it is worn
    own = scene_of(request("The girl's glove touches the melon. The girl stands by."))
    assert own.actors[0].look.features == ("gloves",)
    tie = scene_of(request("The man drinks tea. The man wears a tie."))
    assert [(thing.at, thing.where) for thing in tie.things if thing.word == "tie"] == [("man", "neck")]
    lamp = scene_of(request("The man kneels with a hammer beneath the clock."))
    assert {thing.word: thing.held_by for thing in lamp.things} == {"hammer": "man", "clock": None}
    ring = scene_of(request("The boy comes with a ring in a basket."))
    assert {thing.word: (thing.at is not None, thing.held_by) for thing in ring.things} == {
        "ring": (True, None), "basket": (False, "boy"),
    }  # fmt: skip


def test_what_is_between_has_something_on_each_side() -> None:
    drum = scene_of(request("The drum stands between the two beds."))
    assert [(one.word, one.count, one.where, one.at is None) for one in drum.things] == [
        ("drum", 1, "beside", False), ("bed", 1, "on", True), ("bed", 1, "beside", False),
    ]  # fmt: skip
    cook = scene_of(request("The cook stands between the fridge and the table."))
    assert {one.word: (one.at, one.where) for one in cook.things} == {
        "fridge": (None, "on"),
        "table": ("cook", "before"),
    }
    assert only(cook).where == "between"


@pytest.mark.parametrize(
    ("prompt", "features"),
    [
        ("The old lady stands at the gate in the red shawl.", ("scarf:#d8584f",)),
        ("The neighbours come out in coats and pyjamas.", ("coat", "pyjamas")),
        ("He found a key in the coat.", ()),
    ],
)
def test_people_have_on_what_they_are_in(prompt: str, features: tuple[str, ...]) -> None:
    assert only(scene_of(request(prompt))).look.features == features


def test_a_thing_has_the_colour_that_is_told() -> None:
    def shades(prompt: str) -> list[str | None]:
        return [thing.colour for thing in scene_of(request(prompt)).things]

    assert shades("Halima held her green silk dress.") == ["#7fae6a"]
    assert shades("Lena took a pair of bright orange glasses.") == ["#e8924a"]
    assert shades("Lena ate the white bread.") == shades("Lena held the ball.") == [None]
    plain, red = (frame_scene(scene_of(request(f"Mia held a {one}bucket.")), 384, 256, 1) for one in ("", "red "))
    assert plain.svg != red.svg


@pytest.mark.parametrize(
    ("prompt", "deed", "word"),
    [
        ("Tom lifted the lid.", "lift_lid", "lid"),
        ("Tom split the slab.", "break_stone", "slab"),
        ("Laila hid the kite behind her back.", "hide_back", "kite"),
        ("Wei banged on the pot.", "bang", "pot"),
        ("Tom filled in the form.", "write", "form"),
        ("Mia wrote a word on the calendar.", "write_up", "calendar"),
        ("Ben swept the cup onto the ground.", "knock_off", "cup"),
        ("Mia waited with her phone.", "wait", "phone"),
    ],
)
def test_a_thing_is_used_as_told(prompt: str, deed: str, word: str) -> None:
    scene = scene_of(request(prompt))
    assert only(scene).deed == deed
    assert [(thing.word, thing.held_by) for thing in scene.things] == [(word, only(scene).id)]


def test_two_who_exchange_have_one_each_and_a_small_thing_is_in_its_owners_hand() -> None:
    scene = scene_of(request("Tom and Ben exchanged their bags."))
    assert {thing.held_by for thing in scene.things} == {"tom", "ben"}
    assert deeds(scene) == {"tom": "exchange>ben", "ben": "exchange>tom"}
    (phone,) = scene_of(request("The passengers stared at their phones and complained.")).things
    assert phone.held_by == "passengers"
    assert only(scene_of(request("The children grew."))).deed == "stand"


def test_what_is_had_while_resting_is_in_the_hand_and_what_is_bitten_stays_on() -> None:
    resting = scene_of(request("Ada sits with a cup of tea. Ada watches the rain."))
    assert [(thing.word, thing.held_by) for thing in resting.things] == [("cup of tea", "ada")]
    assert scene_of(request("The dog bites into the tall man's trousers.")).things == ()
    ball = scene_of(request("The ball bounces off Ben. The ball hits Ada on the head."))
    assert [(thing.word, thing.at) for thing in ball.things] == [("ball", "ada")]


def test_those_who_pass_things_along_have_one_each() -> None:
    scene = scene_of(request("Ada and Ben pass up a box and a jar. Ada and Ben form a chain with Eva."))
    assert {thing.held_by for thing in scene.things} == {"ada", "ben"}


def test_the_tables_name_only_what_exists() -> None:
    text = resources.files("katha_sketch.drawing.scenes").joinpath("senses.yaml").read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    meant = {name for row in data["by_object"].values() for name in row.values()}
    meant |= set(data["verbs"]) | set(data["by_state"]) | set(data["implied"])
    assert meant <= set(deed_ids())
    assert set(data["implied"].values()) | set(data["places"]) <= set(place_ids())


def test_what_is_denied_or_only_said_is_not_drawn() -> None:
    assert deeds(scene_of(request("The girl did not run."))) == {"girl": "stand"}
    assert deeds(scene_of(request('"The dog ate the cake," said Tom.'))) == {"tom": "talk"}
    assert "ship" not in words(scene_of(request("The captain said that the ship had sunk.")))
    assert only(scene_of(request('The ghost said "Boo!"'))).id == "ghost"


@pytest.mark.parametrize(
    ("prompt", "mood"),
    [
        ("Ben was happy.", "happy"),
        ("The sad girl sat down.", "sad"),
        ("The sly fox smiled.", "sly"),
        ("Tom cried.", "sad"),
        ("The man shouted angrily.", "angry"),
        ("Ben was not afraid.", None),
    ],
)
def test_feelings_are_moods(prompt: str, mood: str | None) -> None:
    assert only(scene_of(request(prompt))).mood == mood


@pytest.mark.parametrize(
    ("prompt", "time", "weather"),
    [
        ("At night a boy walked in the forest.", "night", None),
        ("In the forest by day. A fox runs.", "day", None),
        ("The boy walked in the snow.", None, "snow"),
        ("It rained, and the dog ran.", None, "rain"),
        ("In winter the ant sat in the meadow.", None, "snow"),
    ],
)
def test_time_and_weather_are_the_texts(prompt: str, time: str | None, weather: str | None) -> None:
    scene = scene_of(request(prompt))
    assert (scene.time, scene.weather) == (time, weather)


def test_the_panels_fields_go_before_the_text() -> None:
    plain = request("The girl read a book in the kitchen at night.")
    assert (scene_of(plain).setting, scene_of(plain).time, scene_of(plain).shot) == ("kitchen", "night", None)
    told = replace(
        plain, place="the old library", time_of_day="early morning", shot_size="Close-up", must_show=("lamp",)
    )
    scene = scene_of(told)
    assert (scene.setting, scene.time, scene.shot) == ("library", "dawn", "close")
    assert words(scene) - words(scene_of(plain)) == {"lamp"}


def test_the_prompt_may_name_the_shot() -> None:
    assert scene_of(request("Wide shot of a lion in the desert")).shot == "wide"
    assert scene_of(request("Close-up of a girl in the kitchen.")).shot == "close"


def test_a_character_is_who_the_plan_says() -> None:
    ada = Character(name="Ada", kind="old woman", appearance="an old woman in a red coat with white hair")
    actor = only(scene_of(request("Ada ate an apple.", characters=(ada,))))
    assert (actor.look.base, actor.look.features, actor.look.hair) == ("old_woman", ("coat:#d8584f",), "#f6f2ea")
    assert only(scene_of(request("Ada ate an apple."))).look.base == "person"
    he = Character(name="Rex", kind="dog", appearance="a small brown dog")
    alone = only(scene_of(request("He ran.", characters=(he,))))
    assert (alone.id, alone.concept, alone.attributes) == ("rex", "dog", ("small", "brown"))


def test_characters_of_the_panel_are_in_the_picture_though_not_in_the_prompt() -> None:
    cook = Character(name="Bo", kind="cook", appearance="a cook")
    assert deeds(scene_of(request("A cat slept.", characters=(cook,)))) == {"cat": "sleep", "bo": "stand"}


@pytest.mark.parametrize(
    ("prompt", "base"),
    [("Mrs Lee sang.", "woman"), ("My grandfather sang.", "old_man"), ("The boy sang.", "boy"), ("Kim sang.", "person"),
     ("The baby slept.", "baby"), ("A little girl sang.", "girl"), ("Her mother sang.", "woman")],
)  # fmt: skip
def test_sex_and_age_are_the_texts_and_unknown_stays_neutral(prompt: str, base: str) -> None:
    assert {actor.look.base for actor in scene_of(request(prompt)).actors} == {base}


def test_animals_with_a_rig_use_it_and_other_actors_their_pictogram() -> None:
    assert only(scene_of(request("The lion roared."))).concept == "lion"
    assert only(scene_of(request("The robot danced."))).pictogram == "robot"
    assert only(scene_of(request("The whale swam."))).kind == "pictogram"


def test_the_same_name_looks_the_same_in_every_frame() -> None:
    first, second = only(scene_of(request("Kim ran."))), only(scene_of(request("Kim ate an apple.")))
    assert (first.id, first.look) == (second.id, second.look)


def test_what_cannot_be_drawn_is_named_and_stood_in_for() -> None:
    told = tell(request("The girl carried an astrolabe."))
    (thing,) = told.scene.things
    assert thing.pictogram is None
    assert told.not_drawn == ("astrolabe",)
    assert tell(request("The girl perambulated in the park.")).not_drawn == ("perambulate",)
    assert tell(request("The girl ran.", shot_angle="low angle")).not_drawn == ("low angle",)
    assert tell(request("The girl ran.", place="the stratosphere bureau")).not_drawn == ("the stratosphere bureau",)
    assert tell(request("The girl kicked the ball.")).not_drawn == ()


def test_the_renderer_tells_what_it_cannot_draw_once() -> None:
    renderer = SketchRenderer()
    list(renderer.render_board([request("The girl carried an astrolabe.")]))
    (remark,) = renderer.remarks()
    assert "astrolabe" in remark
    list(renderer.render_board([request("The girl carried an astrolabe.", seed=8)]))
    assert not renderer.remarks()


def test_a_bridge_is_drawn_as_a_scene_is() -> None:
    asked, renderer = request("The girl kicked the ball."), SketchRenderer()
    assert renderer.insert_frame(replace(asked, kind="bridge"), BoardContext((), (), 0)) == png(asked)


def test_seeds_and_fields_change_the_picture_and_loose_frames_otherwise() -> None:
    asked = request("The girl kicked the ball in the park.")
    frames = {png(replace(asked, seed=seed)) for seed in range(4)}
    assert len(frames) == 4
    assert png(asked) == png(asked)
    assert png(replace(asked, place="the moon")) != png(asked)
    assert png(asked, "loose") != png(asked)
    assert png(asked, "ink") != png(asked)


def test_keys_of_renderers_that_do_not_draw_the_fields_stay() -> None:
    plain, told = request("A fox."), request("A fox.", place="forest", must_show=("tree",))
    assert _dump(told, False) == _dump(plain, False) == _dump(plain, True)
    assert _dump(told, True)["place"] == "forest"


@pytest.mark.parametrize(
    ("words", "features"),
    [
        ("a girl in a yellow raincoat and glasses", ("coat:#f0bf4c", "glasses")),
        ("a woman in a long white dress", ("long_dress:#f6f2ea",)),
        ("a teenage boy with red hair and headphones", ("headphones",)),
        ("an old man with a white beard", ("beard:#f6f2ea",)),
        ("a fat man with a moustache and a top hat", ("fat", "moustache", "top_hat")),
        ("a person with a red scarf", ("scarf:#d8584f",)),
        ("the winner", ()),
    ],
)
def test_appearance_becomes_clothes_and_build(words: str, features: tuple[str, ...]) -> None:
    assert features_of(words) == features


def test_what_somebody_wears_is_drawn_on_the_body() -> None:
    scene = scene_of(request("Nadia wears a red helmet."))
    assert "helmet:#d8584f" in only(scene).look.features
    assert not scene.things


def test_a_name_alone_is_one_person_and_a_crowd_is_many() -> None:
    ines = Character(name="Ines", kind="woman", appearance="a woman")
    assert only(scene_of(request("Ines laughs.", characters=(ines,)))).count == 1
    assert only(scene_of(request("The crowd cheered."))).count == 8


def test_what_is_told_of_stands_in_the_bubble_and_not_beside_it() -> None:
    scene = scene_of(request("Hana tells Tom a story about a ship."))
    assert [actor.says for actor in scene.actors] == ["ship", None]
    assert not words(scene)


def test_what_is_drawn_is_on_the_sheet_and_what_is_put_in_the_oven_has_an_oven() -> None:
    scene = scene_of(request("Meera draws an elephant."))
    assert (only(scene).deed, words(scene)) == ("draw", {"elephant"})
    scene = scene_of(request("Mina puts the cake in the oven."))
    assert (only(scene).deed, words(scene), scene.setting) == ("put_in", {"cake", "oven"}, "kitchen")
    scene = scene_of(request("Black smoke comes out of the oven."))
    assert {(thing.word, thing.where if thing.at else "") for thing in scene.things} == {
        ("smoke", "above"),
        ("oven", ""),
    }


def test_the_sheet_of_characters_goes_before_a_wrong_reading_of_the_sentence() -> None:
    peter = Character(name="Peter", kind="teenager", appearance="a male teenager")
    woman = Character(name="woman", kind="woman", appearance="a woman")
    scene = scene_of(request("Peter offers the seat to the woman. Peter is ashamed.", characters=(peter, woman)))
    assert {actor.id: actor.look.base for actor in scene.actors} == {"peter": "teen_boy", "woman": "woman"}


def test_somebody_in_a_wheelchair_sits_in_it_whatever_they_do() -> None:
    nadia = Character(name="Nadia", kind="woman", appearance="a woman in a wheelchair")
    request = FrameRequest("Nadia throws the ball.", 1, 400, 300, characters=(nadia,))
    scene = scene_of(request)
    assert "wheelchair" in scene.actors[0].look.features
    sprites = frame_scene(scene, 400, 300, 1).sprites
    assert "nadia:manual-wheelchair" in {sprite.id for sprite in sprites}


@pytest.mark.parametrize(
    ("prompt", "deed", "things"),
    [
        ("Jonas plays the piano.", "play_piano", ["piano"]),
        ("Jonas sits down at the piano.", "play_piano", ["piano"]),
        ("Priya irons the blouse.", "iron", ["blouse"]),
        ("The girl takes the chess knight.", "take", ["chess knight"]),
    ],
)
def test_key_things_are_there_with_who_uses_them(prompt: str, deed: str, things: list[str]) -> None:
    scene = scene_of(FrameRequest(prompt, 1, 400, 300))
    assert scene.actors[0].deed == deed
    assert [thing.word for thing in scene.things] == things


def test_a_photo_of_somebody_is_a_photo() -> None:
    scene = scene_of(FrameRequest("Ana smiles.", 1, 400, 300, must_show=("photo of the wife",)))
    assert [thing.word for thing in scene.things] == ["photo"]


@pytest.mark.parametrize(
    ("prompt", "pictogram"),
    [
        ("Anna buys a bag of coffee.", "coffee_bag"),
        ("Ben opens the box of matches.", "matchbox"),
        ("Mia eats two slices of bread.", "toast_slice"),
        ("The man drinks from a bottle of water.", "water_bottle"),
        ("Lena holds a piece of paper.", "page-facing-up"),
        ("A small hill of black crumbs falls out.", "crumbs"),
    ],
)
def test_a_measure_is_its_own_picture_and_a_hill_of_crumbs_is_crumbs(prompt: str, pictogram: str) -> None:
    scene = scene_of(FrameRequest(prompt, 1, 400, 300))
    assert [(thing.pictogram, thing.count) for thing in scene.things][:1] == [
        (pictogram, 1 if pictogram != "toast_slice" else scene.things[0].count)
    ]
    assert len(scene.things) == 1
    assert scene.setting not in ("river", "mountain", "hill")


@pytest.mark.parametrize(
    ("prompt", "vessel", "content"),
    [
        ("The girl carries a basket of apples.", "basket", "red-apple"),
        ("The girl carries a crate of oranges.", "crate", "tangerine"),
        ("The girl carries a sack of potatoes.", "flour", "potato"),
    ],
)
def test_what_is_told_to_be_in_a_vessel_lies_in_it(prompt: str, vessel: str, content: str) -> None:
    things = {thing.pictogram: thing for thing in scene_of(FrameRequest(prompt, 1, 400, 300)).things}
    assert set(things) == {vessel, content}
    assert things[content].at == things[vessel].id


@pytest.mark.parametrize(
    ("prompt", "drawn"),
    [
        ("Anna opens the fridge door.", ["fridge"]),
        ("Anna pulls the string of the kite.", ["kite"]),
        ("Anna cleans the guitar's string.", ["guitar"]),
        ("Anna holds the picture rail.", []),
        ("Anna lights the gas ring.", ["hob"]),
        ("Anna cleans the bath ring.", []),
        ("Anna leans on the hand rail.", ["handrail"]),
        ("Anna winds a reel of thread.", ["thread_reel"]),
        ("Anna cleans the wheels of the suitcase.", ["luggage"]),
        ("Anna tears two sheets of paper.", ["page-facing-up"]),
    ],
)
def test_a_part_is_drawn_as_its_whole_and_a_compound_as_what_it_is(prompt: str, drawn: list[str]) -> None:
    assert [thing.pictogram for thing in scene_of(FrameRequest(prompt, 1, 400, 300)).things] == drawn


def test_what_a_panel_has_to_show_is_no_second_part_or_measure() -> None:
    for prompt, shown in (
        ("Anna cuts two slices of bread.", "two slices of bread"),
        ("Anna pulls the string of the kite.", "string"),
    ):
        (thing,) = scene_of(FrameRequest(prompt, 1, 400, 300, must_show=(shown,))).things
        assert thing.pictogram in ("toast_slice", "kite")


def test_what_is_in_the_sky_is_seen_through_a_window_from_a_room() -> None:
    (thing,) = scene_of(FrameRequest("Anna looks at the rainbow.", 1, 400, 300, place="kitchen")).things
    assert (thing.pictogram, thing.shows, thing.stands) == ("window", "rainbow", "wall")


def test_words_of_a_place_tell_none_before_another_noun() -> None:
    assert place_of("bath towel") is None
    assert place_of("hot water bottle") is None
    assert place_of("the bath") is not None
    assert scene_of(FrameRequest("Anna bends the iron bar.", 1, 400, 300)).setting is None
    assert scene_of(FrameRequest("Anna leans against the wall.", 1, 400, 300, place="kitchen")).things == ()


def test_what_is_no_thing_has_no_shape_and_its_word_is_kept() -> None:
    told = tell(FrameRequest("The man looks at the fjord slope.", 1, 400, 300))
    assert [thing for thing in told.scene.things if thing.pictogram is None] == []


def test_nobody_stands_on_an_envelope_or_is_a_dish_because_a_plan_says_so() -> None:
    scene = scene_of(FrameRequest("The old woman reads the name on the envelope.", 1, 400, 300))
    assert (scene.actors[0].at, scene.actors[0].target) == (None, scene.things[0].id)
    miss = Character(name="Miss Okafor", kind="lunch", appearance="a female lunch")
    scene = scene_of(FrameRequest("Miss Okafor laughs.", 1, 400, 300, characters=(miss,)))
    assert [actor.kind for actor in scene.actors] == ["person"]


def test_what_lies_about_indoors_is_on_a_table_and_before_the_feet_of_a_broad_group() -> None:
    def sprites(prompt: str, place: str) -> dict[str, Any]:
        scene = scene_of(FrameRequest(prompt, 1, 768, 512, place=place, must_show=("telephone",)))
        return {sprite.id: sprite for sprite in frame_scene(scene, 768, 512, 1).sprites}

    inside = sprites("The boy laughs.", "the kitchen")
    assert inside["shown telephone"].y == inside["shown telephone table"].box[1] + 1
    assert "shown telephone table" not in sprites("The boy laughs.", "the park")
    crowd = sprites("The children laugh. The men laugh. The women laugh.", "the kitchen")
    people = [one.box for one in crowd.values() if one.acts]
    assert min(box[0] for box in people) < crowd["shown telephone"].x < max(box[2] for box in people)


def test_who_does_more_than_sit_in_a_car_is_beside_it() -> None:
    at = {word: scene_of(FrameRequest(f"The man {word}.", 1, 400, 300, place="the car")) for word in ("sings", "runs")}
    assert {word: scene.setting for word, scene in at.items()} == {"sings": "car", "runs": "street"}


def test_things_without_a_place_are_at_home_somewhere() -> None:
    assert scene_of(FrameRequest("The lamp stands beside the table.", 1, 400, 300)).setting == "living_room"


@pytest.mark.parametrize(
    ("phrase", "place"),
    [
        ("the bus", "bus"),
        ("the bus stop", "bus_stop"),
        ("outside the bus", "street"),
        ("behind the wheel of the car", "car"),
        ("the taxi rank", "street"),
        ("the ferry", "ship_deck"),
        ("near the river", "river"),
    ],
)
def test_who_stands_beside_a_vehicle_is_not_in_it(phrase: str, place: str) -> None:
    assert place_of(phrase) == place


@pytest.mark.parametrize(
    ("word", "pictogram"),
    [
        ("dolphin", "dolphin"),
        ("paper plane", "paper_plane"),
        ("paper boat", "paper_boat"),
        ("plaster", "plaster"),
        ("washing machine", "washing_machine"),
        ("bunch of keys", "key_ring"),
        ("fuse box", "fuse_box"),
        ("number plate", "number_plate"),
        ("conveyor belt", "conveyor_belt"),
        ("piggy bank", "piggy_bank"),
        ("violin case", "instrument_case"),
        ("hot air balloon", "hot_air_balloon"),
        ("tennis ball", "tennis_ball"),
        ("remote control", "remote"),
        ("boarding pass", "boarding_pass"),
        ("steering wheel", "steering_wheel"),
        ("water bottle", "water_bottle"),
        ("stool", "stool"),
        ("cuckoo clock", "cuckoo_clock"),
        ("tobacco pipe", "tobacco_pipe"),
        ("seal", "seal"),
    ],
)
def test_a_word_is_drawn_as_itself_and_not_as_its_kin(word: str, pictogram: str) -> None:
    found = noun_of(word)
    assert (concept_of(word), found.pictogram if found else None) == (None, pictogram)


@pytest.mark.parametrize(
    ("sentence", "pictogram"),
    [
        ("The man smokes a pipe.", "tobacco_pipe"),
        ("The plumber repaired the pipe.", "pipe"),
        ("The girl puts the knife on the board and chops an onion.", "chopping_board"),
    ],
)
def test_a_noun_is_drawn_as_what_the_words_beside_it_make_it(sentence: str, pictogram: str) -> None:
    words = {thing.pictogram for thing in tell(request(sentence)).scene.things}
    assert pictogram in words


@pytest.mark.parametrize(
    ("sentence", "place"),
    [
        ("Farid opened the cellar door.", "cellar"),
        ("She sat on the kitchen floor.", "kitchen"),
        ("The wolf howled at the moon.", None),
        ("The girl looked out at the sea.", None),
        ("The astronaut jumped on the moon.", "moon"),
    ],
)
def test_a_part_names_its_room_and_what_is_looked_at_is_not_where_one_is(sentence: str, place: str | None) -> None:
    assert tell(request(sentence)).scene.setting == place


def test_a_noise_that_wakes_somebody_is_no_animal_and_a_pair_is_drawn_once() -> None:
    assert not [actor for actor in tell(request("The noise woke the street.")).scene.actors if "noise" in actor.id]
    worn = tell(request("Yasmin put on her swimming goggles.")).scene.things
    assert [thing.count for thing in worn] == [1]


@pytest.mark.parametrize(
    ("sentence", "thing", "where", "at"),
    [
        ("A huge wave swallows the rowing boat.", "rowing boat", "in", "wave"),
        ("An avalanche buries the tent.", "tent", "in", "avalanche"),
        ("Lightning strikes the mast.", "lightning", "above", "mast"),
        ("The water sweeps the raft away.", "raft", "in", "wave"),
    ],
)
def test_what_a_force_of_nature_does_something_to_is_in_it(sentence: str, thing: str, where: str, at: str) -> None:
    things = {one.word: one for one in scene_of(request(sentence)).things}
    assert (things[thing].where, things[thing].at) == (where, things[at].id)


def test_who_is_thrown_by_a_blast_falls_beside_it_and_who_loses_the_ground_falls_into_a_hole() -> None:
    scene = scene_of(request("The explosion throws the guard into the air."))
    [guard], [blast] = scene.actors, scene.things
    assert (guard.deed, guard.where, guard.at, blast.pictogram) == ("fall", "beside", blast.id, "explosion")
    scene = scene_of(request("The floor gives way under the boy."))
    [boy], [gap] = scene.actors, scene.things
    assert (boy.deed, boy.where, boy.at, gap.pictogram) == ("fall", "in", gap.id, "hole")


@pytest.mark.parametrize(
    ("sentence", "name", "states"),
    [
        ("The door creaks open.", "door", ("open",)),
        ("The soldier blows up the bridge.", "bridge", ("exploded",)),
        ("The barn is on fire.", "barn", ("burning",)),
    ],
)
def test_what_acts_by_itself_shows_what_has_become_of_it(sentence: str, name: str, states: tuple[str, ...]) -> None:
    assert {one.word: one.states for one in scene_of(request(sentence)).things}[name] == states


@pytest.mark.parametrize(
    ("sentence", "name", "deed"),
    [
        ("The knight rides into the valley.", "knight", "gallop"),
        ("The cowboy gallops beside the train.", "cowboy", "gallop"),
        ("The girl rides to the shop.", "girl", "ride"),
        ("The bandit fires at the sheriff.", "bandit", "fire_gun"),
        ("The acrobat swings across the river on a rope.", "acrobat", "hang"),
        ("The prisoner slides into the trench.", "prisoner", "fall"),
        ("The climber drives the axe into the ice.", "climber", "chop_wood"),
        ("Tom lifts one hand.", "tom", "wave"),
        ("Tom steers the sled onto the ice.", "tom", "ride"),
        ("Tom steers the boat to the shore.", "tom", "sail"),
        ("Tom rises from the water.", "tom", "stand"),
        ("Jonas hangs below Marta.", "jonas", "hang"),
        ("Rosa throws Benno over the shoulder.", "rosa", "carry"),
    ],
)
def test_adventures_have_their_deeds(sentence: str, name: str, deed: str) -> None:
    assert {one.id: one.deed for one in scene_of(request(sentence)).actors}[name] == deed


@pytest.mark.parametrize(
    ("name", "feature"),
    [("the pirate", "pirate"), ("Private Dunn", "soldier"), ("Inspector Hale", "detective"), ("the queen", "sovereign"),
     ("the giant", "giant"), ("Sir Aldous", "knight"), ("the countess", "noble")],
)  # fmt: skip
def test_a_trade_or_title_is_worn(name: str, feature: str) -> None:
    assert feature in features_of(name)


@pytest.mark.parametrize(
    ("word", "pictogram"),
    [("rifle", "rifle"), ("barbed wire", "barbed_wire"), ("mast", "mast"), ("skeleton", "skeleton"), ("wreck", "wreck"),
     ("carriage", "coach_carriage"), ("flower bed", "flower_bed"), ("creature", "beast"), ("explosion", "explosion")],
)  # fmt: skip
def test_adventures_have_their_things(word: str, pictogram: str) -> None:
    noun = noun_of(word)
    assert noun is not None
    assert noun.pictogram == pictogram


def test_nobody_is_in_space_without_a_suit() -> None:
    [ito] = scene_of(request("Ito tumbles through the dark.", place="space")).actors
    assert "spaceman" in ito.look.features


@pytest.mark.parametrize(
    ("sentence", "name", "feature"),
    [
        ("The old man sits down in the dusty boots.", "old man", "shoes"),
        ("The girl dries the fingers on the apron.", "girl", "apron"),
        ("The boy hides under the jumper.", "boy", "top"),
        ("The boy walks. The boy wears the brown coat.", "boy", "coat:#8a5a3c"),
        ("The boy runs. The boy wears the gas mask.", "boy", "gas_mask"),
        ("The old lady sits with a wet towel in a wheelchair.", "old lady", "wheelchair"),
    ],
)
def test_clothes_at_which_something_is_done_are_worn(sentence: str, name: str, feature: str) -> None:
    scene = scene_of(request(sentence))
    assert feature in next(one for one in scene.actors if one.id == name).look.features
    assert not {"boot", "apron", "jumper", "coat", "mask", "wheelchair"} & {one.word for one in scene.things}


def test_below_whose_boots_something_is_she_is_there() -> None:
    scene = scene_of(request("The Earth turns below the pilot's boots."))
    assert "pilot" in {one.id for one in scene.actors}
    assert not [one for one in scene.things if one.kind == "clothing"]


def test_who_is_gone_is_not_drawn() -> None:
    assert [one.id for one in scene_of(request("Martha lights the candle. The dog is gone.")).actors] == ["martha"]


def test_a_picture_shows_what_it_is_of() -> None:
    scene = scene_of(request("Priya holds a drawing of a red boat."))
    (drawing,) = scene.things  # and no boat
    assert drawing.shows == "wooden_rowboat"
    (photograph,) = scene_of(request("Priya holds the photograph of the sons.")).things
    assert photograph.shows == "man"
    boat = replace(photograph, shows="canoe")
    frames = [frame_scene(replace(scene, things=(one,)), 256, 256, 1).svg for one in (photograph, boat)]
    assert frames[0] != frames[1]


def test_what_is_cried_into_is_in_the_hand() -> None:
    scene = scene_of(request("Ada weeps into a handkerchief."))
    assert [(one.word, one.held_by) for one in scene.things] == [("handkerchief", "ada")]


def test_a_piece_of_glass_is_no_drinking_glass() -> None:
    scene = scene_of(request("Ada picks up a piece of glass.", must_show=("piece of glass",)))
    assert [one.pictogram for one in scene.things] == ["shard"]


def test_a_team_captain_is_no_soldier() -> None:
    captain = Character(name="team captain", kind="team captain", appearance="a team captain")
    for known in ((captain,), ()):
        scene = scene_of(request("The team captain throws the ball.", characters=known))
        assert scene.actors[0].look.features == ("footballer",)
        assert scene.actors[0].look.outfit is None


def test_a_plural_of_two_words_is_looked_up_whole() -> None:
    scene = scene_of(request("Two construction cranes stand in the harbour."))
    assert not scene.actors
    assert [one.pictogram for one in scene.things] == ["stage_crane"]


def test_several_small_things_share_one_table() -> None:
    scene = scene_of(request("In the kitchen, Ada talks to Ben.", must_show=("cups", "spoon")))
    tables = [one.id for one in arrange(scene, Random(1)) if one.id.endswith(" table")]
    assert len(tables) == 1


def test_who_answers_the_phone_has_one_and_does_not_speak_of_it() -> None:
    scene = scene_of(FrameRequest("Marta answers the phone.", 1, 768, 512, place="the kitchen", must_show=("phone",)))
    (marta,) = scene.actors
    assert (marta.deed, marta.says, scene.things) == ("phone", None, ())


def test_who_speaks_while_doing_something_else_is_seen_to_speak_to_whom_it_is_said() -> None:
    scene = scene_of(request("Hugo hands the ball to Ida. Hugo talks to Ida."))
    hugo = next(one for one in scene.actors if one.id == "hugo")
    assert (hugo.deed, hugo.voice, hugo.tells) == ("give", True, "ida")
    silent = replace(scene, actors=tuple(replace(one, voice=False) for one in scene.actors))
    assert frame_scene(scene, 256, 256, 1).svg != frame_scene(silent, 256, 256, 1).svg
    scene = scene_of(request("Zoe holds up the kitten. Zoe talks to Ben. Mia apologises to Ben."))
    told = {one.id: (one.deed, one.voice, one.tells) for one in scene.actors}
    assert told["zoe"] == ("show", True, "ben")
    assert told["mia"] == ("apologise", True, "ben")
    assert not any(one.voice for one in scene_of(request("Zoe does not answer Ben.")).actors)


def test_a_listener_stands_before_who_speaks() -> None:
    for seed in range(4):
        sprites = {
            one.id: one
            for one in arrange(scene_of(request("Zoe shows Tom a ring. Zoe talks to Ida.")), Random(1), seed=seed)
        }
        zoe, ida = sprites["zoe"], sprites["ida"]
        assert (ida.x - zoe.x) * zoe.facing > 0
        assert ida.facing == -zoe.facing


@pytest.mark.parametrize(
    ("prompt", "shown"),
    [
        ("Ben winks at Ida.", "wink"),
        ("Ben closes his eyes.", "close_eyes"),
        ("Ben puts the finger to the lips.", "hush"),
        ("Ben puts the hands over the ears.", "cover_ears"),
        ("Ben folds the arms.", "cross_arms"),
        ("Ben glances at the watch.", "check_watch"),
        ("Ben bursts into tears.", "cry"),
        ("Ben is cold.", "shiver"),
        ("Ben feels ill.", "ill"),
        ("Ben is hungry.", "hungry"),
        ("Ben has a headache.", "headache"),
        ("Ben is in pain.", "hurt"),
    ],
)
def test_gestures_and_what_a_body_feels(prompt: str, shown: str) -> None:
    assert scene_of(request(prompt)).actors[0].deed == shown


def test_to_whom_something_is_done_feels_it_and_moods_have_a_face_of_their_own() -> None:
    moods = {one.id: one.mood for one in scene_of(request("Ida is shocked. The dog frightens Ben.")).actors}
    assert (moods["ida"], moods["ben"]) == ("surprised", "afraid")
    (tired,) = scene_of(request("Ida is tired.")).actors
    drawn = {
        mood: frame_scene(Scene(actors=(replace(tired, mood=mood),)), 256, 256, 1).svg
        for mood in ("tired", "calm", "bored", None)
    }
    assert len({*drawn.values()}) == len(drawn)


def test_what_somebody_thinks_of_is_in_the_frame() -> None:
    bubbles = [one for one in arrange(scene_of(request("Ben is hungry.")), Random(1)) if one.id == "thought"]
    assert [one.key for one in bubbles] == [True]


def test_who_is_written_to_is_elsewhere_and_who_is_waited_for_is_thought_of() -> None:
    assert [one.id for one in scene_of(request("Jan writes a letter to Ida.")).actors] == ["jan"]
    (henry, _) = scene_of(request("Henry waits for Ida at the station.")).actors
    assert (henry.deed, henry.target) == ("await", "ida")


def test_who_plays_a_board_game_with_somebody_has_them_at_the_board() -> None:
    deeds = {one.id: (one.deed, one.target) for one in scene_of(request("Carl plays chess with Ida.")).actors}
    assert deeds["ida"] == ("play_board", "carl")


def test_who_stands_in_front_of_others_is_on_nobodys_shoulder() -> None:
    scene = scene_of(request("Ida stands in front of the students."))
    assert next(one for one in scene.actors if one.id == "ida").where == "before"


def test_whom_somebody_is_afraid_of_is_there() -> None:
    assert {one.id for one in scene_of(request("Ida is scared of the dog.")).actors} == {"ida", "dog"}


@pytest.mark.parametrize(
    ("sentence", "name"),
    [
        ("Anna pulled out a torch.", "produce"),
        ("Anna shone her torch into the cave.", "shine"),
        ("Tom let out a cry.", "shout"),
        ("Tom gave the door a push.", "push"),
        ("Anna had a bath.", "bathe"),
        ("Anna took a step back.", "step_back"),
        ("Tom took the bow from the wall.", "carry"),
        ("Anna hit her head on the beam.", "headache"),
        ("Anna threw herself on the bed.", "lie"),
        ("Tom went up to the counter.", "walk"),
        ("Tom got up from the sofa.", "stand_up"),
        ("Anna crept past the cat.", "sneak"),
        ("Anna burst into tears.", "cry"),
        ("Tom sprang to his feet.", "stand_up"),
    ],
)
def test_a_verb_with_its_particle_noun_or_own_body_is_the_deed_that_it_means(sentence: str, name: str) -> None:
    assert {one.id: one.deed for one in scene_of(request(sentence)).actors}[sentence.split()[0].lower()] == name


def test_who_is_told_with_what_they_do_does_it() -> None:
    scene = scene_of(request("Anna stepped over the sleeping dog."))
    assert {one.id.split()[-1]: one.deed for one in scene.actors} == {"anna": "step_over", "dog": "sleep"}


def test_a_lamp_in_the_hand_has_its_light_and_what_is_let_down_its_string() -> None:
    shining, lowered = (deed(name) for name in ("shine", "lower_down"))
    body = draw_person(Look(), "Anna", shining.pose)
    torch = SceneThing("torch", "torch", "flashlight", "device", 18.0, "hand", "object")
    lit, dark = (put_thing(torch, "hand", row, body, 1) for row in (shining, replace(shining, trail=None)))
    assert lit is not None
    assert dark is not None
    assert lit.box[2] > dark.box[2] + 30
    tied, falling = (put_thing(torch, "dropped", row, body, 1) for row in (lowered, replace(lowered, trail=None)))
    assert tied is not None
    assert falling is not None
    assert tied.svg != falling.svg


def test_trades_of_people_without_a_pictogram_are_told_by_what_they_wear() -> None:
    trades = (
        "coach",
        "patient",
        "mayor",
        "tourist",
        "hiker",
        "dancer",
        "jockey",
        "worker",
        "optician",
        "barber",
        "messenger",
    )
    looks = [scene_of(request(f"The {trade} waits in the hall.")).actors[0].look.features for trade in trades]
    assert all(looks)
    assert len(set(looks)) == len(trades)
    assert [scene_of(request(f"The {one} waits in the hall.")).actors[0].kind for one in ("kid", "priest")] == [
        "person"
    ] * 2


def test_parents_are_two() -> None:
    parents = Character(name="parents", kind="parent", appearance="parents")
    (actor,) = scene_of(request("The parents wait in the hall.", characters=(parents,))).actors
    assert actor.count == 2


def test_a_feeling_that_grips_somebody_is_theirs() -> None:
    assert [one.mood for one in scene_of(request("Fear grips the soldier.")).actors] == ["afraid"]


def test_a_part_and_its_whole_are_one_thing() -> None:
    assert [one.word for one in scene_of(request("Mia peeks at the screen of her phone.")).things] == ["phone"]


@pytest.mark.parametrize(
    ("prompt", "rail"),
    [("Ben trips over the rail.", "handrail"), ("A train stops. Ben trips over the rail.", "railway-track")],
)
def test_a_rail_is_a_railway_only_where_trains_are(prompt: str, rail: str) -> None:
    assert rail in {one.pictogram for one in scene_of(request(prompt)).things}


def test_a_compartment_is_seen_from_inside() -> None:
    asked = replace(request("The compartment is dark."), place="the train")
    assert scene_of(asked).setting == "train_carriage"


def test_who_is_in_the_shade_of_a_tree_is_not_on_it() -> None:
    (tree,) = scene_of(request("The lion sleeps in the shade of a tree.")).things
    assert tree.held_by is None


@pytest.mark.parametrize(
    ("sentence", "speaker", "says"),
    [
        ("Lena shouts at her father about the bus.", "lena", "bus"),
        ("Lena talks to her father about the umbrella.", "lena", "umbrella"),
        ("Lena talks to her father about the time.", "lena", "mantelpiece-clock"),
        ("Tom hands Ben the ball. Tom talks to Ben about the birthday.", "tom", "birthday-cake"),
    ],
)
def test_what_is_spoken_of_stands_in_the_bubble_and_nowhere_else(sentence: str, speaker: str, says: str) -> None:
    scene = scene_of(FrameRequest(sentence, 1, 768, 512))
    assert {actor.id: actor.says for actor in scene.actors}[speaker] == says
    assert not any(thing.pictogram == says for thing in scene.things)


@pytest.mark.parametrize("sentence", ["He imagined a ship.", "He wanted a new bicycle."])
def test_what_is_only_thought_of_tells_no_place(sentence: str) -> None:
    assert scene_of(FrameRequest(sentence, 1, 768, 512)).setting is None


def test_a_hat_that_is_held_is_in_the_hand_and_tea_is_poured_from_a_pot() -> None:
    told = scene_of(FrameRequest("Ben holds the hat. Ben wears the hat.", 1, 768, 512))
    assert [thing.held_by for thing in told.things] == ["ben"]
    told = scene_of(FrameRequest("In the kitchen, Ben poured the tea into the cups.", 1, 768, 512))
    assert [thing.pictogram for thing in told.things if thing.role == "object"] == ["teapot"]
    told = scene_of(FrameRequest("On the bridge, Ben pointed the stick at the basket.", 1, 768, 512))
    assert {thing.word: thing.role for thing in told.things} == {"stick": "instrument", "basket": "object"}


def test_the_bubble_of_who_shouts_is_jagged() -> None:
    renderer = SketchRenderer()
    shouted, talked = (
        renderer._written(FrameRequest(f"Lena {said} her father about the bus.", 1, 768, 512))[0]
        for said in ("shouts at", "talks to")
    )
    paper = 'fill="#fffdf6"'
    assert "<ellipse" in talked
    assert talked.count(paper) != shouted.count(paper)


def test_a_room_has_walls_and_what_hangs_on_one_is_on_the_rooms() -> None:
    told = scene_of(FrameRequest("In the kitchen, Ben pushed the plug into the wall.", 1, 768, 512))
    assert [thing.word for thing in told.things] == ["plug"]
    told = scene_of(FrameRequest("In the garden, Ben sat on the wall.", 1, 768, 512))
    assert "wall" in [thing.word for thing in told.things]


@pytest.mark.parametrize(
    ("prompt", "doing", "thing"),
    [
        ("Ann runs. Ann holds the torch.", "run", "torch"),
        ("The mayor stands with a carrot. The mayor points at the tree.", "point", "carrot"),
    ],
)
def test_what_is_held_is_in_the_hand_of_who_does_something_else(prompt: str, doing: str, thing: str) -> None:
    scene = scene_of(FrameRequest(prompt=prompt, width=768, height=512, seed=42))
    (actor,) = scene.actors
    (held,) = [one for one in scene.things if one.word == thing]
    assert (actor.deed, held.held_by) == (doing, actor.id)


def test_a_game_on_a_table_that_is_named_is_drawn() -> None:
    """The table of the words takes the place of the one that belongs to the game."""
    scene = tell(FrameRequest("The two old men play chess on the stone table in the park.", 42, 768, 512)).scene
    svg = frame_scene(scene, 768, 512, 42).svg
    assert svg.count("</svg>") == 1
    assert {actor.deed for actor in scene.actors} == {"play_board"}


@pytest.mark.parametrize("carried", ["The crane carries the fish to a mountain.", "The crane carries the crab."])
def test_a_crane_that_carries_is_the_bird_unless_something_tells_of_the_machine(carried: str) -> None:
    assert "crane" in {actor.concept for actor in tell(FrameRequest(carried, 0, 768, 512)).scene.actors}


def test_a_garment_that_nobody_wears_is_a_thing() -> None:
    """A scarf that has to be seen is drawn, unless somebody in the picture has it on."""
    lying = scene_of(FrameRequest("Ada slides out of the basket.", 1, 400, 300, must_show=("scarf",)))
    assert "scarf" in {thing.word for thing in lying.things}
    worn = scene_of(FrameRequest("Ada walks. Ada wears the scarf.", 1, 400, 300, must_show=("scarf",)))
    assert "scarf" not in {thing.word for thing in worn.things}


@pytest.mark.parametrize(
    ("prompt", "seen"),
    [
        ("The animals are afraid.", [("pictogram", "", 3)]),
        ("A troop of monkeys comes.", [("figure", "monkey", 3)]),
        ("A pack of wolves runs.", [("figure", "wolf", 3)]),
        ("The crowd is afraid.", [("person", "", 8)]),
    ],
)
def test_several_animals_are_no_people(prompt: str, seen: list[tuple[str, str, int]]) -> None:
    assert [(one.kind, one.concept or "", one.count) for one in scene_of(request(prompt)).actors] == seen


def test_a_deep_well_is_not_under_water() -> None:
    assert scene_of(request("The lion looks into the deep well.")).setting != "under_water"
