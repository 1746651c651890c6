"""Whether the server takes the password: what its newest answer says, to whatever it was."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

REFUSED: Final = (401, 403)


class Acceptance:
    """Refused from a 401 or 403 on until an answer of 2xx; other answers say nothing of it.

    `changed` hears each change: True, this password is refused; False, it is taken again.
    """

    def __init__(self, changed: Callable[[bool], None] = lambda _: None) -> None:
        self.is_refused = False
        self._changed = changed
        self._is_due = False

    def renew(self) -> None:
        """Another password from now on: that it is refused as well is news."""
        self._is_due = self.is_refused

    def answered(self, status: int) -> None:
        """An answer to a request that proved itself by the password of now."""
        refused = status in REFUSED
        if not refused and not 200 <= status < 300:
            return
        is_news, self._is_due = self._is_due or refused is not self.is_refused, False
        self.is_refused = refused
        if is_news:
            self._changed(refused)
