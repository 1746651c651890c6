"""Settings of the stub. Every duration is in seconds."""

from __future__ import annotations

import os
from dataclasses import dataclass

VERSION = "2.0.15"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a test may turn. The defaults are the measured behaviour of OpenCode 2.0.15.

    `password` None serves without credentials; `project` is the directory of requests that name
    none. `request_delay` lies between the delivery of a prompt and its model request (longer in the
    first turn of a session, so that a background child outlives its parent's step), `step_end`
    between the last tool or text of a step and its end, `wind_down` between an interrupt and the
    events that end the turn, `interrupt_reply` before the answer to an interrupt. `boot` is how
    long a fresh directory answers its lists without its configuration: empty for the first half,
    then with what is built in. `unseen` are directories that the server has and the adapter cannot
    see, as from within a sandbox.
    """

    password: str | None = None
    user: str = "opencode"
    project: str = "."
    delta_interval: float = 0.1
    heartbeat: float = 15.0
    feed_bound: int = 4096
    keep_alive: float = 5.0
    request_delay: float = 0.02
    first_request_delay: float = 0.05
    step_end: float = 0.01
    wind_down: float = 0.03
    interrupt_reply: float = 0.002
    retry_base: float = 2.0
    retry_attempts: int = 11
    boot: float = 0.0
    bad_directory_delay: float = 0.05
    unseen: frozenset[str] = frozenset()

    @property
    def directory(self) -> str:
        """The absolute project directory."""
        return os.path.abspath(self.project)

    def has(self, path: str) -> bool:
        """Whether there is such a directory where the server runs."""
        return path in self.unseen or os.path.isdir(path)
