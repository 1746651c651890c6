"""The typed calls: what goes out, and what the answers mean."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import respx

from adapter.upstream.client import Server
from adapter.upstream.errors import SessionMissing, ShapeMismatch, Unauthorised
from adapter.upstream.posted import Admitted, NotAdmitted, Unclear, Unsent
from adapter.upstream.transport import ServerSettings
from contract.reads import AssistantRow, IdleRow, UserRow

API = "http://127.0.0.1:4096/api"
SESSION = f"{API}/session/ses_a"
PROMPT = f"{SESSION}/prompt"
MISSING = httpx.Response(404, json={"_tag": "SessionNotFoundError", "message": "no"})


async def no_pause(_: float) -> None:
    return None


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    settings = ServerSettings(max_answer=100_000)
    async with Server("http://127.0.0.1:4096", None, settings, sleep=no_pause) as server:
        yield server


def item(text: str = "hello", message_id: str = "msg_a") -> httpx.Response:
    data = {"id": message_id, "type": "user", "payload": {"text": text}, "delivery": "queue"}
    return httpx.Response(200, json={"data": data})


def sent(route: respx.Route) -> Any:
    return json.loads(route.calls.last.request.content)


# Prompts


@respx.mock
async def test_a_prompt_is_queued_under_its_own_id(server: Server) -> None:
    route = respx.post(PROMPT).mock(return_value=item())
    posted = await server.posts.prompt("ses_a", "msg_a", "hello")
    assert sent(route) == {"id": "msg_a", "text": "hello", "delivery": "queue"}
    assert isinstance(posted, Admitted)
    assert (posted.item.id, posted.same_text) == ("msg_a", True)


@respx.mock
async def test_a_probe_does_not_wake(server: Server) -> None:
    route = respx.post(PROMPT).mock(return_value=item())
    file = {"uri": "data:text/plain,x", "name": "x"}
    await server.posts.prompt("ses_a", "msg_a", "hello", [file], resume=False)
    assert sent(route) == {
        "id": "msg_a",
        "text": "hello",
        "delivery": "queue",
        "files": [file],
        "resume": False,
    }


@respx.mock
async def test_the_original_item_of_a_duplicate_is_told(server: Server) -> None:
    respx.post(PROMPT).mock(return_value=item("another text"))
    posted = await server.posts.prompt("ses_a", "msg_a", "hello")
    assert isinstance(posted, Admitted)
    assert not posted.same_text


@respx.mock
async def test_lone_surrogates_can_be_sent_and_compared(server: Server) -> None:
    respx.post(PROMPT).mock(return_value=item("a\ufffd"))
    posted = await server.posts.prompt("ses_a", "msg_a", "a\ud800")
    assert isinstance(posted, Admitted)
    assert posted.same_text


@respx.mock
@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (httpx.ConnectError("x"), Unsent),
        (httpx.ConnectTimeout("x"), Unsent),
        (httpx.ReadError("x"), Unclear),
        (httpx.ReadTimeout("x"), Unclear),
        (httpx.RemoteProtocolError("x"), Unclear),
        (httpx.Response(500), Unclear),
        (httpx.Response(200, html="<html>"), Unclear),
        (httpx.Response(200, json={"data": None}), Unclear),
        (item(message_id="msg_b"), Unclear),
        (httpx.Response(302), Unclear),
        (httpx.Response(404), NotAdmitted),
        (httpx.Response(409, json={"_tag": "ConflictError", "message": "taken"}), NotAdmitted),
        (httpx.Response(400, json={"_tag": "InvalidRequestError", "message": "x"}), NotAdmitted),
    ],
)
async def test_a_prompt_is_posted_once_whatever_comes_back(
    server: Server, outcome: httpx.Response | Exception, kind: type
) -> None:
    route = respx.post(PROMPT).mock(side_effect=[outcome])
    assert type(await server.posts.prompt("ses_a", "msg_a", "hello")) is kind
    assert route.call_count == 1


@respx.mock
async def test_a_refused_prompt_carries_the_reason(server: Server) -> None:
    answer = httpx.Response(409, json={"_tag": "ConflictError", "message": "taken"})
    respx.post(PROMPT).mock(return_value=answer)
    assert await server.posts.prompt("ses_a", "msg_a", "hello") == NotAdmitted(409, "taken")


@respx.mock
@pytest.mark.parametrize(
    ("answer", "error"), [(httpx.Response(401), Unauthorised), (MISSING, SessionMissing)]
)
async def test_a_prompt_raises_what_concerns_the_whole_session(
    server: Server, answer: httpx.Response, error: type[Exception]
) -> None:
    respx.post(PROMPT).mock(return_value=answer)
    with pytest.raises(error):
        await server.posts.prompt("ses_a", "msg_a", "hello")


@respx.mock
@pytest.mark.parametrize(("status", "woken"), [(204, True), (409, False)])
async def test_a_wake_says_whether_it_changed_anything(
    server: Server, status: int, woken: bool
) -> None:
    answer = httpx.Response(status, json={"_tag": "ConflictError"} if status == 409 else None)
    route = respx.patch(f"{SESSION}/inbox/msg_a").mock(return_value=answer)
    assert await server.wake("ses_a", "msg_a") is woken
    assert sent(route) == {"delivery": "steer"}


@respx.mock
async def test_an_interrupt_is_never_repeated_once_sent(server: Server) -> None:
    route = respx.post(f"{SESSION}/interrupt").mock(
        side_effect=[httpx.ConnectError("x"), httpx.Response(200, json={"interrupted": True})]
    )
    assert await server.interrupt("ses_a")
    assert route.call_count == 2


# Sessions


@respx.mock
async def test_a_repeated_creation_names_the_same_session(server: Server) -> None:
    answer = httpx.Response(200, json={"data": {"id": "ses_x"}})
    route = respx.post(f"{API}/session").mock(side_effect=[httpx.ReadError("x"), answer])
    await server.create_session("/srv/project")
    bodies = [json.loads(call.request.content) for call in route.calls]
    assert bodies[0] == bodies[1]
    assert bodies[0]["id"].startswith("ses_acp_")
    assert bodies[0]["location"] == {"directory": "/srv/project"}


@respx.mock
async def test_children_are_bounded(server: Server) -> None:
    page = [{"id": f"ses_{number}", "parentID": "ses_a"} for number in range(50)]
    cursors = iter(("c", "d"))
    route = respx.get(f"{API}/session").mock(
        side_effect=lambda _: httpx.Response(
            200, json={"data": page, "cursor": {"next": next(cursors)}}
        )
    )
    children = await server.children("ses_a", bound=70)
    assert (len(children), route.call_count) == (70, 2)
    assert route.calls[0].request.url.params["parentID"] == "ses_a"
    assert dict(route.calls[1].request.url.params) == {"cursor": "c", "limit": "50"}


@respx.mock
@pytest.mark.parametrize("cursor", ["", " ", 5, "c"], ids=["blank", "spaces", "number", "again"])
async def test_cursors_that_lead_nowhere_are_no_partial_list(
    server: Server, cursor: object
) -> None:
    first = httpx.Response(200, json={"data": [{"id": "ses_b"}], "cursor": {"next": "c"}})
    then = httpx.Response(200, json={"data": [{"id": "ses_c"}], "cursor": {"next": cursor}})
    route = respx.get(f"{API}/session").mock(side_effect=[first, then])
    with pytest.raises(ShapeMismatch):
        await server.children("ses_a")
    assert route.call_count == 2


@respx.mock
@pytest.mark.parametrize("cursor", [{}, {"next": None}, None, {"next": "c"}])
async def test_an_empty_page_is_the_end(server: Server, cursor: object) -> None:
    first = httpx.Response(200, json={"data": [{"id": "ses_b"}], "cursor": {"next": "c"}})
    then = httpx.Response(200, json={"data": [], "cursor": cursor})
    respx.get(f"{API}/session").mock(side_effect=[first, then])
    assert [child.id for child in await server.children("ses_a")] == ["ses_b"]


@respx.mock
async def test_a_missing_session_is_told_by_name(server: Server) -> None:
    respx.get(SESSION).mock(return_value=MISSING)
    with pytest.raises(SessionMissing) as caught:
        await server.session("ses_a")
    assert caught.value.session_id == "ses_a"


@respx.mock
async def test_active_sessions(server: Server) -> None:
    respx.get(f"{API}/session/active").respond(json={"data": {"ses_a": {"type": "running"}}})
    assert await server.active() == {"ses_a"}


# Messages


def row(number: int, kind: str = "user") -> dict[str, object]:
    return {"id": f"msg_{number}", "type": kind, "time": {"created": number}}


class Pages:
    """Answers `GET …/message` from rows given oldest first; a page over `heavy` is too large."""

    def __init__(self, rows: list[dict[str, object]], heavy: int = 1000) -> None:
        self.rows = rows[::-1]
        self.heavy = heavy
        self.limits: list[int] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        start = int(request.url.params.get("cursor", "0"))
        limit = int(request.url.params["limit"])
        self.limits.append(limit)
        if limit > self.heavy:
            return httpx.Response(200, content=b"x" * 100_001)
        page = self.rows[start : start + limit]
        cursor = {"next": str(start + limit)} if len(page) == limit else {}
        return httpx.Response(200, json={"data": page, "cursor": cursor})


async def rows_from(server: Server, *anchors: str, bound: int = 1000) -> tuple[list[str], bool]:
    rows, whole = await server.rows_back_to("ses_a", frozenset(anchors), bound)
    return [each.id for each in rows], whole


def ids(start: int, end: int) -> list[str]:
    return [f"msg_{number}" for number in range(start, end)]


@respx.mock
async def test_rows_come_from_the_page_of_the_oldest_anchor_on_in_order(server: Server) -> None:
    pages = Pages([row(n) for n in range(500)])
    respx.get(f"{SESSION}/message").mock(side_effect=pages)
    assert await rows_from(server, "msg_400", "msg_250") == (ids(100, 500), True)
    assert len(pages.limits) == 2


@respx.mock
async def test_without_an_anchor_the_newest_row_is_read(server: Server) -> None:
    pages = Pages([row(n) for n in range(500)])
    respx.get(f"{SESSION}/message").mock(side_effect=pages)
    assert await rows_from(server) == (ids(499, 500), True)
    assert pages.limits == [1]


@respx.mock
async def test_a_missing_anchor_means_all_rows(server: Server) -> None:
    respx.get(f"{SESSION}/message").mock(side_effect=Pages([row(n) for n in range(400)]))
    assert await rows_from(server, "msg_none") == (ids(0, 400), True)


@respx.mock
async def test_rows_stop_at_the_bound_and_say_so(server: Server) -> None:
    respx.get(f"{SESSION}/message").mock(side_effect=Pages([row(n) for n in range(1000)]))
    assert await rows_from(server, "msg_0", bound=400) == (ids(600, 1000), False)


@respx.mock
async def test_a_page_that_is_too_large_is_read_in_smaller_ones(server: Server) -> None:
    pages = Pages([row(n) for n in range(60)], heavy=25)
    respx.get(f"{SESSION}/message").mock(side_effect=pages)
    assert await rows_from(server, "msg_0") == (ids(0, 60), True)
    assert pages.limits == [200, 25, 25, 25]


@respx.mock
async def test_rows_whose_cursor_comes_again_are_no_partial_result(server: Server) -> None:
    page = httpx.Response(200, json={"data": [row(1)], "cursor": {"next": "c"}})
    route = respx.get(f"{SESSION}/message").mock(return_value=page)
    with pytest.raises(ShapeMismatch):
        await server.rows_back_to("ses_a", frozenset({"msg_0"}))
    assert route.call_count == 2


@respx.mock
async def test_rows_of_too_many_pages_are_told_as_incomplete(server: Server) -> None:
    pages = Pages([row(n) for n in range(1000)], heavy=1)
    respx.get(f"{SESSION}/message").mock(side_effect=pages)
    rows, whole = await rows_from(server, "msg_0")
    assert (len(rows), whole) == (128, False)


@respx.mock
async def test_rows_have_their_types(server: Server) -> None:
    kinds = ["user", "assistant", "idle", "agent-switched"]
    raw = [row(number, kind) for number, kind in enumerate(kinds)]
    respx.get(f"{SESSION}/message").mock(side_effect=Pages(raw))
    rows, _ = await server.rows_back_to("ses_a", frozenset({"msg_0"}))
    user, assistant, idle, other = rows
    assert isinstance(user, UserRow)
    assert isinstance(assistant, AssistantRow)
    assert isinstance(idle, IdleRow)
    assert other.type == "agent-switched"


@respx.mock
async def test_a_row_of_another_shape_names_the_field_and_not_the_value(server: Server) -> None:
    raw: dict[str, object] = {"id": "msg_1", "type": "user", "text": ["sEcret"]}
    respx.get(f"{SESSION}/message").mock(side_effect=Pages([raw]))
    with pytest.raises(ShapeMismatch, match="text") as caught:
        await server.rows_back_to("ses_a", frozenset({"msg_1"}))
    assert "sEcret" not in str(caught.value)


@respx.mock
async def test_a_row_that_is_not_there_is_none(server: Server) -> None:
    answer = httpx.Response(404, json={"_tag": "MessageNotFoundError", "message": "x"})
    respx.get(f"{SESSION}/message/msg_a").mock(return_value=answer)
    assert await server.row("ses_a", "msg_a") is None


# Permissions, forms, catalogue


@respx.mock
@pytest.mark.parametrize(
    ("answer", "settled"),
    [
        (httpx.Response(204), True),
        (httpx.Response(404, json={"_tag": "PermissionNotFoundError"}), False),
        (httpx.Response(409, json={"_tag": "FormAlreadySettledError"}), False),
        (MISSING, False),
    ],
)
async def test_an_answer_to_what_was_settled_before_is_false(
    server: Server, answer: httpx.Response, settled: bool
) -> None:
    reply = respx.post(f"{SESSION}/permission/per_a/reply").mock(return_value=answer)
    form = respx.post(f"{SESSION}/form/frm_a/reply").mock(return_value=answer)
    assert await server.reply_permission("ses_a", "per_a", "reject", "why") is settled
    assert await server.reply_form("ses_a", "frm_a", {"q0": "Red"}, "/d") is settled
    assert sent(reply) == {"decision": "reject", "message": "why"}
    assert sent(form) == {"answer": {"q0": "Red"}}


@respx.mock
async def test_a_rejection_without_a_message_has_no_message(server: Server) -> None:
    reply = respx.post(f"{SESSION}/permission/per_a/reply").respond(204)
    await server.reply_permission("ses_a", "per_a", "reject")
    assert sent(reply) == {"decision": "reject"}


@respx.mock
async def test_reads_of_a_directory_name_it(server: Server) -> None:
    paths = ["agent", "model", "permission/request", "form"]
    made = [respx.get(f"{API}/{path}").respond(json={"data": []}) for path in paths]
    await server.agents("/srv/my project")
    await server.models("/srv/my project")
    await server.permissions("/srv/my project")
    await server.forms("/srv/my project")
    asked = [route.calls.last.request.url.params["location[directory]"] for route in made]
    assert asked == ["/srv/my project"] * 4


@respx.mock
async def test_a_server_without_a_model_has_no_default(server: Server) -> None:
    respx.get(f"{API}/model/default").respond(json={"location": {}, "data": None})
    assert await server.default_model("/srv/project") is None


@respx.mock
async def test_choices_are_sent_as_the_server_takes_them(server: Server) -> None:
    model = respx.post(f"{SESSION}/model").respond(204)
    agent = respx.post(f"{SESSION}/agent").respond(204)
    await server.set_model("ses_a", "fake", "fake-1", "low")
    assert sent(model) == {"model": {"id": "fake-1", "providerID": "fake", "variant": "low"}}
    await server.set_model("ses_a", "fake", "fake-1")
    assert sent(model) == {"model": {"id": "fake-1", "providerID": "fake"}}
    await server.set_agent("ses_a", "plan")
    assert sent(agent) == {"agent": "plan"}
