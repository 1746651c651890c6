"""What a client can take, as its `initialize` said. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapter.acp.meta import ours

Json = dict[str, object]

NAME_CHARS: Final = 64


@dataclass(frozen=True, slots=True)
class Capabilities:
    """ACP: `{}` advertises, null or absence does not. The last one is an extension of ours."""

    notices: bool = False
    """`session.notices`: takes `notice` updates."""
    compaction: bool = False
    """`session.compaction`: takes `compaction_update`."""
    forms: bool = False
    """`elicitation.form`: can show a form."""
    child_updates: bool = False
    """`_meta["opencode-acp"].childUpdates`: wants the updates of sub-agents themselves."""


def capabilities(params: Json) -> Capabilities:
    """Of the `params` of `initialize`; what has another shape advertises nothing."""
    given = _object(params.get("clientCapabilities"))
    session = _object(given.get("session"))
    return Capabilities(
        notices=isinstance(session.get("notices"), dict),
        compaction=isinstance(session.get("compaction"), dict),
        forms=isinstance(_object(given.get("elicitation")).get("form"), dict),
        child_updates=ours(given).get("childUpdates") is True,
    )


def client_name(params: Json) -> str:
    """Name and version in the `clientInfo` of `initialize`, as one short printable text."""
    info = _object(params.get("clientInfo"))
    said = (one for key in ("name", "version") if isinstance(one := info.get(key), str))
    text = " ".join(one[:NAME_CHARS] for one in said)
    return "".join(char if char.isprintable() else " " for char in text).strip()


def _object(value: object) -> Json:
    return value if isinstance(value, dict) else {}
