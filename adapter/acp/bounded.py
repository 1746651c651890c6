"""What the server says without a bound, cut so that what is built of it fits in one line. Pure.

Bounds are bytes of JSON and not characters: a control character takes six.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from json.encoder import encode_basestring
from typing import Final

DEPTH: Final = 6
ITEMS: Final = 64
KEY_CHARS: Final = 256
# Characters that each member of a container may have, however many there are.
LEAST_SHARE: Final = 64
# Bytes that any value takes besides its text: quotes, keys of ours, the mark of a cut.
OVERHEAD: Final = 64
CLOSED: Final = "…"


class Room:
    """The bytes of JSON that may still be written; what does not fit is cut, with a mark.

    `omitted` are the characters of texts that were cut off.
    """

    def __init__(self, size: int) -> None:
        self._left = size
        self.omitted = 0

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return self._left

    @property
    def is_full(self) -> bool:
        return self._left == 0

    def fits(self, size: int) -> bool:
        """Whether `size` bytes and what any value takes besides are left."""
        return size + OVERHEAD <= self._left

    def take(self, size: int) -> None:
        """Use up `size` bytes."""
        self._left = max(self._left - size, 0)

    def text(self, text: str, limit: int) -> str:
        """At most `limit` characters, fewer where the room ends, and how many are missing."""
        kept = text[:limit]
        size = written(kept)
        if size > self._left:
            sizes = range(len(kept) + 1)
            kept = kept[: bisect_right(sizes, self._left, key=lambda n: written(kept[:n])) - 1]
            size = written(kept)
        self.take(size + OVERHEAD)
        self.omitted += len(text) - len(kept)
        return cut(text, len(kept))

    def value(self, value: object, limit: int, depth: int = DEPTH) -> object:
        """JSON with about `limit` characters of text; long lists and deep nests are closed."""
        if self.is_full:
            return CLOSED
        if isinstance(value, str):
            return self.text(value, limit)
        if not isinstance(value, dict | list | tuple):
            self.take(len(repr(value)))
            return value
        self.take(OVERHEAD)
        if depth == 0:
            return CLOSED
        share = max(limit // max(len(value), 1), LEAST_SHARE)
        if isinstance(value, dict):
            return {
                self.text(str(key), KEY_CHARS): self.value(item, share, depth - 1)
                for key, item in islice(value.items(), ITEMS)
            }
        return [self.value(item, share, depth - 1) for item in value[:ITEMS]]


def cut(text: str, limit: int) -> str:
    """At most `limit` characters and a mark that says how many are missing."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}… [{len(text) - limit} characters more]"


def written(text: str) -> int:
    """Bytes of a text inside of JSON; a lone surrogate takes those of U+FFFD."""
    quoted = encode_basestring(text)
    return len(quoted if quoted.isascii() else quoted.encode("utf-8", "surrogatepass")) - 2
