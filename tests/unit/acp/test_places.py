"""The files that a tool call touches."""

from __future__ import annotations

import pytest

from adapter.acp.places import absolute, locations

HOME = "/srv/project"


@pytest.mark.parametrize(
    ("path", "full"),
    [("a.txt", "/srv/project/a.txt"), ("/etc/x", "/etc/x"), ("../b", "/srv/b"),
     ("./c/../d", "/srv/project/d"), ("../../../..", "/"), (".", "/srv/project")],
)  # fmt: skip
def test_paths_become_absolute(path: str, full: str) -> None:
    assert absolute(path, HOME) == full


@pytest.mark.parametrize(
    ("given_", "places"),
    [
        ({"path": "a"}, [{"path": "/srv/project/a"}]),
        ({"filePath": "/b", "offset": 7}, [{"path": "/b", "line": 7}]),
        ({"path": "a", "offset": 0}, [{"path": "/srv/project/a"}]),
        ({"path": "a", "offset": True}, [{"path": "/srv/project/a"}]),
        ({"path": "a", "offset": 2**32}, [{"path": "/srv/project/a"}]),
        ({"path": ""}, []),
        ({"path": 5}, []),
        ({"path": "x" * 5000}, []),
        ({}, []),
    ],
)
def test_locations(given_: dict[str, object], places: list[dict[str, object]]) -> None:
    assert locations(given_, None, HOME) == places


def test_the_files_of_a_result_are_places_too_each_once_and_at_most_16() -> None:
    """S3-L9."""
    files = [{"file": name} for name in ("a", "b", "/etc/x", "b", "", "x" * 5000)]
    found = locations({"path": "a", "offset": 3}, {"files": [*files, None, {"file": 5}]}, HOME)
    assert found == [
        {"path": "/srv/project/a", "line": 3},
        {"path": "/srv/project/b"},
        {"path": "/etc/x"},
    ]
    many = {"files": [{"file": f"f{number}"} for number in range(99)]}
    assert len(locations({"path": "a"}, many, HOME)) == 16


@pytest.mark.parametrize("metadata", [None, {}, {"files": None}, {"files": "a"}, {"files": [1]}])
def test_what_names_no_file_is_no_place(metadata: dict[str, object] | None) -> None:
    assert locations(None, metadata, HOME) == []
