"""The doctor and a daemon: one that is there, that is not, that is gone, and that is odd."""

from __future__ import annotations

import dataclasses
import socket
from pathlib import Path
from typing import Any

import pytest

from adapter.commands.inquiry import READINESS, STATE
from adapter.daemon.admin.shapes import Check, Readiness, ServerState, State
from adapter.daemon.daemon import Terms
from adapter.doctor import daemon
from adapter.doctor.examine import examine
from adapter.doctor.findings import Finding
from adapter.doctor.findings import State as Is
from adapter.doctor.server import ALL, RESTART, START, Patience, connect
from adapter.options import Options
from adapter.upstream.credentials import Credential
from contract.attach import AUTH, CONTRACT, OK, TEMPORARY, USAGE
from stubs.server import Rule
from stubs.waiting import until
from tests.support.strangers import NOBODY, as_root, kept_out, listening
from tests.unit.daemon.admin.office import Office, office

SHORT = Patience(connect=2, answer=2, first_frame=0.3, catalogue=0.3)


async def examined(root: Path, **flags: str) -> dict[str, Finding]:
    """By their names, in an environment of which nothing is said but the flags."""
    findings = await examine(Options(flags), {"HOME": str(root)}, str(root), SHORT)
    return {one.name: one for one in findings}


async def visited(one: Office, **flags: str) -> dict[str, Finding]:
    more = {"socket": str(one.home.path), "admin_socket": str(one.path)}
    return await examined(one.home.root, **(more | flags))


async def test_a_daemon_speaks_for_its_server(tmp_path: Path) -> None:
    async with office(tmp_path) as one:
        await one.until_value("sse_connected", 1)
        found = await visited(one, server=one.home.stub.url)
        assert [found[name].state for name in ("daemon", "url", *ALL)] == [Is.OK] * 8
        assert one.home.stub.url in found["url"].sentence
        await one.home.until_empty()


async def test_it_is_found_by_the_file_whatever_else_is_wrong_there(tmp_path: Path) -> None:
    async with office(tmp_path) as one:
        file = tmp_path / "f.toml"
        path = tmp_path / "elsewhere" / "admin.sock"
        path.parent.mkdir()
        path.symlink_to(one.path)
        file.write_text(f"admin_socket = '{path}'\nnothing = 1\n")
        found = await examined(tmp_path, socket=str(one.home.path), config=str(file))
        assert (found["configuration"].state, found["daemon"].state) == (Is.FAILED, Is.OK)


async def test_the_catalogue_is_not_asked_for_where_the_server_is_not_known(
    tmp_path: Path,
) -> None:
    """No password of this side goes to a server that it was not meant for."""
    async with office(tmp_path) as one:
        await one.until_value("sse_connected", 1)
        found = await visited(one)
        assert found["catalogue"].state is Is.SKIPPED
        assert found["tcp"].state is Is.OK


async def test_a_daemon_whose_server_refuses_it(tmp_path: Path) -> None:
    async with office(tmp_path) as one:
        one.home.stub.faults.unauthorized = True
        one.home.stub.cut_feed()
        await one.until_value("auth_refused", 1)
        found = await visited(one)
        assert (found["auth"].state, found["auth"].code) == (Is.FAILED, AUTH)
        assert found["catalogue"].state is Is.SKIPPED


async def test_a_file_that_is_not_the_daemons_password_is_told(tmp_path: Path) -> None:
    """The daemon goes on by the one that it has read before."""
    file = tmp_path / "password"
    file.write_text("another")
    file.chmod(0o600)
    async with office(tmp_path) as one:
        host, engine = one.home.stub.host, one.home.engine
        host.settings = dataclasses.replace(host.settings, password="right")
        credential = Credential("right", "the daemon's")
        engine.reconfigure(dataclasses.replace(engine.settings, credential=credential))
        await one.until_value("sse_connected", 1)
        config = tmp_path / "config.toml"
        config.write_text(f"server = '{one.home.stub.url}'\npassword_file = '{file}'\n")
        found = await visited(one, config=str(config))
        assert found["daemon"].state is Is.OK
        assert found["auth"].state is Is.WARNING
        assert f"refuses that of the file {file}." in found["auth"].sentence
        assert found["catalogue"].state is Is.SKIPPED
        assert [name for name in found if name in ALL] == list(ALL)


async def test_a_server_that_hangs_is_to_be_restarted(tmp_path: Path) -> None:
    async with office(tmp_path) as one:
        await one.until_value("sse_connected", 1)
        one.home.stub.faults.add(Rule("delay", "/api/info", seconds=30, times=9))
        found = await visited(one)
        assert (found["tcp"].state, found["tcp"].fix) == (Is.FAILED, RESTART)
        assert found["version"].state is Is.SKIPPED
        assert found["version"].sentence.endswith("when it last answered.")


async def test_a_server_that_is_gone_is_to_be_started(tmp_path: Path) -> None:
    async with office(tmp_path) as one:
        await one.until_value("sse_connected", 1)
        stub = one.home.stub
        stub.restart_soon("lost", down=60)

        async def closed() -> bool:
            return (await connect(stub.url, 2)).code != OK

        await until("the port is closed", closed)
        found = await visited(one)
        assert (found["tcp"].state, found["tcp"].fix) == (Is.FAILED, START)


async def test_a_daemon_of_other_settings(tmp_path: Path) -> None:
    terms = Terms(differs=lambda _: "The daemon has another one.")
    async with office(tmp_path, terms=terms) as one:
        found = await visited(one)
        assert (found["daemon"].state, found["daemon"].code) == (Is.FAILED, USAGE)
        assert "another one" in found["daemon"].sentence


async def test_a_daemon_that_serves_others(tmp_path: Path) -> None:
    async with office(tmp_path, terms=Terms(allowed_uids=frozenset())) as one:
        found = await visited(one)
        assert (found["daemon"].state, found["daemon"].code) == (Is.FAILED, AUTH)
        assert "allowed_uids" in found["daemon"].fix


def test_a_daemon_whose_socket_keeps_this_user_out(tmp_path: Path) -> None:
    wanted = daemon.wishes(Options({"socket": str(tmp_path / "s")}), {})
    with kept_out(tmp_path / "s"):
        finding = daemon.look(wanted, str(tmp_path / "admin")).finding
    assert (finding.state, finding.code) == (Is.FAILED, AUTH)
    assert "its operator" in finding.fix


@as_root
def test_anybody_who_listens(tmp_path: Path) -> None:
    tmp_path.chmod(0o1777)
    wanted = daemon.wishes(Options({"socket": str(tmp_path / "s")}), {})
    with listening(tmp_path / "s", NOBODY):
        finding = daemon.look(wanted, str(tmp_path / "admin")).finding
    assert (finding.state, finding.code) == (Is.FAILED, USAGE)
    assert "0700" in finding.fix


async def test_a_daemon_that_nobody_can_ask(tmp_path: Path) -> None:
    async with office(tmp_path) as one:
        found = await visited(one, admin_socket=str(tmp_path / "none"), server=one.home.stub.url)
        assert found["daemon"].state is Is.WARNING
        # The server is asked itself.
        assert found["feed"].state is Is.OK


async def test_others_who_could_take_its_place(tmp_path: Path) -> None:
    async with office(tmp_path) as one:
        one.home.path.parent.chmod(0o777)
        found = await visited(one)
        assert found["daemon"].state is Is.WARNING
        assert "chmod" in found["daemon"].fix


@pytest.mark.parametrize(("mode", "state"), [("auto", Is.OK), ("require", Is.FAILED)])
async def test_no_daemon(tmp_path: Path, mode: str, state: Is) -> None:
    found = await examined(tmp_path, socket=str(tmp_path / "s"), daemon=mode)
    assert found["daemon"].state is state
    assert found["daemon"].code == (TEMPORARY if state is Is.FAILED else OK)


@pytest.mark.parametrize(("mode", "state"), [("auto", Is.WARNING), ("require", Is.FAILED)])
async def test_a_socket_of_one_that_is_gone(tmp_path: Path, mode: str, state: Is) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(tmp_path / "s"))
    found = await examined(tmp_path, socket=str(tmp_path / "s"), daemon=mode)
    assert found["daemon"].state is state
    assert str(tmp_path / "s") in found["daemon"].sentence


@pytest.mark.parametrize(("mode", "state"), [("auto", Is.WARNING), ("require", Is.FAILED)])
async def test_what_is_no_socket_is_told(tmp_path: Path, mode: str, state: Is) -> None:
    (tmp_path / "s").write_text("")
    found = await examined(tmp_path, socket=str(tmp_path / "s"), daemon=mode)
    assert found["daemon"].state is state
    assert f"{tmp_path}/s is no socket" in found["daemon"].sentence


async def test_a_daemon_that_is_not_wanted_is_not_asked(tmp_path: Path) -> None:
    async with office(tmp_path) as one:
        found = await visited(one, daemon="never")
        assert found["daemon"].state is Is.SKIPPED


def test_a_daemon_of_another_version(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    state = _state()
    readiness = Readiness(ready=True, missing=(), checks={})
    answers = {STATE: state, READINESS: readiness}
    monkeypatch.setattr(daemon, "get", lambda _, route: answers[route].model_dump_json().encode())
    met = daemon.asked(str(tmp_path / "s"), 0, "")
    assert met.finding.state is Is.WARNING
    assert "0.0.1" in met.finding.sentence


def test_a_daemon_of_another_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(daemon, "get", lambda _, __: b"{}")
    met = daemon.asked(str(tmp_path / "s"), 4242, "")
    assert met.finding.state is Is.WARNING
    assert "4242" in met.finding.sentence


@pytest.mark.parametrize(
    ("check", "name", "code"),
    [
        ("server", "tcp", TEMPORARY),
        ("auth", "auth", AUTH),
        ("contract", "routes", CONTRACT),
        ("feed", "feed", TEMPORARY),
    ],
)
def test_what_a_daemon_says_is_not_well(check: str, name: str, code: int) -> None:
    checks = {one: Check(ok=True) for one in ("server", "auth", "contract", "feed")}
    checks[check] = Check(ok=False, why="It is not.")
    told = daemon.of_server(_state(), Readiness(ready=False, missing=(check,), checks=checks))
    (one,) = (finding for finding in told if finding.state is Is.FAILED)
    assert (one.name, one.code, one.sentence) == (name, code, "It is not.")
    assert one.fix


def _state() -> State:
    made: dict[str, Any] = {
        "version": "0.0.1",
        "pid": 1,
        "state": "serving",
        "seconds": 1,
        "server": ServerState(url="http://127.0.0.1:1", version="2.0.15", pid=2),
        "feed": {"connected": True, "generation": 1, "losses": 0},
        "tables": {},
        "counted": {},
        "clients": (),
        "sessions": (),
    }
    return State.model_validate(made)
