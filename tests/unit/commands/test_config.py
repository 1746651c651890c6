"""`opencode-acp config` as a process: values, origins, and no secret."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from adapter.limits import DEFAULTS
from adapter.settings.table import SETTINGS

SECRET = "s3cret-pa55word"


def run(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "adapter.cli", "config", *arguments],
        env={"HOME": "/nonexistent", **environ},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_each_setting_and_limit_is_shown_with_its_origin(tmp_path: Path) -> None:
    file = tmp_path / "f.toml"
    file.write_text(
        "mcp_seconds = 5\nmcp = 'reject'\nserver = 'http://[::1]:1'\n[limits]\nprompts = 4\n"
    )
    more = {"OPENCODE_ACP_MCP": "register", "OPENCODE_PASSWORD": SECRET}
    flags = ("--config", str(file), "--server", "http://[::1]:2")
    ran = run("show", "--effective", "--json", *flags, **more)
    shown = json.loads(ran.stdout)
    assert ran.returncode == 0
    assert shown["server"] == {"value": "http://[::1]:2", "origin": "--server"}
    assert shown["mcp"] == {"value": "register", "origin": "OPENCODE_ACP_MCP"}
    assert shown["mcp_seconds"] == {"value": "5", "origin": f"mcp_seconds in {file}"}
    assert shown["drain"] == {"value": "detach", "origin": "default"}
    assert shown["limits.prompts"] == {"value": "4", "origin": f"[limits] in {file}"}
    assert shown["password"] == {"value": "***", "origin": "OPENCODE_PASSWORD"}
    names = {setting.name for setting in SETTINGS}
    assert names | {f"limits.{name}" for name in DEFAULTS.__slots__} == set(shown) - {"password"}
    assert SECRET not in ran.stdout + ran.stderr
    told = json.loads(run("show", "--json", *flags, **more).stdout)
    assert set(told) == {"server", "mcp", "mcp_seconds", "config", "limits.prompts", "password"}
    assert told.items() <= shown.items()


def test_the_server_that_opencode_has_registered_is_shown_as_such(tmp_path: Path) -> None:
    (folder := tmp_path / "opencode").mkdir()
    file = folder / "service.json"
    file.write_text(json.dumps({"url": "http://127.0.0.1:7", "password": SECRET}))
    file.chmod(0o600)
    ran = run("show", "--json", XDG_STATE_HOME=str(tmp_path))
    assert json.loads(ran.stdout) == {
        "server": {"value": "http://127.0.0.1:7", "origin": f"the file {file}"},
        "password": {"value": "***", "origin": f"the file {file}"},
    }
    assert SECRET not in run("show", XDG_STATE_HOME=str(tmp_path)).stdout


def test_it_is_a_table_for_people() -> None:
    ran = run("show", "--effective", OPENCODE_PASSWORD=SECRET)
    assert (ran.returncode, ran.stdout.split()[:3]) == (0, ["SETTING", "VALUE", "FROM"])
    assert SECRET not in ran.stdout


@pytest.mark.parametrize("action", ["check", "show"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("OPENCODE_ACP_DRAIN", "x"), ("OPENCODE_ACP_SERVER", "x"), ("OPENCODE_ACP_CONFIG", "/x\ny")],
)
def test_what_is_wrong_is_one_sentence(action: str, name: str, value: str) -> None:
    ran = run(action, **{name: value})
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr.startswith("opencode-acp: ")
    assert ran.stderr.count("\n") == 1


def test_each_fault_is_told(tmp_path: Path) -> None:
    (file := tmp_path / "f.toml").write_text("nothing = 1\n[limits]\nprompts = 99\n")
    given = ("--config", str(file), "--password-file", str(tmp_path / "none"))
    ran = run("check", *given, OPENCODE_ACP_DRAIN="x", OPENCODE_ACP_SERVER="http://192.0.2.1")
    assert (ran.returncode, ran.stdout) == (2, "")
    told = ran.stderr.splitlines()
    parts = ("'nothing'", "prompts", "OPENCODE_ACP_DRAIN", "OPENCODE_ACP_SERVER", "none cannot")
    assert len(told) == len(parts)
    assert all(part in line for part, line in zip(parts, told, strict=True))


def test_a_variable_that_is_none_of_ours_is_told_and_no_fault() -> None:
    ran = run("check", OPENCODE_ACP_QUEUE_PATIANCE=SECRET, OPENCODE_ACP_ZEBRA=SECRET)
    assert (ran.returncode, ran.stderr) == (0, "")
    near, far, _ = ran.stdout.splitlines()
    assert "OPENCODE_ACP_QUEUE_PATIANCE" in near and "OPENCODE_ACP_QUEUE_PATIENCE is one" in near
    assert "OPENCODE_ACP_ZEBRA" in far and "is one" not in far
    assert SECRET not in ran.stdout


def test_what_is_right_is_said(tmp_path: Path) -> None:
    (file := tmp_path / "f.toml").write_text("mcp = 'reject'\n")
    ran = run("check", "--config", str(file))
    assert (ran.returncode, ran.stderr) == (0, "")
    assert str(file) in ran.stdout
    assert run("show").stdout == "Nothing is set: --effective shows the defaults.\n"
