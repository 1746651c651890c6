"""The metrics of what stands: read from the daemon whenever they are asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client import Metric
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from adapter.core.values import Oddity
from adapter.daemon.daemon import Daemon
from adapter.daemon.metrics import OTHER, PREFIX, Metrics
from adapter.engine.engine import Engine
from adapter.limits import Bound
from contract.version import VERSION

OMITTED: Final = (
    Bound.TURN_OUTPUT_BYTES,
    Bound.TOOL_OUTPUT_BYTES,
    Bound.TOOL_LOCATIONS,
    Bound.LINE_CHARS,
)
"""Limits that cut what a client is shown; a limit that refuses cuts nothing."""


class Standing(Collector):
    """Gauges of the daemon and its engine, and the counts that they keep themselves."""

    def __init__(self, daemon: Daemon, metrics: Metrics) -> None:
        self._daemon = daemon
        self._metrics = metrics

    def collect(self) -> Iterator[Metric]:
        yield _gauge("build_info", "Of this daemon.", {VERSION: 1}, "version")
        yield from self._clients()
        yield from self._feed()
        yield from self._counts()

    def _clients(self) -> Iterator[Metric]:
        daemon, engine = self._daemon, self._daemon.engine
        clients = daemon.clients
        yield _gauge("clients", "Clients that are connected.", len(clients))
        yield _gauge("attached_sessions", "Sessions that are open.", engine.open_sessions)
        yield _gauge("pending_prompts", "Prompts in flight, of every client.", engine.turns)
        about = "Since the oldest prompt in flight was taken; 0 without one."
        yield _gauge("oldest_prompt_seconds", about, _age_of_oldest(engine))
        queues = {
            "prompts": sum(client.queued for client in clients),
            "updates": sum(client.owed for client in clients),
        }
        about = "Prompts that the server has not begun; updates owed to clients that read slowly."
        yield _gauge("queue_depth", about, queues, "queue")
        unread = sum(client.queued_bytes for client in clients)
        yield _gauge("outbox_bytes", "Bytes that clients have not taken.", unread)

    def _feed(self) -> Iterator[Metric]:
        engine, counters = self._daemon.engine, self._daemon.engine.feed.counters
        yield _gauge("sse_connected", "Whether the event feed is up.", engine.feed.is_connected)
        yield _gauge("auth_refused", "Whether the server refuses the password.", engine.is_refused)
        about = "Times that the event feed was connected again."
        yield _counter("sse_reconnects", about, max(0, counters.connections - 1))
        lines = {
            "event": counters.events,
            "skipped": counters.skipped,
            "heartbeat": counters.heartbeats,
            "oversize": counters.oversize,
            "repeated": counters.repeated,
            "malformed": counters.malformed,
        }
        yield _counter("sse_lines", "Lines of the event feed.", lines, "kind")
        yield _counter("unknown_events", "Events of unknown types.", counters.unknown)
        heard = self._metrics.events | {OTHER: counters.unknown}
        yield _counter("events", "Events that were heard.", heard, "type")

    def _counts(self) -> Iterator[Metric]:
        counters = self._daemon.engine.counters
        limits = {bound.value: counters[bound] for bound in Bound}
        yield _counter("limits_hit", "Times that a limit was hit.", limits, "limit")
        oddities = {oddity.value: counters[oddity] for oddity in Oddity}
        yield _counter("oddities", "What is no limit and still odd.", oddities, "oddity")
        omitted = {bound.value: counters.omitted.get(bound, 0) for bound in OMITTED}
        omitted[Bound.TURN_OUTPUT_BYTES.value] += self._metrics.omitted_characters
        omitted[Oddity.CHARACTERS_GONE.value] = counters[Oddity.CHARACTERS_GONE]
        about = "Characters, or things, that clients were not shown, by what kept them away."
        yield _counter("omitted", about, omitted, "kind")


def _age_of_oldest(engine: Engine) -> float:
    began = [hub.settlements.oldest for hub in engine.hubs]
    return max((engine.clock() - one for one in began if one is not None), default=0.0)


class Process(ProcessCollector):
    """`process_*`, also under a unit that hides all of /proc but processes (ProcSubset=pid).

    The start of the process cannot be told there, since nothing says when the system started.
    """

    def _boot_time(self) -> float:
        try:
            return float(super()._boot_time())  # type: ignore[no-untyped-call]
        except OSError:
            return math.nan

    def collect(self) -> Iterator[Metric]:
        for metric in super().collect():
            if not any(math.isnan(sample.value) for sample in metric.samples):
                yield metric


Values = float | Mapping[str, float]


def _gauge(name: str, about: str, values: Values, *label: str) -> Metric:
    family = GaugeMetricFamily(PREFIX + name, about, labels=label)
    return _filled(family, values)


def _counter(name: str, about: str, values: Values, *label: str) -> Metric:
    family = CounterMetricFamily(PREFIX + name, about, labels=label)
    return _filled(family, values)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, values: Values) -> Metric:
    if isinstance(values, Mapping):
        for value, number in values.items():
            family.add_metric([value], number)
    else:
        family.add_metric([], values)
    return family
