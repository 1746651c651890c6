"""Settings as flags of a subcommand."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from adapter.options import Options
from adapter.settings.table import BY_NAME


def add_settings(parser: argparse.ArgumentParser, names: Iterable[str]) -> None:
    """A flag for each of these settings; one that is not given is None."""
    for name in names:
        setting = BY_NAME[name]
        parser.add_argument(
            setting.flag,
            dest=name,
            choices=setting.words or None,
            metavar=setting.metavar,
            help=setting.about.replace("%", "%%"),
        )


def options(given: argparse.Namespace) -> Options:
    """The settings that stand on the command line."""
    values = {name: getattr(given, name, None) for name in BY_NAME}
    return Options({name: value for name, value in values.items() if value is not None})
