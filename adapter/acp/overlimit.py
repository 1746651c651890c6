"""A request that is refused because of a limit: the error answer, and which limit it was."""

from __future__ import annotations

from adapter.limits import Bound
from contract.errors import AcpError, Code


class OverLimit(AcpError):
    """An `AcpError` that names its limit, so that it can be counted where the answer is made."""

    def __init__(self, bound: Bound, error: AcpError) -> None:
        super().__init__(error.code, error.message, error.data)
        self.bound = bound


def over(bound: Bound, message: str) -> OverLimit:
    """-32053 for what is no prompt; a prompt has `data` of its own (`not_sent`)."""
    return OverLimit(bound, AcpError(Code.LIMIT, message))
