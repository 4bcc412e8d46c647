"""The server on standard input and output: what it is called, whose errors are sentences, and how it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import CallToolResult, InputRequiredResult
from pydantic import ValidationError

import katha
from katha.app.desk.desk import Desk
from katha.app.mcp.answers import refuse
from katha.app.mcp.studio import Studio
from katha.app.mcp.tools import add_tools
from katha.errors import KathaError

_INSTRUCTIONS = (
    "katha turns a story into a storyboard and measures whether its transitions can be understood from the pictures "
    "alone. Begin with plan (free) or run. weakest shows the cut that tells least; propose_bridge draws frames for it "
    "and changes nothing; accept puts one in, and a person decides. redo shows takes of a frame, and with a seed puts "
    "one on the board; undo goes back, and forward on again. judge takes pictures that exist. Show people the "
    "thumbnails before a decision."
)
_STOP_SECONDS = 20.0


class McpServer(MCPServer[Studio]):
    """An MCP server that answers what was wrong in one sentence, as the command line does."""

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Studio, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        """Call a tool; bad input and failures are results that say so."""
        known = {tool.name: tool.input_schema.get("properties", {}) for tool in await self.list_tools()}
        strange = sorted(set(arguments) - set(known.get(name, arguments)))
        if strange:  # else a misspelt one would be left out without a word
            return refuse(f"{name}: there is no argument {strange[0][:60]!r}. Known: {', '.join(known[name])}.")
        try:
            return await super().call_tool(name, arguments, context)
        except ToolError as error:
            cause = error.__cause__
            if isinstance(cause, KathaError):
                return refuse(str(cause))
            if isinstance(cause, ValidationError):
                first = cause.errors(include_url=False, include_input=False)[0]
                where = ".".join(str(part) for part in first["loc"]) or "the arguments"
                return refuse(f"{name}: {where}: {first['msg']}.")
            raise


def make_server(desk: Desk, *, limited: bool = False) -> McpServer:
    """Return the server over `desk`; `limited` says that a limit in dollars was set when it was started."""

    @asynccontextmanager
    async def lifespan(_: MCPServer[Studio]) -> AsyncIterator[Studio]:
        yield Studio(desk, limited)

    server = McpServer(
        "katha",
        title="katha",
        instructions=_INSTRUCTIONS,
        version=katha.__version__,
        lifespan=lifespan,
        log_level="ERROR",
    )
    add_tools(server)
    return server


def serve(desk: Desk, *, limited: bool = False) -> None:
    """Serve until the client closes its end; work that is under way is stopped after its step and kept."""
    try:
        make_server(desk, limited=limited).run("stdio")
    finally:
        desk.worker.stop()
        desk.worker.join(_STOP_SECONDS)
