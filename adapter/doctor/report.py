"""The findings for people and for programs, and how acpx is told of the agent. Pure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from adapter.commands.screen import plain
from adapter.doctor.findings import Finding, exit_code
from adapter.options import Options
from adapter.settings.table import SETTINGS, Kind
from contract.attach import at_home
from contract.version import VERSION

AGENT: Final = "opencode"


def agent_argv(
    command: str, options: Options, environ: Mapping[str, str], directory: str
) -> list[str]:
    """The command of an agent with the settings of this command line and environment.

    acpx may be started elsewhere and with another environment: settings become flags, and paths
    absolute, as seen from `directory`. What the configuration file says is found there again.
    """
    argv = [command]
    for setting in SETTINGS:
        value = options.given.get(setting.name) or environ.get(setting.variable)
        if value:
            if setting.kind is Kind.PATH:
                value = os.path.join(directory, at_home(value, environ.get("HOME", "")))
            argv += [setting.flag, value]
    return argv


def acpx_config(argv: Sequence[str]) -> dict[str, Any]:
    """`~/.acpx/config.json` (acpx facts, section 2: there is no environment for an agent)."""
    return {"defaultAgent": AGENT, "agents": {AGENT: {"argv": list(argv)}}}


def screen(findings: Sequence[Finding], argv: Sequence[str]) -> str:
    """For a terminal, with a newline at its end."""
    width = max(len(finding.name) for finding in findings)
    lines = []
    for one in findings:
        lines.append(f"{one.state.value:<8} {one.name:<{width}}  {plain(one.sentence)}")
        if one.fix:
            lines.append(f"{'':<8} {'':<{width}}  -> {plain(one.fix)}")
    if exit_code(findings) == 0:
        config = json.dumps(acpx_config(argv), indent=2)
        lines += ["", "~/.acpx/config.json for this:", *config.splitlines()]
    return "".join(f"{line}\n" for line in lines)


def as_json(findings: Sequence[Finding], argv: Sequence[str]) -> str:
    """In ASCII, so that it may be printed wherever it is read; `acpx` is null after a failure."""
    code = exit_code(findings)
    told = {
        "version": VERSION,
        "exit": code,
        "findings": [
            {"name": one.name, "state": one.state.value, "sentence": one.sentence, "fix": one.fix}
            for one in findings
        ],
        "acpx": acpx_config(argv) if code == 0 else None,
    }
    return json.dumps(told, indent=2) + "\n"
