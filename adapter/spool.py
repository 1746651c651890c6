"""Standard error, written by a thread of its own: who logs waits for nobody.

A terminal that is held, a pipe that nobody reads or a journal that stands would else stop the loop,
and every client with it.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable
from typing import Final, TextIO

from adapter.flood import SECONDS, Fate, Flood
from contract.words import counted

WAITING: Final = 4 * 1024 * 1024
"""Bytes that wait for the thread; what comes then is lost and counted."""
FLUSH_SECONDS: Final = 0.5
"""At the end of the process, for what still waits."""


class Spool(logging.Handler):
    """Writes whole lines to the descriptor of `stream`; one of more than `waiting` bytes is lost.

    `flush` waits for at most `flush_seconds`, so `logging.shutdown` does as well, which Python
    calls at its exit and whoever calls `os._exit` has to call. The thread does not keep the
    process, and writes past the buffers of `stream`: an exit could find their lock held.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        waiting: int = WAITING,
        flush_seconds: float = FLUSH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        stream.flush()
        self._descriptor = stream.fileno()
        self._encoding = stream.encoding
        self._waiting = waiting
        self._flush_seconds = flush_seconds
        self._flood = Flood(clock)
        # Of a kind that its holder may take again: a finalizer may log at any time.
        self._changed = threading.Condition(threading.RLock())
        self._lines: list[bytes] = []
        self._bytes = 0
        self._lost = 0
        self._writing = False
        self._closed = False
        threading.Thread(target=self._write_all, name="log", daemon=True).start()

    def emit(self, record: logging.LogRecord) -> None:
        """Take a line; it is lost if too much waits, or if too many of its kind came."""
        fate = self._flood.take(record)
        if fate is not Fate.LEFT_OUT:
            try:
                self._put(record)
            except Exception:  # noqa: BLE001 - whatever str() of a value raises
                self.handleError(record)
        if fate is Fate.LAST:
            self._put(_more_of(record))

    def handleError(self, record: logging.LogRecord) -> None:
        """Nobody fails for what is said of it; a value of the record may have no text."""
        self._put(_failed(record))

    def flush(self) -> None:
        with self._changed:
            self._changed.wait_for(self._is_idle, self._flush_seconds)

    def close(self) -> None:
        """The thread ends once it has written what waits."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        super().close()

    def _is_idle(self) -> bool:
        return not (self._lines or self._lost or self._writing)

    def _put(self, record: logging.LogRecord) -> None:
        line = self._line(record)
        with self._changed:
            if self._bytes + len(line) > self._waiting:
                self._lost += 1
            else:
                self._bytes += len(line)
                self._lines.append(line)
            self._changed.notify_all()

    def _line(self, record: logging.LogRecord) -> bytes:
        return f"{self.format(record)}\n".encode(self._encoding, "backslashreplace")

    def _write_all(self) -> None:
        while True:
            with self._changed:
                self._writing = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._lines or self._lost or self._closed)
                lines, self._lines = self._lines, []
                lost, self._lost = self._lost, 0
                self._bytes = 0
                if not (lines or lost):
                    return
                self._writing = True
            if lost:
                # They came when these lines waited, so behind them.
                lines.append(self._line(_missing(lost)))
            for line in lines:
                self._write(line)

    def _write(self, line: bytes) -> None:
        left = memoryview(line)
        while left:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BlockingIOError:
                # Somebody who has the same file open made it so.
                ready = select.poll()
                ready.register(self._descriptor, select.POLLOUT)
                ready.poll()
            except OSError:
                # Nobody reads any more, and there is no other place to say so.
                return


def _missing(lost: int) -> logging.LogRecord:
    message, told = "missing here: %s of the log, which nobody took in time", counted(lost, "line")
    return logging.LogRecord(__name__, logging.WARNING, __file__, 0, message, (told,), None)


def _more_of(record: logging.LogRecord) -> logging.LogRecord:
    message = "further lines as the last one are left out, until %g s are over since the first"
    level, name = record.levelno, record.name
    return logging.LogRecord(name, level, __file__, 0, message, (SECONDS,), None)


def _failed(record: logging.LogRecord) -> logging.LogRecord:
    message, place = "the line of %s:%d cannot be made", (record.module, record.lineno)
    return logging.LogRecord(record.name, record.levelno, __file__, 0, message, place, None)
