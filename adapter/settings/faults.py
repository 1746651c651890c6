"""All that is wrong with the settings, where a start tells the first of it alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from adapter.configfile import examine, find_config
from adapter.options import Options
from adapter.settings.gather import Gathered, sift
from adapter.settings.nearness import SHOWN, near
from adapter.settings.table import SETTINGS
from adapter.settings.values import SettingError
from adapter.start import address_of, ca_file_of, config_named, find_server
from adapter.upstream.address import UrlError
from adapter.upstream.credentials import CredentialError, find_credential
from contract.attach import PREFIX


def faults(options: Options, environ: Mapping[str, str]) -> list[str]:
    """A sentence on each; empty if a start can work. Reads files, and asks nobody."""
    said, told = usable(options, environ)
    of_server = [
        *_reason(partial(address_of, said)),
        *_reason(partial(ca_file_of, said)),
        *_reason(partial(find_credential, said.text("password_file"), environ)),
    ]
    # What OpenCode has registered counts only where nothing else is wrong.
    last = _reason(partial(find_server, said, environ))
    return [*told, *(of_server or last)]


def usable(options: Options, environ: Mapping[str, str]) -> tuple[Gathered, list[str]]:
    """What can be used of flags, environment and file, and a sentence on each thing that cannot.

    For a command that a fault of no interest to it must not keep from its work.
    """
    file, told = examine(find_config(config_named(options, environ), environ))
    said, wrong = sift(options.given, environ, file.values, file.path)
    return said, [*told, *map(str, wrong)]


def _reason(step: Callable[[], object]) -> list[str]:
    try:
        step()
    except (UrlError, CredentialError, SettingError) as error:
        return [str(error)]
    return []


def strangers(environ: Mapping[str, str]) -> list[str]:
    """A sentence on each variable that is named like a setting and is none.

    A start goes on: it may be one of another version. Values are not told: one may be a password.
    """
    known = {setting.variable for setting in SETTINGS}
    found = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    return [f"{name[:SHOWN]} is no setting{_meant(name)}, and left alone." for name in found]


def _meant(variable: str) -> str:
    # Without what all have in common, by which all would be alike.
    found = near(variable.removeprefix(PREFIX), (one.name.upper() for one in SETTINGS))
    return f" ({PREFIX}{found} is one)" if found else ""
