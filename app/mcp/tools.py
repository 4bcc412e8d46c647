"""The tools: plan, run, judge, weakest, propose_bridge, accept, redo, undo, forward and export, and what people are
asked.

Each opens a run of the server's folder by its name and does one thing that the desk does, too: there is no second way
to edit. What is decided (taking a bridge in, paying) is asked of a person where the client can ask.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, Field

from katha.agents.editor.editing import Proposal
from katha.agents.editor.edits import InsertBridge, TakeFrame
from katha.app.desk.desk import PastedStory
from katha.app.exports import FORMATS, ExportOptions
from katha.app.exports import export as export_run
from katha.app.mcp.answers import (
    BoardTold,
    ExportTold,
    PlanTold,
    ProposalsTold,
    RedoTold,
    give,
    tell_board,
    tell_cut,
    tell_plan,
    tell_proposals,
    tell_redone,
    tell_takes,
)
from katha.app.mcp.studio import Studio, calmly, require
from katha.config import MOST_PANELS, Settings, read_settings
from katha.errors import InputFileError, UsageError
from katha.renderers.folder import find_board

_FEWEST, _MOST = 2, 24
Ctx = Context[Studio, Any]
Story = Annotated[str, Field(description="The story's own words, a few sentences or more.", max_length=200_000)]
Title = Annotated[str, Field(description="The story's title; its run is named by it.", max_length=200)]
Panels = Annotated[
    int | None,
    Field(description="How many frames the board has; as many as the story calls for.", ge=_FEWEST, le=MOST_PANELS),
]
Style = Annotated[str, Field(description="The style of the pictures, in words; the server's own unless told.")]
Name = Annotated[str, Field(description="The run's name, as `run` and `judge` give it.", max_length=200)]
Prompt = Annotated[str | None, Field(description="Draw this instead of the plan's words.", max_length=4000)]
Version = Annotated[
    str | None, Field(description="The version that was looked at; refused when the board is another by now.")
]


class Agreement(BaseModel):
    """A person's word on the price."""

    agreed: bool = Field(description="Go on and pay for it?")


class BridgeChoice(BaseModel):
    """A person's decision about bridges that were proposed."""

    insert: bool = Field(description="Put a bridge into the board? If not, the board stays as it is.")
    seed: int | None = Field(default=None, description="Which one, by its seed; the first that was named unless told.")


def _can_ask(context: Ctx) -> bool:
    able = context.client_capabilities
    return able is not None and able.elicitation is not None


def _studio(context: Ctx) -> Studio:
    return context.request_context.lifespan_context


def _asked_price(context: Ctx, what: str, dollars: float | None) -> Agreement | Elicit[Agreement]:
    """Return whether something may be paid for: it is free, the server was started with a limit, or a
    person says so."""
    if dollars == 0.0 or _studio(context).limited:
        return Agreement(agreed=True)
    price = f"costs about ${dollars:.2f} at most" if dollars is not None else "costs money, nobody knows how much"
    if _can_ask(context):
        return Elicit(f"{what} {price}. Go on?", Agreement)
    raise UsageError(
        f"{what} {price}, and this client cannot ask you.", hint="Start the server with a limit: --max-cost DOLLARS."
    )


async def price_of_story(
    story: str, title: str, panels: int | None, style: str, go_on: str | None, context: Ctx
) -> Agreement | Elicit[Agreement]:
    """Ask for the price of drawing a story; a run that is gone on with was agreed to."""
    if go_on is not None:
        return Agreement(agreed=True)
    async with _studio(context).held() as desk:
        cost = (await calmly(lambda: desk.draft(_told(story, title, panels, style)))).cost
    return _asked_price(context, "Drawing and judging this story", cost.dollars)


async def price_of_pictures(folder: str, story: str, title: str, context: Ctx) -> Agreement | Elicit[Agreement]:
    """Ask for the price of judging pictures that exist."""
    studio = _studio(context)
    told, settings = await _theirs(studio, folder, story, title)
    async with studio.held() as desk:
        cost = (await calmly(lambda: desk.draft(told, settings))).cost
    return _asked_price(context, "Judging these pictures", cost.dollars)


async def price_of_change(run: str, context: Ctx) -> Agreement | Elicit[Agreement]:
    """Ask for the price of a picture of an open run."""
    studio = _studio(context)
    async with studio.opened(run):
        price = await calmly(studio.desk.price)
    if price.free:
        return Agreement(agreed=True)
    return _asked_price(context, "Each picture of this run, with its judging,", price.picture or None)


async def decision_of(run: str, seed: int | None, context: Ctx) -> BridgeChoice | Elicit[BridgeChoice]:
    """Ask a person which of the proposed bridges goes in; the caller's seed is taken where nobody can be asked."""
    studio = _studio(context)
    async with studio.opened(run) as path:
        listed = _proposed(studio, path)
        title = (await calmly(studio.desk.page)).board
    if not _can_ask(context):
        known = require(seed, "This client cannot ask a person.", "Name the bridge by its seed.")
        return BridgeChoice(insert=True, seed=known)
    ordered = sorted(listed, key=lambda item: item.seed != seed)
    left, right = ordered[0].pair
    said = "; ".join(f"seed {item.seed}: {item.reason.rstrip('.')}" for item in ordered)
    name = title.title if title is not None else run
    return Elicit(f"A bridge between scenes {left} and {right} of {name}? Proposed are {said}.", BridgeChoice)


async def plan(
    story: Story, context: Ctx, title: Title = "", panels: Panels = None, style: Style = ""
) -> Annotated[CallToolResult, PlanTold]:
    """Plan a story's frames, and say which sentences no panel tells and what drawing would cost. Draws nothing."""
    async with _studio(context).held() as desk:
        return tell_plan(await calmly(lambda: desk.draft(_told(story, title, panels, style))))


async def run(
    context: Ctx,
    agreement: Annotated[Agreement, Resolve(price_of_story)],
    story: Story = "",
    title: Title = "",
    panels: Panels = None,
    style: Style = "",
    repair: Annotated[
        bool, Field(description="Repair the weakest cut by the rule; else leave it to propose_bridge and accept.")
    ] = True,
    go_on: Annotated[str | None, Field(description="Go on with this run, which was stopped; no story then.")] = None,
) -> Annotated[CallToolResult, BoardTold]:
    """Draw a story as a board, measure what is understood from its pictures alone, and repair its weakest cut."""
    studio = _studio(context)
    _require_agreed(agreement)
    if go_on is not None:
        async with studio.opened(go_on) as path:
            await studio.work(studio.desk.go_on, context)
            return await calmly(lambda: tell_board(path, studio.desk.page()))
    told = _told(story, title, panels, style)
    own = studio.desk.settings
    return await _drawn(context, told, own if repair else own.model_copy(update={"mode": "rerank_only"}))


async def judge(
    folder: Annotated[str, Field(description="Its folder, relative to the server's: 1.png, 2.png and so on.")],
    story: Story,
    context: Ctx,
    agreement: Annotated[Agreement, Resolve(price_of_pictures)],
    title: Title = "",
) -> Annotated[CallToolResult, BoardTold]:
    """Measure a board drawn elsewhere as a run, and find its weakest cut. The pictures stay as they are."""
    _require_agreed(agreement)
    return await _drawn(context, *await _theirs(_studio(context), folder, story, title))


async def weakest(run: Name, context: Ctx) -> Annotated[CallToolResult, BoardTold]:
    """Show the weakest cut of a finished board: its two frames, and what a viewer answers from the pictures alone."""
    studio = _studio(context)
    async with studio.opened(run) as path:
        return await calmly(lambda: tell_cut(path, studio.desk.page()))


async def propose_bridge(
    run: Name,
    context: Ctx,
    agreement: Annotated[Agreement, Resolve(price_of_change)],
    scenes: Annotated[
        tuple[int, int] | None, Field(description="The two scenes; the weakest cut without a bridge unless told.")
    ] = None,
    prompt: Prompt = None,
) -> Annotated[CallToolResult, ProposalsTold]:
    """Draw frames that could go between two scenes and measure each. The board stays as it is until `accept`."""
    studio = _studio(context)
    _require_agreed(agreement)
    async with studio.opened(run) as path:
        base = await _base(studio, None)
        await studio.work(lambda: studio.desk.propose(scenes, prompt, base, agreed=True), context)
        studio.proposed_on = base
        return await calmly(lambda: tell_proposals(path, studio.desk.page()))


async def accept(
    run: Name,
    context: Ctx,
    choice: Annotated[ElicitationResult[BridgeChoice], Resolve(decision_of)],
    seed: Annotated[int | None, Field(description="The bridge that you would take, by its seed.")] = None,
    version: Version = None,
) -> Annotated[CallToolResult, BoardTold]:
    """Put a bridge that `propose_bridge` drew into the board. A person decides, where the client can ask one."""
    studio = _studio(context)
    async with studio.opened(run) as path:
        if not isinstance(choice, AcceptedElicitation) or not choice.data.insert:
            kept = "The board stays as it was."
            return await calmly(lambda: tell_board(path, studio.desk.page(), pictures=False, also=kept))
        wanted = choice.data.seed if choice.data.seed is not None else seed
        listed = _proposed(studio, path)
        known = {item.seed: item for item in listed}
        chosen = known.get(wanted) if wanted is not None else listed[0]
        said = ", ".join(map(str, known))
        bridge = require(chosen, f"No bridge with seed {wanted} was proposed.", f"Proposed seeds: {said}.")
        edit = InsertBridge(pair=bridge.pair, seed=bridge.seed, prompt=bridge.prompt)
        base = version if version is not None else studio.proposed_on
        await studio.work(lambda: studio.desk.edit([edit], base, agreed=True), context)
        return await calmly(lambda: tell_board(path, studio.desk.page()))


async def redo(
    run: Name,
    frame: Annotated[int, Field(description="Which frame, from 1, in the order in which they are shown.", ge=1)],
    context: Ctx,
    agreement: Annotated[Agreement, Resolve(price_of_change)],
    seed: Annotated[
        int | None, Field(description="Put the picture of this seed on the board; three takes are shown unless told.")
    ] = None,
    prompt: Prompt = None,
    version: Version = None,
) -> Annotated[CallToolResult, RedoTold]:
    """Draw takes of a frame to choose from; with a seed put it on the board and judge again what depends on it."""
    studio = _studio(context)
    _require_agreed(agreement)
    async with studio.opened(run) as path:
        base = await _base(studio, version)
        if seed is None:
            await studio.work(lambda: studio.desk.draw_takes(frame, prompt, base, agreed=True), context)
            return await calmly(lambda: tell_takes(path, studio.desk.page()))
        edit = TakeFrame(frame=frame, seed=seed, prompt=prompt)
        await studio.work(lambda: studio.desk.edit([edit], base, agreed=True), context)
        return await calmly(lambda: tell_redone(path, studio.desk.page(), frame))


async def undo(run: Name, context: Ctx) -> Annotated[CallToolResult, BoardTold]:
    """Go back to the board before the last change; no version is ever lost."""
    return await _gone(run, "back", context)


async def forward(run: Name, context: Ctx) -> Annotated[CallToolResult, BoardTold]:
    """Go forth to the board that was made last from this one, after an undo."""
    return await _gone(run, "forth", context)


async def _gone(run: str, where: Literal["back", "forth"], context: Ctx) -> CallToolResult:
    studio = _studio(context)
    async with studio.opened(run) as path:
        base = await _base(studio, None)
        await studio.work(lambda: studio.desk.go(where, None, base), context)
        return await calmly(lambda: tell_board(path, studio.desk.page()))


async def export(
    run: Name,
    to: Annotated[str, Field(description=f"What is written: {', '.join(FORMATS)}.", max_length=40)],
    context: Ctx,
    layout: Annotated[str, Field(description="Of a pdf: storyboard, book or contact.")] = "storyboard",
    page: Annotated[str, Field(description="Of a pdf: a4, a5, letter, square, or WIDTHxHEIGHT in millimetres.")] = "a4",
    seconds: Annotated[
        float | None,
        Field(description="How long a frame stands that has no duration; unless told as its words need to be read."),
    ] = None,
) -> Annotated[CallToolResult, ExportTold]:
    """Write the board for another tool, into the run's own folder `exports`."""
    studio = _studio(context)
    options = read_settings(ExportOptions, {"layout": layout, "page": page, "seconds": seconds})
    if to not in FORMATS:
        raise UsageError(f"There is no export {to!r}.", hint=f"Known: {', '.join(FORMATS)}.")
    async with studio.opened(run) as path:
        made = await calmly(lambda: export_run(path, to, _free(studio, path, to), options))
    return give(ExportTold(path=str(made), format=to), f"Exported: {made}")


def add_tools(server: MCPServer[Studio]) -> None:
    """Give a server every tool."""
    looks = ToolAnnotations(read_only_hint=True, open_world_hint=False)
    makes = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
    for tool, kind in (
        *((plan, looks), (run, makes), (judge, makes), (weakest, looks), (propose_bridge, makes)),
        *((accept, makes), (redo, makes), (undo, makes), (forward, makes), (export, makes)),
    ):
        server.add_tool(tool, annotations=kind)


def _told(story: str, title: str, panels: int | None, style: str) -> PastedStory:
    return PastedStory(title=title, text=story, panels=panels, style=style)


async def _theirs(studio: Studio, folder: str, story: str, title: str) -> tuple[PastedStory, Settings]:
    """The story of pictures that lie below the root, with as many panels as there are, and what reads them."""
    place = studio.inside(folder)
    told = _told(story, title, _FEWEST, "")
    async with studio.held() as desk:
        story_id = (await calmly(lambda: desk.name_of(told)))[0]
        found = await calmly(lambda: find_board(place, story_id))
        own = desk.settings
    panels = len(found.pictures)
    if not _FEWEST <= panels <= _MOST:
        raise InputFileError(f"{folder!r} holds {panels} pictures.", hint=f"A board has {_FEWEST} to {_MOST} here.")
    # The pictures have a size and a look of their own; who draws for this server draws the bridges.
    theirs = {"renderer": f"folder:{place}", "mode": "base", "size": None, "style": ""}
    settings = own.model_copy(update={**theirs, "bridge_renderer": own.bridge_renderer or own.renderer})
    return told.model_copy(update={"panels": panels}), settings


def _require_agreed(agreement: Agreement) -> None:
    if not agreement.agreed:
        raise UsageError("Nothing was drawn: the price was not agreed to.")


async def _drawn(context: Ctx, told: PastedStory, settings: Settings) -> CallToolResult:
    """Draw a story on the desk, to its end, and give its board."""
    studio = _studio(context)
    async with studio.held() as desk:
        await studio.work(lambda: desk.draw(told, agreed=True, review=False, settings=settings), context)
        path = require(desk.run, "Nothing was drawn.", "Try again.")
        return await calmly(lambda: tell_board(path, desk.page()))


async def _base(studio: Studio, version: str | None) -> str:
    """The version that a change is made on: the one that was looked at, else the board as it stands."""
    return version if version is not None else (await calmly(studio.desk.page)).version


def _proposed(studio: Studio, run: Path) -> tuple[Proposal, ...]:
    found = studio.desk.proposals
    if not found:
        raise UsageError(f"Nothing was proposed for the board of {run.name!r}.", hint="Call propose_bridge first.")
    return found


def _free(studio: Studio, run: Path, to: str) -> Path:
    """A name in the run's folder `exports` that an export may take; a folder never goes over another one."""
    suffix = FORMATS[to].suffix
    place = run / "exports"
    if Path(os.path.realpath(place)) != Path(os.path.realpath(run)) / "exports":
        raise InputFileError(f"The folder 'exports' of the run {run.name!r} lies elsewhere.", hint="Remove that link.")
    if suffix:
        return place / f"{run.name}{suffix}"
    number, target = 1, place / f"{run.name}_{to}"
    while target.exists():
        number += 1
        target = place / f"{run.name}_{to}_{number}"
    return target
