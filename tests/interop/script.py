"""Prompts in the script language of the stubs, alike for all these clients."""

from __future__ import annotations

import json
from typing import Final

from tests.scenarios.stage import shell

ASK: Final = shell("echo hi")
_COLOR: Final = {
    "question": "Which color?",
    "header": "Color",
    "options": [
        {"label": "Red", "description": "like fire"},
        {"label": "Blue", "description": "like water"},
    ],
}

# Thoughts, text and a tool that may be asked for, and text behind it.
WHOLE: Final = f"please @@think 2 && text 3 && {ASK} || text 2@@"
# The tool alone, and text behind it.
ASKING: Final = f"@@{ASK} || text 4@@"
QUESTION: Final = f"@@tool question {json.dumps({'questions': [_COLOR]})} || text 4@@"
ENDLESS: Final = "@@text 400 50@@"
PROMPTS: Final = {
    "whole": WHOLE,
    "asking": ASKING,
    "question": QUESTION,
    "endless": ENDLESS,
}
