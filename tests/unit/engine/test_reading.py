"""The reads of a session as one snapshot: their order, what they prove, and their bounds."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpx
import pytest
import respx

from adapter.core.values import Snapshot
from adapter.engine.reading import ANCESTORS, CHILD_READS, Reader
from adapter.upstream.client import Server
from adapter.upstream.errors import Ambiguous
from stubs.server import Rule, StubServer
from tests.unit.engine.rig import API, GONE, SESSION, URL, listed, no_pause

NONE: frozenset[str] = frozenset()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server(URL, sleep=no_pause) as server:
        yield server


class Family:
    """Sessions by their parents, as routes of a server; `reads` counts those of children."""

    def __init__(
        self,
        parents: dict[str, str | None],
        active: Iterable[str] = (),
        asks: Iterable[str] = (),
        forms: Iterable[str] = (),
    ) -> None:
        self.parents = parents
        self.reads: list[str] = []
        respx.get(f"{API}/info").mock(httpx.Response(200, json={"version": "2", "pid": 7}))
        respx.get(f"{API}/session/active").mock(
            httpx.Response(200, json={"data": {key: {} for key in active}})
        )
        respx.get(f"{SESSION}/inbox").mock(listed())
        respx.get(f"{SESSION}/message").mock(listed())
        waiting = [
            {"id": f"per_{n}", "sessionID": key, "action": "shell"} for n, key in enumerate(asks)
        ]
        respx.get(f"{API}/permission/request").mock(listed(*waiting))
        questions = [{"id": f"frm_{n}", "sessionID": key} for n, key in enumerate(forms)]
        respx.get(f"{API}/form").mock(listed(*questions))
        respx.get(f"{API}/session").mock(side_effect=self._children)
        respx.get(url__regex=rf"{API}/session/(?P<name>\w+)$").mock(side_effect=self._session)

    def _children(self, request: httpx.Request) -> httpx.Response:
        parent = request.url.params["parentID"]
        self.reads.append(parent)
        return listed(*({"id": key} for key, of in self.parents.items() if of == parent))

    def _session(self, _: httpx.Request, name: str) -> httpx.Response:
        if name not in self.parents:
            return GONE
        session: dict[str, Any] = {"id": name}
        parent = self.parents[name]
        if parent is not None:
            session["parentID"] = parent
        return httpx.Response(200, json={"data": session})


async def children(server: Server, known: frozenset[str] = NONE) -> list[tuple[str, str]]:
    """The children of a snapshot of ses_a."""
    snapshot = await Reader(server, "ses_a", "/srv").snapshot(NONE, NONE, known)
    assert snapshot.state == "ok"
    return list(snapshot.children)


# Order and verdicts


async def test_the_reads_follow_the_life_of_a_prompt(tmp_path: Any) -> None:
    async with StubServer() as stub, Server(stub.url) as server:
        session = await server.create_session(str(tmp_path))
        await server.posts.prompt(session.id, "msg_1", "@@text 1@@", resume=False)
        stub.log.clear()
        judged = frozenset({"msg_1"})
        snapshot = await Reader(server, session.id, str(tmp_path)).snapshot(judged, judged, NONE)
        paths = [seen.path.replace(session.id, "ID").removeprefix("/api/") for seen in stub.log]
        assert snapshot == Snapshot(
            inbox=judged, rows=snapshot.rows, pid=stub.host.pid, judged=judged
        )
    assert paths == [
        "info",
        "session/ID/inbox",
        "session/active",
        "session/ID/message",
        "permission/request",
        "form",
        "session",
    ]


@respx.mock
async def test_rows_are_not_looked_for_while_the_prompt_is_in_the_inbox(server: Server) -> None:
    Family({"ses_a": None})
    respx.get(f"{SESSION}/inbox").mock(listed({"id": "msg_1"}))
    limits: list[str] = []

    def rows(request: httpx.Request) -> httpx.Response:
        limits.append(request.url.params["limit"])
        return listed()

    respx.get(f"{SESSION}/message").mock(side_effect=rows)
    for needed in ({"msg_1"}, {"msg_1", "msg_2"}):
        await Reader(server, "ses_a", "/srv").snapshot(frozenset(needed), NONE, NONE)
    assert limits == ["1", "200"]


async def test_a_session_that_the_server_lacks_is_gone(tmp_path: Any) -> None:
    judged = frozenset({"msg_1"})
    async with StubServer() as stub, Server(stub.url) as server:
        snapshot = await Reader(server, "ses_none", str(tmp_path)).snapshot(judged, judged, NONE)
    assert snapshot == Snapshot(state="gone", judged=judged)


@pytest.mark.parametrize("path", ["/api/info", "inbox", "active", "message", "request", "form"])
async def test_a_401_at_any_read_is_a_verdict(path: str, tmp_path: Any) -> None:
    async with StubServer() as stub, Server(stub.url) as server:
        session = await server.create_session(str(tmp_path))
        stub.faults.add(Rule("status", path, "GET", status=401))
        snapshot = await Reader(server, session.id, str(tmp_path)).snapshot(NONE, NONE, NONE)
    assert snapshot == Snapshot(state="unauthorised")


@pytest.mark.parametrize("path", ["/api/info", "inbox", "active", "message"])
async def test_a_read_that_fails_proves_nothing(path: str, tmp_path: Any) -> None:
    async with StubServer() as stub, Server(stub.url, sleep=no_pause) as server:
        session = await server.create_session(str(tmp_path))
        rule = stub.faults.add(Rule("status", path, "GET", status=503, times=100))
        with pytest.raises(Ambiguous):
            await Reader(server, session.id, str(tmp_path)).snapshot(NONE, NONE, NONE)
        # A short failure is retried below, and the snapshot stands.
        rule.times = 1
        snapshot = await Reader(server, session.id, str(tmp_path)).snapshot(NONE, NONE, NONE)
    assert snapshot.state == "ok"


@pytest.mark.parametrize(
    ("path", "asks_known", "forms_known"),
    [("request", False, True), ("form", True, False), ("/api/session$", True, False)],
)
async def test_the_verdicts_do_not_wait_for_asks_forms_and_children(
    path: str, asks_known: bool, forms_known: bool, tmp_path: Any
) -> None:
    async with StubServer() as stub, Server(stub.url, sleep=no_pause) as server:
        session = await server.create_session(str(tmp_path))
        stub.faults.add(Rule("status", path, "GET", status=503, times=100))
        snapshot = await Reader(server, session.id, str(tmp_path)).snapshot(NONE, NONE, NONE)
    assert snapshot.state == "ok"
    assert (snapshot.asks is not None, snapshot.forms is not None) == (asks_known, forms_known)


# Children


@respx.mock
async def test_only_running_children_are_looked_into(server: Server) -> None:
    family = Family(
        {"ses_a": None, "ses_b": "ses_a", "ses_c": "ses_a", "ses_d": "ses_b", "ses_e": "ses_c"},
        active=["ses_a", "ses_b"],
    )
    assert await children(server) == [
        ("ses_b", "ses_a"),
        ("ses_c", "ses_a"),
        ("ses_d", "ses_b"),
    ]
    assert family.reads == ["ses_a", "ses_b"]


@respx.mock
@pytest.mark.parametrize("kind", ["asks", "forms"])
async def test_an_asker_that_is_not_known_is_followed_upwards(server: Server, kind: str) -> None:
    parents = {"ses_a": None, "ses_b": "ses_a", "ses_c": "ses_b", "ses_d": "ses_c"}
    family = Family(parents, **{kind: ["ses_d"]})
    found = await children(server)
    assert set(found) == {("ses_b", "ses_a"), ("ses_c", "ses_b"), ("ses_d", "ses_c")}
    # Parents first: a core adopts a child of what it follows.
    assert found.index(("ses_c", "ses_b")) < found.index(("ses_d", "ses_c"))
    assert family.reads == ["ses_a"]


@respx.mock
async def test_a_form_without_a_session_is_read_like_the_others(server: Server) -> None:
    Family({"ses_a": None}, forms=["global"])
    snapshot = await Reader(server, "ses_a", "/srv").snapshot(NONE, NONE, NONE)
    assert [form.session_id for form in snapshot.forms or ()] == ["global"]
    assert not any("/session/global" in str(call.request.url) for call in respx.calls)


@respx.mock
async def test_the_way_up_ends_at_a_session_that_is_followed(server: Server) -> None:
    Family({"ses_a": None, "ses_k": "ses_lost", "ses_c": "ses_k"}, asks=["ses_c", "ses_k"])
    assert await children(server, frozenset({"ses_k"})) == [("ses_c", "ses_k")]


@respx.mock
@pytest.mark.parametrize(
    "parents",
    [
        {"ses_x": None},
        {"ses_x": "ses_y", "ses_y": None},
        {"ses_x": "ses_x"},
        {"ses_x": "ses_y", "ses_y": "ses_x"},
        {"ses_x": "ses_gone"},
        {},
    ],
    ids=["root", "other tree", "own parent", "circle", "parent gone", "gone"],
)
async def test_an_asker_of_another_tree_is_left_alone(
    server: Server, parents: dict[str, str | None]
) -> None:
    Family({"ses_a": None, **parents}, asks=["ses_x"])
    assert await children(server) == []


@respx.mock
async def test_an_asker_whose_id_cannot_be_asked_for_is_left_alone(server: Server) -> None:
    Family({"ses_a": None, "ses_b": "ses_a"}, asks=["../x", "", "ses_b"])
    assert await children(server) == [("ses_b", "ses_a")]


@respx.mock
@pytest.mark.parametrize(("length", "found"), [(ANCESTORS, ANCESTORS), (ANCESTORS + 2, 1)])
async def test_the_way_up_is_bounded(server: Server, length: int, found: int) -> None:
    names = ["ses_a", *(f"ses_{number}" for number in range(length))]
    Family({"ses_a": None, **dict(zip(names[1:], names, strict=False))}, asks=[names[-1]])
    assert len(await children(server)) == found


@respx.mock
async def test_the_reads_of_children_are_bounded(server: Server) -> None:
    names = ["ses_a", *(f"ses_{number}" for number in range(CHILD_READS + 20))]
    parents: dict[str, str | None] = {"ses_a": None, **dict(zip(names[1:], names, strict=False))}
    family = Family(parents, active=names)
    assert len(await children(server)) == CHILD_READS
    assert len(family.reads) == CHILD_READS


@respx.mock
async def test_a_circle_of_children_is_read_once(server: Server) -> None:
    family = Family({"ses_a": "ses_b", "ses_b": "ses_a"}, active=["ses_a", "ses_b"])
    assert await children(server) == [("ses_b", "ses_a")]
    assert family.reads == ["ses_a", "ses_b"]
