"""What users of acpx do, against the real server."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

from stubs.waiting import until
from tests.acpx.acpx import Acpx, finish
from tests.scenarios.stage import FrontEnd, words

WRITE = 'tool write {"path":"a.txt","content":"hello"}'


async def sessions(front: FrontEnd, acpx: Acpx) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await front.get("session", directory=str(acpx.project))
    return found


async def the_session(front: FrontEnd, acpx: Acpx) -> str:
    (session,) = await sessions(front, acpx)
    return str(session["id"])


async def until_running(front: FrontEnd, acpx: Acpx) -> str:
    """The id of the one session of the project, once it runs."""

    async def running() -> str | None:
        for session in await sessions(front, acpx):
            if await front.is_active(session["id"]):
                return str(session["id"])
        return None

    return await until("the turn runs", running, 30)


async def test_exec_prints_the_answer(acpx: Acpx) -> None:
    ran = await acpx.run("exec", "please @@think 2 && text 12 10@@")
    assert ran.code == 0, ran
    assert words(12).strip() in ran.out, ran


async def test_exec_in_strict_json(acpx: Acpx) -> None:
    ran = await acpx.run("--format", "json", "--json-strict", "exec", "@@text 3@@")
    assert (ran.code, ran.err) == (0, ""), ran
    lines = [json.loads(line) for line in ran.out.splitlines()]
    ends = [line["result"] for line in lines if "stopReason" in line.get("result", {})]
    assert [end["stopReason"] for end in ends] == ["end_turn"]


async def test_a_session_outlives_its_agent(acpx: Acpx, front: FrontEnd) -> None:
    assert (await acpx.run("sessions", "new")).code == 0
    session = await the_session(front, acpx)
    ran = await acpx.run("prompt", "@@text 4@@")
    assert (ran.code, words(4).strip() in ran.out) == (0, True), ran
    (agent,) = acpx.agents()
    os.kill(agent, signal.SIGKILL)
    ran = await acpx.run("prompt", "@@text 7@@")
    assert (ran.code, words(7).strip() in ran.out) == (0, True), ran
    assert await the_session(front, acpx) == session
    assert len(await front.rows(session, "user")) == 2
    assert acpx.agents() != [agent]


async def test_an_agent_that_dies_in_mid_turn(acpx: Acpx, front: FrontEnd) -> None:
    assert (await acpx.run("sessions", "new")).code == 0
    async with acpx.start("prompt", "@@text 60 50@@") as process:
        session = await until_running(front, acpx)
        (agent,) = acpx.agents()
        os.kill(agent, signal.SIGKILL)
        assert (await finish(process)).code == 1
    ran = await acpx.run("prompt", "@@text 7@@")
    assert (ran.code, words(7).strip() in ran.out) == (0, True), ran
    assert await the_session(front, acpx) == session


async def test_cancel(acpx: Acpx, front: FrontEnd) -> None:
    assert (await acpx.run("sessions", "new")).code == 0
    async with acpx.start("prompt", "@@text 400 50@@") as process:
        session = await until_running(front, acpx)
        assert (await acpx.run("cancel")).code == 0
        ran = await finish(process)
    assert (ran.code, "cancelled" in ran.out) == (0, True), ran
    await front.until_idle(session)
    (row,) = await front.rows(session, "assistant")
    assert row["error"]["type"] == "aborted"
    assert (await acpx.run("prompt", "@@text 2@@")).code == 0


async def test_approve_all(acpx: Acpx) -> None:
    ran = await acpx.run("--approve-all", "exec", f"@@{WRITE} || text 2@@")
    assert (ran.code, words(2).strip() in ran.out) == (0, True), ran
    assert (acpx.project / "a.txt").read_text(encoding="utf-8") == "hello"


async def test_deny_all(acpx: Acpx) -> None:
    ran = await acpx.run("--deny-all", "exec", f"@@{WRITE} || text 2@@")
    assert (ran.code, words(2).strip() in ran.out) == (5, True), ran
    assert "end_turn" in ran.out
    assert not (acpx.project / "a.txt").exists()


async def test_a_provider_error_is_shown(acpx: Acpx) -> None:
    ran = await acpx.run("exec", "@@error 400 always@@")
    assert ran.code == 1, ran
    assert "scripted error 400" in ran.out + ran.err, ran


async def test_a_timeout_stops_the_turn_on_the_server(acpx: Acpx, front: FrontEnd) -> None:
    ran = await acpx.run("--timeout", "3", "exec", "@@text 2000 50@@")
    assert ran.code == 3, ran
    session = await the_session(front, acpx)
    await front.until_idle(session)
    (row,) = await front.rows(session, "assistant")
    assert row["error"]["type"] == "aborted"
    assert acpx.agents() == []


async def test_the_model_is_chosen(acpx: Acpx, front: FrontEnd) -> None:
    ran = await acpx.run("--model", "fake/fake-2", "exec", "@@text 2@@")
    assert ran.code == 0, ran
    (row,) = await front.rows(await the_session(front, acpx), "assistant")
    assert row["model"]["id"] == "fake-2"


async def test_a_model_that_does_not_exist_is_no_lost_prompt(acpx: Acpx, front: FrontEnd) -> None:
    ran = await acpx.run("--model", "fake/none", "exec", "@@text 2@@")
    assert ran.code == 1, ran
    for session in await sessions(front, acpx):
        assert await front.rows(session["id"], "user") == []
