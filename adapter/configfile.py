"""The operator's configuration file: TOML, read once at the start.

Flags and the environment win over it, and it wins over the defaults. Only a start that names a
file pays for the parser.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from adapter.limits import DEFAULTS, LimitError, Limits, lowered
from contract.errors import Plain

MAX_BYTES: Final = 64 * 1024
LIMITS_TABLE: Final = "limits"


class ConfigFileError(Plain, Exception):
    """The file cannot be used. `str()` is one sentence that names it."""


@dataclass(frozen=True, slots=True)
class FileSettings:
    """What the file says: limits, and the other settings as texts by their names."""

    limits: Limits = DEFAULTS
    values: Mapping[str, str] = field(default_factory=dict)
    path: str = ""


def find_config(named: str | None, environ: Mapping[str, str]) -> str | None:
    """The file that was named, else the user's own one if there is one, else None."""
    if named:
        return named
    home = environ.get("HOME", "")
    folder = environ.get("XDG_CONFIG_HOME") or (f"{home}/.config" if home else "")
    own = f"{folder}/opencode-acp/config.toml"
    return own if folder and os.path.lexists(own) else None


def read_config(path: str | None) -> FileSettings:
    """The settings of the file at `path`; those of an empty one without a path.

    Raises ConfigFileError for a file that cannot be read, is no TOML, or holds a table, a key or a
    value that has no meaning.
    """
    if not path:
        return FileSettings()
    try:
        return _settings(_tables(_read(path)), path)
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    except (ValueError, RecursionError) as error:
        reason = str(error) if isinstance(error, ValueError) else "it is nested too deeply"
    raise ConfigFileError(f"The configuration file {path} cannot be used: {reason.rstrip('.')}.")


def _read(path: str) -> str:
    # O_NONBLOCK: opening a FIFO would wait for a writer.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise ValueError("it is not a regular file")
        data = os.read(handle, MAX_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None


def _tables(text: str) -> Mapping[str, object]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not TOML, {' '.join(str(error).split())}") from None


def _settings(tables: Mapping[str, object], path: str) -> FileSettings:
    limits: Mapping[str, object] = {}
    values: dict[str, str] = {}
    for name, value in tables.items():
        if name == LIMITS_TABLE and isinstance(value, dict):
            limits = value
        else:
            values[name] = _text(name, value)
    try:
        return FileSettings(lowered(limits), values, path)
    except LimitError as error:
        raise ValueError(str(error)) from None


def _text(name: str, value: object) -> str:
    """A value as the environment would have it; what it means is judged with all others."""
    match value:
        case bool():
            return "yes" if value else "no"
        case str() | int() | float():
            return str(value)
        case list() if all(type(one) is int for one in value):
            return ",".join(map(str, value))
    raise ValueError(f"{name[:100]!r} is no setting, or has a value of no kind that settings have")
