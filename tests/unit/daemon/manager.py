"""A service manager that hears what its daemon tells it."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from stubs.waiting import until

T = TypeVar("T")


class Hearing:
    """Its socket. `address` is what stands in NOTIFY_SOCKET."""

    def __init__(self, sock: socket.socket, address: str) -> None:
        self.address = address
        self.datagrams: list[str] = []
        self._socket = sock

    def heard(self) -> list[str]:
        """Every assignment so far, in their order."""
        while True:
            try:
                self.datagrams.append(self._socket.recv(4096).decode())
            except BlockingIOError:
                return [line for one in self.datagrams for line in one.split("\n")]

    async def until(self, said: str, number: int = 1) -> None:
        """This assignment has come so many times."""

        async def probe() -> bool:
            return self.heard().count(said) >= number

        await self._wait(said, probe)

    async def until_status(self, *parts: str) -> str:
        """The first status that is the newest and holds all of these."""

        async def probe() -> str | None:
            stati = [line for line in self.heard() if line.startswith("STATUS=")]
            return stati[-1] if stati and all(part in stati[-1] for part in parts) else None

        return await self._wait(f"a status with {parts}", probe)

    async def _wait(self, what: str, probe: Callable[[], Awaitable[T | None]]) -> T:
        try:
            return await until(what, probe)
        except TimeoutError as error:
            raise AssertionError(f"{error}; heard {self.datagrams[-20:]}") from None


@contextmanager
def hearing(root: Path, *, name: str = "") -> Iterator[Hearing]:
    """A socket below `root`, or under this abstract name."""
    address = f"@{name}" if name else str(root / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind("\0" + name if name else address)
        sock.setblocking(False)
        yield Hearing(sock, address)
