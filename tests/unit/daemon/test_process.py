"""What the daemon asks of the system, in a process of its own: nothing of it can be undone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from adapter.daemon.admin.service import CONNECTIONS
from adapter.daemon.process import ARRIVING, OTHERS, Room, room
from adapter.upstream.transport import ServerSettings

SCRIPT = """
import resource, sys
from adapter.daemon.process import room_for_clients
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
print(room_for_clients(int(sys.argv[3])), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""

PRIVATE = """
import ctypes, resource
from adapter.daemon.process import keep_memory
keep_memory()
print(resource.getrlimit(resource.RLIMIT_CORE)[0], ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""
"""3: PR_GET_DUMPABLE."""

SERVE = """
import ctypes, resource
from adapter.commands.parser import parser
given = parser().parse_args(["serve", "--password-file", "/none", "--socket", "/none/s"])
print(given.run(given), resource.getrlimit(resource.RLIMIT_CORE)[0])
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""

WITHOUT_TLS = """
import ssl
from adapter.daemon.process import load_no_authorities
load_no_authorities()
print(len(ssl.create_default_context().get_ca_certs()))
"""


def test_a_process_without_tls_loads_no_authority() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TLS], capture_output=True, check=True, timeout=30
    )
    assert done.stdout.split() == [b"0"]


def test_nothing_of_its_memory_comes_into_a_file() -> None:
    """X-18."""
    done = subprocess.run(
        [sys.executable, "-c", PRIVATE], capture_output=True, check=True, timeout=30
    )
    assert done.stdout.split() == [b"0", b"0"]
    assert done.stderr == b""


def test_that_is_so_before_the_password_is_read() -> None:
    """Which is where this start ends."""
    done = subprocess.run(
        [sys.executable, "-c", SERVE], capture_output=True, check=False, timeout=30
    )
    assert done.stdout.split() == [b"2", b"0", b"0"]
    assert b"/none" in done.stderr


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "left", "after"),
    [
        (1024, 1024, 256, Room(256, ARRIVING), 1024),
        (64, 1024, 256, Room(256, ARRIVING), 256 + ARRIVING + OTHERS),
        (64, OTHERS + 400, 256, Room(256, 144), OTHERS + 400),
        (64, OTHERS + 100, 256, Room(75, 25), OTHERS + 100),
        (64, OTHERS + 100, 10, Room(10, 90), OTHERS + 100),
        (64, 64, 256, Room(1, 1), 64),
    ],
)
def test_clients_leave_descriptors_for_what_serves_them(
    soft: int, hard: int, wanted: int, left: Room, after: int
) -> None:
    argv = [sys.executable, "-c", SCRIPT, str(soft), str(hard), str(wanted)]
    done = subprocess.run(argv, capture_output=True, check=True, timeout=30)
    assert done.stdout.decode() == f"{left} {after}\n"
    assert (b"leaves room for" in done.stderr) is (left != Room(wanted, ARRIVING))


def test_whatever_serves_clients_is_counted() -> None:
    """And no process with all of these and all that are silent goes beyond what it reckons with."""
    operator = 2 * CONNECTIONS
    assert 2 * ServerSettings().connections + operator + 32 <= OTHERS
    for limit in range(OTHERS + 2, OTHERS + 600):
        found = room(limit, 256)
        assert found.clients + found.arriving + OTHERS <= limit
        assert min(found.clients, found.arriving) > 0
