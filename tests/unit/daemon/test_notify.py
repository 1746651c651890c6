"""What the service manager is told, byte by byte; O-01, O-02, O-06."""

from __future__ import annotations

import logging
import uuid
from pathlib import Path

import pytest

from adapter.daemon.notify import STATUS_CHARACTERS, Manager, microseconds
from tests.unit.daemon.manager import hearing


@pytest.mark.parametrize("name", ["", f"acp-{uuid.uuid4().hex}"], ids=["path", "abstract"])
def test_each_word_is_one_datagram(tmp_path: Path, name: str) -> None:
    with hearing(tmp_path, name=name) as there:
        environ = {"NOTIFY_SOCKET": there.address}
        manager = Manager.of(environ)
        assert environ == {}
        manager.ready("well")
        manager.status("better")
        manager.alive()
        manager.stopping()
        there.heard()
        assert there.datagrams == [
            "READY=1\nSTATUS=well",
            "STATUS=better",
            "WATCHDOG=1",
            "STOPPING=1",
        ]
        manager.close()


def test_a_reload_says_when_it_began(tmp_path: Path) -> None:
    with hearing(tmp_path) as there:
        manager = Manager(there.address, lambda: 17)
        manager.reloading()
        assert there.heard() == ["RELOADING=1", "MONOTONIC_USEC=17"]
        manager.close()
    assert 0 < microseconds() <= microseconds()


def test_a_status_is_one_line_of_bounded_length(tmp_path: Path) -> None:
    with hearing(tmp_path) as there:
        manager = Manager(there.address)
        manager.status("a\nMAINPID=1\n" + "x" * 10_000)
        (line,) = there.heard()
        assert line.startswith("STATUS=a MAINPID=1 x")
        assert len(line) == len("STATUS=") + STATUS_CHARACTERS
        manager.close()


@pytest.mark.parametrize("environ", [{}, {"NOTIFY_SOCKET": ""}, {"NOTIFY_SOCKET": "vsock:2:3"}])
def test_without_a_manager_nobody_is_told(environ: dict[str, str]) -> None:
    manager = Manager.of(environ)
    manager.ready("well")
    manager.close()


def test_a_manager_that_is_gone_is_told_of_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    manager = Manager(str(tmp_path / "gone"))
    manager.ready("well")
    manager.alive()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    manager.close()


def test_a_manager_that_does_not_listen_does_not_hold_the_daemon(tmp_path: Path) -> None:
    with hearing(tmp_path) as there:
        manager = Manager(there.address)
        # More than any queue of datagrams takes.
        for _ in range(10_000):
            manager.alive()
        assert set(there.heard()) == {"WATCHDOG=1"}
        manager.ready("well")
        assert "READY=1" in there.heard()
        manager.close()
