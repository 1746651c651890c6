"""How a relay attaches to the daemon: where the socket is, and the two lines before ACP begins.

The relay imports this, so it imports nothing, not even what annotations need. The hello of the
relay is one line whose fields are separated by NUL: `HELLO`, then `KEY=VALUE` each, and it ends
with a newline. The daemon answers one line: `ok`, or an exit code and a sentence. ACP follows in
both directions.
"""

HELLO = "opencode-acp 1"
"""The protocol of the hello; a daemon that speaks another one refuses with `TEMPORARY`."""

VERSION_FIELD = "version"
CWD_FIELD = "cwd"
CLIENT_FIELD = "client"
"""Process id of the relay's parent."""
SETTING_FIELD = "set:"
VARIABLE_FIELD = "env:"
"""Prefixes of a setting that the client gave, by its name in the configuration file: as a flag,
or in the environment, where there may be some that are for another version."""

UNSAID = "(a text that is too long or has several lines)"
"""In place of the value of a variable that fits into no hello, and no value of any setting: so one
that is a setting still differs from the daemon's, and another is left alone as ever."""

UCRED_BYTES = 12
"""Of the option SO_PEERCRED: who listens, or who connected."""

ACCEPTED = b"ok\n"
HELLO_BYTES = 64 * 1024
ANSWER_BYTES = 4096
ANSWER_SECONDS = 5
"""Without an answer for so long the relay leaves with `TEMPORARY`; the hello has so long, too."""

SOCKET_VARIABLE = "OPENCODE_ACP_SOCKET"
PREFIX = "OPENCODE_ACP_"
"""Of every variable that is a setting: `OPENCODE_ACP_QUEUE_PATIENCE` is `queue_patience`."""

SOCKET_NAME = "opencode-acp.sock"

HOME = "~/"
"""At the head of a path: that of another user's home, `~name`, is a name like any other."""

OK = 0
FAULT = 1
USAGE = 2
AUTH = 3
CONTRACT = 4
TEMPORARY = 75
INTERRUPTED = 130
"""Exit codes: of the relay, of the agent in its own process and of the daemon alike."""


class Misfit(Exception):
    """A setting of the client's own fits into no hello. `str()` is one sentence for the user."""


def hello(fields: dict[str, str], encoding: tuple[str, str]) -> bytes:
    """The line of a relay: variables come last, those with long values behind the short ones.

    A variable that does not fit is said as `UNSAID`, and what does not fit then is left out.
    Raises Misfit for a flag that does not fit.
    """

    def place(item: tuple[str, str]) -> tuple[bool, int]:
        name, value = item
        return name.startswith(VARIABLE_FIELD), len(value)

    line = HELLO.encode()
    for name, value in sorted(fields.items(), key=place):
        field = f"\0{name}={value}".encode(*encoding)
        if not _fits(line, field):
            if name.startswith(SETTING_FIELD):
                flag = name[len(SETTING_FIELD) :].replace("_", "-")
                raise Misfit(f"The value of --{flag} is too long, or holds a line break.")
            if name.startswith(VARIABLE_FIELD):
                field = f"\0{name}={UNSAID}".encode(*encoding)
        if _fits(line, field):
            line += field
    return line + b"\n"


def _fits(line: bytes, field: bytes) -> bool:
    return b"\n" not in field and len(line) + len(field) < HELLO_BYTES


def gone(path: str) -> str:
    """What a client is told whose daemon at `path` has ended."""
    return (
        f"The daemon at {path} is gone; start this command again: what the server finishes "
        "meanwhile is there."
    )


def dumb(path: str) -> str:
    """Of one that ended before its first line."""
    return f"The daemon at {path} has ended before it answered; look at its log."


def silent(path: str) -> str:
    """Of one without a line in `ANSWER_SECONDS`."""
    return f"The daemon at {path} does not answer; look at its log, or restart it."


def user_of(ucred: bytes) -> int:
    """The user of a `struct ucred`, whose numbers have no sign but for the process (unix(7))."""
    return memoryview(ucred).cast("I")[1]


def default_socket(xdg_runtime_dir: str, uid: int) -> str:
    """The socket of the user's daemon, in the directory that the system made for the user."""
    directory = xdg_runtime_dir or f"/run/user/{uid}"
    return f"{directory}/{SOCKET_NAME}"


def at_home(path: str, home: str) -> str:
    """`path` with the home in place of a `~/` at its head; as it is without a home to name."""
    if path.startswith(HOME) and home.startswith("/"):
        return f"{home.rstrip('/')}/{path[len(HOME) :]}"
    return path


def admin_socket(socket: str) -> str:
    """The socket of the daemon's administration, beside that of its clients."""
    return f"{socket.removesuffix('.sock')}-admin.sock"
