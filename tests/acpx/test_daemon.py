"""What users of acpx see of a daemon that ends or dies under them, and that nothing is lost."""

from __future__ import annotations

import asyncio
import signal

from adapter.commands.inquiry import STATE, get
from adapter.daemon.admin.shapes import State
from contract.attach import admin_socket
from tests.acpx.acpx import DEADLINE, Acpx, finish
from tests.acpx.test_acpx import the_session, until_running
from tests.scenarios.stage import FrontEnd, words
from tests.support.daemons import Daemons, LentDaemon


async def test_a_daemon_that_is_killed_in_mid_turn_and_started_again(
    relayed: Acpx, daemon: LentDaemon, daemons: Daemons, front: FrontEnd
) -> None:
    assert (await relayed.run("sessions", "new")).code == 0
    async with relayed.start("prompt", "@@text 60 50@@") as process:
        session = await until_running(front, relayed)
        daemon.kill()
        ran = await finish(process)
    assert ran.code == 1, ran
    assert "agent disconnected during request" in ran.out, ran
    await daemons.again(daemon)
    await front.until_idle(session)
    ran = await relayed.run("--format", "json", "prompt", "@@text 7@@")
    assert ran.code == 0, ran
    assert words(7) in ran.out, ran
    # What became of the first is told, and the server has all of it.
    assert "The last prompt of this session was answered." in ran.out, ran
    answers = [row["content"][0]["text"] for row in await front.rows(session, "assistant")]
    assert answers == [words(60), words(7)]
    assert len(await front.rows(session, "user")) == 2
    assert await the_session(front, relayed) == session
    # It came through the daemon that was started again.
    state = await asyncio.to_thread(get, admin_socket(daemon.path), STATE)
    (client,) = State.model_validate_json(state).clients
    assert relayed.agents() == [client.pid]


async def test_a_daemon_that_drains(relayed: Acpx, daemon: LentDaemon, front: FrontEnd) -> None:
    assert (await relayed.run("sessions", "new")).code == 0
    async with relayed.start("prompt", "@@text 400 50@@") as process:
        await until_running(front, relayed)
        daemon.process.send_signal(signal.SIGTERM)
        ran = await relayed.run("exec", "@@text 1@@")
        assert ran.code == 1, ran
        assert "exit=75" in ran.err, ran
        assert f"The daemon at {daemon.path} is ending: it waits for 1 turn, " in ran.err, ran
        # Who is there is served to the end.
        assert (await relayed.run("cancel")).code == 0
        ran = await finish(process)
        assert (ran.code, "cancelled" in ran.out) == (0, True), ran
    async with asyncio.timeout(DEADLINE):
        await daemon.process.wait()
