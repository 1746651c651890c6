"""The cursor of session/list: where a client's walk stands, as opaque text. Pure.

A directory with links is listed under two names, so a walk may have several legs: one list of the
server for each name.
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from contract.limits import CURSOR_CHARS


class CursorError(ValueError):
    """A cursor that cannot be used. `str()` is one sentence."""


@dataclass(frozen=True, slots=True)
class Place:
    """A session's place in a list: its last change in milliseconds, then its id."""

    updated: FiniteFloat
    id: str


@dataclass(frozen=True, slots=True)
class Leg:
    """The next page of one list of the server: the page behind `cursor`, the first without one.

    `begun`: that page was read before, and its rows down to the walk's last place are not given
    again. Sessions that changed since then stand above that place.
    """

    cursor: str | None = None
    begun: bool = False


@dataclass(frozen=True, slots=True)
class Walk:
    """A leg is None once its list has ended. `last` is what was given last; None at the start."""

    legs: tuple[Leg | None, ...]
    last: Place | None = None


class _Written(BaseModel):
    """What stands in a cursor; `filters` are those of its list, as a digest."""

    model_config = ConfigDict(defer_build=True, extra="forbid", strict=True)
    version: Literal[1] = 1
    filters: str
    legs: tuple[Leg | None, ...]
    last: Place | None


_DIGEST_CHARS: Final = 16


def write(walk: Walk, filters: tuple[object, ...]) -> str:
    """The cursor of a walk. CursorError if it would be longer than a client may send back."""
    written = _Written(filters=_digest(filters), legs=walk.legs, last=walk.last)
    text = base64.urlsafe_b64encode(written.model_dump_json().encode()).decode().rstrip("=")
    if len(text) > CURSOR_CHARS:
        raise CursorError(
            "The path of this directory is too long for its list to be continued; list without "
            "cwd instead."
        )
    return text


def read(text: str, filters: tuple[object, ...], legs: int) -> Walk:
    """The walk that stands in a cursor. CursorError for any text that `write` did not make."""
    try:
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        written = _Written.model_validate_json(raw)
    except (ValueError, ValidationError):
        raise CursorError("cursor is not one that a list gave.") from None
    if written.filters != _digest(filters):
        raise CursorError("cursor belongs to a list with other filters.")
    if len(written.legs) != legs or not any(written.legs):
        raise CursorError("cursor is not one that a list gave.")
    return Walk(written.legs, written.last)


def _digest(filters: tuple[object, ...]) -> str:
    text = repr(filters).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:_DIGEST_CHARS]
