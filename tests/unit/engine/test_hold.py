"""A session that is being loaded: what happens meanwhile follows the replay, and once."""

from __future__ import annotations

import asyncio

from adapter.core.offsets import Part
from adapter.engine.owed import KEPT, Shown
from tests.unit.engine.test_backlog import OTHER, SESSION, Client, Json, chunk

NOTHING = Shown({}, {})


def tool(status: str, ident: str = "t", kind: str = "tool_call") -> Json:
    return {"sessionUpdate": kind, "toolCallId": ident, "status": status}


def reading() -> Client:
    """A client that takes everything at once."""
    client = Client()
    client.room.set()
    return client


class Lingering(Client):
    """Its first fetch never ends, and takes a while to be cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.fetching, self.leaving, self.may_leave = (asyncio.Event() for _ in range(3))

    async def _fetch(self, session_id: str, message_id: str) -> object:
        if self.fetching.is_set():
            return await super()._fetch(session_id, message_id)
        self.fetching.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.leaving.set()
            await self.may_leave.wait()
        return None


async def test_what_is_held_follows_in_order_and_needs_no_reading() -> None:
    client = reading()
    hold = client.backlog.hold(SESSION)
    client.backlog.owe_text(SESSION, chunk("one ", 0))
    client.backlog.owe(SESSION, tool("in_progress"))
    client.backlog.owe_text(SESSION, chunk("two", 4))
    assert client.backlog.busy(SESSION)
    assert not client.backlog.busy(OTHER)
    assert client.sent == []
    client.backlog.release(SESSION, hold, NOTHING)
    await client.backlog.drained(SESSION)
    assert client.texts_sent() == ["one two"]
    assert client.sent[1] == tool("in_progress")
    assert not client.backlog.busy(SESSION)


async def test_more_than_is_kept_is_read_from_the_server() -> None:
    client = reading()
    text = "x" * (KEPT + 1)
    client.texts["msg_a"] = [text]
    hold = client.backlog.hold(SESSION)
    client.backlog.owe_text(SESSION, chunk(text, 0))
    client.backlog.release(SESSION, hold, NOTHING)
    await client.backlog.drained(SESSION)
    assert "".join(client.texts_sent()) == text


async def test_what_the_replay_showed_is_left_out() -> None:
    client = reading()
    hold = client.backlog.hold(SESSION)
    client.backlog.owe_text(SESSION, chunk("shown", 0))
    client.backlog.owe_text(SESSION, chunk("half new", 0, "msg_b"))
    client.backlog.owe(SESSION, tool("in_progress", "over"))
    client.backlog.owe(SESSION, tool("completed", "open"))
    client.backlog.owe(SESSION, tool("pending", "new"))
    shown = Shown(
        {Part("msg_a", "text", 0): 5, Part("msg_b", "text", 0): 5}, {"over": True, "open": False}
    )
    client.backlog.release(SESSION, hold, shown)
    await client.backlog.drained(SESSION)
    assert client.texts_sent() == ["new"]
    assert client.sent[1:] == [
        tool("completed", "open", "tool_call_update"),
        tool("pending", "new"),
    ]


async def test_a_prompt_of_others_that_the_replay_showed_is_left_out() -> None:
    client = reading()
    hold = client.backlog.hold(SESSION)
    shown: Json = {"sessionUpdate": "user_message_chunk", "messageId": "msg_a"}
    new: Json = {**shown, "messageId": "msg_b"}
    client.backlog.owe(SESSION, shown)
    client.backlog.owe(SESSION, new)
    client.backlog.release(SESSION, hold, Shown({}, {}, {"msg_a"}))
    await client.backlog.drained(SESSION)
    assert client.sent == [new]


async def test_what_was_owed_before_comes_with_the_load() -> None:
    client = Client()
    client.texts["msg_a"] = ["before"]
    client.backlog.owe_text(SESSION, chunk("before", 0))
    client.backlog.owe(SESSION, tool("completed"))
    client.backlog.owe(SESSION, {"sessionUpdate": "notice", "title": "kept"})
    hold = client.backlog.hold(SESSION)
    client.backlog.drop_shown(SESSION)
    client.room.set()
    client.backlog.release(SESSION, hold, NOTHING)
    await client.backlog.drained(SESSION)
    assert client.sent == [{"sessionUpdate": "notice", "title": "kept"}]


async def test_only_the_last_of_two_loads_lets_go() -> None:
    client = reading()
    first = client.backlog.hold(SESSION)
    second = client.backlog.hold(SESSION)
    client.backlog.owe(SESSION, tool("pending"))
    client.backlog.release(SESSION, first, NOTHING)
    drained = asyncio.create_task(client.backlog.drained(SESSION))
    await asyncio.sleep(0)
    assert (client.sent, drained.done()) == ([], False)
    client.backlog.release(SESSION, second, NOTHING)
    await drained
    assert client.sent == [tool("pending")]


async def test_a_client_that_leaves_is_waited_for_by_nobody() -> None:
    client = reading()
    client.backlog.hold(SESSION)
    client.backlog.owe(SESSION, tool("pending"))
    drained = asyncio.create_task(client.backlog.drained(SESSION))
    await asyncio.sleep(0)
    await client.backlog.aclose()
    await drained
    assert client.sent == []


async def test_a_load_that_is_given_up_before_it_shows_anything_takes_nothing_away() -> None:
    """Also while the drain that the hold stopped is still on its way out."""
    client = Lingering()
    client.room.set()
    client.texts["msg_a"] = ["before"]
    client.backlog.owe_text(SESSION, chunk("before", 0))
    client.backlog.owe(SESSION, tool("completed"))
    await client.fetching.wait()
    hold = client.backlog.hold(SESSION)
    await client.leaving.wait()
    client.backlog.release(SESSION, hold, NOTHING)
    client.may_leave.set()
    async with asyncio.timeout(5):
        await client.backlog.drained(SESSION)
    assert client.texts_sent() == ["before"]
    assert client.sent[1:] == [tool("completed")]
    assert not client.backlog.busy(SESSION)


async def test_an_answer_waits_for_what_a_hold_kept_back_of_its_turn() -> None:
    client = Client()
    client.backlog.owe(SESSION, tool("pending"))
    drained = asyncio.create_task(client.backlog.drained(SESSION))
    await asyncio.sleep(0)
    hold = client.backlog.hold(SESSION)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not drained.done()
    client.room.set()
    client.backlog.release(SESSION, hold, NOTHING)
    async with asyncio.timeout(5):
        await drained
    assert client.sent == [tool("pending")]
