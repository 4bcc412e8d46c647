"""The image services through the real SDKs, against servers on this machine that fail in every way we know."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import sys
import threading
import time
from base64 import b64decode, b64encode, urlsafe_b64decode
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import drawn_boards
import httpx
import pytest
from doubles import plugins, story
from PIL import Image

from katha.agents import graph
from katha.agents.context import make_renderer
from katha.agents.editor.editing import edit_board, keep_picture
from katha.agents.editor.edits import ChangeCharacter, ChangeFrame, ChangeProp
from katha.agents.run import run_story
from katha.app.views import draw_views
from katha.config import Settings, identity_of
from katha.errors import MissingExtraError, ModelError, RefusedFrameError, RenderError, TransientRenderError, UsageError
from katha.jsonio import read_json
from katha.models.base import Turn
from katha.models.client import Fault
from katha.models.http import HttpClient
from katha.pictures import decode
from katha.protocols import BoardContext, FrameRequest, Renderer, can
from katha.renderers.hosted.bfl import BflRenderer
from katha.renderers.hosted.gemini import GeminiRenderer
from katha.renderers.hosted.ideogram import IdeogramRenderer
from katha.renderers.hosted.openai import OpenAIRenderer
from katha.renderers.hosted.seedream import SeedreamRenderer
from katha.renderers.hosted.service import BatchedRenderer, HostedOptions, HostedRenderer
from katha.renderers.vector import VectorRenderer
from katha.schema import Character, StoryRecord
from katha.testing import check_renderer, picture

KEY = "sk-very-secret"
Step = dict[str, Any]
KINDS: dict[str, tuple[type[HostedRenderer], str, tuple[int, int]]] = {
    "openai": (OpenAIRenderer, "gpt-image-1.5", (1024, 1024)),
    "gemini": (GeminiRenderer, "gemini-2.5-flash-image", (1024, 1024)),
    "bfl": (BflRenderer, "flux-2-pro", (1024, 1024)),
    "ideogram": (IdeogramRenderer, "ideogram-4-5", (1024, 1024)),
    "seedream": (SeedreamRenderer, "seedream-5-5-261028", (1024, 1024)),
}
KEYS = {
    "openai": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "bfl": "BFL_API_KEY",
    "ideogram": "IDEOGRAM_API_KEY",
    "seedream": "ARK_API_KEY",
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS.values():
        monkeypatch.setenv(name, KEY)
    for name in ("GOOGLE_API_KEY", "BYTEPLUS_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def make(service: str, model: str | None = None, **options: Any) -> HostedRenderer:
    """A renderer of the service's model, or of another."""
    kind, usual, _ = KINDS[service]
    return kind(model or usual, HostedOptions(**options))


def reply(server: Server, step: Step, number: int) -> dict[str, Any]:
    """What the service would send for a good call; pictures that it only names are kept at the server."""
    service, png = server.service, step.get("data") or picture(f"frame {number}", step.get("size", (1024, 1024)))
    data = b64encode(png).decode()
    if service == "bfl":
        result = {} if step.get("empty") else {"sample": f"{server.url}/pictures/{number}.png"}
        done = {"status": "Content Moderated"} if step.get("blocked") else {"status": "Ready", "result": result}
        server.tasks[str(number)] = [{"status": "Pending", "result": None}, done]
        server.pictures[f"/pictures/{number}.png"] = png
        return {"id": str(number), "polling_url": f"{server.url}/v1/get_result?id={number}", "cost": 4.5}
    if service == "ideogram":
        server.pictures[f"/ephemeral/{number}.png"] = png
        url = "" if step.get("blocked") else f"{server.url}/ephemeral/{number}.png"
        drawn = {"url": url, "is_image_safe": not step.get("blocked"), "resolution": "1024x1024", "seed": 42}
        return {"generation_id": str(number), "seed": 42, "data": [] if step.get("empty") else [drawn]}
    if service == "seedream":
        usage = {"generated_images": 1, "output_tokens": 4096, "total_tokens": 4096}
        drawn = [] if step.get("empty") else [{"b64_json": data, "size": "1024x1024"}]
        return {"model": "seedream-5-5-261028", "created": 1, "data": drawn, "usage": usage}
    if service == "openai":
        details = {"text_tokens": 20, "image_tokens": 300}
        usage = {"input_tokens": 320, "input_tokens_details": details, "output_tokens": 1000, "total_tokens": 1320}
        return {"created": 1, "data": [] if step.get("empty") else [{"b64_json": data}], "usage": usage}
    if step.get("blocked"):
        return {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}
    part = {"text": "I cannot."} if step.get("empty") else {"inlineData": {"mimeType": "image/png", "data": data}}
    parts = [{"inlineData": {"mimeType": "image/png", "data": b64encode(png).decode()}, "thought": thought}
             for png, thought in step.get("drafts", ())]  # fmt: skip
    candidate = {
        "content": {"role": "model", "parts": [*parts, part, *step.get("after", ())]},
        "finishReason": step.get("finish", "STOP"),
    }
    details = [{"modality": "TEXT", "tokenCount": 20}, {"modality": "IMAGE", "tokenCount": 300}]
    usage = {"promptTokenCount": 320, "candidatesTokenCount": 1290, "promptTokensDetails": details}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-2.5-flash-image-002"}


class Server(ThreadingHTTPServer):
    """Answers each request with what `rule` says; keeps what came."""

    daemon_threads = True

    def __init__(self, service: str, rule: Callable[[int], Step]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.service, self.rule, self.lock = service, rule, threading.Lock()
        self.bodies: list[bytes] = []
        self.times: list[float] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.tasks: dict[str, list[dict[str, Any]]] = {}
        self.pictures: dict[str, bytes] = {}
        self.looked: list[tuple[str, dict[str, str]]] = []

    @property
    def url(self) -> str:
        path = {"openai": "/v1", "seedream": "/api/v3"}.get(self.service, "")
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""

    def do_GET(self) -> None:
        with self.server.lock:
            self.server.looked.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
            _, _, task = self.path.partition("/v1/get_result?id=")
            told = self.server.tasks[task] if task else []
            data = json.dumps(told.pop(0) if len(told) > 1 else told[0]).encode() if told else b""
        data = data or self.server.pictures[self.path]
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.server.lock:
            self.server.times.append(time.monotonic())
            number = len(self.server.bodies)
            self.server.bodies.append(body)
            self.server.paths.append(self.path)
            self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
            step = self.server.rule(number)
        self.close_connection = True
        if step.get("drop"):
            self.connection.close()
            return
        status = step.get("status", 200)
        if status != 200:
            message = step.get("message", f"no {KEY}")
            error: dict[str, Any] = {"message": message, "code": step.get("code", status), "status": "BAD"}
            data = json.dumps({"error": error}).encode()
        else:
            data = json.dumps(reply(self.server, step, number)).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("retry-after-ms", step.get("wait", "1"))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if step.get("cut") else data)


Serve = Callable[..., tuple[Server, HostedRenderer]]


@pytest.fixture(params=sorted(KINDS))
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def serve(service: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    monkeypatch.setattr("katha.renderers.hosted.bfl._ASKED_AFTER", 0.01)
    started: list[Server] = []

    def start(*steps: Step, retries: int = 0, **options: Any) -> tuple[Server, HostedRenderer]:
        server = Server(service, lambda number: steps[min(number, len(steps) - 1)] if steps else {})
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        started.append(server)
        return server, make(service, base_url=server.url, retries=retries, **{"timeout": 20.0, **options})

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def request(prompt: str = "A lion sleeps.", scene: int = 1, **more: Any) -> FrameRequest:
    lion = Character(name="Leo", kind="lion", appearance="a lion with a red scarf")
    return FrameRequest(prompt, 42, 1024, 1024, scene=scene, characters=(lion,), **more)


def sent(server: Server, number: int) -> str:
    """The prompt in the body of one call."""
    body = server.bodies[number]
    if server.service == "gemini":
        parts = json.loads(body)["contents"][0]["parts"]
        return next(str(part["text"]) for part in parts if "text" in part)
    if server.service == "ideogram":
        return body.split(b'name="prompt"\r\n\r\n')[1].split(b"\r\n--")[0].decode()
    return str(json.loads(body)["prompt"]) if body.startswith(b"{") else body.decode("utf-8", "replace")


def fields(server: Server, number: int) -> dict[str, Any]:
    """The fields in the body of one call, without files."""
    body = server.bodies[number]
    if body.startswith(b"{"):
        return dict(json.loads(body))
    parts = [part.split(b"\r\n\r\n", 1) for part in body.split(b"\r\n--") if b"filename=" not in part]
    named = [(head.partition(b'name="')[2].partition(b'"')[0].decode(), rest) for head, *rest in parts]
    return {name: rest[0].decode() for name, rest in named if rest}


def test_a_frame_is_asked_for_with_looks_style_and_size(serve: Serve, service: str) -> None:
    server, renderer = serve()
    wanted = request(style="ink on paper", negative_prompt="a crown")
    (png,) = renderer.render_board([wanted])
    assert png == picture("frame 0", (1024, 1024))
    words = sent(server, 0)
    for part in ("A lion sleeps.", "Leo: a lion with a red scarf.", "Style: ink on paper", "Leave out: a crown"):
        assert part in words
    header, key = {
        "openai": ("authorization", f"Bearer {KEY}"),
        "gemini": ("x-goog-api-key", KEY),
        "bfl": ("x-key", KEY),
        "ideogram": ("api-key", KEY),
        "seedream": ("authorization", f"Bearer {KEY}"),
    }[service]
    assert server.headers[0][header] == key
    path = {
        "openai": "/v1/images/generations",
        "gemini": "gemini-2.5-flash-image:generateContent",
        "bfl": "/v1/flux-2-pro",
        "ideogram": "/v2/image/generate/ideogram-4-5",
        "seedream": "/api/v3/images/generations",
    }[service]
    assert server.paths[0].endswith(path)
    told = {name: value for name, value in fields(server, 0).items() if name != "prompt"}
    assert told == {
        "openai": {"model": "gpt-image-1.5", "size": "1024x1024", "n": 1},
        "gemini": told,
        "bfl": {"width": 1024, "height": 1024, "seed": 42, "output_format": "png", "prompt_upsampling": False},
        "ideogram": {"size": "1024x1024", "quality": "medium", "seed": "42", "magic_prompt": "off"},
        "seedream": {"model": "seedream-5-5-261028", "size": "1024x1024", "response_format": "b64_json",
                     "watermark": False, "output_format": "png"},
    }[service]  # fmt: skip
    if service == "gemini":
        assert told["generationConfig"]["imageConfig"]["aspectRatio"] == "1:1"


def test_the_receipt_names_model_version_date_tokens_and_dollars(serve: Serve, service: str) -> None:
    _, renderer = serve()
    list(renderer.render_board([request()]))
    receipt = renderer.receipt()
    assert receipt["model"] == KINDS[service][1]
    assert receipt["served"] == {"gemini": "gemini-2.5-flash-image-002"}.get(service, KINDS[service][1])
    assert len(receipt["date"].split("-")) == 3
    assert receipt["tokens"] == {
        "openai": {"text": 20, "image": 300, "output": 1000},
        "gemini": {"text": 20, "image": 300, "output": 1290},
        "seedream": {"output": 4096},
    }.get(service, {})
    expected = {
        "openai": (20 * 5 + 300 * 8 + 1000 * 32) / 1e6,
        "gemini": (320 * 0.3 + 1290 * 30) / 1e6,
        "bfl": 0.045,
        "ideogram": 0.06,
        "seedream": 0.02,
    }
    assert receipt["cost"] == pytest.approx(expected[service]), "a service's own word goes before its list of prices"


@pytest.mark.parametrize("marked", [True, False])
def test_the_last_picture_that_is_no_thought_is_geminis_answer(serve: Serve, service: str, marked: bool) -> None:
    if service != "gemini":
        pytest.skip("replies hold one picture")
    draft = picture("draft", (1024, 1024))
    _, renderer = serve({"drafts": [(draft, marked), (draft, marked)], "after": [{"text": "Done."}]})
    assert list(renderer.render_board([request()])) == [picture("frame 0", (1024, 1024))]
    late = {"inlineData": {"mimeType": "image/png", "data": b64encode(draft).decode()}, "thought": True}
    _, renderer = serve({"after": [late]})
    assert list(renderer.render_board([request()])) == [picture("frame 0", (1024, 1024))]


def test_a_model_without_a_known_price_reports_no_cost(serve: Serve, service: str) -> None:
    server, _ = serve()
    renderer = make(service, "brand-new-model", base_url=server.url, retries=0)
    assert renderer.frame_price is None, "--max-cost is refused"
    list(renderer.render_board([request()]))
    assert renderer.receipt()["cost"] == (0.045 if service == "bfl" else None)


def test_a_bridge_is_drawn_from_its_neighbours(serve: Serve, service: str) -> None:
    server, renderer = serve()
    images = tuple(picture(name, (64, 64)) for name in "abcd")
    around = BoardContext(tuple(request(scene=at) for at in (1, 2, 3, 4)), images, 2)
    assert renderer.insert_frame(request(scene=1), around) == picture("frame 0", (1024, 1024))
    assert pictures_in(server, 0) == list(images[1:3])
    if service == "openai":
        assert server.paths[0].endswith("/images/edits")
    assert "goes between them" in sent(server, 0)


def test_a_part_is_drawn_inside_a_mask(serve: Serve, service: str) -> None:
    server, renderer = serve()
    if service != "openai":
        assert not can(renderer, Renderer.inpaint_frame)
        return
    assert can(renderer, Renderer.inpaint_frame)
    old, mask = picture("old", (1024, 1024)), Image.new("L", (1024, 1024))
    mask.paste(255, (0, 0, 512, 1024))
    hole = io.BytesIO()
    mask.save(hole, "PNG")
    assert renderer.inpaint_frame(request(scene=1), old, hole.getvalue()) == picture("frame 0", (1024, 1024))
    assert server.paths[0].endswith("/images/edits")
    (form,) = server.bodies
    assert old in form
    sent_mask = form[form.index(b"\x89PNG", form.index(b'name="mask"')) :]
    with Image.open(io.BytesIO(sent_mask)) as image:
        alpha = image.getchannel("A")
    assert (alpha.getpixel((100, 100)), alpha.getpixel((900, 100))) == (0, 255)  # transparent where it is to change


def test_a_picture_of_another_size_is_scaled_and_cut(serve: Serve) -> None:
    _, renderer = serve({"size": (1264, 848)})
    (png,) = renderer.render_board([request()])
    with Image.open(io.BytesIO(png)) as image:
        assert image.size == (1024, 1024)
    assert renderer.receipt()["delivered"] == "1264x848"


def test_a_wrong_key_stops_at_once_and_names_the_variable(serve: Serve, service: str) -> None:
    wrong = {"gemini": {"status": 400, "message": "API key not valid. Pass a valid API key."}}
    server, renderer = serve(wrong.get(service, {"status": 401}), retries=3)
    with pytest.raises(UsageError, match=f"refused the key.*Check {KEYS[service]}") as caught:
        list(renderer.render_board([request(scene=1), request(scene=2)]))
    assert len(server.bodies) == 1
    assert KEY not in str(caught.value)


def test_no_key_and_no_model_are_refused_before_any_call(service: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind, model, _ = KINDS[service]
    monkeypatch.delenv(KEYS[service])
    with pytest.raises(UsageError, match=f"needs a key. Set {KEYS[service]}"):
        kind(model)
    with pytest.raises(UsageError, match=f"needs a model. For example {service}:"):
        kind()


def refusals(service: str) -> list[Step]:
    if service == "openai":
        return [{"status": 400, "code": "moderation_blocked", "message": "rejected by the safety system"}]
    if service == "seedream":
        return [{"status": 400, "code": "OutputImageSensitiveContentDetected", "message": "sensitive"}]
    if service in ("bfl", "ideogram"):
        return [{"blocked": True}, *([{"status": 422, "message": "safety"}] if service == "ideogram" else [])]
    return [
        {"blocked": True},
        {"empty": True, "finish": "IMAGE_SAFETY"},
        {"empty": True, "finish": "PROHIBITED_CONTENT"},
    ]


def test_a_safety_refusal_is_typed_and_not_asked_again(serve: Serve, service: str) -> None:
    for step in refusals(service):
        server, renderer = serve(step, retries=3)
        with pytest.raises(RefusedFrameError, match="would not draw scene 1") as caught:
            list(renderer.render_board([request()]))
        assert len(server.bodies) == 1
        assert "Change its prompt" in str(caught.value)


@pytest.mark.parametrize(
    ("step", "error", "words"),
    [
        ({"status": 404}, UsageError, "knows no model"),
        ({"status": 500}, TransientRenderError, "failed at scene 1.*go on"),
        ({"status": 429}, TransientRenderError, "failed at scene 1"),
        ({"drop": True}, TransientRenderError, "failed at scene 1"),
        ({"cut": True}, TransientRenderError, "failed at scene 1"),
        ({"empty": True}, TransientRenderError, "picture"),
        ({"data": b"<html>busy</html>"}, TransientRenderError, "cannot be read"),
        ({"status": 422, "message": "bad size"}, RenderError, r"rejected scene 1 \(HTTP 422\).*bad size"),
    ],
)
def test_every_failure_is_typed_and_never_shows_the_key(
    serve: Serve, service: str, step: Step, error: type[Exception], words: str
) -> None:
    if service == "ideogram" and step.get("status") == 422:
        pytest.skip("its 422 is a refusal")
    _, renderer = serve(step)
    with pytest.raises(error, match=words) as caught:
        list(renderer.render_board([request()]))
    assert KEY not in f"{caught.value}{caught.value.__cause__}"


def test_a_busy_server_is_asked_again(serve: Serve) -> None:
    server, renderer = serve({"status": 503}, {"status": 429}, {}, retries=4, timeout=1.0)
    assert len(list(renderer.render_board([request()]))) == 1
    assert len(server.bodies) == 3
    assert fields(server, 0) == fields(server, 2)


def test_a_busy_server_is_asked_again_when_it_says(serve: Serve) -> None:
    server, renderer = serve({"status": 429, "wait": "900"}, {}, retries=1)
    assert len(list(renderer.render_board([request()]))) == 1
    assert server.times[1] - server.times[0] >= 0.85


def test_a_prompt_that_is_too_long_is_refused_not_cut(serve: Serve) -> None:
    server, renderer = serve()
    with pytest.raises(UsageError, match=r"scene 1 has 4\d,\d{3} letters; .* takes \d+,000"):
        list(renderer.render_board([request("lion " * 8_000)]))
    assert server.bodies == []


def test_a_board_half_drawn_when_the_network_fails_goes_on_and_pays_for_nothing_twice(
    serve: Serve, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(graph, "RETRY", graph.RETRY._replace(max_attempts=1))
    server, renderer = serve({}, {}, {}, {"drop": True}, {}, concurrency=1)
    config = Settings(renderer="hosted", judges=("pixel",), mode="caption_bridge", seeds=(7,), size=(1024, 1024))
    parts = plugins(renderer=renderer)
    with pytest.raises(TransientRenderError, match="failed at scene 3"):
        run_story(story(), config, tmp_path / "out", plugins=parts)
    assert len(server.bodies) == 4, "the lion's portrait and three scenes"
    result = run_story(story(), config, tmp_path / "out", plugins=parts)
    assert len(server.bodies) == 8
    assert [frame.kind for frame in result.board.frames].count("bridge") == 1
    record = read_json(tmp_path / "out" / "run.json")
    (drawn,) = record["services"]
    assert (drawn["service"], drawn["frames"]) == (service, 7)
    by_pictures = 0.02 * 7 + 0.008 * (5 * 1 + 3)  # a portrait, five scenes from it, a bridge from its neighbours too
    assert drawn["cost"] == pytest.approx(by_pictures if service == "seedream" else 7 * renderer.receipt()["cost"])
    assert len(drawn["dates"]) >= 1
    assert record["paid"]["frames_rendered"] == 7
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "google.genai", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[gemini\]"):
        list(GeminiRenderer("gemini-nano-banana-2.1").render_board([request()]))


def test_it_keeps_the_contract(serve: Serve, service: str) -> None:
    server, first = serve()
    made = partial(make, service, base_url=server.url, retries=0)
    assert "spec" in check_renderer(made, size=KINDS[service][2])
    assert KEY not in json.dumps(dict(first.spec()))


def test_an_inserted_bridge_is_one_call_more_and_leaves_the_other_frames_bytes(
    serve: Serve, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    server, renderer = serve()
    parts = plugins(renderer=renderer)
    config = Settings(renderer="hosted", judges=("pixel",), mode="base", seeds=(7,), size=(1024, 1024))
    base = run_story(story(), config, tmp_path / "base", plugins=parts).board
    assert len(server.bodies) == 6
    mode = config.model_copy(update={"mode": "caption_bridge"})
    board = run_story(story(), mode, tmp_path / "bridged", plugins=parts).board
    assert len(server.bodies) == 7
    assert [frame.kind for frame in board.frames].count("bridge") == 1
    assert [frame.sha256 for frame in board.frames if frame.kind == "scene"] == [frame.sha256 for frame in base.frames]


def pictures_in(server: Server, number: int) -> list[bytes]:
    """The pictures in the body of one call, in order."""
    body = server.bodies[number]
    if server.service == "gemini":
        parts = json.loads(body)["contents"][0]["parts"]
        return [urlsafe_b64decode(part["inlineData"]["data"]) for part in parts if "inlineData" in part]
    if body.startswith(b"{"):
        told = json.loads(body)
        places = ("input_image", *(f"input_image_{place}" for place in range(2, 9)))
        shown = [told[place] for place in places if place in told] if server.service == "bfl" else told.get("image", [])
        return [b64decode(one.removeprefix("data:image/png;base64,")) for one in shown]
    found = body.split(b"\r\n\r\n")[1:]
    return [part.split(b"\r\n--")[0] for part in found if part.startswith(b"\x89PNG")]


def test_scenes_are_drawn_from_one_portrait_whatever_the_seed(
    serve: Serve, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    server, renderer = serve(concurrency=1)
    config = Settings(renderer="hosted", judges=("pixel",), mode="base", seeds=(7, 8), size=(1024, 1024))
    run_story(story(), config, tmp_path / "out", plugins=plugins(renderer=renderer))
    portrait = picture("frame 0", (1024, 1024))
    scenes = [number for number in range(len(server.bodies)) if pictures_in(server, number)]
    assert pictures_in(server, 0) == []
    assert scenes == list(range(1, len(server.bodies)))
    assert all(pictures_in(server, number) == [portrait] for number in scenes)
    assert "The given picture shows lion" in sent(server, 1)
    if service == "openai":
        assert b'name="input_fidelity"\r\n\r\nhigh' in server.bodies[1]
        assert server.paths[1].endswith("/images/edits")


def test_a_broken_portrait_is_reported_under_the_name_of_who_drew_it(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    _, bridge = serve()
    monkeypatch.setattr(type(bridge), "render_board", lambda *_: iter([b"no picture"]))
    config = Settings(
        renderer="block", bridge_renderer="hosted:x", judges=("pixel",), mode="caption_bridge", seeds=(7,)
    )
    with pytest.raises(RenderError, match="The renderer 'hosted:x' gave a frame that"):
        run_story(story(), config, tmp_path / "out", plugins=plugins(bridge=bridge))


def test_the_users_own_picture_goes_before_a_portrait_and_beside_the_text(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cast").mkdir()
    own = picture("my own lion", (80, 60))
    (tmp_path / "cast" / "The_Lion.png").write_bytes(own)
    server, renderer = serve(characters=tmp_path / "cast")
    config = Settings(renderer="hosted", judges=("pixel",), mode="caption_bridge", seeds=(7,), size=(1024, 1024))
    run_story(story(), config, tmp_path / "out", plugins=plugins(renderer=renderer))
    assert len(server.bodies) == 6
    assert all(pictures_in(server, number)[-1] == own for number in range(6))
    assert len(pictures_in(server, 5)) == 3, "the bridge has its neighbours, too"
    assert "The further pictures show the characters lion" in sent(server, 5)
    assert "The given picture shows lion" in sent(server, 0)
    other = make(server.service, base_url=server.url)
    assert other.spec()["references"] != renderer.spec()["references"]


def test_a_picture_on_a_sheet_goes_before_the_portrait(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    server, renderer = serve()
    assert renderer.capabilities.pictures
    config = Settings(renderer="hosted", judges=("pixel",), mode="base", seeds=(7,), size=(1024, 1024))
    parts = plugins(renderer=renderer)
    run_story(story(), config, tmp_path / "out", plugins=parts)
    before = len(server.bodies)
    own = picture("my own lion", (80, 60))
    sha256 = keep_picture(tmp_path / "out", own)
    done = edit_board(tmp_path / "out", [ChangeCharacter(name="lion", reference=sha256)], plugins=parts)
    assert done.remarks == ()
    assert len(server.bodies) == before + 5, "five frames, and no portrait"
    kept = (tmp_path / "out" / "panels" / f"{sha256}.png").read_bytes()
    assert all(pictures_in(server, number) == [kept] for number in range(before, before + 5))
    edit_board(tmp_path / "out", [ChangeCharacter(name="lion", reference="")], plugins=parts)
    assert len(server.bodies) == before + 5, "what it was before is in the cache"


def test_the_cast_is_drawn_a_picture_a_side_each_like_the_first(
    serve: Serve, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    server, renderer = serve()
    config = Settings(renderer="hosted", judges=("pixel",), mode="base", seeds=(7,), size=(1024, 1024))
    run_story(story(), config, tmp_path / "out", plugins=plugins(renderer=renderer))
    before, board = len(server.bodies), (tmp_path / "out" / "storyboard.json").read_bytes()
    name = f"{service}:{KINDS[service][1]}"
    (one,) = draw_views(tmp_path / "out", renderer=name, renderer_options={"base_url": server.url})
    assert (one.name, list(one.pictures)) == ("lion", ["front", "three-quarter", "side", "back"])
    assert one.drawings == {}
    prompts = [sent(server, number) for number in range(before, len(server.bodies))]
    assert len(prompts) == 4
    said = ("seen from the front", "three-quarter view", "in profile", "seen from behind")
    assert all(words in prompt for words, prompt in zip(said, prompts, strict=True))
    front = one.pictures["front"].read_bytes()
    shown = [pictures_in(server, number) for number in range(before + 1, before + 4)]
    assert shown == [[front]] * 3, "the first side shows the others how it looks"
    assert (tmp_path / "out" / "storyboard.json").read_bytes() == board


def test_a_picture_of_a_prop_is_sent_with_the_frames_that_name_it(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    server, renderer = serve()
    config = Settings(renderer="hosted", judges=("pixel",), mode="base", seeds=(7,), size=(1024, 1024))
    parts = plugins(renderer=renderer)
    run_story(story(), config, tmp_path / "out", plugins=parts)
    sha256 = keep_picture(tmp_path / "out", picture("my kettle", (80, 60)))
    kept = (tmp_path / "out" / "panels" / f"{sha256}.png").read_bytes()
    before = len(server.bodies)
    edits = [ChangeFrame(frame=2, prompt="The lion lifts the kettle."), ChangeProp(name="kettle", reference=sha256)]
    done = edit_board(tmp_path / "out", edits, plugins=parts)
    assert done.drawn == (2,)
    assert not any("from pictures" in said for said in done.remarks)
    (number,) = range(before, len(server.bodies))
    assert kept in pictures_in(server, number)
    assert "show, in this order, lion, kettle" in sent(server, number)


def test_pictures_that_are_for_nobody_are_told(serve: Serve, tmp_path: Path) -> None:
    (tmp_path / "Rabbit.png").write_bytes(picture("rabbit", (64, 64)))
    _, renderer = serve(characters=tmp_path)
    list(renderer.render_board([request()]))
    assert renderer.remarks() == ["None of the reference pictures (Rabbit.png) is of a character of this board (Leo)."]
    assert renderer.remarks() == []


def test_a_model_that_cannot_be_told_a_fidelity_refuses_one(serve: Serve, service: str) -> None:
    if service != "openai":
        with pytest.raises(UsageError, match="cannot be told a fidelity"):
            serve(fidelity="high")
    else:
        assert serve(fidelity="low")[1].spec()["fidelity"] == "low"
        assert make("openai", "gpt-image-2.6-flare").spec()["fidelity"] is None


@pytest.mark.parametrize("concurrency", [1, 3])
def test_frames_are_asked_for_side_by_side(
    service: str, concurrency: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    under_way, most, lock, together = 0, 0, threading.Lock(), threading.Barrier(concurrency)

    class Waiting(Server):
        def process_request_thread(self, request: Any, client_address: Any) -> None:
            nonlocal under_way, most
            if request.recv(4, socket.MSG_PEEK) != b"POST":  # looks at what is drawn already
                super().process_request_thread(request, client_address)
                return
            with lock:
                under_way += 1
                most = max(most, under_way)
            if self.bodies and not together.broken:
                with contextlib.suppress(threading.BrokenBarrierError):
                    together.wait(2)
            super().process_request_thread(request, client_address)
            with lock:
                under_way -= 1

    server = Waiting(service, lambda number: {"data": picture(f"frame {number}", (1024, 1024))})
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
    renderer = make(service, base_url=server.url, concurrency=concurrency)
    renderer._client._pacer._limit = 3.0
    config = Settings(renderer="hosted", judges=("pixel",), mode="base", seeds=(7,), size=(1024, 1024))
    board = run_story(story(scenes=7), config.model_copy(update={"panels": 7}), tmp_path / "out",
                      plugins=plugins(renderer=renderer)).board  # fmt: skip
    server.shutdown()
    server.server_close()
    assert most == concurrency
    assert [frame.scene for frame in board.frames] == list(range(1, 8))
    assert len({frame.sha256 for frame in board.frames}) == 7
    receipts = read_json(tmp_path / "out" / "run.json")["services"]
    assert receipts[0]["frames"] == 8


def test_what_is_under_way_when_a_frame_fails_is_kept(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(graph, "RETRY", graph.RETRY._replace(max_attempts=1))
    server, renderer = serve({}, {"status": 500}, {}, {}, {}, {}, {}, {}, concurrency=2, portraits=False)
    config = Settings(renderer="hosted", judges=("pixel",), mode="base", seeds=(7,), size=(1024, 1024))
    parts = plugins(renderer=renderer)
    with pytest.raises(TransientRenderError):
        run_story(story(), config, tmp_path / "out", plugins=parts)
    before = len(server.bodies)
    run_story(story(), config, tmp_path / "out", plugins=parts)
    assert len(server.bodies) == 6, f"{before} before, one of them failed: nothing is paid for twice"


def test_the_characters_folder_reaches_whoever_draws_and_its_place_makes_no_other_run(
    tmp_path: Path,
) -> None:
    (tmp_path / "lion.png").write_bytes(picture("lion", (64, 64)))
    config = Settings(renderer="openai:gpt-image-2.6-flare", characters=tmp_path)
    assert list(make_renderer(config).spec()["references"]) == ["lion"]
    plain = Settings(renderer="openai:gpt-image-2.6-flare")
    assert identity_of(config.model_dump()) == identity_of(plain.model_dump())
    with pytest.raises(UsageError, match=r"There is no folder .*none"):
        make_renderer(plain.model_copy(update={"characters": tmp_path / "none"}))


# Layouts: the picture that a guide has drawn goes last, with one sentence that says what it is.


LAYOUT = picture("a layout", (640, 640))
FOLLOW = "The last of the given pictures is the layout to follow"


def test_a_layout_is_sent_last_with_one_sentence(serve: Serve, service: str) -> None:
    server, renderer = serve()
    leo = picture("leo", (64, 64))
    plain, guided = request(pictures=(("Leo", leo),)), request(pictures=(("Leo", leo),), guide=LAYOUT)
    list(renderer.render_board([plain]))
    list(renderer.render_board([guided]))
    assert [pictures_in(server, number) for number in (0, 1)] == [[leo], [leo, LAYOUT]]
    assert FOLLOW not in sent(server, 0)
    assert sent(server, 1).count(FOLLOW) == 1
    assert "take nothing of its style" in sent(server, 1)
    assert "Style: ink" in (list(renderer.render_board([request(guide=LAYOUT, style="ink")])) and sent(server, 2))
    assert pictures_in(server, 2) == [LAYOUT]
    if service == "openai":
        assert server.paths[2].endswith("/images/edits")
    if isinstance(renderer, BatchedRenderer):
        _, body = renderer.batch_request(guided)
        assert FOLLOW in json.dumps(body)
        assert b64encode(LAYOUT).decode() in json.dumps(body)


def test_a_bridge_has_its_neighbours_its_characters_and_its_layout(serve: Serve, service: str) -> None:
    server, renderer = serve()
    around = [picture(str(at), (1024, 1024)) for at in (1, 2)]
    leo = picture("leo", (64, 64))
    asked = request(kind="bridge", transition=(1, 2), guide=LAYOUT, pictures=(("Leo", leo),))
    board = BoardContext((request(), request()), tuple(around), 1)
    renderer.insert_frame(replace(asked, scene=None), board)
    # The older Gemini model takes three pictures: the layout goes before the characters, whom the neighbours show.
    assert pictures_in(server, 0) == ([*around, LAYOUT] if service == "gemini" else [*around, leo, LAYOUT])
    assert ("The further pictures show" in sent(server, 0)) == (service != "gemini")
    assert sent(server, 0).count(FOLLOW) == 1


def test_services_say_how_they_follow_a_layout_beside_their_specification(serve: Serve) -> None:
    _, renderer = serve()
    assert renderer.capabilities.guide
    assert can(renderer, Renderer.guided_spec)
    assert list(renderer.guided_spec()) == ["prompt"]
    assert len(renderer.spec()["prompts"]) == 3, "frames without a layout keep their keys"


@pytest.fixture
def guide(monkeypatch: pytest.MonkeyPatch) -> tuple[VectorRenderer, drawn_boards.Scripted]:
    def answer(turns: Sequence[Turn]) -> str:
        second = turns[-1].text.startswith("Draw frame 2")
        return f"```svg\n{drawn_boards.frame(200)}\n```" if second else drawn_boards.usual(turns)

    model = drawn_boards.Scripted(answer)
    monkeypatch.setattr("katha.renderers.vector.renderer.make_model", lambda *_, **__: model)
    return VectorRenderer("openai:any"), model


def test_a_run_sends_each_scene_its_drawn_layout_and_portraits_follow_the_cast(
    serve: Serve,
    service: str,
    guide: tuple[VectorRenderer, drawn_boards.Scripted],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KATHA_CACHE", str(tmp_path / "cache"))
    server, renderer = serve(concurrency=1)
    size = (1536, 1024) if service in ("openai", "seedream") else (1248, 832)
    config = Settings(
        renderer="hosted", guide="vector:openai:any", judges=("pixel",), mode="base", seeds=(42,), size=size,
        style="ink", panels=2,
    )  # fmt: skip
    plan, out = drawn_boards.plan(), tmp_path / "out"
    plan = plan.model_copy(update={"style": "ink"})
    told = StoryRecord(story_id="kettle", title="Kettle", story_text="Mila looks at the kettle. The kettle boils.")
    parts = plugins(renderer=renderer, guide=guide[0])
    result = run_story(told, config, out, plan=plan, plugins=parts)
    frames = result.board.frames
    layouts = [(out / frame.guide).read_bytes() for frame in frames if frame.guide is not None]
    portrait, scenes = pictures_in(server, 0), [pictures_in(server, number) for number in (1, 2)]
    assert len(server.bodies) == 3
    assert [shown[-1] for shown in scenes] == layouts
    assert [len(shown) for shown in scenes] == [2, 2]
    assert "The given picture shows who it is" in sent(server, 0)
    (figure,) = portrait
    green = decode(figure).getpixel((decode(figure).width // 2, decode(figure).height - 100))
    assert green == (43, 156, 149), "the body of the cast sheet, in its own colours"
    assert guide[0].figures(guide[0].cast_source() or b"", plan) == {"Mila": figure}
    assert all("Style: ink" in sent(server, number) for number in range(3))
    assert not any("ink" in turn.text.split("THE PLAN")[0] for turns in guide[1].asked for turn in turns[:1])
    used = {row["service"]: (row["frames"], row["cost"]) for row in read_json(out / "run.json")["services"]}
    assert used["vector"] == (2, pytest.approx(0.01 * len(guide[1].asked)))
    assert used[service][0] == 3
    again = len(server.bodies), len(guide[1].asked)
    assert run_story(told, config, out, plan=plan, plugins=parts).reused
    assert (len(server.bodies), len(guide[1].asked)) == again


def test_a_model_that_draws_any_size_is_asked_for_it() -> None:
    free = make("openai", "gpt-image-2.6-flare")
    assert (free.capabilities.sizes, free.capabilities.size_multiple) == (None, 16)
    assert free._shape((1536, 864)) == "1536x864"
    for size in ((4096, 1024), (3840, 1200), (256, 256), (3840, 3840)):
        with pytest.raises(UsageError, match=f"does not draw {size[0]}x{size[1]}"):
            free._shape(size)
    assert (1536, 864) not in (make("openai").capabilities.sizes or ())


def test_pictures_of_2k_and_4k_are_kept_and_priced() -> None:
    asked = {quality: make("gemini", "gemini-3-pro-image", quality=quality) for quality in (None, "2K", "4K")}
    sizes = [one.capabilities.default_size for one in asked.values()]
    assert sizes == [(1248, 832), (2496, 1664), (4992, 3328)]
    assert asked["4K"]._shape((4992, 3328)) == "3:2"
    prices = [one.price_of(0) for one in asked.values()]
    assert prices == pytest.approx([(2_000 + n * 120) / 1e6 for n in (2000, 1120, 2000)])


def test_what_a_picture_of_a_service_that_charges_by_the_picture_costs() -> None:
    flux, ideogram, seedream = make("bfl"), make("ideogram"), make("seedream")
    assert flux.price_of(0, (1024, 1024)) == pytest.approx(0.03)
    assert flux.price_of(2, (1024, 1024)) == pytest.approx(0.03 + 2 * 0.015)
    assert flux.price_of(0, (2048, 2048)) == pytest.approx(0.03 + 3 * 0.015)
    assert make("bfl", "flux-2-klein-4b").price_of(9, (1024, 1024)) == pytest.approx(0.014 + 4 * 0.001)
    assert [ideogram.price_of(sent) for sent in (0, 1)] == pytest.approx([0.06, 0.06])
    high = make("ideogram", quality="high")
    assert [high.price_of(sent) for sent in (0, 1)] == pytest.approx([0.1, 0.22])
    assert seedream.price_of(3, (1536, 1024)) == pytest.approx(0.02 + 3 * 0.008)
    assert seedream.price_of(0, (2048, 2048)) == pytest.approx(0.035)
    assert make("seedream", "seedream-5-0-pro-260628").frame_price is None
    assert make("seedream", "seedream-5-0-pro-260628", price=0.09).frame_price == 0.09


def test_services_take_as_many_pictures_as_they_say_and_more_stand_together(serve: Serve, service: str) -> None:
    most = {"openai": 16, "gemini": 3, "bfl": 8, "ideogram": 5, "seedream": 10}[service]
    server, renderer = serve()
    named = tuple((f"No {place}", picture(f"no {place}", (64, 64))) for place in range(most + 2))
    list(renderer.render_board([request(pictures=named)]))
    shown = pictures_in(server, 0)
    assert len(shown) == most
    assert shown[: most - 1] == [png for _, png in named[: most - 1]]


def test_sizes_that_a_service_does_not_draw_are_refused_before_any_call() -> None:
    assert make("bfl").capabilities.size_multiple == 32
    for service, size in (("bfl", (2080, 512)), ("seedream", (512, 512)), ("seedream", (4096, 2048))):
        with pytest.raises(UsageError, match=f"does not draw {size[0]}x{size[1]}"):
            make(service)._shape(size)
    assert make("seedream", "seedream-4-5-251128").capabilities.default_size == (2496, 1664)
    assert all(width % 32 == height % 32 == 0 for width, height in make("ideogram").capabilities.sizes or ())


def test_flux_is_sent_pictures_of_a_million_pixels_at_most_and_asked_after_with_the_key(serve: Serve) -> None:
    server, renderer = serve()
    if server.service != "bfl":
        pytest.skip("of Black Forest Labs alone")
    list(renderer.render_board([request(pictures=(("Leo", picture("leo", (1600, 1200))),))]))
    (shown,) = pictures_in(server, 0)
    width, height = decode(shown).size
    assert width * height <= 1024 * 1024 < (width + 2) * (height + 2)
    paths = [path for path, _ in server.looked]
    assert paths == ["/v1/get_result?id=0", "/v1/get_result?id=0", "/pictures/0.png"]
    assert [headers.get("x-key") for _, headers in server.looked] == [KEY, KEY, None], "a picture is fetched without"


def test_a_key_goes_to_the_services_own_hosts_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BFL_BASE_URL", raising=False)
    client = make("bfl")._client
    asked: list[str] = []

    def answer(call: httpx.Request) -> httpx.Response:
        asked.append(f"{call.url.host} {call.headers.get('x-key')}")
        return httpx.Response(200, json={})

    sdk = httpx.Client(base_url="https://api.bfl.ai", transport=httpx.MockTransport(answer))
    monkeypatch.setitem(client.__dict__, "sdk", sdk)
    assert isinstance(client, HttpClient)
    client.call("GET", "https://api.us1.bfl.ai/v1/get_result?id=1")
    client.call("GET", "/v1/get_result?id=1")
    client.picture_at("https://delivery.example/1.png")
    assert asked == [f"api.us1.bfl.ai {KEY}", f"api.bfl.ai {KEY}", "delivery.example None"]
    for address in ("https://evil.example/x", "http://api.us1.bfl.ai/x", "https://api.bfl.ai.evil.example/x"):
        with pytest.raises(Fault, match="not its own"):
            client.call("GET", address)
    for address in ("http://delivery.example/1.png", "file:///etc/passwd", "http://127.0.0.1:80/1.png"):
        with pytest.raises(Fault, match="cannot be a picture's"):
            client.picture_at(address)
    assert len(asked) == 3


def test_an_account_without_credits_is_told_and_a_full_queue_waits(serve: Serve, service: str) -> None:
    if service not in ("bfl", "ideogram"):
        pytest.skip("402 is theirs")
    _, renderer = serve({"status": 402, "message": "insufficient_funds"})
    with pytest.raises(ModelError, match="no credit left"):
        list(renderer.render_board([request()]))
    if service == "ideogram":
        server, renderer = serve({"status": 402, "message": "inflight_limit"}, {}, retries=1)
        assert len(list(renderer.render_board([request()]))) == 1
        assert len(server.bodies) == 2


@pytest.mark.parametrize("service", ["bfl"])
def test_a_task_that_fails_or_never_ends_is_typed(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    for status, words in (("Error", "ended as 'Error'"), ("Pending", "not done in 0 s")):
        server, renderer = serve(timeout=0.3)
        monkeypatch.setattr(sys.modules[__name__], "reply", partial(_stuck, status))
        with pytest.raises(TransientRenderError, match=words):
            list(renderer.render_board([request()]))
        assert len(server.bodies) == 1, "what was paid for is not asked for again"


def _stuck(status: str, server: Server, step: Step, number: int) -> dict[str, Any]:
    server.tasks[str(number)] = [{"status": status}]
    return {"id": str(number), "polling_url": f"{server.url}/v1/get_result?id={number}"}
