"""What beside text and tools a client is told: within its limits, in what it advertised."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from adapter.acp.capabilities import Capabilities
from adapter.core import values as v
from adapter.engine.telling import Tellable, updates_of
from adapter.limits import DEFAULTS
from tests.unit.engine.front import ASK, SHELL, stage
from tests.unit.engine.test_hub import Listener, enter

LONG = "more than twelve characters"


@pytest.mark.parametrize(
    "output",
    [
        v.Progress(1, "msg_a", "call_a", (v.Line("shell", None, {"command": LONG}),)),
        v.Prompted(1, "msg_a", LONG, v.OfRun("item")),
        v.Compaction(1, "msg_a", "failed", error=LONG),
        v.Notice(1, "resumed", LONG, {}),
    ],
    ids=lambda one: type(one).__name__,
)
@pytest.mark.parametrize("advertised", [True, False])
def test_it_keeps_to_the_limits_of_its_client(output: Tellable, advertised: bool) -> None:
    client = Listener()
    client.can = Capabilities(notices=advertised, compaction=advertised)
    (whole,) = updates_of(output, client)
    assert LONG in json.dumps(whole)
    client.limits = replace(DEFAULTS, line_chars=12, text_chunk_chars=12)
    shown = list(updates_of(output, client))
    assert shown
    assert not any(LONG in json.dumps(one) for one in shown)


def test_it_is_told_in_what_the_client_advertised() -> None:
    client = Listener()
    kinds = []
    for advertised in (True, False):
        client.can = Capabilities(notices=advertised, compaction=advertised)
        for output in (v.Notice(1, "resumed", LONG, {}), v.Compaction(1, "msg_a", "completed")):
            kinds += [one["sessionUpdate"] for one in updates_of(output, client)]
    assert kinds == ["notice", "compaction_update", *["session_info_update"] * 2]


async def test_what_a_client_is_shown_keeps_to_the_limits_of_its_connection(tmp_path: Path) -> None:
    async with stage(tmp_path, ASK) as scene:
        room = await enter(scene)
        narrow, wide = room.listener, Listener()
        narrow.limits = replace(DEFAULTS, line_chars=4)
        other = room.join(wide)
        for listener, owner in ((narrow, room.owner), (wide, other)):
            await room.outcome(room.prompt(f"@@{SHELL} || text 1@@", owner))
            room.hub.notify(v.Notice(owner, "resumed", "more than that", {}))
            titled = [one for one in listener.updates if "title" in one]
            kinds = {one["sessionUpdate"] for one in titled}
            assert kinds >= {"notice", "session_info_update", "tool_call"}
            titled.extend(asked["toolCall"] for asked in listener.asked)
            assert {"line_chars" in json.dumps(one) for one in titled} == {listener is narrow}
