"""The contract of a renderer as a test: what the state machine relies on, tried with a few small frames."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import get_args, get_type_hints

from PIL import Image

from katha.protocols import BoardContext, Capabilities, FrameRequest, Renderer
from katha.schema import Character
from katha.testing.trials import need, other_random_numbers, require_spec, run_checks, same_random_numbers

__all__ = ["check_renderer", "sample_requests"]

_SCENES = (
    "A red fox walks through the forest by day.",
    "A red fox looks up at a crow in a tree. The crow holds a cheese.",
    "A red fox eats a cheese. The crow is sad.",
)
_FOX = Character(name="fox", kind="fox", appearance="a red fox", anchor_prompt="a red fox, alone")


def sample_requests(size: tuple[int, int], seed: int = 42) -> list[FrameRequest]:
    """Three scenes with one character, as the state machine would ask for them."""
    width, height = size
    return [
        FrameRequest(prompt, seed, width, height, scene=place, characters=(_FOX,), story_id="contract")
        for place, prompt in enumerate(_SCENES, 1)
    ]


def check_renderer(
    make: Callable[[], Renderer], *, requests: Sequence[FrameRequest] | None = None, size: tuple[int, int] | None = None
) -> list[str]:
    """Try everything that katha expects of a renderer; the names of the checks.

    make: gives a renderer, a new one each time (a heavy one may share its weights). requests: a board to draw, three
    sample scenes unless told. size: of the sample scenes, the renderer's default unless told. Draws about 16 frames.

    Raises:
        ContractError: the renderer breaks its contract; the message lists how.
    """
    renderer = make()
    wanted = list(requests or sample_requests(size or renderer.capabilities.default_size))
    trial = _Trial(make, renderer, wanted)
    checks = [
        ("capabilities", trial.declares),
        ("spec", trial.names_itself),
        ("board", trial.draws),
        ("random numbers", trial.leaves_random_numbers_alone),
        ("repetition", trial.repeats),
        ("order", trial.minds_the_order),
        ("sizes", trial.draws_another_size),
        ("insertion", trial.inserts),
    ]
    return run_checks(f"The renderer {type(renderer).__name__}", checks)


@dataclass
class _Trial:
    """One renderer under test."""

    make: Callable[[], Renderer]
    renderer: Renderer
    requests: list[FrameRequest]
    able: Capabilities = field(init=False)

    def __post_init__(self) -> None:
        self.able = self.renderer.capabilities

    @cached_property
    def board(self) -> list[bytes]:
        """The board as drawn first."""
        return list(self.renderer.render_board(list(self.requests)))

    @property
    def drawn(self) -> bool:
        return self.able.source == "drawn"

    @property
    def repeatable(self) -> bool:
        return self.able.deterministic

    def declares(self) -> None:
        able = self.able
        need(isinstance(able, Capabilities), "`capabilities` has to be a katha.protocols.Capabilities")
        hints = get_type_hints(Capabilities)
        for name in ("identity", "insertion", "source"):
            known = get_args(hints[name])
            need(getattr(able, name) in known, f"{name} {getattr(able, name)!r} is none of {', '.join(known)}")
        need(able.size_multiple > 0, "size_multiple has to be positive")
        if able.sizes is not None:
            need(able.default_size in able.sizes, f"the default size {able.default_size} is none of `sizes`")
        else:
            fits = all(side > 0 and side % able.size_multiple == 0 for side in able.default_size)
            need(fits, f"the default size {able.default_size} is no multiple of {able.size_multiple}")

    def names_itself(self) -> None:
        require_spec(self.renderer, self.make())

    def draws(self) -> None:
        need(len(self.board) == len(self.requests), f"{len(self.requests)} requests gave {len(self.board)} frames")
        for request, png in zip(self.requests, self.board, strict=True):
            self._check(png, request, f"scene {request.scene}")
        if len({request.prompt for request in self.requests}) > 1:
            need(len(set(self.board)) > 1, "every scene is the same picture, so the prompt is not drawn")
        before = dict(self.renderer.spec())
        need(before == dict(self.make().spec()), "spec() changed by drawing; what is drawn first must not change it")

    def leaves_random_numbers_alone(self) -> None:
        first = self.requests[:1] if self.able.identity in ("none", "bank") else self.requests
        with other_random_numbers(3), same_random_numbers():
            list(self.renderer.render_board(first))

    def repeats(self) -> None:
        if not self.repeatable:
            return
        with other_random_numbers(1):
            again = list(self.make().render_board(list(self.requests)))
        if again == self.board:
            return
        with other_random_numbers(2):
            third = list(self.make().render_board(list(self.requests)))
        why = "with other global random numbers" if third != again else "in another instance"
        need(False, f"the same requests gave other bytes {why}; fix it, or declare deterministic=False")

    def minds_the_order(self) -> None:
        if not self.repeatable or self.able.identity not in ("none", "bank") or len(self.requests) < 2:
            return
        turned = list(self.make().render_board(self.requests[::-1]))
        need(turned == self.board[::-1], "frames asked for in another order are not the same frames in that order")
        alone = list(self.make().render_board(self.requests[-1:]))
        need(
            alone == self.board[-1:],
            "a frame drawn alone differs from the same one in a board; declare identity='batch'",
        )

    def draws_another_size(self) -> None:
        if not self.drawn:
            return
        first = self.requests[0]
        if self.able.sizes is not None:
            others = [size for size in self.able.sizes if size != (first.width, first.height)]
        else:
            others = [(first.width + self.able.size_multiple, first.height)]
        for width, height in others[:1]:
            request = replace(first, width=width, height=height)
            for png in self.renderer.render_board([request]):
                self._check(png, request, f"{width}x{height}")

    def inserts(self) -> None:
        first = self.requests[0]
        request = replace(first, prompt=f"{_SCENES[1]} {_SCENES[2]}", scene=None, kind="bridge")
        around = BoardContext(tuple(self.requests), tuple(self.board), 1)
        if self.able.insertion == "none":
            self._refuses(request, around)
            return
        with other_random_numbers(4), same_random_numbers():
            png = self.renderer.insert_frame(request, around)
        self._check(png, request, "the inserted frame")
        if not self.repeatable:
            return
        need(
            list(self.renderer.render_board(list(self.requests))) == self.board, "after an insertion the board changed"
        )
        rebuilt = self.make().insert_frame(request, around)
        need(rebuilt == png, "an instance that did not draw the board inserts another frame; rebuild what it needs")
        if self.able.insertion == "alone":
            moved = self.renderer.insert_frame(request, BoardContext((), (), 0))
            need(moved == png, "the inserted frame depends on the board; declare insertion='bank' or 'reference'")

    def _refuses(self, request: FrameRequest, around: BoardContext) -> None:
        from katha.errors import KathaError

        try:
            self.renderer.insert_frame(request, around)
        except KathaError:
            return
        need(False, "insertion is declared as 'none', but insert_frame does not raise a KathaError")

    def _check(self, png: object, request: FrameRequest, what: str) -> None:
        need(isinstance(png, bytes), f"{what} is {type(png).__name__}, not bytes")
        if not isinstance(png, bytes):
            return
        with Image.open(io.BytesIO(png)) as image:
            need(image.format == "PNG", f"{what} is {image.format}, not PNG")
            image.load()
            found, flat = image.size, all(low == high for low, high in image.convert("RGB").getextrema())  # type: ignore[misc]
        wanted = (request.width, request.height)
        need(not self.drawn or found == wanted, f"{what} has {found} pixels, not {wanted}")
        need(not flat, f"{what} is of one colour; the state machine would take it for a failure")
