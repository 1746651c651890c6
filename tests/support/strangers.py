"""A socket whose rights keep this process out, whoever runs the tests."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

NOBODY: Final = 65534
"""What root has to be, whom no rights keep out."""


@contextmanager
def kept_out(path: Path) -> Iterator[None]:
    """Somebody listens at `path`, and no call of this process may connect there."""
    is_root = os.geteuid() == 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        path.chmod(0)
        if is_root:
            os.seteuid(NOBODY)
        try:
            yield
        finally:
            if is_root:
                os.seteuid(0)
