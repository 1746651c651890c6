"""The settings, the files that they are in, and the address that they name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from adapter.configfile import ConfigFileError
from adapter.daemon.exposure import others_write
from adapter.doctor.findings import Finding, failed, good, skipped, warning
from adapter.limits import DEFAULTS, Limits
from adapter.options import Options
from adapter.settings.faults import strangers
from adapter.settings.values import SettingError
from adapter.start import address_of, ca_file_of, find_server, read_said
from adapter.upstream.address import UrlError
from adapter.upstream.credentials import PASSWORD_VARIABLES, Credential, CredentialError
from contract.attach import USAGE

CONFIGURATION: Final = "configuration"
FILES: Final = "files"
URL: Final = "url"
UNREAD: Final = "The configuration has to be right first."


@dataclass(frozen=True, slots=True)
class Here:
    """What this command line and its environment say; `server` is None where it is not allowed."""

    findings: tuple[Finding, Finding, Finding]
    """Of the configuration, the files and the address."""
    limits: Limits = DEFAULTS
    server: str | None = None
    ca_file: str | None = None
    credential: Credential | None = None
    usable: bool = False
    """Whether a process of its own could start by this."""


def look(options: Options, environ: Mapping[str, str]) -> Here:
    """Reads the configuration and the password, and asks nobody."""
    try:
        file, said = read_said(options, environ)
    except (ConfigFileError, SettingError) as error:
        fix = "Correct it; opencode-acp --help has every setting, README the limits."
        findings = (
            failed(CONFIGURATION, USAGE, str(error), fix),
            skipped(FILES, UNREAD),
            skipped(URL, UNREAD),
        )
        return Here(findings)
    told = f"The settings come from {file.path}, " if file.path else "There is no file; "
    configuration = good(CONFIGURATION, f"{told}flags and environment go before the defaults.")
    if odd := strangers(environ):
        fix = "Correct the name, or take it out; what is for another version may stay."
        configuration = warning(CONFIGURATION, " ".join(odd), fix)
    try:
        server: str | None = address_of(said)
        url = _address(server or "")
    except UrlError as error:
        server, url = None, _no_address(error)
    try:
        ca_file = ca_file_of(said)
    except SettingError as error:
        fix = "Make it a regular file of certificates, each from BEGIN CERTIFICATE to its end."
        files = failed(FILES, USAGE, str(error), fix)
        return Here((configuration, files, url), file.limits, server)
    writable = (file.path, ca_file)
    try:
        found, credential = find_server(said, environ)
    except CredentialError as error:
        fix = "Make it a regular file of your own (chmod 600) that holds the password alone."
        files = failed(FILES, USAGE, str(error), fix)
        return Here((configuration, files, url), file.limits, server)
    except UrlError as error:
        # Of the address that was said, or of the one that OpenCode has registered.
        files = _modes(writable, None)
        return Here((configuration, files, _no_address(error)), file.limits)
    known = (configuration, _modes(writable, credential), _address(found))
    return Here(known, file.limits, found, ca_file, credential, usable=True)


def _address(server: str) -> Finding:
    return good(URL, f"The server is expected at {server}.")


def _no_address(error: UrlError) -> Finding:
    fix = (
        "Name it as in --server http://127.0.0.1:4096; one on another machine wants https and "
        "--allow-remote yes, and the password a file."
    )
    return failed(URL, USAGE, str(error), fix)


def _modes(files: tuple[str | None, ...], credential: Credential | None) -> Finding:
    """Where the password is from, and whether somebody else can write one of the files."""
    if path := next((one for one in files if one and _others_write(one)), None):
        return warning(
            FILES,
            f"Others may write the file {path}, and so have agents use a server of theirs.",
            f"chmod go-w {path}",
        )
    if credential is None:
        return good(FILES, "No password is set, and no file of one is named.")
    if credential.source in PASSWORD_VARIABLES:
        told = f"The password comes from {credential.source}, which every client needs, too."
        return good(FILES, told)
    return good(FILES, f"The password comes from {credential.source}.")


def _others_write(path: str) -> bool:
    try:
        return others_write(os.stat(path))
    except OSError:
        return False
