"""`opencode-acp status`: what the daemon is at, on one screen."""

from __future__ import annotations

import argparse

from adapter.commands import inquiry
from adapter.commands.screen import columns, duration, plain
from adapter.daemon import ending
from adapter.daemon.admin.shapes import ClientState, State
from contract.words import counted

HEAD = ("NO", "PID", "NAME", "TURNS", "QUEUE", "HOLDS", "BYTES", "DIRECTORY")


def arguments(parser: argparse.ArgumentParser) -> None:
    inquiry.arguments(parser)


def run(given: argparse.Namespace) -> int:
    """The exit code, as `inquiry.show` has it."""
    return inquiry.show(given, screen)


def screen(state: State) -> str:
    """The screen, with a newline at its end."""
    lines = [*_head(state)]
    if state.clients:
        lines += ["", *columns([HEAD, *map(_row, state.clients)])]
    return "".join(f"{line}\n" for line in lines)


def _head(state: State) -> list[str]:
    feed, server = state.feed, state.server
    known = f"OpenCode {server.version}, process {server.pid}" if server.pid else "not seen yet"
    waiting = sum(client.queue for client in state.clients)
    losses = f", lost {counted(feed.losses, 'time')}" if feed.losses else ""
    queue = f", {waiting} of them waiting" if waiting else ""
    lines = [
        f"opencode-acp {state.version}, process {state.pid}, {_standing(state)}",
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
