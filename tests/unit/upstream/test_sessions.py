"""Lists, deletes, forks, and the way back to the newest prompt of ours."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import pytest
import respx

from adapter.upstream.client import Server
from adapter.upstream.errors import Ambiguous, Refused, ShapeMismatch
from adapter.upstream.sessions import LOOK_BACK_PAGE, LOOK_BACK_ROWS
from adapter.upstream.transport import ServerSettings
from contract.routes import is_id
from tests.unit.engine.rig import GONE

API = "http://127.0.0.1:4096/api"
SESSION = f"{API}/session/ses_a"


async def no_pause(_: float) -> None:
    return None


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server("http://127.0.0.1:4096", None, ServerSettings(), sleep=no_pause) as server:
        yield server


def page(count: int, cursor: object = "c") -> httpx.Response:
    rows = [{"id": f"ses_{n}", "time": {"created": n}} for n in range(count)]
    return httpx.Response(200, json={"data": rows, "cursor": {"next": cursor}})


@respx.mock
@pytest.mark.parametrize(
    ("directory", "roots", "asked"),
    [
        (None, True, {"limit": "3", "parentID": "null"}),
        ("/srv/a", True, {"limit": "3", "parentID": "null", "directory": "/srv/a"}),
        ("/srv/a", False, {"limit": "3", "directory": "/srv/a"}),
        (None, False, {"limit": "3"}),
    ],
)
async def test_a_list_is_asked_for_by_its_filters(
    server: Server, directory: str | None, roots: bool, asked: dict[str, str]
) -> None:
    route = respx.get(f"{API}/session").mock(page(3))
    found = await server.sessions.page(directory, roots=roots, limit=3)
    assert dict(route.calls.last.request.url.params) == asked
    assert ([row.id for row in found.rows], found.following) == (["ses_0", "ses_1", "ses_2"], "c")


@respx.mock
async def test_a_cursor_goes_without_filters(server: Server) -> None:
    """The server would ignore them: its cursor has those of its list."""
    route = respx.get(f"{API}/session").mock(page(1))
    found = await server.sessions.page("/srv/a", roots=True, limit=3, cursor="b")
    assert dict(route.calls.last.request.url.params) == {"limit": "3", "cursor": "b"}
    # A short page is the last one, whatever cursor comes with it.
    assert found.following is None


@respx.mock
@pytest.mark.parametrize(
    "answer",
    [page(3, "b"), page(3, " "), page(3, 7), page(4), httpx.Response(200, json={"data": {}})],
)
async def test_a_page_that_leads_nowhere_is_no_page(server: Server, answer: httpx.Response) -> None:
    respx.get(f"{API}/session").mock(answer)
    with pytest.raises(ShapeMismatch):
        await server.sessions.page(None, roots=True, limit=3, cursor="b")


@respx.mock
@pytest.mark.parametrize("answers", [[httpx.Response(204)], [GONE], [httpx.ReadTimeout("x"), GONE]])
async def test_a_session_that_is_gone_is_deleted(
    server: Server, answers: list[httpx.Response | Exception]
) -> None:
    route = respx.delete(SESSION).mock(side_effect=answers)
    await server.sessions.delete("ses_a")
    assert route.call_count == len(answers)


@respx.mock
@pytest.mark.parametrize(("before", "sent"), [(None, {}), ("msg_x", {"before": "msg_x"})])
async def test_a_fork_is_one_request(
    server: Server, before: str | None, sent: dict[str, str]
) -> None:
    made = httpx.Response(200, json={"data": {"id": "ses_b"}})
    route = respx.post(f"{SESSION}/fork").mock(made)
    assert (await server.sessions.fork("ses_a", before)).id == "ses_b"
    assert json.loads(route.calls.last.request.content) == sent


@respx.mock
async def test_a_fork_whose_answer_is_lost_is_not_sent_again(server: Server) -> None:
    route = respx.post(f"{SESSION}/fork").mock(side_effect=httpx.ReadTimeout("x"))
    with pytest.raises(Ambiguous):
        await server.sessions.fork("ses_a")
    assert route.call_count == 1


@respx.mock
async def test_a_fork_that_is_refused_says_how(server: Server) -> None:
    body = {"_tag": "MessageNotFoundError", "message": "no"}
    respx.post(f"{SESSION}/fork").mock(httpx.Response(404, json=body))
    with pytest.raises(Refused) as caught:
        await server.sessions.fork("ses_a", "msg_x")
    assert (caught.value.status, caught.value.tag) == (404, "MessageNotFoundError")


def rows(*ids: str, cursor: str | None = "c") -> httpx.Response:
    data = [{"id": one, "type": "user", "text": "x"} for one in ids]
    return httpx.Response(200, json={"data": data, "cursor": {"next": cursor}})


async def back(server: Server) -> list[list[str]]:
    return [[row.id for row in page] async for page in server.sessions.pages_back("ses_a")]


@respx.mock
async def test_rows_are_given_by_pages_back_to_the_first(server: Server) -> None:
    pages = [rows("msg_3", "msg_2", cursor="c"), rows("msg_1", cursor="d"), rows(cursor=None)]
    route = respx.get(f"{SESSION}/message").mock(side_effect=pages)
    assert await back(server) == [["msg_3", "msg_2"], ["msg_1"], []]
    assert [call.request.url.params.get("cursor") for call in route.calls] == [None, "c", "d"]


@respx.mock
async def test_the_first_rows_of_a_session(server: Server) -> None:
    route = respx.get(f"{SESSION}/message").mock(rows("msg_1", "msg_2", cursor="c"))
    found = await server.sessions.first_rows("ses_a", 2)
    assert [row.id for row in found] == ["msg_1", "msg_2"]
    assert dict(route.calls.last.request.url.params) == {"limit": "2", "order": "asc"}


@respx.mock
async def test_the_way_back_is_bounded(server: Server) -> None:
    count = 0

    def more(_: httpx.Request) -> httpx.Response:
        nonlocal count
        count += 1
        return rows(*(f"msg_{count}_{n}" for n in range(LOOK_BACK_PAGE)), cursor=f"c{count}")

    respx.get(f"{SESSION}/message").mock(side_effect=more)
    assert sum(len(page) for page in await back(server)) == LOOK_BACK_ROWS
    assert count == LOOK_BACK_ROWS // LOOK_BACK_PAGE


@pytest.mark.parametrize(
    ("name", "value", "is_one"),
    [
        ("sessionID", "ses_a", True),
        ("sessionID", "ses_", False),
        ("sessionID", "msg_a", False),
        ("messageID", "msg_a", True),
        ("nothing", "ses_a", False),
    ],
)
def test_an_id_is_known_by_its_form(name: str, value: str, is_one: bool) -> None:
    assert is_id(name, value) is is_one
