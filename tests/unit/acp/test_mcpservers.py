"""MCP servers of a client: what is taken, under which name, and in which words of the server."""

from __future__ import annotations

import re
from typing import Any

import pytest

from adapter.acp.mcpservers import config, registered_name, wanted
from contract.errors import AcpError, Code
from contract.mcp import Header, HttpServer, StdioServer, Variable
from contract.routes import MCP_PUT, url

STDIO = {"name": "files", "command": "/usr/bin/files", "args": ["--x"], "env": []}
HTTP = {"type": "http", "name": "web", "url": "https://example.org/mcp", "headers": []}
SECRET = "cAnary"


def http(address: object) -> dict[str, Any]:
    return {**HTTP, "url": address}


def test_servers_are_read_as_clients_send_them() -> None:
    """ACP gives stdio no type; acpx and others add one."""
    assert wanted("register", [STDIO, HTTP]) == (
        StdioServer(name="files", command="/usr/bin/files", args=["--x"], env=[]),
        HttpServer(type="http", name="web", url="https://example.org/mcp", headers=[]),
    )
    assert wanted("register", [{**STDIO, "type": "stdio"}]) == wanted("register", [STDIO])
    assert wanted("register", []) == wanted("reject", []) == ()


def test_under_notice_nothing_is_looked_at() -> None:
    assert wanted("notice", [STDIO, 5, None, http("zzz")]) == ()


def refused(policy: Any, *servers: object) -> AcpError:
    with pytest.raises(AcpError) as caught:
        wanted(policy, servers)
    return caught.value


def test_an_operator_may_want_none() -> None:
    assert refused("reject", STDIO).code == Code.INVALID_PARAMS


@pytest.mark.parametrize(
    "server",
    [5, None, [], {}, {"name": "a"}, {**STDIO, "name": ""}, {**STDIO, "command": ""},
     {**STDIO, "args": "x"}, {**STDIO, "args": [1]}, {**STDIO, "env": [{"name": "A"}]},
     {**STDIO, "env": {"A": "b"}}, {**STDIO, "name": "x" * 300}, {**STDIO, "args": ["x"] * 300},
     {**STDIO, "type": "sse"}, {**STDIO, "type": None}, {"type": "acp", "name": "a", "id": "b"},
     {**HTTP, "headers": [{"name": "A", "value": 1}]}, {**HTTP, "url": None}],
)  # fmt: skip
def test_what_cannot_be_registered_is_refused(server: object) -> None:
    assert refused("register", server).code == Code.INVALID_PARAMS


@pytest.mark.parametrize(
    "address",
    ["zzz", "", "/path", "http://", "127.0.0.1:9", "ftp://example.org/", "http://[broken/",
     "http://exa mple.org/", "http://example.org/a b", "http://1.2.3.999/", "http://1.2.3/",
     "http://a..b/", "http://example.org:99999/", "http://example.org:x/", "http://ex%41/",
     "http://\u00fcml.example/", "http://a\n.org/", "http://[::zz]/", "http://?x"],
)  # fmt: skip
def test_an_address_that_the_server_cannot_parse_never_reaches_it(address: str) -> None:
    """One such address blocks every other registration of the directory there."""
    assert refused("register", http(address)).code == Code.INVALID_PARAMS


@pytest.mark.parametrize(
    "address",
    ["http://localhost:8080/mcp?key=a#b", "https://my_host.example-1.org", "http://127.0.0.1:1/",
     "http://[::1]:8080/x", "HTTPS://Example.ORG/"],
)  # fmt: skip
def test_an_address_with_a_host_is_taken(address: str) -> None:
    assert len(wanted("register", [http(address)])) == 1


def test_there_is_a_bound_and_no_name_comes_twice() -> None:
    many = [{**STDIO, "name": f"s{number}"} for number in range(17)]
    assert refused("register", *many).code == Code.LIMIT
    assert len(wanted("register", many[:16])) == 16
    assert refused("register", STDIO, {**HTTP, "name": "files"}).code == Code.INVALID_PARAMS


@pytest.mark.parametrize(
    ("server", "path"),
    [
        ({**STDIO, "name": "b", "env": [{"name": "A"}]}, "mcpServers.1.env.0.value"),
        (5, "mcpServers.1.name"),
        (http("zzz"), "mcpServers.1.url"),
        ({**HTTP, "type": "sse"}, "mcpServers.1.type"),
        ({**HTTP, "type": "acp"}, "mcpServers.1.type"),
        (STDIO, "mcpServers.1.name"),
    ],
)
def test_a_refusal_says_where_the_fault_stands(server: object, path: str) -> None:
    assert path in re.findall(r"[\w.]*\w", refused("register", STDIO, server).message)


def variable(name: str, value: str) -> dict[str, Any]:
    return {**STDIO, "env": [{"name": name, "value": value}]}


def header(name: str, value: str) -> dict[str, Any]:
    return {**HTTP, "headers": [{"name": name, "value": value}]}


@pytest.mark.parametrize(
    ("server", "path"),
    [
        (variable("K", f"{SECRET}\0"), "env.0.value"),
        (variable(f"K\0{SECRET}", "v"), "env.0.name"),
        (variable(f"K={SECRET}", "v"), "env.0.name"),
        ({**STDIO, "args": ["x", f"--k={SECRET}\0"]}, "args.1"),
        ({**STDIO, "command": f"/{SECRET}\0"}, "command"),
        *((header("Authorization", f"Bearer {SECRET}{odd}."), "headers.0.value")
          for odd in "\0\n\r\x01\x1f\x7f\u2013\u65e5\U0001f600"),
        (header("A", f"{SECRET}\n"), "headers.0.value"),
        *((header(f"A{odd}{SECRET}", "v"), "headers.0.name") for odd in " :\n\0\u00e9\u2013"),
    ],
)  # fmt: skip
def test_what_the_server_would_refuse_and_quote_never_reaches_it(
    server: dict[str, Any], path: str
) -> None:
    """Measured: its list quotes a value that a program or a request cannot be given."""
    error = refused("register", server)
    assert (error.code, f"mcpServers.0.{path}" in error.message) == (Code.INVALID_PARAMS, True)
    assert SECRET not in error.message


@pytest.mark.parametrize(
    "server",
    [variable("KEY", "-----BEGIN\nline\r\n\t\u65e5\x01"), variable("a b", ""), header("X-Key", ""),
     header("x_key!", "a\tb \u00e9"), {**STDIO, "args": ["a\nb", ""], "command": "./my tool"}],
)  # fmt: skip
def test_what_can_be_given_to_a_program_or_a_request_is_taken(server: dict[str, Any]) -> None:
    assert len(wanted("register", [server])) == 1


def test_a_refusal_quotes_no_secret() -> None:
    for server in (
        {**STDIO, "env": [{"name": "KEY", "value": SECRET}], "args": [SECRET, 5]},
        {**HTTP, "headers": [{"name": "A", "value": SECRET}], "url": f"zzz{SECRET}"},
        {**HTTP, "headers": SECRET},
    ):
        assert SECRET not in refused("register", server).message


@pytest.mark.parametrize(
    "name", ["files", "My Files!", "", "\u65e5\u672c", "x" * 256, "a/../b", "_"]
)
def test_a_name_is_of_one_session_and_fits_the_route(name: str) -> None:
    """Tools are `{server}_{tool}`, at most 64 characters for most providers."""
    made = registered_name("ses_a", name)
    assert re.fullmatch(r"acp_[0-9a-f]{10}(_[a-z0-9_]{1,16})?", made)
    assert url(MCP_PUT, server=made).endswith(made)
    assert made == registered_name("ses_a", name) != registered_name("ses_b", name)


def test_names_that_look_alike_stay_apart() -> None:
    """The server folds `a b` and `a.b` into one tool name, and offers one of the two."""
    assert len({registered_name("ses_a", name) for name in ("a b", "a.b", "a_b", "A_B")}) == 4


def test_a_program_gets_its_environment_and_none_of_the_server_s_secrets() -> None:
    server = StdioServer(name="a", command="x", args=["y"], env=[Variable(name="K", value="v")])
    assert config(server, 8.0) == {
        "type": "local",
        "command": ["x", "y"],
        "environment": {"OPENCODE_SERVER_PASSWORD": "", "OPENCODE_PASSWORD": "", "K": "v"},
        "codemode": False,
        "timeout": {"startup": 8000, "catalog": 8000},
    }


def test_an_address_gets_its_headers() -> None:
    header = Header(name="X-Key", value="v")
    server = HttpServer(type="http", name="a", url="http://localhost/", headers=[header])
    assert config(server, 0.0001) == {
        "type": "remote",
        "url": "http://localhost/",
        "headers": {"X-Key": "v"},
        "oauth": False,
        "codemode": False,
        "timeout": {"startup": 1, "catalog": 1},
    }


def test_no_repr_of_a_server_shows_what_may_be_secret() -> None:
    """One that a fault of ours takes into a traceback, at the level `debug`."""
    pair = {"name": "K", "value": SECRET}
    local = {**STDIO, "command": SECRET, "args": [SECRET], "env": [pair]}
    web = {**http(f"http://me:{SECRET}@localhost/?key={SECRET}"), "headers": [pair]}
    told = repr(wanted("register", [local, web]))
    assert SECRET not in told
    assert "files" in told
