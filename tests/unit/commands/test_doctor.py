"""`opencode-acp doctor` as a process."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from adapter.doctor.server import ALL
from contract.attach import AUTH, USAGE
from stubs.real_server import PASSWORD
from stubs.server import Settings, StubServer

COMMAND_FILE = str(Path(sys.executable).with_name("opencode-acp"))
COMMAND = (sys.executable, "-m", "adapter.cli", "doctor")


async def run(root: Path, *flags: str, **environ: str) -> tuple[int | None, str]:
    """Exit code and standard output; there is nothing on standard error."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *flags,
        env={"HOME": str(root), "XDG_RUNTIME_DIR": str(root), **environ},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    assert err == b""
    return process.returncode, out.decode()


async def test_a_server_in_order_and_what_to_tell_acpx(tmp_path: Path) -> None:
    async with StubServer(Settings(password=PASSWORD)) as stub:
        flags = ("--server", stub.url, "--cwd", str(tmp_path))
        code, out = await run(tmp_path, "--json", *flags, OPENCODE_SERVER_PASSWORD=PASSWORD)
    told = json.loads(out)
    states = {one["name"]: one["state"] for one in told["findings"]}
    assert {states[name] for name in ALL} == {"ok"}
    assert code == told["exit"] == 0
    argv = told["acpx"]["agents"]["opencode"]["argv"]
    assert argv[0] == COMMAND_FILE
    assert argv[1:] == ["--server", stub.url]
    assert PASSWORD not in out


async def test_the_exit_code_is_that_of_the_worst(tmp_path: Path) -> None:
    async with StubServer(Settings(password=PASSWORD)) as stub:
        code, out = await run(tmp_path, "--server", stub.url)
    assert code == AUTH
    assert "failed   auth" in out
    assert "acpx" not in out


async def test_an_address_that_is_not_allowed(tmp_path: Path) -> None:
    code, out = await run(tmp_path, "--server", "http://192.0.2.1")
    assert code == USAGE
    assert "failed   url" in out
