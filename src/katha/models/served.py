"""What a server of open models tells of itself: the model behind a name, its revision and dtype, and its prefix cache.

vLLM and SGLang speak the Chat Completions protocol under `/v1`; what is read here lies beside it, at the server's root.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from katha.configs import load_config
from katha.errors import ModelError, UsageError, first_line
from katha.models.checkpoints import hub_commit
from katha.models.client import Vendor

Engine = Literal["vllm", "sglang"]
_TIMEOUT = 10.0
_START: Mapping[str, str] = {
    "vllm": "vllm serve {model}",
    "sglang": "python -m sglang.launch_server --model-path {model} --enable-metrics",
}
_COUNTERS: Mapping[str, tuple[str, str]] = {
    "vllm": (r"vllm:(?:gpu_)?prefix_cache_hits(?:_total)?", r"vllm:(?:gpu_)?prefix_cache_queries(?:_total)?"),
    "sglang": (r"sglang:cached_tokens(?:_total)?", r"sglang:prompt_tokens(?:_total)?"),
}
"""The counters of tokens that were in the prefix cache, and of those that were looked up."""


@dataclass(frozen=True)
class ModelFacts:
    """A model as its server tells it; None is what it does not tell.

    root: where the server has the weights from. parent: the base model, where the name is that of a LoRA adapter.
    revision: the hub's commit. window: the longest sequence, in tokens.
    """

    engine: Engine
    version: str | None
    root: str | None
    parent: str | None
    revision: str | None
    dtype: str | None
    quantization: str | None
    window: int | None

    def told(self) -> dict[str, str | int | None]:
        """Return it for a specification."""
        return asdict(self)


ENGINES: Mapping[str, Engine] = MappingProxyType({"vllm": "vllm", "sglang": "sglang"})
"""The providers that are servers of one's own."""


def address_variable(provider: str) -> str:
    """Return the variable that says where a server of one's own is."""
    return str(load_config("providers.yaml")[provider]["text"]["url_variable"])


class ModelServer:
    """One vLLM or SGLang server, asked about itself; questions to its models go through the vendor's client."""

    def __init__(self, engine: Engine, vendor: Vendor) -> None:
        self._engine: Engine = engine
        self._vendor = vendor
        self._root = vendor.url.rstrip("/").removesuffix("/v1")

    def model(self) -> ModelFacts:
        """Return what the server tells of the vendor's model.

        Raises:
            ModelError: the server does not answer. UsageError: it does not serve that model.
        """
        cards = self._cards()
        card = cards.get(self._vendor.model)
        if card is None:
            raise UsageError(
                f"The server at {self._vendor.endpoint} does not serve {self._vendor.model!r}.",
                hint=f"It serves {', '.join(sorted(cards)) or 'nothing'}.",
            )
        found = {"vllm": self._vllm, "sglang": self._sglang}[self._engine]()
        root = _text(card.get("root")) or _text(found.get("model"))
        # A server that was given a snapshot's folder names the commit in it.
        commit = _text(found.get("revision")) or (hub_commit(Path(root)) if root else None)
        window: Any = card.get("max_model_len") or found.get("window")
        return ModelFacts(
            engine=self._engine,
            version=_text(found.get("version")),
            root=root,
            parent=_text(card.get("parent")),
            revision=commit,
            dtype=(_text(found.get("dtype")) or "").removeprefix("torch.") or None,
            quantization=_text(found.get("quantization")),
            window=int(window) if window else None,
        )

    def names(self) -> list[str]:
        """Return the names that can be asked for.

        Raises:
            ModelError: the server does not answer.
        """
        return sorted(self._cards())

    def _cards(self) -> dict[str, Mapping[str, Any]]:
        listed = self._json("/v1/models", needed=True).get("data")
        return {str(card.get("id")): card for card in listed if isinstance(card, dict)} if listed else {}

    def prefix_hits(self) -> tuple[int, int] | None:
        """Return tokens of prompts that the prefix cache had and tokens that were looked up, since the server began.

        Over all that it serves and all who ask. None where the server does not count them, or does not answer.
        """
        try:
            text = self._get("/metrics").text
        except ModelError:
            return None
        hits, asked = (_total(text, name) for name in _COUNTERS[self._engine])
        return None if hits is None or asked is None else (hits, asked)

    def _vllm(self) -> Mapping[str, object]:
        """Return version and, where the server was started with VLLM_SERVER_DEV_MODE=1, the model's configuration."""
        whole = self._json("/server_info?config_format=json").get("vllm_config")
        config = whole.get("model_config") if isinstance(whole, dict) else None
        return {"version": self._json("/version").get("version"), **(config if isinstance(config, dict) else {})}

    def _sglang(self) -> Mapping[str, object]:
        """Return the server's arguments; newer servers have them under another name."""
        found = self._json("/get_server_info") or self._json("/server_info")
        return {**found, "model": found.get("model_path"), "window": found.get("context_length")}

    def _json(self, path: str, *, needed: bool = False) -> Mapping[str, Any]:
        """Return the object at `path`; empty where the server has none there and none is needed."""
        response = self._get(path)
        try:
            found = response.json() if response.status_code == 200 else None
        except ValueError:
            found = None
        if isinstance(found, dict):
            return found
        if needed:
            raise self._silent(f"HTTP {response.status_code} at {path}")
        return {}

    def _get(self, path: str) -> Any:
        import httpx

        headers = {"authorization": f"Bearer {self._vendor.key}"}
        try:
            return httpx.get(f"{self._root}{path}", headers=headers, timeout=_TIMEOUT)
        except httpx.HTTPError as error:
            raise self._silent(first_line(error)) from None

    def _silent(self, reason: str) -> ModelError:
        start = _START[self._engine].format(model=self._vendor.model)
        return ModelError(
            f"The {self._engine} server at {self._vendor.endpoint} does not answer: {reason}.",
            hint=f"Start it ({start}), or correct --base-url.",
        )


def counted_since(now: tuple[int, int] | None, before: tuple[int, int] | None) -> tuple[int, int] | None:
    """Return what was counted in between; a server that was started again began at zero."""
    if now is None or before is None:
        return now
    restarted = now[1] < before[1]
    return now if restarted else (now[0] - before[0], now[1] - before[1])


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _total(metrics: str, name: str) -> int | None:
    """Return the sum of a counter over its labels, in Prometheus' text format; None where it is not there."""
    found = re.findall(rf"^{name}(?:\{{.*\}})?\s+([0-9.eE+]+)\s*$", metrics, re.MULTILINE)
    return int(sum(map(float, found))) if found else None


def reading(engine: Engine, vendor: Vendor) -> Callable[[], tuple[int, int] | None]:
    """Return a function that tells what the prefix cache counted since now."""
    server = ModelServer(engine, vendor)
    before = server.prefix_hits()
    return lambda: counted_since(server.prefix_hits(), before)
