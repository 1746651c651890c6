"""`opencode-acp serve` from its start to its end: exit codes, sockets, and what it leaves."""

from __future__ import annotations

import resource
import socket
from pathlib import Path

import pytest

from contract.attach import ACCEPTED, OK, TEMPORARY, USAGE
from tests.unit.commands.process import serving, start
from tests.unit.daemon.house import hello, visitors

NOWHERE = "http://127.0.0.1:1"


async def test_it_serves_without_a_server_and_ends_well(tmp_path: Path) -> None:
    async with serving(tmp_path, NOWHERE) as served, visitors(served.path) as come:
        caller = come()
        assert await caller.greet() == ACCEPTED
        caller.read()
        await caller.call("initialize", protocolVersion=1)
        assert (await come().greet(hello(set_server="http://127.0.0.1:2"))).startswith(b"2 ")
        assert resource.prlimit(served.process.pid, resource.RLIMIT_CORE)[0] == 0
        assert await served.end() == OK
        await caller.over()
        assert not served.path.exists()


async def test_a_variable_that_is_no_setting_is_in_its_log(tmp_path: Path) -> None:
    environ = {"OPENCODE_ACP_QUEUE_PATIENC": "3"}
    flags = ("--log-format", "text")
    async with (
        serving(tmp_path, NOWHERE, *flags, environ=environ) as served,
        visitors(served.path) as come,
    ):
        assert await come().greet() == ACCEPTED
        (told,) = (line for line in served.log.splitlines() if "PATIENC" in line)
        assert "WARNING" in told and "OPENCODE_ACP_QUEUE_PATIENCE is one" in told


async def test_a_second_one_is_sent_away(tmp_path: Path) -> None:
    async with serving(tmp_path, NOWHERE) as served:
        second = await start(tmp_path / "run", NOWHERE, path=served.path)
        assert await second.process.wait() == TEMPORARY
        assert second.log.startswith("opencode-acp: ")
        assert second.log.count("\n") == 1
        assert await served.end() == OK


@pytest.mark.parametrize("flags", [(), ("--server", "ftp://h"), ("--config", "missing")])
async def test_a_start_that_cannot_work_ends_with_one_sentence(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    (tmp_path / "run").write_text("in the way")
    served = await start(tmp_path, NOWHERE, *flags)
    assert await served.process.wait() == USAGE
    assert served.log.startswith("opencode-acp: ")
    assert served.log.count("\n") == 1


async def test_the_socket_of_the_service_manager_is_served_and_left(tmp_path: Path) -> None:
    path = tmp_path / "passed.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(path))
        sock.listen()
        names = {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "opencode-acp.socket"}
        served = await start(tmp_path, NOWHERE, environ=names, passed=sock.fileno())
        async with visitors(path) as come:
            assert await come().greet() == ACCEPTED
            assert await served.end() == OK
            assert path.is_socket()
            assert not served.path.exists()
            # It still listens: whoever comes waits for the next daemon.
            come()


async def test_what_is_no_socket_of_clients_ends_the_start(tmp_path: Path) -> None:
    with (tmp_path / "file").open("wb") as file:
        names = {"LISTEN_FDS": "1"}
        served = await start(tmp_path, NOWHERE, environ=names, passed=file.fileno())
    assert await served.process.wait() == USAGE
    assert served.log.count("\n") == 1


@pytest.mark.parametrize("variable", ["OPENCODE_ACP_SOCKET", "XDG_RUNTIME_DIR"])
async def test_where_it_listens_unless_it_is_told(tmp_path: Path, variable: str) -> None:
    path = tmp_path / "opencode-acp.sock"
    path.write_text("in the way")
    value = str(path if variable == "OPENCODE_ACP_SOCKET" else tmp_path)
    served = await start(tmp_path, NOWHERE, "--socket", "", environ={variable: value})
    assert await served.process.wait() == USAGE
    assert str(path) in served.log
