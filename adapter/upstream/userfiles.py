"""Files in a user's own folders (XDG Base Directory Specification), and whether one is there."""

from __future__ import annotations

import os
from collections.abc import Mapping


def may_exist(path: str) -> bool:
    """False only if nothing is there: what cannot be looked at is for its reader to tell."""
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def user_file(environ: Mapping[str, str], variable: str, below: str, name: str) -> str | None:
    """`name` in the folder that `variable` tells, else in `below` of the home; None without it.

    A folder that is not absolute does not count, as the specification says: it would lead into the
    project that a client happens to stand in.
    """
    folder, home = environ.get(variable, ""), environ.get("HOME", "")
    if not os.path.isabs(folder):
        if not os.path.isabs(home):
            return None
        folder = f"{home}/{below}"
    path = f"{folder}/{name}"
    return path if may_exist(path) else None
