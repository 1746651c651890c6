"""The version of this distribution: a constant, so that nothing looks it up at start."""

from typing import Final

VERSION: Final = "0.1.0"
