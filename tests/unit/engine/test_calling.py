"""What a prompt calls, and the search for a command whose answer was lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
import respx

from adapter.acp.prompts import PromptContent, Slash
from adapter.config import Settings
from adapter.core.values import Admission, Posted
from adapter.engine.calling import Search, recognise
from adapter.engine.slash import CommandCall, Compact
from adapter.upstream.catalogue import Catalogues
from adapter.upstream.client import Server
from contract.calls import mention
from stubs.server import StubServer
from tests.unit.engine.rig import API, SESSION, URL, Time, listed

TURN = "msg_acp_1"
FILES = ({"uri": "data:,x", "name": "x"},)
SKILL = "---\nname: greet\n---\nHello.\n"


def prompt(text: str) -> PromptContent:
    name, _, rest = text.removeprefix("/").partition(" ")
    return PromptContent(text, FILES, slash=Slash(name, rest))


@pytest.fixture
async def catalogues(tmp_path: Path) -> AsyncIterator[Catalogues]:
    commands = tmp_path / ".opencode" / "command"
    commands.mkdir(parents=True)
    (commands / "say.md").write_text("say", encoding="utf-8")
    for name in ("greet", "say"):
        skill = tmp_path / ".opencode" / "skill" / name
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text(SKILL.replace("greet", name), encoding="utf-8")
    async with StubServer() as stub, Server(stub.url) as server:
        yield Catalogues(server)


async def test_a_command_a_skill_and_a_compaction(catalogues: Catalogues, tmp_path: Path) -> None:
    where = str(tmp_path)
    assert await recognise(prompt("/say it"), catalogues, where) == CommandCall("say", "it", FILES)
    assert await recognise(prompt("/compact"), catalogues, where) == Compact()
    skill = await recognise(prompt("/greet me"), catalogues, where)
    assert skill == PromptContent("me", FILES, ("greet",))


async def test_what_is_no_name_passes_as_it_is(catalogues: Catalogues, tmp_path: Path) -> None:
    unknown = prompt("/nobody x")
    assert await recognise(unknown, catalogues, str(tmp_path)) is unknown
    plain = PromptContent("hello")
    assert await recognise(plain, catalogues, str(tmp_path)) is plain


async def test_a_command_that_came_later_is_found(catalogues: Catalogues, tmp_path: Path) -> None:
    where = str(tmp_path)
    await catalogues.get(where)
    (tmp_path / ".opencode" / "command" / "late.md").write_text("late", encoding="utf-8")
    assert await recognise(prompt("/late"), catalogues, where) == CommandCall("late", "", FILES)


# The search


class Desk:
    """A search, the clock that its pauses move, and the reads that it meets."""

    def __init__(self, server: Server) -> None:
        self.time = Time()
        self.search = Search(server, Settings(), self.time.clock, self.time.sleep)
        self.inbox: list[object] = []
        self.rows: list[object] = []
        self.children: list[object] = []
        self.fails = False
        self.over = False

    async def look(self) -> Posted:
        def answer(what: list[object]) -> httpx.Response:
            return httpx.Response(503) if self.fails else listed(*what)

        with respx.mock(assert_all_called=False) as router:
            router.get(f"{SESSION}/inbox").mock(side_effect=lambda _: answer(self.inbox))
            router.get(f"{SESSION}/message").mock(side_effect=lambda _: answer(self.rows))
            router.get(f"{API}/session").mock(side_effect=lambda _: answer(self.children))
            child = f"{API}/session/ses_child"
            router.get(f"{child}/inbox").mock(side_effect=lambda _: answer([]))
            mine = {"id": "msg_c", "type": "user", "agents": [mention(TURN)]}
            router.get(f"{child}/message").mock(side_effect=lambda _: answer([mine]))
            return await self.search.look("ses_a", TURN, "lost", lambda: self.over)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async def no_pause(_: float) -> None:
        return None

    async with Server(URL, sleep=no_pause) as server:
        yield Desk(server)


async def test_it_is_found_in_the_inbox(desk: Desk) -> None:
    desk.inbox = [{"id": "msg_i", "type": "user", "payload": {"agents": [mention(TURN)]}}]
    posted = await desk.look()
    assert posted == Posted(TURN, Admission.ADMITTED, probed=True, item_id="msg_i")


async def test_it_is_found_in_the_rows(desk: Desk) -> None:
    desk.rows = [
        {"id": "msg_i", "type": "user", "agents": [mention(TURN)]},
        {"id": "msg_o", "type": "user", "agents": [mention("msg_acp_2")]},
    ]
    assert (await desk.look()).item_id == "msg_i"


async def test_a_child_that_carries_it_out_is_found(desk: Desk) -> None:
    desk.children = [{"id": "ses_child", "parentID": "ses_a"}]
    assert await desk.look() == Posted(TURN, Admission.ADMITTED, probed=True)


async def test_what_stays_absent_was_not_taken(desk: Desk) -> None:
    desk.rows = [{"id": "msg_o", "type": "user", "agents": [mention("msg_acp_2")]}]
    posted = await desk.look()
    assert (posted.admission, posted.message) == (Admission.NOT_ADMITTED, "lost")
    assert 5 <= sum(desk.time.pauses) < 6


async def test_what_cannot_be_read_is_unclear(desk: Desk) -> None:
    desk.fails = True
    assert (await desk.look()).admission is Admission.UNCLEAR
    assert 60 <= sum(desk.time.pauses) < 61


async def test_it_ends_when_it_is_over(desk: Desk) -> None:
    desk.over = True
    assert (await desk.look()).admission is Admission.UNCLEAR
