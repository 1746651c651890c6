"""What the system leaves to this user: descriptors, and the watches that OpenCode takes.

The kernel counts inotify instances by user, and 128 is its default for each. OpenCode takes one
for every directory that it has open, until it ends; where there is none left, the first use of a
directory is never answered (measured on 2.0.15).
"""

from __future__ import annotations

import os
import resource
from typing import Final

from adapter.daemon.process import room
from adapter.doctor.findings import Finding, good, skipped, warning

DESCRIPTORS: Final = "descriptors"
INOTIFY: Final = "inotify"
PROC: Final = "/proc"
LIMIT_FILE: Final = "sys/fs/inotify/max_user_instances"
INSTANCE: Final = "anon_inode:inotify"
MUCH: Final = 0.75
"""Of the instances: beyond, the next directories may be the last."""


def descriptors(connections: int) -> Finding:
    """Whether a daemon that is started as we were has room for its clients (O-34)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    return judge_descriptors(hard if hard != resource.RLIM_INFINITY else None, connections)


def judge_descriptors(hard: int | None, connections: int) -> Finding:
    """`hard` is None where there is no limit."""
    if hard is None or (left := room(hard, connections).clients) >= connections:
        return good(DESCRIPTORS, f"There are enough for a daemon of {connections} clients.")
    return warning(
        DESCRIPTORS,
        f"The limit of {hard} descriptors leaves a daemon room for {left} clients of the "
        f"{connections} that it may have.",
        "Raise it, by LimitNOFILE= in the daemon's unit or by `ulimit -Hn`.",
    )


def inotify(proc: str = PROC) -> Finding:
    """Whether this user has inotify instances left for OpenCode, if it runs as this user."""
    try:
        with open(os.path.join(proc, LIMIT_FILE), encoding="ascii") as file:
            limit = int(file.read())
    except (OSError, ValueError):
        return skipped(INOTIFY, "The kernel does not say how many inotify instances there may be.")
    return judge_inotify(_instances(proc, os.getuid()), limit)


def judge_inotify(used: int, limit: int) -> Finding:
    told = f"This user has {used} of {limit} inotify instances in use; OpenCode takes one for each "
    fix = "Raise fs.inotify.max_user_instances by sysctl, or start the server again."
    if used >= limit:
        # Of a server of another user nothing is known here, so that nothing has failed so far.
        return warning(INOTIFY, f"{told}directory, and there is none left for another one.", fix)
    if used >= limit * MUCH:
        return warning(INOTIFY, f"{told}directory that it has open until it ends.", fix)
    return good(INOTIFY, f"{told}directory.")


def _instances(proc: str, uid: int) -> int:
    """Those of the processes that we may look into; others' are not ours to count."""
    return sum(instances_of(f"{proc}/{name}", uid) for name in os.listdir(proc) if name.isdecimal())


def instances_of(folder: str, uid: int) -> int:
    """Those of the process with this folder of `PROC`; 0 if it is another user's."""
    try:
        if os.stat(folder).st_uid != uid:
            return 0
        return sum(_is_instance(f"{folder}/fd/{fd}") for fd in os.listdir(f"{folder}/fd"))
    except OSError:
        return 0


def _is_instance(link: str) -> bool:
    try:
        return os.readlink(link) == INSTANCE
    except OSError:
        return False
