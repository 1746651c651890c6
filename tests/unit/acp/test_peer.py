"""The peer: both ways of asking, both ways of cancelling, and its bounds."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from adapter.acp.jsonrpc import JsonObject
from adapter.acp.peer import Ending, PeerError, PeerLimits
from adapter.acp.transport import Call
from adapter.limits import Bound, Limits
from contract.errors import AcpError
from stubs.waiting import until
from tests.unit.acp.pair import DEADLINE, connected, echo, note, req


async def forever(call: Call) -> JsonObject:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def test_a_request_is_answered_under_its_own_id_and_type() -> None:
    async with connected() as c:
        c.handler.methods["echo"] = echo
        c.wire.say(*(req(ident, "echo", n=n) for n, ident in enumerate([0, "0", None, -7])))
        answers = await c.wire.wait_lines(4)
    assert [(a["id"], a["result"]) for a in answers] == [
        (0, {"n": 0}),
        ("0", {"n": 1}),
        (None, {"n": 2}),
        (-7, {"n": 3}),
    ]


async def test_meta_stays_out_of_the_parameters() -> None:
    async with connected() as c:
        c.handler.methods["echo"] = echo
        c.wire.say(req(1, "echo", sessionId="mine", _meta={"sessionId": "evil"}))
        (answer,) = await c.wire.wait_lines(1)
    assert answer["result"] == {"sessionId": "mine", "_meta": {"sessionId": "evil"}}


async def test_a_slow_request_holds_up_no_other() -> None:
    async with connected() as c:
        c.handler.methods |= {"slow": forever, "echo": echo}
        c.wire.say(req(1, "slow"), req(2, "echo"))
        (answer,) = await c.wire.wait_lines(1)
    assert answer["id"] == 2


async def test_errors_of_the_handler_are_answers() -> None:
    async def refuse(call: Call) -> JsonObject:
        raise AcpError(-32602, "No such thing.", {"code": "thing"})

    async with connected() as c:
        c.handler.methods["refuse"] = refuse
        c.wire.say(req(1, "refuse"))
        (answer,) = await c.wire.wait_lines(1)
    assert answer["error"] == {
        "code": -32602,
        "message": "No such thing.",
        "data": {"code": "thing"},
    }


async def test_an_unexpected_exception_is_told_plainly_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def crash(call: Call) -> JsonObject:
        raise RuntimeError("secret detail")

    async with connected() as c:
        c.handler.methods["crash"] = crash
        with caplog.at_level(logging.ERROR):
            c.wire.say(req(1, "crash"))
            (answer,) = await c.wire.wait_lines(1)
    error = answer["error"]
    assert isinstance(error, dict)
    assert error["code"] == -32603
    assert "secret" not in str(answer)
    assert "secret detail" in caplog.text


async def test_updates_sent_before_the_return_precede_the_answer() -> None:
    async def stream(call: Call) -> JsonObject:
        for n in range(3):
            c.peer.notify("session/update", {"n": n})
            await asyncio.sleep(0)
        return {}

    async with connected() as c:
        c.handler.methods["stream"] = stream
        c.wire.say(req(1, "stream"))
        lines = await c.wire.wait_lines(4)
    assert [line.get("params") for line in lines] == [{"n": 0}, {"n": 1}, {"n": 2}, None]


async def test_a_cancel_right_behind_a_prompt_finds_the_turn() -> None:
    turns: dict[str, asyncio.Event] = {}

    async def prompt(call: Call) -> JsonObject:
        turns["s"] = asyncio.Event()
        await turns["s"].wait()
        return {"stopReason": "cancelled"}

    async with connected() as c:
        c.handler.methods["session/prompt"] = prompt
        c.handler.on_notification = lambda _method, _params: turns["s"].set()
        c.wire.say(req(1, "session/prompt"), note("session/cancel", sessionId="s"))
        (answer,) = await c.wire.wait_lines(1)
    assert answer["result"] == {"stopReason": "cancelled"}


class TestCancelOfTheClient:
    async def test_without_a_hook_the_task_ends_and_32800_is_the_answer(self) -> None:
        async with connected() as c:
            c.handler.methods["slow"] = forever
            c.wire.say(req(5, "slow"), note("$/cancel_request", requestId=5))
            (answer,) = await c.wire.wait_lines(1)
        error = answer["error"]
        assert isinstance(error, dict)
        assert (answer["id"], error["code"]) == (5, -32800)

    async def test_with_a_hook_the_handler_answers(self) -> None:
        async def prompt(call: Call) -> JsonObject:
            stopped = asyncio.Event()
            call.on_cancel = stopped.set
            await stopped.wait()
            return {"stopReason": "cancelled"}

        async with connected() as c:
            c.handler.methods["prompt"] = prompt
            c.wire.say(req(5, "prompt"), note("$/cancel_request", requestId=5))
            (answer,) = await c.wire.wait_lines(1)
        assert answer["result"] == {"stopReason": "cancelled"}

    @pytest.mark.parametrize("ident", [2, "1", True, 1.0, None, [1], {}])
    async def test_another_id_or_type_is_ignored(self, ident: object) -> None:
        async with connected() as c:
            c.handler.methods |= {"slow": forever, "echo": echo}
            c.wire.say(
                req(1, "slow"),
                note("$/cancel_request", requestId=ident),
                note("$/cancel_request"),
                req(9, "echo"),
            )
            (answer,) = await c.wire.wait_lines(1)
        assert answer["id"] == 9


async def test_a_duplicate_id_leaves_the_first_request_alone() -> None:
    go = asyncio.Event()

    async def first(call: Call) -> JsonObject:
        await go.wait()
        return {"first": True}

    async with connected() as c:
        c.handler.methods["first"] = first
        c.wire.say(req(1, "first"), req(1, "first"))
        (refusal,) = await c.wire.wait_lines(1)
        go.set()
        _, answer = await c.wire.wait_lines(2)
        c.wire.say(req(1, "first"))
        *_, again = await c.wire.wait_lines(3)
    error = refusal["error"]
    assert isinstance(error, dict)
    assert (refusal["id"], error["code"]) == (None, -32600)
    assert answer == again == {"jsonrpc": "2.0", "id": 1, "result": {"first": True}}


async def test_one_request_over_the_bound_is_refused() -> None:
    async with connected(PeerLimits(calls=2)) as c:
        c.handler.methods["slow"] = forever
        c.wire.say(*(req(n, "slow") for n in range(3)))
        (answer,) = await c.wire.wait_lines(1)
    error = answer["error"]
    assert isinstance(error, dict)
    assert (answer["id"], error["code"]) == (2, -32053)


async def test_hostile_lines_cost_one_error_each_and_nothing_else() -> None:
    async with connected(PeerLimits(inbound_line=100)) as c:
        c.handler.methods["echo"] = echo
        hostile = [b"[]\n", b"null\n", b"5\n", b'"x"\n', b"\xff\n", b"{\n", b"[" * 90 + b"\n"]
        c.wire.say(*hostile, b"x" * 101 + b"\n", b"\n", req(1, "echo"))
        lines = await c.wire.wait_lines(9)
    codes = [e["code"] for line in lines if isinstance(e := line.get("error"), dict)]
    assert codes == [-32600, -32600, -32600, -32600, -32700, -32700, -32700, -32600]
    assert all(line["id"] is None for line in lines[:8])
    assert lines[8]["result"] == {}
    assert c.counted == [Bound.INBOUND_LINE_BYTES]


async def test_what_does_not_fit_in_a_line_is_counted_and_told_in_few_words() -> None:
    limits = Limits(outbound_line_bytes=200, inbound_line_bytes=9000)
    async with connected(PeerLimits.of(limits)) as c:
        c.handler.methods["echo"] = echo
        c.wire.say(req(1, "echo", text="x" * 200), req(2, "echo", text="x"))
        failed, answer = await c.wire.wait_lines(2)
        with pytest.raises(ValueError, match="over 200"):
            c.peer.notify("session/update", {"text": "x" * 200})
    assert (failed["id"], answer["result"]) == (1, {"text": "x"})
    assert "error" in failed
    assert c.counted == [Bound.OUTBOUND_LINE_BYTES] * 2


async def test_a_handler_that_fails_on_a_notification_disturbs_nothing() -> None:
    def fail(method: str, params: JsonObject) -> None:
        raise KeyError(method)

    async with connected() as c:
        c.handler.methods["echo"] = echo
        c.handler.on_notification = fail
        c.wire.say(note("boom"), req(1, "echo"))
        (answer,) = await c.wire.wait_lines(1)
    assert answer["id"] == 1


async def test_a_result_that_is_too_long_is_an_error_answer() -> None:
    async def long(call: Call) -> JsonObject:
        return {"text": "x" * 2**20}

    async with connected() as c:
        c.handler.methods["long"] = long
        c.wire.say(req(1, "long"))
        (answer,) = await c.wire.wait_lines(1)
        with pytest.raises(ValueError, match="outbound line"):
            c.peer.notify("session/update", {"text": "x" * 2**20})
    assert "error" in answer


class TestAskingTheClient:
    async def test_the_result_comes_back(self) -> None:
        async with connected() as c:
            ask = asyncio.create_task(c.peer.request("session/request_permission", {"a": 1}))
            (line,) = await c.wire.wait_lines(1)
            c.wire.say({"jsonrpc": "2.0", "id": line["id"], "result": {"ok": True}})
            assert await ask == {"ok": True}
            assert line["params"] == {"a": 1}

    async def test_an_error_answer_is_raised(self) -> None:
        async with connected() as c:
            ask = asyncio.create_task(c.peer.request("ask", {}))
            (line,) = await c.wire.wait_lines(1)
            error = {"code": -32601, "message": "no", "data": [1]}
            c.wire.say({"jsonrpc": "2.0", "id": line["id"], "error": error})
            with pytest.raises(PeerError) as caught:
                await ask
            assert (caught.value.code, caught.value.message, caught.value.data) == (
                -32601,
                "no",
                [1],
            )

    @pytest.mark.parametrize("error", [5, None, {}, {"code": True, "message": 1}])
    async def test_a_malformed_error_is_still_an_error(self, error: object) -> None:
        async with connected() as c:
            ask = asyncio.create_task(c.peer.request("ask", {}))
            (line,) = await c.wire.wait_lines(1)
            c.wire.say({"jsonrpc": "2.0", "id": line["id"], "error": error})
            with pytest.raises(PeerError):
                await ask

    async def test_ids_of_another_type_answer_nothing(self) -> None:
        async with connected() as c:
            ask = asyncio.create_task(c.peer.request("ask", {}))
            (line,) = await c.wire.wait_lines(1)
            assert line["id"] == 1
            for ident in (True, 1.0, "1", None, 2):
                c.wire.say({"jsonrpc": "2.0", "id": ident, "result": {"wrong": True}})
            c.wire.say({"jsonrpc": "2.0", "id": 1, "result": {"right": True}})
            assert await ask == {"right": True}

    async def test_a_cancelled_ask_is_withdrawn_and_its_late_answer_ignored(self) -> None:
        async with connected() as c:
            c.handler.methods["echo"] = echo
            ask = asyncio.create_task(c.peer.request("ask", {}))
            (line,) = await c.wire.wait_lines(1)
            ask.cancel()
            _, withdrawal = await c.wire.wait_lines(2)
            assert ask.cancelled()
            assert withdrawal == note("$/cancel_request", requestId=line["id"])
            c.wire.say({"jsonrpc": "2.0", "id": line["id"], "result": {}}, req(1, "echo"))
            assert len(await c.wire.wait_lines(3)) == 3

    async def test_the_table_is_bounded(self) -> None:
        async with connected(PeerLimits(asks=1)) as c:
            first = asyncio.create_task(c.peer.request("ask", {}))
            await c.wire.wait_lines(1)
            with pytest.raises(PeerError) as caught:
                await c.peer.request("ask", {})
            assert caught.value.code == -32053
            first.cancel()

    async def test_a_client_that_left_answers_nothing(self) -> None:
        async with connected() as c:
            ask = asyncio.create_task(c.peer.request("ask", {}))
            await c.wire.wait_lines(1)
            c.wire.hang_up()
            with pytest.raises(PeerError):
                await ask
            with pytest.raises(PeerError):
                await c.peer.request("ask", {})


class TestTheEnd:
    async def test_eof_leaves_handlers_to_the_owner_and_aclose_ends_them(self) -> None:
        ended: list[str] = []

        async def slow(call: Call) -> JsonObject:
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")
            return {}

        async with connected() as c:
            c.handler.methods["slow"] = slow
            c.wire.say(req(1, "slow"))
            c.wire.hang_up()
            assert await c.ended() is Ending.EOF
            assert ended == []
            c.peer.notify("last", {})
            await c.peer.aclose()
            assert ended == ["cancelled"]
            assert [line["method"] for line in c.wire.lines] == ["last"]
            assert c.wire.closed

    async def test_no_handler_runs_any_more_when_aclose_returns(self) -> None:
        tidy, order = asyncio.Event(), []

        async def careful(call: Call) -> JsonObject:
            try:
                await asyncio.Event().wait()
            finally:
                await tidy.wait()
                order.append("the handler ended")
            return {}

        async def closed() -> bool:
            return c.wire.closed

        async with connected() as c:
            c.handler.methods["careful"] = careful
            c.wire.say(req(1, "careful"))
            c.wire.hang_up()
            await c.ended()
            closing = asyncio.create_task(c.peer.aclose(flush_seconds=0.001))
            closing.add_done_callback(lambda _: order.append("aclose returned"))
            await until("the time for what is queued is over", closed)
            tidy.set()
            async with asyncio.timeout(DEADLINE):
                await closing
        assert order == ["the handler ended", "aclose returned"]

    async def test_a_handler_that_does_not_end_is_named_and_left(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        release = asyncio.Event()

        async def stubborn(call: Call) -> JsonObject:
            while not release.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await release.wait()
            return {}

        async with connected(PeerLimits(end_seconds=0.01)) as c:
            c.handler.methods["stubborn"] = stubborn
            c.wire.say(req(1, "stubborn"))
            c.wire.hang_up()
            await c.ended()
            try:
                async with asyncio.timeout(DEADLINE):
                    await c.peer.aclose()
            finally:
                release.set()
            await c.peer.answered()
        assert "cancelled and not ended: stubborn" in caplog.messages

    async def test_aclose_waits_for_no_reader(self) -> None:
        async with connected() as c:
            with c.wire.not_reading():
                c.peer.notify("u", {})
                c.wire.hang_up()
                await c.ended()
                async with asyncio.timeout(DEADLINE):
                    await c.peer.aclose(flush_seconds=0.01)
            c.peer.notify("u", {})
            assert c.peer.queued_bytes == 0
