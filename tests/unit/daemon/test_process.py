"""What the daemon asks of the system, in a process of its own: nothing of it can be undone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from adapter.daemon.process import OTHERS

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


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "room", "after"),
    [
        (1024, 1024, 256, 256, 1024),
        (64, 1024, 256, 256, 256 + OTHERS),
        (64, 200, 256, 200 - OTHERS, 200),
        (64, 64, 256, 1, 64),
    ],
)
def test_clients_leave_descriptors_for_what_serves_them(
    soft: int, hard: int, wanted: int, room: int, after: int
) -> None:
    argv = [sys.executable, "-c", SCRIPT, str(soft), str(hard), str(wanted)]
    done = subprocess.run(argv, capture_output=True, check=True, timeout=30)
    assert done.stdout.decode().split() == [str(room), str(after)]
    assert (b"leaves room for" in done.stderr) is (room < wanted)
