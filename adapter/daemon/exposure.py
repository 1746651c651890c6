"""What others than a file's owner may do with it, by its mode. Pure."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from enum import Enum, auto


class Exposure(Enum):
    """Who can put a file of theirs in the place of one in a directory."""

    OWNER = auto()
    """Another user, whose directory it is."""
    WRITERS = auto()
    """Whoever may write in it."""


def exposure(directory: os.stat_result, trusted: Collection[int]) -> Exposure | None:
    """None if nobody can but these users."""
    if directory.st_uid not in trusted:
        return Exposure.OWNER
    sticky = directory.st_mode & stat.S_ISVTX
    return Exposure.WRITERS if others_write(directory) and not sticky else None


def others_write(seen: os.stat_result) -> bool:
    """Whether its group or everybody may."""
    return bool(seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH))
