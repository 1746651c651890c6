"""Recordings of a real server: every event is one that the contract knows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from contract.events import (
    IGNORED_TYPES,
    SESSIONLESS_TYPES,
    FormCreated,
    Unused,
    parse,
)
from contract.reads import Model, parse_row
from contract.shapes import PermissionAsk

CAPTURES = Path(__file__).parents[2] / "data" / "captures"
FEEDS = sorted(CAPTURES.glob("*.sse"))


def events(file: Path) -> Iterator[dict[str, Any]]:
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


def loaded(name: str) -> Any:
    return json.loads((CAPTURES / name).read_text("utf-8"))


def test_there_are_recordings() -> None:
    assert len(FEEDS) >= 10


@pytest.mark.parametrize("file", FEEDS, ids=lambda file: file.stem)
def test_every_event_is_known(file: Path) -> None:
    unknown = [
        (event.type, event.why)
        for event in map(parse, events(file))
        if isinstance(event, Unused)
        and (event.why == "shape" or event.type not in IGNORED_TYPES | SESSIONLESS_TYPES)
    ]
    assert unknown == []


def test_a_form_is_found_inside_its_event() -> None:
    event = parse(loaded("q6_form_created.json"))
    assert isinstance(event, FormCreated)
    assert event.session_id == event.form.session_id
    assert [field["key"] for field in event.form.fields] == ["q0", "q1"]


def test_models_are_read_without_their_settings() -> None:
    models = [Model.model_validate(raw) for raw in loaded("q9_model.json")["data"]]
    assert "fake/fake-1" in [model.key for model in models]
    assert "apiKey" not in "".join(model.model_dump_json() for model in models)
    assert Model.model_validate(loaded("q9_model_default.json")["data"]).key == "fake/fake-1"


def test_a_pending_permission_is_read() -> None:
    (raw,) = loaded("q9_permission_request.json")["data"]
    ask = PermissionAsk.model_validate(raw)
    assert (ask.action, ask.resources) == ("edit", ("w.txt",))
    assert ask.source is not None
    assert ask.source.message_id is not None


def test_messages_are_read() -> None:
    rows = [parse_row(raw) for raw in loaded("q7_messages.json")["data"]]
    assert {row.type for row in rows} >= {"user", "assistant", "idle"}
