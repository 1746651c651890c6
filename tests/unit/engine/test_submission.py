"""The POST of a prompt until it is known whether the server has it (lifecycle rules 1 to 3)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import repeat
from typing import Any

import httpx
import pytest
import respx

from adapter.acp.prompts import PromptContent
from adapter.config import Settings
from adapter.core.values import Admission, Posted
from adapter.engine.submission import Submission
from adapter.upstream.client import Server
from adapter.upstream.posts import Posts
from tests.unit.engine.rig import GONE, SESSION, URL, FixedFeed, Time

TURN = "msg_acp_1"
FILE = {"uri": "data:text/plain;base64,eA==", "name": "x"}
Answer = httpx.Response | type[Exception]


def held(text: str = "hello") -> httpx.Response:
    return httpx.Response(200, json={"data": {"id": TURN, "payload": {"text": text}}})


def refusal(status: int, message: str = "no such file") -> httpx.Response:
    return httpx.Response(status, json={"_tag": "InvalidRequestError", "message": message})


LOST: Answer = httpx.ReadError
REFUSED: Answer = httpx.ConnectError
BROKEN: Answer = httpx.Response(503)
UNAUTHORISED: Answer = httpx.Response(401)


class Desk:
    """A submission, the requests that it made, and the hour of each."""

    def __init__(self, server: Server, *, up: bool = True) -> None:
        self.time = Time()
        self.posts: list[Any] = []
        self.hours: list[float] = []
        self.on_post: Callable[[], None] = lambda: None
        self._up = up
        self._server = server

    async def submit(
        self,
        *script: Answer,
        then: Answer | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Posted:
        """Submit; the server answers as the script says, and `then` for ever."""
        answers = self._answers(*script, then=then)
        feed = FixedFeed(self._server, up=self._up)
        submission = Submission(self._server, feed, Settings(), self.time.clock, self.time.sleep)

        def answer(request: httpx.Request) -> httpx.Response:
            self.posts.append(json.loads(request.content))
            self.hours.append(self.time.now)
            self.on_post()
            given = next(answers)
            if isinstance(given, httpx.Response):
                return given
            raise given("as the script says")

        with respx.mock:
            respx.post(f"{SESSION}/prompt").mock(side_effect=answer)
            prompt = PromptContent("hello", (FILE,))
            posted = await submission.submit("ses_a", TURN, prompt, cancelled or (lambda: False))
        self.check()
        return posted

    def check(self) -> None:
        """Rule 3: only the first POST may wake; all carry the same prompt."""
        same = {"id": TURN, "text": "hello", "delivery": "queue", "files": [FILE]}
        for number, post in enumerate(self.posts):
            assert post == (same if number == 0 else {**same, "resume": False})

    @staticmethod
    def _answers(*script: Answer, then: Answer | None) -> Iterator[Answer]:
        yield from script
        if then is not None:
            yield from repeat(then)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with Server(URL) as server:
        yield Desk(server)


async def test_nothing_is_posted_before_the_feed_is_up() -> None:
    async with Server(URL) as server:
        desk = Desk(server, up=False)
        posted = await desk.submit()
    assert posted.admission is Admission.UNREACHED
    assert desk.posts == []


async def test_nothing_is_posted_for_a_turn_that_was_cancelled(desk: Desk) -> None:
    posted = await desk.submit(cancelled=lambda: True)
    assert posted.admission is Admission.UNREACHED
    assert desk.posts == []


@pytest.mark.parametrize(
    ("answer", "admission"),
    [
        (held(), Admission.ADMITTED),
        (held("another text"), Admission.UNCLEAR),
        (refusal(400), Admission.NOT_ADMITTED),
        (refusal(409), Admission.NOT_ADMITTED),
        (httpx.Response(413), Admission.NOT_ADMITTED),
        (REFUSED, Admission.UNREACHED),
        (httpx.ConnectTimeout, Admission.UNREACHED),
        (GONE, Admission.GONE),
        (UNAUTHORISED, Admission.UNAUTHORISED),
    ],
)
async def test_a_definite_answer_ends_it(desk: Desk, answer: Answer, admission: Admission) -> None:
    posted = await desk.submit(answer)
    assert (posted.turn_id, posted.admission, posted.probed) == (TURN, admission, False)
    assert len(desk.posts) == 1


async def test_a_refusal_carries_the_words_of_the_server(desk: Desk) -> None:
    assert (await desk.submit(refusal(400, "Unable to read x"))).message == "Unable to read x"


@pytest.mark.parametrize(
    "lost",
    [httpx.ReadError, httpx.ReadTimeout, httpx.WriteError, httpx.RemoteProtocolError, BROKEN,
     httpx.Response(200, text="not json"), httpx.Response(200, json={"data": {"id": "msg_x"}})],
)  # fmt: skip
async def test_a_lost_answer_is_asked_for_again_without_a_wake(desk: Desk, lost: Answer) -> None:
    posted = await desk.submit(lost, held())
    assert posted == Posted(TURN, Admission.ADMITTED, probed=True, item_id=TURN)
    assert len(desk.posts) == 2


@pytest.mark.parametrize(
    ("answer", "admission"),
    [
        (refusal(400), Admission.NOT_ADMITTED),
        (held("another text"), Admission.UNCLEAR),
        (GONE, Admission.GONE),
        (UNAUTHORISED, Admission.UNAUTHORISED),
    ],
)
async def test_a_definite_answer_ends_the_doubt(
    desk: Desk, answer: Answer, admission: Admission
) -> None:
    posted = await desk.submit(LOST, REFUSED, BROKEN, answer)
    assert posted.admission is admission
    assert len(desk.posts) == 4
    # A text under the id that is not ours was never in doubt; all else came from a probe.
    assert posted.probed is (admission is not Admission.UNCLEAR)


async def test_a_server_that_answers_has_five_seconds(desk: Desk) -> None:
    posted = await desk.submit(LOST, then=BROKEN)
    assert posted.admission is Admission.UNCLEAR
    assert 2.9 < desk.hours[-1] - desk.hours[1] <= 5
    assert desk.time.now - desk.hours[1] < 5 + 2.2


async def test_a_server_that_cannot_be_reached_has_sixty_seconds(desk: Desk) -> None:
    posted = await desk.submit(LOST, then=REFUSED)
    assert posted == Posted(TURN, Admission.UNCLEAR, "The OpenCode server cannot be reached.")
    assert 57 < desk.hours[-1] - desk.hours[0] <= 60
    assert max(desk.time.pauses) <= 2.1


async def test_the_five_seconds_begin_when_it_answers_at_all(desk: Desk) -> None:
    posted = await desk.submit(LOST, *[REFUSED] * 20, then=BROKEN)
    assert posted.admission is Admission.UNCLEAR
    assert desk.hours[21] - desk.hours[0] > 30
    assert 2.9 < desk.hours[-1] - desk.hours[21] <= 5


async def test_a_server_that_comes_back_late_is_still_asked(desk: Desk) -> None:
    posted = await desk.submit(LOST, *[REFUSED] * 20, held())
    assert posted == Posted(TURN, Admission.ADMITTED, probed=True, item_id=TURN)


async def test_a_cancel_during_the_post_starts_no_probe(desk: Desk) -> None:
    posted = await desk.submit(LOST, cancelled=lambda: bool(desk.posts))
    assert posted.admission is Admission.UNCLEAR
    assert len(desk.posts) == 1


async def test_a_cancel_during_the_post_leaves_a_definite_answer(desk: Desk) -> None:
    posted = await desk.submit(held(), cancelled=lambda: bool(desk.posts))
    assert posted.admission is Admission.ADMITTED


async def test_a_cancel_in_doubt_ends_the_probes(desk: Desk) -> None:
    posted = await desk.submit(LOST, then=BROKEN, cancelled=lambda: len(desk.posts) == 3)
    assert posted.admission is Admission.UNCLEAR
    assert len(desk.posts) == 3


async def test_each_probe_has_a_short_deadline_of_its_own() -> None:
    deadlines: list[float | None] = []

    class Watched(Posts):
        async def prompt(self, *args: Any, **more: Any) -> Any:
            deadlines.append(more["deadline"])
            return await super().prompt(*args, **more)

    async with Server(URL) as server:
        server.posts = Watched(server.posts._http)
        await Desk(server).submit(LOST, BROKEN, held())
    assert deadlines == [None, 5.0, 5.0]
