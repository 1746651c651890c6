"""Who could put a socket of theirs in the place of a daemon's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from adapter.daemon.exposure import LINKS, Exposure, exposed, impostor, others_write
from tests.support.strangers import NOBODY, as_root

US = (os.getuid(), 0)


@pytest.mark.parametrize(
    ("mode", "exposure"),
    [
        (0o700, None),
        (0o755, None),
        (0o770, Exposure.WRITERS),
        (0o707, Exposure.WRITERS),
        (0o1777, Exposure.WRITERS),
    ],
)
def test_whoever_may_write_in_the_directory(
    tmp_path: Path, mode: int, exposure: Exposure | None
) -> None:
    tmp_path.chmod(mode)
    found = exposed(str(tmp_path), US, sticky=True)
    assert found == (None if exposure is None else (str(tmp_path), exposure))


@pytest.mark.parametrize(
    ("mode", "sticky", "exposure"),
    [
        (0o755, False, None),
        (0o770, True, Exposure.WRITERS),
        (0o777, True, Exposure.WRITERS),
        (0o1777, True, None),
        (0o1777, False, Exposure.WRITERS),
    ],
)
def test_whoever_may_write_above_it(
    tmp_path: Path, mode: int, sticky: bool, exposure: Exposure | None
) -> None:
    above = tmp_path / "above"
    (above / "run" / "acp").mkdir(parents=True, mode=0o700)
    above.chmod(mode)
    found = exposed(str(above / "run" / "acp"), US, sticky=sticky)
    if sticky:
        assert found == (None if exposure is None else (str(above), exposure))
    else:
        # The temporary directory of the system is one of that kind.
        assert (found is None) <= (exposure is None)


@as_root
@pytest.mark.parametrize("what", ["directory", "above", "link"])
def test_what_another_user_has_on_the_way(tmp_path: Path, what: str) -> None:
    run, link = tmp_path / "above" / "run", tmp_path / "link"
    run.mkdir(parents=True, mode=0o700)
    link.symlink_to(run)
    taken = {"directory": run, "above": run.parent, "link": link}[what]
    assert exposed(str(link), US, sticky=True) is None
    os.chown(taken, NOBODY, NOBODY, follow_symlinks=False)
    assert exposed(str(link), US, sticky=True) == (str(taken), Exposure.OWNER)
    assert exposed(str(link), (*US, NOBODY), sticky=True) is None


def test_a_way_by_links(tmp_path: Path) -> None:
    """It is the kernel's: what stands before `..` and behind a link is looked at as well."""
    (tmp_path / "open" / "inner").mkdir(parents=True)
    (tmp_path / "run").mkdir(mode=0o700)
    (tmp_path / "open").chmod(0o777)
    (tmp_path / "link").symlink_to("open/inner/../../run")
    found = exposed(str(tmp_path / "link"), US, sticky=True)
    assert found == (str(tmp_path / "open"), Exposure.WRITERS)
    (tmp_path / "straight").symlink_to(tmp_path / "run")
    assert exposed(f"{tmp_path}/./straight/", US, sticky=True) is None


def test_a_way_that_has_no_end(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "link")
    with pytest.raises(OSError, match="symbolic links"):
        exposed(str(tmp_path / "link"), US, sticky=True)
    before = tmp_path
    for number in range(LINKS):
        (tmp_path / str(number)).symlink_to(before)
        before = tmp_path / str(number)
    assert exposed(str(before), US, sticky=True) is None


def test_a_path_of_this_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o777)
    assert exposed("", US, sticky=True) == (str(tmp_path), Exposure.WRITERS)


def test_a_directory_of_this_process_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    tmp_path.chmod(0o777)
    assert exposed(str(tmp_path), US, sticky=True) == (str(tmp_path), Exposure.WRITERS)


def test_root_and_this_user_are_known_anywhere(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert [impostor(str(tmp_path / "s"), uid) for uid in US] == [None, None]


def test_a_place_that_cannot_be_looked_at_is_nobodys(tmp_path: Path) -> None:
    sentence = impostor(str(tmp_path / "none" / "s"), NOBODY)
    assert sentence is not None and "No such file" in sentence


@as_root
def test_another_user_is_known_at_a_place_that_is_his() -> None:
    """As root says that gives it: nobody else can be there."""
    assert impostor("/proc/version", NOBODY) is None


@pytest.mark.parametrize(("mode", "others"), [(0o644, False), (0o620, True), (0o602, True)])
def test_whoever_may_write_a_file(tmp_path: Path, mode: int, others: bool) -> None:
    file = tmp_path / "file"
    file.touch()
    file.chmod(mode)
    assert others_write(file.stat()) is others
