"""Why the daemon does not start, or does not serve a client: an exit code and one sentence."""

from __future__ import annotations

from contract.attach import ANSWER_BYTES
from contract.errors import Plain


class Refusal(Plain, Exception):
    """`code` is an exit code of `contract.attach`; `str()` is one sentence for the user."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code

    def line(self) -> bytes:
        """The answer to a hello: one line of at most `ANSWER_BYTES`."""
        sentence = " ".join(str(self).split())
        head = f"{self.code} {sentence}".encode("utf-8", "replace")
        return head[: ANSWER_BYTES - 1] + b"\n"
