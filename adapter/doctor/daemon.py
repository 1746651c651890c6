"""The daemon as a relay would meet it, and what it says itself of its server."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError

from adapter import relay
from adapter.commands.inquiry import READINESS, STATE, NoDaemon, get
from adapter.daemon import ending
from adapter.daemon.admin.shapes import Check, Readiness, State
from adapter.daemon.exposure import ROOT, exposed
from adapter.daemon.hello import credentials
from adapter.doctor import server
from adapter.doctor.findings import Finding, failed, good, skipped, warning
from adapter.options import Options
from contract.attach import AUTH, CONTRACT, TEMPORARY, USAGE
from contract.version import VERSION

DAEMON: Final = "daemon"
START: Final = "Start it by `opencode-acp serve`, or let agents work without it (--daemon auto)."
ALLOWED: Final = (
    "Run a daemon of your own (--socket), or have its operator let you in: by the rights of its "
    "socket, and by allowed_uids."
)
PLACE: Final = (
    "Name a socket in a directory of mode 0700 by --socket, to the daemon and its clients."
)
LOG: Final = "Look at the daemon's log."
LATER: Final = "`opencode-acp status` shows who is there; try again later."


@dataclass(frozen=True, slots=True)
class Met:
    """`serves`: a client of this user gets in by these settings.

    State and readiness are what it says at its admin socket, None where nobody answers there.
    """

    finding: Finding
    serves: bool = False
    state: State | None = None
    readiness: Readiness | None = None


def wishes(options: Options, environ: Mapping[str, str]) -> relay.Wishes | None:
    """What an agent with these settings would ask of a daemon; None if it uses none."""
    argv = [f"--{name.replace('_', '-')}={value}" for name, value in options.given.items()]
    variables = {os.fsencode(name): os.fsencode(value) for name, value in environ.items()}
    return relay.read(argv, variables)


def look(wanted: relay.Wishes | None, admin: str) -> Met:
    """Comes as a client and leaves again; `admin` is the path of the admin socket."""
    if wanted is None:
        return Met(skipped(DAEMON, "Agents with these settings use no daemon."))
    path = wanted.socket
    try:
        sock = relay.connect(wanted)
    except relay.Refused as refusal:
        fixes = {AUTH: ALLOWED, USAGE: PLACE}
        return Met(failed(DAEMON, refusal.code, str(refusal), fixes.get(refusal.code, START)))
    if sock is None:
        return Met(_nobody(path))
    try:
        with socket.socket(fileno=sock.detach()) as connected:
            relay.introduce(connected, wanted)
            uid = credentials(connected).uid
    except relay.Refused as refusal:
        return _refused(refusal, admin)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return Met(failed(DAEMON, TEMPORARY, f"The daemon at {path} left: {reason}.", LOG))
    return asked(path, uid, admin)


def _nobody(path: str) -> Finding:
    if relay.in_the_way(path):
        return warning(
            DAEMON,
            f"{path} is no socket, so no daemon can listen there; agents work without one.",
            "Remove it, or name another path by --socket.",
        )
    if os.path.lexists(path):
        return warning(
            DAEMON,
            f"The socket {path} is left of a daemon that is gone; agents work without one.",
            "Start `opencode-acp serve`, which takes its place, or remove the socket.",
        )
    return good(DAEMON, f"No daemon listens at {path}: each agent works in a process of its own.")


def _refused(refusal: relay.Refused, admin: str) -> Met:
    """What was told to us who came, and how the daemon stands that told it."""
    code, sentence = refusal.code, str(refusal)
    if code == AUTH:
        return Met(failed(DAEMON, code, sentence, ALLOWED))
    if code != TEMPORARY:
        fix = "Leave out the settings that differ, or change those of the daemon."
        return Met(failed(DAEMON, code, sentence, fix))
    try:
        state, readiness = _told(admin)
    except (NoDaemon, ValidationError):
        return Met(failed(DAEMON, code, sentence, LOG))
    if state.serves:
        return Met(failed(DAEMON, code, sentence, LATER), False, state, readiness)
    stands = ending.standing(state.state, state.turns, state.drain_seconds)
    sentence = f"The daemon {state.version}, process {state.pid}, is {stands}."
    return Met(failed(DAEMON, code, sentence, ending.NEXT), False, state, readiness)


def _told(admin: str) -> tuple[State, Readiness]:
    """What the daemon says of itself and its server. Raises NoDaemon, ValidationError."""
    state = State.model_validate_json(get(admin, STATE))
    return state, Readiness.model_validate_json(get(admin, READINESS))


def asked(path: str, uid: int, admin: str) -> Met:
    """What the daemon that has let us in says of itself; `uid` is the user who has its socket."""
    try:
        state, readiness = _told(admin)
    except (NoDaemon, ValidationError) as error:
        told = str(error) if isinstance(error, NoDaemon) else "It is of another version."
        unasked = warning(
            DAEMON,
            f"The daemon at {path} serves this user, but cannot be asked for its state: {told}",
            "Name its admin socket by --admin-socket.",
        )
        return Met(_safe(path, uid) or unasked, serves=True)
    finding = good(DAEMON, f"The daemon {state.version}, process {state.pid}, serves this user.")
    if state.version != VERSION:
        finding = warning(
            DAEMON,
            f"The daemon is {state.version}, and this is {VERSION}.",
            "Start it again after an upgrade.",
        )
    return Met(_safe(path, uid) or finding, True, state, readiness)


def _safe(path: str, uid: int) -> Finding | None:
    """A warning if somebody else could read what clients say, or take the daemon's place."""
    if uid not in (0, os.getuid()):
        # With systemd's activation that is whoever opened the socket (unix(7), SO_PEERCRED).
        return warning(
            DAEMON,
            f"The daemon at {path} is of user {uid}, who sees all that agents say.",
            "Make sure that it is the one you mean.",
        )
    try:
        found = exposed(os.path.dirname(path), (ROOT, os.getuid()), sticky=True)
    except OSError:
        return None
    if found is not None:
        return warning(
            DAEMON,
            f"Others may write in {found[0]}, and so put a socket of theirs in the daemon's place.",
            f"chmod go-w {found[0]}, or name a socket elsewhere by --socket.",
        )
    return None


def of_server(state: State, readiness: Readiness) -> tuple[Finding, ...]:
    """What the daemon says of its server, whose password it alone may know."""
    checks = readiness.checks
    url, seen = state.server.url, state.server
    version = server.judge_version(seen.version, seen.pid)
    if not seen.version:
        version = skipped(server.VERSION, "The daemon has not seen it yet.")
    elif not readiness.reaches:
        told = f"OpenCode {seen.version}, process {seen.pid}, when it last answered."
        version = skipped(server.VERSION, told)
    taken = "The server takes the daemon's password."
    return (
        _said(server.TCP, checks.get("server"), TEMPORARY, f"The daemon reaches {url}."),
        _said(server.AUTHENTICATION, checks.get("auth"), AUTH, taken),
        version,
        _said(server.ROUTES, checks.get("contract"), CONTRACT, "All that are needed are there."),
        _said(server.FEED, checks.get("feed"), TEMPORARY, "The daemon's feed is connected."),
    )


def _said(name: str, check: Check | None, code: int, sentence: str) -> Finding:
    if check is None or check.ok is None:
        return skipped(name, check.why if check is not None else "The daemon does not say.")
    if check.ok:
        return good(name, sentence)
    fixes = {
        server.TCP: server.START,
        server.AUTHENTICATION: "The daemon needs the password that the server was started with.",
        server.ROUTES: server.UPGRADE,
    }
    return failed(name, code, check.why, fixes.get(name, LOG))
