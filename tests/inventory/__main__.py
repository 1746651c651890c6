"""`python -m tests.inventory` writes contract/INVENTORY.md."""

from __future__ import annotations

from stubs.parts import ROOT
from tests.inventory.page import page

if __name__ == "__main__":
    (ROOT / "contract" / "INVENTORY.md").write_text(page(), encoding="utf-8")
