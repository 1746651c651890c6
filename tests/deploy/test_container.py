"""The container file: what it promises of the image, and its commands as they stand in it."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from contract import attach
from stubs.parts import ROOT
from stubs.server import Settings, StubServer
from stubs.waiting import until

PROGRAMS: Final = ROOT / ".venv" / "bin"
SECRET: Final = "swordfish-of-the-container"


def instructions() -> list[tuple[str, str]]:
    """The file's instructions in their order: name and the rest of it."""
    text = (ROOT / "deploy" / "container" / "Containerfile").read_text("utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ").splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined)]


def last(name: str) -> str:
    return [rest for found, rest in instructions() if found == name][-1]


def environment() -> dict[str, str]:
    return dict(word.split("=", 1) for word in shlex.split(last("ENV")))


@pytest.fixture
def directory() -> Iterator[Path]:
    # A socket's path has 107 bytes at most, which a test's own directory may exceed.
    directory = Path(tempfile.mkdtemp(prefix="acp-"))
    yield directory
    shutil.rmtree(directory)


def test_it_runs_as_nobody_special() -> None:
    names = [name for name, _ in instructions()]
    assert last("USER").split(":")[0] not in ("root", "0")
    assert names.index("USER") < names.index("ENTRYPOINT")
    # Nothing is fetched that no package index has, and no secret is built in.
    assert "ADD" not in names
    assert not any("PASSWORD" in rest for name, rest in instructions() if name in ("ENV", "ARG"))


def test_what_it_copies_is_there_and_all_that_the_wheel_holds() -> None:
    copied = " ".join(
        rest for name, rest in instructions() if name == "COPY" and "--from" not in rest
    )
    sources = {word for word in copied.split() if not word.startswith("./")}
    assert all((ROOT / word).exists() for word in sources)
    assert {"adapter", "contract", "stubs", "scripts", "pyproject.toml", "README.md"} <= sources


def test_its_socket_is_the_one_that_its_probe_asks() -> None:
    assert environment()[attach.SOCKET_VARIABLE].startswith("/run/opencode-acp/")
    assert json.loads(last("HEALTHCHECK").partition("CMD ")[2]) == ["opencode-acp", "status"]


async def test_its_commands_serve_from_the_environment_alone_and_probe(directory: Path) -> None:
    """Nothing but the directory of the sockets is written to."""
    home = directory / "run"
    home.mkdir(mode=0o700)
    password = directory / "password"
    password.touch(mode=0o600)
    password.write_text(SECRET)
    async with StubServer(Settings(password=SECRET)) as stub:
        env = environment() | {
            "PATH": f"{PROGRAMS}:{environment()['PATH']}",
            "OPENCODE_ACP_SERVER": stub.url,
            "OPENCODE_ACP_PASSWORD_FILE": str(password),
            attach.SOCKET_VARIABLE: str(home / "opencode-acp.sock"),
        }
        probe = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
        assert await code(probe, env, directory) == attach.TEMPORARY
        daemon = await asyncio.create_subprocess_exec(
            *json.loads(last("ENTRYPOINT")), env=env, cwd="/", stderr=asyncio.subprocess.DEVNULL
        )
        try:

            async def healthy() -> bool:
                return await code(probe, env, directory) == attach.OK

            await until("the probe is content", healthy, 20)
            assert set(os.listdir(directory)) == {"run", "password"}
            daemon.terminate()
            async with asyncio.timeout(20):
                assert await daemon.wait() == attach.OK
        finally:
            if daemon.returncode is None:
                daemon.kill()
                await daemon.wait()


async def code(argv: list[str], env: dict[str, str], cwd: Path) -> int:
    quiet = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *argv, env=env, cwd=cwd, stdout=quiet, stderr=quiet
    )
    async with asyncio.timeout(20):
        return await process.wait()


@pytest.mark.parametrize("name", ["acpx", "openclaw"])
def test_the_examples_for_clients_name_the_command_alone(name: str) -> None:
    """A client's own password file would be refused: the daemon has the password."""
    text = (ROOT / "deploy" / "clients" / f"{name}.json").read_text("utf-8")
    json.loads(text)
    assert '"/usr/local/bin/opencode-acp"' in text
    assert "--" not in text
