"""`opencode-acp config`: what the settings are, where they are from, what is wrong with them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import fields
from typing import Final

from adapter.commands.screen import columns, plain
from adapter.limits import DEFAULTS
from adapter.settings.arguments import add_settings, options
from adapter.settings.faults import faults, strangers
from adapter.settings.table import SETTINGS
from adapter.start import Start, read_start
from contract.attach import OK, USAGE

DEFAULT: Final = "default"
NOWHERE: Final = "none"


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    names = [setting.name for setting in SETTINGS]
    check = actions.add_parser("check", help="say what is wrong with them; 2 if anything is")
    add_settings(check, names)
    check.set_defaults(act=_check)
    show = actions.add_parser("show", help="print what is set, limits included, and where")
    show.add_argument(
        "--effective", action="store_true", help="all that holds, with the defaults of the rest"
    )
    show.add_argument("--json", action="store_true", help="as JSON")
    add_settings(show, names)
    show.set_defaults(act=_show)


def run(given: argparse.Namespace) -> int:
    """0; 2 with a sentence on standard error for each thing that is wrong with the settings."""
    told = faults(options(given), os.environ)
    if told:
        sys.stderr.write("".join(f"opencode-acp: {plain(sentence)}\n" for sentence in told))
        return USAGE
    lines: list[str] = given.act(given, read_start(options(given), os.environ))
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return OK


def _check(_: argparse.Namespace, start: Start) -> list[str]:
    file = f"with {start.config}" if start.config else "without a file"
    return [plain(line) for line in (*strangers(os.environ), f"The settings can be used, {file}.")]


def _show(given: argparse.Namespace, start: Start) -> list[str]:
    rows = effective(start)
    if not given.effective:
        rows = [row for row in rows if row[2] not in (DEFAULT, NOWHERE)]
    if given.json:
        shown = {name: {"value": value, "origin": origin} for name, value, origin in rows}
        return [json.dumps(shown, indent=2)]
    if not rows:
        return ["Nothing is set: --effective shows the defaults."]
    return columns([("SETTING", "VALUE", "FROM"), *rows])


def effective(start: Start) -> list[tuple[str, str, str]]:
    """(name, value, origin) of everything that holds; of the password only where it is from."""
    source = start.credential.source if start.credential is not None else NOWHERE
    known = {
        "server": start.server,
        "config": start.config or "",
        "socket": start.socket,
        "admin_socket": start.admin_socket,
    }
    rows = []
    for setting, value in start.gathered:
        text = known.get(setting.name, value.text)
        origin = value.origin or DEFAULT
        if setting.name == "server" and not value.origin and text != value.text:
            # OpenCode has registered its server together with the password.
            origin = source
        rows.append((setting.name, text or "-", origin))
    rows.append(("password", "***" if start.credential is not None else "-", source))
    for one in fields(DEFAULTS):
        number, highest = getattr(start.limits, one.name), getattr(DEFAULTS, one.name)
        origin = DEFAULT if number == highest else f"[limits] in {start.config}"
        rows.append((f"limits.{one.name}", str(number), origin))
    return rows
