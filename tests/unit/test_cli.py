"""The command as a process: flags, exit codes, and what may appear on stdout."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from adapter.flags import UsageError, help_text, parse_flags
from adapter.options import Options
from adapter.start import START_ERRORS, read_start
from contract.version import VERSION

DEADLINE = 30
INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}\n'


def run(*arguments: str, said: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "adapter.cli", *arguments],
        input=said,
        capture_output=True,
        timeout=DEADLINE,
        check=False,
    )


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        ([], Options()),
        (["--server", "http://[::1]:1"], Options({"server": "http://[::1]:1"})),
        (["--server=https://h/a@b?c=@"], Options({"server": "https://h/a@b?c=@"})),
        (
            ["--password-file", "f", "--no-daemon"],
            Options({"password_file": "f", "daemon": "never"}),
        ),
        (["--log-level=debug"], Options({"log_level": "debug"})),
        (["--log-level", "debug", "--log-level", "error"], Options({"log_level": "error"})),
    ],
)
def test_flags(argv: list[str], options: Options) -> None:
    assert parse_flags(argv) == options


BAD = [
    ["--nope"],
    ["word"],
    ["--server"],
    ["--server", "--no-daemon"],
    ["--server="],
    ["--server", "localhost:4096"],
    ["--server", "ftp://h"],
    ["--server", "http://"],
    ["--server", "http://user:hush@h"],
    ["--server", "HTTP://hush@h"],
    ["--password", "hush"],
    ["--password=hush"],
    ["--nope=hush"],
    ["--log-level", "loud"],
    ["--no-daemon=1"],
]


@pytest.mark.parametrize("argv", BAD, ids=" ".join)
def test_a_bad_command_line_is_one_sentence_without_secrets(argv: list[str]) -> None:
    with pytest.raises((UsageError, *START_ERRORS)) as caught:
        read_start(parse_flags(argv), {})
    assert "\n" not in str(caught.value)
    assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["--password-file", "F", "serve"], "serve"),
        (["--no-daemon", "config", "check"], "config check"),
        (["--no-daemon", "config", "--json"], "config check|show"),
        (["--config", "F", "replay", "flight", "--json"], "replay flight"),
        (["--json", "status"], "status"),
        (["--log-level", "debug", "--zebra", "doctor"], "doctor"),
    ],
)
def test_a_command_behind_its_flags_is_told_where_it_stands(argv: list[str], command: str) -> None:
    advice = re.escape(f"before its flags: opencode-acp {command} [FLAG ...].")
    with pytest.raises(UsageError, match=advice):
        parse_flags(argv)
    ran = run(*argv)
    assert (ran.returncode, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)


def test_a_word_that_is_a_value_is_no_command() -> None:
    assert parse_flags(["--password-file", "serve"]) == Options({"password_file": "serve"})
    with pytest.raises(UsageError, match="Unknown argument '--zebra'"):
        parse_flags(["--password-file", "serve", "--zebra"])


def test_the_flag_that_was_meant_is_told() -> None:
    with pytest.raises(UsageError, match="--queue-patience is one"):
        parse_flags(["--queue-patienc", "3"])


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ("serve --log-levl info", "--log-levl info (--log-level is one)"),
        ("doctor --log-levl=info", "--log-levl=info (--log-level is one)"),
        ("config check --sokcet s", "--sokcet s (--socket is one)"),
        # One of serve's, and none of this command's.
        ("status --server u", "--server u"),
    ],
)
def test_a_command_tells_which_of_its_flags_was_meant(argv: str, told: str) -> None:
    ran = run(*argv.split())
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.decode().endswith(f" error: unrecognized arguments: {told}\n")


def test_a_variable_that_is_no_setting_is_in_the_log_and_ends_no_start() -> None:
    name = "OPENCODE_ACP_QUEUE_PATIENC"
    with subprocess.Popen(
        [sys.executable, "-m", "adapter.cli", "--no-daemon"],
        env={"HOME": "/nonexistent", name: "hush"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        # The client stays until it is said.
        told = process.stderr.readline()
        process.stdin.close()
        assert process.wait(DEADLINE) == 0
    assert f"WARNING adapter.run: {name} is no setting".encode() in told
    assert b"hush" not in told


def test_a_bad_start_says_so_on_stderr_alone() -> None:
    ran = run("--nope")
    assert (ran.returncode, ran.stdout) == (2, b"")
    assert ran.stderr.startswith(b"opencode-acp: ")
    assert ran.stderr.count(b"\n") == 1


def test_version_and_help() -> None:
    assert run("--version").stdout == f"opencode-acp {VERSION}\n".encode()
    assert run("--help").stdout == help_text().encode()


def test_no_client_at_all_is_a_quiet_end() -> None:
    ran = run()
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")


CRASH = """
import os, sys
from adapter.acp.descriptors import reserve_stdout
sink = reserve_stdout()
os.write(1, b"descriptor 1\\n")
print("print")
os.write(sink, b"acp\\n")
assert not os.get_inheritable(sink)
raise RuntimeError("crash")
"""


def test_stdout_carries_acp_only_even_in_a_crash() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", CRASH], capture_output=True, timeout=DEADLINE, check=False
    )
    assert ran.stdout == b"acp\n"
    for text in (b"descriptor 1", b"print", b"RuntimeError: crash"):
        assert text in ran.stderr


def test_closed_standard_descriptors_are_no_trap() -> None:
    code = "from adapter.acp.descriptors import reserve_stdout as r; import os; os.write(r(), b'a')"
    read, write = os.pipe()
    try:
        command = f'exec {sys.executable} -c "{code}" 2>&- <&-'
        ran = subprocess.run(
            ["/bin/sh", "-c", command], stdout=write, timeout=DEADLINE, check=False
        )
        assert ran.returncode == 0
        assert os.read(read, 10) == b"a"
    finally:
        os.close(read)
        os.close(write)
