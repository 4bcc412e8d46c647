"""Matching rules: the evidence rules, exact-set by the letter, lemma-set on labelled pairs of our own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from katha.errors import RecordError, UsageError
from katha.eval_bridge.matching.match import Verdict, WordRule, match, match_text, normalise
from katha.eval_bridge.matching.report import measure_pairs
from katha.eval_bridge.matching.rules import RecordingRule, scored_rule
from katha.schema import Answer, Question
from katha.schema.scores import Scores
from katha_sketch.matching.families import in_plain_words
from katha_sketch.matching.statements import _shelf
from katha_sketch.story_reader import EnglishReader

DATA = Path(__file__).parents[1] / "data"
PARSED = DATA / "lemma4_pairs.jsonl"
INDEPENDENT = PARSED.with_name("lemma4_independent_pairs.jsonl")
LAST = PARSED.with_name("lemma4_last_pairs.jsonl")
DOERS = PARSED.with_name("lemma4_doer_pairs.jsonl")
NEWEST = PARSED.with_name("lemma4_newest_pairs.jsonl")
SIXTH = PARSED.with_name("lemma4_sixth_pairs.jsonl")
SEVENTH = PARSED.with_name("lemma4_seventh_pairs.jsonl")
LABELLED = DATA / "answer_pairs.jsonl"
PAIRS = [json.loads(line) for line in (DATA / "eval_pairs.jsonl").read_text().splitlines()]


def made(**changes: object) -> Question:
    values: dict[str, object] = {
        "question_id": "q",
        "question_type": "causal",
        "question": "Why is the lion free?",
        "gold_answer": "The mouse bites the net",
        "accepted_answers": ["mouse broke net"],
    }
    return Question.model_validate(values | changes)


def said(text: str | None, condition: str = "image", status: str = "ok", **changes: object) -> Answer:
    values = {"method": "m", "judge": "j", "story_id": "s", "question_id": "q", "condition": condition}
    return Answer.model_validate(values | {"status": status, "answer": text} | changes)


def pair(item: dict[str, object]) -> bool:
    accepted = item["accepted"]
    assert isinstance(accepted, list)
    asked = made(question=item["question"], gold_answer=accepted[0], accepted_answers=accepted)
    return bool(match_text(str(item["answer"]), asked, "lemma-set").right)


def test_normalisation_is_the_papers() -> None:
    assert normalise("  The King\u2019s\twedding. ") == "the kings wedding"
    assert normalise("Self_Control") == normalise("self-control") == "selfcontrol"


def test_exact_set_takes_membership_and_nothing_else() -> None:
    assert match(said("the mouse bites the NET!"), made(), "exact-set").right
    assert match(said("Mouse broke net"), made(), "exact-set").right
    assert not match(said("The mouse bit the net"), made(), "exact-set").right
    assert match(said("The mouse bit the net"), made(), "lemma-set").right


@pytest.mark.parametrize("status", ["unclear", "omitted", "contradicted"])
def test_an_unsupported_answer_is_wrong_under_text_and_image(status: str) -> None:
    for condition in ("text", "image"):
        assert not match(said("mouse broke net", condition, evidence_status=status), made(), "exact-set").right
    assert match(said("mouse broke net", "text+image", evidence_status=status), made(), "exact-set").right


@pytest.mark.parametrize(
    ("support", "right"), [("supported", True), ("omitted", True), ("contradicted", False), ("ambiguous", False)]
)
def test_text_and_image_counts_omission(support: str, right: bool) -> None:
    row = said("mouse broke net", "text+image", image_support=support)
    assert match(row, made(), "exact-set").right is right


def test_uncertainty_is_wrong_unless_the_set_holds_it() -> None:
    for word in ("Unclear", "ambiguous."):
        assert not match(said(word), made(), "lemma-set").right
    assert match(said("Unclear"), made(accepted_answers=["unclear"]), "lemma-set").right


def test_a_choice_and_a_moral_label_are_literal() -> None:
    options = ["The mouse bites the net", "The mouse bites", "It rains", "The net is old", "Unclear"]
    assert not match(said("The mouse bites"), made(options=options, accepted_answers=["bites"]), "lemma-set").right
    moral = made(question_type="moral", gold_answer="self_control", accepted_answers=[])
    assert match(said("Self_control"), moral, "lemma-set").right
    assert not match(said("the story teaches self control"), moral, "lemma-set").right


def test_a_failure_has_no_verdict_and_rules_have_names() -> None:
    with pytest.raises(UsageError, match="no verdict"):
        match(said(None, status="refused"), made(), "exact-set")
    with pytest.raises(UsageError, match="Known: exact-set, exact-string, keyword, lemma-set"):
        match(said("x"), made(), "nearly")


@pytest.mark.parametrize("item", [item for item in PAIRS if item["label"] == "wrong"], ids=lambda item: item["answer"])
def test_lemma_set_accepts_no_wrong_answer(item: dict[str, object]) -> None:
    assert not pair(item)


def test_lemma_set_accepts_most_right_answers() -> None:
    right = [item for item in PAIRS if item["label"] == "right"]
    assert sum(pair(item) for item in right) / len(right) >= 0.75


def test_a_rule_is_measured_by_kind() -> None:
    pairs = [
        {
            **item,
            "gold_answer": item["accepted"][0],
            "accepted_answers": item["accepted"],
            "question_id": item["question"],
        }
        for item in PAIRS
    ]
    report = measure_pairs(pairs, "lemma-set")
    assert (report.n, report.false_accept, report.worst_question) == (len(PAIRS), 0.0, 0.0)
    letter = measure_pairs(pairs, "exact-set")
    assert (letter.false_accept, letter.false_reject, letter.precision) == (0.0, 1.0, None)
    assert letter.by_kind["judge"].false_reject == letter.by_kind["judge"].n
    with pytest.raises(RecordError, match="Pair 1 has no field 'label'"):
        measure_pairs([{"answer": "x"}], "exact-set")


def part(name: str) -> list[dict[str, object]]:
    """One half of our own labelled pairs; `held_out` was written before the matcher was changed and only measured."""
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["part"] == name]


@pytest.mark.parametrize("name", ["dev", "held_out"])
def test_lemma_set_meets_its_target_on_labelled_pairs(name: str) -> None:
    report = measure_pairs(part(name), "lemma-set")
    assert report.n > 100
    assert report.false_accept is not None
    assert report.false_accept <= 0.053
    assert report.false_reject is not None
    assert report.false_reject < 0.40


def test_the_rules_of_the_ablation_stand_where_they_should() -> None:
    rates = {rule: measure_pairs(part("held_out"), rule) for rule in ("exact-string", "exact-set", "keyword")}
    assert rates["exact-string"].false_accept == rates["exact-set"].false_accept == 0.0
    assert rates["exact-set"].false_reject <= rates["exact-string"].false_reject
    assert (rates["keyword"].false_accept or 0.0) > 0.2


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("The net was bitten by the mouse", True),
        ("A mouse has bitten the net", True),
        ("It bites the net", True),
        ("biting the net", True),
        ("The net bites the mouse", False),
        ("The mouse was bitten by the net", False),
        ("The lion was bitten by the mouse", False),
        ("The mouse bites it", True),
        ("The mouse bites the lion", False),
        ("not the mouse biting the net", False),
        ("The mouse refuses to bite the net", False),
    ],
)
def test_who_acts_on_whom(answer: str, right: bool) -> None:
    asked = made(question="What does the mouse do?", accepted_answers=["the mouse chews the net"])
    assert match_text(answer, asked, "lemma-set").right is right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("Based on the images, the mouse appears to be biting the net.", True),
        ("The images show that the mouse bites the net", True),
        ("In the third panel, the mouse is seen biting the net", True),
        ("The man bites the net", True),
        ("The images show that the net bites the mouse", False),
        ("The mouse does not appear to bite the net", False),
        ("The wolves bite the net", False),
    ],
)
def test_what_judges_say_around_an_answer_does_not_count(answer: str, right: bool) -> None:
    asked = made(question="What does the mouse do?", gold_answer="it bites the net", accepted_answers=["bites the net"])
    assert match_text(answer, asked, "lemma-set").right is right


@pytest.mark.parametrize(
    ("question", "gold", "accepted", "wrong"),
    [
        ("How does the guard see the prisoner?", "he feels respect for the prisoner", (), "The prisoner respects him"),
        ("How does the sparrow save the nest?", "by distracting the snake", (), "The snake distracts the sparrow"),
        ("Why does the queen pardon the thief?", "he stole to feed his son", (), "The queen stole to feed her son"),
        ("Why do the bees attack the bear?", "he breaks it", ("the bear breaks the hive",), "The bees break the hive"),
        ("What does the tailor give the beggar?", "a warm cloak", (), "The beggar gives the tailor a warm cloak"),
        ("What happens after the sun sets?", "the wolves howl", (), "The wolves howl before the sun sets"),
    ],
)
def test_roles_and_order_of_the_question_count(question: str, gold: str, accepted: tuple[str, ...], wrong: str) -> None:
    asked = made(question=question, gold_answer=gold, accepted_answers=list(accepted))
    assert match_text(gold, asked, "lemma-set").right
    assert not match_text(wrong, asked, "lemma-set").right


def test_a_lesson_in_words_of_its_own_is_matched_by_the_rule() -> None:
    """Labels are literal (Sec. E.6); a moral that is a sentence is a free answer like any other (Table 29)."""
    lesson = made(question_type="moral", gold_answer="Kindness is repaid", accepted_answers=[])
    assert match_text("The story shows that kindness gets repaid", lesson, "lemma-set").right
    assert not match_text("Kindness is not repaid", lesson, "lemma-set").right


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        ("The rain falls after the wind blows", True),
        ("First the wind blew and then the rain fell", True),
        ("After the wind blows, the rain falls", True),
        ("Before the rain falls, the wind blows", True),
        ("The wind blows after the rain falls", False),
        ("Before the wind blows, the rain falls", False),
        ("The rain falls, then the wind blows", False),
        ("The wind blows", False),
        ("The wind does not blow before the rain falls", False),
    ],
)
def test_what_is_put_in_order(answer: str, right: bool) -> None:
    asked = made(question="In which order?", gold_answer="The wind blows before the rain falls", accepted_answers=[])
    assert match_text(answer, asked, "lemma-set").right is right


def test_a_change_of_state_has_a_direction() -> None:
    asked = made(question="How does the feeling change?", gold_answer="From fear to relief", accepted_answers=[])
    for answer in ("afraid to relieved", "It is afraid at first and then relieved", "from fearful to relieved"):
        assert match_text(answer, asked, "lemma-set").right, answer
    for answer in ("from relief to fear", "relieved to afraid", "fear", "relief"):
        assert not match_text(answer, asked, "lemma-set").right, answer


def written(kind: str, path: Path = PARSED) -> list[dict[str, object]]:
    """Pairs about ordinary stories or fables; ours, written before version 4, or an independent author's."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in rows if row["set"] == kind]


@pytest.mark.parametrize(("kind", "reject"), [("fable", 0.25), ("ordinary", 0.40)])
def test_the_parse_tells_right_from_wrong(kind: str, reject: float) -> None:
    report = measure_pairs(written(kind), "lemma-set")
    assert report.version == "4"
    assert report.n > 150
    assert (report.false_accept or 0.0) <= 0.03
    assert (report.false_reject or 0.0) <= reject


@pytest.mark.parametrize(("kind", "reject"), [("fable", 0.37), ("ordinary", 0.26)])
def test_pairs_of_an_independent_author_stay_as_they_were_mended(kind: str, reject: float) -> None:
    pairs = written(kind, INDEPENDENT)
    report = measure_pairs(pairs, "lemma-set")
    assert report.n > 200
    assert (report.false_accept or 0.0) <= 0.03
    assert (report.false_reject or 0.0) <= reject
    judged = report.by_kind["judge"]  # plain answers, as a vision-language model writes them
    assert judged.false_accept + judged.false_reject <= 0.12 * judged.n


def test_pairs_that_were_read_after_all_others_are_judged_by_near_words_too() -> None:
    pairs = [json.loads(line) for line in LAST.read_text(encoding="utf-8").splitlines()]
    report = measure_pairs(pairs, "lemma-set")
    assert report.n == 320
    assert (report.false_accept or 0.0) <= 0.03
    assert (report.false_reject or 0.0) <= 0.25


@pytest.mark.parametrize(
    ("path", "accepted", "rejected"),
    [(DOERS, 0.0, 0.35), (NEWEST, 0.02, 0.41), (SIXTH, 0.03, 0.31), (SEVENTH, 0.1, 0.33)],
)
def test_pairs_of_authors_who_had_not_seen_the_rule_are_judged_as_measured(
    path: Path, accepted: float, rejected: float
) -> None:
    """The doers' and the sixth author's pairs were mended with, which costs the others right answers for wrong ones."""
    report = measure_pairs([json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()], "lemma-set")
    assert report.n == 320
    assert (report.false_accept or 0.0) <= accepted
    assert (report.false_reject or 0.0) <= rejected


@pytest.mark.parametrize(
    ("question", "gold", "answer", "right"),
    [
        ("What does Jon do?", "lifts her onto the sofa", "He raises her up onto the couch", True),
        ("What do the ants do?", "They flip the beetle over", "The beetle flips the ants around", False),
        ("What does Jon do?", "repairs the fence", "He wrecks the hedge", False),
        ("What does Ona buy?", "a red scooter", "a blue scooter", False),
        ("What does Ona buy?", "a kitten", "a puppy", False),
        ("Why is Ona sad?", "her kite got torn", "Her kite was ripped to shreds", True),
        ("Why is Ona sad?", "her kite got torn", "Her kite stays in one piece", False),
        ("What does the girl do?", "gives him her seat", "she offers the gentleman her chair", True),
        ("What does the girl do?", "gives him her seat", "she keeps her chair", False),
        ("Who finds it?", "the neighbour", "the neighbour's brother", False),
    ],
)
def test_near_words_count_only_where_nothing_speaks_against(question: str, gold: str, answer: str, right: bool) -> None:
    asked = made(question=question, gold_answer=gold, accepted_answers=[])
    assert match_text(answer, asked, "lemma-set").right is right


@pytest.mark.parametrize(
    ("question", "gold", "answer", "right"),
    [
        ("Who ran away?", "the fox and the crow", "the fox", False),
        ("What does the man do with the kitten?", "gives it to the girl", "gives the girl to the kitten", False),
        ("Why does Julia shout at her brother?", "he broke her plane", "she broke her plane", False),
        ("What does the older otter do?", "he shares the fish", "The younger otter shares the fish", False),
        ("Why can't the donkey drink?", "the goat stands in the way", "He stands in the way, so the goat waits", False),
        ("What does her sister do?", "drives him to school", "he drives her to school", False),
        ("Why does the goose fly low?", "to lure the fox onto the ice", "The fox lures her onto the ice", False),
        ("What happens to the goose?", "it is killed", "The goose killed the farmer", False),
        ("Why did Lena thank the guard?", "he waited for her", "She had waited for him", False),
        ("Why did the owl scold the hedgehog?", "he woke her", "The hedgehog woke her up", True),
        ("Why did the owl scold the hedgehog?", "he woke her", "The owl woke the hedgehog", False),
        ("What happens to the wash?", "the shirts turn pink", "The shirts turn blue", False),
        ("What happens to Ona?", "she gets wet", "She stays dry", False),
        ("What happens to Ona?", "she gets wet", "Ona walks home and gets wet", True),
        ("What happens to the crane?", "the fox kills it", "The fox bites it and it dies", True),
        ("What happens to the crane?", "the fox kills it", "The fox dies", False),
        ("Why did he stay ashore?", "he cannot swim", "He does not know how to swim", True),
        ("Who is rescued?", "the little boy", "A small boy is rescued", True),
        ("Who is rescued?", "the little boy", "The little boy rescues the fisherman", False),
        ("Who is rescued?", "the little boy", "The boy's father", False),
        ("Who won?", "Dina", "A girl named Dina", True),
        ("Who won?", "the youngest one in the race", "One of the riders", False),
        ("Where did the class get lost?", "in the museum", "In the city after leaving the museum", False),
        ("Where is the cat?", "under the bed", "In the bed", False),
        ("What does the nurse give Ben?", "a plaster", "The nurse gets a plaster", False),
        ("How does he feel?", "relieved", "A weight falls off his shoulders", True),
        ("How does Ira's mood change?", "from bored to excited", "Her boredom turns into excitement", True),
        ("How does Ira's mood change?", "from bored to excited", "Her excitement turns into boredom", False),
        ("Who ran away?", "the fox", "the fox and the crow", False),
        ("Why was the boy sad?", "they lied to him", "He lied", False),
        ("Why was the boy sad?", "they lied to him", "They told him lies", True),
        ("What does Pia do after lunch?", "she falls asleep", "She has a snooze", True),
        ("What does Pia do after lunch?", "she falls asleep", "She cannot sleep", False),
        ("What does the captain say?", "that the ship is sinking", "He says that the ship is going down", True),
        ("What does the captain say?", "that the ship is sinking", "The cook says that the ship is sinking", False),
        ("What happens to the cake?", "the dog eats it", "It is gobbled up by the dog", True),
        ("What happens to the cake?", "the dog eats it", "The dog is eaten by the cake", False),
        ("How many fish are there?", "three fish", "There are 3", True),
        ("How many fish are there?", "three fish", "thirty fish", False),
        ("Why did he apologise?", "he had lied", "He was not honest", True),
        ("What does the hare do?", "it runs away", "It took to its heels", True),
        ("What does the hare do?", "it runs away", "It does not take to its heels", False),
        ("What does the hare do?", "it runs away", "It stood its ground", False),
        ("How does Mia feel?", "afraid", "Her blood ran cold", True),
        ("How does Mia feel?", "afraid", "Her heart leapt for joy", False),
        ("How does he feel?", "grateful", "He is ungrateful", False),
        ("Where did the class get lost?", "in the museum", "In the building full of old exhibits", True),
        ("Where did the class get lost?", "in the museum", "In a building full of people", False),
        ("What happens before the king eats?", "he washes his hands", "Before eating, he washes his hands", True),
        ("What happens before the king eats?", "he washes his hands", "After eating, he washes his hands", False),
        ("Why does she hide it?", "she fears her father's anger", "She fears that her father will be angry", True),
    ],
)
def test_who_does_what_is_read_in_the_parse(question: str, gold: str, answer: str, right: bool) -> None:
    asked = made(question=question, gold_answer=gold, accepted_answers=[])
    assert match_text(answer, asked, "lemma-set").right is right


@pytest.mark.parametrize(
    ("said", "plain"),
    [
        ("The fox took to his heels", "The fox ran away"),
        ("He is taking to his heels", "He is running away"),
        ("The farmer sets the bird free", "The farmer frees the bird"),
        ("They gave him the slip", "They escaped him"),
        ("Anna's knees turn to jelly", "Anna was afraid"),
        ("A weight falls off his shoulders", "he was relieved"),
        ("He doesn't know how to swim", "He cannot swim"),
        ("their four-legged friend", "their dog"),
        ("He went away on an empty stomach", "He left hungry"),
        ("The fox ate the cheese", "The fox ate the cheese"),
    ],
)
def test_turns_of_phrase_in_plain_words(said: str, plain: str) -> None:
    assert in_plain_words(said) == plain


def test_answers_parsed_together_are_judged_as_alone() -> None:
    pairs = written("fable")[:40]
    alone = []
    for row in pairs:
        asked = made(**{name: row[name] for name in ("question", "gold_answer", "accepted_answers")})
        alone.append(match_text(str(row["answer"]), asked, "lemma-set"))
    _shelf().clear()
    together = {item.line for item in measure_pairs(pairs, "lemma-set").confusions}
    wrong = {
        n
        for n, (row, verdict) in enumerate(zip(pairs, alone, strict=True), 1)
        if verdict.right != (row["label"] == "right")
    }
    assert together == wrong


@pytest.mark.parametrize(
    ("question", "accepted", "answer", "right"),
    [
        ("Why can't Maya run?", ("she hurt her knee",), "Because Otto hurt his knee and Maya helps him", False),
        ("Why can't Maya run?", ("she hurt her knee",), "Because Maya hurt her knee", True),
        ("How does Maya reach the jar?", ("with a ladder",), "Otto reaches it for Maya with a ladder", False),
        ("How does Maya reach the jar?", ("with a ladder",), "She reaches it with a ladder", True),
        ("How does Maya reach the jar?", ("with a ladder",), "with some thing she finds", False),
        ("What does the king ask them to do?", ("to sing his song",), "They ask him to sing their song", False),
        ("Who is the letter for?", ("the baker",), "The baker carries it to the miller", False),
        ("How does the dog know him?", ("it sees his hat",), "It hears him cough", False),
        ("What do they do with the bird?", ("give it a new nest",), "They never give it a new one", False),
        ("What does the pot hold?", ("a spoon",), "Everything except a spoon", False),
        ("What does the pot hold?", ("a spoon",), "Nothing except a spoon", True),
        ("Who comes?", ("her uncle",), "Anybody but her uncle", False),
        ("What happens to the vase?", ("it falls",), "The vase stays up, but the painter falls", False),
        ("What happens to the sign in the wind?", ("it gets dirty",), "The wind gets dirty", False),
        ("Where is the key?", ("it is in the drawer",), "It is here on my belt, not in the drawer", False),
        (
            "What do the mice plan?",
            ("tie a bell to the cat",),
            "Get the cat to tie bells to the mice",
            False,
        ),
        ("Why does she wear boots?", ("to protect her from snakes",), "To protect the snakes from the farmer", False),
        ("Why does the hen laugh at the duck?", ("the duck's feet are flat",), "The hen's feet are flat", False),
        ("How do they talk in the end?", ("in a friendly way",), "In a certain way", False),
        ("How does Otto change?", ("he sings to others",), "He gives up singing", False),
        ("What does Maya do with the ring?", ("she brings it back",), "She picks it up and takes it along", False),
        ("What colour is it?", ("bright red",), "A nice colour", False),
        ("Who carries the bench?", ("the two boys",), "The girls, while the boys watch", False),
        ("What does the letter say?", ("where the gold is",), "Who stole the gold", False),
        ("What does the dog do with the bone?", ("he buries the bone",), "He is beside the bone", False),
    ],
)
def test_the_doer_is_the_one_asked_about(question: str, accepted: tuple[str, ...], answer: str, right: bool) -> None:
    from katha_sketch.matching.meaning import same_meaning

    assert same_meaning(answer, accepted, question)[0] is right


def test_scores_of_a_version_that_is_gone_replay_by_the_verdicts_that_were_kept(tmp_path: Path) -> None:
    asked, kept = made(), RecordingRule(WordRule("lemma-set:3", "3", lambda answer, question: Verdict(True, "stems")))
    assert match_text("the net was bitten", asked, kept).right
    kept.write(tmp_path / "verdicts.jsonl")
    noted = Scores.model_construct(matching="lemma-set:3", notes=["Matching lemma-set:3, version 3."])
    again = scored_rule(noted, tmp_path)
    assert match_text("the net was bitten", asked, again) == Verdict(True, "stems")
    assert match_text("the net was chewed", asked, again).right is None
    with pytest.raises(UsageError, match="No matching rule is called 'lemma-set:3'"):
        match_text("the net was bitten", asked, "lemma-set:3")


@pytest.mark.parametrize(
    ("text", "kind", "stands"),
    [
        ("The mouse bit a net", "causal", True),
        ("The mouse gnaws the net", "causal", True),
        ("The lion waits while the mouse bites the net", "causal", True),
        ("The lion bites the net", "causal", False),
        ("The mouse does not bite the net", "causal", False),
        ("The mouse breaks the net before the lion runs", "causal", True),
        ("The mouse breaks the net before the lion runs", "temporal_order", False),
        ("It is", "causal", False),
    ],
)
def test_what_has_the_stems_of_an_accepted_answer_is_no_wrong_option(text: str, kind: str, stands: bool) -> None:
    assert EnglishReader().accepts(text, made(question_type=kind)) is stands


def test_an_option_of_another_order_or_label_is_a_wrong_one() -> None:
    asked = made(question_type="temporal_order", gold_answer="The mouse runs before the lion sleeps")
    assert EnglishReader().accepts("the mouse ran before the lion slept", asked)
    assert not EnglishReader().accepts("The lion sleeps before the mouse runs", asked)
    moral = made(question_type="moral", gold_answer="kindness", accepted_answers=[])
    assert not EnglishReader().accepts("be kind", moral)
