"""What became of a session's last prompt, for a client that opens the session again.

The reads start with the opening and go on beside it, so that its answer waits for none of them;
a read that fails costs the notice alone.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from adapter.core import values as v
from adapter.core.session import SessionCore
from adapter.core.standing import Standing
from adapter.engine.newest import Search
from adapter.engine.services import Services
from adapter.engine.tasks import log_fault
from adapter.upstream.errors import UpstreamError
from contract.errors import say

logger = logging.getLogger(__name__)

# Of one session: a client may open it again faster than the server answers. One more reading takes
# the place of the oldest, whose notice is not told; of the prompts the oldest goes.
READINGS: Final = 8
PROMPTS: Final = 256


@dataclass(frozen=True, slots=True)
class Found:
    """What was read; and the turns that were in flight as the reading began, by their owners.

    The client of one of those is told its end by its answer, which may be there by now.
    """

    standing: Standing
    in_flight: frozenset[tuple[int, str]]


Reading = asyncio.Task[Found | None]


class Past:
    """One session's. `notify` sends a notice to the attachment that it names."""

    def __init__(
        self, services: Services, core: SessionCore, notify: Callable[[v.Notice], None]
    ) -> None:
        self._services = services
        self._core = core
        self._notify = notify
        # In the order in which they began.
        self._readings: dict[Reading, None] = {}
        # Prompts of this adapter since a reading began that is not over: they are no past.
        self._later: OrderedDict[str, None] = OrderedDict()

    @property
    def tasks(self) -> frozenset[Reading]:
        return frozenset(self._readings)

    def read(self) -> Reading:
        """Start to read; the task belongs to the session and never fails."""
        going_on = [one for one in self._readings if not one.cancelling()]
        if len(going_on) >= READINGS:
            going_on[0].cancel()
        task = asyncio.create_task(
            self._read(self._in_flight()), name=f"past of {self._core.session_id}"
        )
        self._readings[task] = None
        task.add_done_callback(self._ended)
        task.add_done_callback(log_fault)
        return task

    def prompted(self, turn_id: str) -> None:
        """A prompt is about to be sent; a reading that has begun does not speak of it."""
        if self._readings:
            self._later[turn_id] = None
            if len(self._later) > PROMPTS:
                self._later.popitem(last=False)

    def tell(self, owner: int, reading: Reading, *, seen: bool = False) -> None:
        """Tell an attachment once the reading is done: nothing of a prompt that is its own.

        Nor of one that is finished, to a client that has `seen` its answer.
        """
        reading.add_done_callback(lambda done: self._told(owner, done, seen=seen))

    def _ended(self, reading: Reading) -> None:
        self._readings.pop(reading, None)
        if not self._readings:
            self._later.clear()

    def _told(self, owner: int, reading: Reading, *, seen: bool) -> None:
        read = None if reading.cancelled() else reading.result()
        if read is None:
            return
        found = read.standing
        if (owner, found.turn_id) in read.in_flight | self._in_flight():
            return
        if seen and found.state == "finished":
            return
        data: dict[str, object] = {"messageId": found.message_id, "state": found.state}
        if found.stop is not None:
            data["stopReason"] = found.stop.value
        self._notify(v.Notice(owner, "resumed", say(found.sentence), data))

    def _in_flight(self) -> frozenset[tuple[int, str]]:
        turns = map(self._core.turn, self._core.turn_ids)
        return frozenset((turn.owner, turn.submitted) for turn in turns if turn is not None)

    async def _read(self, in_flight: frozenset[tuple[int, str]]) -> Found | None:
        """Lifecycle rule 19: what no row proves is read a second time."""
        try:
            found = await self._read_once()
            if found is not None and not found.final:
                await self._services.sleep(self._services.settings.waits.lost_first)
                found = await self._read_once()
        except UpstreamError as error:
            logger.info("the past of %s cannot be told: %s", self._core.session_id, error)
            return None
        return None if found is None else Found(found, in_flight)

    async def _read_once(self) -> Standing | None:
        return await Search(self._services.server, self._core.session_id, self._later.keys()).look()
