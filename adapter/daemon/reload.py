"""The settings of a running daemon, read again at SIGHUP (O-06).

Flags and environment stay those of the start. A file or a password that cannot be used changes
nothing. A setting that needs another start stays as it is, which is told.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from adapter import config
from adapter.daemon.daemon import Daemon, Terms
from adapter.daemon.process import room_for_clients
from adapter.options import Options
from adapter.settings.agreement import Agreement
from adapter.start import START_ERRORS, Start, read_start
from adapter.upstream.credentials import FOLDER_VARIABLE, PASSWORD_VARIABLES, Credential

logger = logging.getLogger(__name__)

FIXED: Final = ("server", "ca_file", "socket", "admin_socket", "log_format")
"""Only another start takes these."""


class Configuration:
    """What the daemon goes by: `start`, and what follows from it.

    Raises one of `adapter.start.START_ERRORS` for a start that cannot work.
    """

    def __init__(self, options: Options, environ: Mapping[str, str]) -> None:
        self._options = options
        self._environ: Mapping[str, str] = dict(environ)
        self._directory = _directory()
        self.start = read_start(options, self._environ)
        self.settings = self._settings()

    @property
    def log_level(self) -> str:
        return (self.start.log_level or "info").upper()

    def terms(self) -> Terms:
        """Whom the daemon serves; a client is held to the settings that are in force then."""
        uids = self.start.allowed_uids
        agreed = Agreement(self.start, self._directory)
        return Terms(
            allowed_uids=uids if uids is not None else frozenset({os.getuid()}),
            room=room_for_clients(self.settings.limits.connections),
            differs=lambda hello: agreed.differing(hello.settings, hello.cwd, hello.variables),
        )

    def reload(self, daemon: Daemon) -> bool:
        """Read again, and have the daemon go by it; False if the old settings stay."""
        try:
            new = read_start(self._options, self._environ)
        except START_ERRORS as error:
            logger.error("not reloaded, the settings stay as they are: %s", error)
            return False
        self.start = self._kept(new)
        self.settings = self._settings()
        daemon.engine.reconfigure(self.settings)
        daemon.terms = self.terms()
        logging.getLogger().setLevel(self.log_level)
        logger.info("reloaded")
        return True

    def _settings(self) -> config.Settings:
        fix = password_fix(self.start.credential, self._environ.get(FOLDER_VARIABLE))
        return replace(config.settings(self.start), password_fix=fix)

    def _kept(self, new: Start) -> Start:
        """The new start with what the old one has for whatever is fixed."""
        old = self.start
        for name in FIXED:
            if getattr(new, name) != getattr(old, name):
                logger.warning("%s is changed by a restart only, and stays as it is", name)
        credential = new.credential
        if new.server != old.server:
            # A password is never sent to a server that it was not given for.
            credential = old.credential
            logger.warning("the password stays as well: it may be that of the other server")
        kept = {name: getattr(old, name) for name in FIXED}
        return replace(new, credential=credential, **kept)


def password_fix(credential: Credential | None, folder: str | None) -> str:
    """What the operator has to do; `folder` is where the service manager puts credentials.

    It copies them there when it starts a unit, and the environment is that of the start as well.
    """
    source = credential.source if credential is not None else ""
    if folder and source.startswith(f"the file {folder}/"):
        return "correct the file that it was loaded from, then restart the daemon"
    if source in PASSWORD_VARIABLES:
        return "correct it, then restart the daemon"
    return f"correct it there, then reload the daemon (kill -HUP {os.getpid()})"


def _directory() -> str:
    """Where paths of this start begin; empty if it is gone. The next reload may be elsewhere."""
    try:
        return os.getcwd()
    except OSError:
        return ""
