"""A daemon's process from READY to its exit, as its service manager sees it.

O-01, O-02, O-03, O-04, O-05.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web

from adapter.daemon.daemon import State
from adapter.daemon.lifecycle import STATUS_SECONDS, Lifecycle, Signals
from adapter.daemon.notify import Manager
from adapter.daemon.reload import Configuration
from adapter.options import Options
from contract.attach import ACCEPTED, AUTH, CONTRACT, INTERRUPTED, OK, TEMPORARY, USAGE
from contract.routes import PROMPT, REQUIRED
from stubs.server import Settings as StubSettings
from stubs.server import StubServer
from stubs.server.faults import Rule
from stubs.waiting import until
from tests.support.daemons import COMMAND
from tests.unit.commands.process import Served, plain, serving, start
from tests.unit.daemon.house import Caller, house, visitors
from tests.unit.daemon.manager import Hearing, hearing

NOWHERE = "http://127.0.0.1:1"
SECRET = "a-password-of-the-tests"
LONG = "@@text 5000 5@@"


@dataclass(frozen=True)
class Site:
    """A daemon that has said READY, its manager, and the server."""

    served: Served
    manager: Hearing
    stub: StubServer
    caller: Caller
    root: Path

    def send(self, number: signal.Signals) -> None:
        self.served.process.send_signal(number)

    async def running(self, text: str = LONG) -> tuple[str, int]:
        """The session and the number of a prompt whose turn has begun."""
        session = await self.caller.new(self.root)
        ident = await self.caller.prompt(session, text)
        await self.caller.until_text(session, "w0 ")
        return session, ident

    def interrupts(self) -> int:
        return sum(one.path.endswith("/interrupt") for one in self.stub.log)

    async def ended(self) -> int:
        async def probe() -> bool:
            return self.served.process.returncode is not None

        await until("the daemon has ended", probe, 20)
        return int(self.served.process.returncode or 0)


@asynccontextmanager
async def site(
    root: Path, *flags: str, password: str | None = None, environ: Mapping[str, str] | None = None
) -> AsyncIterator[Site]:
    shape = StubSettings(
        project=str(root), request_delay=0, first_request_delay=0, password=password
    )
    with hearing(root) as manager:
        told = {"NOTIFY_SOCKET": manager.address} | dict(environ or {})
        async with (
            StubServer(shape) as stub,
            serving(root, stub.url, *flags, environ=told) as served,
            visitors(served.path) as come,
        ):
            await manager.until("READY=1")
            caller = come()
            assert await caller.greet() == ACCEPTED
            caller.read()
            yield Site(served, manager, stub, caller, root)


async def test_it_is_ready_without_a_server_and_finds_it_later(tmp_path: Path) -> None:
    async with StubServer() as stub:
        url = stub.url
    with hearing(tmp_path) as manager:
        environ = {"NOTIFY_SOCKET": manager.address}
        async with serving(tmp_path, url, environ=environ) as served:
            await manager.until("READY=1")
            assert "serving without the server" in served.log
            await manager.until_status("not seen so far", "feed down", "0 clients")
            async with StubServer(port=int(url.rpartition(":")[2])):
                await manager.until_status("OpenCode 2.0.15", "feed up")
                assert await served.end() == OK
        assert manager.heard()[-1] == "STOPPING=1"


async def test_a_server_that_says_nothing_does_not_hold_up_the_start(tmp_path: Path) -> None:
    async with StubServer() as stub:
        stub.faults.add(Rule("delay", "", times=100, seconds=60))
        with hearing(tmp_path) as manager:
            environ = {"NOTIFY_SOCKET": manager.address}
            async with serving(tmp_path, stub.url, environ=environ) as served:
                await manager.until("READY=1")
                assert "did not answer in time" in served.log


async def test_what_it_is_at_and_that_it_lives(tmp_path: Path) -> None:
    async with site(tmp_path, environ={"WATCHDOG_USEC": "100000"}) as there:
        await there.manager.until_status("serving", "feed up", "1 client,", "0 sessions")
        await there.running()
        await there.manager.until_status("1 session,", "1 prompt in flight")
        await there.manager.until("WATCHDOG=1", 3)
        there.send(signal.SIGTERM)
        await there.manager.until("STOPPING=1")
        # The feed is looked after while turns end.
        so_far = there.manager.heard().count("WATCHDOG=1")
        await there.manager.until("WATCHDOG=1", so_far + 2)
        await there.manager.until_status("draining")


async def test_a_status_comes_only_with_news(tmp_path: Path) -> None:
    looks = 0

    async def quick(seconds: float) -> None:
        nonlocal looks
        looks += seconds == STATUS_SECONDS
        await asyncio.sleep(0.001 if seconds == STATUS_SECONDS else seconds)

    async def looked() -> bool:
        return looks > 10

    with hearing(tmp_path) as manager, closing(Manager(manager.address)) as told:
        async with house(tmp_path, sleep=quick) as home:
            configuration = Configuration(Options({}), {})
            signals = Signals(abandon=lambda: None)
            life = Lifecycle(home.daemon, configuration, told, signals, None)
            living = asyncio.create_task(life.run())
            await manager.until_status("OpenCode 2.0.15, feed up", "0 clients")
            looks, before = 0, len(manager.heard())
            await until("some looks", looked)
            assert len(manager.heard()) == before
            await home.client()
            await manager.until_status("1 client,")
            signals.stop.set()
            await living
            assert home.daemon.state is State.CLOSED


async def test_it_ends_with_a_daemon_that_somebody_has_closed(tmp_path: Path) -> None:
    with hearing(tmp_path) as manager, closing(Manager(manager.address)) as told:
        async with house(tmp_path) as home:
            signals = Signals(abandon=lambda: None)
            life = Lifecycle(home.daemon, Configuration(Options({}), {}), told, signals, None)
            living = asyncio.create_task(life.run())
            await manager.until("READY=1")
            await home.daemon.close()
            async with asyncio.timeout(10):
                await living
            assert signals.reload is None
            await manager.until("STOPPING=1")


async def test_a_turn_that_ends_in_time_is_answered(tmp_path: Path) -> None:
    async with site(tmp_path) as there:
        session, ident = await there.running("@@text 60 5@@")
        there.send(signal.SIGINT)
        await there.manager.until("STOPPING=1")
        assert await there.caller.stop_reason(ident) == "end_turn"
        await there.caller.over()
        assert there.caller.text(session).endswith("w59 ")
        assert await there.ended() == OK
        assert there.interrupts() == 0
        assert not there.served.path.exists()


@pytest.mark.parametrize(("drain", "interrupts"), [("detach", 0), ("interrupt", 1)])
async def test_a_turn_that_does_not_end_in_time(
    tmp_path: Path, drain: str, interrupts: int
) -> None:
    async with site(tmp_path, "--drain-seconds", "0.2", "--drain", drain) as there:
        await there.running()
        there.send(signal.SIGTERM)
        await there.caller.over()
        assert await there.ended() == OK
        assert there.interrupts() == interrupts
        assert ": 1 turn in flight" in there.served.log
        assert "Traceback" not in there.served.log


@pytest.mark.parametrize("mode", ["auto", "require"])
async def test_a_command_that_comes_meanwhile_is_told_and_runs_no_agent(
    tmp_path: Path, mode: str
) -> None:
    async with site(tmp_path, "--drain-seconds", "3600") as there:
        await there.running()
        there.send(signal.SIGTERM)
        await there.manager.until("STOPPING=1")
        relay = await asyncio.create_subprocess_exec(
            COMMAND, "--socket", there.served.path, "--daemon", mode,
            stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=plain({}),
        )  # fmt: skip
        _, told = await relay.communicate()
        assert relay.returncode == TEMPORARY
        assert told.startswith(b"opencode-acp: The daemon at ")
        assert b"is ending: it waits for 1 turn, " in told
        assert told.count(b"\n") == 1
        next_one = await start(tmp_path / "run", NOWHERE, path=there.served.path)
        assert await next_one.process.wait() == TEMPORARY
        assert "one that ends lets go of it" in next_one.log


async def test_without_a_turn_it_waits_for_nothing(tmp_path: Path) -> None:
    async with site(tmp_path, "--drain-seconds", "3600") as there:
        there.send(signal.SIGTERM)
        assert await there.ended() == OK


async def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    async with site(tmp_path, "--drain-seconds", "3600") as there:
        await there.running()
        there.send(signal.SIGTERM)
        await there.manager.until("STOPPING=1")
        there.send(signal.SIGINT)
        assert await there.ended() == INTERRUPTED
        await there.caller.over()
        assert there.interrupts() == 0
        assert not list((tmp_path / "run").glob("*.sock"))


async def test_a_password_that_is_refused_later_does_not_end_it(tmp_path: Path) -> None:
    async with site(tmp_path) as there:
        await there.manager.until_status("feed up")
        there.stub.faults.unauthorized = True
        there.stub.cut_feed()
        await there.manager.until_status("password refused")
        there.stub.faults.unauthorized = False
        await there.manager.until_status("feed up")


# Exit codes of a start


async def lacking(request: web.Request) -> web.Response:
    """A server that has every route but one."""
    paths: dict[str, dict[str, object]] = {}
    for route in REQUIRED:
        if route != PROMPT:
            paths.setdefault(route.path, {})[route.method.lower()] = {}
    return web.json_response({"openapi": "3.1.0", "paths": paths})


async def something_else(request: web.Request) -> web.Response:
    return web.Response(text="<html>", content_type="text/html")


@asynccontextmanager
async def answering(kind: str) -> AsyncIterator[str]:
    """The address of a server that a daemon cannot work with."""
    if kind == "password":
        async with StubServer(StubSettings(password=SECRET)) as stub:
            yield stub.url
        return
    handler = {"route": lacking, "page": something_else}.get(kind)
    app = web.Application()
    if handler is not None:
        app.router.add_get("/openapi.json", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.05)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("kind", "environ", "code", "words"),
    [
        ("password", {}, AUTH, "authentication required"),
        (
            "password",
            {"OPENCODE_SERVER_PASSWORD": "another-secret"},
            AUTH,
            "OPENCODE_SERVER_PASSWORD; correct it there, then start the daemon again",
        ),
        ("route", {}, CONTRACT, PROMPT.name),
        ("page", {}, CONTRACT, "web page"),
        ("nothing", {}, CONTRACT, "answers something else"),
        ("nothing", {"OPENCODE_ACP_DRAIN": "sometimes"}, USAGE, "OPENCODE_ACP_DRAIN"),
        ("nothing", {"OPENCODE_ACP_PASSWORD_FILE": "missing"}, USAGE, "missing"),
    ],
)
async def test_a_start_that_cannot_work_has_a_code(
    tmp_path: Path, kind: str, environ: dict[str, str], code: int, words: str
) -> None:
    with hearing(tmp_path) as manager:
        async with answering(kind) as url:
            told = environ | {"NOTIFY_SOCKET": manager.address}
            served = await start(tmp_path, url, environ=told)
            assert await served.process.wait() == code
        lines = [line for line in served.log.splitlines() if '"level": "warning"' not in line]
        assert len(lines) == 1, served.log
        assert words in lines[0]
        assert "secret" not in served.log
        assert "READY=1" not in manager.heard()
        assert not list((tmp_path / "run").glob("*.sock"))
