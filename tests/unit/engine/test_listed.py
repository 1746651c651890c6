"""Rows of the server's list as ACP shows them: what is told, what is left out, what is counted."""

from __future__ import annotations

from typing import Any

import pytest

from adapter.core.values import Oddity
from adapter.engine.counters import Counters
from adapter.engine.lineage import parents
from adapter.engine.listed import DIRECTORY_BYTES, TITLE_CHARS, infos
from contract.reads import SessionRow

NOBODY: frozenset[str] = frozenset()


def row(name: str = "ses_a", parent: object = None, **more: Any) -> SessionRow:
    raw = {"id": name, "location": {"directory": "/srv/a"}, "time": {"created": 1000}}
    return SessionRow.model_validate(raw | ({} if parent is None else {"parentID": parent}) | more)


def info(one: SessionRow, active: frozenset[str] | None = NOBODY) -> dict[str, Any]:
    (found,) = infos([one], active, Counters().hit)
    return found


def lineage(*rows: SessionRow) -> dict[str, str]:
    return parents(rows)[0]


def test_a_session_without_anything_has_what_acp_needs() -> None:
    assert info(row()) == {
        "sessionId": "ses_a",
        "cwd": "/srv/a",
        "updatedAt": "1970-01-01T00:00:01.000Z",
        "_meta": {"opencode-acp": {"running": False}},
    }


@pytest.mark.parametrize(("title", "told"), [("Hi", "Hi"), ("", None), ("  \n", None)])
def test_a_title_is_told_and_none_made_up(title: str, told: str | None) -> None:
    assert info(row(title=title)).get("title") == told


def test_a_long_title_is_cut_with_a_mark() -> None:
    title = info(row(title="x" * 3000))["title"]
    assert title.startswith("x" * TITLE_CHARS + "…")
    assert len(title) < TITLE_CHARS + 40


def test_what_runs_comes_from_what_is_active_alone() -> None:
    assert info(row(), frozenset({"ses_a"}))["_meta"]["opencode-acp"]["running"] is True
    assert infos([], frozenset({"ses_a"}), Counters().hit) == []
    # Not known is not told.
    assert "_meta" not in info(row(), None)


@pytest.mark.parametrize("time", [{}, {"created": -1}, {"created": 0}, {"created": 1e300}])
def test_a_time_that_is_none_is_left_out(time: dict[str, float]) -> None:
    assert "updatedAt" not in info(row(time=time))


def test_the_last_change_is_the_time_of_a_session() -> None:
    changed = info(row(time={"created": 1000, "updated": 1796069912964}))
    assert changed["updatedAt"] == "2026-11-30T20:18:32.964Z"


@pytest.mark.parametrize(
    "more",
    [
        {"location": {"directory": ""}},
        {"location": {"directory": "relative"}},
        {"location": None},
        {"location": {"directory": "/" + "x" * DIRECTORY_BYTES}},
        {"id": "nonsense"},
        {"id": ""},
        {"id": "ses_../x"},
    ],
)
def test_a_session_that_no_client_can_open_is_left_out_and_counted(more: dict[str, Any]) -> None:
    counters = Counters()
    found = infos([row(**{"name": "ses_b"}), row(**{"name": "ses_a"}).model_copy(
        update=_copied(more))], NOBODY, counters.hit)  # fmt: skip
    assert [one["sessionId"] for one in found] == ["ses_b"]
    assert (counters[Oddity.SESSIONS_NOT_LISTED], counters[Oddity.PARENTS_NOT_TOLD]) == (1, 0)


def _copied(more: dict[str, Any]) -> dict[str, Any]:
    made = SessionRow.model_validate({"id": "ses_a", **more})
    return {key: getattr(made, key) for key in more}


def test_a_child_is_told_with_its_parent() -> None:
    (child, _) = infos([row("ses_b", "ses_a"), row()], NOBODY, Counters().hit)
    told = child["_meta"]["opencode-acp"]  # type: ignore[index]
    assert (told["parentSessionId"], told["spawnedBy"]) == ("ses_a", "ses_a")


@pytest.mark.parametrize(
    "parent", ["", " ", "nonsense", "ses_", "ses_/x", 7, True, [], {}, "ses_a"]
)
def test_a_parent_that_cannot_be_is_not_told_but_counted(parent: object) -> None:
    counters = Counters()
    (found,) = infos([row("ses_a", parent)], NOBODY, counters.hit)
    assert found["_meta"] == {"opencode-acp": {"running": False}}
    assert (counters[Oddity.SESSIONS_NOT_LISTED], counters[Oddity.PARENTS_NOT_TOLD]) == (0, 1)


def test_a_root_has_no_lineage_to_count() -> None:
    counters = Counters()
    infos([row()], NOBODY, counters.hit)
    assert counters[Oddity.PARENTS_NOT_TOLD] == 0


def test_a_parent_need_not_be_on_the_page() -> None:
    assert lineage(row("ses_b", "ses_a")) == {"ses_b": "ses_a"}


def test_a_circle_has_no_lineage_nor_has_what_leads_into_it() -> None:
    circle = [row("ses_a", "ses_c"), row("ses_b", "ses_a"), row("ses_c", "ses_b")]
    into = [row("ses_d", "ses_a"), row("ses_e", "ses_d")]
    beside = [row("ses_f", "ses_g"), row("ses_h", "ses_f")]
    kept, refused = parents([*circle, *into, *beside])
    assert kept == {"ses_f": "ses_g", "ses_h": "ses_f"}
    assert refused == 5


def test_a_long_line_of_parents_is_walked_to_its_end() -> None:
    rows = [row(f"ses_{n}", f"ses_{n + 1}") for n in range(100)]
    assert len(lineage(*rows)) == 100
