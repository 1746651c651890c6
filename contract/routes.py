"""Every route of OpenCode 2.0.15 with its disposition, and the only way to a path.

Paths are written as the server's `/openapi.json` writes them. A route in use has a name here; the
others stand in `UNUSED`, grouped by the reason. `python -m contract check URL` compares this table
with a live server.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from contract.shapes import GLOBAL


@dataclass(frozen=True)
class Route:
    """`why` is one phrase: how it is used, or why not. Without a required one no session opens."""

    method: str
    path: str
    used: bool
    required: bool
    why: str

    @property
    def name(self) -> str:
        """`METHOD /path`, as messages show it."""
        return f"{self.method} {self.path}"


def _need(method: str, path: str, why: str) -> Route:
    return Route(method, path, used=True, required=True, why=why)


def _use(method: str, path: str, why: str) -> Route:
    return Route(method, path, used=True, required=False, why=why)


_S: Final = "/api/session/{sessionID}"

INFO: Final = _need("GET", "/api/info", "health, version, and the pid that betrays a restart")
EVENT: Final = _need("GET", "/api/event", "the one feed, shared by all sessions")

SESSION_CREATE: Final = _need("POST", "/api/session", "session/new, with an id of ours")
SESSION_GET: Final = _need("GET", _S, "session/resume; title, agent and model after a gap")
SESSION_LIST: Final = _use("GET", "/api/session", "session/list; children of a session")
SESSION_DELETE: Final = _use("DELETE", _S, "session/delete, which takes the children along")
SESSION_FORK: Final = _use("POST", f"{_S}/fork", "session/fork")
LOCATION: Final = _need("GET", "/api/location", "whether a session's directory is one, there")
ACTIVE: Final = _need("GET", "/api/session/active", "whether a turn runs or is parked")

PROMPT: Final = _need("POST", f"{_S}/prompt", "session/prompt, queued, with an id of ours")
COMMAND: Final = _use("POST", f"{_S}/command", "a slash command, queued, with a mark of ours")
COMPACT: Final = _use("POST", f"{_S}/compact", "/compact, queued, with an id of ours")
INTERRUPT: Final = _need("POST", f"{_S}/interrupt", "session/cancel of a delivered prompt")
INBOX: Final = _need("GET", f"{_S}/inbox", "whether a prompt still waits, and behind what")
INBOX_DELETE: Final = _need(
    "DELETE", f"{_S}/inbox/{{inboxID}}", "session/cancel of an undelivered prompt"
)
INBOX_PATCH: Final = _need("PATCH", f"{_S}/inbox/{{inboxID}}", "wakes a parked prompt")
MESSAGES: Final = _need("GET", f"{_S}/message", "the verdict and the full texts after a gap")
MESSAGE: Final = _use("GET", f"{_S}/message/{{messageID}}", "one text for a slow client")

PERMISSIONS: Final = _need("GET", "/api/permission/request", "open asks, children included")
PERMISSION_REPLY: Final = _need(
    "POST", f"{_S}/permission/{{requestID}}/reply", "the client's answer to an ask"
)
FORMS: Final = _need("GET", "/api/form", "open questions of the agent")
FORM_REPLY: Final = _need(
    "POST", f"{_S}/form/{{formID}}/reply", "the client's answer, or none, so that the turn goes on"
)
FORM_DISMISS: Final = _use(
    "DELETE", f"{_S}/form/{{formID}}", "a form that cannot stay unanswered; never a question's"
)

AGENTS: Final = _need("GET", "/api/agent", "the mode choices of a directory")
MODELS: Final = _need("GET", "/api/model", "the model and effort choices of a directory")
MODEL_DEFAULT: Final = _need("GET", "/api/model/default", "the model of a session without choice")
PLUGINS: Final = _use("GET", "/api/plugin", "whether a directory has booted: this list comes last")
COMMANDS: Final = _use("GET", "/api/command", "the slash commands of a directory")
SKILLS: Final = _use("GET", "/api/skill", "the skills of a directory, as slash commands")
AGENT_SET: Final = _need("POST", f"{_S}/agent", "session/set_mode, and the mode choice")
MODEL_SET: Final = _need("POST", f"{_S}/model", "the model and the effort choice")

MCP_LIST: Final = _use("GET", "/api/mcp", "whether a server that was registered did start")
_MCP: Final = "/api/experimental/mcp/{server}"
MCP_PUT: Final = _use("PUT", _MCP, "registers an MCP server of a client, where that is allowed")
MCP_REMOVE: Final = _use("DELETE", _MCP, "removes it again when its session is closed")

# Lists the routes and is not among them.
OPENAPI: Final = _use("GET", "/openapi.json", "the live server's routes")

USED: Final = (
    INFO, EVENT,
    SESSION_CREATE, SESSION_GET, SESSION_LIST, SESSION_DELETE, SESSION_FORK, LOCATION, ACTIVE,
    PROMPT, COMMAND, COMPACT, INTERRUPT, INBOX, INBOX_DELETE, INBOX_PATCH, MESSAGES, MESSAGE,
    PERMISSIONS, PERMISSION_REPLY, FORMS, FORM_REPLY, FORM_DISMISS,
    AGENTS, MODELS, MODEL_DEFAULT, PLUGINS, COMMANDS, SKILLS, AGENT_SET, MODEL_SET,
    MCP_LIST, MCP_PUT, MCP_REMOVE,
)  # fmt: skip
OF_TURNS: Final = frozenset(
    {
        INFO, EVENT, ACTIVE,
        PROMPT, COMMAND, COMPACT, INTERRUPT, INBOX, INBOX_DELETE, INBOX_PATCH, MESSAGES, MESSAGE,
        PERMISSION_REPLY, FORM_REPLY, FORM_DISMISS,
    }
)  # fmt: skip
"""What a turn in flight waits for. The others are of a directory or of many sessions: the server
may leave the first use of a directory without an answer (README, "Many projects on one server")."""


def _unused(why: str, *names: str) -> tuple[Route, ...]:
    pairs = (name.split(" ", 1) for name in names)
    return tuple(Route(method, path, False, False, why) for method, path in pairs)


_PERSISTENT: Final = "/api/experimental/persistent-pty"
_ENTRIES: Final = "/api/experimental/session/{sessionID}/instructions/entries"
_CONNECT: Final = "/api/integration/{integrationID}/connect"

UNUSED: Final = (
    *_unused(
        "one read of the whole location, by list, covers it",
        "GET /api/agent/{agentID}",
        f"GET {_S}/permission",
        f"GET {_S}/permission/{{requestID}}",
        f"GET {_S}/form",
        f"GET {_S}/form/{{formID}}",
        f"GET {_S}/context",
    ),
    *_unused(
        "a skill goes along with a prompt, which has an id of ours",
        "POST /api/experimental/session/{sessionID}/skill",
    ),
    *_unused(
        "no ACP method asks for it",
        f"PATCH {_S}",
        f"GET {_S}/diff",
        f"POST {_S}/move",
        f"POST {_S}/view",
        f"DELETE {_S}/revert",
        f"POST {_S}/revert/commit",
        f"POST {_S}/revert/stage",
        "GET /api/experimental/session/stats",
        "GET /api/experimental/session/{sessionID}/export",
        "POST /api/experimental/session/import",
    ),
    *_unused(
        "would put words, asks or work of ours into a session that others share",
        f"POST {_S}/synthetic",
        f"POST {_S}/permission",
        f"POST {_S}/form",
        f"POST {_S}/background",
        f"PUT {_S}/environment",
        f"GET {_ENTRIES}",
        f"PUT {_ENTRIES}/{{key}}",
        f"DELETE {_ENTRIES}/{{key}}",
    ),
    *_unused(
        "runs a model outside every session and history",
        f"POST {_S}/generate",
        "POST /api/experimental/generate",
        "POST /api/websearch",
    ),
    *_unused(
        "holds a connection or answers nothing that the feed and the inbox do not say",
        "POST /api/experimental/session/{sessionID}/wait",
        "GET /api/experimental/session/{sessionID}/log",
    ),
    *_unused(
        "the MCP servers of the operator, and what they offer besides tools, are left alone",
        "GET /api/mcp/resource",
        "POST /api/experimental/mcp/{server}/connect",
        "POST /api/experimental/mcp/{server}/disconnect",
    ),
    *_unused(
        "credentials and sign-in are the operator's",
        "PATCH /api/credential/{credentialID}",
        "DELETE /api/credential/{credentialID}",
        "POST /api/credential/{credentialID}/activate",
        "GET /api/integration",
        "GET /api/integration/{integrationID}",
        f"POST {_CONNECT}/command",
        f"GET {_CONNECT}/command/{{attemptID}}",
        f"DELETE {_CONNECT}/command/{{attemptID}}",
        f"POST {_CONNECT}/key",
        f"POST {_CONNECT}/oauth",
        f"GET {_CONNECT}/oauth/{{attemptID}}",
        f"DELETE {_CONNECT}/oauth/{{attemptID}}",
        f"POST {_CONNECT}/oauth/{{attemptID}}/complete",
        "POST /api/experimental/integration/wellknown",
    ),
    *_unused(
        "configuration and upkeep of the server are the operator's",
        "GET /api/config",
        "GET /api/config/shell",
        "PATCH /api/experimental/config",
        "GET /api/provider",
        "GET /api/provider/{providerID}",
        "GET /api/permission/saved",
        "DELETE /api/permission/saved/{id}",
        "POST /api/plugin/check",
        "POST /api/plugin/update",
        "POST /api/rpc/{rpcID}/{method}",
        "GET /api/reference",
        "GET /api/websearch/provider",
        "GET /api/experimental/migration/v1",
        "GET /api/debug/location",
        "DELETE /api/debug/location",
        "POST /api/location/reload",
        "GET /api/project",
        "PATCH /api/project/{projectID}",
        "GET /api/worktree",
        "POST /api/worktree",
        "DELETE /api/worktree",
        "POST /api/worktree/refresh",
    ),
    *_unused(
        "files of the project are read and written by the server's tools alone",
        "GET /api/fs/find",
        "GET /api/fs/list",
        "GET /api/fs/read/*",
        "POST /api/experimental/fs/write",
        "GET /api/vcs",
        "GET /api/vcs/base",
        "GET /api/vcs/branch",
        "GET /api/vcs/diff",
        "GET /api/vcs/status",
    ),
    *_unused(
        "commands and terminals beside a turn would pass by the permission rules",
        f"POST {_S}/shell",
        "GET /api/shell",
        "POST /api/shell",
        "GET /api/shell/{id}",
        "DELETE /api/shell/{id}",
        "GET /api/shell/{id}/output",
        "GET /api/pty",
        "POST /api/pty",
        "GET /api/pty/{ptyID}",
        "PUT /api/pty/{ptyID}",
        "DELETE /api/pty/{ptyID}",
        "GET /api/pty/{ptyID}/connect",
        "POST /api/pty/{ptyID}/connect-token",
        f"POST {_PERSISTENT}/handoff",
        f"POST {_PERSISTENT}/shutdown",
        f"GET {_PERSISTENT}/{{ptyID}}",
        f"PUT {_PERSISTENT}/{{ptyID}}",
        f"DELETE {_PERSISTENT}/{{ptyID}}",
        f"GET {_PERSISTENT}/{{ptyID}}/connect",
        f"POST {_PERSISTENT}/{{ptyID}}/connect-token",
        f"GET {_PERSISTENT}/{{ptyID}}/snapshot",
        "GET /api/experimental/session/{sessionID}/terminal",
        "POST /api/experimental/session/{sessionID}/terminal",
        "GET /api/experimental/session/{sessionID}/terminal/read",
    ),
)

ROUTES: Final = (*USED, *UNUSED)
REQUIRED: Final = tuple(route for route in ROUTES if route.required)


def missing(live: Iterable[tuple[str, str]]) -> tuple[Route, ...]:
    """The required routes that are not among `live`, pairs of METHOD and path template."""
    there = frozenset(live)
    return tuple(route for route in REQUIRED if (route.method, route.path) not in there)


_TAIL: Final = r"[A-Za-z0-9_-]{1,200}"
_GRAMMAR: Final = MappingProxyType(
    {
        "sessionID": re.compile(f"ses_{_TAIL}"),
        "messageID": re.compile(f"msg_{_TAIL}"),
        "inboxID": re.compile(f"msg_{_TAIL}"),
        "requestID": re.compile(f"per_{_TAIL}"),
        "formID": re.compile(f"frm_{_TAIL}"),
        # Of ours alone: an MCP server of the operator can be neither replaced nor removed.
        "server": re.compile(r"acp_[0-9a-f]{10}(_[a-z0-9_]{1,16})?"),
    }
)
# Where `GLOBAL` stands for the session.
_WITHOUT_SESSION: Final = (FORM_REPLY, FORM_DISMISS)
_PARAMETER: Final = re.compile(r"\{(\w+)\}")


def is_id(name: str, value: str) -> bool:
    """Whether `value` can stand for the parameter `name` of a path, such as "sessionID"."""
    grammar = _GRAMMAR.get(name)
    return grammar is not None and grammar.fullmatch(value) is not None


def url(route: Route, **params: str) -> str:
    """The path of `route` with its ids filled in.

    An id is a prefix and `[A-Za-z0-9_-]` alone, so that nothing in it needs an escape or reaches
    another path. Raises `ValueError` for any other id and for parameters that do not fit.
    """
    names = _PARAMETER.findall(route.path)
    if set(names) != set(params):
        raise ValueError(f"{route.name} takes {names}, not {sorted(params)}")
    path = route.path
    for name, value in params.items():
        without_session = name == "sessionID" and value == GLOBAL and route in _WITHOUT_SESSION
        if not (is_id(name, value) or without_session):
            raise ValueError(f"no valid {name}: {value[:80]!r}")
        path = path.replace(f"{{{name}}}", value)
    return path
