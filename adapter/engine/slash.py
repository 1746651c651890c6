"""What a client can call by `/name`: commands and skills of the directory, and `/compact`. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from adapter.acp.bounded import cut
from adapter.acp.prompts import PromptContent
from adapter.upstream.catalogue import Catalogue

Json = dict[str, object]

COMPACT: Final = "compact"
COMPACT_TEXT: Final = "Replace the conversation so far by a summary"
# Of one catalogue; further ones are not announced.
COMMANDS: Final = 256
NAME_CHARS: Final = 128
DESCRIPTION_CHARS: Final = 1024


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command of the server, with its argument text and the files of the prompt."""

    name: str
    text: str
    files: tuple[dict[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Compact:
    """`/compact`; it takes nothing."""


Work = PromptContent | CommandCall | Compact


def called(content: PromptContent, catalogue: Catalogue) -> Work | None:
    """What the prompt calls; None if its `/name` is nothing in this catalogue."""
    slash = content.slash
    if slash is None:
        return content
    if slash.name == COMPACT:
        return Compact()
    if any(command.name == slash.name for command in catalogue.commands):
        return CommandCall(slash.name, slash.text, content.files)
    if any(skill.id == slash.name for skill in catalogue.skills):
        return replace(content, text=slash.text, skills=(slash.name,), slash=None)
    return None


def available(catalogue: Catalogue) -> list[Json]:
    """`availableCommands`: the first of a name counts, commands before skills."""
    found = {COMPACT: _command(COMPACT, COMPACT_TEXT, takes_input=False)}
    for command in catalogue.commands:
        found.setdefault(command.name, _command(command.name, command.description))
    for skill in catalogue.skills:
        found.setdefault(skill.id, _command(skill.id, skill.description))
    fitting = [command for name, command in found.items() if _callable(name)]
    return fitting[:COMMANDS]


def _callable(name: str) -> bool:
    """Whether a client can write it behind a slash: one word."""
    return 0 < len(name) <= NAME_CHARS and not any(sign.isspace() for sign in name)


def _command(name: str, description: str | None, *, takes_input: bool = True) -> Json:
    command: Json = {"name": name, "description": cut(description or name, DESCRIPTION_CHARS)}
    if takes_input:
        command["input"] = {"hint": "arguments"}
    return command
