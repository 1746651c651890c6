"""The tools that a scripted model can call, with the results of the real ones."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from stubs.server import patching, shell, workspace
from stubs.server.background import Background, MovedError
from stubs.server.forms import FormCancelledError, Forms
from stubs.server.journal import Journal
from stubs.server.mcp import McpError, McpHost, Server
from stubs.server.permissions import Permissions, RefusedError, Wanted, is_removed
from stubs.server.store import Session
from stubs.server.wire import Ids, Json, dumps, now_ms
from stubs.server.workspace import Workspaces

NOTIFIED: Final = (
    "You will be notified automatically when the command finishes. The notification will include "
    "the command's output. If you have nothing else to do, end your response; you will be resumed "
    "automatically when the command finishes."
)


class ToolError(Exception):
    """The tool fails and the turn goes on; `kind` is the error's type on the wire."""

    def __init__(self, message: str, kind: str = "tool.execution") -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind


@dataclass(frozen=True, slots=True)
class Result:
    """What a tool gives back: text parts, then other parts as they are, and metadata."""

    texts: tuple[str, ...]
    metadata: Json
    parts: tuple[Json, ...] = ()

    @property
    def content(self) -> list[Json]:
        """The parts as the events carry them."""
        return [*({"type": "text", "text": text} for text in self.texts), *self.parts]


@dataclass(frozen=True, slots=True)
class Shop:
    """What all tools share."""

    ids: Ids
    journal: Journal
    permissions: Permissions
    forms: Forms
    workspaces: Workspaces
    subagent: Callable[[Call], Awaitable[Result]]
    mcp: McpHost
    background: Background


@dataclass(frozen=True, slots=True)
class Call:
    """One call: where it came from and how it reports progress (metadata).

    `model` is the id of the model that calls.
    """

    session: Session
    message_id: str
    model: str
    id: str
    name: str
    input: Json
    rules: Sequence[Json]
    progress: Callable[[Json], None]

    @property
    def source(self) -> Json:
        """As a permission names it."""
        return {"type": "tool", "messageID": self.message_id, "id": self.id}

    @property
    def directory(self) -> str:
        """Where the tool works."""
        return self.session.directory

    def wants(
        self, action: str, resources: list[str], save: list[str], metadata: Json | None = None
    ) -> Wanted:
        """What the call asks a permission for."""
        return Wanted(self.session, action, resources, save, self.source, metadata)

    def text(self, key: str) -> str:
        """A string of the input that must be there."""
        return str(self.input[key])


Tool = Callable[[Shop, Call], Awaitable[Result]]


async def run(shop: Shop, call: Call) -> Result:
    """Run a call. Raises ToolError, or DeclinedError when the turn must end with it."""
    foreign = shop.mcp.find(call.directory, call.name)
    if foreign is not None and not is_removed(call.rules, call.name):
        return await _foreign(shop, call, *foreign)
    entry = TOOLS.get(call.name)
    if entry is None or is_removed(call.rules, entry.action):
        raise ToolError(
            f'No tool named "{call.name}" is currently available. '
            "Please use a tool from the available tool list."
        )
    if patching.is_withheld(call.name, call.model):
        raise ToolError(f"Tool is not available for this request: {call.name}")
    missing = [key for key in entry.required if key not in call.input]
    if missing:
        lines = "\n".join(f"- {key}: Missing key" for key in missing)
        raise ToolError(
            f'Invalid arguments for tool "{call.name}":\n{lines}\n\nArguments provided:\n{{}}\n\n'
            "Update the arguments and call the tool again."
        )
    return await entry.tool(shop, call)


async def _foreign(shop: Shop, call: Call, server: Server, tool: str) -> Result:
    """A tool of an MCP server."""
    try:
        await shop.permissions.check(call.wants(call.name, ["*"], ["*"], {}), call.rules)
        elicit = partial(shop.forms.elicit, server.name, call.directory)
        parts = await shop.mcp.call(server, tool, call.input, elicit)
    except (RefusedError, McpError) as error:
        raise ToolError(str(error) or f"Unable to run {call.name}") from error
    return Result((), {"truncated": False}, tuple(parts))


async def _shell(shop: Shop, call: Call) -> Result:
    command = call.text("command")
    parts = shell.commands(command)
    save = [shell.pattern(part) for part in parts]
    try:
        await shop.permissions.check(call.wants("shell", parts, save), call.rules)
    except RefusedError as error:
        raise ToolError(f"Unable to execute command: {command}") from error
    shell_id = shop.ids.make("sh")
    info: Json = {
        "id": shell_id,
        "status": "running",
        "command": command,
        "cwd": call.directory,
        "shell": "/bin/bash",
        "file": f"/stub/shell/{call.session.project_id}/{shell_id}.out",
        "metadata": {"sessionID": call.session.id},
        "time": {"started": now_ms()},
    }
    shop.journal.plain("shell.created", {"info": info}, call.directory)
    call.progress({"shellID": shell_id})
    try:
        work = shell.run(command, call.directory)
        output, code = await shop.background.wait(call.session, f"shell: {command}", work)
    except MovedError as moved:
        return _moved(shop, call, info, moved)
    except asyncio.CancelledError:
        end = {"id": shell_id, "status": "exited"}
        shop.journal.plain("shell.exited", end, call.directory)
        shop.journal.plain("shell.deleted", {"id": shell_id}, call.directory)
        raise
    exited = {"id": shell_id, "exit": code, "status": "exited"}
    shop.journal.plain("shell.exited", exited, call.directory)
    metadata = {"status": "completed", "truncated": False, "exit": code}
    texts = [output] if output else []
    if code:
        texts.append(f"Exited with code {code}")
    if not texts:
        silent = {"exit": 0, "truncated": False, "output": "", "status": "completed"}
        texts.append(dumps(silent).decode())
    return Result(tuple(texts), metadata)


def _moved(shop: Shop, call: Call, info: Json, moved: MovedError) -> Result:
    """The command goes on; the session is told when it is over."""
    shell_id, command = info["id"], info["command"]

    def over(result: tuple[str, int]) -> Json:
        output, code = result
        exited = {"id": shell_id, "exit": code, "status": "exited"}
        shop.journal.plain("shell.exited", exited, call.directory)
        head = f'<shell id="{shell_id}" state="completed" command="{command}">'
        return {
            "text": f"{head}\n{output}\n</shell>",
            "description": command,
            "metadata": {
                "source": "shell",
                "shellID": shell_id,
                "jobID": shell_id,
                "state": "completed",
                "truncated": False,
                "exit": code,
            },
        }

    shop.background.follow(call.session, moved.task, over)
    where = f"Command moved to the background (shell ID: {shell_id}).\n"
    texts = (f"{where}Output is streaming to: {info['file']}", NOTIFIED)
    return Result(texts, {"status": "running", "truncated": False, "shellID": shell_id})


async def _locate(shop: Shop, call: Call) -> str:
    """The path of the input, after the ask for a file outside the project."""
    path = workspace.relative(call.directory, call.text("path"))
    if os.path.isabs(path):
        pattern = [os.path.join(os.path.dirname(path), "*")]
        try:
            await shop.permissions.check(
                call.wants("external_directory", pattern, pattern), call.rules
            )
        except RefusedError as error:
            raise ToolError(f"Unable to {call.name} {path}") from error
    return path


async def _read(shop: Shop, call: Call) -> Result:
    path = await _locate(shop, call)
    try:
        await shop.permissions.check(call.wants("read", [path], ["*"]), call.rules)
    except RefusedError as error:
        raise ToolError(f"Unable to read {path}") from error
    text = workspace.read(call.directory, path)
    if text is None:
        raise ToolError(f"File not found: {path}")
    lines = text.splitlines()
    body = "\n".join(f"{number}: {line}" for number, line in enumerate(lines, 1))
    return Result((f"Read file {path}, lines 1-{len(lines)}\n{body}",), {"truncated": False})


async def _write(shop: Shop, call: Call) -> Result:
    path = await _locate(shop, call)
    before = workspace.read(call.directory, path)
    await _change(shop, call, path, before, call.text("content"))
    verb = "Created" if before is None else "Wrote"
    return Result((f"{verb} file successfully: {path}",), {"truncated": False})


async def _edit(shop: Shop, call: Call) -> Result:
    path = await _locate(shop, call)
    before = workspace.read(call.directory, path)
    if before is None:
        raise ToolError(f"File not found: {path}")
    old, new = call.text("oldString"), call.text("newString")
    count = before.count(old) if old else 0
    if count == 0:
        raise ToolError(
            f"Could not find oldString in {path}. "
            "It must match exactly, including whitespace and indentation."
        )
    times = count if call.input.get("replaceAll") else 1
    change = await _change(shop, call, path, before, before.replace(old, new, times))
    plural = "replacement" if times == 1 else "replacements"
    metadata = {"files": [change], "truncated": False}
    return Result((f"Edited {path} ({times} {plural})",), metadata)


async def _change(shop: Shop, call: Call, path: str, before: str | None, after: str) -> Json:
    change = workspace.change(path, before, after)
    try:
        await shop.permissions.check(
            call.wants("edit", [path], ["*"], {"files": [change]}), call.rules
        )
        shop.workspaces.write(call.directory, path, after)
    except (RefusedError, OSError) as error:
        raise ToolError(f"Unable to {call.name} {path}") from error
    return change


async def _patch(shop: Shop, call: Call) -> Result:
    try:
        patch = patching.read(call.directory, call.text("patchText"))
    except patching.PatchError as error:
        raise ToolError(f"patch verification failed: {error}") from error
    paths = list(patch.files)
    try:
        await shop.permissions.check(call.wants("edit", paths, ["*"], patch.metadata), call.rules)
        for path, content in patch.files.items():
            shop.workspaces.write(call.directory, path, content)
    except (RefusedError, OSError) as error:
        raise ToolError(f"Unable to patch {', '.join(paths)}") from error
    lines = "".join(f"\nA {path}" for path in paths)
    metadata = {"files": patch.changes, "truncated": False}
    return Result((f"Success. Updated the following files:{lines}",), metadata)


async def _glob(_: Shop, call: Call) -> Result:
    found = workspace.find(call.directory, call.text("pattern"))
    return Result(("\n".join(found) or "No files found",), {"truncated": False})


async def _grep(_: Shop, call: Call) -> Result:
    found: list[str] = []
    for path in workspace.find(call.directory, "*"):
        text = workspace.read(call.directory, path) or ""
        for number, line in enumerate(text.splitlines(), 1):
            if call.text("pattern") in line:
                found.append(f"{path}:{number}: {line}")
    return Result(("\n".join(found) or "No matches found",), {"truncated": False})


async def _question(shop: Shop, call: Call) -> Result:
    questions: list[Json] = list(call.input["questions"])
    tool = {"messageID": call.message_id, "id": call.id}
    answers = await shop.forms.ask(call.session, questions, tool)
    said = ", ".join(
        f'"{question.get("question", "")}"="{", ".join(answer) or "Unanswered"}"'
        for question, answer in zip(questions, answers, strict=True)
    )
    text = (
        f"User has answered your questions: {said}. "
        "You can now continue with the user's answers in mind."
    )
    return Result((text,), {"answers": answers, "truncated": False})


async def _websearch(shop: Shop, call: Call) -> Result:
    """Nobody chose a provider, and this stub has none to search with."""
    field = {
        "key": "choice",
        "description": "Allow OpenCode to search the web for up-to-date information?",
        "type": "string",
        "required": True,
        "custom": False,
        "options": [
            {"value": "allow", "label": "Allow search via Exa"},
            {"value": "disable", "label": "Disable web search"},
        ],
    }
    metadata = {"kind": "websearch.provider"}
    try:
        await shop.forms.wait(call.session, "Web Search", [field], metadata)
    except FormCancelledError as error:
        raise ToolError("Web search cancelled", "unknown") from error
    raise ToolError(f"Unable to search the web for {call.text('query')}")


async def _subagent(shop: Shop, call: Call) -> Result:
    return await shop.subagent(call)


@dataclass(frozen=True, slots=True)
class Entry:
    """A tool, the permission action that can take it away, and the keys that it needs."""

    tool: Tool
    action: str
    required: tuple[str, ...] = ()


TOOLS: Final[dict[str, Entry]] = {
    "shell": Entry(_shell, "shell", ("command",)),
    "read": Entry(_read, "read", ("path",)),
    "write": Entry(_write, "edit", ("path", "content")),
    "edit": Entry(_edit, "edit", ("path", "oldString", "newString")),
    "patch": Entry(_patch, "edit", ("patchText",)),
    "glob": Entry(_glob, "glob", ("pattern",)),
    "grep": Entry(_grep, "grep", ("pattern",)),
    "question": Entry(_question, "question", ("questions",)),
    "websearch": Entry(_websearch, "websearch", ("query",)),
    "subagent": Entry(_subagent, "subagent", ("agent", "description", "prompt")),
}
