"""Faults that a test switches on; the control route does the same over HTTP."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Action = Literal["status", "drop_before", "drop_after", "delay"]
ACTIONS: Final = ("status", "drop_before", "drop_after", "delay")
MAX_RULES: Final = 100


@dataclass(slots=True)
class Rule:
    """One fault of requests: `action` for the next `times` whose path matches.

    status       answer `status` without effect, with an empty body or with an error's `message`
    drop_before  close the connection without effect
    drop_after   close the connection after the request took effect
    delay        wait `seconds`, then go on
    """

    action: Action
    path: str = ""
    method: str | None = None
    times: int = 1
    status: int = 503
    seconds: float = 0.0
    message: str = ""

    def matches(self, method: str, path: str) -> bool:
        """Whether the request meets this rule."""
        if self.times <= 0 or (self.method is not None and self.method != method):
            return False
        return re.search(self.path, path) is not None


class Faults:
    """The faults of requests. Those of the feed are in feed.py; restarts are the stub's."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.unauthorized = False

    def add(self, rule: Rule) -> Rule:
        """Add a rule; at MAX_RULES the oldest goes."""
        self.rules = [*self.rules[-MAX_RULES + 1 :], rule]
        return rule

    def clear(self) -> None:
        """No faults of requests any more."""
        self.rules = []
        self.unauthorized = False

    def strike(self, method: str, path: str) -> Rule | None:
        """The rule that this request meets; it is used up by one."""
        for rule in self.rules:
            if rule.matches(method, path):
                rule.times -= 1
                return rule
        return None
