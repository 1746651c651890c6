"""Trim an npm lock file to what Linux x86-64 installs: `trim_lock.py LOCKFILE`.

Versions and checksums stay. Addresses where authors take donations go, and so do the names of
optional builds for other platforms that the lock file has no entry for: `npm ci` refuses a lock
file that names a package without pinning it.
"""

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    path = Path(sys.argv[1])
    lock = json.loads(path.read_text(encoding="utf-8"))
    packages = lock["packages"]
    pinned = {key.rpartition("node_modules/")[2] for key in packages}
    for package in packages.values():
        package.pop("funding", None)
        optional = package.get("optionalDependencies", {})
        for name in [name for name in optional if name not in pinned]:
            del optional[name]
    path.write_text(json.dumps(lock, indent=2) + "\n", encoding="utf-8")
