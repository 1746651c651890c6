"""`opencode-acp sessions`: what the daemon's clients have open, and who has it open."""

from __future__ import annotations

import argparse

from adapter.commands import inquiry
from adapter.commands.screen import columns
from adapter.daemon.admin.shapes import SessionState, State

HEAD = ("SESSION", "CLIENTS", "TURNS", "STATE", "DIRECTORY")


def arguments(parser: argparse.ArgumentParser) -> None:
    inquiry.arguments(parser)


def run(given: argparse.Namespace) -> int:
    """The exit code, as `inquiry.show` has it."""
    return inquiry.show(given, lambda state, _: screen(state))


def screen(state: State) -> str:
    """A line for each session, with a newline at its end; a sentence if there is none."""
    if not state.sessions:
        return "No session is open.\n"
    named = {client.number: client.name for client in state.clients}
    rows = [_row(session, named) for session in state.sessions]
    return "".join(f"{line}\n" for line in columns([HEAD, *rows]))


def _row(session: SessionState, named: dict[int, str]) -> tuple[object, ...]:
    numbers = [one.client for one in session.attachments]
    who = [f"{number} {named[number]}" if named.get(number) else str(number) for number in numbers]
    return (
        session.id,
        ", ".join(who) or "-",
        len(session.turns),
        _state(session),
        session.directory or "-",
    )


def _state(session: SessionState) -> str:
    """In a few words: the phases of its turns, or what else is to be said of it."""
    if session.gap and session.turns:
        return "without the feed"
    if session.turns:
        return ", ".join(sorted({turn.phase for turn in session.turns}))
    if session.aside:
        return "put aside"
    return "not settled" if session.owes else "idle"
