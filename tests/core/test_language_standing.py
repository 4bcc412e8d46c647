"""What an event tells of although its verb does nothing with it: company, shadows, what is no more."""

from __future__ import annotations

from katha.language import Event, read_story


def told(text: str) -> list[Event]:
    return [event for event in read_story(text).events if not event.speech]


def test_whoever_is_only_wished_for_or_likened_to_does_not_stand_by() -> None:
    text = "A lion met a mouse. The mouse ran. The lion wanted to see the mouse. The lion slept like the mouse."
    assert {event.company for event in told(text) if event.sentence >= 2} == {()}


def test_the_shadow_is_the_reflection_that_was_told_of() -> None:
    text = "A dog saw his own shadow in the water. The dog snapped at the shadow."
    assert told(text)[-1].target == "reflection"
    assert told("A dog sat in the shade. The dog snapped at the shadow.")[-1].target is None


def test_no_more_denies_the_deed_before_it() -> None:
    events = told("The sons embraced and quarrelled no more.")
    assert [(event.action, event.negated) for event in events] == [("hug", False), ("fight", True)]


def test_on_the_way_is_not_yet_there() -> None:
    events = told("A girl walked to the market. On the way she danced. She slept.")
    assert [event.setting for event in events if event.action] == ["market", "road", "road"]
    assert told("A girl sat in the market. On the way home she danced.")[-1].setting == "market"


def test_a_bed_or_a_dinner_is_in_a_house() -> None:
    assert told("A farmer called his sons to his bed. The farmer wept.")[-1].setting == "room"
    assert told("In a forest a fox invited a stork to dinner. The fox danced.")[-1].setting == "forest"


def test_somebody_known_by_name_is_neither_judge_nor_father() -> None:
    text = (
        "Two friends, Dharma and Papa, found gold. Papa told the judge that Dharma was the thief. "
        "His father hid and wept. The judge gave the gold to Dharma."
    )
    deeds = [(event.actor_name, event.action, event.target_name) for event in told(text) if event.action]
    assert deeds[2:] == [
        ("Papa", "talk", "judge"),
        ("father", "hide", None),
        ("father", "cry", None),
        ("judge", "give", "Dharma"),
    ]
