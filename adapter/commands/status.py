"""`opencode-acp status`: what the daemon is at, and what keeps it from its work, on one screen."""

from __future__ import annotations

import argparse

from adapter.commands import inquiry
from adapter.commands.screen import columns, duration, plain
from adapter.daemon import ending
from adapter.daemon.admin.shapes import ClientState, Readiness, State
from contract.words import counted

HEAD = ("NO", "PID", "NAME", "TURNS", "QUEUE", "HOLDS", "BYTES", "DIRECTORY")


def arguments(parser: argparse.ArgumentParser) -> None:
    inquiry.arguments(parser)


def run(given: argparse.Namespace) -> int:
    """The exit code, as `inquiry.show` has it: 0 as well for a daemon that is not ready.

    It is a sign of life: another start would not mend what a daemon lacks.
    """
    return inquiry.show(given, lambda state, path: screen(state, inquiry.readiness(path)))


def screen(state: State, readiness: Readiness | None) -> str:
    """The screen, with a newline at its end."""
    lines = [*_head(state, readiness)]
    if state.clients:
        lines += ["", *columns([HEAD, *map(_row, state.clients)])]
    return "".join(f"{line}\n" for line in lines)


def _head(state: State, readiness: Readiness | None) -> list[str]:
    feed, server = state.feed, state.server
    known = f"OpenCode {server.version}, process {server.pid}" if server.pid else "not seen yet"
    if server.pid and not (readiness and readiness.reaches):
        known += " when it last answered"
    waiting = sum(client.queue for client in state.clients)
    losses = f", lost {counted(feed.losses, 'time')}" if feed.losses else ""
    queue = f", {waiting} of them waiting" if waiting else ""
    lines = [
        f"opencode-acp {state.version}, process {state.pid}, {_standing(state)}",
        *_ready(readiness),
        *(() if state.serves else (f"ending   {ending.NEXT}",)),
        f"server   {server.url}: {known}",
        f"feed     {'connected' if feed.connected else 'not connected'}{losses}",
        f"load     {counted(len(state.clients), 'client')}, "
        f"{counted(len(state.sessions), 'session')}, "
        f"{counted(state.turns, 'prompt')} in flight{queue}",
    ]
    if state.counted:
        met = ", ".join(f"{name} {times}" for name, times in sorted(state.counted.items()))
        lines.append(f"counted  {met}")
    return [plain(line) for line in lines]


def _ready(readiness: Readiness | None) -> list[str]:
    """Whether a prompt would be served, and else a line on each thing that stands in the way."""
    if readiness is None:
        return ["ready    the daemon does not say"]
    lacking = [(name, one.why) for name, one in readiness.checks.items() if one.ok is False]
    return [
        f"ready    {'yes' if readiness.ready else 'no'}",
        *(f"missing  {name}: {why}" for name, why in lacking),
    ]


def _standing(state: State) -> str:
    if state.serves:
        return f"serving for {duration(state.seconds)}"
    return ending.standing(state.state, state.turns, state.drain_seconds)


def _row(client: ClientState) -> tuple[object, ...]:
    return (
        client.number,
        client.parent or client.pid,
        client.name or "-",
        client.turns,
        client.queue,
        client.holds,
        client.bytes,
        client.cwd or "-",
    )
