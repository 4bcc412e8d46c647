"""The renderer `comfyui` against a server on this machine that speaks its protocol: uploads, queue, messages."""

from __future__ import annotations

import asyncio
import email
import email.policy
import io
import json
import socket
import struct
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from doubles import plugins, story
from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect
from fastapi.responses import JSONResponse
from PIL import Image

from katha.agents.run import run_story
from katha.config import Settings
from katha.errors import InputFileError, RenderError, TransientRenderError, UsageError
from katha.protocols import BoardContext, FrameRequest
from katha.renderers.hosted.comfyui import ComfyRenderer
from katha.schema import Character
from katha.testing import check_renderer, picture

LION = Character(name="Leo", kind="lion", appearance="a lion")
WORKFLOW = {
    "3": {"class_type": "KSampler", "inputs": {"seed": 1, "steps": 20, "positive": ["6", 0], "latent_image": ["5", 0]}},
    "5": {"class_type": "EmptyLatentImage", "inputs": {"width": 512, "height": 512, "batch_size": 1}},
    "6": {"class_type": "CLIPTextEncode", "inputs": {"text": "a girl", "clip": ["4", 1]}},
    "7": {"class_type": "CLIPTextEncode", "inputs": {"text": "", "clip": ["4", 1]}},
    "9": {"class_type": "SaveImage", "inputs": {"filename_prefix": "katha", "images": ["8", 0]}},
    "12": {"class_type": "LoadImage", "inputs": {"image": "example.png"}},
    "13": {"class_type": "LoadImage", "inputs": {"image": "example.png"}},
}
MAP = {
    "scene": {
        "workflow": "scene.json", "prompt": "6.text", "negative": "7.text", "seed": "3.seed", "width": "5.width",
        "height": "5.height", "characters": ["12.image"],
    },
    "bridge": {
        "workflow": "bridge.json", "prompt": "6.text", "seed": ["3.seed"], "width": "5.width", "height": "5.height",
        "neighbours": ["12.image", "13.image"], "output": "9",
    },
}  # fmt: skip


class Comfy:
    """A server's state: uploaded pictures, prompts as queued, histories; and how the next prompt fares."""

    def __init__(self) -> None:
        self.uploads: dict[str, bytes] = {}
        self.prompts: list[dict[str, Any]] = []
        self.history: dict[str, Any] = {}
        self.files: dict[str, bytes] = {}
        self.sockets: dict[str, WebSocket] = {}
        self.deleted: list[str] = []
        self.fate = "fine"
        self.url = ""

    async def run(self, prompt_id: str, prompt: dict[str, Any], client: str) -> None:
        """Execute as PromptExecutor and its worker do: messages, then the history, then the last message."""
        channel = self.sockets.get(client)

        async def tell(kind: str, **data: Any) -> None:
            if channel is not None and self.fate != "silent":
                await channel.send_text(json.dumps({"type": kind, "data": {**data, "prompt_id": prompt_id}}))

        if self.fate == "lost":
            return
        await tell("execution_start")
        await tell("executing", node="3")
        if channel is not None and self.fate != "silent":
            await channel.send_bytes(struct.pack(">II", 1, 2) + b"\x89PNG preview")
        if self.fate == "hang-up" and channel is not None:
            self.fate = "fine"
            await channel.close()
            return
        messages: list[Any] = []
        if self.fate == "fails":
            failure = {"node_id": "3", "node_type": "KSampler", "exception_message": "CUDA out of memory"}
            messages.append(["execution_error", failure])
            await tell("execution_error", **failure)
        else:
            inputs = {name: node["inputs"] for name, node in prompt.items()}
            size = (inputs["5"]["width"], inputs["5"]["height"])
            shown = "".join(self.uploads[inputs[n]["image"]].hex()[:99] for n in ("12", "13") if n in inputs)
            drawn = picture(f"{inputs['6']['text']} {inputs['3']['seed']} {shown}", size)
            self.files[f"{prompt_id}.png"] = drawn
        given = {"images": [{"filename": f"{prompt_id}.png", "subfolder": "", "type": "output"}]}
        preview = {"images": [{"filename": "preview.png", "subfolder": "", "type": "temp"}]}
        await tell("execution_success")
        status = "error" if messages else "success"
        self.history[prompt_id] = {
            "prompt": [0, prompt_id, prompt, {}, ["9"]],
            "outputs": {} if messages else {"9": given, "20": preview},
            "status": {"status_str": status, "completed": not messages, "messages": messages},
        }
        await tell("executing", node=None)


def application(comfy: Comfy) -> FastAPI:
    app, tasks = FastAPI(), set[asyncio.Task[None]]()

    @app.websocket("/ws")
    async def listen(channel: WebSocket) -> None:
        await channel.accept()
        comfy.sockets[channel.query_params["clientId"]] = channel
        await channel.send_text(
            json.dumps({"type": "status", "data": {"status": {"exec_info": {"queue_remaining": 0}}}})
        )
        try:
            while True:
                await channel.receive_text()
        except (WebSocketDisconnect, RuntimeError):
            pass

    @app.post("/upload/image")
    async def upload(request: Request) -> Response:
        kind = request.headers["content-type"].encode()
        body = email.message_from_bytes(
            b"content-type: " + kind + b"\n\n" + await request.body(), policy=email.policy.HTTP
        )
        fields = {part.get_param("name", header="content-disposition"): part for part in body.iter_parts()}
        name, folder = fields["image"].get_filename(), fields["subfolder"].get_content().strip()
        comfy.uploads[f"{folder}/{name}"] = fields["image"].get_payload(decode=True)
        return JSONResponse({"name": name, "subfolder": folder, "type": "input"})

    @app.post("/prompt")
    async def queue(request: Request) -> Response:
        body = await request.json()
        if comfy.fate == "busy":
            comfy.fate = "fine"
            return Response(status_code=503)
        missing = {
            node: {
                "errors": [{"type": "custom_validation_failed", "message": "Custom validation failed for node",
                            "details": f"image - Invalid image file: {item['inputs']['image']}"}],
                "dependent_outputs": ["9"], "class_type": "LoadImage",
            }
            for node, item in body["prompt"].items()
            if item["class_type"] == "LoadImage" and item["inputs"]["image"] not in comfy.uploads
        }  # fmt: skip
        if missing:
            error = {"type": "prompt_outputs_failed_validation", "message": "Prompt outputs failed validation"}
            return JSONResponse({"error": error, "node_errors": missing}, status_code=400)
        prompt_id = str(uuid.uuid4())
        comfy.prompts.append(body)
        task = asyncio.create_task(comfy.run(prompt_id, body["prompt"], body["client_id"]))
        tasks.add(task)
        return JSONResponse({"prompt_id": prompt_id, "number": len(comfy.prompts), "node_errors": {}})

    @app.get("/history/{prompt_id}")
    async def history(prompt_id: str) -> Response:
        return JSONResponse({prompt_id: comfy.history[prompt_id]} if prompt_id in comfy.history else {})

    @app.post("/queue")
    async def forget(request: Request) -> Response:
        comfy.deleted += (await request.json())["delete"]
        return Response()

    @app.get("/view")
    async def view(filename: str, subfolder: str, type: str) -> Response:
        return Response(comfy.files[filename], media_type="image/png")

    return app


@pytest.fixture(scope="module")
def running() -> Iterator[Comfy]:
    comfy, listener = Comfy(), socket.create_server(("127.0.0.1", 0))
    comfy.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = uvicorn.Server(uvicorn.Config(application(comfy), log_level="critical", lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    yield comfy
    server.should_exit = True
    thread.join(5)


@pytest.fixture
def comfy(running: Comfy) -> Comfy:
    fresh = Comfy()
    running.__dict__.update({**vars(fresh), "url": running.url})
    return running


@pytest.fixture
def address(running: Comfy) -> str:
    return running.url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A map and its two workflows."""
    one = {name: node for name, node in WORKFLOW.items() if name != "13"}
    (tmp_path / "scene.json").write_text(json.dumps(one))
    (tmp_path / "bridge.json").write_text(json.dumps(WORKFLOW))
    (tmp_path / "map.yaml").write_text(json.dumps(MAP))
    return tmp_path


def comfyui(folder: Path, address: str, **options: Any) -> ComfyRenderer:
    return ComfyRenderer(str(folder / "map.yaml"), base_url=address, **{"retries": 1, "timeout": 20.0, **options})


def request(prompt: str = "A lion sleeps.", **more: Any) -> FrameRequest:
    return FrameRequest(prompt, 42, **{"width": 96, "height": 64, "scene": 1, "characters": (LION,), **more})


def test_a_frame_is_what_the_workflow_gives_for_its_prompt_seed_and_size(
    comfy: Comfy, folder: Path, address: str
) -> None:
    (png,) = comfyui(folder, address).render_board([request(style="ink", negative_prompt="a crown")])
    sent = comfy.prompts[0]["prompt"]
    assert (sent["6"]["inputs"]["text"], sent["7"]["inputs"]["text"]) == ("A lion sleeps. ink", "a crown")
    assert (sent["3"]["inputs"]["seed"], sent["5"]["inputs"]["width"], sent["5"]["inputs"]["height"]) == (42, 96, 64)
    assert sent["3"]["inputs"]["steps"] == 20
    assert png == next(iter(comfy.files.values()))


def test_the_characters_own_pictures_are_uploaded_once_under_their_hash(
    comfy: Comfy, folder: Path, address: str
) -> None:
    own = picture("my lion", (40, 40))
    renderer = comfyui(folder, address)
    first, second = renderer.render_board([request(pictures=(("Leo", own),)), request()])
    assert next(iter(comfy.uploads.values())) == own
    assert comfy.prompts[0]["prompt"]["12"]["inputs"]["image"] in comfy.uploads
    assert first != second, "without a picture the input takes plain grey"
    with Image.open(io.BytesIO(list(comfy.uploads.values())[1])) as grey:
        assert grey.getpixel((5, 5)) == (128, 128, 128)


def test_a_bridge_has_its_own_workflow_and_its_neighbours(comfy: Comfy, folder: Path, address: str) -> None:
    images = tuple(picture(name, (64, 64)) for name in "abc")
    around = BoardContext((request(), request(), request()), images, 2)
    comfyui(folder, address).insert_frame(request(kind="bridge", scene=None), around)
    sent = comfy.prompts[0]["prompt"]
    assert [comfy.uploads[sent[node]["inputs"]["image"]] for node in ("12", "13")] == list(images[1:])


def test_a_run_draws_its_board_and_its_bridge_there(
    comfy: Comfy, folder: Path, address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    (folder / "cast").mkdir()
    (folder / "cast" / "lion.png").write_bytes(picture("lion", (64, 64)))
    renderer = comfyui(folder, address, characters=folder / "cast", concurrency=3)
    config = Settings(renderer="comfyui", judges=("pixel",), mode="caption_bridge", seeds=(7,), size=(96, 64))
    board = run_story(story(), config, tmp_path / "out", plugins=plugins(renderer=renderer)).board
    assert [frame.kind for frame in board.frames].count("bridge") == 1
    assert len(comfy.prompts) == 6
    assert next(iter(comfy.uploads.values())) == picture("lion", (64, 64))
    again = run_story(story(), config, tmp_path / "again", plugins=plugins(renderer=renderer)).board
    assert (again, len(comfy.prompts)) == (board, 6)


@pytest.mark.parametrize(
    ("fate", "error", "words"),
    [
        ("fails", RenderError, r"did not draw scene 1: node 3 \(KSampler\): CUDA out of memory"),
        ("lost", TransientRenderError, "failed at scene 1: nothing was heard of it for 1 s"),
    ],
)
def test_what_fails_there_is_typed(
    comfy: Comfy, folder: Path, address: str, fate: str, error: type[Exception], words: str
) -> None:
    comfy.fate = fate
    with pytest.raises(error, match=words):
        list(comfyui(folder, address, timeout=1.0, retries=0).render_board([request()]))
    assert bool(comfy.deleted) == (fate == "lost"), "a prompt that is given up leaves the queue"


@pytest.mark.parametrize("fate", ["silent", "busy", "hang-up"])
def test_lost_messages_a_busy_server_and_a_cut_line_are_survived(
    comfy: Comfy, folder: Path, address: str, fate: str
) -> None:
    comfy.fate = fate
    assert len(list(comfyui(folder, address).render_board([request()]))) == 1


def test_a_refused_workflow_names_the_node(comfy: Comfy, folder: Path, address: str) -> None:
    mapping = {"scene": {name: value for name, value in MAP["scene"].items() if name != "characters"}}
    (folder / "map.yaml").write_text(json.dumps(mapping))
    with pytest.raises(RenderError, match=r"node 12 \(LoadImage\).*Invalid image file: example.png"):
        list(comfyui(folder, address).render_board([request()]))


def test_no_server_is_a_sentence(folder: Path) -> None:
    with pytest.raises(TransientRenderError, match="ComfyUI failed at scene 1"):
        list(comfyui(folder, "http://127.0.0.1:9", retries=0).render_board([request()]))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prompt": "66.text"}, "has no input '66.text'"),
        ({"seed": "3.sed"}, r"has no input '3.sed'.*3\.seed"),
        ({"output": "99"}, "has no node '99'"),
        ({"colour": "1.x"}, "scene.colour: Extra inputs"),
        ({"prompt": []}, "needs prompt and seed"),
        ({"workflow": "edited.json"}, "as it is edited"),
        ({"workflow": "none.json"}, "none.json"),
        ({"workflow": "list.json"}, "not a workflow in ComfyUI's API format"),
    ],
)
def test_a_map_that_does_not_fit_is_refused_before_any_call(
    folder: Path, address: str, change: dict[str, Any], words: str
) -> None:
    (folder / "edited.json").write_text(json.dumps({"nodes": [], "links": []}))
    (folder / "list.json").write_text("[]")
    (folder / "map.yaml").write_text(json.dumps({"scene": {**MAP["scene"], **change}}))
    with pytest.raises((InputFileError, UsageError), match=words):
        comfyui(folder, address)


def test_no_map_and_no_address_are_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match="No map is named"):
        ComfyRenderer()
    with pytest.raises(UsageError, match="cannot be called"):
        ComfyRenderer(str(folder / "map.yaml"), base_url="ftp://there")


def test_it_keeps_the_contract_and_its_spec_is_the_workflow(comfy: Comfy, folder: Path, address: str) -> None:
    assert "spec" in check_renderer(lambda: comfyui(folder, address), size=(96, 64))
    before = comfyui(folder, address).spec()
    assert comfyui(folder, "http://other:8188").spec() == before
    workflow = json.loads((folder / "scene.json").read_text())
    workflow["3"]["inputs"]["steps"] = 4
    (folder / "scene.json").write_text(json.dumps(workflow))
    assert comfyui(folder, address).spec() != before
