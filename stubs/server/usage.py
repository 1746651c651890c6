"""What a scripted response is said to have used, and what that costs."""

from __future__ import annotations

from typing import Final

from stubs.server.project import Project
from stubs.server.store import Session
from stubs.server.wire import Json

CACHED: Final = 200
TOKENS: Final[Json] = {
    "input": 800,
    "output": 43,
    "reasoning": 7,
    "cache": {"read": CACHED, "write": 0},
}


def tokens(request: int | None = None) -> Json:
    """The usage of one response; `request` are the tokens of its request, if a script says so."""
    used = {**TOKENS, "cache": dict(TOKENS["cache"])}
    return used if request is None else {**used, "input": request - CACHED}


def reference(session: Session) -> Json:
    """The model of a session's next step."""
    if session.model is not None:
        return session.model
    model = Project(session.directory).default_model
    return {"id": model["id"], "providerID": model["providerID"]}


def price(session: Session) -> float:
    """What a response costs on it."""
    model = Project(session.directory).model(reference(session))
    tiers = model["cost"] if model is not None else []
    if not tiers:
        return 0
    return float(round((800 * tiers[0]["input"] + 50 * tiers[0]["output"]) / 1e6, 10))
