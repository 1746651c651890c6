"""Flags over environment over file over defaults: each setting's value, and where it is from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from adapter.settings.table import BY_NAME, SETTINGS, Kind, Setting
from adapter.settings.values import SettingError, Value, check, seconds, users, word
from contract.attach import at_home


class Gathered:
    """What was said of each setting. Every text that was given has a meaning."""

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = values

    def __iter__(self) -> Iterator[tuple[Setting, Value]]:
        """All settings in the order of the table; a text is empty where there is no default."""
        for setting in SETTINGS:
            default = setting.default or next(iter(setting.words), "")
            yield setting, self._values.get(setting.name, Value(default))

    def given(self, name: str) -> Value | None:
        """What was said; None if nothing was."""
        return self._values.get(name)

    def text(self, name: str) -> str | None:
        """The text that was given, or the default; None without one."""
        value = self._values.get(name)
        return value.text if value is not None else BY_NAME[name].default or None

    def word(self, name: str) -> str:
        setting, value = BY_NAME[name], self._values.get(name)
        return word(setting, value) if value is not None else setting.words[0]

    def seconds(self, name: str) -> float | None:
        value, default = self._values.get(name), BY_NAME[name].default
        if value is not None:
            return seconds(value)
        return float(default) if default else None

    def users(self, name: str) -> frozenset[int] | None:
        value = self._values.get(name)
        return users(value) if value is not None else None


def gather(
    flags: Mapping[str, str],
    environ: Mapping[str, str],
    file: Mapping[str, str],
    path: str = "",
) -> Gathered:
    """The settings by these; `file` are the texts of the file at `path`.

    An empty text counts as not given, but for the file. Raises SettingError for what has no
    meaning, wherever it stands, also where another source wins.
    """
    gathered, faults = sift(flags, environ, file, path)
    if faults:
        raise faults[0]
    return gathered


def sift(
    flags: Mapping[str, str],
    environ: Mapping[str, str],
    file: Mapping[str, str],
    path: str = "",
) -> tuple[Gathered, Sequence[SettingError]]:
    """What of these has a meaning, and what is wrong with each of the others."""
    values: dict[str, Value] = {}
    faults: list[SettingError] = []
    home = environ.get("HOME", "")
    for name, said in _said(flags, environ, file, path):
        value = said
        if name in BY_NAME and BY_NAME[name].kind is Kind.PATH:
            value = Value(at_home(said.text, home), said.origin)
        try:
            check(name, value)
        except SettingError as error:
            faults.append(error)
        else:
            values[name] = value
    return Gathered(values), faults


def _said(
    flags: Mapping[str, str], environ: Mapping[str, str], file: Mapping[str, str], path: str
) -> Iterator[tuple[str, Value]]:
    """What goes before comes later."""
    for name, text in file.items():
        yield name, Value(text, f"{name} in {path}")
    for setting in SETTINGS:
        if text := environ.get(setting.variable, ""):
            yield setting.name, Value(text, setting.variable)
    for name, text in flags.items():
        if text:
            yield name, Value(text, BY_NAME[name].flag if name in BY_NAME else f"--{name}")
