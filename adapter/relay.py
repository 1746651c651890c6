"""The command as a client launches it: a relay to the daemon, or else the agent itself.

The relay owns nothing: it introduces its client, then passes bytes both ways. A client pays for
each of its processes, so no more is imported here than a socket, a poll and the two of `contract`
that import nothing (ACP facts, section A).
"""

import _socket
import posix
import select
import sys

from adapter.output import Output
from contract import attach
from contract.version import VERSION

CHUNK = 64 * 1024
LEAVE_MILLISECONDS = 50
"""After the client's end of input the daemon has so long to write what is queued, and to close."""
HUNG_UP = 5
"""EIO, errno(3): what a terminal says that is gone. The module `errno` is one more to load."""

KIND, SOCKET = 0o170000, 0o140000
"""S_IFMT and S_IFSOCK, inode(7)."""
ABSENT = (FileNotFoundError, NotADirectoryError, ConnectionRefusedError)
MODES = ("auto", "require", "never")
SECRET = "PASSWORD"
"""At the end of its name: it is no setting, and goes to nobody."""
ENCODING = (sys.getfilesystemencoding(), sys.getfilesystemencodeerrors())


class Refused(Exception):
    """The relay ends with `code`, and with `str()`, one sentence, on standard error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Wishes:
    """What the command line and the environment ask for; `settings` are the daemon's to judge.

    They are fields of the hello.
    """

    def __init__(self, mode: str, socket: str, settings: dict[str, str]) -> None:
        self.mode = mode
        self.socket = socket
        self.settings = settings


def main() -> int:
    """Run as the relay if a daemon listens, else as `adapter.cli` does; the exit code.

    Of the relay: 0, the client left; 1, its output cannot be written; 2, a flag fits in no hello,
    or anybody may be the one who listens; 3, the socket's rights keep this user out; 75, the daemon
    is gone, or was not there with `--daemon require`; 130, interrupted; else as the daemon's
    refusal says.
    """
    wishes = read(sys.argv[1:], posix.environ)
    if wishes is None:
        return _agent()
    try:
        _keep_standard_descriptors()
        sock = connect(wishes)
        if sock is None:
            if in_the_way(wishes.socket):
                _say(f"{_no_socket(wishes)}; this client works without a daemon.")
            return _agent()
        return pass_on(sock, introduce(sock, wishes), wishes.socket)
    except Refused as refusal:
        _say(str(refusal))
        return refusal.code
    except KeyboardInterrupt:
        return attach.INTERRUPTED


def _say(sentence: str) -> None:
    """One plain line on standard error if it takes one; the exit code stands in any case."""
    plain = "".join(c if c.isprintable() else "?" for c in f"opencode-acp: {sentence}")
    line = plain.encode(ENCODING[0], "replace")[: select.PIPE_BUF - 1] + b"\n"
    poll = select.poll()
    poll.register(2, select.POLLOUT)
    try:
        # Nobody may read it: a pipe that is full would hold the relay for ever.
        if poll.poll(LEAVE_MILLISECONDS):
            posix.write(2, line)
    except OSError:
        return


def _agent() -> int:
    from adapter.cli import main as run

    return run()


def read(argv: list[str], environ: dict[bytes, bytes]) -> Wishes | None:
    """What is asked for; None if it is nothing for a relay, or makes no sense to it."""
    variables = _texts(environ)
    given = {
        name[len(attach.PREFIX) :].lower(): value
        for name, value in variables.items()
        if name.startswith(attach.PREFIX) and value and not name.endswith(SECRET)
    }
    flags: dict[str, str] = {}
    rest = list(argv)
    while rest:
        flag, glued, value = rest.pop(0).partition("=")
        if flag == "--no-daemon" and not glued:
            flag, value = "--daemon", "never"
        elif not flag.startswith("--") or flag in ("--help", "--version", "--password"):
            return None
        elif not glued:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else ""
        if not value:
            return None
        flags[flag[2:].replace("-", "_")] = value
    # Nothing but a path can begin like that. The home is the client's, whoever the daemon is.
    home = variables.get("HOME", "")
    said = {name: attach.at_home(value, home) for name, value in {**given, **flags}.items()}
    mode = said.pop("daemon", MODES[0])
    if mode not in MODES or mode == "never":
        return None
    default = attach.default_socket(variables.get("XDG_RUNTIME_DIR", ""), posix.getuid())
    socket = said.pop("socket", default)
    fields = (attach.VARIABLE_FIELD, attach.SETTING_FIELD)
    settings = {f"{fields[name in flags]}{name}": value for name, value in said.items()}
    return Wishes(mode, socket, settings)


def _texts(environ: dict[bytes, bytes]) -> dict[str, str]:
    return {name.decode(*ENCODING): value.decode(*ENCODING) for name, value in environ.items()}


def _keep_standard_descriptors() -> None:
    """A socket must not take the number of a standard descriptor that was closed."""
    for descriptor in (0, 1, 2):
        try:
            posix.fstat(descriptor)
        except OSError:
            posix.open("/dev/null", posix.O_RDWR)


def connect(wishes: Wishes) -> _socket.socket | None:
    """A connection to the daemon; None if nobody listens and nobody has to.

    Raises Refused.
    """
    sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    # A daemon with a full queue of clients that come holds up `connect`, which then fails.
    seconds = attach.ANSWER_SECONDS.to_bytes(8, sys.byteorder) + bytes(8)
    sock.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDTIMEO, seconds)
    try:
        sock.connect(wishes.socket)
    except (OSError, ValueError) as error:
        sock.close()
        if isinstance(error, ABSENT) and wishes.mode == "auto":
            return None
        raise _unreached(error, wishes) from None
    if sentence := _unknown(sock, wishes.socket):
        sock.close()
        raise Refused(attach.USAGE, sentence)
    return sock


def _unknown(sock: _socket.socket, path: str) -> str | None:
    """A sentence if a third user listens, at a place where others could as well."""
    ucred = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, attach.UCRED_BYTES)
    if (uid := attach.user_of(ucred)) in (0, posix.getuid()):
        return None
    from adapter.daemon.exposure import impostor

    return impostor(path, uid)


def _unreached(error: OSError | ValueError, wishes: Wishes) -> Refused:
    path = wishes.socket
    if isinstance(error, ABSENT):
        if in_the_way(path):
            return Refused(attach.TEMPORARY, f"{_no_socket(wishes)}.")
        return Refused(
            attach.TEMPORARY,
            f"No daemon listens at {path}; start it with 'opencode-acp serve', or let this command "
            "work without one (--daemon auto).",
        )
    if isinstance(error, BlockingIOError):
        return Refused(attach.TEMPORARY, attach.silent(wishes.socket))
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    # Whom the socket's rights keep out, its operator has to let in.
    code = attach.AUTH if isinstance(error, PermissionError) else attach.TEMPORARY
    return Refused(code, f"The daemon's socket {path} cannot be used: {reason}.")


def in_the_way(path: str) -> bool:
    """Whether something that is no socket stands where no daemon can listen then."""
    try:
        return posix.stat(path).st_mode & KIND != SOCKET
    except OSError:
        return False


def introduce(sock: _socket.socket, wishes: Wishes) -> bytes:
    """Say who comes, and wait to be let in; what the daemon has sent behind its answer.

    Raises Refused.
    """
    fields = {
        attach.VERSION_FIELD: VERSION,
        attach.CWD_FIELD: _directory(),
        attach.CLIENT_FIELD: str(posix.getppid()),
    }
    try:
        hello = attach.hello(fields | wishes.settings, ENCODING)
    except attach.Misfit as error:
        raise Refused(attach.USAGE, str(error)) from None
    sock.settimeout(attach.ANSWER_SECONDS)
    late = _now() + attach.ANSWER_SECONDS
    answer = b""
    try:
        _send(sock, hello)
        while b"\n" not in answer and len(answer) < attach.ANSWER_BYTES:
            # For the whole line: each of its bytes may be waited for.
            left = late - _now()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(left)
            more = sock.recv(attach.ANSWER_BYTES)
            if not more:
                raise Refused(attach.TEMPORARY, attach.dumb(wishes.socket))
            answer += more
    except TimeoutError:
        raise Refused(attach.TEMPORARY, attach.silent(wishes.socket)) from None
    except OSError:
        raise Refused(attach.TEMPORARY, attach.gone(wishes.socket)) from None
    line, end, rest = answer.partition(b"\n")
    if line + end == attach.ACCEPTED:
        return rest
    code, _, sentence = line.decode("utf-8", "replace").partition(" ")
    if code.isdecimal() and 0 < int(code) < 256:
        raise Refused(int(code), sentence)
    raise Refused(attach.TEMPORARY, f"What answers at {wishes.socket} is no daemon of this kind.")


def _send(sock: _socket.socket, hello: bytes) -> None:
    try:
        sock.sendall(hello)
    except (BrokenPipeError, ConnectionResetError):
        # A daemon that has no room says so and closes before it has heard who comes.
        return


def _directory() -> str:
    try:
        return posix.getcwd()
    except OSError:
        return ""


def pass_on(sock: _socket.socket, down: bytes, path: str) -> int:
    """Pass bytes both ways until one side ends; 0: the client left.

    Raises Refused when the daemon ends first.
    """
    passage = Passage(sock, down)
    while passage.turn():
        pass
    if passage.client_is_here:
        raise Refused(attach.TEMPORARY, attach.gone(path))
    return attach.OK


class Passage:
    """At most one chunk waits in each direction, and neither direction waits for the other."""

    def __init__(self, sock: _socket.socket, down: bytes = b"") -> None:
        sock.setblocking(False)
        self.client_is_here = True
        self._sock = sock
        self._link = sock.fileno()
        self._up = b""
        self._down = down
        self._hears = True
        self._is_over = False
        self._left = 0.0
        self._output = Output()

    def turn(self) -> bool:
        """Wait for a descriptor and do what it is ready for; False when all is over.

        Raises Refused when the client's output cannot be written.
        """
        up, down = self._up, self._down
        poll = select.poll()
        if self.client_is_here and not up:
            poll.register(0, select.POLLIN)
        poll.register(1, select.POLLOUT if down else 0)
        wanted = (select.POLLOUT if up else 0) | (0 if down else select.POLLIN)
        if wanted:
            # One that is watched for nothing would report its end again and again.
            poll.register(self._link, wanted)
        ready = dict(poll.poll(None if self.client_is_here else self._milliseconds()))
        if 0 in ready:
            self._read_client()
        if 1 in ready:
            self._write_client()
        events = ready.get(self._link, 0)
        if up and events & ~select.POLLIN:
            self._write_daemon()
        if not down and events & ~select.POLLOUT:
            self._read_daemon()
        if not self.client_is_here and self._hears and not self._up:
            self._half_close()
        return not (self._is_over or (not self.client_is_here and not self._milliseconds()))

    def _milliseconds(self) -> int:
        """Those that are left until the relay leaves its daemon."""
        return max(0, LEAVE_MILLISECONDS - int((_now() - self._left) * 1000))

    def _read_client(self) -> None:
        try:
            self._up = posix.read(0, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self._up = b""
        if not self._up:
            self.client_is_here = False
            self._left = _now()
        elif not self._hears:
            self._up = b""

    def _write_client(self) -> None:
        if not self._down:
            # Nothing was asked for: the client has closed its end.
            self._leave()
            return
        try:
            self._down = self._down[self._output.write(self._down) :]
        except BlockingIOError:
            return
        except OSError as error:
            if not isinstance(error, ConnectionError) and error.errno != HUNG_UP:
                raise Refused(
                    attach.FAULT, f"Standard output cannot be written: {error.strerror}."
                ) from None
            self._leave()

    def _write_daemon(self) -> None:
        try:
            self._up = self._up[self._sock.send(self._up) :]
        except BlockingIOError:
            pass
        except OSError:
            # What it had sent before it went is still to be read.
            self._up = b""
            self._hears = False

    def _read_daemon(self) -> None:
        try:
            self._down = self._sock.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self._down = b""
        self._is_over = not self._down

    def _half_close(self) -> None:
        self._hears = False
        try:
            self._sock.shutdown(_socket.SHUT_WR)
        except OSError:
            self._is_over = True

    def _leave(self) -> None:
        self.client_is_here = False
        self._is_over = True


def _now() -> float:
    """Seconds on the clock of the kernel's ticks, which never goes back."""
    return posix.times().elapsed


def _no_socket(wishes: Wishes) -> str:
    return (
        f"{wishes.socket} is no socket, so no daemon can listen there: remove it, or name another "
        "path by --socket"
    )
