"""The flags of the agent, read by hand: argparse would double the time to the first answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import dropwhile, takewhile
from typing import Final

from adapter.options import Options
from adapter.settings.nearness import hint
from adapter.settings.table import BY_NAME, SETTINGS

COMMANDS: Final[Mapping[str, str]] = {
    "serve": "serve every client of this user through one socket",
    "status": "show what the daemon is at, and who its clients are",
    "sessions": "show the sessions that are open, and which clients have them open",
    "doctor": "look at all that an agent needs, say what is wrong and what to do about it",
    "config": "check or show the settings",
    "replay": "run the rules again on a flight that the log holds",
    "completion": "print a completion for bash, zsh or fish",
}
"""What each does; each is a module of `adapter.commands`. In the order of the help."""


class UsageError(ValueError):
    """The command line makes no sense; the message is a sentence for the user, without secrets."""


def parse_flags(argv: Sequence[str]) -> Options:
    """Options from the arguments after the program's name; both `--flag X` and `--flag=X`.

    Raises UsageError. `--help` and `--version` are not known here.
    """
    known = {setting.flag: setting.name for setting in SETTINGS}
    given: dict[str, str] = {}
    rest = list(argv)
    while rest:
        flag, glued, value = rest.pop(0).partition("=")
        if flag == "--no-daemon" and not glued:
            given["daemon"] = "never"
            continue
        if flag == "--password":
            raise UsageError(
                "A password on the command line can be read by every user of the machine; "
                "use --password-file or OPENCODE_SERVER_PASSWORD."
            )
        if flag not in known:
            raise UsageError(_unknown(flag, rest, known))
        if not glued:
            value = rest.pop(0) if rest and not rest[0].startswith("--") else ""
        if not value:
            raise UsageError(f"{flag} needs a value.")
        given[known[flag]] = value
    return Options(given)


def _unknown(word: str, rest: Sequence[str], flags: Iterable[str]) -> str:
    """A command that stands behind its flags, or else a flag that there is not."""
    words = list(dropwhile(lambda one: one not in COMMANDS, (word, *rest)))
    if words:
        # Its action, too, or what else it is about.
        command = " ".join(takewhile(lambda one: not one.startswith("-"), words))
        if command == "config":
            command += " check|show"
        return f"A command stands before its flags: opencode-acp {command} [FLAG ...]."
    found = hint(word, flags) if word.startswith("-") else ""
    return f"Unknown argument {word!r}{found}; opencode-acp --help lists the flags."


def help_text() -> str:
    """What `--help` prints."""
    lines = [
        "usage: opencode-acp [FLAG ...]",
        "       opencode-acp COMMAND [FLAG ...]",
        "",
        "Without a command: the ACP agent on standard input and output. It passes its client on to",
        "the daemon if one listens, and else works in this process, in front of a running OpenCode",
        "server.",
        "",
        "commands (opencode-acp COMMAND --help tells more):",
        *(f"  {name:<12} {about}" for name, about in COMMANDS.items()),
        "",
        "flags; each is an environment variable, too (--log-level is OPENCODE_ACP_LOG_LEVEL), and",
        "those without * may stand in the configuration file (log_level):",
    ]
    for setting in SETTINGS:
        star = " *" if setting.name in ("config", "socket", "daemon") else ""
        default = setting.default or next(iter(setting.words), "")
        lines.append(f"  {setting.flag} {setting.metavar}{star}")
        lines.append(f"      {setting.about}" + (f" (default: {default})" if default else ""))
    lines += [
        "  --no-daemon",
        f"      the same as {BY_NAME['daemon'].flag} never",
        "  --version, --help",
        "",
        "The file's table [limits] lowers what a client may take up; opencode-acp config show",
        "--effective lists the limits, and every setting with its value and where that is from.",
        "",
    ]
    return "\n".join(lines)
