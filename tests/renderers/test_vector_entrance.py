"""The entrance test of `vector`: who draws, who draws simply, who does not, and who sees."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import pytest
from drawn_boards import Scripted, plan, requests, usual

from katha.errors import RenderError
from katha.models.base import Turn
from katha.renderers.vector import VectorRenderer
from katha.renderers.vector.brief import Brief
from katha.renderers.vector.entrance import enter
from katha.renderers.vector.options import VectorOptions

CAST = """<svg viewBox="0 0 1600 1240"><defs>
<g id="ma-head-calm"><circle cy="-65" r="65" fill="#e0b090"/><path d="M-30-30H30" stroke="#333" stroke-width="6"/></g>
<g id="ma-head-glad"><circle cy="-65" r="65" fill="#e0b090"/><path d="M-40-50Q0 10 40-50Z" fill="#fff"/></g>
<g id="ma-body"><path d="M-80 0V-380H80V0Z" fill="#246"/></g>
<g id="hd-hold"><path d="M0-15H60V15H0Z" fill="#e0b090"/></g>
<g id="cu-cup"><path d="M-25-60H25L20 0H-20Z" fill="#c22"/></g></defs>
<rect width="1600" height="1240" fill="#eee"/><use href="#ma-head-calm" x="200" y="300"/>
<use href="#ma-head-glad" x="500" y="300"/><use href="#ma-body" x="300" y="900"/>
<use href="#hd-hold" x="800" y="300"/><use href="#cu-cup" x="1000" y="300"/></svg>"""
FRAME = """<svg viewBox="0 0 1280 720"><rect width="1280" height="720" fill="#fd9"/>
<g id="the-glad-face"><use href="#ma-body" x="500" y="720"/>
<use href="#ma-head-glad" transform="translate(500 350) scale(1.4)"/></g>
<g id="the-hand-on-the-cup"><path d="M560 400 700 330" stroke="#246" stroke-width="40"/>
<use href="#cu-cup" transform="translate(790 390) scale(2)"/>
<use href="#hd-hold" transform="translate(690 330) scale(1.6)"/></g></svg>"""


def reply(cast: str = CAST, frame: str = FRAME) -> str:
    return f"```svg\n{cast}\n```\nand\n```svg\n{frame}\n```"


def told(first: str, second: str = "", sees: str = "The right one is glad; the hand holds a cup.") -> Scripted:
    def answer(turns: Sequence[Turn]) -> str:
        if turns[-1].images:
            return sees
        return first if len(turns) == 1 else second

    return Scripted(answer)


def test_one_that_draws_at_once_is_asked_for_all() -> None:
    model = told(reply())
    found = enter(model)
    assert (found.contract, found.sees, found.faults, found.spent.calls) == ("full", True, (), 2)
    assert str(found) == "draws boards, sees what it drew"
    assert enter(model, eyes=False).sees is None


def test_one_that_has_to_mend_draws_simply() -> None:
    model = told(reply(frame=FRAME.replace("690 330", "90 130")), reply())
    found = enter(model)
    assert (found.contract, found.spent.calls) == ("small", 3)
    assert str(found).startswith("draws simple boards (contract=small)")
    assert "units away from the cup" in model.asked[1][-1].text


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("I cannot draw.", "has 0 drawings"),
        (reply(cast=CAST.replace("ma-head-glad", "ma-head-happy")), "lacks"),
        (reply(cast=CAST.replace("cu-cup", "cup")), 'Nothing in the cast has id="cu-cup"'),
        (reply(frame=FRAME.replace("#ma-head-glad", "#ma-head-calm")), 'does not use the part "ma-head-glad"'),
        (reply(frame=FRAME.replace("690 330", "90 130")), "units away"),
        (reply(frame=FRAME.replace('"the-glad-face"', '"face"')), 'id="the-glad-face"'),
        (reply(frame=FRAME.replace("</svg>", "<script/></svg>")), "script"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_a_model_that_cannot_mend_it_cannot_draw(made: str, said: str) -> None:
    found = enter(told(made, made))
    assert (found.contract, found.sees, found.spent.calls) == (None, None, 2)
    assert said in str(found)
    assert str(found).startswith("cannot draw: ")


@pytest.mark.parametrize("said", ["The left one; it holds a cup.", "The right one; a flower.", "", "A cup."])
def test_one_that_says_something_else_does_not_see(said: str) -> None:
    found = enter(told(reply(), sees=said))
    assert (found.contract, found.sees) == ("full", False)


def board(
    monkeypatch: pytest.MonkeyPatch, entrance: Callable[[Sequence[Turn]], str], **options: object
) -> tuple[VectorRenderer, Scripted]:
    def answer(turns: Sequence[Turn]) -> str:
        first = turns[0].text
        return usual(turns) if first.startswith("You are the illustrator") else entrance(turns)

    model = Scripted(answer)
    monkeypatch.setattr("katha.renderers.vector.renderer.make_model", lambda *_, **__: model)
    return VectorRenderer("openai:m", options=VectorOptions(**options)), model  # type: ignore[arg-type]


def test_a_board_is_asked_for_as_the_test_went(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer, model = board(monkeypatch, told(reply(frame="<svg/>"), reply(), "no idea").answer, contract="tried")
    assert len(list(renderer.render_board(requests()))) == 2
    opening = next(turns[0].text for turns in model.asked if turns[0].text.startswith("You are the illustrator"))
    assert "Draw simply" in opening
    assert "7,000 bytes" in opening
    assert not any(turn.images for turns in model.asked for turn in turns if turns[0].text == opening)
    entered = sum(not turns[0].text.startswith("You are the illustrator") for turns in model.asked)
    list(renderer.render_board(requests(43)))
    assert entered == sum(not turns[0].text.startswith("You are the illustrator") for turns in model.asked) == 3
    assert "entrance" in json.dumps(dict(renderer.spec()))


def test_nothing_is_drawn_by_one_that_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    renderer, model = board(monkeypatch, told("Sorry.", "Sorry.").answer, contract="tried")
    with pytest.raises(RenderError, match=r"vector:openai:m cannot draw: The reply has 0 drawings"):
        list(renderer.render_board(requests()))
    assert len(model.asked) == 2


def test_a_vendors_model_is_asked_for_all_untried_and_two_moods_are_enough_for_a_simple_board(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    renderer, model = board(monkeypatch, told("").answer)
    list(renderer.render_board(requests()))
    assert "Draw simply" not in model.asked[0][0].text
    moods = [Brief(plan(), (1280, 720), "ink", contract).limits["most_moods"] for contract in ("full", "small")]
    assert moods == [5, 2]
