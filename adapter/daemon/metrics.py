"""What is counted of a daemon, for Prometheus (O-22): an `Observer` with a registry of its own.

What happens is counted as it happens; what stands is read when the metrics are asked for. No label
holds an id or a text: its values are known beforehand, and anything else is "other".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics

from adapter.core import values as v
from adapter.core.reconcile import Verdict
from adapter.engine.observer import Settlement
from contract import routes
from contract.events import SESSION_EVENTS, SESSIONLESS_TYPES

PREFIX: Final = "opencode_acp_"
OTHER: Final = "other"

OUTCOMES: Final = (
    *(one.value for one in v.Stop),
    "auth_required", "session_gone", "not_admitted", "failed", "failed_after_tool", "unknown",
    "ended_elsewhere", "max_seconds", "detached",
)  # fmt: skip
"""ACP's stop reasons, and `data.code` of a prompt's error; `docs/outcomes.md` explains them."""

VERDICTS: Final = tuple(one.name.lower() for one in Verdict)
EVENTS: Final = frozenset(SESSION_EVENTS) | SESSIONLESS_TYPES
ROUTES: Final = frozenset(route.name for route in (*routes.USED, routes.OPENAPI))
CLASSES: Final = ("none", "1xx", "2xx", "3xx", "4xx", "5xx")
"""Of statuses; "none" where no answer came."""

# Upper bounds in seconds.
TURN_SECONDS: Final = (0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
CHUNK_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
HTTP_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60)
GAP_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
LAG_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Metrics:
    """Every method returns at once and raises nothing, as an `Observer`'s must."""

    def __init__(self) -> None:
        # Of each series the time when it was made, by the wall clock; nobody asks for that.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry(auto_describe=True)
        self.events = dict.fromkeys(EVENTS, 0)
        """Heard so far, by type; those of unknown types are the feed's to count."""
        self._prompts = self._counter(
            "prompts", "Prompts that were answered, by stop reason or error.", {"outcome": OUTCOMES}
        )
        self._seconds = self._histogram("prompt_seconds", "Of whole prompts.", TURN_SECONDS)
        self._first = self._histogram(
            "first_chunk_seconds", "From a prompt to what was first shown of it.", CHUNK_SECONDS
        )
        self._gaps = self._histogram("sse_gap_seconds", "Without the event feed.", GAP_SECONDS)
        self._verdicts = self._counter(
            "reconcile",
            "Verdicts of readings after a gap or for a check.",
            {"verdict": VERDICTS},
        )
        self._recovered = self._counter(
            "recovered_bytes", "UTF-8 bytes of answers that came from the server's records."
        )
        self._permissions = self._counter(
            "permissions", "Permissions that were settled.", {"decision": (), "reason": ()}
        )
        self._requests = self._counter(
            "http_requests", "Requests to the server.", {"route": (), "code": ()}
        )
        self._request_seconds = self._histogram(
            "http_seconds", "To the whole answer; of the feed to its head.", HTTP_SECONDS, "route"
        )
        self._lag = self._histogram(
            "loop_lag_seconds", "By which the event loop was late.", LAG_SECONDS
        )
        self.omitted_characters = 0
        """Of answers, by the limit `turn_output_bytes`."""

    # --- the observer ---------------------------------------------------------------------

    def settled(self, settlement: Settlement) -> None:
        outcome = settlement.outcome
        name = outcome.stop.value if outcome.stop is not None else outcome.reason
        self._prompts.labels(_known(name, OUTCOMES)).inc()
        self._seconds.observe(settlement.seconds)
        if settlement.first_chunk is not None:
            self._first.observe(settlement.first_chunk)
        self.omitted_characters += outcome.omitted

    def verdict(self, name: str) -> None:
        self._verdicts.labels(_known(name, VERDICTS)).inc()

    def gap(self, seconds: float) -> None:
        self._gaps.observe(seconds)

    def event(self, kind: str) -> None:
        if kind in self.events:
            self.events[kind] += 1

    def answered(self, decision: v.Decision, reason: v.AskReason) -> None:
        self._permissions.labels(decision, reason).inc()

    def recovered(self, size: int) -> None:
        self._recovered.inc(size)

    def requested(self, route: str, status: int, seconds: float) -> None:
        known = _known(route, ROUTES)
        self._requests.labels(known, _class(status)).inc()
        self._request_seconds.labels(known).observe(seconds)

    def late(self, seconds: float) -> None:
        """The event loop came so much later than it was asked to."""
        self._lag.observe(seconds)

    # --- making them ----------------------------------------------------------------------

    def _counter(
        self, name: str, about: str, labels: dict[str, Iterable[str]] | None = None
    ) -> Counter:
        """Zero from the start for each of the values that one label has here."""
        labels = labels or {}
        made = Counter(PREFIX + name, about, list(labels), registry=self.registry)
        if len(labels) == 1:
            for values in labels.values():
                for value in values:
                    made.labels(value)
        return made

    def _histogram(
        self, name: str, about: str, buckets: Iterable[float], *labels: str
    ) -> Histogram:
        return Histogram(
            PREFIX + name, about, labels, registry=self.registry, buckets=tuple(buckets)
        )


def _known(value: str, values: Collection[str]) -> str:
    return value if value in values else OTHER


def _class(status: int) -> str:
    return CLASSES[status // 100] if 100 <= status < 600 else CLASSES[0]
