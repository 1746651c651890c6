"""What `make run` shows is checked by itself; here it only has to end well, on either server."""

from __future__ import annotations

import asyncio
import os
import re
import sys

import pytest

from stubs.parts import ROOT


@pytest.mark.parametrize("real", ["", pytest.param("1", marks=pytest.mark.real)])
async def test_the_demonstration_is_as_told(real: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "stubs.demo",
        cwd=ROOT,
        env={**os.environ, "REAL": real},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    said, complained = await process.communicate()
    assert (process.returncode, complained) == (0, b"")
    assert re.search(rb"(\d+) characters came before the tear and (\d+) after it", said)
    assert said.splitlines()[-1].startswith(b"All as told")
