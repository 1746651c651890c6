"""A door: its socket stays where clients look for it, and it is shut once and for all."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from adapter.daemon.door import Door
from adapter.daemon.listening import listen
from stubs.waiting import until


class Place:
    """A door and those who came through it; `looks` counts its looks."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.came: list[socket.socket] = []
        self.looks = 0
        self.door = Door(listen(str(path)), self.came.append, b"short\n", self.pause)

    async def pause(self, _: float) -> None:
        self.looks += 1
        await asyncio.sleep(0.001)

    async def look_again(self) -> None:
        """Wait until a look that begins from now on is over."""
        before = self.looks

        async def looked() -> bool:
            return self.looks >= before + 2

        await until("the door was looked at", looked)

    async def visit(self) -> None:
        number = len(self.came)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
            visitor.connect(str(self.path))

            async def entered() -> bool:
                return len(self.came) > number

            await until("somebody came", entered)


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    place = Place(tmp_path / "a.sock")
    place.door.open()
    yield place
    await place.door.aclose()
    for sock in place.came:
        sock.close()


async def test_it_is_opened_again_in_its_place(place: Place) -> None:
    await place.visit()
    place.path.unlink()
    await place.look_again()
    await place.visit()


async def test_a_place_that_is_taken_is_told_of_once_and_used_again(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.path.unlink()
    place.path.write_text("in the way", encoding="utf-8")
    for _ in range(3):
        await place.look_again()
    told = [one for one in caplog.messages if "cannot be made again" in one]
    assert len(told) == 1
    place.path.unlink()
    await place.look_again()
    await place.visit()


async def test_a_door_that_was_shut_is_not_looked_after_any_more(place: Place) -> None:
    place.door.shut()
    place.door.shut()
    assert not place.path.exists()
    await place.door.aclose()
    assert not place.path.exists()
    with pytest.raises(FileNotFoundError):
        await place.visit()
