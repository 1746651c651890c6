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
    ran = run("show", "--json", "--config", str(file), "--server", "http://[::1]:2", **more)
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


def test_it_is_a_table_for_people() -> None:
    ran = run("show", OPENCODE_PASSWORD=SECRET)
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


def test_what_is_right_is_said() -> None:
    assert run("check").returncode == 0
