"""`python -m contract check URL [--password-file FILE] [--all]`: has a server our routes?

Exit code 0: every route in use is there; 1: one is missing; 2: bad arguments; 3: the server
refused the password; 75: it cannot be reached or is no OpenCode server.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import httpx

from contract.check import compare, live_routes, report
from contract.routes import OPENAPI
from contract.semantics import USER

MISSING: Final = 1
USAGE: Final = 2
REFUSED: Final = 3
UNREACHABLE: Final = 75


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m contract", description=__doc__)
    commands = parser.add_subparsers(required=True)
    check = commands.add_parser("check", help="compare the route table with a live server")
    check.add_argument("url", metavar="URL")
    check.add_argument("--password-file", type=Path, metavar="FILE")
    check.add_argument("--all", action="store_true", help="list what makes no difference, too")
    arguments = parser.parse_args(argv)
    try:
        password = _password(arguments.password_file)
    except (OSError, UnicodeDecodeError):
        return _fail(USAGE, f"The password file {arguments.password_file} cannot be read.")
    return _check(arguments.url.rstrip("/"), password, whole=arguments.all)


def _password(file: Path | None) -> str | None:
    if file is not None:
        return file.read_text("utf-8").rstrip("\r\n")
    return os.environ.get("OPENCODE_SERVER_PASSWORD") or os.environ.get("OPENCODE_PASSWORD")


def _check(url: str, password: str | None, *, whole: bool) -> int:
    auth = None if password is None else httpx.BasicAuth(USER, password)
    try:
        with httpx.Client(auth=auth, trust_env=False, timeout=10) as client:
            answer = client.get(url + OPENAPI.path)
            if answer.status_code in (401, 403):
                return _fail(REFUSED, _refused(url, password))
            answer.raise_for_status()
            live = live_routes(json.loads(answer.content))
    except (httpx.HTTPError, httpx.InvalidURL):
        return _fail(UNREACHABLE, f"The server at {url} cannot be reached.")
    except ValueError:
        live = frozenset()
    if not live:
        return _fail(UNREACHABLE, f"The server at {url} lists no routes.")
    comparison = compare(live)
    print(report(comparison, whole=whole))
    return 0 if comparison.complete else MISSING


def _refused(url: str, password: str | None) -> str:
    if password is not None:
        return f"The server at {url} refused the password."
    return (
        f"The server at {url} wants a password, and none was given: name its file by "
        "--password-file, or set OPENCODE_SERVER_PASSWORD."
    )


def _fail(code: int, sentence: str) -> int:
    print(sentence, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
