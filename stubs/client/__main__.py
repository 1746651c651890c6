"""A terminal client: `python -m stubs.client [--cwd DIR] [--prompt TEXT] [--reject] -- AGENT ARGV`.

Without --prompt every line of stdin is one prompt. Exit code 1 if the agent broke a rule.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from stubs.client.client import AcpClient, AcpClientError, choose
from stubs.client.transcript import Json

LONG = 86_400.0
"""Seconds that a prompt may take: a person can interrupt."""


class Printer:
    """Shows the updates as they come; text flows, everything else is a line of its own."""

    def __init__(self) -> None:
        self._in_text = ""

    def show(self, message: Json) -> None:
        """Show one message of the agent."""
        if message.get("method") == "session/update":
            self._update(message["params"]["update"])
        elif message.get("method") == "session/request_permission":
            self.line(f"[permission] {message['params'].get('toolCall', {}).get('title')}")

    def line(self, text: str) -> None:
        """A line of its own."""
        print("\n" * bool(self._in_text) + text, flush=True)
        self._in_text = ""

    def _update(self, update: Json) -> None:
        kind = update.get("sessionUpdate")
        if kind in ("agent_message_chunk", "agent_thought_chunk"):
            if kind != self._in_text:
                self.line("[thought]" if kind == "agent_thought_chunk" else "[text]")
                self._in_text = str(kind)
            print((update.get("content") or {}).get("text", ""), end="", flush=True)
        elif kind in ("tool_call", "tool_call_update"):
            title = update.get("title") or update.get("toolCallId")
            self.line(f"[tool] {title}: {update.get('status', 'pending')}")
        else:
            self.line(f"[{kind}]")


async def converse(arguments: argparse.Namespace) -> int:
    """One session with the agent; the exit code."""
    printer = Printer()
    policy = choose("reject_once" if arguments.reject else "allow_once")
    async with AcpClient.spawn(arguments.agent, policy=policy) as client:
        client.on_message = printer.show
        try:
            await client.initialize()
            session = await client.new_session(arguments.cwd)
            while text := arguments.prompt or await asyncio.to_thread(sys.stdin.readline):
                result = await client.prompt(session, text, timeout=LONG)
                printer.line(f"[done] {result.get('stopReason')}")
                if arguments.prompt:
                    break
        except (AcpClientError, ConnectionError) as error:
            printer.line(f"[error] {error}")
            return 1
        for violation in client.violations:
            printer.line(f"[violation] {violation}")
        return 1 if client.violations else 0


def main(argv: Sequence[str] | None = None) -> int:
    """Parse the arguments and talk."""
    parser = argparse.ArgumentParser(prog="python -m stubs.client", description=__doc__)
    parser.add_argument("--cwd", default=os.getcwd(), type=os.path.abspath)
    parser.add_argument("--prompt")
    parser.add_argument("--reject", action="store_true", help="reject what is asked for")
    parser.add_argument("agent", nargs="+")
    return asyncio.run(converse(parser.parse_args(argv)))


if __name__ == "__main__":
    sys.exit(main())
