"""The search for the newest prompt of ours: what is read of rows and of children, and how far."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import httpx
import pytest
import respx

from adapter.core.standing import Standing
from adapter.engine.newest import CHILDREN, Search
from adapter.upstream.client import Server
from adapter.upstream.sessions import LOOK_BACK_PAGE, LOOK_BACK_ROWS
from contract.calls import mention
from tests.unit.engine.rig import API, GONE, SESSION, URL, listed, no_pause

Json = dict[str, Any]

X: Final = "msg_acp_x"
OLD: Final[list[Json]] = [
    {"id": "msg_a", "type": "assistant", "finish": "stop"},
    {"id": "msg_acp_w", "type": "user", "time": {"created": 4}},
]


def end(child: str) -> Json:
    """The row that tells of a child's end."""
    metadata = {"source": "subagent", "childID": child}
    return {"id": f"msg_{child}", "type": "synthetic", "metadata": metadata}


class Desk:
    """A session's reads; `made_by` are the marks in the first items of its children."""

    def __init__(self, server: Server) -> None:
        self.rows: list[Json] = []
        self.children: list[Json] = []
        self.active: list[str] = []
        self.made_by: dict[str, str | None] = {}
        self.looked_into: list[str] = []
        self._server = server

    async def look(self, *later: str) -> Standing | None:
        with respx.mock(assert_all_called=False) as router:
            router.get(f"{SESSION}/inbox").mock(side_effect=lambda _: listed())
            active: Json = {"data": {key: {} for key in self.active}}
            router.get(f"{API}/session/active").mock(httpx.Response(200, json=active))
            router.get(f"{SESSION}/message").mock(side_effect=self._page)
            router.get(f"{API}/session").mock(side_effect=lambda _: listed(*self.children))
            children = rf"{API}/session/(?P<child>ses_c\w*)"
            router.get(url__regex=rf"{children}/inbox").mock(side_effect=self._inbox)
            router.get(url__regex=rf"{children}/message").mock(side_effect=self._first)
            return await Search(self._server, "ses_a", frozenset(later)).look()

    def _page(self, request: httpx.Request) -> httpx.Response:
        start = int(request.url.params.get("cursor", "0"))
        page = self.rows[start : start + LOOK_BACK_PAGE]
        return httpx.Response(
            200, json={"data": page, "cursor": {"next": str(start + LOOK_BACK_PAGE)}}
        )

    def _inbox(self, _: httpx.Request, child: str) -> httpx.Response:
        self.looked_into.append(child)
        return listed() if child in self.made_by else GONE

    def _first(self, _: httpx.Request, child: str) -> httpx.Response:
        call = self.made_by[child]
        agents = [] if call is None else [mention(call)]
        switched = {"id": "msg_s", "type": "model-switched"}
        return listed(switched, {"id": "msg_u", "type": "user", "agents": agents})


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with Server(URL, sleep=no_pause) as server:
        yield Desk(server)


def said(found: Standing | None) -> tuple[str, str] | None:
    return None if found is None else (found.message_id, found.state)


async def test_the_end_of_a_child_is_ours_if_a_command_of_ours_made_it(desk: Desk) -> None:
    desk.made_by = {"ses_c1": None, "ses_c2": X}
    desk.rows = [{"id": "msg_b", "type": "assistant", "finish": "stop"}, end("ses_c2"), *OLD]
    assert said(await desk.look()) == ("msg_ses_c2", "finished")
    desk.rows[1] = end("ses_c1")
    assert said(await desk.look()) == ("msg_acp_w", "finished")


async def test_the_end_of_a_child_that_is_deleted_is_nobodys(desk: Desk) -> None:
    desk.rows = [end("ses_c1"), *OLD]
    assert said(await desk.look()) == ("msg_acp_w", "finished")


async def test_of_the_ends_of_many_children_the_newest_are_looked_into(desk: Desk) -> None:
    names = [f"ses_c{n}" for n in range(CHILDREN + 3)]
    desk.made_by = dict.fromkeys(names)
    desk.rows = [*map(end, names), *OLD]
    assert said(await desk.look()) == ("msg_acp_w", "finished")
    assert desk.looked_into == names[:CHILDREN]


async def test_a_child_at_work_is_looked_into_if_it_is_newer(desk: Desk) -> None:
    desk.made_by = {"ses_c1": X, "ses_c2": X}
    desk.children = [
        {"id": "ses_c2", "parentID": "ses_a", "time": {"created": 5}},
        {"id": "ses_c1", "parentID": "ses_a", "time": {"created": 3}},
    ]
    desk.rows, desk.active = OLD, ["ses_c2"]
    assert said(await desk.look()) == (X, "running")
    assert desk.looked_into == ["ses_c2"]
    desk.active = []
    assert said(await desk.look()) == (X, "lost")
    assert said(await desk.look(X)) == ("msg_acp_w", "finished")


async def test_what_the_rows_out_of_reach_may_tell_is_not_called_lost(desk: Desk) -> None:
    desk.made_by = {"ses_c1": X}
    desk.children = [{"id": "ses_c1", "parentID": "ses_a", "time": {"created": 5}}]
    foreign = [{"id": f"msg_{n}", "type": "user"} for n in range(LOOK_BACK_ROWS)]
    desk.rows = [*foreign, end("ses_c1")]
    assert await desk.look() is None
    desk.active = ["ses_c1"]
    assert said(await desk.look()) == (X, "running")


async def test_older_pages_are_read_until_one_has_a_prompt_that_is_no_later_one(
    desk: Desk,
) -> None:
    foreign = [{"id": f"msg_{n}", "type": "user"} for n in range(LOOK_BACK_PAGE)]
    later = {"id": X, "type": "user", "time": {"created": 9}}
    desk.rows = [later, *foreign, *OLD]
    assert said(await desk.look(X)) == ("msg_acp_w", "finished")
