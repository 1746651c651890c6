"""`python -m tests.drift URL [--password-file FILE] [ARGUMENT OF PYTEST ...]`.

First the routes (`contract check`), then every scenario of the real server, on a server that is
running on this machine; but for those that would kill it. It needs no model: each project of the
scenarios names the scripted one. Exit code: that of the routes, else that of the scenarios.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from contract.__main__ import main as check
from stubs.parts import ROOT
from tests.scenarios.backends import PASSWORD_VARIABLE, URL_VARIABLE


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.drift", description=__doc__)
    parser.add_argument("url", metavar="URL")
    parser.add_argument("--password-file", type=Path, metavar="FILE")
    given, rest = parser.parse_known_args()
    argv = ["check", given.url]
    if given.password_file is not None:
        argv += ["--password-file", str(given.password_file)]
        os.environ[PASSWORD_VARIABLE] = given.password_file.read_text("utf-8").rstrip("\r\n")
    missing = check(argv)
    os.environ[URL_VARIABLE] = given.url.rstrip("/")
    # A process of its own: pytest wants to be the first to import what the tests use.
    suite = [sys.executable, "-m", "pytest", str(ROOT / "tests" / "scenarios"), "-m", "real"]
    failed = subprocess.run([*suite, *rest], cwd=ROOT, check=False).returncode
    return missing or failed


if __name__ == "__main__":
    sys.exit(main())
