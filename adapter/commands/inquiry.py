"""How a command asks the daemon that runs for its state: one GET on its admin socket."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import sys
from collections.abc import Callable
from typing import Final

from pydantic import ValidationError

from adapter.commands.screen import plain
from adapter.daemon.admin.shapes import Readiness, State
from adapter.daemon.exposure import impostor
from adapter.settings.arguments import add_settings, options
from adapter.settings.faults import usable
from adapter.start import sockets
from contract.attach import AUTH, OK, TEMPORARY, UCRED_BYTES, USAGE, user_of

STATE: Final = "/debug/state"
READINESS: Final = "/readyz"
SECONDS: Final = 5.0
ANSWER_BYTES: Final = 16 * 1024 * 1024


class NoDaemon(Exception):
    """Nobody answers this user at the admin socket: `code` is the exit code for that.

    `str()` is one sentence for the user.
    """

    def __init__(self, sentence: str, code: int = TEMPORARY) -> None:
        super().__init__(sentence)
        self.code = code


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which daemon is meant, and in which form its answer is shown."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    add_settings(parser, ("config", "socket", "admin_socket"))


def get(path: str, route: str) -> bytes:
    """The body of the answer, whatever it says. Raises NoDaemon."""
    connection = Unix(path)
    try:
        connection.request("GET", route)
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES)
    except (FileNotFoundError, ConnectionRefusedError) as error:
        raise NoDaemon(
            f"No daemon answers at {path}; start one by `opencode-acp serve`, or name the socket "
            "of the one that runs by --socket."
        ) from error
    except PermissionError as error:
        sentence = f"The socket {path} belongs to a daemon of another user."
        raise NoDaemon(sentence, AUTH) from error
    except (OSError, http.client.HTTPException) as error:
        why = plain(str(error).strip() or type(error).__name__)
        raise NoDaemon(f"The daemon at {path} does not answer as it should: {why}.") from error
    finally:
        connection.close()
    if answer.status == http.HTTPStatus.FORBIDDEN:
        raise NoDaemon(f"The daemon at {path} does not serve this user.", AUTH)
    return body


def readiness(path: str) -> Readiness | None:
    """Whether the daemon could serve a prompt now; None if it does not say."""
    try:
        return Readiness.model_validate_json(get(path, READINESS))
    except (NoDaemon, ValidationError):
        return None


def show(given: argparse.Namespace, screen: Callable[[State, str], str]) -> int:
    """Print the daemon's state, as JSON or as `screen` makes it of that and the socket's path.

    It is asked where `serve` with the same flags, environment and file would answer. The exit
    code: 0, or with a sentence on standard error 75 if no daemon answers, 3 if it is not for this
    user, and 2 if anybody could be the one who answers.
    """
    said, wrong = usable(options(given), os.environ)
    for sentence in wrong:
        # The daemon may run by what was right when it started.
        sys.stderr.write(f"opencode-acp: {plain(sentence)}\n")
    _, path = sockets(said, os.environ)
    try:
        state = State.model_validate_json(get(path, STATE))
    except NoDaemon as error:
        sys.stderr.write(f"opencode-acp: {error}\n")
        return error.code
    except ValidationError:
        sys.stderr.write(f"opencode-acp: What answers at {path} is no daemon of this version.\n")
        return TEMPORARY
    if given.json:
        # In ASCII, so that it may be printed wherever it is read.
        sys.stdout.write(json.dumps(state.model_dump(mode="json"), indent=2) + "\n")
    else:
        sys.stdout.write(screen(state, path))
    return OK


class Unix(http.client.HTTPConnection):
    """HTTP over the Unix socket at `path`."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=SECONDS)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self._path)
        ucred = self.sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, UCRED_BYTES)
        if sentence := impostor(self._path, user_of(ucred)):
            raise NoDaemon(sentence, USAGE)
