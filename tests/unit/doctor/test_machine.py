"""What the system leaves to a user."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

import pytest

from adapter.daemon.process import ARRIVING, OTHERS
from adapter.doctor import machine
from adapter.doctor.findings import State


def test_room_for_clients_is_counted_in_descriptors() -> None:
    assert machine.judge_descriptors(None, 256).state is State.OK
    assert machine.judge_descriptors(256 + ARRIVING + OTHERS, 256).state is State.OK
    short = machine.judge_descriptors(OTHERS + 12, 256)
    assert (short.state, short.code) == (State.WARNING, 0)
    assert "room for 9 clients" in short.sentence


@pytest.mark.parametrize(
    ("used", "state"),
    [
        (0, State.OK),
        (95, State.OK),
        (96, State.WARNING),
        (127, State.WARNING),
        (128, State.WARNING),
    ],
)
def test_instances_run_out(used: int, state: State) -> None:
    finding = machine.judge_inotify(used, 128)
    assert finding.state is state
    assert f"{used} of 128" in finding.sentence


def test_an_instance_of_this_user_counts() -> None:
    """Others of this user come and go meanwhile, so that only this process is looked at."""
    own = f"{machine.PROC}/{os.getpid()}"
    before = machine.instances_of(own, os.getuid())
    descriptor = ctypes.CDLL(None).inotify_init1(os.O_CLOEXEC)
    assert descriptor >= 0
    try:
        assert machine.instances_of(own, os.getuid()) == before + 1
        assert machine.instances_of(own, os.getuid() + 1) == 0
    finally:
        os.close(descriptor)


def test_a_system_without_the_limit_is_passed_over(tmp_path: Path) -> None:
    assert machine.inotify(str(tmp_path)).state is State.SKIPPED


def test_processes_that_end_meanwhile_are_passed_over(tmp_path: Path) -> None:
    limit = tmp_path / machine.LIMIT_FILE
    limit.parent.mkdir(parents=True)
    limit.write_text("64\n")
    (tmp_path / "4242").mkdir()
    (tmp_path / "meminfo").touch()
    finding = machine.inotify(str(tmp_path))
    assert finding.state is State.OK
    assert "0 of 64" in finding.sentence
