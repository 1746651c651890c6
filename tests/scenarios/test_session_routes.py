"""What lists, forks and deletions rest on: the routes themselves, on both servers."""

from __future__ import annotations

import httpx
import pytest

from tests.scenarios.stage import FrontEnd, Json, Stage


async def page(front: FrontEnd, **query: str | int) -> Json:
    answer = await front.http.get("/api/session", params=query)
    found: Json = answer.raise_for_status().json()
    return found


async def make(front: FrontEnd, directory: str, count: int) -> list[str]:
    """The ids of new sessions, the newest first."""
    ids = []
    for _ in range(count):
        body = {"location": {"directory": directory}}
        answer = await front.http.post("/api/session", json=body)
        ids.append(answer.raise_for_status().json()["data"]["id"])
    return ids[::-1]


def ids(found: Json) -> list[str]:
    return [one["id"] for one in found["data"]]


def tag(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["_tag"]


async def test_every_page_with_rows_has_cursors_and_the_end_has_none(stage: Stage) -> None:
    front = await stage.front_end()
    directory = str(stage.project())
    made = await make(front, directory, 4)
    first = await page(front, directory=directory, limit=2)
    second = await page(front, cursor=first["cursor"]["next"], limit=2)
    assert (ids(first), ids(second)) == (made[:2], made[2:])
    end = await page(front, cursor=second["cursor"]["next"], limit=2)
    assert end == {"data": [], "cursor": {"previous": None, "next": None}}
    back = await page(front, cursor=second["cursor"]["previous"], limit=2)
    assert ids(back) == made[:2]
    assert ids(await page(front, directory=directory, order="asc")) == made[::-1]
    assert ids(await page(front, directory=directory, limit=100_000)) == made


async def test_a_cursor_has_the_filters_of_its_list(stage: Stage) -> None:
    front = await stage.front_end()
    directory, other = str(stage.project()), str(stage.project())
    made = await make(front, directory, 2)
    await make(front, other, 1)
    cursor = (await page(front, directory=directory, limit=1))["cursor"]["next"]
    assert ids(await page(front, cursor=cursor, directory=other, parentID="ses_x")) == made[1:]


async def test_a_session_that_changes_leaves_the_pages_to_come(stage: Stage) -> None:
    front = await stage.front_end()
    directory = str(stage.project())
    made = await make(front, directory, 3)
    first = await page(front, directory=directory, limit=1)
    await front.post(f"session/{made[2]}/agent", {"agent": "plan"})
    assert ids(await page(front, cursor=first["cursor"]["next"])) == made[1:2]
    assert ids(await page(front, cursor=first["cursor"]["previous"])) == made[2:]


async def test_directories_are_strings(stage: Stage) -> None:
    front = await stage.front_end()
    directory = str(stage.project())
    (one,) = await make(front, directory, 1)
    (two,) = await make(front, f"{directory}/", 1)
    assert ids(await page(front, directory=directory)) == [one]
    assert ids(await page(front, directory=f"{directory}/")) == [two]
    assert ids(await page(front, directory=f"{directory}/.")) == []
    answer = await front.http.get("/api/session", params={"directory": "relative"})
    assert (answer.status_code, answer.content) == (500, b"")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ({"cursor": "garbage"}, "InvalidCursorError"),
        ({"cursor": ""}, "InvalidCursorError"),
        ({"limit": "0"}, "InvalidRequestError"),
        ({"limit": "x"}, "InvalidRequestError"),
    ],
)
async def test_a_list_refuses(stage: Stage, query: dict[str, str], told: str) -> None:
    front = await stage.front_end()
    assert tag(await front.http.get("/api/session", params=query)) == (400, told)


async def test_a_fork_refuses(stage: Stage) -> None:
    front = await stage.front_end()
    (session,) = await make(front, str(stage.project()), 1)
    fork = f"/api/session/{session}/fork"
    assert tag(await front.http.post(fork, json={})) == (400, "InvalidRequestError")
    await front.post(f"session/{session}/agent", {"agent": "plan"})
    for before, told in (
        ("msg_nobody", (404, "MessageNotFoundError")),
        ("nonsense", (400, "InvalidRequestError")),
    ):
        assert tag(await front.http.post(fork, json={"before": before})) == told
    assert tag(await front.http.post(fork)) == (400, "InvalidRequestError")
    copy = (await front.http.post(fork, json={"before": None})).json()["data"]
    assert (copy["agent"], copy["fork"]["sessionID"], "parentID" in copy) == (
        "plan",
        session,
        False,
    )


async def test_a_deletion_is_not_repeated(stage: Stage) -> None:
    front = await stage.front_end()
    (session,) = await make(front, str(stage.project()), 1)
    await front.delete(f"session/{session}")
    gone = await front.http.delete(f"/api/session/{session}")
    assert tag(gone) == (404, "SessionNotFoundError")
