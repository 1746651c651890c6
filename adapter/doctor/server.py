"""The server as an agent would meet it: connection, password, version, routes, feed, catalogue."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass, field
from typing import Final, NoReturn
from urllib.parse import urlsplit

from adapter.doctor.findings import Finding, failed, good, skipped, warning
from adapter.upstream.catalogue import Catalogues, CatalogueSettings
from adapter.upstream.client import Server
from adapter.upstream.credentials import PASSWORD_VARIABLES, Credential
from adapter.upstream.errors import Ambiguous, Unauthorised, Unreachable, UpstreamError
from adapter.upstream.feed import Feed, FeedSettings
from adapter.upstream.transport import ServerSettings
from adapter.upstream.watch import Watch
from contract.attach import AUTH, CONTRACT, TEMPORARY, USAGE
from contract.events import CatalogueChanged, Event
from contract.routes import REQUIRED, missing
from contract.words import counted

TCP: Final = "tcp"
AUTHENTICATION: Final = "auth"
VERSION: Final = "version"
ROUTES: Final = "routes"
FEED: Final = "feed"
CATALOGUE: Final = "catalogue"
ALL: Final = (TCP, AUTHENTICATION, VERSION, ROUTES, FEED, CATALOGUE)
TESTED: Final = "2.0.15"
"""The OpenCode that every test of the adapter runs on."""
SHOWN: Final = 3
UNACCEPTED: Final = "The server has to accept the password first."

START: Final = "Start it by `opencode serve`, or look at its log."
RESTART: Final = (
    "A process takes connections there and does not answer: look at its log, restart it."
)
UPGRADE: Final = f"Run OpenCode {TESTED} at this address."


@dataclass(frozen=True, slots=True)
class Patience:
    """Seconds for each look."""

    connect: float = 5.0
    answer: float = 5.0
    first_frame: float = 5.0
    catalogue: float = 10.0


async def look(
    url: str,
    credential: Credential | None,
    cwd: str,
    patience: Patience,
    ca_file: str | None = None,
) -> tuple[Finding, ...]:
    """A finding for each of `ALL`. Reading the catalogue opens `cwd` at the server."""
    tcp = await connect(url, patience.connect)
    if tcp.code:
        return (tcp, *unseen(ALL[1:], "The server has to be reached first."))
    settings = ServerSettings(
        connect=patience.connect,
        read=patience.answer,
        deadline=patience.answer,
        attempts=2,
        ca_file=ca_file,
    )
    async with Server(url, credential, settings) as server:
        try:
            info = await server.info()
        except UpstreamError as error:
            return (tcp, *_no_answer(error, credential))
        auth, version = _taken(credential), judge_version(info.version, info.pid)
        routes = await _routes(server)
        feed = await _feed(server, patience.first_frame)
        return tcp, auth, version, routes, feed, await catalogue(server, cwd, patience.catalogue)


def unseen(names: tuple[str, ...], why: str) -> tuple[Finding, ...]:
    return tuple(skipped(name, why) for name in names)


async def connect(url: str, seconds: float) -> Finding:
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(parts.hostname, port)
        writer.close()
    except socket.gaierror:
        return failed(
            TCP,
            TEMPORARY,
            f"The name {parts.hostname} has no address.",
            "Correct --server, or the machine's resolver.",
        )
    except ConnectionRefusedError:
        return failed(TCP, TEMPORARY, f"Nobody listens at {url}.", START)
    except TimeoutError:
        return failed(TCP, TEMPORARY, f"No connection to {url} within {seconds:g} s.", START)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return failed(TCP, TEMPORARY, f"There is no way to {url}: {reason}.", START)
    return good(TCP, f"A process listens at {url}.")


def _no_answer(error: UpstreamError, credential: Credential | None) -> tuple[Finding, ...]:
    rest = (ROUTES, FEED, CATALOGUE)
    match error:
        case Unauthorised():
            auth = refused(credential)
            return (auth, *unseen((VERSION, *rest), UNACCEPTED))
        case Unreachable() | Ambiguous():
            auth = failed(AUTHENTICATION, TEMPORARY, str(error), RESTART)
            return (auth, *unseen((VERSION, *rest), "The server has to answer first."))
    version = failed(VERSION, CONTRACT, f"This is no OpenCode 2: {error}", UPGRADE)
    why = "What listens there has to be OpenCode 2 first."
    return (skipped(AUTHENTICATION, why), version, *unseen(rest, why))


def refused(credential: Credential | None) -> Finding:
    """Of a server that answers 401: which password it did not take, and where else one may be."""
    names = " or ".join(PASSWORD_VARIABLES)
    if credential is None:
        return failed(
            AUTHENTICATION,
            AUTH,
            "The server wants a password, and none is set.",
            f"Name a file by --password-file, or set {names}, to what the server was started with.",
        )
    return failed(
        AUTHENTICATION,
        AUTH,
        f"The server refuses the password of {credential.source}.",
        "Put the password there that the server was started with; it takes no other until it is "
        "started again.",
    )


def _taken(credential: Credential | None) -> Finding:
    if credential is None:
        return warning(
            AUTHENTICATION,
            "The server takes requests without a password, from every user of the machine.",
            "Start it with OPENCODE_SERVER_PASSWORD.",
        )
    return good(AUTHENTICATION, f"The server takes the password of {credential.source}.")


def judge_version(version: str, pid: int) -> Finding:
    """Another 2.x is judged by its routes; any other major version has another API."""
    if version == TESTED:
        return good(VERSION, f"OpenCode {TESTED}, process {pid}.")
    if version.partition(".")[0] == TESTED.partition(".")[0]:
        return warning(
            VERSION,
            f"OpenCode {version}; the adapter was tested with {TESTED}.",
            f"If something is odd, try it with OpenCode {TESTED}.",
        )
    return failed(
        VERSION,
        CONTRACT,
        f"OpenCode {version} has another API than {TESTED}, which the adapter speaks.",
        UPGRADE,
    )


async def _routes(server: Server) -> Finding:
    try:
        lacking = missing(await server.routes())
    except UpstreamError as error:
        return failed(ROUTES, CONTRACT, f"The routes cannot be read: {error}", UPGRADE)
    if not lacking:
        return good(ROUTES, f"All {len(REQUIRED)} routes that the adapter needs are there.")
    names = ", ".join(route.name for route in lacking[:SHOWN])
    more = f" and {len(lacking) - SHOWN} more" if len(lacking) > SHOWN else ""
    return failed(ROUTES, CONTRACT, f"Routes are missing: {names}{more}.", UPGRADE)


@dataclass(slots=True)
class _Ear:
    """Hears how the first attempt of the feed ended: "" with its first event, else why not."""

    first: asyncio.Future[str] = field(default_factory=asyncio.Future)

    def connected(self) -> None:
        self.lost("")

    def event(self, event: Event | CatalogueChanged, size: int) -> None:
        """What comes after the first is nothing to the doctor."""

    def lost(self, reason: str) -> None:
        if not self.first.done():
            self.first.set_result(reason)

    def unauthorised(self) -> None:
        self.lost("the server refused the password")

    def ended(self, task: asyncio.Task[NoReturn]) -> None:
        """The feed never ends by itself, so that this is a fault of ours."""
        fault = None if task.cancelled() else task.exception()
        if fault is not None and not self.first.done():
            self.first.set_exception(fault)


async def _feed(server: Server, seconds: float) -> Finding:
    ear = _Ear()
    feed = Feed(server, Watch(), ear, settings=FeedSettings(first_frame=seconds))
    task = asyncio.create_task(feed.run(), name="feed")
    task.add_done_callback(ear.ended)
    try:
        reason = await ear.first
    finally:
        task.cancel()
        await asyncio.wait({task})
    if not reason:
        return good(FEED, f"The first event comes within {seconds:g} s.")
    return failed(
        FEED,
        TEMPORARY,
        f"The event feed does not begin within {seconds:g} s: {reason}.",
        "Start the server again; a proxy between must pass events on as they come.",
    )


async def catalogue(server: Server, cwd: str, seconds: float) -> Finding:
    """What a session in `cwd` can choose from, once the server has booted that directory."""
    catalogues = Catalogues(server, CatalogueSettings(deadline=seconds))
    try:
        async with asyncio.timeout(2 * seconds):
            if not await server.has_directory(cwd):
                return failed(
                    CATALOGUE,
                    USAGE,
                    f"The server has no directory {cwd}, or may not enter it.",
                    "Name one that is there by --cwd; its user has to have access.",
                )
            found = await catalogues.get(cwd)
    except (UpstreamError, TimeoutError) as error:
        return unopened(cwd, str(error) or "The server does not answer.")
    finally:
        await catalogues.aclose()
    if not found.agents:
        # A directory has agents of OpenCode's own as soon as it is open.
        return unopened(cwd, f"It has no agent after {seconds:g} s.")
    if not found.models:
        return failed(
            CATALOGUE,
            USAGE,
            f"There is no model for {cwd}, so every prompt fails.",
            "Configure a provider for OpenCode, or sign in to one.",
        )
    models, agents = counted(len(found.models), "model"), counted(len(found.agents), "agent")
    told = f"{models} and {agents} for {cwd}"
    if found.default is None:
        return warning(
            CATALOGUE,
            f"{told}, and no default model: each session has to choose one.",
            "Set `model` in OpenCode's configuration.",
        )
    return good(CATALOGUE, f"{told}; the default is {found.default.key}.")


def unopened(cwd: str, why: str) -> Finding:
    return failed(
        CATALOGUE,
        TEMPORARY,
        f"The directory {cwd} cannot be opened at the server: {why}",
        "Look at the server's log for that directory, and at the finding `inotify`.",
    )
