"""Which step of which script answers a chat-completions request. Pure.

The scripted model keeps no state of a turn: the request's messages hold it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from stubs.script import NO_SCRIPT, Step, Stream, find_script, find_summary_script, has_script

TITLE: Final = "A scripted title"
# The form that OpenCode 2.0.15 demands of a compaction.
SUMMARY: Final = (
    "## Objective\n- x\n\n## Requirements\n- (none)\n\n## Decisions\n- (none)\n\n"
    "## Work State\n### Completed\n- (none)\n\n### Active\n- (none)\n\n### Blocked\n- (none)\n\n"
    "## Next Move\n1. (none)\n\n## Relevant Files\n(none)\n\n## Important Context\n- (none)\n"
)
# How OpenCode 2.0.15 begins the user messages that it writes itself.
ASKS_TO_MEND: Final = "The previous response did not fill in the required summary template"
ASKS_FOR_SUMMARY: Final = (
    "You MUST summarize the conversation above",
    "Update the existing checkpoint in the conversation above",
    ASKS_TO_MEND,
)
ASKS_TO_GO_ON: Final = "The previous response was interrupted."


@dataclass(frozen=True, slots=True)
class Choice:
    """The step to answer with, its index in the script, and a key that a retry of it shares."""

    step: Step
    index: int = 0
    key: str = ""


def choose(session: str, messages: Sequence[Mapping[str, Any]], has_tools: bool) -> Choice:
    """The step that answers `messages`; `session` is OpenCode's session id, or "".

    The script is that of the last user message that holds one, and the step's index is the number
    of answers since then. A retry after partial text asks for the same step again. Without a
    script, or with a later prompt of a new turn that has none, the answer is NO_SCRIPT. A request
    for a title or a summary uses up no step. Raises ScriptError.
    """
    if not has_tools:
        return Choice(_says(TITLE))
    last = text_of(messages[-1]) if messages else ""
    if last.startswith(ASKS_FOR_SUMMARY):
        return _summary(session, messages)
    holder = _script_holder(messages)
    if holder is None:
        return Choice(NO_SCRIPT.step(0))
    script = find_script(text_of(messages[holder]))
    assert script is not None
    # A last message of the assistant is no answer: OpenCode words the step cap so.
    index = sum(
        messages[at].get("role") == "assistant" and not _is_retried(messages, at)
        for at in range(holder + 1, len(messages) - 1)
    )
    scripts_before = sum(_is_scripted(message) for message in messages[:holder])
    source = hashlib.sha256(script.source.encode("utf-8", "surrogatepass")).hexdigest()
    return Choice(script.step(index), index, f"{session}/{scripts_before}/{source}/{index}")


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a chat message, whether its content is a string or a list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))


def _summary(session: str, messages: Sequence[Mapping[str, Any]]) -> Choice:
    """How the newest script of a summary answers; the text that is asked for without one."""
    scripts = (find_summary_script(text_of(one)) for one in reversed(messages[:-1]))
    script = next((script for script in scripts if script is not None), None)
    if script is None:
        return Choice(_says(SUMMARY))
    index = int(text_of(messages[-1]).startswith(ASKS_TO_MEND))
    step = script.step(index)
    if not any(isinstance(action, Stream) for action in step.actions):
        step = Step((*step.actions, Stream("text", (SUMMARY,))))
    return Choice(step, index, f"{session}/summary/{script.source}/{index}")


def _says(text: str) -> Step:
    return Step((Stream("text", (text,)),))


def _is_scripted(message: Mapping[str, Any]) -> bool:
    return message.get("role") == "user" and has_script(text_of(message))


def _is_retried(messages: Sequence[Mapping[str, Any]], at: int) -> bool:
    after = messages[at + 1] if at + 1 < len(messages) else {}
    return after.get("role") == "user" and text_of(after).startswith(ASKS_TO_GO_ON)


def _script_holder(messages: Sequence[Mapping[str, Any]]) -> int | None:
    """The index of the user message whose script is running, or None."""
    for at in range(len(messages) - 1, -1, -1):
        message = messages[at]
        if _is_scripted(message):
            return at
        # A user message right after a final answer begins a turn, and this one has no script.
        before = messages[at - 1] if at else {}
        if (
            message.get("role") == "user"
            and before.get("role") == "assistant"
            and not before.get("tool_calls")
            and not text_of(message).startswith(ASKS_TO_GO_ON)
        ):
            return None
    return None
