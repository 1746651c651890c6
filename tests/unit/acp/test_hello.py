"""The first answer, on real descriptors."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from adapter.acp.hello import FIRST_LINE_LIMIT, greet
from contract.initialize import initialize_result
from contract.version import VERSION

PARAMS: dict[str, object] = {"protocolVersion": 1}
HELLO = {"jsonrpc": "2.0", "id": "h", "method": "initialize", "params": PARAMS}
LINE = json.dumps(HELLO).encode() + b"\n"
NEXT = b'{"jsonrpc":"2.0","id":2,"method":"session/new"}\n'


class Client:
    """The client's ends of two pipes, and the agent's."""

    def __init__(self) -> None:
        self.source, self._to_agent = os.pipe()
        fcntl.fcntl(self.source, fcntl.F_SETPIPE_SZ, 2**20)
        self._from_agent, self.sink = os.pipe()
        self._open = {self.source, self._to_agent, self._from_agent, self.sink}

    def say(self, data: bytes) -> None:
        os.write(self._to_agent, data)

    def hang_up(self) -> None:
        self._close(self._to_agent)

    def stop_reading(self) -> None:
        self._close(self._from_agent)

    def heard(self) -> bytes:
        """Everything that the agent wrote; ends the agent's side."""
        self._close(self.sink)
        return os.read(self._from_agent, 2**16)

    def close(self) -> None:
        for descriptor in tuple(self._open):
            self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        self._open.remove(descriptor)
        os.close(descriptor)


@pytest.fixture
def client() -> Iterator[Client]:
    client = Client()
    yield client
    client.close()


def test_a_valid_initialize_is_answered_and_the_rest_is_kept(client: Client) -> None:
    client.say(b"\n \r\n" + LINE + NEXT + b'{"half')
    assert greet(client.source, client.sink) == (PARAMS, NEXT + b'{"half')
    answer = json.loads(client.heard())
    assert answer == {"jsonrpc": "2.0", "id": "h", "result": initialize_result(PARAMS)}


@pytest.mark.parametrize("taken", [True, False])
def test_the_first_answer_says_whether_mcp_servers_are_taken(client: Client, taken: bool) -> None:
    client.say(LINE)
    greet(client.source, client.sink, mcp=taken)
    offer = json.loads(client.heard())["result"]["agentCapabilities"]["mcpCapabilities"]
    assert offer == {"http": taken, "sse": False}


def test_a_client_that_only_probes_needs_nothing_more(client: Client) -> None:
    client.say(LINE)
    client.hang_up()
    assert greet(client.source, client.sink) is None
    assert client.heard()


def test_an_idle_client_is_handed_over(client: Client) -> None:
    client.say(LINE)
    assert greet(client.source, client.sink) == (PARAMS, b"")


@pytest.mark.parametrize(
    "first",
    [
        NEXT,
        b"[]\n",
        b"\xff\n",
        b"[" * 5000 + b"\n",
        LINE.replace(b'"h"', b"true"),
        LINE.replace(b": 1", b': "1"'),
        LINE.replace(b": 1", b": true"),
        LINE.replace(b'"id": "h", ', b""),
        b"x" * FIRST_LINE_LIMIT + b"x",
    ],
    ids=lambda line: repr(line[:60]),
)
def test_anything_else_is_left_to_the_peer(client: Client, first: bytes) -> None:
    client.say(first)
    greeting = greet(client.source, client.sink)
    assert greeting is not None
    params, pending = greeting
    assert params is None
    assert pending == first
    client.hang_up()
    assert client.heard() == b""


@pytest.mark.parametrize("said", [b"", b"\n\n", b'{"half'])
def test_a_client_that_leaves_before_its_first_line(client: Client, said: bytes) -> None:
    client.say(said)
    client.hang_up()
    assert greet(client.source, client.sink) is None
    assert client.heard() == b""


def test_descriptors_that_do_not_block_are_waited_for(client: Client) -> None:
    os.set_blocking(client.source, False)
    os.set_blocking(client.sink, False)
    client.say(LINE + NEXT)
    assert greet(client.source, client.sink) == (PARAMS, NEXT)


def test_a_client_that_does_not_listen(client: Client) -> None:
    client.say(LINE)
    client.stop_reading()
    with pytest.raises(BrokenPipeError):
        greet(client.source, client.sink)


def test_the_result_says_what_this_version_can_do() -> None:
    result = initialize_result({"protocolVersion": 99})
    assert result["protocolVersion"] == 1
    assert result["agentInfo"] == {"name": "opencode-acp", "title": "OpenCode", "version": VERSION}
    assert result["authMethods"] == []


def test_nothing_heavy_is_imported_before_the_answer() -> None:
    code = "import sys, adapter.cli; print(*sorted(m.partition('.')[0] for m in sys.modules))"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    heavy = {"asyncio", "logging", "orjson", "pydantic", "httpx", "aiohttp", "uvloop", "argparse"}
    assert heavy.isdisjoint(ran.stdout.split())
