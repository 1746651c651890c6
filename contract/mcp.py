"""MCP servers in the words of both sides: what a client hands over, what OpenCode says of one."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field

from contract.acp import Params
from contract.shapes import Shape

CONNECTED: Final = "connected"
PENDING: Final = "pending"

Word = Annotated[str, Field(max_length=32_768)]
Name = Annotated[str, Field(min_length=1, max_length=256)]


class Variable(Params):
    """One variable of an environment, or one HTTP header."""

    name: Name
    value: Word


Variables = Annotated[list[Variable], Field(max_length=256, default_factory=list)]


class StdioServer(Params):
    """A program that speaks MCP on its standard input and output."""

    name: Name
    command: Annotated[str, Field(min_length=1, max_length=4096)]
    args: Annotated[list[Word], Field(max_length=256, default_factory=list)]
    env: Variables


class HttpServer(Params):
    """A server that speaks MCP over streamable HTTP."""

    type: Literal["http"]
    name: Name
    url: Annotated[str, Field(min_length=1, max_length=8192)]
    headers: Variables


McpServer = StdioServer | HttpServer


class McpStatus(Shape):
    """`connected`, `pending`, `disabled`, or `failed` and `needs_auth` with an `error`."""

    status: str
    error: str = ""


class ListedServer(Shape):
    """One entry of a location's list."""

    name: str
    status: McpStatus
