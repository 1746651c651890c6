"""What `_meta` says of whose an update or a request is, if it is not the turn's own. Pure."""

from __future__ import annotations

from typing import Final

from adapter.acp.meta import META
from adapter.acp.toolcalls import call_id
from adapter.core.values import OfChild, OfRun, Origin

AMBIENT: Final = "ambient"

Json = dict[str, object]


def told_of(origin: Origin | None) -> Json:
    """`child` of a descendant, `origin` and `run` of what nobody here prompted; else nothing."""
    match origin:
        case OfChild(session_id, parent_id, message_id, call):
            child = {"sessionId": session_id, "parentSessionId": parent_id}
            if message_id is not None and call is not None:
                child["toolCallId"] = call_id(message_id, call)
            return {"child": child}
        case OfRun(run_id):
            return {"origin": AMBIENT, "run": run_id}
        case None:
            return {}


def meta_of(origin: Origin | None) -> Json:
    """The member `_meta` of a request that a descendant makes; none for the turn's own."""
    told = told_of(origin)
    return {"_meta": {META: told}} if told else {}
