"""A board drawn in a conversation: the cast once, frames from it, looks, patches, bridges; by a scripted model."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from drawn_boards import CAST, Scripted, frame, plan, requests, usual

from katha.errors import RenderError
from katha.models.base import Turn
from katha.pictures import png_size
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.vector import VectorRenderer
from katha.renderers.vector.brief import Brief, groups_of, slug
from katha.renderers.vector.options import VectorOptions
from katha.schema import Character


@pytest.fixture
def renderer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[VectorRenderer, Scripted]]:
    def make(answer: Callable[[Sequence[Turn]], str] = usual, **options: Any) -> tuple[VectorRenderer, Scripted]:
        model = Scripted(answer)
        monkeypatch.setattr("katha.renderers.vector.renderer.make_model", lambda *_, **__: model)
        return VectorRenderer("openai:any", options=VectorOptions(**options)), model

    return make


def kinds(model: Scripted) -> list[str]:
    names = {
        "Now draw": "cast",
        "Draw frame": "frame",
        "Draw a frame": "frame",
        "This is how": "look",
        "This is the whole": "sheet",
    }
    found = []
    for turns in model.asked:
        last = turns[-1].text
        opening = "Now draw the cast sheet" in last
        found.append(
            "cast" if opening else next((name for head, name in names.items() if last.startswith(head)), "fault")
        )
    return found


def test_a_board_is_one_cast_frames_looks_and_a_sheet(renderer: Any) -> None:
    drawer, model = renderer()
    pictures = list(drawer.render_board(requests()))
    assert [png_size(png) for png in pictures] == [(640, 360)] * 2
    assert sorted(kinds(model)) == sorted(["cast", "look", "frame", "look", "frame", "look", "sheet"])
    assert b"mi-head-glad" in drawer.source()
    assert drawer.cast_source() == CAST.encode()
    # Every branch begins with the same bytes, so that a prompt cache holds them.
    branches = [turns[:2] for turns in model.asked if len(turns) > 2 and turns[2].text.startswith("Draw frame")]
    assert len(set(branches)) == 1
    assert drawer.receipt()["cost"] == pytest.approx(0.02)  # the second frame's own: drawn and looked at


def test_looks_bring_the_picture_and_models_without_eyes_see_none(renderer: Any) -> None:
    drawer, model = renderer()
    list(drawer.render_board(requests()))
    assert all(
        turns[-1].images for turns, kind in zip(model.asked, kinds(model), strict=True) if kind in ("look", "sheet")
    )
    blind, model = renderer(eyes=False)
    list(blind.render_board(requests()))
    assert kinds(model).count("look") == 0
    assert not any(turn.images for turns in model.asked for turn in turns)


def test_what_breaks_is_sent_back_with_the_fault(renderer: Any) -> None:
    def answer(turns: Sequence[Turn]) -> str:
        last = turns[-1].text
        if last.startswith("Draw frame 2"):
            return f"```svg\n{frame(more='<script>alert(1)</script>')}\n```"
        if "script" in last and "A program found" in last:
            return f"```svg\n{frame(500)}\n```"
        return usual(turns)

    drawer, model = renderer(answer)
    list(drawer.render_board(requests()))
    assert "fault" in kinds(model)
    assert drawer.receipt()["mended"] == 1
    assert b"script" not in drawer.source()


def test_patches_are_kept_where_they_match_once_and_hold(renderer: Any) -> None:
    good = "<<<<<<< SEARCH\n#88aacc\n=======\n#aaccee\n>>>>>>> REPLACE"
    bad = "<<<<<<< SEARCH\n#ke-shut\n=======\n#nowhere\n>>>>>>> REPLACE"

    def answer(turns: Sequence[Turn]) -> str:
        last = turns[-1].text
        if last.startswith("This is how frame 1"):
            return good
        return bad if last.startswith("This is how frame 2") else usual(turns)

    drawer, _ = renderer(answer, sheet=False)
    sources = []
    for _ in drawer.render_board(requests()):
        sources.append(drawer.source().decode())
    assert "#aaccee" in sources[0]
    assert "#88aacc" in sources[1]
    assert "#nowhere" not in sources[1]


def test_patches_that_are_not_taken_are_in_the_record(renderer: Any) -> None:
    def answer(turns: Sequence[Turn]) -> str:
        last = turns[-1].text
        if last.startswith("This is how frame 2"):
            return '<<<<<<< SEARCH\nid="the-red-kettle"\n=======\nid="kettle"\n>>>>>>> REPLACE'
        if last.startswith("This is the whole"):
            return "FRAME 1\n<<<<<<< SEARCH\n#nowhere\n=======\n#223355\n>>>>>>> REPLACE"
        return usual(turns)

    drawer, _ = renderer(answer)
    notes = []
    for _ in drawer.render_board(requests()):
        notes.append(drawer.receipt().get("notes", []))
    assert notes == [
        ['The SEARCH part that begins with "#nowhere" is not in the code: copy it letter by letter.'],
        [
            'A look\'s patches were left out, as they bring a fault. Nothing has id="the-red-kettle", which must be '
            'seen: put what shows it into <g id="the-red-kettle">.'
        ],
    ]


def test_what_the_program_mends_and_doubts_is_not_sent_back(renderer: Any) -> None:
    hat = '<rect x="330" y="270" width="140" height="50" fill="#333"/>'
    drawn = frame(group="f-kettle").replace('<g id="f-mila">', '<g id="the-red-kettle">')
    drawn = drawn.replace('width="1280"', 'width="1270"', 1).replace("</svg>", f"{hat}</svg>")

    def answer(turns: Sequence[Turn]) -> str:
        return f"```svg\n{drawn}\n```" if turns[-1].text.startswith("Draw frame") else usual(turns)

    drawer, model = renderer(answer, eyes=False, rounds=2)
    assert len(list(drawer.render_board(requests()))) == 2
    assert kinds(model) == ["cast", "frame", "frame"]
    told = drawer.receipt()
    assert (told["mended"], told["faults"]) == (0, [])
    assert "mi-head-glad" in told["doubts"][0]
    assert told["notes"] == [
        "The picture is see-through in 0.78% of it (x 1270 to 1280, y 0 to 720); it was closed with a ground in the "
        "colour of what is round it."
    ]
    assert b'fill="#88aacc"/><rect width="1270"' in drawer.source().replace(b"\n", b"")
    assert drawer.remarks() == [f"Frame {number}: {told['notes'][0]}" for number in (1, 2)]
    looking, model = renderer(answer, sheet=False)
    list(looking.render_board(requests()))
    looks = [turns[-1].text for turns in model.asked if turns[-1].text.startswith("This is how frame")]
    assert all("is covered by what is drawn later" in text for text in looks)


def test_the_sheet_mends_frames_by_their_numbers(renderer: Any) -> None:
    def answer(turns: Sequence[Turn]) -> str:
        if turns[-1].text.startswith("This is the whole"):
            return "FRAME 2\n<<<<<<< SEARCH\n#88aacc\n=======\n#223355\n>>>>>>> REPLACE"
        return usual(turns)

    drawer, _ = renderer(answer)
    sources = []
    for _ in drawer.render_board(requests()):
        sources.append(drawer.source().decode())
    assert "#223355" in sources[1]
    assert "#223355" not in sources[0]


def test_a_frame_that_never_draws_is_a_typed_failure(renderer: Any) -> None:
    drawer, _ = renderer(
        lambda turns: "I cannot." if turns[-1].text.startswith("Draw") or "found" in turns[-1].text else usual(turns)
    )
    with pytest.raises(RenderError, match="drew no usable SVG for frame 1"):
        list(drawer.render_board(requests()))


def test_an_added_frame_goes_on_from_its_neighbours_code(renderer: Any) -> None:
    drawer, model = renderer()
    made, sources = requests(), []
    pictures = []
    for png in drawer.render_board(made):
        pictures.append(png)
        sources.append(drawer.source())
    asked = FrameRequest(
        "The kettle begins to sing.", 42, 640, 360, kind="bridge", plan=made[0].plan, transition=(1, 2),
        characters=made[0].characters,
    )  # fmt: skip
    board = BoardContext(tuple(made), tuple(pictures), 1, tuple(sources), drawer.cast_source())
    casts = kinds(model).count("cast")
    assert png_size(drawer.insert_frame(asked, board)) == (640, 360)
    told = next(turns for turns in model.asked if any(t.text.startswith("Draw a frame between") for t in turns))
    text = next(turn.text for turn in told if turn.text.startswith("Draw a frame between"))
    assert "f-mila" in text
    assert "The kettle begins to sing." in text
    assert "Steam rises." in text
    assert "What happens:" not in text, "the prompt says that already"
    assert 'mi-body"><rect' not in text
    assert kinds(model).count("cast") == casts, "the cast of the board is used, not drawn again"


def test_seeds_ask_for_another_composition_of_the_same_cast(renderer: Any) -> None:
    drawer, model = renderer(sheet=False, rounds=0)
    list(drawer.render_board(requests(42)))
    list(drawer.render_board(requests(7)))
    list(drawer.render_board(requests(11)))
    asked = [turns[-1].text for turns, kind in zip(model.asked, kinds(model), strict=True) if kind == "frame"]
    assert kinds(model).count("cast") == 1
    assert len(set(asked)) == 6


def test_frames_in_order_know_those_before(renderer: Any) -> None:
    drawer, model = renderer(draw="in-order", sheet=False, rounds=0)
    list(drawer.render_board(requests()))
    assert [len(turns) for turns in model.asked] == [1, 3, 5]


def test_a_cast_is_drawn_in_shares_side_by_side_and_put_together(renderer: Any) -> None:
    def share(turns: Sequence[Turn]) -> list[str]:
        return turns[0].text.rsplit("the ids that begin with ", 1)[1].split(". ")[0].split(", ")

    def answer(turns: Sequence[Turn]) -> str:
        if len(turns) > 1:
            return usual(turns)
        parts = [line for line in CAST.split("\n") if line.startswith('<g id="') and line[7:9] in share(turns)]
        shade = '<linearGradient id="shade"><stop offset="0" stop-color="#fff"/></linearGradient>'
        drawn = "".join([shade, *parts])
        return f'```svg\n<svg viewBox="0 0 1600 1240"><defs>{drawn}</defs><rect width="9" height="9"/></svg>\n```'

    drawer, model = renderer(answer, shares=2)
    list(drawer.render_board(requests()))
    asked = [turns for turns in model.asked if len(turns) == 1]
    assert len(asked) == 2
    assert asked[0][0].text.startswith(model.asked[-1][0].text), "the same beginning, which a vendor's cache holds"
    assert sorted([*share(asked[0]), *share(asked[1])]) == ["fx", "hd", "ke", "mi", "rm"]
    sheet = (drawer.cast_source() or b"").decode()
    assert 'viewBox="0 0 1600 2480"' in sheet
    assert all(f'id="{name}"' in sheet for name in ("mi-head-glad", "ke-shut", "hd-open", "shade", "shade-2"))
    assert drawer.spec()["shares"] == 2
    assert "shares" not in renderer()[0].spec()


def test_ids_for_a_cast_of_any_names() -> None:
    people = [
        Character(name=name, kind="x", appearance="x") for name in ("Tom", "Toby", "the tortoise", "\u0930\u093e\u092e")
    ]
    brief = Brief(plan().model_copy(update={"characters": people}), (1280, 720), "ink")
    prefixes = list(brief.prefixes.values())
    assert len(set(prefixes)) == 4
    assert all(re.fullmatch(r"[a-z]{2}", one) for one in prefixes)
    assert slug("The wand's tip, on the brim!") == "the-wand-s-tip-on-the-brim"
    assert [group.id for group in groups_of(["a cup", "A cup!", "3 men"])] == ["a-cup", "a-cup-2", "x-3-men"]
    assert "Gaze" not in brief.opening()
    assert "not_at" in brief.opening()


def test_what_reads_like_letters_goes_back_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    strokes = "".join(
        f'<path d="M{x} 100V300M{x} 200H{x + 80}M{x + 80} 100V300" stroke="#111" stroke-width="24"/>'
        for x in (80, 220, 360)
    )
    sign = f'<g id="f-sign"><rect x="40" y="60" width="500" height="280" fill="#fff"/>{strokes}</g>'

    def answer(turns: Sequence[Turn]) -> str:
        if turns[-1].text.startswith("Draw frame"):
            return f"```svg\n{frame(900, more=sign)}\n```"
        return f"```svg\n{frame(900)}\n```" if "can be read as" in turns[-1].text else usual(turns)

    found = {}
    for letters in (False, True):
        model = Scripted(answer)
        monkeypatch.setattr("katha.renderers.vector.renderer.make_model", lambda *_, made=model, **__: made)
        renderer = VectorRenderer("openai:any", options=VectorOptions(letters=letters, sheet=False))
        found[letters] = list(renderer.render_board(requests()[:1]))
        told = [turns[-1].text for turns in model.asked if "can be read as" in turns[-1].text]
        assert bool(told) is letters
    assert found[False] != found[True]
    assert "HHH" in told[0]
