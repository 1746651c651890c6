"""Run a program under the part of a unit's sandbox that a process can put on itself.

`python -m tests.deploy.confined FILTER... -- PROGRAM ARGUMENT...`: the values of the unit's
`SystemCallFilter=`, in their order. It also refuses memory that is made executable, as
`MemoryDenyWriteExecute=` does. Namespaces and cgroups are the service manager's alone.
"""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Final

PR_SET_MDWE: Final = 65
PR_MDWE_REFUSE_EXEC_GAIN: Final = 1
SCMP_ACT_ALLOW: Final = 0x7FFF0000
SCMP_ACT_ERRNO: Final = 0x00050000


def expanded(name: str) -> Iterator[str]:
    """The system calls of a set such as @system-service, as systemd knows them."""
    if not name.startswith("@"):
        yield name
        return
    argv = ["systemd-analyze", "syscall-filter", "--no-pager", name]
    shown = subprocess.run(argv, check=True, capture_output=True, text=True).stdout
    for word in (line.strip() for line in shown.splitlines()[1:]):
        if word and not word.startswith("#"):
            yield from expanded(word)


def allowed(filters: Sequence[str]) -> set[str]:
    """What a list of `SystemCallFilter=` leaves; the first of them allows (systemd.exec(5))."""
    calls = set(expanded("@default"))
    for line in filters:
        for name in line.removeprefix("~").split():
            if line.startswith("~"):
                calls -= set(expanded(name))
            else:
                calls |= set(expanded(name))
    return calls


def confine(calls: set[str]) -> None:
    """From here on every other call fails with EPERM. Raises OSError."""
    seccomp = ctypes.CDLL("libseccomp.so.2")
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(SCMP_ACT_ERRNO | errno.EPERM))
    # systemd lets the call through that it starts the program with.
    for name in sorted(calls | {"execve"}):
        number = seccomp.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:
            seccomp.seccomp_rule_add(context, SCMP_ACT_ALLOW, number, 0)
    code = seccomp.seccomp_load(context)
    if code:
        raise OSError(-code, os.strerror(-code))


def deny_executable_memory() -> bool:
    """Whether this kernel can (Linux 6.3)."""
    return bool(ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0) == 0)


def main(argv: list[str]) -> None:
    split = argv.index("--")
    calls = allowed(argv[:split])
    if not deny_executable_memory():
        sys.stderr.write("This kernel cannot deny executable memory to a process.\n")
    confine(calls)
    os.execv(argv[split + 1], argv[split + 1 :])


if __name__ == "__main__":
    main(sys.argv[1:])
