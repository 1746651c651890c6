"""One session's hub on an engine: turns, gaps, asks and timers, seen by clients of its own."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from adapter.acp.capabilities import Capabilities
from adapter.acp.prompts import PromptContent
from adapter.config import Waits
from adapter.core import values as v
from adapter.engine.client import Attachment
from adapter.engine.hub import Hub
from adapter.limits import DEFAULTS
from contract.errors import Code
from contract.semantics import OWN_MESSAGE_PREFIX
from stubs.server import Cut, End, Rule
from stubs.waiting import until
from tests.unit.engine.front import ALLOW, ASK, SHELL, Stage, stage, words

Json = dict[str, object]


class Listener:
    """A client that keeps what it gets; `answers` is what it says when asked, None to wait."""

    def __init__(self, answers: object = ALLOW) -> None:
        self.can = Capabilities(notices=True)
        self.limits = DEFAULTS
        self.label = "7 acpx 0.19.1"
        self.answers = answers
        self.updates: list[Any] = []
        self.texts: list[str] = []
        self.asked: list[Any] = []
        self.withdrawn = 0
        self.on_text: Callable[[], None] = lambda: None

    def update(self, session_id: str, update: Json) -> None:
        self.updates.append(update)

    def text(self, session_id: str, chunk: v.Chunk) -> None:
        self.texts.append(chunk.text)
        self.on_text()

    async def ask(self, method: str, params: Json) -> object:
        self.asked.append(params)
        if self.answers is not None:
            return self.answers
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.withdrawn += 1
            raise
        return None

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    async def until_text(self, count: int) -> None:
        async def come() -> bool:
            return words(count) in "".join(self.texts)

        await until(f"{count} words", come)


class Room:
    """A hub with one client."""

    def __init__(self, scene: Stage, hub: Hub) -> None:
        self.scene = scene
        self.hub = hub
        self.listener = Listener()
        self.owner = self.join(self.listener)
        self._turns = 0

    def join(self, listener: Listener) -> int:
        owner = self.scene.engine.new_owner()
        self.hub.attach(Attachment(owner, listener))
        return owner

    def prompt(self, text: str, owner: int | None = None) -> asyncio.Future[v.Outcome]:
        self._turns += 1
        turn_id = f"{OWN_MESSAGE_PREFIX}{self._turns}"
        return self.hub.prompt(owner or self.owner, turn_id, PromptContent(text))

    async def outcome(self, answer: asyncio.Future[v.Outcome]) -> v.Outcome:
        async with asyncio.timeout(10):
            outcome = await answer
        assert not any(self.hub.core.tables().values()) or self.hub.core.turn_ids
        assert self.hub.calls == 0 or self.hub.core.turn_ids
        return outcome

    async def run(self, text: str) -> v.Outcome:
        return await self.outcome(self.prompt(text))


async def enter(scene: Stage) -> Room:
    session = await scene.engine.server.create_session(str(scene.root))
    await scene.engine.catalogues.get(str(scene.root))
    await scene.until_up()
    return Room(scene, scene.engine.hub(session, str(scene.root)))


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    async with stage(tmp_path, ASK) as scene:
        yield await enter(scene)


async def test_a_turn_with_all_that_belongs_to_it(room: Room) -> None:
    outcome = await room.run(f"@@think 3 && text 4 && {SHELL} || text 2@@")
    assert outcome.stop is v.Stop.END_TURN
    assert "".join(room.listener.texts) == "think0 think1 think2 " + words(4) + words(2)
    (call,) = room.listener.of("tool_call")
    last = room.listener.of("tool_call_update")[-1]
    assert (last["toolCallId"], last["status"]) == (call["toolCallId"], "completed")
    assert [usage["size"] for usage in room.listener.of("usage_update")] == [100_000] * 2
    assert outcome.tokens is not None
    assert outcome.tokens.total > 0
    (ask,) = room.listener.asked
    assert (ask["sessionId"], ask["toolCall"]["toolCallId"]) == (
        room.hub.session_id,
        call["toolCallId"],
    )


async def test_updates_go_to_the_client_whose_turn_it_is(room: Room) -> None:
    other = Listener()
    room.join(other)
    await room.run("@@text 3@@")
    assert (other.texts, other.asked) == ([], [])
    # The title is the session's, and so everybody's.
    assert [update.get("title") for update in other.updates] == ["A scripted title"]


async def test_two_clients_have_turns_one_after_the_other(room: Room) -> None:
    other = Listener()
    owner = room.join(other)
    first, second = room.prompt("@@text 5@@"), room.prompt("@@text 3@@", owner)
    assert [(await room.outcome(one)).stop for one in (first, second)] == [v.Stop.END_TURN] * 2
    assert ("".join(room.listener.texts), "".join(other.texts)) == (words(5), words(3))


async def test_nobody_to_ask_is_a_rejection(room: Room) -> None:
    answer = room.prompt(f"@@{SHELL} || text 2@@")
    room.hub.detach(room.owner)
    assert (await room.outcome(answer)).stop is v.Stop.END_TURN
    (reply,) = room.scene.asked("POST", "/reply")
    assert reply["decision"] == "reject"


async def test_detaching_says_whether_somebody_is_left(room: Room) -> None:
    other = room.join(Listener())
    assert not room.hub.detach(room.owner)
    assert not room.hub.detach(room.owner)
    assert room.hub.detach(other)


async def test_settled_waits_for_the_turn_of_that_client_alone(room: Room) -> None:
    other = room.join(Listener())
    answer = room.prompt("@@text 3 && wait 60000@@")
    await room.listener.until_text(3)
    await room.hub.settled(other)
    waiting = asyncio.create_task(room.hub.settled(room.owner))
    await asyncio.sleep(0)
    assert not waiting.done()
    room.hub.cancel(room.owner)
    await waiting
    assert answer.result().stop is v.Stop.CANCELLED


# Gaps


@pytest.mark.parametrize("end", [End.CLEAN, End.TORN])
async def test_a_cut_in_mid_text_costs_no_character(room: Room, end: End) -> None:
    answer = room.prompt("@@text 40 10 || text 1@@")
    await room.listener.until_text(3)
    room.scene.stub.feed.cut(Cut(0, end))
    outcome = await room.outcome(answer)
    assert (outcome.stop, outcome.gaps) == (v.Stop.END_TURN, 1)
    assert outcome.recovered > 0
    assert "".join(room.listener.texts) == words(40)


async def test_a_second_gap_during_the_reads_begins_them_anew(room: Room) -> None:
    answer = room.prompt("@@text 60 10@@")
    await room.listener.until_text(3)
    # The first reading is held up until the feed is lost once more.
    room.scene.stub.faults.add(Rule("delay", "/inbox", "GET", seconds=60))
    room.scene.stub.feed.cut(Cut(0))
    await room.scene.until_asked("GET", "/inbox")
    room.scene.stub.feed.cut(Cut(0))
    await room.scene.until_asked("GET", "/inbox", 2)
    outcome = await room.outcome(answer)
    assert (outcome.stop, outcome.gaps) == (v.Stop.END_TURN, 2)
    assert "".join(room.listener.texts) == words(60)


async def test_an_ask_that_vanished_in_a_gap_is_withdrawn(room: Room) -> None:
    room.listener.answers = None
    answer = room.prompt(f"@@{SHELL} || text 1@@")

    async def asked() -> bool:
        return bool(room.listener.asked)

    await until("the ask", asked)
    room.scene.stub.feed.hush(True)
    (ask,) = room.scene.stub.host.permissions.asks.values()
    room.scene.stub.host.permissions.reply(room.hub.session_id, ask.id, "once", None)
    room.scene.stub.feed.hush(False)
    assert (await room.outcome(answer)).stop is v.Stop.END_TURN
    assert (room.listener.withdrawn, len(room.listener.asked)) == (1, 1)
    assert "".join(room.listener.texts) == words(1)


async def test_an_ask_that_still_stands_after_a_gap_is_not_asked_twice(room: Room) -> None:
    room.listener.answers = None
    answer = room.prompt(f"@@{SHELL} || text 1@@")

    async def asked() -> bool:
        return bool(room.listener.asked)

    await until("the ask", asked)
    reads = len(room.scene.asked("GET", "/permission/request"))
    room.scene.stub.feed.cut(Cut(0))
    await room.scene.until_asked("GET", "/permission/request", reads + 1)
    await room.scene.until_up()
    room.hub.cancel(room.owner)
    assert (await room.outcome(answer)).stop is v.Stop.CANCELLED
    assert (len(room.listener.asked), room.listener.withdrawn) == (1, 1)


async def test_what_a_gap_hid_of_the_choices_is_read(room: Room) -> None:
    assert (room.hub.choices.agent, room.hub.choices.model) == (None, None)
    path = f"{room.scene.stub.url}/api/session/{room.hub.session_id}"
    room.scene.stub.feed.hush(True)
    async with httpx.AsyncClient() as http:
        await http.post(f"{path}/agent", json={"agent": "plan"})
        await http.post(f"{path}/model", json={"model": {"id": "fake-2", "providerID": "fake"}})
    room.scene.stub.feed.hush(False)

    async def known() -> bool:
        return room.hub.choices.agent == "plan" and room.hub.choices.model is not None

    await until("the choices", known)
    assert room.hub.choices.model is not None
    assert room.hub.choices.model.key == "fake/fake-2"


async def test_a_choice_of_another_front_end_is_heard(room: Room) -> None:
    path = f"{room.scene.stub.url}/api/session/{room.hub.session_id}"
    async with httpx.AsyncClient() as http:
        await http.post(f"{path}/agent", json={"agent": "plan"})

    async def known() -> bool:
        return room.hub.choices.agent == "plan"

    await until("the choice", known)


async def test_a_deleted_session_ends_every_turn(room: Room) -> None:
    owner = room.join(Listener())
    answers = [room.prompt("@@text 3 && wait 60000@@"), room.prompt("@@text 1@@", owner)]
    await room.listener.until_text(3)
    async with httpx.AsyncClient() as http:
        await http.delete(f"{room.scene.stub.url}/api/session/{room.hub.session_id}")
    codes = [(await room.outcome(answer)).code for answer in answers]
    assert codes == [Code.ENDED_ELSEWHERE] * 2
    outcome = await room.run("@@text 1@@")
    assert outcome.code == Code.SESSION_GONE


async def test_a_refused_password_ends_a_turn_as_such(room: Room) -> None:
    answer = room.prompt("@@text 3 && wait 60000@@")
    await room.listener.until_text(3)
    room.scene.stub.faults.unauthorized = True
    room.scene.stub.feed.cut(Cut(0))
    assert (await room.outcome(answer)).code == Code.AUTH_REQUIRED


# Posts and timers


async def test_a_lost_answer_to_the_post_makes_no_second_prompt(room: Room) -> None:
    room.scene.stub.faults.add(Rule("drop_after", "/prompt"))
    outcome = await room.run("@@text 3@@")
    assert outcome.stop is v.Stop.END_TURN
    assert "".join(room.listener.texts) == words(3)
    assert set(room.scene.stub.admissions.values()) == {1}


async def test_a_prompt_that_only_the_probe_brought_in_is_woken(room: Room) -> None:
    room.scene.stub.faults.add(Rule("drop_before", "/prompt"))
    outcome = await room.run("@@text 3@@")
    assert outcome.stop is v.Stop.END_TURN
    assert "".join(room.listener.texts) == words(3)
    assert [post.get("resume") for post in room.scene.asked("POST", "/prompt")] == [None, False]
    assert {"delivery": "steer"} in [
        body for body in room.scene.asked("PATCH", f"{OWN_MESSAGE_PREFIX}1")
    ]


async def test_a_cancel_that_is_not_confirmed_is_answered_in_time(tmp_path: Path) -> None:
    async with stage(tmp_path, waits=Waits(cancel=0.1)) as scene:
        room = await enter(scene)
        answer = room.prompt("@@text 3 && wait 60000@@")
        await room.listener.until_text(3)
        scene.stub.faults.add(Rule("status", "/interrupt", times=100))
        room.hub.cancel(room.owner)
        outcome = await room.outcome(answer)
        assert (outcome.stop, outcome.cancel) == (v.Stop.CANCELLED, "unconfirmed")
        (notice,) = room.listener.of("notice")
        assert notice["_meta"]["opencode-acp"]["notice"] == "cancel_unconfirmed"


async def test_a_second_cancel_sends_nothing_more(room: Room) -> None:
    answer = room.prompt("@@text 3 && wait 60000@@")
    await room.listener.until_text(3)
    for _ in range(3):
        room.hub.cancel(room.owner)
    assert (await room.outcome(answer)).stop is v.Stop.CANCELLED
    room.hub.cancel(room.owner)
    assert len(room.scene.asked("POST", "/interrupt")) == 1


async def test_a_turn_that_waits_says_for_what(tmp_path: Path) -> None:
    async with stage(tmp_path, waits=Waits(ahead=0.05)) as scene:
        room = await enter(scene)
        other = Listener()
        owner = room.join(other)
        first = room.prompt("@@text 3 && wait 60000@@")
        await room.listener.until_text(3)
        second = room.prompt("@@text 1@@", owner)

        async def told() -> bool:
            return bool(other.of("notice"))

        await until("the notice", told)
        assert "a running turn" in other.of("notice")[0]["title"]
        room.hub.cancel(owner)
        assert (await room.outcome(second)).stop is v.Stop.CANCELLED
        assert not first.done()
        room.hub.cancel(room.owner)
        await room.outcome(first)


async def test_a_huge_error_of_a_provider_reaches_the_client_cut(room: Room) -> None:
    room.scene.stub.faults.clear()
    answer = room.prompt("@@text 3 && wait 300@@")
    await room.listener.until_text(3)
    message_id = next(
        row["id"]
        for row in room.scene.stub.host.store.sessions[room.hub.session_id].rows
        if row["type"] == "assistant"
    )
    error = {"type": "provider.unknown", "message": "\x00" * 500_000}
    data = {"sessionID": room.hub.session_id, "assistantMessageID": message_id, "attempt": 1}
    data |= {"at": 1, "error": error}
    room.scene.stub.inject({"id": "evt_1", "type": "session.retry.scheduled", "data": data})
    await room.outcome(answer)
    (notice,) = room.listener.of("notice")
    assert len(notice["title"]) < 5000


async def test_closing_ends_every_task_and_timer(room: Room) -> None:
    room.listener.answers = None
    room.prompt(f"@@text 3 && {SHELL}@@")

    async def asked() -> bool:
        return bool(room.listener.asked)

    await until("the ask", asked)
    await room.hub.aclose()
    assert room.listener.withdrawn == 1
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert not [name for name in names if name.startswith(("ask", "submit", "snapshot"))]


async def test_progress_that_shows_nothing_new_is_not_sent(room: Room) -> None:
    await room.run(f"@@{SHELL} || text 1@@")
    updates = [*room.listener.of("tool_call"), *room.listener.of("tool_call_update")]
    assert all(one != other for one, other in itertools.pairwise(updates))
    assert [update["status"] for update in updates] == ["pending", "in_progress", "completed"]
