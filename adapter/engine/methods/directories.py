"""The `cwd` of a request: absolute, in its normal form, and a directory at the server.

Whether it is one is the server's to say. This process may see less of the disk (a sandbox, a
container, another machine): nothing here looks at it but to follow links, where it can.
"""

from __future__ import annotations

import os
import posixpath

from adapter.upstream.client import Server
from contract import acp
from contract.errors import AcpError, Code, invalid_params, say
from contract.reads import Session


def directory_of(params: acp.NewSession) -> str:
    """The cwd of a session that is opened. AcpError -32602 for anything that can be none."""
    if params.additional:
        raise invalid_params("additionalDirectories are not supported by the OpenCode server.")
    return absolute(params.cwd)


def absolute(cwd: str) -> str:
    """The path in its normal form. AcpError -32602 if it is not absolute."""
    if "\0" in cwd or not posixpath.isabs(cwd):
        raise invalid_params("cwd must be an absolute path.")
    return normal(cwd)


def normal(path: str) -> str:
    """An absolute path without `.`, `..`, and slashes that say nothing; links are not looked at.

    The server would take each other spelling for a directory of its own, with another boot.
    """
    path = posixpath.normpath(path)
    # `normpath` keeps two leading slashes: POSIX lets a system give them a meaning, Linux has none.
    return path[1:] if path.startswith("//") else path


async def check_new(server: Server, directory: str) -> None:
    """AcpError -32602 if the server has no such directory for a new session."""
    if not await server.has_directory(directory):
        raise invalid_params(_missing(directory))


async def check_kept(server: Server, home: str) -> None:
    """AcpError -32603 if the directory of a session is gone.

    Not -32602, for which acpx would throw the session away: the directory may come back.
    """
    if not await server.has_directory(home):
        raise AcpError(Code.INTERNAL, say(_missing(home)))


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
    """Whether two paths name one directory, links followed that can be seen from here."""
    return normal(one) == normal(other) or os.path.realpath(one) == os.path.realpath(other)


def _missing(directory: str) -> str:
    return f"The OpenCode server has no directory {directory}, or may not enter it."
