"""The route table and the way from an id to a path."""

from __future__ import annotations

import pytest

from contract import routes
from contract.routes import REQUIRED, ROUTES, USED, Route, missing, url

LIVE = frozenset((route.method, route.path) for route in ROUTES)


def test_every_route_stands_in_the_table_once() -> None:
    assert len(ROUTES) == len(LIVE) == 136


def test_every_route_says_why() -> None:
    assert [route.name for route in ROUTES if len(route.why) < 10] == []


def test_required_routes_are_used() -> None:
    assert set(REQUIRED) <= set(USED)
    assert {route.used for route in USED} == {True}


def test_nothing_is_missing_from_a_whole_server() -> None:
    assert missing(LIVE) == ()


def test_a_missing_required_route_is_named() -> None:
    live = LIVE - {(routes.INTERRUPT.method, routes.INTERRUPT.path)}
    assert [route.name for route in missing(live)] == ["POST /api/session/{sessionID}/interrupt"]


def test_a_route_that_is_not_required_may_be_missing() -> None:
    assert missing(LIVE - {(routes.MESSAGE.method, routes.MESSAGE.path)}) == ()


def test_url_fills_in_the_ids() -> None:
    path = url(routes.PERMISSION_REPLY, sessionID="ses_a-B_9", requestID="per_1")
    assert path == "/api/session/ses_a-B_9/permission/per_1/reply"


@pytest.mark.parametrize(
    "session_id",
    ["", "ses_", "ses", "SES_a", "msg_a", "ses_a/b", "ses_..", "ses_a%2fb", "ses_a?x=1", "ses_ä",
     "ses_a\n", "ses_a b", "ses_{inboxID}", "ses_" + "a" * 201],
)  # fmt: skip
def test_an_id_outside_the_grammar_never_reaches_a_path(session_id: str) -> None:
    with pytest.raises(ValueError, match="no valid sessionID"):
        url(routes.SESSION_GET, sessionID=session_id)


def test_only_a_form_may_be_of_no_session() -> None:
    path = url(routes.FORM_REPLY, sessionID="global", formID="frm_1")
    assert path == "/api/session/global/form/frm_1/reply"
    with pytest.raises(ValueError, match="no valid sessionID"):
        url(routes.SESSION_GET, sessionID="global")


@pytest.mark.parametrize("params", [{}, {"sessionID": "ses_a", "inboxID": "msg_a"}])
def test_parameters_must_fit_the_route(params: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="takes"):
        url(routes.SESSION_GET, **params)


def test_a_parameter_without_a_grammar_is_refused() -> None:
    with pytest.raises(ValueError, match="no valid id"):
        url(Route("GET", "/api/shell/{id}", True, False, "only here"), id="x")
