"""SIGHUP: settings and password are read again, and what cannot be used changes nothing; O-06."""

from __future__ import annotations

import dataclasses
import logging
import signal
from pathlib import Path

import pytest
import trustme

from adapter.daemon.hello import Hello
from adapter.daemon.reload import Configuration, password_fix
from adapter.options import Options
from adapter.upstream.credentials import Credential
from stubs.waiting import until
from tests.unit.daemon.admin.office import Office, office
from tests.unit.daemon.house import Caller, House, Json, hello, house
from tests.unit.daemon.test_lifecycle import site

ASK = {"shell": "ask"}
LOW = "[limits]\noutbound_line_bytes = 262144"
HIGH = ""
SHELL = '@@tool shell {"command":"echo hi"} || text 2@@'
OLD, NEW = "a-password-of-the-tests", "another-password-of-the-tests"


class Papers:
    """The operator's file, and the daemon that goes by it."""

    def __init__(self, home: House) -> None:
        self.home = home
        self.file = home.root / "config.toml"
        self.write()
        named = {"config": str(self.file), "server": home.stub.url}
        self.configuration = Configuration(Options(named), {})
        home.engine.reconfigure(self.configuration.settings)
        home.daemon.terms = self.configuration.terms()

    def write(self, text: str = "", **values: object) -> None:
        lines = [f"{name} = {value!r}" for name, value in values.items()]
        self.file.write_text("\n".join([*lines, text]), encoding="utf-8")

    def reload(self) -> bool:
        return self.configuration.reload(self.home.daemon)


async def offered(caller: Caller, session: str, number: int) -> set[str]:
    """What the ask of that number lets the client choose from; it is answered."""
    ident = await caller.prompt(session, SHELL)

    async def come() -> Json | None:
        asks = [line for line in caller.lines if line.get("method") == "session/request_permission"]
        return asks[number] if len(asks) > number else None

    ask = await until("an ask", come)
    outcome = {"outcome": "selected", "optionId": "allow_once"}
    await caller.say({"jsonrpc": "2.0", "id": ask["id"], "result": {"outcome": outcome}})
    assert await caller.stop_reason(ident) == "end_turn"
    return {option["optionId"] for option in ask["params"]["options"]}


async def test_a_session_that_is_open_goes_by_the_new_settings(tmp_path: Path) -> None:
    async with house(tmp_path, permission=ASK) as home:
        papers = Papers(home)
        caller = await home.client()
        session = await caller.new(tmp_path)
        assert "allow_always" not in await offered(caller, session, 0)
        papers.write(allow_always="yes")
        assert papers.reload()
        assert "allow_always" in await offered(caller, session, 1)


def test_a_directory_that_is_gone_changes_no_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths begin where the daemon did."""
    (gone := tmp_path / "gone").mkdir()
    (tmp_path / "password").write_text(OLD)
    (tmp_path / "password").chmod(0o600)
    monkeypatch.chdir(gone)
    configuration = Configuration(Options({"password_file": "../password"}), {})
    differs = configuration.terms().differs
    gone.rmdir()
    assert differs(Hello(cwd=str(tmp_path), settings={"password_file": "password"})) is None
    assert differs(Hello(cwd="/", settings={"password_file": "password"})) is not None


async def test_a_turn_that_starts_later_has_the_new_time(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        papers = Papers(home)
        caller = await home.client()
        session = await caller.new(tmp_path)
        papers.write(prompt_seconds=0.2)
        assert papers.reload()
        await caller.answer(await caller.prompt(session, "@@text 5000 5@@"))
        assert len(home.asked("POST", "/interrupt")) == 1


async def test_a_client_that_leaves_is_treated_by_the_new_settings(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        papers = Papers(home)
        caller = await home.client()
        session = await caller.new(tmp_path)
        await caller.prompt(session, "@@text 20 5@@")
        await caller.until_text(session, "w0 ")
        papers.write(on_client_exit="detach")
        assert papers.reload()
        await caller.hang_up()
        await home.until_finished(session)
        assert home.asked("POST", "/interrupt") == []


async def test_mcp_servers_are_taken_by_the_new_policy(tmp_path: Path) -> None:
    server = {"name": "x", "type": "http", "url": "http://127.0.0.1:1/mcp", "headers": []}
    async with house(tmp_path) as home:
        papers = Papers(home)
        caller = await home.client()
        papers.write(mcp="reject")
        assert papers.reload()
        ident = await caller.send("session/new", cwd=str(tmp_path), mcpServers=[server])
        assert "error" in await caller.answer(ident)


async def test_clients_that_come_are_held_to_the_new_settings(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        papers = Papers(home)
        always = hello(set_allow_always="yes")
        assert (await (await home.caller()).greet(always)).startswith(b"2 ")
        papers.write("[limits]\nconnections = 1", allow_always="yes")
        assert papers.reload()
        await home.client(always)
        assert (await (await home.caller()).greet(always)).startswith(b"75 The daemon serves 1 ")
        papers.write(allowed_uids=[1])
        assert papers.reload()
        assert (await (await home.caller()).greet_or_hear()).startswith(b"3 ")


def shown(caller: Caller, kind: str) -> str:
    """The text of all updates of a kind."""
    updates = [
        line["params"]["update"] for line in caller.lines if "update" in line.get("params", {})
    ]
    return "".join(one["content"]["text"] for one in updates if one["sessionUpdate"] == kind)


@pytest.mark.parametrize(("before", "after"), [(LOW, HIGH), (HIGH, LOW)])
async def test_all_that_a_client_is_shown_fits_into_the_lines_that_it_began_with(
    tmp_path: Path, before: str, after: str, caplog: pytest.LogCaptureFixture
) -> None:
    # In JSON each of these has twelve bytes.
    text = "\N{GRINNING FACE}" * 66_000
    async with house(tmp_path) as home:
        papers = Papers(home)
        papers.write(before)
        assert papers.reload()
        early = await home.client()
        papers.write(after)
        assert papers.reload()
        late = await home.client()
        session = await late.new(tmp_path)
        assert await late.stop_reason(await late.prompt(session, text)) == "end_turn"
        for caller in (early, late):
            await caller.call("session/load", sessionId=session, cwd=str(tmp_path), mcpServers=[])
            assert shown(caller, "user_message_chunk") == text
    assert "was left out" not in caplog.text


async def test_a_client_keeps_the_limits_that_it_began_with(tmp_path: Path) -> None:
    async with house(tmp_path) as home:
        papers = Papers(home)
        papers.write("[limits]\nprompt_chars = 5\nprompts_per_connection = 1")
        assert papers.reload()
        early = await home.client()
        first, second = [await early.new(tmp_path) for _ in range(2)]
        papers.write()
        assert papers.reload()
        assert "error" in await early.answer(await early.prompt(first, "more than five"))
        await early.prompt(first, "five!")
        refused = await early.answer(await early.prompt(second, "five!"))
        assert refused["error"]["message"].startswith("This connection has 1 prompt in flight")
        late = await home.client()
        session = await late.new(tmp_path)
        assert await late.stop_reason(await late.prompt(session, "more than five")) == "end_turn"


async def test_the_level_of_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # At its end the level is again what it was.
    caplog.set_level(logging.INFO)
    async with house(tmp_path) as home:
        papers = Papers(home)
        papers.write(log_level="debug")
        assert papers.reload()
        assert logging.getLogger().level == logging.DEBUG


@pytest.mark.parametrize(
    "text",
    ["drain = 'sometimes'", "no toml", "nothing = 1", "[limits]\nsessions = -1", "socket = '/x'"],
)
async def test_a_file_that_cannot_be_used_is_refused(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path) as home:
        papers = Papers(home)
        before = home.engine.settings, papers.configuration.start, home.daemon.terms
        papers.write(text)
        assert not papers.reload()
        assert (home.engine.settings, papers.configuration.start, home.daemon.terms) == before
        errors = [one for one in caplog.records if one.levelno == logging.ERROR]
        assert len(errors) == 1
        assert str(papers.file) in errors[0].getMessage()


async def test_what_needs_a_restart_is_told_and_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with house(tmp_path) as home:
        password = tmp_path / "password"
        password.write_text(OLD)
        password.chmod(0o600)
        other = tmp_path / "other"
        other.write_text(NEW)
        other.chmod(0o600)
        file = tmp_path / "config.toml"
        url = home.stub.url
        file.write_text(f"server = {url!r}\npassword_file = {str(password)!r}\n")
        configuration = Configuration(Options({"config": str(file)}), {})
        old = configuration.start
        trustme.CA().cert_pem.write_to_path(tmp_path / "ca.pem")
        file.write_text(
            f"server = 'http://127.0.0.1:2'\npassword_file = {str(other)!r}\n"
            "admin_socket = '/elsewhere'\nlog_format = 'json'\nqueue_patience = 7\n"
            "ca_file = 'ca.pem'\n"
        )
        assert configuration.reload(home.daemon)
        new = configuration.start
        assert (new.server, new.admin_socket, new.log_format) == (
            old.server,
            old.admin_socket,
            old.log_format,
        )
        assert new.queue_patience == 7.0
        assert new.ca_file is None
        for name in ("server", "ca_file", "admin_socket", "log_format"):
            assert f"{name} is changed by a restart only" in caplog.text
        # The password may be the other server's.
        assert new.credential == old.credential == home.engine.server.credential
        assert NEW not in caplog.text


async def test_a_password_that_the_server_does_not_take_is_told_at_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "password"

    def told() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]

    async def until_told(number: int) -> None:
        async def come() -> bool:
            return len(told()) == number

        await until(f"{number} lines on the password", come)

    def reload(place: Office, password: str) -> None:
        file.write_text(password)
        file.chmod(0o600)
        named = Options({"server": place.home.stub.url, "password_file": str(file)})
        assert Configuration(named, {}).reload(place.home.daemon)

    async with office(tmp_path) as place:
        assert await place.home.engine.feed.ready(10)
        host = place.home.stub.host
        host.settings = dataclasses.replace(host.settings, password=NEW)
        for number, wrong in enumerate((OLD, "a-third"), 1):
            reload(place, wrong)
            await until_told(number)
            assert await place.value("auth_refused") == 1
            assert not (await place.readiness()).checks["auth"].ok
            # It lives on the password that it was connected by.
            assert place.home.engine.feed.is_connected
        reload(place, NEW)
        await place.until_value("auth_refused", 0)
        refused = f"the OpenCode server refuses the password of {file}"
        again = "the OpenCode server takes the password again"
        assert [line.replace("the file ", "") for line in told()] == [refused, refused, again]


@pytest.mark.parametrize(
    ("source", "restarts"),
    [
        ("the file /home/me/password", False),
        ("the file /run/unit/opencode-password", True),
        ("OPENCODE_SERVER_PASSWORD", True),
    ],
)
def test_what_a_reload_would_not_read_wants_a_restart(source: str, restarts: bool) -> None:
    fix = password_fix(Credential(OLD, source), "/run/unit")
    assert ("restart the daemon" in fix, "kill -HUP" in fix) == (restarts, not restarts)


async def test_a_password_that_was_changed_on_the_server(tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text(OLD)
    file.chmod(0o600)
    flags = ("--password-file", str(file))
    async with site(tmp_path, *flags, password=OLD) as there:
        await there.manager.until_status("feed up")
        session = await there.caller.new(tmp_path)
        host = there.stub.host
        host.settings = dataclasses.replace(host.settings, password=NEW)
        there.stub.cut_feed()
        await there.manager.until_status("feed down, password refused", "1 client,", "1 session,")
        # Correcting the file alone would change nothing.
        ident = await there.caller.send("session/new", cwd=str(tmp_path), mcpServers=[])
        told = (await there.caller.answer(ident))["error"]["message"]
        assert f"of the file {file}; " in told
        assert f"(kill -HUP {there.served.process.pid})" in told

        # A file that others may read is refused; the daemon goes on as it was.
        file.chmod(0o644)
        there.send(signal.SIGHUP)
        await there.manager.until("READY=1", 2)
        assert there.served.log.count("not reloaded") == 1

        file.write_text(NEW)
        file.chmod(0o600)
        there.send(signal.SIGHUP)
        await there.manager.until("READY=1", 3)
        words = [line.partition("=")[0] for line in there.manager.heard()]
        assert [word for word in words if word not in ("STATUS", "WATCHDOG")] == [
            *("READY",),
            *("RELOADING", "MONOTONIC_USEC", "READY"),
            *("RELOADING", "MONOTONIC_USEC", "READY"),
        ]
        await there.manager.until_status("feed up", "1 client,", "1 session,")
        ident = await there.caller.prompt(session, "@@text 2@@")
        assert await there.caller.stop_reason(ident) == "end_turn"
        assert OLD not in there.served.log
        assert NEW not in there.served.log
        there.send(signal.SIGTERM)
        await there.manager.until("STOPPING=1")
