"""The daemon's sockets: made where nobody else can put one, one daemon for each.

A lock beside the socket decides between two daemons; nothing is taken from a process that still
answers, and nothing removed that somebody else has put in the place of ours.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
import stat
from typing import Final

from adapter.daemon.accepting import send_away
from adapter.daemon.exposure import ROOT, Exposure, exposed
from adapter.daemon.hello import credentials
from adapter.daemon.refusal import Refusal
from contract.attach import TEMPORARY, USAGE

logger = logging.getLogger(__name__)

BACKLOG: Final = 512
"""Connections that wait to be accepted; the kernel refuses more of them for a moment."""
LOCK_SUFFIX: Final = ".lock"
PID_BYTES: Final = 32
"""Of the lock are read for the number of a process; there are at most seven digits (proc(5))."""
ASK: Final = "`opencode-acp status` shows one that runs; another daemon wants another --socket"


class Listener:
    """One listening socket, non-blocking. `path` is empty for one that has no name.

    Of a socket that was passed by the service manager nothing is ever removed.
    """

    def __init__(self, sock: socket.socket, path: str, lock: int | None = None) -> None:
        self.socket = sock
        self.path = path
        self._lock = lock
        self._identity = _identity(path) if lock is not None else None

    @property
    def is_ours(self) -> bool:
        """Whether we have made it, and not the service manager."""
        return self._lock is not None

    @property
    def in_place(self) -> bool:
        """Whether clients that look for the path find this socket."""
        return self._identity is None or _identity(self.path) == self._identity

    def renew(self) -> None:
        """Bind it again after somebody removed it; the old one is closed. Raises Refusal."""
        _prepare(os.path.dirname(self.path))
        if self._lock is not None and not _is_file(self._lock, self.path + LOCK_SUFFIX):
            # Whoever removed the socket has removed the lock, too.
            lock = _take_lock(self.path + LOCK_SUFFIX)
            os.close(self._lock)
            self._lock = lock
        fresh = _bind(self.path)
        self.socket.close()
        self.socket = fresh
        self._identity = _identity(self.path)

    def close(self, refusal: bytes = b"") -> None:
        """Stop to listen, and remove what is still ours. May be called again.

        Whoever waits in the queue of a socket of ours is told `refusal`; the queue of one that was
        passed is the next daemon's. The file of the lock stays: without it two that start could
        each lock one of their own.
        """
        if self._lock is not None:
            self._give_up(refusal)
        self.socket.close()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _give_up(self, refusal: bytes) -> None:
        if self.in_place:
            try:
                os.unlink(self.path)
            except OSError as error:
                logger.info("the socket %s was not removed: %s", self.path, error)
        try:
            # From here on the kernel lets nobody into the queue, not even who has the path by now.
            self.socket.shutdown(socket.SHUT_RD)
        except OSError as error:
            logger.debug("the socket %s was closed before: %s", self.path, error)
        while send_away(self.socket, refusal):
            pass


def listen(path: str) -> Listener:
    """Listen at `path`, which only this user may connect to.

    A directory that is missing is made. Raises Refusal: 75 if another process serves that path, 2
    if the directory or what stands at the path forbids it.
    """
    path = os.path.abspath(path)
    _prepare(os.path.dirname(path))
    lock = _take_lock(path + LOCK_SUFFIX)
    try:
        return Listener(_bind(path), path, lock)
    except Refusal:
        os.close(lock)
        raise


def _prepare(directory: str) -> None:
    """Whoever could replace the socket would be taken for the daemon by every client."""
    mask = os.umask(0o077)
    try:
        os.makedirs(directory, exist_ok=True)
        found = exposed(directory, (os.geteuid(), ROOT), sticky=True)
    except OSError as error:
        reason = error.strerror or "it cannot be used"
        raise Refusal(USAGE, f"The socket's directory {directory} fails: {reason}.") from error
    finally:
        os.umask(mask)
    if found is None:
        return
    path, exposure = found
    if exposure is Exposure.OWNER:
        raise Refusal(
            USAGE,
            f"{path}, on the way to the socket, belongs to another user, who could replace the "
            "socket; use a directory of your own.",
        )
    raise Refusal(
        USAGE,
        f"Others may write in {path}, on the way to the socket, and could put one of theirs in its "
        "place; use a directory of mode 0700.",
    )


def _take_lock(path: str) -> int:
    """The descriptor that holds the lock for as long as it is open."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        lock = os.open(path, flags, 0o600)
    except OSError as error:
        reason = error.strerror or "it cannot be opened"
        raise Refusal(USAGE, f"The lock {path} cannot be used: {reason}.") from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = _holder(lock)
        os.close(lock)
        raise Refusal(
            TEMPORARY,
            f"Another daemon{holder} holds the lock {path}; one that ends lets go of it when it is "
            f"done, and {ASK}.",
        ) from error
    _sign(lock, path)
    return lock


def _sign(lock: int, path: str) -> None:
    """Leave our process in the lock, for the sentence to the next who wants it."""
    try:
        os.ftruncate(lock, 0)
        os.pwrite(lock, b"%d\n" % os.getpid(), 0)
    except OSError as error:
        logger.debug("the lock %s does not say who holds it: %s", path, error)


def _holder(lock: int) -> str:
    """The process that stands in the lock, as a part of a sentence; empty if none does."""
    try:
        said = os.pread(lock, PID_BYTES, 0).strip()
    except OSError:
        return ""
    return f", process {int(said)}," if said.isdigit() else ""


def _bind(path: str) -> socket.socket:
    _clear(path)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    mask = os.umask(0o177)
    try:
        sock.bind(path)
        sock.listen(BACKLOG)
    except OSError as error:
        sock.close()
        reason = error.strerror or str(error)
        raise Refusal(USAGE, f"The socket {path} cannot be made: {reason}.") from error
    finally:
        os.umask(mask)
    return sock


def _clear(path: str) -> None:
    """Remove a socket that a daemon of this user has left. Raises Refusal for anything else."""
    try:
        seen = os.lstat(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Refusal(USAGE, f"The socket {path} cannot be made: {error.strerror}.") from error
    if not stat.S_ISSOCK(seen.st_mode):
        raise Refusal(USAGE, f"{path} is no socket; remove it or name another path.")
    if seen.st_uid != os.geteuid():
        raise Refusal(USAGE, f"The socket {path} belongs to another user; name another path.")
    if (opener := _opener(path)) is not None:
        who = f"process {opener}" if opener else "another process"
        raise Refusal(TEMPORARY, f"The socket {path} is served, and was opened by {who}; {ASK}.")
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise Refusal(USAGE, f"{path} cannot be removed: {error.strerror}.") from error


def _opener(path: str) -> int | None:
    """The process that opened the socket on which somebody listens there, None without one.

    That of a service manager, where it passed the socket on (unix(7), SO_PEERCRED); 0 where it is
    not known: a queue that is full has a process behind it, too.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        error = probe.connect_ex(path)
        if not error:
            return credentials(probe).pid
    return None if error in (errno.ECONNREFUSED, errno.ENOENT) else 0


def _identity(path: str) -> tuple[int, int] | None:
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def _is_file(descriptor: int, path: str) -> bool:
    seen = os.fstat(descriptor)
    return _identity(path) == (seen.st_dev, seen.st_ino)
