"""The `cwd` of a request: absolute, normal, and a directory of this machine."""

from __future__ import annotations

import os
import posixpath

from contract import acp
from contract.errors import AcpError, Code, invalid_params
from contract.reads import Session


def directory_of(params: acp.NewSession) -> str:
    """The cwd of a session that is opened. AcpError -32602 for anything that is no directory."""
    if params.additional:
        raise invalid_params("additionalDirectories are not supported by the OpenCode server.")
    directory = absolute(params.cwd)
    if not os.path.isdir(directory):
        raise invalid_params(f"cwd is no directory: {directory}.")
    return directory


def absolute(cwd: str) -> str:
    """The path in its normal form. AcpError -32602 if it is not absolute."""
    if "\0" in cwd or not posixpath.isabs(cwd):
        raise invalid_params("cwd must be an absolute path.")
    return posixpath.normpath(cwd)


def home_of(session: Session, directory: str) -> str:
    """The directory that the session lives in: `directory` if the server does not say."""
    return session.location.directory if session.location else directory


def check_home(session: Session, directory: str) -> str:
    """The directory that the session lives in. AcpError -32052 if it is another one."""
    home = home_of(session, directory)
    if not same(home, directory):
        raise AcpError(
            Code.OTHER_DIRECTORY,
            f"This session belongs to {home}, not to {directory}; open it there.",
            {"directory": home},
        )
    return home


def same(one: str, other: str) -> bool:
    """Whether two paths name one directory, links followed."""
    return posixpath.normpath(one) == posixpath.normpath(other) or (
        os.path.realpath(one) == os.path.realpath(other)
    )
