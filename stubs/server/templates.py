"""The text that a command's template makes of its arguments."""

from __future__ import annotations

import re
import shlex
from typing import Final

from stubs.server import shell

_NUMBERED: Final = re.compile(r"\$(\d+)")
_SHELL: Final = re.compile(r"!`([^`]*)`")


async def expand(template: str, text: str, directory: str) -> str:
    """`$ARGUMENTS` is the text as it is, the last `$n` takes all that is left, and a template
    without either gets the text behind it; commands in it are run."""
    filled = template.replace("$ARGUMENTS", text)
    numbers = [int(number) for number in _NUMBERED.findall(template)]
    if numbers:
        words = _words(text)
        last = max(numbers)

        def word(found: re.Match[str]) -> str:
            at = int(found.group(1)) - 1
            rest = words[at:] if at + 1 == last else words[at : at + 1]
            return " ".join(rest)

        filled = _NUMBERED.sub(word, filled)
    elif "$ARGUMENTS" not in template and text:
        filled = f"{filled}\n\n{text}"
    parts: list[str] = []
    end = 0
    for found in _SHELL.finditer(filled):
        output, _ = await shell.run(found.group(1), directory)
        parts += [filled[end : found.start()], output]
        end = found.end()
    return "".join([*parts, filled[end:]])


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
