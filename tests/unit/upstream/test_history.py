"""The newest rows, oldest first, whatever the pages are like."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import pytest
import respx

from adapter.upstream.client import Server
from adapter.upstream.errors import ShapeMismatch
from adapter.upstream.transport import ServerSettings

URL = "http://127.0.0.1:4096"
PATH = "/api/session/ses_1/message"


class Rows:
    """The server's pages over `ids`, oldest first; `size` is a page's most."""

    def __init__(self, mock: respx.MockRouter, count: int) -> None:
        self.ids = [f"msg_{number}" for number in range(count)]
        self.limits: list[int] = []
        self.padding = ""
        self.on_read: dict[int, str] = {}
        mock.get(f"{URL}{PATH}").mock(side_effect=self._answer)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        event = self.on_read.pop(len(self.limits), None)
        if event == "add":
            self.ids.append("msg_late")
        elif event is not None:
            self.ids.remove(event)
        limit = int(request.url.params["limit"])
        self.limits.append(limit)
        newest_first = self.ids[::-1]
        cursor = json.loads(request.url.params.get("cursor", "{}"))
        if cursor:
            if cursor["id"] not in newest_first:
                return self._page([])
            at = newest_first.index(cursor["id"])
            if cursor["to"] == "next":
                return self._page(newest_first[at + 1 :][:limit])
            return self._page(newest_first[max(0, at - limit) : at])
        return self._page(newest_first[:limit])

    def _page(self, ids: list[str]) -> httpx.Response:
        rows = [{"id": ident, "type": "user", "text": self.padding} for ident in ids]
        sides = (("previous", ids[0]), ("next", ids[-1])) if ids else ()
        cursors = {to: json.dumps({"id": ident, "to": to}) for to, ident in sides}
        return httpx.Response(200, json={"data": rows, "cursor": cursors})


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server(URL, settings=ServerSettings(max_answer=20_000)) as server:
        yield server


async def read(server: Server, bound: int) -> tuple[list[str], bool, list[int]]:
    """(ids in order, whether older ones were left out, rows of each page)."""
    history = server.history("ses_1", bound)
    pages = [[row.id for row in page] async for page in history.pages()]
    return [ident for page in pages for ident in page], history.is_cut, list(map(len, pages))


@pytest.mark.parametrize("count", [0, 1, 199, 200, 201, 400, 999, 1000, 1001, 1300])
async def test_the_newest_come_once_and_in_order(
    server: Server, respx_mock: respx.MockRouter, count: int
) -> None:
    rows = Rows(respx_mock, count)
    ids, is_cut, sizes = await read(server, 1000)
    assert ids == rows.ids[-1000:]
    assert is_cut == (count > 1000)
    assert max(sizes, default=0) <= 200


async def test_a_bound_below_a_page_is_kept(server: Server, respx_mock: respx.MockRouter) -> None:
    rows = Rows(respx_mock, 30)
    assert await read(server, 7) == (rows.ids[-7:], True, [7])


@pytest.mark.parametrize("reads", [1, 4, 7])
async def test_a_row_that_is_added_meanwhile_comes_last(
    server: Server, respx_mock: respx.MockRouter, reads: int
) -> None:
    rows = Rows(respx_mock, 800)
    rows.on_read[reads] = "add"
    ids, _, _ = await read(server, 1000)
    assert ids == rows.ids


async def test_pages_that_are_too_large_are_read_in_smaller_ones(
    server: Server, respx_mock: respx.MockRouter
) -> None:
    rows = Rows(respx_mock, 300)
    rows.padding = "x" * 500
    ids, _, sizes = await read(server, 1000)
    assert ids == rows.ids
    assert max(sizes) == 25


async def test_a_row_that_vanished_is_no_end(server: Server, respx_mock: respx.MockRouter) -> None:
    rows = Rows(respx_mock, 600)
    # The row that the cursor upwards stands on, once the walk down is over.
    rows.on_read[4] = "msg_199"
    with pytest.raises(ShapeMismatch, match="changed while it was read"):
        await read(server, 1000)


async def test_cursors_that_lead_nowhere_are_a_mismatch(
    server: Server, respx_mock: respx.MockRouter
) -> None:
    row = {"id": "msg_1", "type": "user", "text": ""}
    for cursors in ({}, {"next": 5}, {"next": " "}, None):
        respx_mock.get(f"{URL}{PATH}").respond(json={"data": [row], "cursor": cursors})
        with pytest.raises(ShapeMismatch):
            await read(server, 1000)
    cursors = {"next": "x", "previous": "y"}
    pages = [{"data": [row], "cursor": cursors}, {"data": [], "cursor": {}}]
    answers = [httpx.Response(200, json=page) for page in [*pages, *[pages[0]] * 3]]
    respx_mock.get(f"{URL}{PATH}").mock(side_effect=answers)
    with pytest.raises(ShapeMismatch, match="leads back"):
        await read(server, 1000)
