"""A client that does not read is owed everything, and its text is not kept in memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from adapter.acp.updates import prompted
from adapter.core.offsets import Part
from adapter.core.values import Chunk, OfChild, OfRun, Prompted
from adapter.engine import backlog
from adapter.engine.backlog import ENTRIES, Backlog
from adapter.engine.owed import AMBIENT_ATTEMPTS, ATTEMPTS, Shown
from adapter.upstream.errors import Ambiguous
from contract.reads import parse_row
from stubs.waiting import until

Json = dict[str, object]
SESSION = "ses_a"
OTHER = "ses_b"


def result(number: int, text: str) -> Json:
    """The end of a call."""
    return {
        "sessionUpdate": "tool_call_update",
        "toolCallId": f"call_{number}",
        "rawOutput": {"text": text},
    }


class Client:
    """The connection around a backlog: an outbox that is full until `reads`."""

    def __init__(self) -> None:
        self.sent: list[Json] = []
        self.sessions: list[str] = []
        self.asked: list[tuple[str, str]] = []
        self.room = asyncio.Event()
        self.texts: dict[str, list[str]] = {}
        self.failures = 0
        self.growing = ""
        self.gone = False
        self.reads = 0
        self.pauses = 0
        self.target = 0
        self.reached = asyncio.Event()
        self.left_out = 0
        self.backlog = Backlog(
            self._send, self._fetch, self._relaxed, self._leave, self._sleep, gone=self._lost
        )

    def _send(self, session_id: str, update: Json) -> None:
        self.sessions.append(session_id)
        self.sent.append(update)

    async def _fetch(self, session_id: str, message_id: str) -> object:
        self.asked.append((session_id, message_id))
        if self.failures:
            self.failures -= 1
            raise Ambiguous("no answer")
        if self.growing:
            # Every second read finds one more character.
            self.reads += 1
            shown = self.growing[: self.reads // 2]
            content = [{"type": "text", "text": shown}]
            return parse_row({"id": message_id, "type": "assistant", "content": content})
        content = [{"type": "text", "text": text} for text in self.texts[message_id]]
        return parse_row({"id": message_id, "type": "assistant", "content": content})

    async def _relaxed(self) -> None:
        await self.room.wait()

    def _lost(self, characters: int) -> None:
        self.left_out += characters

    def _leave(self) -> None:
        self.gone = True

    async def _sleep(self, seconds: float) -> None:
        self.pauses += 1
        if self.pauses == self.target:
            self.reached.set()
        await asyncio.sleep(0)

    async def paused(self, times: int) -> None:
        self.target = times
        async with asyncio.timeout(5):
            await self.reached.wait()

    def texts_sent(self) -> list[str]:
        return [
            str(update["content"]["text"])  # type: ignore[index]
            for update in self.sent
            if update["sessionUpdate"] == "agent_message_chunk"
        ]


def chunk(text: str, start: int, message: str = "msg_a", ordinal: int = 0) -> Chunk:
    return Chunk(1, message, "text", text, ordinal=ordinal, start=start)


async def test_text_is_fetched_once_the_client_reads() -> None:
    client = Client()
    client.texts["msg_a"] = ["one two three"]
    client.backlog.owe_text(SESSION, chunk("two ", 4))
    client.backlog.owe_text(SESSION, chunk("three", 8))
    assert len(client.backlog) == 1
    assert client.backlog.busy(SESSION)
    client.room.set()
    await client.backlog.drained(SESSION)
    assert client.texts_sent() == ["two three"]
    assert not client.backlog.busy(SESSION)


async def test_order_is_that_of_first_sight_and_tools_keep_their_latest_value() -> None:
    client = Client()
    client.texts["msg_a"] = ["before"]
    client.texts["msg_b"] = ["after"]
    backlog = client.backlog
    backlog.owe_text(SESSION, chunk("before", 0))
    call: Json = {
        "sessionUpdate": "tool_call",
        "toolCallId": "t",
        "title": "x",
        "status": "pending",
    }
    backlog.owe(SESSION, call)
    backlog.owe(SESSION, {"sessionUpdate": "usage_update", "used": 1, "size": 9})
    backlog.owe_text(SESSION, chunk("after", 0, "msg_b"))
    done: Json = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "completed"}
    backlog.owe(SESSION, done)
    backlog.owe(SESSION, {"sessionUpdate": "usage_update", "used": 2, "size": 9})
    client.room.set()
    await backlog.drained(SESSION)
    kinds = [update["sessionUpdate"] for update in client.sent]
    assert kinds == ["agent_message_chunk", "tool_call", "usage_update", "agent_message_chunk"]
    assert client.sent[1] == {**call, "status": "completed"}
    assert client.sent[2]["used"] == 2
    assert client.texts_sent() == ["before", "after"]


async def test_every_notice_is_kept() -> None:
    client = Client()
    for number in range(3):
        client.backlog.owe(SESSION, {"sessionUpdate": "notice", "title": f"n{number}"})
    client.room.set()
    await client.backlog.drained(SESSION)
    assert [update["title"] for update in client.sent] == ["n0", "n1", "n2"]


async def test_a_part_that_is_still_streamed_is_waited_for() -> None:
    client = Client()
    client.texts["msg_a"] = [""]
    client.backlog.owe_text(SESSION, chunk("half", 0))
    client.room.set()
    await client.paused(3 * ATTEMPTS)
    client.backlog.owe_text(SESSION, chunk(" done", 4))
    client.texts["msg_a"] = ["half done"]
    await client.backlog.drained(SESSION)
    assert client.texts_sent() == ["half done"]


async def test_a_read_that_fails_is_made_again() -> None:
    client = Client()
    client.texts["msg_a"] = ["x", "second"]
    client.failures = 2
    client.backlog.owe_text(SESSION, chunk("second", 0, ordinal=1))
    client.room.set()
    await client.backlog.drained(SESSION)
    assert client.texts_sent() == ["second"]


async def test_text_that_the_server_lost_is_counted_once_the_turn_is_over() -> None:
    client = Client()
    client.texts["msg_a"] = ["ha"]
    client.backlog.owe_text(SESSION, chunk("half", 0))
    client.room.set()
    await client.backlog.drained(SESSION)
    assert client.texts_sent() == ["ha"]
    assert client.left_out == 2


async def test_a_text_that_still_grows_after_the_turn_is_waited_for() -> None:
    client = Client()
    client.growing = "x" * 2 * ATTEMPTS
    client.backlog.owe_text(SESSION, chunk(client.growing, 0))
    client.room.set()
    await client.backlog.drained(SESSION)
    assert client.texts_sent() == [client.growing]
    assert client.left_out == 0


async def test_a_session_does_not_wait_for_the_text_of_another() -> None:
    client = Client()
    client.texts = {"msg_a": ["ready"], "msg_b": [""]}
    backlog = client.backlog
    backlog.owe_text(OTHER, chunk("still streamed", 0, "msg_b"))
    backlog.owe_text(SESSION, chunk("ready", 0))
    client.room.set()
    async with asyncio.timeout(5):
        await backlog.drained(SESSION)
    assert (client.sessions, client.texts_sent()) == ([SESSION], ["ready"])
    assert (backlog.busy(SESSION), backlog.busy(OTHER)) == (False, True)
    client.texts["msg_b"] = ["still streamed"]
    await backlog.drained(OTHER)
    assert client.sessions == [SESSION, OTHER]


async def test_updates_of_two_sessions_do_not_replace_each_other() -> None:
    client = Client()
    for number, session in enumerate((SESSION, OTHER)):
        client.backlog.owe(session, {"sessionUpdate": "usage_update", "used": number})
    client.room.set()
    await client.backlog.drained(SESSION)
    await client.backlog.drained(OTHER)
    assert [update["used"] for update in client.sent] == [0, 1]


async def test_the_bound_is_that_of_the_connection() -> None:
    client = Client()
    for number in range(ENTRIES + 1):
        session = (SESSION, OTHER)[number % 2]
        client.backlog.owe(session, {"sessionUpdate": "notice", "title": str(number)})
    assert client.gone
    client.room.set()
    await client.backlog.drained(SESSION)
    assert (client.sent, len(client.backlog)) == ([], 0)


async def test_a_client_that_is_owed_too_much_counts_as_gone() -> None:
    client = Client()
    for number in range(ENTRIES + 1):
        client.backlog.owe(SESSION, {"sessionUpdate": "notice", "title": str(number)})
    assert client.gone
    await client.backlog.aclose()


async def test_updates_that_are_owed_are_bounded_by_their_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(backlog, "CHARACTERS", 10_000)
    client, gone = Client(), []
    for number in range(10):
        client.backlog.owe((SESSION, OTHER)[number % 2], result(number, "x" * 1000))
        gone.append(client.gone)
    assert gone == [*[False] * 9, True]
    assert client.backlog.characters == 0
    await client.backlog.aclose()


async def test_what_is_paid_or_replaced_is_kept_no_more() -> None:
    client = Client()
    for text in ("x" * 1000, "y" * 10):
        client.backlog.owe(SESSION, result(1, text))
    client.backlog.owe(SESSION, result(2, "z" * 100))
    assert 100 < client.backlog.characters < 500
    client.room.set()
    await client.backlog.drained(SESSION)
    assert client.backlog.characters == 0


async def test_what_a_load_showed_is_kept_no_more() -> None:
    client = Client()
    hold = client.backlog.hold(SESSION)
    client.backlog.owe(SESSION, result(1, "x" * 1000))
    client.backlog.owe_text(SESSION, chunk("x" * 1000, 0))
    client.backlog.owe(SESSION, result(2, "x" * 1000))
    shown = Shown({Part("msg_a", "text", 0): 1000}, {"call_1": True})
    assert client.backlog.characters > 3000
    client.backlog.release(SESSION, hold, shown)
    assert 1000 < client.backlog.characters < 2000
    client.backlog.hold(SESSION)
    client.backlog.drop_shown(SESSION)
    assert client.backlog.characters == 0
    await client.backlog.aclose()


@pytest.mark.parametrize("owed", [0, 1])
async def test_closing_sends_nothing(owed: int) -> None:
    client = Client()
    for number in range(owed):
        client.backlog.owe(SESSION, {"sessionUpdate": "notice", "title": str(number)})
    await client.backlog.aclose()
    assert client.sent == []
    assert not client.backlog.busy(SESSION)


async def test_the_text_of_a_child_is_read_from_the_child() -> None:
    client = Client()
    client.texts["msg_c"] = ["said"]
    origin = OfChild("ses_child", SESSION, "msg_a", "call_1")
    client.backlog.owe_text(SESSION, replace(chunk("said", 0, "msg_c"), origin=origin))
    client.room.set()
    await client.backlog.drained(SESSION)
    assert client.asked == [("ses_child", "msg_c")]
    (update,) = client.sent
    assert client.sessions == [SESSION]
    assert update["_meta"]["opencode-acp"]["child"]["sessionId"] == "ses_child"  # type: ignore[index]


async def test_what_is_told_of_a_running_call_keeps_what_was_told_before() -> None:
    client = Client()
    called: Json = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "status": "in_progress"}
    lines: Json = {"sessionUpdate": "tool_call_update", "toolCallId": "t", "content": ["new"]}
    client.backlog.owe(SESSION, called)
    client.backlog.owe(SESSION, lines)
    client.room.set()
    await client.backlog.drained(SESSION)
    assert client.sent == [called | lines]


async def test_prompts_of_others_do_not_replace_each_other() -> None:
    client = Client()
    for text in ("one", "two"):
        for update in prompted(Prompted(1, "msg_u", text, OfRun("msg_u"))):
            client.backlog.owe(SESSION, update)
    client.room.set()
    await client.backlog.drained(SESSION)
    assert [update["content"]["text"] for update in client.sent] == ["one", "two"]  # type: ignore[index]


async def test_work_that_nobody_here_prompted_is_given_up_in_the_end() -> None:
    """A server that was killed never has the rest, and no turn is over that would tell."""
    client = Client()
    client.texts["msg_a"] = ["one"]
    client.backlog.owe_text(SESSION, replace(chunk("one two", 0), origin=OfRun("msg_u")))
    client.room.set()

    async def given_up() -> bool:
        return not client.backlog.busy(SESSION)

    # Nobody waits for it: a turn that does has its own, shorter patience.
    await until("the text is given up", given_up)
    assert client.texts_sent() == ["one"]
    assert (client.left_out, client.pauses) == (4, AMBIENT_ATTEMPTS)
