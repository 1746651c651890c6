"""Watches the lines of one connection in both directions and holds the agent to the rules of ACP.

Pure: told of every line in wire order, it keeps the transcripts and the violations.
"""

from __future__ import annotations

import json
from typing import Any

from stubs.client.transcript import TEXT_KINDS, Json, Transcript

LINE_LIMIT = 1024 * 1024
"""Bytes: longer lines break some clients."""

AMBIENT = (
    "available_commands_update",
    "config_option_update",
    "current_mode_update",
    "notice",
    "session_info_update",
)
"""Updates that may come at any time; all others belong to a turn or a replay."""

TURN = (
    *TEXT_KINDS,
    "tool_call",
    "tool_call_update",
    "plan",
    "usage_update",
    "compaction_update",
)

OPEN = ("pending", "in_progress")
FINAL = ("completed", "failed")


class Observer:
    """`violations` holds one sentence for each breach, in order."""

    def __init__(self) -> None:
        self.violations: list[str] = []
        self.transcripts: dict[str, Transcript] = {}
        self.shows_forms = False
        self._requests: dict[str, tuple[str, str | None]] = {}
        self._answered: set[str] = set()
        self._asked: dict[str, tuple[str, Json]] = {}
        self._loading: set[str] = set()

    def transcript(self, session: str) -> Transcript:
        """The transcript of a session, empty if nothing is known of it."""
        return self.transcripts.setdefault(session, Transcript(session))

    def prompts_open(self, session: str) -> int:
        """Prompts of a session that have no answer yet."""
        return sum(entry == ("session/prompt", session) for entry in self._requests.values())

    def sent_request(self, ident: object, method: str, params: Json) -> None:
        """The client sent a request."""
        if method == "initialize":
            elicitation = (params.get("clientCapabilities") or {}).get("elicitation") or {}
            self.shows_forms = elicitation.get("form") is not None
        session = params.get("sessionId")
        self._requests[json.dumps(ident)] = (method, session if isinstance(session, str) else None)
        if method == "session/load" and isinstance(session, str):
            self._loading.add(session)

    def sent_answer(self, ident: object, message: Json) -> None:
        """The client answered a request of the agent."""
        _, params = self._asked.get(json.dumps(ident), ("", {}))
        result = message.get("result") or {}
        if "requestedSchema" in params:
            self._ask_ended(ident, result.get("action"))
            return
        outcome = result.get("outcome") or {}
        option = outcome.get("optionId")
        kinds = [o.get("kind") for o in params.get("options", ()) if o.get("optionId") == option]
        self._ask_ended(ident, (kinds or [outcome.get("outcome")])[0])

    def _ask_ended(self, ident: object, answer: str | None) -> None:
        asked = self._asked.pop(json.dumps(ident), None)
        if asked is not None:
            session, params = asked
            if "requestedSchema" in params:
                self.transcript(session).forms.append({"params": params, "answer": answer})
                return
            tool = (params.get("toolCall") or {}).get("toolCallId")
            self.transcript(session).asks.append({"toolCallId": tool, "answer": answer})

    def received(self, line: bytes) -> Json | None:
        """Take in one line of the agent; the message, or None if it is none."""
        if len(line) > LINE_LIMIT:
            self._breach(f"a line of {len(line)} bytes")
        try:
            message: Any = json.loads(line.decode("utf-8"), parse_constant=_no_constant)
        except ValueError:
            self._breach(f"not JSON: {line[:200]!r}")
            return None
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self._breach(f"not a JSON-RPC message: {line[:200]!r}")
            return None
        if unknown := set(message) - {"jsonrpc", "id", "method", "params", "result", "error"}:
            self._breach(f"unknown members {sorted(unknown)}")
        if "method" not in message:
            self._answer(message)
        elif "id" in message:
            self._ask(message)
        else:
            self._notification(message)
        return message

    def _answer(self, message: Json) -> None:
        if ("result" in message) == ("error" in message):
            self._breach(f"an answer needs either result or error: {sorted(message)}")
        key = json.dumps(message.get("id"))
        entry = self._requests.pop(key, None)
        if entry is None:
            if key in self._answered:
                self._breach(f"request {key} was answered twice")
            elif message.get("id") is not None:
                self._breach(f"an answer to {key}, which was never asked")
            return
        self._answered.add(key)
        method, session = entry
        if method == "session/prompt" and session is not None:
            self._prompt_ended(session, message)

    def _prompt_ended(self, session: str, message: Json) -> None:
        transcript = self.transcript(session)
        error = message.get("error")
        if error is None:
            transcript.outcomes.append(str((message.get("result") or {}).get("stopReason")))
        else:
            transcript.outcomes.append(f"error {error.get('code')}")
        if self.prompts_open(session):
            return
        for ident, tool in transcript.tools.items():
            if tool.get("status", "pending") in OPEN and not _is_ambient(tool):
                self._breach(f"tool {ident} is still {tool.get('status')} after the answer")
        for asked, _ in self._asked.values():
            if asked == session:
                self._breach("the user is still asked after the answer")

    def _ask(self, message: Json) -> None:
        params = message.get("params") or {}
        session = str(params.get("sessionId"))
        key = json.dumps(message["id"])
        if key in self._asked:
            self._breach(f"the id {key} of an open request was used again")
        if message["method"] not in ("session/request_permission", "elicitation/create"):
            self._breach(f"unknown request {message['method']}")
            return
        self._asked[key] = (session, params)
        if not self.prompts_open(session):
            self._breach("the user was asked outside of a turn")
        if message["method"] == "elicitation/create":
            if not self.shows_forms:
                self._breach("a form was sent to a client that shows none")
            return
        kinds = {option.get("kind") for option in params.get("options", ())}
        if not {"allow_once", "reject_once"} <= kinds:
            self._breach(f"permission options are only {sorted(map(str, kinds))}")

    def _notification(self, message: Json) -> None:
        method, params = message["method"], message.get("params") or {}
        if method == "$/cancel_request":
            self._ask_ended(params.get("requestId"), "withdrawn")
            return
        if method != "session/update":
            self._breach(f"unknown notification {method}")
            return
        session, update = str(params.get("sessionId")), params.get("update") or {}
        kind = str(update.get("sessionUpdate"))
        if session in self._loading and _is_replay(update):
            # What was on its way when the load was asked for belongs to the transcript before.
            self._loading.discard(session)
            self.transcript(session).forget()
        transcript = self.transcript(session)
        if kind not in AMBIENT:
            if kind not in TURN:
                self._breach(f"unknown update {kind}")
            elif not self._active(session) and not _is_ambient(update):
                self._breach(f"{kind} of {session} outside of a turn")
        if kind in TEXT_KINDS:
            self._check_text(kind, update)
        elif kind in ("tool_call", "tool_call_update"):
            self._check_tool(kind, update, transcript.tools)
        transcript.apply(update)

    def _active(self, session: str) -> bool:
        methods = ("session/prompt", "session/load")
        return any(m in methods and s == session for m, s in self._requests.values())

    def _check_text(self, kind: str, update: Json) -> None:
        if not isinstance(update.get("messageId"), str):
            self._breach(f"{kind} without a messageId")
        content = update.get("content") or {}
        if content.get("type") == "text" and not content.get("text"):
            self._breach(f"an empty {kind}")

    def _check_tool(self, kind: str, update: Json, tools: dict[str, Json]) -> None:
        ident = update.get("toolCallId")
        known = tools.get(str(ident))
        if kind == "tool_call" and known is not None:
            self._breach(f"tool {ident} was announced twice")
        if kind == "tool_call_update" and known is None:
            self._breach(f"tool {ident} was updated before it was announced")
        before, after = (known or {}).get("status"), update.get("status")
        if before in FINAL and after is not None and after != before:
            self._breach(f"tool {ident} went from {before} to {after}")

    def _breach(self, sentence: str) -> None:
        self.violations.append(sentence)


def _is_replay(update: Json) -> bool:
    told = (update.get("_meta") or {}).get("opencode-acp") or {}
    return bool(told.get("origin") == "replay")


def _is_ambient(update: Json) -> bool:
    """Whether the agent marks it as work that the client did not prompt, which has no turn."""
    meta = (update.get("_meta") or {}).get("opencode-acp") or {}
    return bool(meta.get("origin") == "ambient")


def _no_constant(name: str) -> object:
    raise ValueError(name)
