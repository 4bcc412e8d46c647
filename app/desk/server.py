"""The desk's web application: the page, what it asks for, and what it may do, as routes over one `Desk`."""

from __future__ import annotations

import asyncio
import io
import re
import secrets
import tempfile
import threading
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from urllib.parse import quote

from pydantic import Base64Bytes, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import to_jsonable_python

from katha.agents.editor.edits import Edit
from katha.agents.folder import CAST
from katha.agents.state import ReviewAction, ReviewChoice
from katha.app.desk.desk import Brought, Desk, PastedStory, StaleError, Work
from katha.app.desk.guard import MOST_DRAWING, MOST_REPLY, TooLargeError
from katha.app.desk.room import Room
from katha.app.exports import FORMATS, ExportOptions, export
from katha.app.exports.board import file_name
from katha.app.imports import BOARD_ENDINGS
from katha.app.reports.page import asset, template, thumbnail
from katha.app.reports.run_page import write_report
from katha.errors import InputFileError, KathaError, UsageError
from katha.jsonio import canonical
from katha.photographs import PictureEdit, read_crop, read_levels
from katha.shots import ShotField, offered

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

_SHA256 = re.compile(r"[0-9a-f]{64}")
_SCRIPTS = (
    "desk.js",
    "desk_board.js",
    "desk_choices.js",
    "desk_drawing.js",
    "desk_forms.js",
    "desk_home.js",
    "desk_own.js",
    "desk_parts.js",
    "desk_pen.js",
    "desk_route.js",
    "desk_several.js",
    "desk_typed.js",
    "perfect_freehand.js",
)
_SHOT: Mapping[ShotField, str] = MappingProxyType(
    {
        "shot_size": "Shot size",
        "shot_angle": "Angle",
        "camera_move": "Camera move",
        "time_of_day": "Time of day",
        "weather": "Weather",
        "light": "Light",
        "sound": "Sound",
    }
)
"""What the page calls the fields of a shot."""
_SMALL = 640
# Threads that change boards; reading is not counted.
_AT_ONCE = 8
# How long a page's question for news is held open before it gets "none", and how often there is a look.
_WAIT_SECONDS, _STEP_SECONDS = 10.0, 0.02
_FOR_EVER = "private, max-age=31536000, immutable"

B = TypeVar("B", bound=BaseModel)


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _Typed(_Body):
    key: str = Field(max_length=400)
    values: dict[str, str | list[str]] | None = None


class _Agreed(_Body):
    agreed: bool = False


class _Draw(_Agreed):
    story: PastedStory


class _Import(_Agreed):
    board: Brought


class _Key(_Body):
    key: str = Field(max_length=400)


class _Title(_Body):
    title: str = Field(max_length=400)


class _Reply(_Body):
    number: str = Field(max_length=6)
    text: str = Field(max_length=MOST_REPLY)


class _Choice(_Body):
    action: ReviewAction
    candidate: str | None = Field(default=None, max_length=200)
    prompt: str | None = Field(default=None, max_length=4000)


class _Change(_Body):
    base: str = Field(max_length=40)
    agreed: bool = False


class _Edits(_Change):
    edits: Annotated[list[Edit], Field(min_length=1, max_length=100)]


class _Priced(_Body):
    what: Work
    edits: Annotated[list[Edit], Field(max_length=100)] = []
    number: int = 0


class _Drawing(_Body):
    frame: int
    svg: str = Field(max_length=MOST_DRAWING)


class _Copy(_Agreed):
    to: str = Field(max_length=400)
    frames: Annotated[list[int], Field(min_length=1, max_length=100)]


class _Takes(_Change):
    frame: int
    prompt: str | None = Field(default=None, max_length=4000)


class _Bridge(_Change):
    pair: tuple[int, int]
    prompt: str | None = Field(default=None, max_length=4000)


class _Try(_Change):
    number: int


class _Go(_Change):
    where: Literal["back", "forth"] | None = None
    version: str | None = Field(default=None, max_length=40)


class _Export(_Body):
    to: str = Field(max_length=40)
    options: ExportOptions = ExportOptions()
    logo: Base64Bytes | None = None


def new_token() -> str:
    """Return a token that nobody can guess, for one desk."""
    return secrets.token_urlsafe(24)


def make_application(room: Room) -> Starlette:
    """Return the application over a room of desks; `katha.app.desk.guard.Guard` stands before it.

    A request is about the board that its `?run=NAME` names.
    """
    from starlette.applications import Starlette
    from starlette.routing import Route

    routes = Routes(room)
    table: list[tuple[str, str, Callable[..., Any]]] = [
        ("GET", "/", routes.page),
        ("GET", "/static/{name}", routes.script),
        ("GET", "/api/progress", routes.progress),
        ("GET", "/api/board", routes.board),
        ("GET", "/api/runs", routes.runs),
        ("GET", "/api/removed", routes.removed),
        ("GET", "/api/choices", routes.choices),
        ("GET", "/api/style", routes.style),
        ("GET", "/api/portrait", routes.portrait),
        ("GET", "/api/typed", routes.typed),
        ("GET", "/api/versions", routes.versions),
        ("GET", "/api/find", routes.find),
        ("GET", "/panels/{sha256}", routes.panel),
        ("GET", "/drawings/{sha256}", routes.drawing),
        ("GET", "/paste/{name}", routes.prompt),
        ("GET", "/report", routes.report),
    ]
    table += [("POST", f"/api/{name}", routes.post(name)) for name in routes.actions]
    table += [("POST", "/api/picture", routes.picture), ("POST", "/api/own", routes.own)]
    return Starlette(routes=[Route(path, endpoint, methods=[method]) for method, path, endpoint in table])


class Routes:
    """What each address does."""

    def __init__(self, room: Room) -> None:
        self._room = room
        self._uploads = asyncio.Lock()
        self._acting = asyncio.Semaphore(_AT_ONCE)
        self.actions: dict[str, tuple[type[BaseModel], Callable[[Any, str | None], object]]] = {
            "read": (PastedStory, lambda body, run: room.front.read(body)),
            "draw": (_Draw, lambda body, run: room.draw(body.story, agreed=body.agreed)),
            "import": (_Import, lambda body, run: room.take_in(body.board, agreed=body.agreed)),
            "type": (_Typed, lambda body, run: room.typed.keep(body.key, body.values)),
            "take-up": (_Key, lambda body, run: room.take_up(body.key)),
            "copy": (
                _Copy,
                lambda body, run: {"price": room.copy(run or "", body.to, body.frames, agreed=body.agreed)},
            ),
            "rename": (_Title, lambda body, run: room.rename(run or "", body.title)),
            "remove": (_Body, lambda body, run: {"key": room.remove(run or "")}),
            "restore": (_Key, lambda body, run: {"run": room.restore(body.key)}),
            "delete": (_Key, lambda body, run: room.delete(body.key)),
            **{name: (form, self._at_desk(act)) for name, (form, act) in _ON_A_BOARD.items()},
        }

    def _at_desk(self, act: Callable[[Any, Desk], object]) -> Callable[[Any, str | None], object]:
        return lambda body, run: act(body, self._room.desk(run))

    def _desk(self, request: Request) -> Desk:
        return self._room.desk(request.query_params.get("run"))

    def _found(self, request: Request) -> Desk | None:
        try:
            return self._desk(request)
        except InputFileError:
            return None

    def page(self, request: Request) -> Response:
        """Return the page; everything on it comes by its scripts."""
        from starlette.responses import HTMLResponse

        formats = [(name, form.about) for name, form in FORMATS.items()]
        shots = [(name, label, offered(name)) for name, label in _SHOT.items()]
        html = template("desk.html.j2").render(formats=formats, shots=shots, board_endings=BOARD_ENDINGS)
        return HTMLResponse(html, headers={"cache-control": "no-store"})

    def script(self, request: Request) -> Response:
        """Return one of the page's scripts."""
        from starlette.responses import Response

        name = request.path_params["name"]
        if name not in _SCRIPTS:
            return _failed(InputFileError("There is no such script."), 404)
        return Response(asset(name), media_type="text/javascript", headers={"cache-control": "no-cache"})

    async def progress(self, request: Request) -> Response:
        """Return how far the work is; with `?known=N` as soon as something is new, or after ten seconds."""
        known, waited = request.query_params.get("known"), 0.0
        try:
            desk = self._desk(request)
        except InputFileError as error:
            return _failed(error, 404)
        while str(self._room.ticks) == known and waited < _WAIT_SECONDS:
            if await request.is_disconnected():
                break
            await asyncio.sleep(_STEP_SECONDS)
            waited += _STEP_SECONDS
        ticks, asked, busy = self._room.ticks, desk.exchange(), self._room.working()
        told = {"ticks": ticks, **desk.progress.model_dump(mode="json")}
        told |= {
            "exchange": None if asked is None else asdict(asked),
            "spent": self._room.spent.model_dump(mode="json"),
        }
        return _json({**told, "working": [item.model_dump(mode="json") for item in busy]})

    def prompt(self, request: Request) -> Response:
        """Return a picture of the prompt that waits for a reply from a chat window."""
        from starlette.responses import Response

        desk = self._found(request)
        data = desk.prompt_picture(request.path_params["name"]) if desk is not None else None
        if data is None:
            return _failed(InputFileError("There is no such picture."), 404)
        return Response(data, media_type="image/png", headers={"cache-control": "no-store"})

    def board(self, request: Request) -> Response:
        """Return everything that is shown of the open run, and begin to make it ready for the first change."""
        try:
            desk = self._desk(request)
        except InputFileError as error:
            return _failed(error, 404)
        shown = _tried(desk.page)
        desk.prepare()
        return shown

    def runs(self, request: Request) -> Response:
        """Return the boards in the desk's folder."""
        return _tried(self._room.runs)

    def removed(self, request: Request) -> Response:
        """Return the boards that were taken away and can be put back."""
        return _tried(self._room.removed)

    def choices(self, request: Request) -> Response:
        """Return what can be chosen for a new story; with `?all=1` also what this machine does not have by itself."""
        return _tried(lambda: self._room.choices(everything=bool(request.query_params.get("all"))))

    def style(self, request: Request) -> Response:
        """Return a small picture in a style: `?renderer=NAME&style=NAME`."""
        from starlette.responses import Response

        asked = request.query_params
        try:
            data = self._room.sample(asked.get("renderer", ""), asked.get("style", ""))
        except KathaError as error:
            return _failed(error, 409)
        if data is None:
            return _failed(InputFileError("There is no such sample."), 404)
        return Response(data, media_type="image/png", headers={"cache-control": "private, max-age=3600"})

    def portrait(self, request: Request) -> Response:
        """Return a picture of a character of the open run alone: `?name=NAME`."""
        from starlette.responses import Response

        desk = self._found(request)
        try:
            data = desk.portrait(request.query_params.get("name", "")) if desk is not None else None
        except KathaError as error:
            return _failed(error, 409)
        if data is None:
            return _failed(InputFileError("There is no portrait."), 404)
        return Response(data, media_type="image/png", headers={"cache-control": "no-store"})

    def typed(self, request: Request) -> Response:
        """Return what was typed and not saved, by form, and the name of the folder that it is of."""
        typed = self._room.typed
        return _json({"forms": typed.forms(), "waiting": self._room.waiting(), "home": typed.home_key})

    def versions(self, request: Request) -> Response:
        """Return every version of the open board."""
        return _tried(lambda: self._desk(request).versions())

    def find(self, request: Request) -> Response:
        """Return the numbers of the frames that say all the words of `?words=`."""
        return _tried(lambda: self._desk(request).found(request.query_params.get("words", "")))

    def panel(self, request: Request) -> Response:
        """Return a picture of the open run by its hash; with `?small=1` a light JPEG of it."""
        from starlette.responses import Response

        name = request.path_params["sha256"]
        desk = self._found(request) if _SHA256.fullmatch(name) else None
        data = desk.picture(name) if desk is not None else None
        if data is None:
            return _failed(InputFileError("There is no such picture."), 404)
        kind = "image/png"
        if request.query_params.get("small"):
            data, kind = thumbnail(data, _SMALL), "image/jpeg"
        return Response(data, media_type=kind, headers={"cache-control": _FOR_EVER})

    def drawing(self, request: Request) -> Response:
        """Return the SVG of a picture of the open run by the picture's hash, or of its cast as `cast`."""
        from starlette.responses import Response

        name = request.path_params["sha256"]
        desk = self._found(request) if name == CAST or _SHA256.fullmatch(name) else None
        try:
            data = desk.drawing(name) if desk is not None else None
        except InputFileError as error:
            return _failed(error, 409)
        if data is None:
            return _failed(InputFileError("There is no such drawing."), 404)
        headers = {"content-security-policy": "sandbox; default-src 'none'", "cache-control": "no-store"}
        return Response(data, media_type="image/svg+xml", headers=headers)

    def report(self, request: Request) -> Response:
        """Return the run's report, made anew from its records; it runs in a sandbox of its own."""
        from starlette.responses import HTMLResponse

        desk = self._found(request)
        if desk is None or desk.run is None:
            return _failed(InputFileError("No run is open."), 404)
        try:
            page = write_report(desk.run).read_text(encoding="utf-8")
        except KathaError as error:
            return _failed(error, 409)
        policy = "sandbox allow-scripts; default-src 'none'; img-src data:; style-src 'unsafe-inline'"
        headers = {"content-security-policy": f"{policy}; script-src 'unsafe-inline'", "cache-control": "no-store"}
        return HTMLResponse(page, headers=headers)

    def post(self, name: str) -> Callable[[Request], Any]:
        """Return the endpoint of an action: its body is read and checked, and the action done beside the event loop."""
        form, act = self.actions[name]

        async def endpoint(request: Request) -> Response:
            if request.headers.get("content-type", "").partition(";")[0] != "application/json":
                return _failed(UsageError("A request here is JSON."), 415)
            try:
                body = form.model_validate_json(await request.body())
            except TooLargeError as error:
                return _failed(UsageError(str(error)), 413)
            except ValidationError as error:
                first = error.errors(include_url=False, include_input=False)[0]
                where = ".".join(str(part) for part in first["loc"]) or "the request"
                return _failed(UsageError(f"{where}: {first['msg']}."), 422)
            return await self._beside(lambda: act(body, request.query_params.get("run")))

        return endpoint

    async def picture(self, request: Request) -> Response:
        """Keep a picture of a character, the request's body, and return its hash."""
        return await self._uploaded(request, lambda data: {"sha256": self._desk(request).keep_picture(data)})

    async def own(self, request: Request) -> Response:
        """Keep a picture of a person's own for a frame, the request's body, and return its hash; with `?look=1` keep
        nothing and return it as the frame would show it. `crop`, `levels` and `fill` are those of `katha redo`."""
        from starlette.responses import Response

        asked = request.query_params

        def act(data: bytes) -> object:
            crop = read_crop(asked["crop"]) if asked.get("crop") else None
            levels = read_levels(asked["levels"]) if asked.get("levels") else None
            desk, how = self._desk(request), PictureEdit(crop, levels, bool(asked.get("fill")))
            if not asked.get("look"):
                return {"sha256": desk.keep_own(data, how)}
            return Response(desk.prepared(data, how), media_type="image/png", headers={"cache-control": "no-store"})

        return await self._uploaded(request, act)

    async def _uploaded(self, request: Request, act: Callable[[bytes], object]) -> Response:
        """Do something with a picture that is the request's body.

        One at a time is taken in and decoded, so that many at once need the memory of one.
        """
        if not request.headers.get("content-type", "").startswith("image/"):
            return _failed(UsageError("A picture is sent as image/..."), 415)
        async with self._uploads:
            try:
                data = await request.body()
            except TooLargeError as error:
                return _failed(UsageError(str(error), hint="Scale the picture down."), 413)
            return await self._beside(lambda: act(data))

    async def _beside(self, act: Callable[[], object]) -> Response:
        """Return what an action gives, done beside the event loop in a thread that nobody waits for when the desk is
        ended."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Response] = loop.create_future()

        def done(made: Response) -> None:
            if not answer.done():
                answer.set_result(made)

        def work() -> None:
            made = _tried(act)
            with suppress(RuntimeError):  # the desk was ended meanwhile
                loop.call_soon_threadsafe(done, made)

        async with self._acting:
            threading.Thread(target=work, name="desk-act", daemon=True).start()
            return await answer


def _exported(body: _Export, desk: Desk) -> object:
    """A board in another form, as a download."""
    from starlette.responses import Response

    if desk.run is None or body.to not in FORMATS:
        raise UsageError("There is nothing to export, or no such form.", hint=f"Known: {', '.join(FORMATS)}.")
    if body.options.audio is not None or body.options.font:
        raise UsageError("The desk reads no files of this machine for an export.", hint="Use `katha export`.")
    with tempfile.TemporaryDirectory(prefix="katha-desk-") as place:
        name = file_name(desk.run)
        suffix = FORMATS[body.to].suffix
        out, options = Path(place) / "out", body.options
        out.mkdir()
        if body.logo is not None:
            logo = Path(place) / "logo"
            logo.write_bytes(body.logo)
            options = options.model_copy(update={"logo": logo})
        made = export(desk.run, body.to, out / (f"{name}{suffix or f'_{body.to}'}"), options)
        several = made.is_dir() or len(list(out.iterdir())) > 1
        data = _zipped(out) if several else made.read_bytes()
        label = f"{name}_{body.to}.zip" if several else made.name
    plain = label if label.isascii() else f"board{Path(label).suffix}"
    told = f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(label)}"
    headers = {"content-disposition": told, "cache-control": "no-store"}
    return Response(data, media_type="application/octet-stream", headers=headers)


_ON_A_BOARD: dict[str, tuple[type[BaseModel], Callable[[Any, Desk], object]]] = {
    "reply": (_Reply, lambda body, desk: desk.bring(body.number, body.text)),
    "go-on": (_Agreed, lambda body, desk: desk.go_on(agreed=body.agreed)),
    "stop": (_Body, lambda body, desk: desk.stop()),
    "choose": (_Choice, lambda body, desk: desk.choose(ReviewChoice(body.action, body.candidate, body.prompt))),
    "price": (_Priced, lambda body, desk: desk.price_of(body.what, body.edits, body.number)),
    "edit": (_Edits, lambda body, desk: desk.edit(body.edits, body.base, agreed=body.agreed)),
    "drawing": (_Drawing, lambda body, desk: {"sha256": desk.keep_drawing(body.svg, body.frame)}),
    "takes": (_Takes, lambda body, desk: desk.draw_takes(body.frame, body.prompt, body.base, agreed=body.agreed)),
    "bridge": (_Bridge, lambda body, desk: desk.propose(body.pair, body.prompt, body.base, agreed=body.agreed)),
    "moves": (_Change, lambda body, desk: desk.ask_moves(body.base, agreed=body.agreed)),
    "try": (_Try, lambda body, desk: desk.try_move(body.number, body.base, agreed=body.agreed)),
    "version": (_Go, lambda body, desk: desk.go(body.where, body.version, body.base)),
    "export": (_Export, _exported),
}
"""What may be asked of one board."""


def _zipped(folder: Path) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                archive.write(path, path.relative_to(folder).as_posix())
    return out.getvalue()


def _tried(act: Callable[[], object]) -> Response:
    """Return what an action gives as JSON; what it refuses as a sentence."""
    from starlette.responses import Response

    try:
        made = act()
    except StaleError as error:
        return _failed(error, 409)
    except UsageError as error:
        return _failed(error, 400)
    except KathaError as error:
        return _failed(error, 500)
    except OSError as error:
        said = f"The system refused to read or write {str(error.filename or 'a file')!r}: {error.strerror or error}."
        return _failed(UsageError(said, hint="Look at the folder of the boards, and try again."), 500)
    except Exception as error:  # a plug-in's mistake ends its request, never the desk
        return _failed(KathaError(f"Unexpected {type(error).__name__}: {error}"), 500)
    return made if isinstance(made, Response) else _json(to_jsonable_python(made))


def _json(value: object, status: int = 200) -> Response:
    from starlette.responses import Response

    headers = {"cache-control": "no-store"}
    return Response(canonical(value), status, headers, media_type="application/json")


def _failed(error: KathaError, status: int) -> Response:
    return _json({"error": str(error), "stale": isinstance(error, StaleError)}, status)
