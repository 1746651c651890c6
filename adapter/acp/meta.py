"""The one key of `_meta` under which everything of ours stands (ACP: no own fields at the root)."""

from __future__ import annotations

from collections.abc import Mapping

from contract.initialize import META

Json = dict[str, object]

__all__ = ["META", "ours"]


def path(key: str) -> str:
    """Where a client finds a key of ours, for a sentence on what it said there."""
    return f'_meta["{META}"].{key}'


def ours(params: Mapping[str, object]) -> Json:
    """What a client says to us in `_meta`; empty for nothing, and for what is no object."""
    meta = params.get("_meta")
    told = meta.get(META) if isinstance(meta, dict) else None
    return told if isinstance(told, dict) else {}
