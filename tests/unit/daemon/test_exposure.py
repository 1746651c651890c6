"""Who could put a socket of theirs in the place of a daemon's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapter.daemon.exposure import Exposure, exposure, others_write

ME = os.getuid()


@pytest.mark.parametrize(
    ("mode", "exposed"),
    [
        (0o700, None),
        (0o755, None),
        (0o770, Exposure.WRITERS),
        (0o707, Exposure.WRITERS),
        (0o1777, None),
    ],
)
def test_whoever_may_write_in_a_directory(
    tmp_path: Path, mode: int, exposed: Exposure | None
) -> None:
    tmp_path.chmod(mode)
    assert exposure(tmp_path.stat(), (ME,)) is exposed
    assert exposure(tmp_path.stat(), (ME + 1,)) is Exposure.OWNER


@pytest.mark.parametrize(("mode", "others"), [(0o644, False), (0o620, True), (0o602, True)])
def test_whoever_may_write_a_file(tmp_path: Path, mode: int, others: bool) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(mode)
    assert others_write(file.stat()) is others
