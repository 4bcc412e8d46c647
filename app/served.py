"""The machine for LangGraph's own server and for LangGraph Studio: `langgraph.json` names `make_graph`.

begin -> price -> draw -> (review -> draw)*: a story goes in, or a run that was begun elsewhere; what a person decides
is asked by LangGraph's interrupt with the schema of its answer. `draw` is `katha.run_story` in a folder of runs, with
that folder's own checkpoints. So a run that was begun here goes on in the terminal and at the desk, and the other way
round, whatever this server still knows of it.
"""

from __future__ import annotations

from contextvars import Context
from pathlib import Path
from typing import Any, Literal, NotRequired, cast

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import interrupt
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from katha.agents.folder import RunFolder
from katha.agents.graph import check_choice, choice_schema, review_question
from katha.agents.state import ReviewChoice, ReviewRequest, RunResult
from katha.app.desk.desk import Desk, Told, text_of
from katha.app.drawing import resume_run, run_story
from katha.config import MOST_PANELS, read_settings, resolve
from katha.errors import UsageError
from katha.jsonio import digest, write_bytes_atomic

RUNS = Path("out")
"""The folder of runs, below the one that the server was started in: the desk's and the terminal's own."""


class Choices(BaseModel):
    """What a client may choose of a new run (the graph's `context_schema`).

    Who plans, draws and judges is what the server was started with (`KATHA_RENDERER=...`): a page that reaches the
    server names no code, no file and no service.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    panels: int | None = Field(
        default=None, ge=2, le=MOST_PANELS, description="How many scenes the story is told in; as many as it calls for."
    )
    style: str = Field(default="", max_length=200, description="A look that the renderer knows, or a style phrase.")
    mode: str = Field(
        default="full", pattern=r"^[a-z_]{1,64}$", description="The repair mode: full, base, rerank_only, ..."
    )
    seeds: tuple[int, ...] = Field(default=(42, 123, 2026), max_length=8, description="One candidate board a seed.")
    review: bool = Field(default=True, description="Stop before the repair is decided and ask a person.")


class Agreed(BaseModel):
    """A person's word on the price."""

    agreed: bool = Field(description="Go on and pay for it?")


class Given(TypedDict):
    """What goes in: the story's own words, or the name of a run that is there."""

    story: NotRequired[str]
    title: NotRequired[str]
    run: NotRequired[str]


class Drawn(TypedDict):
    """What comes out; `name` is the run's, below the folder of runs."""

    name: NotRequired[str]
    status: NotRequired[str]
    reason: NotRequired[str]
    frames: NotRequired[int]
    accepted: NotRequired[bool]
    report: NotRequired[str]


class Asked(TypedDict):
    """A question that a run waits with: what is shown, the answer's schema, and the hash of what was asked about."""

    question: dict[str, Any]
    schema: dict[str, Any]
    mark: str


class Answered(TypedDict):
    """The answer to the question of that mark."""

    mark: str
    choice: dict[str, Any]


class ServedState(Given, Drawn):
    """What the server keeps; everything that was drawn and judged is in the run's folder."""

    told: NotRequired[bool]
    """Whether the run was begun from words, which are in a text file beside it; else it is gone on with."""
    cost: NotRequired[list[str]]
    """What would be paid for; empty where nothing is."""
    asked: NotRequired[Asked | None]
    answered: NotRequired[Answered | None]


class _Waits(Exception):
    """The run waits for a person: it is left as a kill would leave it, and gone on with when the answer is there."""


def _desk() -> Desk:
    return Desk(RUNS.absolute(), resolve({}))


def begin(state: ServedState, runtime: Runtime[Choices]) -> ServedState:
    """Keep the story beside its run's folder, as the desk does, or look for the run that is named.

    Raises:
        UsageError: neither is given, or both; or the story cannot be read. InputFileError: there is no such run.
    """
    desk, words, named = _desk(), state.get("story", ""), state.get("run", "")
    if bool(words.strip()) == bool(named):
        raise UsageError("Give either a story or the name of a run.", hint='For example {"story": "..."}.')
    # A thread keeps what it was given: the next run in it begins with nothing of this one.
    begun: ServedState = {"story": "", "title": "", "run": "", "status": "running", "reason": "", "asked": None}
    if named:
        desk.open(named)
        each = desk.price()
        told = "at an unknown price" if each.picture is None else f"${each.picture:.2f} a picture"
        cost = [] if each.free else [f"Pictures and answers of this run are paid for, {told}."]
        return {**begun, "name": named, "told": False, "cost": cost, "answered": None}
    choices = runtime.context or Choices()
    given = {"title": state.get("title", ""), "text": words, "panels": choices.panels, "style": choices.style}
    story = read_settings(Told, given)
    draft, (name, _) = desk.draft(story), desk.name_of(story)
    desk.home.mkdir(parents=True, exist_ok=True)
    write_bytes_atomic(_text(name), text_of(story).encode("utf-8"))
    cost = [] if draft.cost.free else list(draft.cost.lines)
    return {**begun, "name": name, "told": True, "cost": cost, "answered": None}


def _text(name: str) -> Path:
    return RUNS.absolute() / f"{name}.txt"


def price(state: ServedState) -> Drawn:
    """Ask before anything is paid; what is free is not asked about."""
    if not state["cost"]:
        return {}
    question = {"question": "This is paid for. Go on? Answer {agreed: true or false}.", "cost": state["cost"]}
    agreed: Agreed = _valid(Agreed, question, Agreed.model_json_schema())
    return {} if agreed.agreed else {"reason": "Not drawn: the price was not agreed to.", "status": "refused"}


def after_price(state: ServedState) -> Literal["draw", "__end__"]:
    """A price that is not agreed to ends the run before it is begun."""
    return "__end__" if state.get("status") == "refused" else "draw"


def _valid(model: type[Any], question: dict[str, Any], schema: dict[str, Any]) -> Any:
    """Ask until the answer has the form of `model`; what was wrong with one is said with the question."""
    form = TypeAdapter(model)
    while True:
        try:
            return form.validate_python(interrupt(question, response_schema=schema))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "the answer"
            question = {**question, "wrong": f"{where}: {first['msg']}."}


def draw(state: ServedState, runtime: Runtime[Choices]) -> ServedState:
    """Begin the run or go on with it, until it is finished or a person is to decide.

    Raises:
        KathaError: the input is wrong, or the work failed; invoke it again to go on.
    """
    name, answered, choices = state["name"], state.get("answered"), runtime.context or Choices()
    out = RUNS.absolute() / name
    asked: list[Asked] = []

    def ask(request: ReviewRequest) -> ReviewChoice:
        nonlocal answered
        now = _asked(request)
        if answered is not None and answered["mark"] == now["mark"]:
            choice, answered = ReviewChoice(**answered["choice"]), None
            try:
                return check_choice(choice, request)
            except UsageError as error:
                now["question"]["wrong"] = str(error)
        asked.append(now)
        raise _Waits

    def work() -> RunResult:
        if not state["told"] or RunFolder(out).plan.is_file():  # it is its folder's by now, whoever changed it
            return resume_run(out, on_event=runtime.stream_writer, reviewer=ask)
        return run_story(_text(name), out=out, on_event=runtime.stream_writer, reviewer=ask, **dict(choices))

    try:
        # Not within this graph: the machine has its own checkpoints, in the run's folder.
        result = Context().run(work)
    except _Waits:
        return {"asked": asked[-1], "answered": None}
    return _drawn(name, result)


def _asked(request: ReviewRequest) -> Asked:
    """The question about the inserted frames, with where their pictures are."""
    pictures = {
        item.name: str(request.panels / f"{frame.sha256}.png")
        for item in request.inserted
        for frame in item.board.frames
        if frame.transition == request.weakest
    }
    question = {**review_question(request), "weakest": list(request.weakest), "pictures": pictures}
    about = [request.selected.name, request.prompt, pictures]
    return Asked(question=question, schema=choice_schema(request), mark=digest(about))


def _drawn(name: str, result: RunResult) -> ServedState:
    decision = result.candidates.decision
    return {
        "name": name,
        "report": str(result.out / "report.html"),
        "frames": len(result.board.frames),
        "accepted": decision.accepted,
        "reason": decision.reason,
        "status": result.outcome.status(),
        "asked": None,
        "answered": None,
    }


def after_draw(state: ServedState) -> Literal["review", "__end__"]:
    """A run that waits is asked about; one that ended is done."""
    return "review" if state.get("asked") is not None else "__end__"


def review(state: ServedState) -> ServedState:
    """Ask a person. The answer is `{action, candidate, prompt, seed}`, by the schema that the interrupt carries."""
    asked = cast(Asked, state["asked"])
    choice: ReviewChoice = _valid(ReviewChoice, asked["question"], asked["schema"])
    return {"answered": Answered(mark=asked["mark"], choice=dict(vars(choice))), "asked": None}


def make_graph() -> CompiledStateGraph[ServedState, Choices, Given, Drawn]:
    """Return the graph that `langgraph dev` serves; the server brings the checkpointer of its threads."""
    graph = StateGraph(ServedState, context_schema=Choices, input_schema=Given, output_schema=Drawn)
    for name, node in (("begin", begin), ("price", price), ("draw", draw), ("review", review)):
        graph.add_node(name, node)
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "price")
    graph.add_conditional_edges("price", after_price, ["draw", END])
    graph.add_conditional_edges("draw", after_draw, ["review", END])
    graph.add_edge("review", "draw")
    return graph.compile(name="katha")
