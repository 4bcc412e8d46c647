"""The MCP server: assistants and other programs plan, draw, measure and edit boards over the public API."""
