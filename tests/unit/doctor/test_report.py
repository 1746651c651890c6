"""How findings are shown, and the configuration that acpx is told."""

from __future__ import annotations

import json

from adapter.doctor.findings import Finding, failed, good, warning
from adapter.doctor.report import acpx_config, agent_argv, as_json, screen
from adapter.options import Options
from contract.attach import AUTH
from contract.version import VERSION

ARGV = ["/bin/opencode-acp", "--mcp", "reject"]
FINE = (good("url", "Here."), warning("version", "Old.", "Renew it."))


def test_a_screen_has_what_to_do_and_what_to_tell_acpx() -> None:
    first, second, fix, *rest = screen(FINE, ARGV).splitlines()
    assert first == "ok       url      Here."
    assert second == "warning  version  Old."
    assert fix.split() == ["->", "Renew", "it."]
    assert json.loads("\n".join(rest[2:])) == acpx_config(ARGV)


def test_after_a_failure_acpx_is_told_nothing() -> None:
    findings = (*FINE, failed("auth", AUTH, "No.", "Yes."))
    assert "acpx" not in screen(findings, ARGV)
    assert json.loads(as_json(findings, ARGV))["acpx"] is None


def test_json_has_all_of_it() -> None:
    told = json.loads(as_json((*FINE, failed("auth", AUTH, "No.", "Yes.")), ARGV))
    assert (told["version"], told["exit"]) == (VERSION, AUTH)
    assert told["findings"][2] == {
        "name": "auth",
        "state": "failed",
        "sentence": "No.",
        "fix": "Yes.",
    }


def test_what_others_have_said_moves_no_cursor() -> None:
    shown = screen((Finding("auth", good("", "").state, "a\x1b[2Jb\nc"),), ARGV)
    assert "\x1b" not in shown
    assert "b\ufffdc" in shown


def test_settings_become_flags_and_paths_absolute() -> None:
    options = Options({"password_file": "secret", "socket": "/run/s", "mcp": "reject"})
    environ = {"OPENCODE_ACP_MCP": "notice", "OPENCODE_ACP_DRAIN": "interrupt", "PATH": "/bin"}
    argv = agent_argv("/bin/opencode-acp", options, environ, "/home/me")
    assert argv[0] == "/bin/opencode-acp"
    assert dict(zip(argv[1::2], argv[2::2], strict=True)) == {
        "--password-file": "/home/me/secret",
        "--socket": "/run/s",
        "--mcp": "reject",
        "--drain": "interrupt",
    }


def test_the_config_is_one_that_acpx_reads() -> None:
    assert acpx_config(ARGV)["agents"]["opencode"] == {"argv": ARGV}


def test_a_path_at_home_is_found_from_elsewhere() -> None:
    environ = {"HOME": "/home/u", "OPENCODE_ACP_CONFIG": "~/f.toml"}
    argv = agent_argv("c", Options({"password_file": "~/secret"}), environ, "/elsewhere")
    assert argv == ["c", "--password-file", "/home/u/secret", "--config", "/home/u/f.toml"]
