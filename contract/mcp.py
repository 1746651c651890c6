"""MCP servers in the words of both sides: what a client hands over, what OpenCode says of one."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from contract.acp import Params
from contract.shapes import Shape

CONNECTED: Final = "connected"
PENDING: Final = "pending"

# A field name of RFC 9110, section 5.1, and a value of section 5.5 in Latin-1.
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_FIELD_VALUE: Final = re.compile(r"[\t -~\x80-\xff]*")


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise PydanticCustomError("nul", "It must hold no NUL")
    return text


def _variable_name(text: str) -> str:
    if "=" in text:
        raise PydanticCustomError("variable", "It must hold no equals sign")
    return _without_nul(text)


def _header_name(text: str) -> str:
    if not _TOKEN.fullmatch(text):
        raise PydanticCustomError("header", "It must be the name of an HTTP header")
    return text


def _header_value(text: str) -> str:
    if not _FIELD_VALUE.fullmatch(text):
        raise PydanticCustomError("header", "It must hold Latin-1 text without control characters")
    return text


UNTOLD: Final = Field(repr=False)
"""For what may hold a secret."""

Name = Annotated[str, Field(min_length=1, max_length=256)]
Word = Annotated[str, Field(max_length=32_768)]
# What no program can be given: the server quotes it in the list that every front end reads.
Argument = Annotated[Word, AfterValidator(_without_nul)]


class Variable(Params):
    """One variable of a program's environment. Its value may have several lines."""

    name: Annotated[Name, AfterValidator(_variable_name)]
    value: Annotated[Argument, UNTOLD]


class Header(Params):
    """One HTTP header. The server quotes the value of one that it cannot send."""

    name: Annotated[Name, AfterValidator(_header_name)]
    value: Annotated[Word, AfterValidator(_header_value), UNTOLD]


class StdioServer(Params):
    """A program that speaks MCP on its standard input and output."""

    name: Name
    command: Annotated[
        str, Field(min_length=1, max_length=4096), AfterValidator(_without_nul), UNTOLD
    ]
    args: Annotated[list[Argument], Field(max_length=256, default_factory=list), UNTOLD]
    env: Annotated[list[Variable], Field(max_length=256, default_factory=list)]


class HttpServer(Params):
    """A server that speaks MCP over streamable HTTP."""

    type: Literal["http"]
    name: Name
    url: Annotated[str, Field(min_length=1, max_length=8192), UNTOLD]
    headers: Annotated[list[Header], Field(max_length=256, default_factory=list)]


McpServer = StdioServer | HttpServer


class McpStatus(Shape):
    """`connected`, `pending`, `disabled`, or `failed` and `needs_auth` with an `error`."""

    status: str
    error: str = ""


class ListedServer(Shape):
    """One entry of a location's list."""

    name: str
    status: McpStatus
