"""The script language: what the scripted model and the stub server do in a turn.

A prompt's text may hold one script between ``@@`` and ``@@``. Steps are separated by `` || ``; a
step is one model response, made of actions separated by `` && ``. Separators inside a JSON string
are text. Numbers are counts, milliseconds or HTTP statuses.

    text N [MS]             N words "w0 w1 ", each followed by a space, MS between words
    say "JSON string" [MS]  that text in pieces of PIECE_CHARS characters, MS between pieces
    think N [MS]            N reasoning words "think0 think1 "
    tool NAME {json}        a tool call; several in a step are parallel calls
    wait MS                 silence
    length | filter         the finish is "length" or "content_filter"
    error STATUS [TIMES]    the first TIMES requests of this step answer that status; or `always`
    drop [TIMES]            the connection breaks after what was streamed, the first TIMES requests
    usage N                 the response says that its request took N tokens

A second script, between ``%%`` and ``%%``, says how the conversation is summed up: its first step
answers the request for a summary, its second the request to mend it. A step without any text is
followed by the summary that OpenCode wants, so that ``%%wait 500%%`` is a slow one, ``%%text 2%%``
one that fails and ``%%error 400%%`` a fault of the provider.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal

MARK: Final = "@@"
PIECE_CHARS: Final = 8
MAX_COUNT: Final = 1_000_000
NO_SCRIPT_TEXT: Final = "ok "
PAST_END_TEXT: Final = "done "

Finish = Literal["stop", "length", "content_filter", "tool_calls"]


class ScriptError(ValueError):
    """The text between the marks is not a script; the message names the faulty action."""


@dataclass(frozen=True, slots=True)
class Stream:
    """`pieces` of text or reasoning, `pause_ms` between two of them."""

    kind: Literal["text", "reasoning"]
    pieces: tuple[str, ...]
    pause_ms: int = 0

    @property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool call; `arguments` is the JSON text of the object as written in the script."""

    name: str
    arguments: str

    @property
    def input(self) -> dict[str, object]:
        """The arguments as an object."""
        value: dict[str, object] = json.loads(self.arguments)
        return value


@dataclass(frozen=True, slots=True)
class Wait:
    """Silence for `ms`."""

    ms: int


@dataclass(frozen=True, slots=True)
class End:
    """How the response finishes instead of "stop"."""

    finish: Literal["length", "content_filter"]


@dataclass(frozen=True, slots=True)
class Error:
    """The first `times` requests of the step answer `status`; None means every request."""

    status: int
    times: int | None = 1


@dataclass(frozen=True, slots=True)
class Drop:
    """The first `times` requests of the step lose their connection here; None means every one."""

    times: int | None = 1


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens that the request is said to have taken."""

    tokens: int


Action = Stream | Tool | Wait | End | Error | Drop | Usage


@dataclass(frozen=True, slots=True)
class Step:
    """One model response."""

    actions: tuple[Action, ...]

    @property
    def error(self) -> Error | None:
        """The status that this step answers at first, wherever in the step it is written."""
        return next((action for action in self.actions if isinstance(action, Error)), None)

    @property
    def usage(self) -> int | None:
        """The tokens of its request, if the step says how many."""
        return next((action.tokens for action in self.actions if isinstance(action, Usage)), None)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tool calls, in order."""
        return tuple(action for action in self.actions if isinstance(action, Tool))

    @property
    def finish(self) -> Finish:
        """The OpenAI finish_reason of the response."""
        for action in self.actions:
            if isinstance(action, End):
                return action.finish
        return "tool_calls" if self.tools else "stop"

    @property
    def text(self) -> str:
        """All text that the step streams, reasoning apart."""
        return self._join("text")

    @property
    def reasoning(self) -> str:
        """All reasoning that the step streams."""
        return self._join("reasoning")

    def _join(self, kind: str) -> str:
        return "".join(a.text for a in self.actions if isinstance(a, Stream) and a.kind == kind)


@dataclass(frozen=True, slots=True)
class Script:
    """The steps of a turn; `source` is the text between the marks."""

    steps: tuple[Step, ...]
    source: str = ""

    def step(self, index: int) -> Step:
        """The step that answers the model request `index` (from 0) of the turn."""
        return self.steps[index] if index < len(self.steps) else PAST_END


PAST_END: Final = Step((Stream("text", (PAST_END_TEXT,)),))
NO_SCRIPT: Final = Script((Step((Stream("text", (NO_SCRIPT_TEXT,)),)),))

_SPAN: Final = re.compile(r"@@(.*?)@@", re.DOTALL)
_SUMMARY_SPAN: Final = re.compile(r"%%(.*?)%%", re.DOTALL)
# A JSON string is one token, so that a separator inside it separates nothing.
_TOKENS: Final = re.compile(r'"(?:[^"\\]|\\.)*"|\|\||&&|[^"|&]+|.', re.DOTALL)


def has_script(text: str) -> bool:
    """Whether the text holds something between two marks."""
    return _SPAN.search(text) is not None


def find_script(text: str) -> Script | None:
    """The script in a prompt's text, or None. Raises ScriptError when it cannot be read."""
    found = _SPAN.search(text)
    return None if found is None else parse(found.group(1))


def find_summary_script(text: str) -> Script | None:
    """The script of a summary in a prompt's text, or None. Raises ScriptError."""
    found = _SUMMARY_SPAN.search(text)
    return None if found is None else parse(found.group(1))


def parse(source: str) -> Script:
    """Read the text between the marks. Raises ScriptError."""
    steps: list[Step] = []
    for raw_step in _split(source, "||"):
        steps.append(Step(tuple(_action(raw.strip()) for raw in _split(raw_step, "&&"))))
    return Script(tuple(steps), source)


def _split(source: str, separator: str) -> list[str]:
    parts = [""]
    for token in _TOKENS.findall(source):
        if token == separator:
            parts.append("")
        else:
            parts[-1] += token
    return parts


def _action(raw: str) -> Action:
    name, _, rest = raw.partition(" ")
    reader = _READERS.get(name)
    if reader is None:
        raise ScriptError(f"no such action: {raw!r}")
    return reader(raw, rest.strip())


def _number(raw: str, word: str) -> int:
    if not word.isascii() or not word.isdigit() or int(word) > MAX_COUNT:
        raise ScriptError(f"a number up to {MAX_COUNT} is expected, not {word!r}: {raw!r}")
    return int(word)


def _words(raw: str, rest: str, least: int, most: int) -> list[str]:
    words = rest.split()
    if not least <= len(words) <= most:
        raise ScriptError(f"wrong number of arguments: {raw!r}")
    return words


def _stream_of(kind: Literal["text", "reasoning"], stem: str) -> Callable[[str, str], Stream]:
    def read(raw: str, rest: str) -> Stream:
        numbers = [_number(raw, word) for word in _words(raw, rest, 1, 2)]
        pieces = tuple(f"{stem}{n} " for n in range(numbers[0]))
        return Stream(kind, pieces, numbers[1] if len(numbers) > 1 else 0)

    return read


def _say(raw: str, rest: str) -> Stream:
    try:
        text, end = json.JSONDecoder().raw_decode(rest)
    except ValueError as error:
        raise ScriptError(f"a JSON string is expected: {raw!r}") from error
    if not isinstance(text, str):
        raise ScriptError(f"a JSON string is expected: {raw!r}")
    pause = [_number(raw, word) for word in _words(raw, rest[end:], 0, 1)]
    pieces = tuple(text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS))
    return Stream("text", pieces, pause[0] if pause else 0)


def _tool(raw: str, rest: str) -> Tool:
    name, _, arguments = rest.partition(" ")
    arguments = arguments.strip()
    try:
        value = json.loads(arguments)
    except ValueError as error:
        raise ScriptError(f"a JSON object is expected: {raw!r}") from error
    if not name or not isinstance(value, dict):
        raise ScriptError(f"a tool name and a JSON object are expected: {raw!r}")
    return Tool(name, arguments)


def _wait(raw: str, rest: str) -> Wait:
    return Wait(_number(raw, _words(raw, rest, 1, 1)[0]))


def _end(finish: Literal["length", "content_filter"]) -> Callable[[str, str], End]:
    def read(raw: str, rest: str) -> End:
        _words(raw, rest, 0, 0)
        return End(finish)

    return read


def _times(raw: str, word: str) -> int | None:
    return None if word == "always" else _number(raw, word)


def _error(raw: str, rest: str) -> Error:
    words = _words(raw, rest, 1, 2)
    status = _number(raw, words[0])
    if not 400 <= status <= 599:
        raise ScriptError(f"a status from 400 to 599 is expected: {raw!r}")
    return Error(status, _times(raw, words[1]) if len(words) > 1 else 1)


def _drop(raw: str, rest: str) -> Drop:
    words = _words(raw, rest, 0, 1)
    return Drop(_times(raw, words[0]) if words else 1)


def _usage(raw: str, rest: str) -> Usage:
    return Usage(_number(raw, _words(raw, rest, 1, 1)[0]))


_READERS: Final[Mapping[str, Callable[[str, str], Action]]] = {
    "text": _stream_of("text", "w"),
    "think": _stream_of("reasoning", "think"),
    "say": _say,
    "tool": _tool,
    "wait": _wait,
    "length": _end("length"),
    "filter": _end("content_filter"),
    "error": _error,
    "drop": _drop,
    "usage": _usage,
}
