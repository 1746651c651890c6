"""The log of a test, in a file of its own."""

from __future__ import annotations

import io
import logging
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from adapter.spool import Spool


class Told(io.TextIOWrapper):
    """The file that a log is written to; a thread writes it, so who reads waits for that."""

    def getvalue(self) -> str:
        """All that has been logged since the last `clear`."""
        for handler in logging.getLogger().handlers:
            handler.flush()
        self.seek(0)
        return self.read()

    def clear(self) -> None:
        self.getvalue()
        self.seek(0)
        self.truncate()


@contextmanager
def log_stream() -> Iterator[Told]:
    """A stream for `adapter.logs.set_up`; behind it the process logs as it did before."""
    root, httpx = logging.getLogger(), logging.getLogger("httpx")
    handlers, level, http_level, hook = root.handlers[:], root.level, httpx.level, sys.excepthook
    with tempfile.TemporaryFile() as file, Told(file, encoding="utf-8") as told:
        try:
            yield told
        finally:
            for handler in root.handlers:
                if isinstance(handler, Spool):
                    handler.flush()
                    handler.close()
            sys.excepthook = hook
            root.handlers[:] = handlers
            root.setLevel(level)
            httpx.setLevel(http_level)
