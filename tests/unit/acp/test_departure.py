"""A client that leaves during the imports, on real descriptors and processes."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

IMPORTING = """
import os, sys, time
from adapter.acp.departure import end_with_client
served = end_with_client(0)
print("watching", flush=True)
end = time.monotonic() + 10
while time.monotonic() < end and not os.path.exists(sys.argv[1]):
    time.sleep(0.01)
served()
print("served", sys.stdin.read(), flush=True)
sys.exit(3)
"""


@pytest.fixture
def importing(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that is busy until a file of that name is there."""
    done = str(tmp_path / "done")
    argv = [sys.executable, "-c", IMPORTING, done]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "watching\n"
        yield process, done


def finish(done: str) -> None:
    Path(done).touch()


def test_the_process_ends_with_its_client(importing: tuple[subprocess.Popen[str], str]) -> None:
    process, _ = importing
    assert process.communicate(timeout=5)[0] == ""
    assert process.returncode == 0


def test_a_client_on_a_socket_is_seen_to_leave(tmp_path: Path) -> None:
    """Node gives its children sockets as standard streams."""
    ours, theirs = socket.socketpair()
    argv = [sys.executable, "-c", IMPORTING, str(tmp_path / "never")]
    with subprocess.Popen(
        argv, stdin=theirs.fileno(), stdout=subprocess.PIPE, text=True
    ) as process:
        theirs.close()
        assert process.stdout is not None
        assert process.stdout.readline() == "watching\n"
        ours.close()
        assert process.wait(5) == 0


def test_no_input_at_all_is_left_to_the_program(tmp_path: Path) -> None:
    done = tmp_path / "done"
    done.touch()
    argv = [sys.executable, "-c", IMPORTING, str(done)]
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as process:
        out, _ = process.communicate(timeout=5)
    assert (out, process.returncode) == ("watching\nserved \n", 3)


def test_what_the_client_said_before_it_left_is_served(
    importing: tuple[subprocess.Popen[str], str],
) -> None:
    process, done = importing
    assert process.stdin is not None
    process.stdin.write("a request")
    process.stdin.close()
    finish(done)
    assert process.stdout is not None
    assert process.stdout.read() == "served a request\n"
    assert process.wait(5) == 3


def test_a_client_that_stays_is_served(importing: tuple[subprocess.Popen[str], str]) -> None:
    process, done = importing
    finish(done)
    out, _ = process.communicate("later", timeout=5)
    assert (out, process.returncode) == ("served later\n", 3)
