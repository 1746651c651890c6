"""Standard output is for ACP alone, whatever else in the process may print."""

from __future__ import annotations

import os


def reserve_stdout() -> int:
    """A private close-on-exec copy of descriptor 1; descriptor 1 itself leads to stderr from then.

    So a print, a warning of a library or the traceback of a crash never reaches the client's
    parser. Descriptors 0 to 2 that were closed are opened on the null device first: the copy
    would otherwise take the number of one of them.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    private = os.dup(1)
    os.dup2(2, 1)
    return private
