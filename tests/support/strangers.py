"""Sockets of others: one whose rights keep this process out, and one where another listens."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

NOBODY: Final = 65534
"""What root has to be, whom no rights keep out."""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")


@contextmanager
def kept_out(path: Path) -> Iterator[None]:
    """Somebody listens at `path`, and no call of this process may connect there."""
    is_root = os.geteuid() == 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        path.chmod(0)
        if is_root:
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            if is_root:
                os.seteuid(0)


@contextmanager
def user(uid: int) -> Iterator[None]:
    """This process, which is root's, acts as user `uid`."""
    os.seteuid(uid)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def listening(path: Path, uid: int) -> Iterator[socket.socket]:
    """User `uid` listens at `path`, whoever could have bound it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        with user(uid):
            listener.listen()
        listener.settimeout(10)
        yield listener
