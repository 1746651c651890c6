"""The shipped units: what systemd says of them, and the rules that they keep."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import pytest

from contract import attach
from tests.deploy.units import UNITS, House, only, parse, placed, units

FLAVOURS: Final = ("user", "system")
EXPOSURE: Final = 20
"""Of `systemd-analyze security`, in tenths (O-10)."""


@pytest.fixture
def house(tmp_path: Path) -> House:
    """A home in which both programs are installed."""
    house = House(tmp_path / "home", tmp_path / "run")
    house.runtime.mkdir(mode=0o700)
    programs = house.home / ".local" / "bin"
    programs.mkdir(parents=True)
    for name in ("opencode", "opencode-acp"):
        (programs / name).write_text("#!/bin/sh\n")
        (programs / name).chmod(0o755)
    return house


def analysed(house: House, *argv: str) -> str:
    """What systemd-analyze says; it must find nothing to complain of."""
    env = os.environ | {"HOME": str(house.home), "XDG_RUNTIME_DIR": str(house.runtime)}
    done = subprocess.run(
        ["systemd-analyze", *argv], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def copies(house: House, flavour: str) -> list[str]:
    programs = house.home / ".local" / "bin"
    directory = house.home / flavour
    directory.mkdir()
    return [str(placed(path, directory, programs)) for path in units(flavour)]


def verified(house: House, flavour: str, paths: list[str]) -> str:
    return analysed(house, "verify", *(["--user"] if flavour == "user" else []), *paths)


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_systemd_understands_every_line(flavour: str, house: House) -> None:
    paths = copies(house, flavour)
    assert len(paths) == 4
    assert verified(house, flavour, paths) == ""


def test_a_line_that_systemd_does_not_know_is_told(house: House) -> None:
    paths = copies(house, "user")
    daemon = next(path for path in paths if path.endswith("opencode-acp.service"))
    text = Path(daemon).read_text()
    Path(daemon).write_text(text.replace("WatchdogSec=", "WatchDogSec="))
    assert "WatchDogSec" in verified(house, "user", paths)


def test_the_exposure_of_the_system_daemon_is_low(house: House) -> None:
    daemon = next(path for path in copies(house, "system") if path.endswith("-acp.service"))
    said = analysed(house, "security", "--offline=yes", f"--threshold={EXPOSURE}", daemon)
    assert "Overall exposure level" in said


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_daemon_ends_and_comes_back_by_its_exit_codes(flavour: str) -> None:
    unit = parse(UNITS / flavour / "opencode-acp.service")
    final = {str(code) for code in (attach.USAGE, attach.AUTH, attach.CONTRACT)}
    assert set(only(unit, "RestartPreventExitStatus").split()) == final
    assert only(unit, "Restart") == "on-failure"
    assert only(unit, "Type") == "notify"
    assert only(unit, "WatchdogSec") == "30"
    # Not one start after the other for ever: the burst must fit into the interval.
    seconds = int(only(unit, "RestartSec")) * int(only(unit, "StartLimitBurst", "Unit"))
    assert seconds < int(only(unit, "StartLimitIntervalSec", "Unit"))


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_daemon_outlives_the_server(flavour: str) -> None:
    unit = parse(UNITS / flavour / "opencode-acp.service")
    bound = [" ".join(unit.get(("Unit", key), [])) for key in ("Requires", "BindsTo", "PartOf")]
    assert "opencode.service" not in " ".join(bound)
    assert "opencode.service" in unit["Unit", "Wants"]
    assert "opencode.service" in unit["Unit", "After"]


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_the_sockets_are_those_that_the_daemon_and_its_clients_know(flavour: str) -> None:
    runtime = "%t"
    expected = attach.default_socket(runtime, 0)
    daemon = parse(UNITS / flavour / "opencode-acp.service")
    for name, path in (("acp", expected), ("admin", attach.admin_socket(expected))):
        file = "opencode-acp.socket" if name == "acp" else "opencode-acp-admin.socket"
        unit = parse(UNITS / flavour / file)
        assert only(unit, "ListenStream", "Socket") == path
        assert only(unit, "FileDescriptorName", "Socket") == name
        assert only(unit, "SocketMode", "Socket") == ("0600" if flavour == "user" else "0660")
        assert file in only(daemon, "Sockets").split()
    admin = parse(UNITS / flavour / "opencode-acp-admin.socket")
    assert only(admin, "Service", "Socket") == "opencode-acp.service"


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("name", ["opencode.service", "opencode-acp.service"])
def test_both_services_are_bounded_and_leave_no_core(flavour: str, name: str) -> None:
    unit = parse(UNITS / flavour / name)
    for key in ("MemoryMax", "MemoryHigh", "TasksMax", "LimitNOFILE"):
        assert only(unit, key)
    assert only(unit, "LimitCORE") == "0"


@pytest.mark.parametrize("path", [path for flavour in FLAVOURS for path in units(flavour)], ids=str)
def test_no_unit_holds_a_secret_or_opens_a_way_out(path: Path) -> None:
    unit = parse(path)
    lines = unit.get(("Service", "Environment"), []) + unit.get(("Service", "SetCredential"), [])
    assert "PASSWORD" not in " ".join(lines)
    for command in unit.get(("Service", "ExecStart"), []):
        assert "0.0.0.0" not in command
        assert "--password" not in command


def test_a_tool_without_memory_leaves_the_server_running() -> None:
    for flavour in FLAVOURS:
        assert only(parse(UNITS / flavour / "opencode.service"), "OOMPolicy") == "continue"


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("password", ["swordfish", "$HOME `id` \"'\\ %h", ""])
def test_the_server_gets_its_password_by_the_environment_alone(
    flavour: str, password: str, house: House
) -> None:
    """A server that would start without a password does not start."""
    programs = house.home / ".local" / "bin"
    server = programs / "opencode"
    server.write_text('#!/bin/sh\nprintf "%s\\n" "$OPENCODE_SERVER_PASSWORD" "$@"\n')
    source = house.home / "password"
    source.write_text(f"{password}\n")
    unit = parse(placed(UNITS / flavour / "opencode.service", house.home, programs))
    unit["Service", "LoadCredential"] = [f"opencode-password:{source}"]
    directory = house.credentials(unit)
    env = house.environment(unit) | {"CREDENTIALS_DIRECTORY": str(directory)}
    done = subprocess.run(house.command(unit), env=env, capture_output=True, text=True, check=False)
    if not password:
        assert done.returncode != 0
        assert done.stdout == ""
        return
    said = [password, "serve", "--hostname", "127.0.0.1", "--port", "4096"]
    assert (done.stdout.splitlines(), done.stderr) == (said, "")


def test_no_group_has_the_name_of_the_user_of_the_moment() -> None:
    """systemd refuses a dynamic user whose name a group has (status 217/USER)."""
    system = UNITS / "system"
    assert only(parse(system / "opencode-acp.service"), "DynamicUser") == "yes"
    lines = (system / "opencode-acp.conf").read_text("utf-8").splitlines()
    names = {line.split()[1] for line in lines if line and not line.startswith("#")}
    groups = {
        only(parse(path), "SocketGroup", "Socket")
        for path in units("system")
        if path.suffix == ".socket"
    }
    assert "opencode-acp" not in names | groups
    assert groups <= names
    assert only(parse(system / "opencode.service"), "User") in names


def test_the_daemon_sees_its_clients_as_who_they_are() -> None:
    """In a user namespace of its own SO_PEERCRED would name user 65534 for each of them."""
    unit = parse(UNITS / "system" / "opencode-acp.service")
    assert only(unit, "PrivateUsers") == "no"


def test_the_system_daemon_sees_no_home() -> None:
    unit = parse(UNITS / "system" / "opencode-acp.service")
    assert only(unit, "ProtectHome") == "yes"
