"""A client that leaves while the rest of the program is imported.

acpx ends an agent that it only probes some 150 ms after the first answer, and sends SIGTERM 100 ms
after the end of its input: the imports take longer, and nothing of them is of use then.
"""

from __future__ import annotations

import fcntl
import os
import select
import sys
import termios
import threading
from collections.abc import Callable
from typing import Final

# Milliseconds between two looks at whether the watch is over.
TURN: Final = 10


def end_with_client(source: int) -> Callable[[], None]:
    """End the process with 0 once `source` is closed at its other end and holds nothing unread.

    Call the result when the client is served: it returns after the watch is over.
    """
    served = threading.Event()
    watch = threading.Thread(target=_watch, args=(source, served), name="departure", daemon=True)
    watch.start()

    def stop() -> None:
        served.set()
        watch.join()

    return stop


def _watch(source: int, served: threading.Event) -> None:
    poll = select.poll()
    poll.register(source, select.POLLIN)
    while not served.is_set():
        if not poll.poll(TURN):
            continue
        if _unread(source) == 0:
            os._exit(0)
        return  # Bytes to be served; the end behind them shows to whoever reads them.


def _unread(source: int) -> int | None:
    """Bytes that wait in a pipe or socket, 0 at its end; None for anything else."""
    try:
        answer = fcntl.ioctl(source, termios.FIONREAD, bytes(4))
    except OSError:
        return None
    return int.from_bytes(answer, sys.byteorder)
