"""`python -m contract check`: the comparison, and the command with its exit codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx
import pytest
import respx

from contract.__main__ import main
from contract.check import compare, live_routes, report
from contract.routes import INTERRUPT, ROUTES

URL = "http://127.0.0.1:4096"


def document(*, without: tuple[str, ...] = (), extra: tuple[tuple[str, str], ...] = ()) -> Any:
    paths: dict[str, dict[str, object]] = {}
    for route in ROUTES:
        if route.name not in without:
            paths.setdefault(route.path, {})[route.method.lower()] = {}
    for method, path in extra:
        paths.setdefault(path, {})[method] = {}
    return {"openapi": "3.1.0", "paths": paths}


def test_live_routes_are_methods_and_paths_alone() -> None:
    paths = {"/a": {"get": {}, "parameters": []}, "/b": {"post": {}, "delete": {}}, "/c": None}
    assert live_routes({"paths": paths}) == {("GET", "/a"), ("POST", "/b"), ("DELETE", "/b")}


@pytest.mark.parametrize("other", [None, [], {}, {"paths": 5}, "openapi"])
def test_what_is_no_openapi_document_has_no_routes(other: object) -> None:
    assert live_routes(other) == frozenset()


def test_a_server_like_the_table_is_complete() -> None:
    comparison = compare(live_routes(document()))
    assert comparison.complete
    assert report(comparison) == "All 136 routes are as the table has them."


def test_the_verdict_comes_first_and_what_makes_no_difference_last() -> None:
    live = live_routes(
        document(without=("GET /api/vcs", INTERRUPT.name), extra=(("get", "/api/oracle"),))
    )
    comparison = compare(live)
    assert not comparison.complete
    assert [line.split(":")[0] for line in report(comparison, whole=True).splitlines()] == [
        "Routes that the adapter uses are missing",
        "missing, required",
        "missing, not used",
        "new, not in the table",
    ]
    assert report(comparison).splitlines()[2:] == ["Other differences: 2; --all lists them."]


def test_a_missing_unused_route_leaves_it_complete() -> None:
    comparison = compare(live_routes(document(without=("GET /api/vcs",))))
    assert comparison.complete
    assert report(comparison).splitlines() == [
        "Every route that the adapter uses is there.",
        "Other differences: 1; --all lists them.",
    ]


@respx.mock
def test_exit_0_with_the_password_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("pw\n")
    route = respx.get(f"{URL}/openapi.json").respond(json=document())
    assert main(["check", URL + "/", "--password-file", str(file)]) == 0
    sent = route.calls.last.request.headers["authorization"]
    assert sent == httpx.BasicAuth("opencode", "pw")._auth_header


@respx.mock
@pytest.mark.parametrize(("flags", "lines"), [([], 2), (["--all"], 3)])
def test_all_differences_are_listed_on_demand(
    flags: list[str], lines: int, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking = document(without=("GET /api/vcs", "GET /api/agent/{agentID}"))
    respx.get(f"{URL}/openapi.json").respond(json=lacking)
    assert main(["check", URL, *flags]) == 0
    assert len(capsys.readouterr().out.splitlines()) == lines


@respx.mock
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (httpx.Response(200, json=document(without=(INTERRUPT.name,))), 1),
        (httpx.Response(401), 3),
        (httpx.Response(500), 75),
        (httpx.Response(200, html="<html>"), 75),
        (httpx.Response(200, json={"paths": {}}), 75),
    ],
)
def test_exit_codes(answer: httpx.Response, code: int) -> None:
    respx.get(f"{URL}/openapi.json").mock(return_value=answer)
    assert main(["check", URL]) == code


@respx.mock
def test_exit_75_when_nobody_listens(capsys: pytest.CaptureFixture[str]) -> None:
    respx.get(f"{URL}/openapi.json").mock(side_effect=httpx.ConnectError("refused"))
    assert main(["check", URL]) == 75
    assert capsys.readouterr().err == f"The server at {URL} cannot be reached.\n"


@respx.mock
@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({}, "wants a password, and none was given: name its file by --password-file"),
        ({"OPENCODE_SERVER_PASSWORD": "hush"}, "refused the password."),
    ],
)
def test_a_password_that_was_not_given_was_not_refused(
    environment: dict[str, str],
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENCODE_SERVER_PASSWORD", "OPENCODE_PASSWORD"):
        monkeypatch.delenv(name, raising=False)
    for name, password in environment.items():
        monkeypatch.setenv(name, password)
    respx.get(f"{URL}/openapi.json").respond(401)
    assert main(["check", URL]) == 3
    error = capsys.readouterr().err
    assert told in error and error.count("\n") == 1 and "hush" not in error


def test_exit_2_for_a_password_file_that_is_missing(tmp_path: Path) -> None:
    assert main(["check", URL, "--password-file", str(tmp_path / "none")]) == 2
