"""What others than its owner may do with a file by its mode, and so with the way to a socket.

A relay imports this only where a third user listens, and so do commands that ask a daemon.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator
from enum import Enum, auto
from typing import Final

LINKS: Final = 40
"""As many as the kernel follows on one way (path_resolution(7))."""
ROOT: Final = 0


class Exposure(Enum):
    """Who can put a file of theirs in the place of one in a directory."""

    OWNER = auto()
    """Another user, whose directory it is."""
    WRITERS = auto()
    """Whoever may write in it."""


def exposed(
    directory: str, trusted: Collection[int], *, sticky: bool
) -> tuple[str, Exposure] | None:
    """The first on the way to `directory` by which others than these users could take its place.

    With `sticky` a directory above it may be one where everybody writes and nobody removes what is
    another's; it never may be such a one itself, since there whoever comes first has a name. Raises
    OSError where the way cannot be looked at.
    """
    way = list(_way(directory))
    *_, last = (path for path, seen in way if not stat.S_ISLNK(seen.st_mode))
    for path, seen in way:
        found = _exposure(seen, trusted, sticky=sticky and path != last)
        if found is not None:
            return path, found
    return None


def impostor(path: str, uid: int) -> str | None:
    """A sentence if user `uid`, who listens at `path`, need not be the one who is meant.

    This user and root are, wherever they listen; another one is at a place that he alone has, or
    was given by these two.
    """
    own = os.getuid()
    if uid in (ROOT, own):
        return None
    try:
        found = exposed(os.path.dirname(path), (ROOT, own, uid), sticky=False)
    except OSError as error:
        return f"User {uid} listens at {path}, which cannot be looked at: {error.strerror}."
    if found is None:
        return None
    return (
        f"User {uid} listens at {path}, and others could as well, by {found[0]}; name the socket "
        "of a daemon at a place where nobody else can write."
    )


def others_write(seen: os.stat_result) -> bool:
    """Whether its group or everybody may."""
    return bool(seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _exposure(seen: os.stat_result, trusted: Collection[int], *, sticky: bool) -> Exposure | None:
    if seen.st_uid not in trusted:
        return Exposure.OWNER
    if stat.S_ISLNK(seen.st_mode) or (sticky and seen.st_mode & stat.S_ISVTX):
        return None
    return Exposure.WRITERS if others_write(seen) else None


def _way(directory: str) -> Iterator[tuple[str, os.stat_result]]:
    """The root, then each directory and link that the kernel goes by; the last is the directory."""
    # Whoever has a whole path needs no directory of this process, which may be gone.
    whole = directory if os.path.isabs(directory) else os.path.join(os.getcwd(), directory)
    rest = whole.split("/")[::-1]
    here, links = "/", 0
    yield here, os.lstat(here)
    while rest:
        part = rest.pop()
        if part in ("", "."):
            continue
        path = os.path.dirname(here) if part == ".." else os.path.join(here, part)
        seen = os.lstat(path)
        yield path, seen
        if not stat.S_ISLNK(seen.st_mode):
            here = path
            continue
        links += 1
        if links > LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = os.readlink(path)
        rest += target.split("/")[::-1]
        here = "/" if target.startswith("/") else here
