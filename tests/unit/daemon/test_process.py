"""What the daemon asks of the system, in a process of its own: limits cannot be raised again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from adapter.daemon.process import OTHERS

SCRIPT = """
import resource, sys
from adapter.daemon.process import no_core_dumps, room_for_clients
no_core_dumps()
assert resource.getrlimit(resource.RLIMIT_CORE)[0] == 0
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
print(room_for_clients(int(sys.argv[3])), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


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
