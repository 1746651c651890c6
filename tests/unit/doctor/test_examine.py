"""Each fault alone, on the stub: the doctor names it, and the exit code is the fault's (O-27)."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio
import trustme
from aiohttp import web

from adapter.doctor.examine import examine
from adapter.doctor.findings import Finding, State, exit_code
from adapter.doctor.server import ALL, RESTART, Patience
from adapter.options import Options
from contract.attach import AUTH, CONTRACT, OK, TEMPORARY, USAGE
from stubs.real_server import PASSWORD
from stubs.server import Rule, Settings, StubServer, http, routes_catalog
from stubs.server.project import Project

SHORT = Patience(connect=2, answer=2, first_frame=0.3, catalogue=0.3)
MACHINE = ("descriptors", "inotify")


class Report:
    """What was found; faults of this machine apart, which other tests cause."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        self.by_name = {one.name: one for one in findings if one.name not in MACHINE}
        self.code = exit_code(self.by_name.values())
        assert len(self.by_name) + len(MACHINE) == len(findings)
        for one in findings:
            assert PASSWORD not in one.sentence + one.fix
            assert bool(one.fix) == (one.state in (State.WARNING, State.FAILED)), one

    def only(self, state: State) -> Finding:
        """The one finding of that state."""
        (one,) = (finding for finding in self.by_name.values() if finding.state is state)
        return one


class Patient:
    """A stub and all that is said about it."""

    def __init__(self, stub: StubServer, root: Path) -> None:
        self.stub = stub
        self.patience = SHORT
        self.project = root / "project"
        self.project.mkdir()
        self.secret = root / "secret"
        self.secret.write_text(PASSWORD)
        self.secret.chmod(0o600)
        self.config = root / "config.toml"
        self.flags = {"server": stub.url, "password_file": str(self.secret)}
        self.environ = {"XDG_RUNTIME_DIR": str(root), "HOME": str(root)}

    async def examined(self, **flags: str) -> Report:
        options = Options(self.flags | flags)
        return Report(await examine(options, self.environ, str(self.project), self.patience))

    async def failed(self, name: str, code: int, **flags: str) -> Finding:
        """The one finding that failed, by its name and the exit code."""
        report = await self.examined(**flags)
        one = report.only(State.FAILED)
        assert (one.name, report.code) == (name, code), one
        return one

    async def warned(self, name: str, **flags: str) -> Finding:
        """The one warning."""
        report = await self.examined(**flags)
        one = report.only(State.WARNING)
        assert (one.name, report.code) == (name, OK), one
        return one


@pytest_asyncio.fixture
async def patient(tmp_path: Path) -> AsyncIterator[Patient]:
    async with StubServer(Settings(password=PASSWORD)) as stub:
        yield Patient(stub, tmp_path)


async def test_all_is_well(patient: Patient) -> None:
    report = await patient.examined()
    assert {one.state for one in report.by_name.values()} == {State.OK}
    assert report.code == OK
    expected = ["configuration", "files", "daemon", "url", *ALL]
    assert list(report.by_name) == expected
    assert str(patient.secret) in report.by_name["auth"].sentence
    assert "2 models" in report.by_name["catalogue"].sentence


# The configuration.


@pytest.mark.parametrize("text", ["server = [", "colour = 'red'", "mcp = 'perhaps'", "[tables]"])
async def test_a_configuration_that_means_nothing(patient: Patient, text: str) -> None:
    patient.config.write_text(text)
    one = await patient.failed("configuration", USAGE, config=str(patient.config))
    assert str(patient.config) in one.sentence


async def test_a_configuration_that_is_not_there(patient: Patient) -> None:
    await patient.failed("configuration", USAGE, config="/nonexistent/config.toml")


async def test_a_variable_that_means_nothing(patient: Patient) -> None:
    patient.environ["OPENCODE_ACP_DRAIN_SECONDS"] = "soon"
    one = await patient.failed("configuration", USAGE)
    assert "OPENCODE_ACP_DRAIN_SECONDS" in one.sentence


async def test_a_variable_that_is_no_setting(patient: Patient) -> None:
    patient.environ["OPENCODE_ACP_QUEUE_PATIENC"] = "3"
    one = await patient.warned("configuration")
    assert "OPENCODE_ACP_QUEUE_PATIENCE is one" in one.sentence


async def test_a_configuration_that_others_may_write(patient: Patient) -> None:
    patient.config.write_text("mcp = 'reject'")
    patient.config.chmod(0o666)
    one = await patient.failed("configuration", USAGE, config=str(patient.config))
    assert "chmod go-w" in one.sentence


async def test_authorities_that_others_may_write(patient: Patient, tmp_path: Path) -> None:
    authorities = tmp_path / "authorities.pem"
    trustme.CA().cert_pem.write_to_path(authorities)
    authorities.chmod(0o666)
    one = await patient.warned("files", ca_file=str(authorities))
    assert one.fix == f"chmod go-w {authorities}"


# The password's file.


def _gone(secret: Path) -> None:
    secret.unlink()


def _open(secret: Path) -> None:
    secret.chmod(0o640)


def _linked(secret: Path) -> None:
    secret.rename(secret.with_suffix(".real"))
    secret.symlink_to(secret.with_suffix(".real"))


def _empty(secret: Path) -> None:
    secret.write_text("")


@pytest.mark.parametrize("spoil", [_gone, _open, _linked, _empty])
async def test_a_password_file_that_cannot_be_used(
    patient: Patient, spoil: Callable[[Path], None]
) -> None:
    spoil(patient.secret)
    one = await patient.failed("files", USAGE)
    assert str(patient.secret) in one.sentence
    # Nothing is asked with another password, or with none.
    assert not patient.stub.log


# The address.


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1:4096",
        "http://me:word@127.0.0.1:4096",
        "ftp://127.0.0.1",
        "http://[::1",
        "",
    ],
)
async def test_an_address_that_is_not_allowed(patient: Patient, url: str) -> None:
    patient.config.write_text(f"server = '{url}'")
    del patient.flags["server"]
    one = await patient.failed("url", USAGE, config=str(patient.config))
    assert "word" not in one.sentence.replace("password", "")


async def test_a_server_on_another_machine_is_reached_by_its_name(patient: Patient) -> None:
    url = "https://opencode.invalid:4096"
    one = await patient.failed("tcp", TEMPORARY, server=url, allow_remote="yes")
    assert "opencode.invalid" in one.sentence


# The server.


async def test_a_server_that_is_down(patient: Patient) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        await patient.failed("tcp", TEMPORARY, server=f"http://127.0.0.1:{port}")


async def test_a_server_that_does_not_answer(patient: Patient) -> None:
    patient.stub.faults.add(Rule("delay", "/api/info", seconds=30, times=9))
    patient.patience = replace(SHORT, answer=0.2)
    assert (await patient.failed("auth", TEMPORARY)).fix == RESTART


async def test_a_server_that_refuses_the_password(patient: Patient) -> None:
    patient.secret.write_text("another")
    one = await patient.failed("auth", AUTH)
    assert str(patient.secret) in one.sentence


async def test_a_server_that_wants_a_password_and_gets_none(patient: Patient) -> None:
    del patient.flags["password_file"]
    one = await patient.failed("auth", AUTH)
    assert "OPENCODE_SERVER_PASSWORD" in one.fix


async def test_the_password_of_a_variable_is_named_by_it(patient: Patient) -> None:
    del patient.flags["password_file"]
    patient.environ["OPENCODE_PASSWORD"] = "another"
    one = await patient.failed("auth", AUTH)
    assert "OPENCODE_PASSWORD" in one.sentence


async def test_a_server_without_a_password(tmp_path: Path) -> None:
    async with StubServer() as stub:
        patient = Patient(stub, tmp_path)
        del patient.flags["password_file"]
        await patient.warned("auth")


@pytest.mark.parametrize(
    ("version", "state", "code"),
    [("1.14.0", State.FAILED, CONTRACT), ("2.1.0", State.WARNING, OK)],
)
async def test_another_version(
    patient: Patient, monkeypatch: pytest.MonkeyPatch, version: str, state: State, code: int
) -> None:
    monkeypatch.setattr(routes_catalog, "VERSION", version)
    report = await patient.examined()
    one = report.only(state)
    assert (one.name, report.code) == ("version", code)
    assert version in one.sentence


async def test_something_else_than_opencode(patient: Patient) -> None:
    patient.stub.faults.add(Rule("status", "/api/info", status=404))
    await patient.failed("version", CONTRACT)


async def test_routes_that_are_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    whole = http.openapi

    async def without(request: web.Request) -> web.StreamResponse:
        answer = await whole(request)
        text = (answer.text or "").replace("/api/session/{sessionID}/interrupt", "/api/gone")
        return web.Response(text=text, content_type="application/json")

    monkeypatch.setattr(http, "openapi", without)
    async with StubServer(Settings(password=PASSWORD)) as stub:
        one = await Patient(stub, tmp_path).failed("routes", CONTRACT)
    assert "interrupt" in one.sentence


async def test_a_feed_that_sends_nothing(patient: Patient) -> None:
    patient.stub.feed.hush(True)
    one = await patient.failed("feed", TEMPORARY)
    assert "no first event" in one.sentence


async def test_a_feed_that_is_not_there(patient: Patient) -> None:
    patient.stub.faults.add(Rule("status", "/api/event", status=502))
    one = await patient.failed("feed", TEMPORARY)
    assert "502" in one.sentence


async def test_a_directory_that_never_opens(patient: Patient) -> None:
    patient.stub.faults.add(Rule("delay", "/api/agent", seconds=30, times=9))
    one = await patient.failed("catalogue", TEMPORARY)
    assert str(patient.project) in one.sentence


async def test_a_directory_that_the_server_does_not_know(patient: Patient) -> None:
    patient.project.rmdir()
    one = await patient.failed("catalogue", USAGE)
    assert f"no directory {patient.project}" in one.sentence


async def test_no_model(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Project, "_models", lambda _: ())
    monkeypatch.setattr(Project, "default_model", None)
    one = await patient.failed("catalogue", USAGE)
    assert "no model" in one.sentence


async def test_no_default_model(patient: Patient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Project, "default_model", None)
    await patient.warned("catalogue")
