"""`comfyui:MAP.yaml`: frames by a workflow of your own on a ComfyUI server, over its HTTP and websocket interface.

The map is a YAML file that names workflows in ComfyUI's API format (its menu: Export (API)) and says which input of
which node, `ID.INPUT`, takes what katha knows of a frame. Pictures are uploaded under their hash, a prompt is
queued, its progress is listened to, and the pictures are fetched from the server's history.
"""

from __future__ import annotations

import io
import json
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from katha.addresses import url_problem
from katha.errors import InputFileError, MissingExtraError, RenderError, TransientRenderError, UsageError
from katha.installing import install_line
from katha.jsonio import digest, read_json, read_yaml, sha256_hex
from katha.models.client import Backoff, Fault, Vendor
from katha.models.http import HttpClient
from katha.protocols import BoardContext, Capabilities, FrameRequest, Renderer
from katha.renderers.hosted.service import as_frame
from katha.renderers.references import CharacterPictures
from katha.schema import Character

if TYPE_CHECKING:
    from httpx import Response

_LISTEN = 2.0
"""Seconds of silence after which the history is looked into, too: a message may have been lost."""
_OURS = "katha"
_FOLDER = "katha"


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Places = Annotated[tuple[str, ...], BeforeValidator(_listed), Field(default=())]
"""Inputs of nodes, each `ID.INPUT`; one may be given without a list."""


class Wiring(BaseModel):
    """One workflow, and which of its nodes' inputs take what.

    workflow: the file, beside the map. output: the node whose picture is the frame; the only one that gives any unless
    told. characters: inputs that take a picture of a character each; neighbours: those that take the frames before and
    after an added one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    workflow: Path
    prompt: Places
    negative: Places
    seed: Places
    width: Places
    height: Places
    characters: Places
    neighbours: Places
    output: str | None = None


class WorkflowMap(BaseModel):
    """What a map says: how a scene is drawn, and how an added frame is, if otherwise."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    scene: Wiring
    bridge: Wiring | None = None


class ComfyClient(HttpClient):
    """A ComfyUI server. It has no key; calls are paced and tried again as every vendor's are."""

    def get(self, path: str, **query: str) -> Response:
        """Return the answer to a GET."""
        return _fine(self.sdk.get(path, params=query))

    def post(self, path: str, **body: Any) -> Response:
        """Return the answer to a POST; `json=` or `files=` and `data=`, as httpx takes them."""
        return _fine(self.sdk.post(path, **body))

    def upload(self, png: bytes) -> str:
        """Put a picture into the server's input folder and return what a LoadImage node calls it."""
        name = f"{sha256_hex(png)[:32]}.png"
        files, data = {"image": (name, png, "image/png")}, {"subfolder": _FOLDER, "overwrite": "true"}
        told = self.post("/upload/image", files=files, data=data).json()
        return "/".join(filter(None, (told.get("subfolder"), told["name"])))

    def draw(self, prompt: Mapping[str, Any]) -> Mapping[str, Any]:
        """Run a workflow and return its outputs by node.

        Raises:
            Fault: the server refuses it, a node fails, or nothing is heard of it for `timeout` seconds.
        """
        try:
            from websockets.exceptions import WebSocketException
            from websockets.sync.client import connect
        except ImportError as error:
            raise MissingExtraError("The renderer 'comfyui' needs websockets.", hint=install_line("comfyui")) from error
        client_id = f"{_OURS}-{uuid.uuid4().hex}"
        address = "ws" + self.vendor.url.removeprefix("http") + f"/ws?clientId={client_id}"
        try:
            # Listened to before it is queued, so that no message is missed.
            with connect(address, max_size=None, open_timeout=self.timeout) as socket:
                asked = {"prompt": prompt, "client_id": client_id}
                prompt_id = str(self.post("/prompt", json=asked).json()["prompt_id"])
                heard = time.monotonic()
                while (outputs := self._outputs(prompt_id)) is None:
                    try:
                        while not _ends(socket.recv(timeout=_LISTEN), prompt_id):
                            heard = time.monotonic()
                    except TimeoutError:
                        if time.monotonic() - heard > self.timeout:
                            self.post("/queue", json={"delete": [prompt_id]})
                            raise Fault("broken", f"nothing was heard of it for {self.timeout:.0f} s") from None
                return outputs
        except (OSError, WebSocketException) as error:
            raise Fault("broken", f"{type(error).__name__}: {error}") from None

    def _outputs(self, prompt_id: str) -> Mapping[str, Any] | None:
        """Return a finished prompt's outputs; None while it waits or runs."""
        found = self.get(f"/history/{prompt_id}").json().get(prompt_id)
        if found is None:
            return None
        status = found.get("status") or {}
        if status.get("status_str") == "error":
            failures = [data for kind, data in status.get("messages", ()) if kind == "execution_error"]
            raise Fault("refused", _failure(failures[0] if failures else {}), status=500)
        outputs: Mapping[str, Any] = found["outputs"]
        return outputs


def _fine(answer: Response) -> Response:
    """Return a good answer.

    Raises:
        Fault: it is none; what the server says of the workflow's nodes is in the message.
    """
    if answer.is_success:
        return answer
    kind = "broken" if answer.status_code >= 500 else "busy" if answer.status_code == 429 else "refused"
    try:
        told = answer.json()
        error = told.get("error") or {}
        words = [error.get("message", "") if isinstance(error, dict) else str(error)]
        for node, item in (told.get("node_errors") or {}).items():
            for each in item.get("errors", ()):
                words.append(f"node {node} ({item.get('class_type')}): {each.get('message')}: {each.get('details')}")
    except ValueError:
        words = [answer.text[:200]]
    raise Fault(kind, "; ".join(filter(None, words))[:400] or "no reason given", status=answer.status_code)


def _ends(message: str | bytes, prompt_id: str) -> bool:
    """Return whether a message says that a prompt is done or has failed; previews, which are bytes, say nothing."""
    if not isinstance(message, str) or not message:
        return False
    told = json.loads(message)
    data = told.get("data") or {}
    if data.get("prompt_id") != prompt_id:
        return False
    if told["type"] == "execution_error":
        raise Fault("refused", _failure(data), status=500)
    if told["type"] == "execution_interrupted":
        raise Fault("broken", "the server was told to stop it")
    return told["type"] == "execution_success" or (told["type"] == "executing" and data.get("node") is None)


def _failure(data: Mapping[str, Any]) -> str:
    reason = str(data.get("exception_message") or "no reason given").strip()
    return f"node {data.get('node_id')} ({data.get('node_type')}): {reason}"[:400]


class ComfyRenderer(Renderer):
    """A workflow of yours on a ComfyUI server: `comfyui:MAP.yaml` says which node takes prompt, seed, size, picture."""

    capabilities = Capabilities(identity="bank", insertion="reference", default_size=(1024, 1024))

    def __init__(
        self,
        argument: str | None = None,
        *,
        base_url: str = "http://127.0.0.1:8188",
        characters: Path | None = None,
        reference: tuple[str, ...] = (),
        concurrency: int = 2,
        retries: int = 4,
        timeout: float = 600.0,
        patience: float | None = None,
    ) -> None:
        """Read the map, its workflows and the characters' pictures; nothing is called yet.

        base_url: the server's address. concurrency: workflows in its queue at once. timeout: seconds without a word of
        a workflow.

        Raises:
            UsageError: no map, a node or an input that its workflow lacks. InputFileError: a file cannot be read.
        """
        problem = url_problem(base_url)
        if not argument or problem is not None:
            message = f"The server {base_url!r} cannot be called: {problem}." if argument else "No map is named."
            hint = "Write comfyui:MAP.yaml, and base_url=http://HOST:PORT."
            raise UsageError(f"The renderer 'comfyui': {message}", hint=hint)
        self._map = _read_map(Path(argument).expanduser())
        folder = Path(argument).expanduser().parent
        self._workflows = {wiring.workflow: _read_workflow(folder, wiring) for wiring in self._wirings()}
        self._references = CharacterPictures(characters, reference)
        shown = any(wiring.characters for wiring in self._wirings())
        self.capabilities = replace(self.capabilities, pictures=shown, things=shown)
        self.concurrency = max(1, concurrency)
        vendor = Vendor("comfyui", Path(argument).name, base_url.rstrip("/"), "base_url", {}, "no key")
        backoff = Backoff(max_retries=retries, busy_retries=retries)
        self._client = ComfyClient(
            vendor, timeout=timeout, backoff=backoff, at_once=self.concurrency, patience=patience
        )
        self._remarks: list[str] = []

    def spec(self) -> Mapping[str, Any]:
        """The workflows, what is put into them, and the pictures. What the server makes of a workflow is its own."""
        return {
            "name": "comfyui",
            "map": self._map.model_dump(mode="json", exclude={"scene": {"workflow"}, "bridge": {"workflow"}}),
            "workflows": [digest(self._workflows[wiring.workflow]) for wiring in self._wirings()],
            "references": self._references.spec(),
        }

    def remarks(self) -> Sequence[str]:
        """Return that none of the user's pictures was used, where that is so."""
        said, self._remarks = list(dict.fromkeys(self._remarks)), []
        return said

    def picture_of(self, character: Character, request: FrameRequest) -> bytes | None:
        """Return the user's picture of a character; no portrait is drawn."""
        return self._references.get(character.name)

    def render_board(self, requests: Sequence[FrameRequest]) -> Iterator[bytes]:
        """Yield one PNG per request, in order, each as soon as it is there.

        Raises:
            RenderError: a node failed or the server refused the workflow. TransientRenderError: the server broke down.
        """
        for request in requests:
            yield self._draw(self._map.scene, request, ())
        unused = self._references.unused(item for request in requests for item in request.characters)
        self._remarks += [unused] if unused else []

    def insert_frame(self, request: FrameRequest, context: BoardContext) -> bytes:
        """Return one PNG by the map's `bridge` (else its `scene`), handed the frames on both sides of its place."""
        around = context.images[max(0, context.position - 1) : context.position + 1]
        return self._draw(self._map.bridge or self._map.scene, request, around)

    def _wirings(self) -> list[Wiring]:
        return [wiring for wiring in (self._map.scene, self._map.bridge) if wiring is not None]

    def _draw(self, wiring: Wiring, request: FrameRequest, around: Sequence[bytes]) -> bytes:
        what = f"scene {request.scene}" if request.scene is not None else f"the {request.kind} frame"
        try:
            return self._run(wiring, request, around)
        except Fault as fault:
            reason = fault.message.rstrip(".")
            if fault.kind == "refused":
                raise RenderError(f"ComfyUI did not draw {what}: {reason}.", hint="Try the workflow there.") from None
            hint = "The frames so far are kept: give the same command again to go on."
            raise TransientRenderError(f"ComfyUI failed at {what}: {reason}.", hint=hint) from None

    def _run(self, wiring: Wiring, request: FrameRequest, around: Sequence[bytes]) -> bytes:
        style = "" if request.composed else request.style
        values = {
            "prompt": f"{request.prompt.rstrip()}{f' {style}' if style else ''}",
            "negative": request.negative_prompt,
            "seed": request.seed,
            "width": request.width,
            "height": request.height,
        }
        prompt: dict[str, Any] = deepcopy(self._workflows[wiring.workflow])
        for name, value in values.items():
            _fill(prompt, getattr(wiring, name), [value] * len(getattr(wiring, name)))
        pictures = {"characters": [data for _, data in request.pictures], "neighbours": list(around)}
        for name, given in pictures.items():
            places: tuple[str, ...] = getattr(wiring, name)
            # An input has to have a picture: what is left over takes the last one again, or plain grey.
            shown = (given + [given[-1] if given else _grey()] * len(places))[: len(places)]
            _fill(prompt, places, [self._client.patiently(partial(self._client.upload, data)) for data in shown])
        outputs = self._client.patiently(partial(self._client.draw, prompt))
        picture = _picture_of(outputs, wiring)
        query = {name: str(picture.get(name, "")) for name in ("filename", "subfolder", "type")}
        data = self._client.patiently(partial(self._client.get, "/view", **query)).content
        return as_frame(data, (request.width, request.height), "ComfyUI")[0]


def _picture_of(outputs: Mapping[str, Any], wiring: Wiring) -> Mapping[str, Any]:
    """Return the last picture of the output node; one that is saved goes before a preview."""
    nodes = [wiring.output] if wiring.output is not None else list(outputs)
    found = [item for node in nodes for item in (outputs.get(node) or {}).get("images", ())]
    if not found:
        raise Fault("refused", "the workflow gave no picture")
    saved = [item for item in found if item.get("type") != "temp"]
    picture: Mapping[str, Any] = (saved or found)[-1]
    return picture


def _fill(prompt: dict[str, Any], places: Sequence[str], values: Sequence[object]) -> None:
    for place, value in zip(places, values, strict=True):
        node, _, name = place.partition(".")
        prompt[node]["inputs"][name] = value


def _grey() -> bytes:
    from PIL import Image

    buffer = io.BytesIO()
    Image.new("RGB", (64, 64), (128, 128, 128)).save(buffer, "PNG")
    return buffer.getvalue()


def _read_map(path: Path) -> WorkflowMap:
    """Return a map.

    Raises:
        InputFileError: the file cannot be read, or a line of it is wrong (the place and the reason are named).
    """
    try:
        found = WorkflowMap.model_validate(read_yaml(path))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        message = f"The map {str(path)!r}, {where or 'top'}: {first['msg']}."
        raise InputFileError(message, hint="See docs/renderers-services.md.") from error
    for name, wiring in (("scene", found.scene), ("bridge", found.bridge)):
        if wiring is not None and not (wiring.prompt and wiring.seed):
            message = f"The map {str(path)!r}, {name}: it needs prompt and seed."
            raise InputFileError(message, hint="For example prompt: 6.text.")
    return found


def _read_workflow(folder: Path, wiring: Wiring) -> dict[str, Any]:
    """Return a workflow in API format.

    Raises:
        InputFileError: it is none. UsageError: the map names a node or input that it lacks.
    """
    path = folder / wiring.workflow
    read = read_json(path)
    if isinstance(read, dict) and "nodes" in read and "links" in read:
        raise InputFileError(f"{str(path)!r} is a workflow as it is edited.", hint="Save it with Export (API).")
    if not isinstance(read, dict) or not all(isinstance(node, dict) and "class_type" in node for node in read.values()):
        message = f"{str(path)!r} is not a workflow in ComfyUI's API format."
        raise InputFileError(message, hint="Save it with Export (API).")
    fields = ("prompt", "negative", "seed", "width", "height", "characters", "neighbours")
    for place in (item for name in fields for item in getattr(wiring, name)):
        node, _, name = place.partition(".")
        if node not in read or name not in read[node].get("inputs", {}):
            known = ", ".join(f"{key}.{item}" for key in read for item in read[key].get("inputs", {}))[:300]
            raise UsageError(f"The workflow {str(path)!r} has no input {place!r}.", hint=f"It has {known}.")
    if wiring.output is not None and wiring.output not in read:
        raise UsageError(f"The workflow {str(path)!r} has no node {wiring.output!r}.", hint="Name its SaveImage node.")
    return read
