"""Whether the daemon can serve a prompt now, and what stands in the way (O-21)."""

from __future__ import annotations

import asyncio
from typing import Final

from adapter.daemon.admin.shapes import Check, Readiness
from adapter.daemon.daemon import Daemon, State
from adapter.engine.tasks import Tasks
from adapter.upstream.errors import Unauthorised, UpstreamError
from contract.errors import AcpError

SECONDS: Final = 3.0
"""For the server's answers, all together."""

YES: Final = Check(ok=True)
FEED: Final = "The event feed is not connected; the adapter goes on trying."
SERVING: Final = "The daemon is {state} and takes no new client."
UNSEEN: Final = "The server has to answer first."
LATE: Final = "The OpenCode server did not answer in time."
PASSWORD: Final = "The OpenCode server refused the password of {source}; {fix}."
NO_PASSWORD: Final = "The OpenCode server wants a password, and the daemon was given none."


class Look:
    """Looks at a server; those who ask at the same time share one look."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon
        self._tasks = Tasks()
        self._look: asyncio.Task[Readiness] | None = None

    async def readiness(self) -> Readiness:
        """Takes `SECONDS` at most."""
        if self._look is None or self._look.done():
            self._look = self._tasks.start(self._now(), "readiness")
        return await asyncio.shield(self._look)

    async def aclose(self) -> None:
        await self._tasks.aclose()

    async def _now(self) -> Readiness:
        state, feed = self._daemon.state, self._daemon.engine.feed
        serving = state is State.SERVING
        server, auth, contract = await self._server()
        checks = {
            "daemon": YES if serving else Check(ok=False, why=SERVING.format(state=state.value)),
            "server": server,
            "auth": auth,
            "contract": contract,
            "feed": YES if feed.is_connected else Check(ok=False, why=FEED),
        }
        missing = tuple(name for name, check in checks.items() if not check.ok)
        return Readiness(ready=not missing, missing=missing, checks=checks)

    def _refused(self) -> str:
        settings = self._daemon.engine.settings
        if settings.credential is None:
            return NO_PASSWORD
        return PASSWORD.format(source=settings.credential.source, fix=settings.password_fix)

    async def _server(self) -> tuple[Check, Check, Check]:
        """Whether it is reachable, takes the password, and has the routes."""
        engine, unseen = self._daemon.engine, Check(ok=None, why=UNSEEN)
        try:
            async with asyncio.timeout(SECONDS):
                # The feed may live on a password that has been changed since.
                await engine.server.info()
                await engine.check_contract()
        except Unauthorised:
            return YES, Check(ok=False, why=self._refused()), unseen
        except AcpError as error:
            return YES, YES, Check(ok=False, why=error.message)
        except UpstreamError as error:
            return Check(ok=False, why=str(error)), unseen, unseen
        except TimeoutError:
            return Check(ok=False, why=LATE), unseen, unseen
        return YES, YES, YES
