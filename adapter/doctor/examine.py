"""All looks in their order: from this command line to what a session would find."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from adapter.doctor import daemon, machine, server, settings
from adapter.doctor.findings import Finding, good, skipped, warning
from adapter.options import Options
from adapter.settings.faults import usable
from adapter.start import sockets
from adapter.upstream.client import Server
from adapter.upstream.credentials import Credential
from adapter.upstream.errors import Unauthorised, UpstreamError
from adapter.upstream.transport import ServerSettings

UNKNOWN: Final = "The settings have to be right first."
PATIENCE: Final = server.Patience()
UNSEEN: Final = skipped(server.CATALOGUE, "The daemon has to reach its server first.")
UNTRUSTED: Final = skipped(
    server.CATALOGUE,
    "Only the daemon knows how to ask this server; what a session finds there is not looked at.",
)


async def examine(
    options: Options,
    environ: Mapping[str, str],
    cwd: str,
    patience: server.Patience = PATIENCE,
) -> tuple[Finding, ...]:
    """The findings, in the order of a start. `cwd` is absolute.

    Who speaks with the server is looked at: a daemon that serves this user, or else an agent in a
    process of its own, with the password that it would find.
    """
    here = settings.look(options, environ)
    wanted = daemon.wishes(options, environ)
    # A fault elsewhere in the configuration does not say where the daemon is.
    _, admin = sockets(usable(options, environ)[0], environ)
    met = await asyncio.to_thread(daemon.look, wanted, admin)
    configuration, files, url = here.findings
    told: tuple[Finding, ...]
    if met.state is not None and met.readiness is not None:
        address = met.state.server.url
        url = good(settings.URL, f"The daemon's server is {address}.")
        told = daemon.of_server(met.state, met.readiness)
        if not any(one.code for one in told):
            beside = await _beside(here, address, cwd, patience)
        elif met.readiness.reaches:
            beside = (UNSEEN,)
        else:
            beside = (*await _silent(told[0], address, patience), UNSEEN)
        # What was seen from here stands for what the daemon says of the same.
        told = tuple({one.name: one for one in (*told, *beside)}.values())
    elif here.usable and here.server is not None:
        told = await server.look(here.server, here.credential, cwd, patience, here.ca_file)
    else:
        tcp = (await server.connect(here.server, patience.connect),) if here.server else ()
        told = (*tcp, *server.unseen(server.ALL[len(tcp) :], UNKNOWN))
    limits = (machine.descriptors(here.limits.connections), machine.inotify())
    return (configuration, files, met.finding, url, *told, *limits)


async def _silent(tcp: Finding, url: str, patience: server.Patience) -> tuple[Finding, ...]:
    """`tcp` with another advice if a process has the port, and does not answer the daemon."""
    connected = await server.connect(url, patience.connect)
    return () if connected.code else (replace(tcp, fix=server.RESTART),)


async def _beside(
    here: settings.Here, url: str, cwd: str, patience: server.Patience
) -> tuple[Finding, ...]:
    """The catalogue of `cwd` beside a daemon, whose admin socket does not tell it.

    And a password that stands here and is refused: the daemon's next start would fail by it. It
    goes to the server that it was meant for and to no other.
    """
    if not here.usable or here.server != url:
        return (UNTRUSTED,)
    async with Server(url, here.credential, ServerSettings(ca_file=here.ca_file)) as beside:
        try:
            await beside.info(deadline=patience.answer)
        except Unauthorised:
            return _other(here.credential)
        except UpstreamError as error:
            return (server.unopened(cwd, str(error)),)
        return (await server.catalogue(beside, cwd, patience.catalogue),)


def _other(credential: Credential | None) -> tuple[Finding, ...]:
    if credential is None:
        return (UNTRUSTED,)
    auth = warning(
        server.AUTHENTICATION,
        f"The server takes the daemon's password, and refuses that of {credential.source}.",
        "Put the server's password there: a daemon that reads this one, by a reload or a restart, "
        "is refused, and so is an agent without a daemon.",
    )
    return (auth, skipped(server.CATALOGUE, server.UNACCEPTED))
