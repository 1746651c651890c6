"""A feed event to its update at the client: how long one takes, and how many go in a second.

The stub server and the client share this process and its clock; the adapter runs in its own. The
time is taken when the event is queued for the server's socket, and when the client has read and
parsed the line: both ends of the measurement are part of the number.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from typing import Any, Final
from uuid import uuid4

from stubs.client import AcpClient
from stubs.server import Settings, StubServer
from tests.bench.report import COMMAND, report

BOUND_MS: Final = 1.0
EVENTS: Final = 300
GAP_SECONDS: Final = 0.01
FLOOD: Final = 20_000
ROUNDS: Final = 3
DELTA: Final = b'"session.text.delta"'


class Turn:
    """A turn that has begun to answer; deltas are added to its text by hand."""

    def __init__(self, stub: StubServer, client: AcpClient, session: str) -> None:
        self.stub = stub
        self.client = client
        self.session = session
        self._template: dict[str, Any] = {}

    async def begin(self, seconds: int = 60) -> asyncio.Task[Any]:
        """Prompt, and wait for the first text; its event is the pattern of all that follow.

        The turn ends by a cancel, or after `seconds`.
        """
        listener = self.stub.feed.subscribe()
        script = f"@@text 1 && wait {seconds * 1000}@@"
        prompt = self.client.prompt(self.session, script, 2.0 * seconds)
        task = asyncio.create_task(prompt)
        await self.client.wait_for(lambda: bool(self.client.transcript(self.session).text()))
        self.stub.feed.leave(listener)
        own = self.session.encode()
        lines = listener.take().split(b"\n")
        events = (line for line in lines if DELTA in line and own in line)
        self._template = json.loads(next(events).removeprefix(b"data: "))
        return task

    def send(self, text: str) -> float:
        """One delta now; the time by the clock that the client notes its lines with."""
        data = {**self._template["data"], "delta": text}
        event = {**self._template, "id": f"evt_{uuid4().hex}", "data": data}
        at = time.monotonic()
        self.stub.feed.publish(event)
        return at

    def arrivals(self) -> dict[str, float]:
        """When each text came, by its text."""
        return {
            line.message["params"]["update"]["content"]["text"]: line.at
            for line in self.client.updates
            if line.message.get("method") == "session/update"
            and line.message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
        }


async def one_by_one(turn: Turn) -> list[float]:
    """Milliseconds of single events with a pause between two."""
    sent = {}
    for number in range(EVENTS):
        text = f"one{number} "
        sent[text] = turn.send(text)
        await asyncio.sleep(GAP_SECONDS)
    await turn.client.wait_for(lambda: f"one{EVENTS - 1} " in turn.arrivals())
    arrived = turn.arrivals()
    return [(arrived[text] - at) * 1000 for text, at in sent.items()]


async def flood(turn: Turn) -> float:
    """Updates per second of FLOOD events sent at once; all must come, in order."""
    ends = [""]
    turn.client.updates.clear()
    turn.client.on_message = lambda message: ends.__setitem__(0, str(message))
    start = time.monotonic()
    for number in range(FLOOD):
        turn.send(f"{number} ")
    await turn.client.wait_for(lambda: f"'{FLOOD - 1} '" in ends[0])
    taken = time.monotonic() - start
    turn.client.on_message = None
    texts = list(turn.arrivals())
    assert texts == [f"{number} " for number in range(FLOOD)]
    return FLOOD / taken


async def measure() -> bool:
    """Whether the median keeps within the bound."""
    with tempfile.TemporaryDirectory() as project:
        settings = Settings(project=project, feed_bound=2 * FLOOD)
        async with (
            StubServer(settings) as stub,
            AcpClient.spawn([str(COMMAND), "--server", stub.url]) as client,
        ):
            await client.initialize()
            turn = Turn(stub, client, await client.new_session(project))
            task = await turn.begin()
            latencies = await one_by_one(turn)
            rates = [await flood(turn) for _ in range(ROUNDS)]
            await client.cancel(turn.session)
            assert (await task)["stopReason"] == "cancelled"
    kept = report("feed event to update at the client", latencies, "ms", BOUND_MS)
    report("updates per second", rates, "/s")
    return kept


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(measure()) else 1)
