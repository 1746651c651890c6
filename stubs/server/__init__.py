"""A stub of the OpenCode 2.0.15 server: the v2 routes as measured, scripted turns, faults."""

from stubs.server.config import Settings
from stubs.server.faults import Faults, Rule
from stubs.server.feed import Cut, End
from stubs.server.server import StubServer

__all__ = ["Cut", "End", "Faults", "Rule", "Settings", "StubServer"]
