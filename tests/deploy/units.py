"""The shipped units, read as the service manager reads them, and run as far as that goes here."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stubs.parts import ROOT

UNITS: Final = ROOT / "deploy" / "systemd"
PASSWORD: Final = "opencode-password"
"""The name of the credential."""
# Where the system units look for what is installed.
INSTALLED: Final = "/usr/local/bin/"

Unit = dict[tuple[str, str], list[str]]
"""The values by section and key, in their order; an empty one takes back those before it."""


def units(flavour: str) -> list[Path]:
    """The units of that flavour: `user` or `system`."""
    return sorted(
        path for path in (UNITS / flavour).iterdir() if path.suffix in (".service", ".socket")
    )


def parse(path: Path) -> Unit:
    """Raises ValueError for a line that is neither a section, a comment nor a value."""
    found: Unit = {}
    section = ""
    for line in path.read_text("utf-8").splitlines():
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1]
            continue
        key, equals, value = line.partition("=")
        if not equals:
            raise ValueError(f"{path.name}: {line}")
        values = found.setdefault((section, key), [])
        values.append(value) if value else values.clear()
    return found


def only(unit: Unit, key: str, section: str = "Service") -> str:
    """The value of a key that stands once."""
    (value,) = unit[section, key]
    return value


@dataclass(frozen=True, slots=True)
class House:
    """Directories of a user of the tests: its home, and its runtime directory."""

    home: Path
    runtime: Path

    def specified(self, text: str) -> str:
        """`text` with the specifiers that the units use."""
        known = {"%h": str(self.home), "%t": str(self.runtime)}
        for specifier, value in known.items():
            text = text.replace(specifier, value)
        if "%" in text:
            raise ValueError(f"a specifier that is not known here: {text}")
        return text

    def command(self, unit: Unit) -> list[str]:
        """What the unit runs, as an argument vector (systemd.service(5), Command lines)."""
        words = shlex.split(only(unit, "ExecStart"))
        return [self.specified(word).replace("$$", "$") for word in words]

    def environment(self, unit: Unit) -> dict[str, str]:
        """What the unit itself sets, and what every unit is given."""
        own = (shlex.split(line) for line in unit.get(("Service", "Environment"), []))
        pairs = (self.specified(pair).partition("=") for words in own for pair in words)
        given = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(self.home)}
        return given | {name: value for name, _, value in pairs}

    def credentials(self, unit: Unit, mode: int = 0o400) -> Path:
        """The directory of the unit's credentials, with the modes that systemd gives them."""
        directory = self.runtime / "credentials"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(mode=0o700)
        for line in unit["Service", "LoadCredential"]:
            name, _, source = line.partition(":")
            content = Path(self.specified(source)).read_bytes()
            (directory / name).write_bytes(content)
            (directory / name).chmod(mode)
        directory.chmod(0o500)
        return directory


def placed(path: Path, directory: Path, programs: Path) -> Path:
    """A copy of a unit whose programs are those of a directory of the tests."""
    copy = directory / path.name
    copy.write_text(path.read_text("utf-8").replace(INSTALLED, f"{programs}/"), encoding="utf-8")
    return copy
