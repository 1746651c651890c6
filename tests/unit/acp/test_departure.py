"""A client that leaves during the imports, on real descriptors and processes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

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
def importing(tmp_path: os.PathLike[str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that is busy until a file of that name is there."""
    done = os.path.join(tmp_path, "done")
    argv = [sys.executable, "-c", IMPORTING, done]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "watching\n"
        yield process, done


def finish(done: str) -> None:
    with open(done, "w", encoding="ascii"):
        pass


def test_the_process_ends_with_its_client(importing: tuple[subprocess.Popen[str], str]) -> None:
    process, _ = importing
    assert process.communicate(timeout=5)[0] == ""
    assert process.returncode == 0


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
