"""From the text of a setting to its value, and what is wrong with it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from adapter.settings.table import BY_NAME, Kind, Setting
from contract.attach import HOME
from contract.errors import Plain
from contract.numbers import whole

MAX_USERS: Final = 64


class SettingError(Plain, Exception):
    """A setting has no meaning, or is not known. `str()` is one sentence that names its origin."""


@dataclass(frozen=True, slots=True)
class Value:
    """A text and where it comes from: `--server`, a variable, a file, or nothing: the default."""

    text: str
    origin: str = ""


def seconds(value: Value) -> float:
    """Above 0. Raises SettingError."""
    try:
        number = float(value.text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise SettingError(f"{value.origin} takes a number of seconds above 0.")
    return number


def word(setting: Setting, value: Value) -> str:
    """One of the setting's words. Raises SettingError."""
    if value.text in setting.words:
        return value.text
    words = sorted(setting.words) if setting.name == "log_level" else setting.words
    raise SettingError(f"{value.origin} takes {', '.join(words[:-1])} or {words[-1]}.")


def users(value: Value) -> frozenset[int]:
    """Numbers of users. Raises SettingError."""
    words = value.text.replace(",", " ").split()
    numbers = [number for each in words if (number := whole(each)) is not None]
    if not words or len(words) > MAX_USERS or len(numbers) < len(words):
        raise SettingError(f"{value.origin} takes numbers of users, with commas between them.")
    return frozenset(numbers)


def check(name: str, value: Value) -> None:
    """SettingError for a name that is not known, and for a text that its kind has no room for.

    URLs and paths are judged where they are used.
    """
    setting = BY_NAME.get(name)
    if setting is None:
        raise SettingError(f"There is no setting of the name {name[:100]!r} ({value.origin}).")
    match setting.kind:
        case Kind.SECONDS:
            seconds(value)
        case Kind.WORD:
            word(setting, value)
        case Kind.USERS:
            users(value)
        case Kind.PATH if not value.text:
            raise SettingError(f"{value.origin} takes a path.")
        case Kind.PATH if value.text.startswith(HOME):
            raise SettingError(f"{value.origin} begins at the home, and HOME names none.")
        case _ if "\0" in value.text:
            raise SettingError(f"{value.origin} must not hold a NUL.")
