"""Runs a script of this folder in Node and reads what it prints."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from stubs.parts import node, node_modules
from tests.support.daemons import launched

Json = dict[str, Any]
HERE: Final = Path(__file__).parent
DEADLINE: Final = 60.0


async def steps(script: str, told: Mapping[str, Any]) -> dict[str, Json]:
    """What the script printed, one JSON line for each step, by the name of the step.

    `told` is its one argument, and has the `command` and the `env` of an agent. It must end well,
    and nothing may stand on its stderr: the libraries complain there, and so does the adapter.
    """
    async with launched(told["command"], told["env"]) as (command, _):
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            str(node()),
            str(HERE / script),
            json.dumps({"modules": f"{node_modules()}/", **told, "command": command}),
            env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
        )
        try:
            async with asyncio.timeout(DEADLINE):
                out, err = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    assert (process.returncode, err.decode()) == (0, ""), out.decode()
    lines = [json.loads(line) for line in out.splitlines()]
    return {line["step"]: line for line in lines}
