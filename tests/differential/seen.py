"""What a play looks like from outside, without ids, times and what is chance."""

from __future__ import annotations

from typing import Any, Final

from tests.unit.stubs.server_client import Json, owner

TELLING: Final = (
    "finish", "rawFinish", "reason", "delivery", "reply", "attempt", "ordinal", "name",
)  # fmt: skip
DELTA: Final = ".delta"
ENDED: Final = ".ended"
CHANCE: Final = frozenset(
    {
        # How often a tool says that it goes on, and a model what it has used, is a matter of pace.
        "session.tool.progress",
        "session.usage.updated",
        # Told when somebody looks.
        "session.viewed",
    }
)


def events_of(events: list[Json], session: str) -> list[str]:
    """Each event in a word. Where pieces of a text stand is a matter of pace: see `torn`."""
    told: list[str] = []
    for event in events:
        kind = str(event["type"])
        if owner(event) != session or kind in CHANCE or kind.endswith(DELTA):
            continue
        data = event["data"]
        marks = [f"{key}={data[key]}" for key in TELLING if key in data]
        error: Any = data.get("error") or {}
        told.append(" ".join([kind, ",".join(sorted(data)), *marks, str(error.get("type", ""))]))
    return told


def torn(events: list[Json], session: str) -> list[str]:
    """Texts whose pieces, in the order of the feed, are not the beginning of the whole."""
    pieces: dict[tuple[str, ...], str] = {}
    wrong: list[str] = []
    for event in events:
        kind, data = str(event["type"]), event["data"]
        if owner(event) != session or not kind.endswith((DELTA, ENDED)):
            continue
        stem = kind.removesuffix(DELTA).removesuffix(ENDED)
        place = (
            stem,
            str(data.get("assistantMessageID")),
            str(data.get("ordinal", data.get("id"))),
        )
        if kind.endswith(DELTA):
            pieces[place] = pieces.get(place, "") + data["delta"]
        elif "text" in data and not data["text"].startswith(pieces.get(place, "")):
            wrong.append(f"{place}: {pieces[place]!r} of {data['text']!r}")
    return wrong


def rows_of(rows: list[Json]) -> list[str]:
    """Each row in a word. How far an answer came that was stopped is a matter of pace."""
    return [_row(row) for row in rows]


def _row(row: Json) -> str:
    error: Any = row.get("error") or {}
    stopped = error.get("type") == "aborted"
    content = [_part(part, whole=not stopped) for part in row.get("content", ())]
    marks = [str(row.get(key, "")) for key in ("text", "finish", "outcome")]
    return " | ".join([row["type"], *marks, str(error.get("type", "")), *content])


def _part(part: Json, *, whole: bool) -> str:
    state: Any = part.get("state") or {}
    text = part.get("text") if whole else None
    told = (part.get("type"), part.get("name"), state.get("status"), text)
    return " ".join(str(one) for one in told if one is not None)
