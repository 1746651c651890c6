"""The whole of ACP version 1, and what of it this agent uses.

Names and stability are those of the schema in the TypeScript SDK 2.4.0. A test compares the tables
with that schema, and with what an agent answers and sends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Entry:
    """`used`: served, asked for or sent. `why` is one phrase: what for, or why not."""

    name: str
    stable: bool
    used: bool
    why: str


def _use(name: str, why: str) -> Entry:
    return Entry(name, stable=True, used=True, why=why)


def _skip(name: str, why: str) -> Entry:
    return Entry(name, stable=True, used=False, why=why)


def _draft(name: str, why: str, *, used: bool = False) -> Entry:
    return Entry(name, stable=False, used=used, why=why)


_PROVIDERS: Final = "providers and their keys are the operator's; they serve every client at once"

# Requests and notifications of the client.
AGENT_METHODS: Final = (
    _use("initialize", "what this agent can do; answered without the server"),
    _skip("authenticate", "no method is offered: the operator signs the server in for all"),
    _skip("logout", "there is no login of a client that could end"),
    _use("session/new", "a new session in the directory"),
    _use("session/load", "the whole conversation, and then what happens"),
    _use("session/resume", "opens a session and repeats nothing"),
    _use("session/list", "the sessions of the server, by page"),
    _use("session/delete", "deletes a session that has no children, or all of it if forced"),
    _use("session/close", "ends this connection's own turn; the session stays on the server"),
    _use("session/prompt", "queued on the server under an id of ours"),
    _use("session/cancel", "withdraws or stops the turn of this connection"),
    _use("session/set_mode", "chooses the agent of OpenCode"),
    _use("session/set_config_option", "chooses model, effort and mode"),
    _draft("session/fork", "a copy of the conversation as a session of its own", used=True),
    _draft("session/archive", "the server has no archive"),
    _draft("session/unarchive", "the server has no archive"),
    _draft("session/status", "a list marks what runs, and a resume says what became of a prompt"),
    _draft("session/set_title", "the server names its sessions; a front end of it may rename them"),
    _draft("auth/status", "there is no login of a client"),
    _draft("providers/list", _PROVIDERS),
    _draft("providers/set", _PROVIDERS),
    _draft("providers/disable", _PROVIDERS),
    _draft("mcp/message", "the server cannot reach an MCP server that lives in a client"),
)  # fmt: skip

_FILES: Final = "the server's tools own the files; a write by both would be two writes"
_TERMINALS: Final = "commands run on the server, in its own shells"

# Requests and notifications to the client.
CLIENT_METHODS: Final = (
    _use("session/update", "all that happens in a session"),
    _use("session/request_permission", "an ask of the turn's own session or of a child"),
    _use("elicitation/create", "a form of the agent, to a client that shows forms"),
    _skip("elicitation/complete", "belongs to the mode `url`, which is not used"),
    _skip("fs/read_text_file", _FILES),
    _skip("fs/write_text_file", _FILES),
    _skip("terminal/create", _TERMINALS),
    _skip("terminal/output", _TERMINALS),
    _skip("terminal/release", _TERMINALS),
    _skip("terminal/wait_for_exit", _TERMINALS),
    _skip("terminal/kill", _TERMINALS),
    _draft("mcp/message", "the server cannot reach an MCP server that lives in a client"),
    _draft("auth/status_update", "there is no login of a client"),
)

# Sent by either side.
PROTOCOL_METHODS: Final = (
    _use("$/cancel_request", "ends a request of the client, and withdraws an ask of ours"),
)

_PROXY: Final = "this agent is the end of a chain and no link of it"

# What a proxy between client and agent is asked for.
PROXY_METHODS: Final = (
    _draft("proxy/initialize", _PROXY),
    _draft("proxy/successor", _PROXY),
)

_PLAN: Final = "OpenCode 2.0.15 has no todo tool and no event of a plan"

# The values of `sessionUpdate`.
UPDATES: Final = (
    _use("user_message_chunk", "prompts of a conversation that is loaded, or of somebody else"),
    _use("agent_message_chunk", "text of an answer"),
    _use("agent_thought_chunk", "reasoning before or within an answer"),
    _use("tool_call", "a tool at first sight"),
    _use("tool_call_update", "what became of a tool"),
    _skip("plan", _PLAN),
    _use("available_commands_update", "commands and skills of the directory"),
    _use("current_mode_update", "the agent was changed, by anybody"),
    _use("config_option_update", "a choice or the list of choices was changed, by anybody"),
    _use("session_info_update", "a new title; notices for a client that does not take them"),
    _use("usage_update", "tokens in the context, and the cost of the session"),
    _use("notice", "what a person should know, to a client that takes notices"),
    _use("compaction_update", "a compaction, to a client that takes compactions"),
    _skip("compaction_summary_chunk", "a compaction is a mark; its summary is for the model"),
    _draft("plan_update", _PLAN),
    _draft("plan_removed", _PLAN),
    _draft("subagent_update", "work of children is shown as updates of the tool that started them"),
    _draft("session_message", "sessions of OpenCode send each other no messages"),
    _draft("session_message_chunk", "sessions of OpenCode send each other no messages"),
)


def used(entries: tuple[Entry, ...]) -> frozenset[str]:
    """The names among `entries` that this agent uses."""
    return frozenset(entry.name for entry in entries if entry.used)
