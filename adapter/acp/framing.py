"""One JSON message a line, in both directions: bytes to lines, messages to bytes. No I/O.

Lines are split on 0x0A alone (ACP transport rules): U+2028, U+0085 and a form feed are text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

import orjson

from adapter.acp.inbound import Inbound, Unfinished
from adapter.acp.jsontext import repaired
from adapter.limits import DEFAULTS
from contract.words import counted

INBOUND_LIMIT: Final = DEFAULTS.inbound_line_bytes
"""Bytes of one inbound line, its end not counted. The TypeScript SDK 2.4.0 has the same default."""

OUTBOUND_LIMIT: Final = DEFAULTS.outbound_line_bytes
"""Bytes of one outbound line. Clients are known to break at 8 MiB; long texts are split before."""


@dataclass(frozen=True, slots=True)
class Oversize:
    """Stands in the place of a line that passed `limit` bytes and was dropped.

    Or of one that gave way, since those of all clients together passed them (`shared`).
    """

    limit: int
    shared: bool = False

    @property
    def told(self) -> str:
        """One sentence for the client."""
        size = counted(self.limit, "byte")
        if self.shared:
            return f"A line was dropped: unfinished ones of all clients had more than {size}."
        return f"A line of more than {size} was dropped."


class LineBuffer:
    """Bytes in, whole lines out; holds at most `limit` bytes and one chunk.

    What follows the last LF is not a message, so nothing is left to ask for at the end. `inbound`
    is what all buffers together may hold.
    """

    def __init__(self, limit: int = INBOUND_LIMIT, inbound: Inbound | None = None) -> None:
        self._limit = limit
        self._head = bytearray()
        self._dropping = False
        self._gave_way = False
        self._unfinished = Unfinished(inbound or Inbound(), self._give_way)

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """The lines that `data` completes, in order, without LF or CR LF; blank ones are skipped.

        An oversize line is reported at once, when it passes the limit, and read on without being
        kept until its LF comes. So is one that gave way, when there is more to read.
        """
        lines: list[bytes | Oversize] = self._report()
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._take(data[start:end], lines)
            if not self._dropping:
                line = bytes(self._head).removesuffix(b"\r")
                if line.strip():
                    lines.append(line)
            self._head, self._dropping = bytearray(), False
            start = end + 1
        if start < len(data):
            self._take(data[start:], lines)
        self._unfinished.hold(len(self._head))
        return lines + self._report()

    def close(self) -> None:
        """Nothing is read any more: keep nothing."""
        self._head = bytearray()
        self._unfinished.hold(0)

    def _give_way(self) -> None:
        self._head, self._dropping, self._gave_way = bytearray(), True, True

    def _report(self) -> list[bytes | Oversize]:
        gave_way, self._gave_way = self._gave_way, False
        return [Oversize(self._unfinished.limit, shared=True)] if gave_way else []

    def _take(self, piece: bytes, lines: list[bytes | Oversize]) -> None:
        if self._dropping:
            return
        if len(self._head) + len(piece) > self._limit:
            self._head, self._dropping = bytearray(), True
            lines.append(Oversize(self._limit))
        else:
            self._head += piece


ROOM: Final = 4096
"""Bytes of the heap that a line of orjson keeps, however short it is: many that wait for a client
would take thirty times what they hold. A copy keeps what it needs."""


def encode(message: dict[str, object], limit: int = OUTBOUND_LIMIT) -> bytes:
    """One line of UTF-8 JSON with its LF.

    Lone surrogates become U+FFFD; NaN and infinities become null. Raises ValueError for a line
    over `limit` bytes and TypeError for a value that is not JSON: both are faults of the
    caller, who splits long texts before.
    """
    try:
        line = orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)
    except TypeError:
        # orjson refuses surrogates and integers over 64 bits; json knows what is left.
        text = json.dumps(repaired(message), ensure_ascii=False, separators=(",", ":"))
        line = text.encode("utf-8") + b"\n"
    if len(line) > limit:
        raise ValueError(f"outbound line of {len(line)} bytes is over {limit}")
    return bytes(memoryview(line)) if len(line) < ROOM else line
