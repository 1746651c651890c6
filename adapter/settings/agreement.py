"""Whether what a client has set is what its daemon has: one daemon has one set of settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from adapter.settings.gather import Gathered
from adapter.settings.nearness import hint
from adapter.settings.table import BY_NAME, SETTINGS, Kind, Place, Setting
from adapter.settings.values import SettingError, Value, check, seconds
from adapter.start import Start
from adapter.upstream.address import UrlError, server_url

# Characters of a value that a sentence repeats.
SHOWN: Final = 200
OUT: Final = "Change one of them, or work without the daemon (--daemon never)."


class Agreement:
    """What a daemon has, of which each client may say again what it likes.

    Nothing is asked of a disk for a client: no path of theirs is followed, since it may lie on one
    that does not answer. Those of the daemon are, once, from where it began.
    """

    def __init__(self, start: Start, directory: str = "") -> None:
        self._start = start
        self._known = {
            setting.name: _spellings(setting, _known(start, setting), directory)
            for setting in SETTINGS
            if setting.place is not Place.PROCESS
        }

    def differing(
        self,
        given: Mapping[str, str],
        cwd: str = "",
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> str | None:
        """A sentence on the first of these settings that is not the daemon's; None if all are.

        `given` are texts by the names of the table, `cwd` is where the client's paths begin. What
        is one process's own affair is not compared. Of `variables`, those of the client's
        environment, one that is not known is for another version, as it is without a daemon.
        """
        known_ones = {name: text for name, text in variables.items() if name in BY_NAME}
        for name, text in {**known_ones, **given}.items():
            setting = BY_NAME.get(name)
            if setting is None:
                return (
                    f"The daemon knows no setting of the name {name[:100]!r}{hint(name, BY_NAME)}."
                )
            try:
                check(name, Value(text, setting.flag))
                if setting.place is Place.PROCESS:
                    continue
                wanted = _comparable(setting, text, cwd)
            except (SettingError, UrlError) as error:
                return str(error)
            if wanted not in self._known[name]:
                known = _known(self._start, setting)
                told = _shown(known) if known else "nothing set"
                asked = _shown(text)
                return f"The daemon has {told} for {name}, and this client asks for {asked}. {OUT}"
        return None


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def _known(start: Start, setting: Setting) -> str:
    """The daemon's own value as a text; empty without one."""
    match setting.name:
        case "server":
            return start.server
        case "config":
            return start.config or ""
    return _text(start.gathered, setting)


def _text(gathered: Gathered, setting: Setting) -> str:
    return gathered.text(setting.name) or next(iter(setting.words), "")


def _comparable(setting: Setting, text: str, cwd: str) -> object:
    match setting.kind:
        case _ if not text:
            return None
        case Kind.URL:
            return server_url(text, allow_remote=True)
        case Kind.PATH:
            return os.path.normpath(os.path.join(cwd, text))
        case Kind.SECONDS:
            return seconds(Value(text))
    return text


def _spellings(setting: Setting, text: str, directory: str) -> tuple[object, ...]:
    """What means the daemon's own value: of a path the one that was said, and the file's own."""
    value = _comparable(setting, text, directory)
    if setting.kind is Kind.PATH and isinstance(value, str):
        return value, os.path.realpath(value)
    return (value,)
