"""The relay as a process, against a daemon that does what a test tells it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from adapter.daemon.hello import parse
from contract.attach import HELLO, HELLO_BYTES, UNSAID, default_socket
from contract.version import VERSION
from stubs.parts import ROOT
from stubs.waiting import until
from tests.support.relays import (
    BUILT_IN,
    DEADLINE,
    IMPORTS,
    LONG,
    Reader,
    Start,
    Writer,
    daemon,
    echo,
    ended,
    flags,
    hang,
    one_sentence,
    starting,
)


@pytest_asyncio.fixture
async def start() -> AsyncIterator[Start]:
    async with starting() as begin:
        yield begin


async def test_bytes_pass_both_ways_and_the_end_of_input_is_passed_on(
    tmp_path: Path, start: Start
) -> None:
    async with daemon(tmp_path / "s", echo):
        process = await start(*flags(tmp_path / "s"))
        async with asyncio.timeout(DEADLINE):
            out, err = await process.communicate(b"one\ntwo")
    assert (process.returncode, out, err) == (0, b"one\ntwo", b"")


async def test_the_hello_says_who_comes_and_what_was_set(tmp_path: Path, start: Start) -> None:
    heard: list[bytes] = []

    async def serve(reader: Reader, writer: Writer, hello: bytes) -> None:
        heard.append(hello)
        await hang(reader, writer, hello)

    env = {
        "OPENCODE_ACP_SERVER": "http://a",
        "OPENCODE_ACP_ON_CLIENT_EXIT": "detach",
        "OPENCODE_ACP_DAEMON": "never",
        "OPENCODE_ACP_MCP": "",
        "OPENCODE_SERVER_PASSWORD": "hush",
        "OPENCODE_ACP_PASSWORD": "hush",
    }
    given = ["--server", "http://b", f"--socket={tmp_path / 's'}", "--daemon=require"]
    async with daemon(tmp_path / "s", serve):
        process = await start(*given, env=env)
        await process.communicate(b"")
    protocol, *fields = heard[0].decode().removesuffix("\n").split("\0")
    assert protocol == HELLO
    assert dict(field.split("=", 1) for field in fields) == {
        "version": VERSION,
        "cwd": str(Path.cwd()),
        "client": str(os.getpid()),
        "set:server": "http://b",
        "env:on_client_exit": "detach",
    }


async def test_a_password_in_the_arguments_reaches_no_daemon(tmp_path: Path, start: Start) -> None:
    heard: list[bytes] = []

    async def serve(reader: Reader, writer: Writer, hello: bytes) -> None:
        heard.append(hello)
        writer.close()

    async with daemon(tmp_path / "s", serve):
        code, out, err = await ended(await start(*flags(tmp_path / "s"), "--password", "hush"))
    assert (code, out, heard, one_sentence(err)) == (2, b"", [], True)
    assert "hush" not in err and "--password-file" in err


async def test_a_refusal_is_the_exit_code_and_the_sentence(tmp_path: Path, start: Start) -> None:
    async with daemon(tmp_path / "s", hang, b"2 Another server is asked for.\n"):
        process = await start(*flags(tmp_path / "s"))
        assert await ended(process) == (2, b"", "opencode-acp: Another server is asked for.\n")


async def test_what_a_terminal_obeys_is_not_passed_on(tmp_path: Path, start: Start) -> None:
    async with daemon(tmp_path / "s", hang, b"2 \x1b[31mNo.\n"):
        assert (await ended(await start(*flags(tmp_path / "s"))))[2] == "opencode-acp: ?[31mNo.\n"


async def test_a_daemon_that_ends_before_it_answers_is_said(tmp_path: Path, start: Start) -> None:
    async def end(reader: Reader, writer: Writer, hello: bytes) -> None:
        writer.close()

    async with daemon(tmp_path / "s", end, b""):
        code, out, err = await ended(await start(*flags(tmp_path / "s")))
    assert (code, out, one_sentence(err)) == (75, b"", True)
    assert "before it answered" in err


async def test_what_is_no_daemon_is_said(tmp_path: Path, start: Start) -> None:
    async with daemon(tmp_path / "s", hang, b"HTTP/1.1 400 Bad Request\n"):
        code, out, err = await ended(await start(*flags(tmp_path / "s")))
    assert (code, out, one_sentence(err)) == (75, b"", True)


async def test_a_daemon_that_does_not_answer_is_given_up(tmp_path: Path, start: Start) -> None:
    """One says nothing, one says a little for ever, and one accepts nobody."""

    async def drip(reader: Reader, writer: Writer, hello: bytes) -> None:
        while not writer.is_closing():
            writer.write(b"o")
            await asyncio.sleep(0.5)

    with socket.socket(socket.AF_UNIX) as deaf, socket.socket(socket.AF_UNIX) as waiting:
        deaf.bind(str(tmp_path / "deaf"))
        deaf.listen(0)
        waiting.connect(str(tmp_path / "deaf"))
        silent, dripping = (
            daemon(tmp_path / "silent", hang, b""),
            daemon(tmp_path / "drip", drip, b""),
        )
        async with silent, dripping:
            relays = [await start(*flags(tmp_path / name)) for name in ("silent", "drip", "deaf")]
            ends = await asyncio.gather(*map(ended, relays))
    for code, out, err in ends:
        assert (code, out, one_sentence(err)) == (75, b"", True)
        assert "does not answer" in err


@pytest.mark.parametrize("abort", [False, True])
async def test_a_daemon_that_ends_under_its_client_is_said_at_once(
    tmp_path: Path, start: Start, abort: bool
) -> None:
    async def serve(reader: Reader, writer: Writer, hello: bytes) -> None:
        writer.write(b"half a li")
        await writer.drain()
        await reader.read(1)
        (writer.transport.abort if abort else writer.close)()

    async with daemon(tmp_path / "s", serve):
        process = await start(*flags(tmp_path / "s"))
        assert process.stdin is not None
        process.stdin.write(b"x")
        code, out, err = await ended(process)
    assert (code, out) == (75, b"half a li")
    assert one_sentence(err) and str(tmp_path / "s") in err


@pytest.mark.parametrize("left", ["nothing", "a stale socket"])
async def test_without_a_daemon_it_is_the_agent_itself(
    tmp_path: Path, start: Start, left: str
) -> None:
    path = tmp_path / "s"
    if left != "nothing":
        async with daemon(path, hang):
            pass
        assert path.is_socket()
    params = {"protocolVersion": 1, "clientCapabilities": {}}
    line = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}
    process = await start(*flags(path, "auto"))
    out, err = await process.communicate(json.dumps(line).encode() + b"\n")
    assert (process.returncode, err) == (0, b"")
    assert json.loads(out)["result"]["protocolVersion"] == 1
    code, out, told = await ended(await start(*flags(path)))
    assert (code, out, one_sentence(told)) == (75, b"", True)
    assert "opencode-acp serve" in told


@pytest.mark.parametrize("mode", ["auto", "require"])
async def test_a_socket_that_cannot_be_used_is_said(
    tmp_path: Path, start: Start, mode: str
) -> None:
    code, out, err = await ended(await start(*flags(tmp_path / ("s" * 200), mode)))
    assert (code, out, one_sentence(err)) == (75, b"", True)


async def test_no_daemon_is_asked_for_with_never(tmp_path: Path, start: Start) -> None:
    async with daemon(tmp_path / "s", hang, b"2 No.\n"):
        for told in (flags(tmp_path / "s", "never"), ["--socket", "x", "--no-daemon"]):
            process = await start(*told)
            out, err = await process.communicate(b"")
            assert (process.returncode, out, err) == (0, b"", b"")


async def test_neither_direction_waits_for_the_other(tmp_path: Path, start: Start) -> None:
    """A client that writes and does not read, to a daemon that does the same."""
    taken: list[int] = []

    async def serve(reader: Reader, writer: Writer, hello: bytes) -> None:
        writer.write(b"d" * LONG + b"\n")
        taken.append(len(await reader.readuntil(b"\n")))
        await writer.drain()
        writer.write(b"both\n")
        await hang(reader, writer, hello)

    async with daemon(tmp_path / "s", serve):
        process = await start(*flags(tmp_path / "s"))
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"u" * LONG + b"\n")
        async with asyncio.timeout(DEADLINE):
            await process.stdin.drain()
            down = await process.stdout.readuntil(b"\n")
            assert await process.stdout.readline() == b"both\n"
        process.stdin.close()
        assert (await ended(process))[0] == 0
    assert (len(down), taken) == (LONG + 1, [LONG + 1])


async def test_a_client_that_closes_its_output_has_left(tmp_path: Path, start: Start) -> None:
    read, write = os.pipe()
    async with daemon(tmp_path / "s", hang):
        process = await start(*flags(tmp_path / "s"), stdout=write)
        os.close(write)
        os.close(read)
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == 0


async def test_output_may_be_a_file(tmp_path: Path, start: Start) -> None:
    async def whole() -> bool:
        return os.stat(tmp_path / "out").st_size == LONG

    file = os.open(tmp_path / "out", os.O_CREAT | os.O_WRONLY)
    async with daemon(tmp_path / "s", echo):
        process = await start(*flags(tmp_path / "s"), stdout=file)
        os.close(file)
        assert process.stdin is not None
        process.stdin.write(b"a" * LONG)
        await process.stdin.drain()
        await until("all of it is in the file", whole)
        process.stdin.close()
        async with asyncio.timeout(DEADLINE):
            assert await process.wait() == 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)]
)
async def test_a_signal_ends_it_and_the_daemon_sees_the_end(
    tmp_path: Path, start: Start, number: signal.Signals, code: int
) -> None:
    gone = asyncio.Event()

    async def serve(reader: Reader, writer: Writer, hello: bytes) -> None:
        writer.write(b"here\n")
        await reader.read()
        gone.set()
        writer.close()

    async with daemon(tmp_path / "s", serve):
        process = await start(*flags(tmp_path / "s"))
        assert process.stdout is not None
        assert await process.stdout.readline() == b"here\n"
        process.send_signal(number)
        assert await ended(process) == (code, b"", "")
        async with asyncio.timeout(DEADLINE):
            await gone.wait()


@pytest.mark.parametrize("value", ["http://a\nb", "x" * 70_000])
async def test_a_flag_that_fits_in_no_hello_is_refused_by_its_name(
    tmp_path: Path, start: Start, value: str
) -> None:
    async with daemon(tmp_path / "s", hang):
        given = [*flags(tmp_path / "s"), "--on-client-exit", value]
        code, out, err = await ended(await start(*given))
    assert (code, out, one_sentence(err)) == (2, b"", True)
    assert "--on-client-exit" in err


@pytest.mark.parametrize("value", ["a\nb", "x" * 70_000])
async def test_a_variable_that_fits_in_no_hello_ends_no_client(
    tmp_path: Path, start: Start, value: str
) -> None:
    """It may be of another version; one that is a setting is the daemon's to refuse."""
    heard: list[bytes] = []

    async def serve(reader: Reader, writer: Writer, hello: bytes) -> None:
        heard.append(hello)
        await hang(reader, writer, hello)

    env = {"OPENCODE_ACP_LATER": value, "OPENCODE_ACP_A\nB": "x", "OPENCODE_ACP_MCP": "notice"}
    async with daemon(tmp_path / "s", serve):
        process = await start(*flags(tmp_path / "s"), "--server", "http://b", env=env)
        out, err = await process.communicate(b"")
    assert (process.returncode, out, err) == (0, b"", b"")
    said = parse(heard[0].removesuffix(b"\n"))
    assert said.settings == {"server": "http://b"}
    assert said.variables == {"later": UNSAID, "mcp": "notice"}


async def test_variables_of_no_use_take_no_room_of_settings(tmp_path: Path, start: Start) -> None:
    heard: list[bytes] = []

    async def serve(reader: Reader, writer: Writer, hello: bytes) -> None:
        heard.append(hello)
        await hang(reader, writer, hello)

    env = {f"OPENCODE_ACP_LATER_{number}": "x" * 1000 for number in range(100)}
    env["OPENCODE_ACP_MCP"] = "notice"
    async with daemon(tmp_path / "s", serve):
        process = await start(*flags(tmp_path / "s"), f"--server=http://{'b' * 30_000}", env=env)
        out, err = await process.communicate(b"")
    assert (process.returncode, out, err) == (0, b"", b"")
    assert len(heard[0]) <= HELLO_BYTES
    said = parse(heard[0].removesuffix(b"\n"))
    assert len(said.settings["server"]) > 30_000
    assert said.variables["mcp"] == "notice"


def test_it_imports_next_to_nothing() -> None:
    """Each module more is time and memory for every client."""
    code = (
        "import sys; before = set(sys.modules); import adapter.relay; "
        "print(*set(sys.modules) - before)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert set(ran.stdout.split()) - BUILT_IN == IMPORTS


def test_where_the_socket_is() -> None:
    assert default_socket("/run/user/7", 8) == "/run/user/7/opencode-acp.sock"
    assert default_socket("", 8) == "/run/user/8/opencode-acp.sock"
