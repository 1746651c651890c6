"""What comes from the agent, as lines for a person: nothing is passed over."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime

from contract.initialize import META
from stubs.client.transcript import Json

CHUNKS = {
    "agent_message_chunk": "text",
    "agent_thought_chunk": "thought",
    "user_message_chunk": "user",
}
# Characters of an update that is shown as it is.
SHOWN = 300


class Printer:
    """Shows the messages as they come; text flows, everything else is a line of its own.

    `raw`: each message as it came instead, and no more of it in words. `write` takes text as
    `print` does without an end.
    """

    def __init__(self, write: Callable[[str], None], *, raw: bool = False) -> None:
        self._write = write
        self._raw = raw
        # The head of the text that flows, and the titles of tools by their ids.
        self._flows = ""
        self._tools: dict[str, str] = {}

    def show(self, message: Json) -> None:
        """Show one message of the agent."""
        if self._raw:
            self.line(json.dumps(message, ensure_ascii=False))
            return
        params = message.get("params") or {}
        match message.get("method"):
            case "session/update":
                self._update(params.get("update") or {})
            case "session/request_permission":
                title = (params.get("toolCall") or {}).get("title")
                self.line(f"[permission{_whose(params)}] {title}")
            case "elicitation/create":
                self.line(f"[form{_whose(params)}] {params.get('message')}")
            case str() as method:
                self.line(f"[{method}] {_brief(params)}")

    def line(self, text: str) -> None:
        """A line of its own."""
        self._write(("\n" if self._flows else "") + text + "\n")
        self._flows = ""

    def session(self, ident: str) -> None:
        """The session that is open now."""
        if not self._raw:
            self.line(f"[session] {ident}")

    def result(self, result: Json) -> None:
        """The answer of a prompt: its end, and what the agent says about it in `_meta`."""
        if not self._raw:
            self.line(f"[done] {result.get('stopReason')}{_details(_ours(result))}")

    def error(self, message: str, data: object) -> None:
        """The error of a request."""
        self.line(f"[error] {message}{f' {_brief(data)}' if data else ''}")

    def _update(self, update: Json) -> None:
        kind = str(update.get("sessionUpdate"))
        if kind in CHUNKS:
            self._chunk(f"[{CHUNKS[kind]}{_whose(update)}]", update.get("content") or {})
        elif kind in ("tool_call", "tool_call_update"):
            self._tool(update)
        elif kind == "notice":
            self._notice(_ours(update), update.get("title"))
        elif kind == "session_info_update":
            self._info(update)
        elif kind == "compaction_update":
            told = {"id": update.get("compactionId"), **update, **_ours(update)}
            self._compaction(told)
        else:
            told = {key: value for key, value in update.items() if key != "sessionUpdate"}
            self.line(f"[{kind}] {_brief(told)}")

    def _chunk(self, head: str, content: Json) -> None:
        if head != self._flows:
            self.line(head)
            self._flows = head
        self._write(content.get("text") or _brief(content))

    def _tool(self, update: Json) -> None:
        ident = str(update.get("toolCallId"))
        title = str(update.get("title") or self._tools.get(ident, ident))
        self._tools[ident] = title
        state = update.get("status") or "more of it"
        self.line(f"[tool{_whose(update)}] {title}: {state}{_details(_ours(update))}")

    def _info(self, update: Json) -> None:
        mine = _ours(update)
        if "title" in update:
            self.line(f"[title] {update['title']}")
        if "notice" in mine:
            self._notice(mine, mine.get("text"))
        elif "compaction" in mine:
            self._compaction(mine["compaction"])
        elif mine or "title" not in update:
            self.line(f"[session_info_update] {_brief(update)}")

    def _notice(self, mine: Json, text: object) -> None:
        details = {key: mine[key] for key in mine if key not in ("notice", "text")}
        if mine.get("notice") == "retry" and isinstance(mine.get("at"), int | float):
            details["at"] = _clock(mine["at"])
        self.line(f"[notice] {mine.get('notice')}: {text}{_details(details)}")

    def _compaction(self, told: Json) -> None:
        details = {key: told[key] for key in ("id", "reason", "error") if told.get(key)}
        self.line(f"[compaction] {told.get('status')}{_details(details)}")


def _ours(holder: Json) -> Json:
    mine = (holder.get("_meta") or {}).get(META)
    return mine if isinstance(mine, dict) else {}


def _whose(holder: Json) -> str:
    """The session of a sub-agent, or that nobody here prompted it."""
    mine = _ours(holder)
    if "child" in mine:
        return f" of {mine['child'].get('sessionId')}"
    origin = mine.get("origin")
    return f", {origin}" if origin else ""


def _clock(milliseconds: float) -> str:
    """The time of day here, of milliseconds since 1970; of what is no time, the number."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000).strftime("%H:%M:%S")
    except (OverflowError, ValueError, OSError):
        return str(milliseconds)


def _details(told: Json) -> str:
    """` (key value, …)` of everything but whose it is."""
    said = [
        f"{key} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
        for key, value in told.items()
        if key not in ("child", "origin", "run")
    ]
    return f" ({', '.join(said)})" if said else ""


def _brief(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
