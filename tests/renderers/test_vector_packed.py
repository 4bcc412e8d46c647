"""A board in few replies, for a model whose replies a person carries: the cast in one, the frames in another."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from drawn_boards import CAST, Scripted, frame, plan, requests

from katha.errors import RenderError
from katha.models.base import Turn
from katha.models.paste import PasteModel
from katha.pictures import png_size
from katha.protocols import FrameRequest
from katha.registry import default_registry
from katha.renderers.vector import VectorRenderer
from katha.renderers.vector.options import VectorOptions

BROKEN = "<svg><path d='M0 0'/>"


def five() -> list[FrameRequest]:
    """Five frames of one plan."""
    made = plan()
    first = requests()[0]
    panels = [made.panels[0].model_copy(update={"index": number}) for number in range(1, 6)]
    whole = made.model_copy(update={"panels": panels, "transitions": []})
    return [
        FrameRequest(
            panel.prompt, 42, 640, 360, scene=panel.index, characters=first.characters, plan=whole,
            must_show=first.must_show, place=first.place,
        )
        for panel in panels
    ]  # fmt: skip


def block(number: int, code: str) -> str:
    return f"FRAME {number}\n```svg\n{code}\n```\n"


def numbers(text: str) -> list[int]:
    found = re.search(r"(?:in one reply|and no other): ([\d, ]+)", text)
    assert found is not None, text
    return [int(number) for number in found[1].split(",")]


def packed(code: Callable[[int, bool], str | None]) -> Callable[[Sequence[Turn]], str]:
    """A model that draws what it is asked for; code: given a frame and whether it is asked for again."""

    def answer(turns: Sequence[Turn]) -> str:
        last = turns[-1].text
        if "Now draw the cast sheet" in last:
            return f"```svg\n{CAST}\n```"
        again = last.startswith("A program looked")
        drawn = [(number, code(number, again)) for number in numbers(last)]
        return "Here they are.\n" + "".join(block(number, text) for number, text in drawn if text is not None)

    return answer


@pytest.fixture
def renderer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[VectorRenderer, Scripted]]:
    def make(
        answer: Callable[[Sequence[Turn]], str], name: str = "paste", **options: Any
    ) -> tuple[VectorRenderer, Scripted]:
        model = Scripted(answer)
        monkeypatch.setattr("katha.renderers.vector.renderer.make_model", lambda *_, **__: model)
        return VectorRenderer(name, options=VectorOptions(**options)), model

    return make


def test_a_board_of_five_is_two_exchanges_without_pictures(renderer: Any) -> None:
    drawer, model = renderer(packed(lambda number, again: frame(300 + 20 * number)))
    pictures = list(drawer.render_board(five()))
    assert [png_size(png) for png in pictures] == [(640, 360)] * 5
    assert len(set(pictures)) == 5
    assert len(model.asked) == 2
    assert not any(turn.images for turns in model.asked for turn in turns)
    last = model.asked[-1][-1].text
    assert last.count("Think of the boxes first") == 0
    assert last.count('id="the-red-kettle"') == 5
    assert drawer.spec()["draw"] == "packed"


def test_what_is_missing_or_broken_is_asked_for_again_alone(renderer: Any) -> None:
    def code(number: int, again: bool) -> str | None:
        first: dict[int, str | None] = {2: BROKEN, 4: None, 5: frame(group="elsewhere")}
        return first[number] if not again and number in first else frame()

    drawer, model = renderer(packed(code))
    assert len(list(drawer.render_board(five()))) == 5
    assert len(model.asked) == 3
    assert numbers(model.asked[-1][-1].text) == [2, 4, 5]
    assert "not in the reply" in model.asked[-1][-1].text
    assert list(drawer.remarks()) == []


def test_a_fault_that_stays_is_told_and_takes_no_more_than_two_rounds(renderer: Any) -> None:
    drawer, model = renderer(packed(lambda number, again: frame(group="elsewhere") if number == 3 else frame()))
    assert len(list(drawer.render_board(five()))) == 5
    assert len(model.asked) == 4
    assert any(said.startswith("Frame 3: ") for said in drawer.remarks())


def test_a_frame_that_never_draws_is_a_typed_failure(renderer: Any) -> None:
    drawer, _ = renderer(packed(lambda number, again: BROKEN if number == 5 else frame()))
    with pytest.raises(RenderError, match="frame 5"):
        list(drawer.render_board(five()))


def test_the_worst_plan_and_board_take_eight_exchanges_at_most(renderer: Any) -> None:
    def answer(turns: Sequence[Turn]) -> str:
        last = turns[-1].text
        if "cast sheet" in last and "Now draw" in last:
            return BROKEN
        if len(turns) == 3 and "The cast sheet" not in last and not last.startswith("Now draw th"):
            return f"```svg\n{CAST}\n```"
        return packed(lambda number, again: frame(group="elsewhere"))(turns)

    drawer, model = renderer(answer)
    assert len(list(drawer.render_board(five()))) == 5
    plans = 3  # planners/gemma_st.py: one request, mended twice at most
    assert plans + len(model.asked) <= 8


def test_a_model_with_an_address_draws_as_before_unless_told(renderer: Any) -> None:
    drawer, _ = renderer(packed(lambda number, again: frame()), "openai:any")
    assert drawer.spec()["draw"] == "together"
    drawer, model = renderer(packed(lambda number, again: frame()), "openai:any", draw="packed", eyes=False)
    assert len(list(drawer.render_board(five()))) == 5
    assert len(model.asked) == 2


def test_vector_paste_is_made_by_its_name_and_draws_from_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_PASTE", str(tmp_path))
    drawer = default_registry("renderers").configure("vector:paste", {"timeout": "0.01"})
    assert drawer.frame_price == 0.0
    for reply in (f"```svg\n{CAST}\n```", "".join(block(number, frame()) for number in range(1, 6))):
        with pytest.raises(Exception, match="No reply came"):
            list(drawer.render_board(five()))
        place = max(tmp_path.glob("*-prompt.txt")).name.removesuffix("-prompt.txt")
        (tmp_path / f"{place}-reply.txt").write_text(reply)
    drawer = default_registry("renderers").configure("vector:paste", {})
    assert isinstance(drawer._model, PasteModel)
    assert len(list(drawer.render_board(five()))) == 5
    assert len(list(tmp_path.glob("*-prompt.txt"))) == 2
