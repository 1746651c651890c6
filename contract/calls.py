"""How the item that a slash command makes is known again.

The server takes no id for a command and tells none (OpenCode 2.0.15 as measured). What comes back
unchanged in the item, in its row and, for a command that a sub-agent carries out, in the first
item of that child is the list of agents that the text mentions; a mention of no length changes
nothing for the model. So each command carries one mention whose text names its turn.
Workaround "a command is known by a mention".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from contract.semantics import OWN_MESSAGE_PREFIX
from contract.shapes import JsonObject, Shape

TOKEN_PREFIX: Final = "opencode-acp:"
# The server does not look the name up when the mention has no length.
MENTIONED: Final = "build"


class Span(Shape):
    """The place of a mention in the text, and what stands there."""

    text: str = ""


class AgentMention(Shape):
    """An agent that a prompt mentions."""

    name: str = ""
    mention: Span | None = None


class CallMarks(Shape):
    """What an inbox item holds, as far as it says whose it is."""

    agents: tuple[AgentMention, ...] = ()
    metadata: JsonObject | None = None

    @property
    def call(self) -> str | None:
        """The turn whose command made this item, or the child whose end it tells."""
        return call_of(self.agents) or child_of(self.metadata)


def mention(turn_id: str) -> JsonObject:
    """The mention that marks the command of a turn, for the body of its request."""
    place = {"start": 0, "end": 0, "text": f"{TOKEN_PREFIX}{turn_id}"}
    return {"name": MENTIONED, "mention": place}


def is_ours(agent: AgentMention) -> bool:
    """Whether it is a mark of ours, which no user has written."""
    return agent.mention is not None and agent.mention.text.startswith(TOKEN_PREFIX)


def call_of(agents: Iterable[AgentMention]) -> str | None:
    """The turn that the mentions name; None without a mark of ours."""
    for agent in agents:
        if is_ours(agent) and agent.mention is not None:
            return agent.mention.text.removeprefix(TOKEN_PREFIX)
    return None


def prompt_of(message_id: str, agents: Iterable[AgentMention]) -> str | None:
    """The id under which a client of this adapter knows a prompt; None for another front end's."""
    return message_id if message_id.startswith(OWN_MESSAGE_PREFIX) else call_of(agents)


def child_of(metadata: JsonObject | None) -> str | None:
    """The child session whose end a synthetic item tells its parent."""
    told = metadata or {}
    child = told.get("childID")
    return child if told.get("source") == "subagent" and isinstance(child, str) else None
