"""`opencode-acp config`: what the settings are, where they are from, what is wrong with them."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import fields

from adapter.commands.screen import columns, plain
from adapter.limits import DEFAULTS
from adapter.settings.arguments import add_settings, options
from adapter.settings.table import SETTINGS
from adapter.start import START_ERRORS, Start, read_start
from contract.attach import OK, USAGE

ABOUT = "check or show the settings"


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    names = [setting.name for setting in SETTINGS]
    check = actions.add_parser("check", help="say what is wrong with them; 2 if anything is")
    add_settings(check, names)
    check.set_defaults(act=_check)
    show = actions.add_parser("show", help="print each setting, limits included, and its origin")
    show.add_argument("--json", action="store_true", help="as JSON")
    add_settings(show, names)
    show.set_defaults(act=_show)


def run(given: argparse.Namespace) -> int:
    """0; 2 with a sentence on standard error for settings that cannot be used."""
    try:
        start = read_start(options(given), os.environ)
    except START_ERRORS as error:
        sys.stderr.write(f"opencode-acp: {error}\n")
        return USAGE
    code: int = given.act(given, start)
    return code


def _check(_: argparse.Namespace, start: Start) -> int:
    file = start.config or "no file"
    sys.stdout.write(f"The settings can be used ({plain(file)}).\n")
    return OK


def _show(given: argparse.Namespace, start: Start) -> int:
    rows = effective(start)
    if given.json:
        shown = {name: {"value": value, "origin": origin} for name, value, origin in rows}
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
        return OK
    for line in columns([("SETTING", "VALUE", "FROM"), *rows]):
        sys.stdout.write(f"{line}\n")
    return OK


def effective(start: Start) -> list[tuple[str, str, str]]:
    """(name, value, origin) of everything that holds; of the password only where it is from."""
    known = {
        "server": start.server,
        "config": start.config or "",
        "socket": start.socket,
        "admin_socket": start.admin_socket,
    }
    rows = []
    for setting, value in start.gathered:
        text = known.get(setting.name, value.text)
        rows.append((setting.name, text or "-", value.origin or "default"))
    source = start.credential.source if start.credential is not None else "none"
    rows.append(("password", "***" if start.credential is not None else "-", source))
    for one in fields(DEFAULTS):
        number, highest = getattr(start.limits, one.name), getattr(DEFAULTS, one.name)
        origin = "default" if number == highest else f"[limits] in {start.config}"
        rows.append((f"limits.{one.name}", str(number), origin))
    return rows
