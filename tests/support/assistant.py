"""An assistant as MCP knows one: the SDK's own client, over standard input and output of `katha mcp` in a process."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp_types import CallToolResult, ElicitResult, ImageContent, TextContent

CHILD = Path(__file__).parent / "cli_child.py"


@dataclass
class Assistant:
    """A client with the person behind it: `answers` are given in turn, `asked` is what was asked for."""

    client: Client
    answers: list[ElicitResult]
    asked: list[str] = field(default_factory=list)
    heard: list[float] = field(default_factory=list)
    waiting: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, tool: str, /, **arguments: object) -> CallToolResult:
        """Call a tool; `heard` is how far it told to be."""
        self.heard.clear()
        return await self.client.call_tool(tool, arguments, progress_callback=self._hear)

    async def done(self, tool: str, /, **arguments: object) -> dict[str, Any]:
        """Call a tool that succeeds; gives its record."""
        result = await self.call(tool, **arguments)
        assert not result.is_error, text_of(result)
        assert result.structured_content is not None
        return result.structured_content

    async def refused(self, tool: str, /, **arguments: object) -> str:
        """Call a tool that refuses; gives its sentence."""
        result = await self.call(tool, **arguments)
        assert result.is_error, text_of(result)
        return text_of(result)

    async def _hear(self, progress: float, total: float | None, message: str | None) -> None:
        assert message
        self.heard.append(progress)
        self.waiting.set()


def text_of(result: CallToolResult) -> str:
    """A result's sentences."""
    return "\n".join(item.text for item in result.content if isinstance(item, TextContent))


def pictures_of(result: CallToolResult) -> list[ImageContent]:
    """A result's thumbnails."""
    return [item for item in result.content if isinstance(item, ImageContent)]


def talk(
    folder: Path,
    *words: str,
    act: Callable[[Assistant], Awaitable[None]],
    mode: str = "auto",
    answers: list[ElicitResult] | None = None,
    **environment: str,
) -> None:
    """Start `katha mcp FOLDER/root` with `words`, and act. Without `answers` the client cannot ask a person."""
    known = {**os.environ, "KATHA_CACHE": str(folder / "cache"), **environment}
    command = [str(CHILD), "mcp", str(folder / "root"), *words]
    server = StdioServerParameters(command=sys.executable, args=command, env=known, cwd=folder)

    async def converse() -> None:
        found: list[Assistant] = []

        async def ask(context: object, params: Any) -> ElicitResult:
            found[0].asked.append(params.message)
            return found[0].answers.pop(0)

        person = None if answers is None else ask
        async with Client(server, mode=mode, elicitation_callback=person) as client:
            found.append(Assistant(client, list(answers or ())))
            await act(found[0])

    asyncio.run(converse())
