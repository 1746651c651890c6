"""What the core asks of the server: the request, the word back, and that no failure spreads."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
import respx

from adapter.core import values as v
from adapter.engine.effects import Effects
from adapter.engine.observer import Silent
from adapter.upstream.client import Server
from tests.unit.engine.rig import API, GONE, SESSION, URL, Told, listed, no_pause

INBOX = f"{SESSION}/inbox"
ITEM = f"{INBOX}/msg_1"
OK = httpx.Response(204)
SERVER_SIDE: tuple[v.Output, ...] = (
    v.Interrupt("msg_1"),
    v.Withdraw("msg_1"),
    v.Wake("msg_1", requeue=False),
    v.Wake("msg_1", requeue=True),
    v.ReadInbox(),
    v.Reply("ses_a", "per_1", "once"),
    v.AnswerForm("ses_a", "frm_1"),
    v.DismissForm("ses_a", "frm_1"),
)


class Counting(Silent):
    """Hears of permissions alone."""

    def __init__(self) -> None:
        self.permissions: list[tuple[v.Decision, v.AskReason]] = []

    def answered(self, decision: v.Decision, reason: v.AskReason) -> None:
        self.permissions.append((decision, reason))


class Bench:
    """The effects of one session, and what they told."""

    def __init__(self, server: Server) -> None:
        self.told = Told()
        counting = Counting()
        self.answered = counting.permissions
        services = replace(self.told.services(server), observer=counting)
        self.effects = Effects(services, "ses_a", "/d", self.told.step)

    async def perform(self, output: v.Output) -> list[v.Input]:
        """The steps that follow."""
        self.told.steps.clear()
        await self.effects.perform(output)
        return self.told.steps


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    async with Server(URL, sleep=no_pause) as server:
        yield Bench(server)


def requests() -> list[tuple[str, str, Any]]:
    """Method, path below the session or API, and body of all requests."""
    return [
        (
            call.request.method,
            str(call.request.url).removeprefix(API).removeprefix("/session/ses_a"),
            json.loads(call.request.content or b"null"),
        )
        for call in respx.calls
    ]


@respx.mock
async def test_an_interrupt(bench: Bench) -> None:
    respx.post(f"{SESSION}/interrupt").mock(httpx.Response(200, json={"interrupted": True}))
    assert await bench.perform(v.Interrupt("msg_1")) == []
    assert requests() == [("POST", "/interrupt", None)]


@respx.mock
async def test_a_withdrawal(bench: Bench) -> None:
    respx.delete(ITEM).mock(OK)
    assert await bench.perform(v.Withdraw("msg_1")) == []
    assert requests() == [("DELETE", "/inbox/msg_1", None)]


@respx.mock
@pytest.mark.parametrize(("status", "pending"), [(204, True), (409, False)])
async def test_a_wake_says_whether_the_item_was_pending(
    bench: Bench, status: int, pending: bool
) -> None:
    respx.patch(ITEM).mock(httpx.Response(status, json={"_tag": "ConflictError"}))
    assert await bench.perform(v.Wake("msg_1", requeue=False)) == [v.Woken("msg_1", pending)]
    assert requests() == [("PATCH", "/inbox/msg_1", {"delivery": "steer"})]


@respx.mock
@pytest.mark.parametrize(("statuses", "pending"), [((204, 204), True), ((409, 204), True),
                                                   ((409, 409), False)])  # fmt: skip
async def test_an_item_that_is_steer_already_goes_back_to_the_queue_first(
    bench: Bench, statuses: tuple[int, int], pending: bool
) -> None:
    answers = [httpx.Response(status, json={"_tag": "ConflictError"}) for status in statuses]
    respx.patch(ITEM).mock(side_effect=answers)
    assert await bench.perform(v.Wake("msg_1", requeue=True)) == [v.Woken("msg_1", pending)]
    assert [body["delivery"] for _, _, body in requests()] == ["queue", "steer"]


@respx.mock
@pytest.mark.parametrize("active", [True, False])
async def test_the_inbox_is_read_before_the_active_sessions(bench: Bench, active: bool) -> None:
    respx.get(INBOX).mock(listed({"id": "msg_1"}, {"id": "msg_2", "type": "compaction"}))
    running: dict[str, object] = {"ses_a": {}} if active else {"ses_b": {}}
    respx.get(f"{API}/session/active").mock(httpx.Response(200, json={"data": running}))
    assert await bench.perform(v.ReadInbox()) == [v.InboxRead(("msg_1", "msg_2"), active)]
    assert [path for _, path, _ in requests()] == ["/inbox", "/session/active"]


@respx.mock
@pytest.mark.parametrize(
    ("decision", "go_on", "keys"),
    [("once", True, {"decision"}), ("always", True, {"decision"}),
     ("reject", True, {"decision", "message"}), ("reject", False, {"decision"})],
)  # fmt: skip
async def test_only_a_rejection_after_which_the_turn_goes_on_has_a_message(
    bench: Bench, decision: Any, go_on: bool, keys: set[str]
) -> None:
    respx.post(f"{API}/session/ses_child/permission/per_1/reply").mock(OK)
    steps = await bench.perform(v.Reply("ses_child", "per_1", decision, go_on))
    assert steps == [v.Replied("per_1", settled=True, found=True)]
    ((_, path, body),) = requests()
    assert path == "/session/ses_child/permission/per_1/reply"
    assert (body["decision"], body.keys()) == (decision, keys)


@respx.mock
@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (httpx.Response(404, json={"_tag": "PermissionNotFoundError"}), (True, False)),
        (httpx.Response(409, json={"_tag": "ConflictError"}), (True, False)),
        (GONE, (True, False)),
        (httpx.Response(401), (False, True)),
        (httpx.Response(503), (False, True)),
        (httpx.Response(422, json={"_tag": "InvalidRequestError"}), (False, True)),
        (httpx.Response(400, json={"_tag": "FormInvalidAnswerError"}), (False, True, True)),
    ],
)
async def test_a_reply_says_what_became_of_it(
    bench: Bench, answer: httpx.Response, told: tuple[bool, ...]
) -> None:
    respx.post(f"{SESSION}/permission/per_1/reply").mock(answer)
    steps = await bench.perform(v.Reply("ses_a", "per_1", "once"))
    assert steps == [v.Replied("per_1", *told)]


@respx.mock
async def test_a_permission_counts_once_it_is_settled_and_says_whose_decision_it_was(
    bench: Bench,
) -> None:
    route = respx.post(f"{SESSION}/permission/per_1/reply")
    for answer in (httpx.Response(503), OK, httpx.Response(404, json={"_tag": "X"})):
        route.mock(answer)
        await bench.perform(v.Reply("ses_a", "per_1", "reject", why="limit"))
    assert bench.answered == [("reject", "limit"), ("reject", "elsewhere")]


@respx.mock
@pytest.mark.parametrize("answer", [{}, {"q0": "Red", "q1": ["A"]}])
async def test_a_form_is_answered_on_the_session_that_asks(
    bench: Bench, answer: dict[str, Any]
) -> None:
    respx.post(f"{API}/session/ses_child/form/frm_1/reply").mock(OK)
    steps = await bench.perform(v.AnswerForm("ses_child", "frm_1", answer))
    assert steps == [v.Replied("frm_1", settled=True)]
    assert requests() == [("POST", "/session/ses_child/form/frm_1/reply", {"answer": answer})]


@respx.mock
async def test_a_form_is_dismissed(bench: Bench) -> None:
    respx.delete(f"{SESSION}/form/frm_1").mock(OK)
    steps = await bench.perform(v.DismissForm("ses_a", "frm_1"))
    assert steps == [v.Replied("frm_1", settled=True)]
    assert requests() == [("DELETE", "/form/frm_1", None)]


@respx.mock
@pytest.mark.parametrize("answer", [{"name": "Joe"}, None])
async def test_a_form_of_an_mcp_server_is_found_by_its_directory(
    bench: Bench, answer: dict[str, Any] | None
) -> None:
    route = respx.route(path__startswith="/api/session/global/form/frm_1").mock(OK)
    output = v.DismissForm("global", "frm_1")
    await bench.perform(output if answer is None else v.AnswerForm("global", "frm_1", answer))
    assert route.calls.last.request.url.params["location[directory]"] == "/d"


@respx.mock
async def test_no_answer_to_a_form_is_logged(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "adapter")
    body = {"_tag": "FormInvalidAnswerError", "message": "Expected email for form field: q0"}
    respx.post(f"{SESSION}/form/frm_1/reply").mock(httpx.Response(400, json=body))
    await bench.perform(v.AnswerForm("ses_a", "frm_1", {"q0": "hunter2"}))
    assert "frm_1" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("decided", ["answer", "approval"])
async def test_a_reply_that_cannot_be_written_is_refused_and_not_logged(
    bench: Bench, caplog: pytest.LogCaptureFixture, decided: str
) -> None:
    """A fault of ours: the core is told all the same, so that no ask stays open for it."""

    class Unwritable:
        def __repr__(self) -> str:
            return "hunter2"

    odd: Any = Unwritable()
    output, ask_id = (
        (v.AnswerForm("ses_a", "frm_1", {"q0": odd}), "frm_1")
        if decided == "answer"
        else (v.Reply("ses_a", "per_1", odd), "per_1")
    )
    steps = await bench.perform(output)
    assert steps == [v.Replied(ask_id, settled=False, refused=True)]
    assert ask_id in caplog.text
    assert "hunter2" not in caplog.text


@respx.mock
@pytest.mark.parametrize("output", SERVER_SIDE, ids=lambda output: type(output).__name__)
@pytest.mark.parametrize("failure", [503, 401, 400, 404, 200, httpx.ConnectError, httpx.ReadError])
async def test_no_failure_of_a_request_leaves_here(
    bench: Bench, output: v.Output, failure: int | type[Exception]
) -> None:
    broken = httpx.Response(failure) if isinstance(failure, int) else failure("broken")
    respx.route().mock(side_effect=[broken] * 20)
    steps = await bench.perform(output)
    # A request that failed proves nothing, and so tells the core nothing but that.
    assert all(isinstance(step, v.Woken | v.Replied) for step in steps)


@respx.mock
@pytest.mark.parametrize("output", SERVER_SIDE[:5], ids=lambda output: type(output).__name__)
async def test_a_session_that_is_gone_ends_its_turns(bench: Bench, output: v.Output) -> None:
    respx.route().mock(GONE)
    assert await bench.perform(output) == [v.Reconcile(v.Snapshot(state="gone"))]


@pytest.mark.parametrize(
    "output",
    [
        v.Reply("ses_a", "per_../x", "once"),
        v.AnswerForm("ses_a", "nothing"),
        v.DismissForm("ses_a", "nothing"),
        v.Withdraw("x"),
    ],
    ids=lambda output: type(output).__name__,
)
async def test_an_id_of_bad_form_is_never_sent(bench: Bench, output: v.Output) -> None:
    with respx.mock:
        told = await bench.perform(output)
        assert [step for step in told if step != v.Replied(_asked(output), settled=False)] == []
        assert requests() == []


def _asked(output: v.Output) -> str:
    """The ask that an output settles."""
    match output:
        case v.Reply(_, ask_id):
            return ask_id
        case v.AnswerForm(_, form_id) | v.DismissForm(_, form_id):
            return form_id
        case _:
            return ""
