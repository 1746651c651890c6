"""Bounds of what a client may send that nobody turns, each with what happens at it.

Those that an operator may lower stand in `adapter.limits`.
"""

from __future__ import annotations

from typing import Final

# Characters of a request's id, which its answer repeats; a longer one is -32600 under id null.
ID_CHARS: Final = 1024
# Bytes of one decoded attachment that is no image: OpenCode 2.0.15 answers 500 to a text or PDF of
# 6.4 MB and takes one of 6.0 MB, while an image of 14 MB passes.
DOCUMENT_BYTES: Final = 6 * 1000 * 1000
# Blocks of one prompt; refused with -32053.
PROMPT_BLOCKS: Final = 256
# MCP servers that one session may bring; refused with -32053, nothing is opened.
MCP_SERVERS: Final = 16
# Characters of a cursor of session/list, sent or taken back; a longer one is -32602.
CURSOR_CHARS: Final = 4096
