"""A terminal client that shows all that an agent says.

Without --prompt every line of standard input is one prompt. Exit code 1 if a request failed or
the agent broke a rule.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Final

from contract.initialize import META
from stubs.client.client import AcpClient, AcpClientError, choose
from stubs.client.printer import Printer
from stubs.client.transcript import Json

LONG = 86_400.0
"""Seconds that a prompt may take: a person can interrupt."""

# What a client can say that it takes, as it stands in `clientCapabilities`.
CAPABILITIES: Final = {
    "notices": ("session", "notices"),
    "compaction": ("session", "compaction"),
    "forms": ("elicitation", "form"),
    "childUpdates": ("_meta", META),
}


def capabilities(names: Sequence[str]) -> Json:
    """The `clientCapabilities` that say that a client takes all of these."""
    said: Json = {}
    for name in names:
        outer, inner = CAPABILITIES[name]
        said.setdefault(outer, {})[inner] = {name: True} if inner == META else {}
    return said


def _names(text: str) -> list[str]:
    names = text.split(",")
    for name in names:
        if name not in CAPABILITIES:
            raise argparse.ArgumentTypeError(f"{name} is none of {', '.join(CAPABILITIES)}")
    return names


def _print(text: str) -> None:
    print(text, end="", flush=True)


async def converse(arguments: argparse.Namespace) -> int:
    """One session with the agent; the exit code."""
    printer = Printer(_print, raw=arguments.raw)
    policy = choose("reject_once" if arguments.reject else "allow_once")
    async with AcpClient.spawn(arguments.agent, policy=policy) as client:
        client.on_message = printer.show
        try:
            await client.initialize(**capabilities(arguments.takes))
            session = await _open(client, arguments)
            printer.session(session)
            async for text in _prompts(arguments.prompt):
                printer.result(await client.prompt(session, text, timeout=LONG))
        except AcpClientError as error:
            printer.error(str(error), error.data)
            return 1
        except ConnectionError as error:
            printer.error(str(error), None)
            return 1
        for violation in client.violations:
            printer.line(f"[violation] {violation}")
        return 1 if client.violations else 0


async def _prompts(only: str | None) -> AsyncIterator[str]:
    """The one that was given, or every line of standard input that is not empty."""
    if only is not None:
        yield only
        return
    while line := await asyncio.to_thread(sys.stdin.readline):
        if text := line.strip():
            yield text


async def _open(client: AcpClient, arguments: argparse.Namespace) -> str:
    """The session that the arguments speak of; its id."""
    more: Json = {"_meta": {META: {"ambient": True}}} if arguments.ambient else {}
    known: str | None = arguments.resume or arguments.load
    if known is None:
        return await client.new_session(arguments.cwd, **more)
    go_on = client.resume if arguments.resume else client.load
    await go_on(known, arguments.cwd, **more)
    return known


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments and talk."""
    parser = argparse.ArgumentParser(
        prog="python -m stubs.client",
        description=__doc__,
        usage="%(prog)s [options] -- AGENT [ARGUMENT ...]",
    )
    parser.add_argument(
        "--cwd",
        default=os.getcwd(),
        type=lambda given: os.path.abspath(os.path.expanduser(given)),
        help="the project; by default this directory",
    )
    parser.add_argument("--prompt", help="the only prompt")
    parser.add_argument("--reject", action="store_true", help="reject what is asked for")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--resume", metavar="ID", help="go on in this session")
    which.add_argument("--load", metavar="ID", help="the same, with all that was said in it")
    parser.add_argument(
        "--takes",
        type=_names,
        default=[],
        metavar="LIST",
        help=f"what to advertise, with commas: {', '.join(CAPABILITIES)}",
    )
    parser.add_argument(
        "--ambient", action="store_true", help="see also what others do in the session"
    )
    parser.add_argument("--raw", action="store_true", help="show each message as it came")
    parser.add_argument("agent", nargs="+", help="the agent's command, behind --")
    return asyncio.run(converse(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
