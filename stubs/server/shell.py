"""The simulated shell: echo, printf, sleep, cat, true, false, joined by `;` or `&&`."""

from __future__ import annotations

import asyncio
import re
import shlex
from typing import Final

from stubs.server import workspace

TWO_WORDS: Final = ("git", "npm", "docker", "cargo", "make")


def commands(command: str) -> list[str]:
    """The single commands of a line, as a permission asks for them."""
    return [part.strip() for part in re.split(r"&&|\|\||[;|\n]", command) if part.strip()]


def pattern(command: str) -> str:
    """The pattern under which "always" saves a command."""
    words = command.split()
    count = 2 if len(words) > 1 and words[0] in TWO_WORDS else 1
    return " ".join(words[:count]) + " *"


async def run(command: str, directory: str) -> tuple[str, int]:
    """The output and the exit code of a line."""
    output = ""
    code = 0
    joined = ";"
    for part in re.split(r"(&&|;)", command):
        if part in ("&&", ";"):
            joined = part
        elif part.strip() and not (joined == "&&" and code != 0):
            text, code = await _one(part.strip(), directory)
            output += text
    return output, code


async def _one(command: str, directory: str) -> tuple[str, int]:
    try:
        words = shlex.split(command)
    except ValueError:
        return f"bash: syntax error: {command}\n", 2
    match words:
        case ["echo", *rest]:
            return " ".join(rest) + "\n", 0
        case ["printf", *rest]:
            return " ".join(rest), 0
        case ["sleep", seconds] if re.fullmatch(r"\d+(\.\d+)?", seconds):
            await asyncio.sleep(float(seconds))
            return "", 0
        case ["cat", *paths]:
            return _cat(paths, directory)
        case ["true", *_]:
            return "", 0
        case ["false", *_]:
            return "", 1
        case _:
            return f"bash: line 1: {words[0]}: command not found\n", 127


def _cat(paths: list[str], directory: str) -> tuple[str, int]:
    output = ""
    code = 0
    for path in paths:
        text = workspace.read(directory, path)
        if text is None:
            output += f"cat: {path}: No such file or directory\n"
            code = 1
        else:
            output += text
    return output, code
