"""The engine: routing by root, the contract check, the feed's comings and goings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import respx

from adapter.acp.prompts import PromptContent
from adapter.config import Settings
from adapter.core import descendants
from adapter.core import values as v
from adapter.engine.client import Attachment
from adapter.engine.engine import Engine
from adapter.engine.hub import Hub
from adapter.upstream.errors import Unreachable, UpstreamError
from contract.errors import AcpError, Code
from contract.reads import Session
from contract.routes import ROUTES
from stubs.server import Cut, Rule
from stubs.waiting import until
from tests.unit.engine.front import Stage, stage, words
from tests.unit.engine.rig import URL, no_pause, unreachable
from tests.unit.engine.test_hub import Listener


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Stage]:
    async with stage(tmp_path) as scene:
        await scene.until_up()
        yield scene


def openapi(*left_out: str) -> httpx.Response:
    paths: dict[str, dict[str, object]] = {}
    for route in ROUTES:
        if route.name not in left_out:
            paths.setdefault(route.path, {})[route.method.lower()] = {}
    return httpx.Response(200, json={"paths": paths})


# Sessions


async def test_an_owner_is_a_number_of_its_own(scene: Stage) -> None:
    owners = [scene.engine.new_owner() for _ in range(3)]
    assert len(set(owners)) == 3


async def test_a_session_has_one_hub_until_it_is_released(scene: Stage) -> None:
    session = Session(id="ses_a")
    hub = scene.engine.hub(session, "/srv")
    assert scene.engine.hub(session, "/srv") is hub
    assert "ses_a" in scene.engine.watch
    await scene.engine.release(hub)
    assert "ses_a" not in scene.engine.watch
    await scene.engine.release(hub)
    assert scene.engine.hub(session, "/srv") is not hub


async def test_children_are_followed_and_let_go_with_their_root(scene: Stage) -> None:
    hub = scene.engine.hub(Session(id="ses_a"), "/srv")
    other = scene.engine.hub(Session(id="ses_z"), "/srv")

    def created(child: str, parent: str) -> None:
        data = {"sessionID": child, "parentID": parent}
        scene.stub.inject({"id": f"evt_{child}", "type": "session.created", "data": data})

    created("ses_b", "ses_a")
    created("ses_c", "ses_b")
    created("ses_q", "ses_unknown")
    created("ses_y", "ses_z")

    async def followed() -> bool:
        return "ses_y" in scene.engine.watch

    await until("the children", followed)
    assert "ses_c" in scene.engine.watch
    assert "ses_q" not in scene.engine.watch
    assert hub.core.children == {"ses_b", "ses_c"}
    await scene.engine.release(hub)
    assert [key in scene.engine.watch for key in ("ses_a", "ses_b", "ses_c", "ses_y")] == [
        False,
        False,
        False,
        True,
    ]
    assert other.core.children == {"ses_y"}


async def test_a_session_that_is_released_again_and_again_is_waited_for_once(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    owing = True
    monkeypatch.setattr(Hub, "owes", property(lambda _: owing))
    hub = scene.engine.hub(Session(id="ses_a"), "/srv")

    async def waiting() -> int:
        return sum(task.get_name() == "release of ses_a" for task in asyncio.all_tasks())

    for _ in range(3):
        await scene.engine.release(hub)

    async def once() -> bool:
        return await waiting() == 1

    await until("the end of the others", once)
    owing = False
    hub.step(v.Watch(1, wanted=False))

    async def gone() -> bool:
        return await waiting() == 0

    await until("the end of the wait", gone)
    assert "ses_a" not in scene.engine.watch


async def test_a_descendant_that_makes_room_is_heard_no_more(
    scene: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(descendants, "BOUND", 4)
    scene.engine.hub(Session(id="ses_a"), "/srv")
    for number in range(5):
        data = {"sessionID": f"ses_{number}", "parentID": "ses_a"}
        scene.stub.inject({"id": f"evt_{number}", "type": "session.created", "data": data})

    async def followed() -> bool:
        return "ses_4" in scene.engine.watch

    await until("the children", followed)
    assert "ses_0" not in scene.engine.watch
    assert len(scene.engine.watch) == scene.engine.tables()["followed"] == 5


async def test_a_full_engine_takes_no_more_sessions(scene: Stage) -> None:
    number = 0
    while scene.engine.watch.add(f"ses_{number}"):
        number += 1
    with pytest.raises(AcpError) as caught:
        scene.engine.hub(Session(id="ses_one_more"), "/srv")
    assert caught.value.code == Code.LIMIT


# The contract


@respx.mock
async def test_a_server_without_a_required_route_is_refused_by_name() -> None:
    gone = [route.name for route in ROUTES if route.required][:5]
    route = respx.get(f"{URL}/openapi.json").mock(openapi(*gone))
    engine = Engine(Settings(server=URL))
    with pytest.raises(AcpError) as caught:
        await engine.check_contract()
    assert caught.value.code == Code.ROUTE_MISSING
    assert gone[0] in caught.value.message
    assert "and 2 more" in caught.value.message
    assert set((caught.value.data or {})["missing"]) == set(gone)  # type: ignore[call-overload]
    # The server may be replaced meanwhile.
    route.mock(openapi())
    await engine.check_contract()
    await engine.__aexit__()


@respx.mock
async def test_the_contract_is_read_once_for_all_who_wait() -> None:
    route = respx.get(f"{URL}/openapi.json").mock(openapi())
    engine = Engine(Settings(server=URL))
    await asyncio.gather(*(engine.check_contract() for _ in range(5)))
    await engine.check_contract()
    assert route.call_count == 1
    await engine.__aexit__()


@respx.mock
async def test_a_server_that_was_down_is_checked_again() -> None:
    route = respx.get(f"{URL}/openapi.json").mock(side_effect=unreachable)
    engine = Engine(Settings(server=URL))
    with pytest.raises(Unreachable):
        await engine.check_contract()
    route.mock(side_effect=None, return_value=openapi())
    await engine.check_contract()
    await engine.__aexit__()


async def test_a_caller_that_gives_up_leaves_the_check_to_the_others(scene: Stage) -> None:
    first = asyncio.create_task(scene.engine.check_contract())
    second = asyncio.create_task(scene.engine.check_contract())
    await asyncio.sleep(0)
    first.cancel()
    await second
    assert len(scene.asked("GET", "/openapi.json")) == 1


# The feed


async def run(scene: Stage, listener: Listener, text: str) -> asyncio.Future[v.Outcome]:
    """A turn of a new session."""
    session = await scene.engine.server.create_session(str(scene.root))
    hub = scene.engine.hub(session, str(scene.root))
    owner = scene.engine.new_owner()
    hub.attach(Attachment(owner, listener))
    return hub.prompt(owner, f"msg_acp_{owner}", PromptContent(text))


async def test_a_gap_is_one_for_every_session(scene: Stage) -> None:
    listeners = [Listener(), Listener()]
    answers = [await run(scene, one, "@@text 40 10@@") for one in listeners]
    for one in listeners:
        await one.until_text(3)
    scene.stub.feed.cut(Cut(0))
    outcomes = [await answer for answer in answers]
    assert [(one.stop, one.gaps) for one in outcomes] == [(v.Stop.END_TURN, 1)] * 2
    assert ["".join(one.texts) for one in listeners] == [words(40)] * 2


async def test_a_fault_of_ours_in_one_event_is_a_gap_and_no_end(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with stage(tmp_path) as scene:
        await scene.until_up()
        listener = Listener()
        faults = [RuntimeError("a fault of the client's end")]

        def fail_once() -> None:
            if len(listener.texts) > 1 and faults:
                listener.texts.pop()
                raise faults.pop()

        listener.on_text = fail_once
        other = Listener()
        answer = await run(scene, listener, "@@text 40 10@@")
        beside = await run(scene, other, "@@text 60 10@@")
        async with asyncio.timeout(10):
            assert (await answer).stop is v.Stop.END_TURN
            assert (await beside).stop is v.Stop.END_TURN
        assert faults == []
        assert "an event could not be taken" in caplog.text
        # What the fault swallowed is lost; all that follows, and every neighbour, is whole.
        assert "".join(other.texts) == words(60)
        assert "".join(listener.texts).endswith("w38 w39 ")


async def test_a_change_of_a_directory_is_read_anew(scene: Stage) -> None:
    directory = str(scene.root)
    await scene.engine.catalogues.get(directory)
    await scene.engine.catalogues.get(directory)
    assert len(scene.asked("GET", "/api/agent")) == 1
    scene.stub.host.journal.plain("agent.updated", {}, directory)

    async def anew() -> bool:
        await scene.engine.catalogues.get(directory)
        return len(scene.asked("GET", "/api/agent")) == 2

    await until("another read", anew)


async def test_a_new_server_process_is_noticed(scene: Stage) -> None:
    reads = len(scene.asked("GET", "/api/info"))
    await scene.stub.restart("finished")
    await scene.until_asked("GET", "/api/info", reads + 1)


async def test_a_new_process_is_noticed_whoever_reads_its_number_first(scene: Stage) -> None:
    """The look at the new connection is held up, and the reading of a turn is not."""
    front = await scene.front()
    session = await front.new(scene.root)
    front.prompt(session, "@@text 3 && wait 60000@@")
    await front.until_text(session, words(3))
    await scene.engine.check_contract()
    number = scene.engine.server_seen[1]
    scene.stub.faults.add(Rule("delay", "/api/info", seconds=30))
    await scene.stub.restart("lost")

    async def seen() -> bool:
        return scene.engine.server_seen[1] != number

    await until("the new process is seen", seen)
    await scene.engine.check_contract()
    assert len(scene.asked("GET", "/openapi.json")) == 2


async def test_leaving_the_engine_leaves_no_task(tmp_path: Path) -> None:
    before = asyncio.all_tasks()
    async with stage(tmp_path) as scene:
        listener = Listener()
        answer = await run(scene, listener, "@@text 3 && wait 60000@@")
        await listener.until_text(3)
    assert answer.result().code == Code.UNKNOWN_OUTCOME
    assert asyncio.all_tasks() == before


async def test_leaving_the_engine_ends_a_check_that_another_process_made_old(
    tmp_path: Path,
) -> None:
    before = asyncio.all_tasks()
    async with stage(tmp_path) as scene:
        await scene.until_up()
        number = scene.engine.server_seen[1]
        scene.stub.faults.add(Rule("delay", "/openapi.json", times=2, seconds=30))
        old = asyncio.create_task(scene.engine.check_contract())
        await scene.until_asked("GET", "/openapi.json", 1)
        await scene.stub.restart("lost")

        async def seen() -> bool:
            return scene.engine.server_seen[1] not in (0, number)

        await until("the new process is seen", seen)
        new = asyncio.create_task(scene.engine.check_contract())
        await asyncio.sleep(0)
    ended = await asyncio.gather(old, new, return_exceptions=True)
    assert all(isinstance(one, asyncio.CancelledError | UpstreamError) for one in ended)
    assert asyncio.all_tasks() == before


async def test_an_engine_that_never_ran_can_be_left() -> None:
    async with Engine(Settings(server=URL), sleep=no_pause):
        pass
