"""The flags of `opencode-acp`, read by hand: argparse would double the time to the first answer."""

from __future__ import annotations

from collections.abc import Sequence

from adapter.options import Options

HELP = """\
usage: opencode-acp [--server URL] [--password-file FILE] [--config FILE] [--no-daemon]
                    [--log-level LEVEL]

The ACP agent on standard input and output, in front of a running OpenCode server.

  --server URL          the server (default: OPENCODE_ACP_SERVER, then http://127.0.0.1:4096)
  --password-file FILE  file that holds its password (default: OPENCODE_ACP_PASSWORD_FILE;
                        without one OPENCODE_SERVER_PASSWORD or OPENCODE_PASSWORD is read)
  --config FILE         TOML file of the operator (default: OPENCODE_ACP_CONFIG, then none)
  --no-daemon           run in this process, as happens anyway: there is no daemon
  --log-level LEVEL     debug, info, warning (default) or error; the log goes to standard error
  --version             print the version
  --help                print this text
"""

VALUED = ("--server", "--password-file", "--config", "--log-level")
RELAYED = ("--socket", "--daemon")
_LEVELS = ("debug", "info", "warning", "error")


class UsageError(ValueError):
    """The command line makes no sense; the message is a sentence for the user, without secrets."""


def parse_flags(argv: Sequence[str]) -> Options:
    """Options from the arguments after the program's name; both `--flag X` and `--flag=X`.

    Raises UsageError. `--help` and `--version` are not known here.
    """
    values: dict[str, str] = {}
    rest = list(argv)
    while rest:
        flag, glued, value = rest.pop(0).partition("=")
        if flag == "--no-daemon" and not glued:
            continue
        if flag in RELAYED:
            # Read by the relay, before this process was known to be the agent.
            if not glued and not (rest and not rest[0].startswith("--") and rest.pop(0)):
                raise UsageError(f"{flag} needs a value.")
            continue
        if flag in VALUED:
            if not glued:
                value = rest.pop(0) if rest and not rest[0].startswith("--") else ""
            if not value:
                raise UsageError(f"{flag} needs a value.")
            values[flag] = value
        elif flag == "--password":
            raise UsageError(
                "A password on the command line can be read by every user of the machine; "
                "use --password-file or OPENCODE_SERVER_PASSWORD."
            )
        else:
            raise UsageError(f"Unknown argument {flag!r}; opencode-acp --help lists the flags.")
    server = values.get("--server")
    if server is not None:
        check_server(server, "--server")
    level = values.get("--log-level", "warning")
    if level not in _LEVELS:
        raise UsageError(f"--log-level takes one of {', '.join(_LEVELS)}, not {level!r}.")
    return Options(server, values.get("--password-file"), values.get("--config"), level)


def check_server(url: str, origin: str) -> None:
    """UsageError unless `url` is an http(s) URL without user and password; `origin` names it."""
    scheme, separator, rest = url.partition("://")
    authority = rest.replace("?", "/").replace("#", "/").partition("/")[0]
    if not separator or scheme.lower() not in ("http", "https") or not authority:
        raise UsageError(f"{origin} needs a URL such as http://127.0.0.1:4096.")
    if "@" in authority:
        raise UsageError(
            f"{origin} must not hold a user or password; use --password-file for the password."
        )
