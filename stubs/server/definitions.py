"""Commands and skills that stand in files of the project: front matter, and a text below it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from stubs.server.wire import Json

COMMANDS: Final = (".opencode/command", ".opencode/commands")
SKILLS: Final = (".opencode/skill", ".opencode/skills", ".claude/skills", ".agents/skills")
_MATTER: Final = re.compile(r"---\n(.*?)\n---\n?(.*)", re.DOTALL)


def commands(directory: str) -> Iterator[tuple[str, Json]]:
    """Name and definition of each `NAME.md`."""
    for path in _files(directory, COMMANDS, "*.md"):
        about, body = _read(path)
        yield path.stem, {**about, "template": body.strip()}


def skills(directory: str) -> Iterator[Json]:
    """Each `NAME/SKILL.md` that says its name."""
    for path in _files(directory, SKILLS, "*/SKILL.md"):
        about, body = _read(path)
        name = about.get("name")
        if isinstance(name, str):
            told = {key: about[key] for key in ("description",) if key in about}
            yield {"id": name, "name": name, **told, "path": str(path), "content": body}


def skill_text(skill: Json) -> str:
    """What a skill adds to a prompt, before the model and in the row."""
    base = str(Path(skill["path"]).parent)
    return (
        f'<skill_content name="{skill["name"]}">\n# Skill: {skill["name"]}\n\n'
        f"{skill['content'].strip()}\n\nBase directory for this skill: {base}\n</skill_content>"
    )


def _files(directory: str, folders: Iterable[str], pattern: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(Path(directory, folder).glob(pattern))


def _read(path: Path) -> tuple[Json, str]:
    """Front matter of plain `key: value` lines, and the text after it."""
    text = path.read_text(encoding="utf-8")
    found = _MATTER.match(text)
    if found is None:
        return {}, text
    pairs = (line.partition(":") for line in found.group(1).splitlines())
    about: Json = {key.strip(): _value(value.strip()) for key, _, value in pairs if key.strip()}
    return about, found.group(2)


def _value(text: str) -> object:
    return {"true": True, "false": False}.get(text, text.strip("\"'"))
