"""What a client ends up with for one session: texts, tools, asks, outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

TEXT_KINDS = ("agent_message_chunk", "agent_thought_chunk", "user_message_chunk")


@dataclass
class Transcript:
    """The sum of all updates of a session; two runs are the same if `comparable()` is."""

    session: str
    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    """Text by (messageId, kind of the update), in order of first appearance."""
    tools: dict[str, Json] = field(default_factory=dict)
    """Last state of each tool call by toolCallId: later fields replace earlier ones."""
    asks: list[Json] = field(default_factory=list)
    """`{"toolCallId", "answer"}`; the answer is an option's kind, `cancelled` or `withdrawn`."""
    forms: list[Json] = field(default_factory=list)
    """`{"params", "answer"}`; the answer is `accept`, `decline`, `cancel` or `withdrawn`."""
    outcomes: list[str] = field(default_factory=list)
    """The stop reason, or `error CODE`, of each prompt in the order of the answers."""
    notices: list[Json] = field(default_factory=list)
    """`notice` updates, and `session_info_update` ones that carry `_meta`."""
    latest: dict[str, Json] = field(default_factory=dict)
    """The last update of every other kind."""

    def forget(self) -> None:
        """The session is loaded anew: texts and tools come again."""
        self.texts.clear()
        self.tools.clear()

    def text(self, kind: str = "agent_message_chunk") -> str:
        """All text of one kind, in order."""
        return "".join(text for (_, of), text in self.texts.items() if of == kind)

    def apply(self, update: Json) -> None:
        """Take in one `update` of session/update, whatever its faults."""
        kind = str(update.get("sessionUpdate"))
        if kind in TEXT_KINDS:
            key = (str(update.get("messageId")), kind)
            content = update.get("content")
            text = content.get("text") if isinstance(content, dict) else None
            self.texts[key] = self.texts.get(key, "") + (text if isinstance(text, str) else "")
        elif kind in ("tool_call", "tool_call_update"):
            tool = self.tools.setdefault(str(update.get("toolCallId")), {})
            tool.update({k: v for k, v in update.items() if k != "sessionUpdate"})
        elif kind == "notice" or (kind == "session_info_update" and "_meta" in update):
            self.notices.append(update)
        else:
            self.latest[kind] = update

    def comparable(self) -> Json:
        """Texts, tools, asks and outcomes, with ids replaced by the order of their appearance."""
        names = {self.session: "session"}
        messages = dict.fromkeys(message for message, _ in self.texts)
        names |= {ident: f"message-{order}" for order, ident in enumerate(messages, 1)}
        names |= {ident: f"tool-{order}" for order, ident in enumerate(self.tools, 1)}
        content: Json = {
            "texts": [[message, kind, text] for (message, kind), text in self.texts.items()],
            "tools": list(self.tools.values()),
            "asks": self.asks,
        }
        renamed: Json = {key: _rename(value, names) for key, value in content.items()}
        return {**renamed, "outcomes": list(self.outcomes)}


def _rename(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, list):
        return [_rename(item, names) for item in value]
    if isinstance(value, dict):
        return {key: _rename(item, names) for key, item in value.items()}
    return value
