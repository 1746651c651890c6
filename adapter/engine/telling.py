"""What a core tells one client beside text and tools, as its client takes it. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from adapter.acp import updates
from adapter.core import values as v
from adapter.engine.client import Client, Json

Tellable = v.Progress | v.Prompted | v.Compaction | v.Notice


def updates_of(output: Tellable, client: Client) -> Iterator[Json]:
    """The updates, within the limits of the client, in what it advertised."""
    match output:
        case v.Progress():
            yield updates.progress(output, client.limits)
        case v.Prompted():
            yield from updates.prompted(output, client.limits)
        case v.Compaction():
            advertised = client.can.compaction
            yield updates.compaction(output, client.limits, advertised=advertised)
        case v.Notice():
            yield updates.notice(output, client.limits, advertised=client.can.notices)
