"""The operator's configuration file: TOML, read once at the start.

Flags and the environment win over it, and it wins over the defaults. Only a start that names a
file pays for the parser.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Final

from adapter.limits import DEFAULTS, LimitError, Limits, lowered
from adapter.settings.nearness import SHOWN, hint
from adapter.settings.table import BY_NAME, SETTINGS, Kind, Place, Setting
from adapter.upstream.userfiles import user_file
from contract.attach import HOME
from contract.errors import Plain

MAX_BYTES: Final = 64 * 1024
OWN_FILE: Final = "opencode-acp/config.toml"
LIMITS_TABLE: Final = "limits"
NUMBER: Final = re.compile(r"\s*\d+(\.\d+)?\s*")
TAKES: Final[Mapping[Kind, str]] = {
    Kind.URL: "an address in quotes",
    Kind.PATH: "a path in quotes",
    Kind.SECONDS: "a number of seconds",
    Kind.WORD: "a word in quotes",
    Kind.USERS: "a list of numbers of users",
}


class ConfigFileError(Plain, Exception):
    """The file cannot be used. `str()` is one sentence that names it, the first of `faults`."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__(faults[0])
        self.faults = tuple(faults)


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
    return user_file(environ, "XDG_CONFIG_HOME", ".config", OWN_FILE)


def read_config(path: str | None) -> FileSettings:
    """The settings of the file at `path`; those of an empty one without a path.

    Raises ConfigFileError for a file that cannot be read, that another than this user and root may
    write, that is no TOML, or that holds a table, a key or a value that has no meaning.
    """
    file, faults = examine(path)
    if faults:
        raise ConfigFileError(faults)
    return file


def examine(path: str | None) -> tuple[FileSettings, list[str]]:
    """What can be used of the file, and a sentence on each thing that cannot."""
    if not path:
        return FileSettings(), []
    reasons: list[str] = []
    file = FileSettings(path=path)
    try:
        file = _settings(_tables(_read(path)), path, reasons)
    except OSError as error:
        reasons.append(error.strerror or "it cannot be read")
    except (ValueError, RecursionError) as error:
        reasons.append(str(error) if isinstance(error, ValueError) else "it is nested too deeply")
    head = f"The configuration file {path} cannot be used"
    return file, [f"{head}: {reason.rstrip('.')}." for reason in reasons]


def _read(path: str) -> str:
    # O_NONBLOCK: opening a FIFO would wait for a writer.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        _check_file(os.fstat(handle))
        data = os.read(handle, MAX_BYTES + 1)
    finally:
        os.close(handle)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8 text") from None


def _check_file(seen: os.stat_result) -> None:
    """ValueError for a file that another than this user and root may write.

    It says where the password is, and which server is sent it.
    """
    if not stat.S_ISREG(seen.st_mode):
        raise ValueError("it is not a regular file")
    if seen.st_uid not in (os.geteuid(), 0):
        raise ValueError("it belongs to another user, who could have the password sent elsewhere")
    if seen.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError("others may write it, and have the password sent elsewhere: chmod go-w it")


def _tables(text: str) -> Mapping[str, object]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"it is not TOML, {' '.join(str(error).split())}") from None
    except ValueError:
        # What Python says of it is advice to programmers.
        raise ValueError("it holds a number of too many digits") from None


def _settings(tables: Mapping[str, object], path: str, reasons: list[str]) -> FileSettings:
    """What has a meaning; why anything else has none goes to `reasons`."""
    limits = DEFAULTS
    values: dict[str, str] = {}
    for name, value in tables.items():
        try:
            if name == LIMITS_TABLE:
                limits = _lowered(value, reasons)
            else:
                values[name] = _text(_setting(name), value, os.path.dirname(path))
        except ValueError as error:
            reasons.append(str(error))
    return FileSettings(limits, values, path)


def _lowered(table: object, reasons: list[str]) -> Limits:
    if not isinstance(table, dict):
        raise ValueError(f"{LIMITS_TABLE!r} is a table of limits")
    limits = DEFAULTS
    highest = [one.name for one in fields(DEFAULTS)]
    for name, value in table.items():
        try:
            limits = lowered({name: value}, limits)
        except LimitError as error:
            names = () if name in highest else highest
            quotes = "" if names else _quotes(value)
            reasons.append(str(error).removesuffix(".") + hint(name, names) + quotes)
    return limits


def _setting(name: str) -> Setting:
    setting = BY_NAME.get(name)
    if setting is None:
        known = (LIMITS_TABLE, *(one.name for one in SETTINGS if one.place is not Place.COMMAND))
        raise ValueError(f"there is no setting of the name {name[:SHOWN]!r}{hint(name, known)}")
    if setting.place is Place.COMMAND:
        raise ValueError(f"{name!r} is a flag or a variable, and cannot stand in a file")
    return setting


def _text(setting: Setting, value: object, folder: str) -> str:
    """A value as the environment would have it; what it means is judged with all others.

    A path begins at the home, or at the file that holds it, wherever the process that reads it
    stands.
    """
    match setting.kind, value:
        case Kind.WORD, bool() if "yes" in setting.words:
            return "yes" if value else "no"
        case Kind.PATH, str() if value:
            return value if value.startswith(HOME) else os.path.join(folder, value)
        case ((Kind.WORD | Kind.URL), str()):
            return value
        case Kind.SECONDS, int() | float() if type(value) is not bool:
            return str(value)
        case Kind.USERS, list() if value and all(type(one) is int for one in value):
            return ",".join(map(str, value))
    quotes = _quotes(value) if setting.kind in (Kind.SECONDS, Kind.USERS) else ""
    raise ValueError(f"{setting.name!r} takes {TAKES[setting.kind]}{quotes}")


def _quotes(value: object) -> str:
    """What a sentence says to a number, or a list of them, that stands in quotes; else nothing."""
    ones = value if isinstance(value, list) else [value]
    numbers = any(isinstance(one, str) and NUMBER.fullmatch(one) for one in ones)
    return "; a number stands without quotes" if numbers else ""
