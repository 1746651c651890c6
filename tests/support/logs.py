"""The log of a test, on a stream of its own."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def log_stream() -> Iterator[io.StringIO]:
    """A stream for `adapter.logs.set_up`; behind it the process logs as it did before."""
    root, httpx = logging.getLogger(), logging.getLogger("httpx")
    handlers, level, http_level, hook = root.handlers[:], root.level, httpx.level, sys.excepthook
    try:
        yield io.StringIO()
    finally:
        sys.excepthook = hook
        root.handlers[:] = handlers
        root.setLevel(level)
        httpx.setLevel(http_level)
