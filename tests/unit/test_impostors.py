"""The relay where somebody else listens in the daemon's place."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from stubs.parts import ROOT
from tests.support.relays import Start, ended, flags, one_sentence, starting
from tests.support.strangers import NOBODY, as_root, listening

KNOWN = """
import os, sys
from adapter import relay
from adapter.daemon import exposure
path, user = sys.argv[1:]
os.chmod(path, 0o666)
os.setuid(int(user))
relay.connect(relay.Wishes("require", path, {}))
"""
"""A relay of another user, as far as who listens; it ends with 0 if that one is known."""


@pytest_asyncio.fixture
async def start() -> AsyncIterator[Start]:
    async with starting() as begin:
        yield begin


@as_root
@pytest.mark.parametrize("mode", ["auto", "require"])
async def test_nothing_is_said_to_anybody_who_listens(
    tmp_path: Path, start: Start, mode: str
) -> None:
    """In a directory like that of the system everybody may have made the socket."""
    os.chmod(tmp_path, 0o1777)
    with listening(tmp_path / "s", NOBODY) as listener:
        code, out, err = await ended(await start(*flags(tmp_path / "s", mode)))
        client, _ = listener.accept()
        with client:
            assert client.recv(64) == b""
    assert (code, out, one_sentence(err)) == (2, b"", True)
    assert f"User {NOBODY} listens at {tmp_path}/s" in err


@as_root
def test_who_listens_is_known_by_his_user_or_by_the_place(tmp_path: Path) -> None:
    """root at a place of anybody, as a service manager may; and a user at his own."""

    def connected(path: Path, listener: int, caller: int) -> bool:
        with listening(path, listener):
            ran = subprocess.run(
                [sys.executable, "-c", KNOWN, str(path), str(caller)],
                cwd=ROOT,
                capture_output=True,
                check=False,
            )
            path.unlink()
        return ran.returncode == 0

    with tempfile.TemporaryDirectory(dir="/run") as made:
        place = Path(made)
        place.chmod(0o1777)
        assert connected(place / "s", 0, NOBODY)
        assert connected(place / "s", NOBODY, NOBODY)
        assert not connected(place / "s", NOBODY - 1, NOBODY)
        place.chmod(0o755)
        assert connected(place / "s", NOBODY - 1, NOBODY)
        os.chown(place, NOBODY - 1, 0)
        assert connected(place / "s", NOBODY - 1, NOBODY)
        assert not connected(place / "s", NOBODY - 2, NOBODY)
