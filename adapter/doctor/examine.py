"""All looks in their order: from this command line to what a session would find."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from adapter.doctor import daemon, machine, server, settings
from adapter.doctor.findings import Finding, good, skipped
from adapter.options import Options
from adapter.settings.faults import usable
from adapter.start import sockets
from adapter.upstream.client import Server
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
        reached = not any(one.code for one in told)
        told = (*told, await _beside(here, address, cwd, patience) if reached else UNSEEN)
    elif here.usable and here.server is not None:
        told = await server.look(here.server, here.credential, cwd, patience, here.ca_file)
    else:
        tcp = (await server.connect(here.server, patience.connect),) if here.server else ()
        told = (*tcp, *server.unseen(server.ALL[len(tcp) :], UNKNOWN))
    limits = (machine.descriptors(here.limits.connections), machine.inotify())
    return (configuration, files, met.finding, url, *told, *limits)


async def _beside(here: settings.Here, url: str, cwd: str, patience: server.Patience) -> Finding:
    """The catalogue of `cwd` beside a daemon, whose admin socket does not tell it.

    The password that stands here goes to the server that it was meant for and to no other.
    """
    if not here.usable or here.server != url:
        return UNTRUSTED
    async with Server(url, here.credential, ServerSettings(ca_file=here.ca_file)) as beside:
        try:
            await beside.info(deadline=patience.answer)
        except Unauthorised:
            return UNTRUSTED
        except UpstreamError as error:
            return server.unopened(cwd, str(error))
        return await server.catalogue(beside, cwd, patience.catalogue)
