"""MCP servers that a client hands over, checked and put in the words of OpenCode. Pure.

Nothing of an environment, a header or an address is ever quoted: they hold secrets.
"""

from __future__ import annotations

import hashlib
import ipaddress
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from contract.acp import read_params
from contract.errors import AcpError, Code, invalid_params
from contract.limits import MCP_SERVERS
from contract.mcp import HttpServer, McpServer, StdioServer
from contract.policy import McpPolicy

Json = dict[str, object]

PREFIX: Final = "acp_"
HASH_CHARS: Final = 10
# A tool is called `{server}_{tool}`, and providers take 64 characters for a tool's name.
WORD_CHARS: Final = 16
# What a program would inherit of the server: a client's program has no business with them.
HIDDEN_VARIABLES: Final = ("OPENCODE_SERVER_PASSWORD", "OPENCODE_PASSWORD")
_HOST: Final = re.compile(
    r"[a-z0-9]([a-z0-9_-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9_-]*[a-z0-9])?)*", re.I
)
_PRINTABLE: Final = re.compile(r"[!-~]+")


def wanted(policy: McpPolicy, raw: Sequence[object]) -> tuple[McpServer, ...]:
    """The servers to register; none under `notice`.

    Raises AcpError -32602 under `reject`, for a transport or a shape that cannot be registered and
    for two servers of one name; -32053 for too many.
    """
    if not raw or policy == "notice":
        return ()
    if policy == "reject":
        raise invalid_params(
            "This adapter takes no MCP servers of a client; configure them at the OpenCode server "
            "and send an empty mcpServers."
        )
    if len(raw) > MCP_SERVERS:
        raise AcpError(
            Code.LIMIT, f"A session may bring {MCP_SERVERS} MCP servers; nothing was opened."
        )
    servers = tuple(_server(one, ("mcpServers", str(at))) for at, one in enumerate(raw))
    names: set[str] = set()
    for at, server in enumerate(servers):
        if server.name in names:
            raise invalid_params(f"mcpServers.{at}.name is that of an earlier entry, too.")
        names.add(server.name)
    return servers


def registered_name(session_id: str, name: str) -> str:
    """The server's name for it: of this session and this server alone, and the same each time.

    So what an adapter that was killed left behind is replaced by the next one, not added to.
    """
    digest = hashlib.sha256(f"{session_id}\0{name}".encode("utf-8", "replace")).hexdigest()
    word = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_")[:WORD_CHARS].strip("_")
    return f"{PREFIX}{digest[:HASH_CHARS]}" + (f"_{word}" if word else "")


def config(server: McpServer, seconds: float) -> Json:
    """The `config` of OpenCode's route.

    `seconds` bounds the start and the list of tools, each: the server takes 30 s for each
    otherwise, and holds up every other registration of the directory for so long. `codemode`
    false makes each tool one of its own, with a permission of its own.
    """
    limit = max(int(seconds * 1000), 1)
    shared: Json = {"codemode": False, "timeout": {"startup": limit, "catalog": limit}}
    match server:
        case StdioServer():
            hidden = dict.fromkeys(HIDDEN_VARIABLES, "")
            given = {one.name: one.value for one in server.env}
            argv = [server.command, *server.args]
            return {"type": "local", "command": argv, "environment": hidden | given, **shared}
        case HttpServer():
            headers = {one.name: one.value for one in server.headers}
            # Nobody could sign in at a shared server for one client.
            remote: Json = {"type": "remote", "url": server.url, "headers": headers}
            return {**remote, "oauth": False, **shared}


def _server(raw: object, within: tuple[str, ...]) -> McpServer:
    """`within` is the path of the entry in the request."""
    entry = raw if isinstance(raw, dict) else {}
    kind = entry.get("type", "stdio")
    where = ".".join(within)
    if kind == "stdio":
        return read_params(StdioServer, entry, within=within)
    if kind == "http":
        server = read_params(HttpServer, entry, within=within)
        if not _is_url(server.url):
            raise invalid_params(f"{where}.url must be an http(s) address with a host.")
        return server
    if kind == "sse":
        raise invalid_params(f"{where}.type sse is not supported; use stdio or http.")
    raise invalid_params(f"{where}.type must be stdio or http.")


def _is_url(url: str) -> bool:
    """Whether the server can parse it, too: one that it cannot blocks the whole directory there."""
    try:
        parts = urlsplit(url)
        _ = parts.port
        host = parts.hostname or ""
    except ValueError:
        return False
    if parts.scheme not in ("http", "https") or not _PRINTABLE.fullmatch(url):
        return False
    if ":" in host or host.rpartition(".")[2].isdigit():
        return _is_address(host)
    return _HOST.fullmatch(host) is not None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
