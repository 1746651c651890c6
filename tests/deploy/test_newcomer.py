"""A newcomer's way by the pages alone: their commands, word for word, on the real server.

Only what differs from machine to machine is put in: the server's address and the command's place.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import stat
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from adapter.settings.table import DEFAULT_SERVER
from stubs.parts import ROOT, acpx
from stubs.processes import kill_processes_of_home
from stubs.real_server import RealServer, real_server
from stubs.script import NO_SCRIPT_TEXT

pytestmark = pytest.mark.real

README: Final = (ROOT / "README.md").read_text("utf-8")
OPERATIONS: Final = (ROOT / "docs" / "operations.md").read_text("utf-8")
CLIENTS: Final = ROOT / "deploy" / "clients"
INSTALLED: Final = "/usr/local/bin/opencode-acp"
SECONDS: Final = 60.0
# Between two commands of a page a reader looks at what the first one says; a script has to wait.
WAITING: Final = """
seen() { for _ in {1..400}; do "$@" && return; sleep 0.05; done; echo "not seen: $*" >&2; exit 9; }
"""


def blocks(page: str, heading: str) -> list[str]:
    """The blocks of code in the section of that heading, its subsections left out."""
    section = re.split(r"^#+ ", page.partition(f"# {heading}\n")[2], maxsplit=1, flags=re.M)[0]
    return re.findall(r"^```\w*\n(.*?)^```$", section, re.M | re.S)


@dataclass(frozen=True, slots=True)
class Newcomer:
    """Somebody with a home, a project in it, the programs in their PATH, and a server."""

    home: Path
    server: RealServer

    @property
    def printed(self) -> Path:
        return self.home / "stdout"

    async def runs(self, script: str) -> tuple[str, str]:
        """What a shell and all that it starts write to stdout and stderr; none of it stays."""
        env = {
            "PATH": f"{self.home / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "XDG_RUNTIME_DIR": str(self.home),
            "TMPDIR": str(self.home),
        }
        told = self.home / "stderr"
        with self.printed.open("wb") as stdout, told.open("wb") as stderr:
            shell = await asyncio.create_subprocess_exec(
                *("bash", "-euo", "pipefail", "-c", script),
                cwd=ROOT,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )
            try:
                async with asyncio.timeout(SECONDS):
                    await shell.wait()
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(shell.pid, signal.SIGKILL)
                await shell.wait()
        out, err = self.printed.read_text("utf-8"), told.read_text("utf-8")
        assert shell.returncode == 0, out + err
        assert self.server.password not in out + err
        return out, err


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def newcomer(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Newcomer]:
    """As README leaves one who has installed the adapter, configured it and started the server."""
    # A socket's path has 107 bytes at most, which a test's own directory may exceed.
    home = Path(tempfile.mkdtemp(prefix="acp-"))
    programs = home / "bin"
    programs.mkdir()
    (programs / "opencode-acp").symlink_to(ROOT / ".venv" / "bin" / "opencode-acp")
    node, script = acpx()
    (programs / "acpx").write_text(f'#!/bin/sh\nexec {node} {script} "$@"\n')
    (programs / "acpx").chmod(0o755)
    (home / ".acpx").mkdir()
    config = (CLIENTS / "acpx.json").read_text("utf-8")
    (home / ".acpx" / "config.json").write_text(
        config.replace(INSTALLED, f"{programs}/opencode-acp")
    )
    async with real_server(tmp_path_factory.mktemp("newcomer")) as server:
        (home / "project").symlink_to(server.project)
        newcomer = Newcomer(home, server)
        _, configure, start = blocks(README, "Install and use")[:3]
        assert "opencode serve" in start
        await newcomer.runs(configure)
        folder = home / ".config" / "opencode-acp"
        # The server has a password already, which takes the place of the one that was made.
        assert len((folder / "password").read_text()) == 33
        assert stat.S_IMODE((folder / "password").stat().st_mode) == 0o600
        (folder / "password").write_text(f"{server.password}\n")
        with (folder / "config.toml").open("a") as file:
            file.write(f'server = "{server.url}"\n')
        try:
            yield newcomer
        finally:
            await asyncio.to_thread(kill_processes_of_home, home)
            shutil.rmtree(home)


@pytest.mark.asyncio(loop_scope="module")
async def test_without_a_daemon_no_command_wants_a_flag(newcomer: Newcomer) -> None:
    out, _ = await newcomer.runs("cd ~/project && opencode-acp doctor")
    assert json.loads(out[out.index("\n{") :]) == configuration(newcomer)
    by_hand = blocks(README, "Install and use")[3]
    out, _ = await newcomer.runs(by_hand)
    assert NO_SCRIPT_TEXT.strip() in out.split()


@pytest.mark.asyncio(loop_scope="module")
async def test_acpx_talks_through_a_daemon_that_is_started_as_by_its_units(
    newcomer: Newcomer,
) -> None:
    start, use, end = blocks(OPERATIONS, "Try the units without systemd")
    stop, clear = end.splitlines()
    # From here on the password is in the credential alone.
    script = f"""{WAITING}{start}
mv ~/.config/opencode-acp/password ~/away
seen test -S "$D/opencode-acp-admin.sock"
cd ~/project
{use}
seen grep -q WATCHDOG=1 {newcomer.printed}
echo "It is $daemon."
{stop}
seen grep -q STOPPING=1 {newcomer.printed}
stat -c '%a %n' "$D"/opencode-acp*.sock
{clear}
test ! -e "$D"
mv ~/away ~/.config/opencode-acp/password
"""
    out, err = await newcomer.runs(script.replace(DEFAULT_SERVER, newcomer.server.url))
    told = [out.find(one) for one in ("READY=1\n", f"\n{NO_SCRIPT_TEXT}", "\nSTOPPING=1\n")]
    assert -1 not in told and told == sorted(told), out
    assert "[done] end_turn" in out
    # It was this daemon that answered acpx, and no agent in a process of its own.
    (pid,) = re.findall(r"^It is (\d+)\.$", out, re.M)
    assert re.search(rf"^opencode-acp \S+, process {pid}, serving ", out, re.M), out
    assert re.search(r'"CLIENT": "1 acpx .*"OUTCOME": "end_turn"', err), err
    # As the page says of them: whatever the umask is, and after the daemon's end.
    assert re.findall(r"^(\d+) \S+/(opencode-acp\S*)$", out, re.M) == [
        ("644", "opencode-acp-admin.sock"),
        ("644", "opencode-acp.sock"),
    ]


@pytest.mark.parametrize(
    ("heading", "name"), [("acpx", "acpx.json"), ("OpenClaw", "openclaw.json")]
)
def test_the_readme_shows_the_configuration_of_a_client_as_it_is_shipped(
    heading: str, name: str
) -> None:
    (shown,) = blocks(README, heading)
    assert json.loads(shown) == json.loads((CLIENTS / name).read_text("utf-8"))


def configuration(newcomer: Newcomer) -> Any:
    """What the newcomer has told acpx."""
    return json.loads((newcomer.home / ".acpx" / "config.json").read_text("utf-8"))
