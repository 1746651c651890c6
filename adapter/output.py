"""Standard output as a relay has it: written to without blocking.

Part of the relay, so it imports as little.
"""

import _socket
import posix
import select

CHUNK = 64 * 1024
"""The most bytes of one write."""
FILE_TYPE = 0o170000
FILE_IS_SOCKET = 0o140000
FILE_IS_REGULAR = 0o100000
"""Of `st_mode`, inode(7)."""


class Output:
    """Takes what is written as far as there is room.

    Its description may be shared with other processes, so its flags stay as they are. A pipe or a
    terminal is opened once more, for a description of the relay's own: one that is ready may
    still take less than is written, and a terminal says so at the first free byte.
    """

    def __init__(self) -> None:
        self._socket: _socket.socket | None = None
        self._descriptor = 1
        self._most = CHUNK
        kind = posix.fstat(1).st_mode & FILE_TYPE
        if kind == FILE_IS_SOCKET:
            self._socket = _socket.socket(fileno=posix.dup(1))
        elif kind != FILE_IS_REGULAR:
            flags = posix.O_WRONLY | posix.O_NONBLOCK | posix.O_NOCTTY | posix.O_CLOEXEC
            try:
                self._descriptor = posix.open("/proc/self/fd/1", flags)
            except OSError:
                # Another user's: a pipe that is ready takes so much without blocking (pipe(7)).
                self._most = select.PIPE_BUF

    def write(self, data: bytes) -> int:
        """How many bytes were taken. Raises OSError; BlockingIOError for none."""
        if self._socket is not None:
            return self._socket.send(data, _socket.MSG_DONTWAIT)
        return posix.write(self._descriptor, data[: self._most])
