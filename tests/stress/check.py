"""What a turn's client saw, against what the schedule and the server's rows allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.stress.plan import Plan, Prompt


@dataclass(slots=True)
class Seen:
    """One turn as its client saw it: texts by message in order of arrival, and its end."""

    client: int
    prompt: Prompt
    texts: dict[str, str]
    thoughts: dict[str, str]
    stop: str | None
    code: int | None
    message: str
    audit: Mapping[str, Any]
    cancelled: bool


def faults(plan: Plan, turns: Sequence[Seen], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """One sentence for each thing that is wrong; `rows` ascend."""
    known = {step for client in plan.prompts for _, p in client for step in p.steps}
    known |= {step for act in plan.acts if act.prompt is not None for step in act.prompt.steps}
    others_cancel = [turn.client for turn in turns if turn.cancelled]
    found: list[str] = []
    for turn in turns:
        found += [f"{turn.prompt.tag}: {text}" for text in _texts(turn, known)]
        found += [f"{turn.prompt.tag}: {text}" for text in _outcome(plan, turn, others_cancel)]
        if turn.audit.get("admitted") is False and _row(rows, turn) is not None:
            found.append(f"{turn.prompt.tag}: said to be not admitted, and it ran")
        if turn.stop == "end_turn" and not _answered(rows, turn):
            found.append(f"{turn.prompt.tag}: end_turn, but no row answers it")
    return found


def _texts(turn: Seen, known: set[str]) -> list[str]:
    shared = bool(turn.audit.get("shared"))
    found: list[str] = []
    given = [text for text in turn.texts.values() if text]
    if len(set(given)) != len(given):
        found.append(f"text repeated: {given}")
    whole = turn.stop in ("end_turn", "max_tokens") and not turn.cancelled
    own = list(turn.prompt.steps)
    for text in given:
        allowed = known if shared else set(own)
        if whole and text not in allowed and text != "done ":
            found.append(f"text is not as the model gave it: {text!r}")
        elif not whole and not any(step.startswith(text) for step in [*allowed, "done "]):
            found.append(f"text is no prefix of what the model gave: {text!r}")
    if whole and not shared:
        if not turn.audit.get("rejected") and given != own[: len(given)]:
            found.append("texts out of order")
        if len(given) < len(own):
            found.append(f"text lost: {len(given)} of {len(own)} steps")
        thoughts = [text for text in turn.thoughts.values() if text]
        if thoughts != list(turn.prompt.thoughts):
            found.append(f"thoughts differ: {thoughts} for {list(turn.prompt.thoughts)}")
    return found


def _outcome(plan: Plan, turn: Seen, cancels: Sequence[int]) -> list[str]:
    if turn.stop == "cancelled" and not turn.cancelled:
        return ["cancelled, and nobody cancelled it"]
    if turn.stop is not None:
        return []
    if turn.code == -32050 and plan.has("restart"):
        return []
    # A server that is told to end may still say that it interrupted the turn.
    stopped = plan.has("interrupt") or any(a.kind == "restart" and a.clean for a in plan.acts)
    if turn.code == -32055 and (stopped or cancels):
        return []
    if turn.audit.get("code") == "not_admitted":
        # A schedule may refuse connections, also to its neighbours.
        return []
    return [f"error {turn.code} without a cause in the schedule: {turn.message}"]


def _row(rows: Sequence[Mapping[str, Any]], turn: Seen) -> int | None:
    key = turn.audit.get("messageId")
    return next((i for i, row in enumerate(rows) if row["id"] == key), None)


def _answered(rows: Sequence[Mapping[str, Any]], turn: Seen) -> bool:
    start = _row(rows, turn)
    if start is None:
        return False
    return any(
        row["type"] == "assistant" and row.get("finish") in ("stop", "length")
        for row in rows[start + 1 :]
    )
