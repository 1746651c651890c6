"""A small, strict ACP client: drives an agent over stdio and notes every breach of the protocol."""

from stubs.client.client import AcpClient, AcpClientError, AgentGone, Line, choose
from stubs.client.transcript import Transcript

__all__ = ["AcpClient", "AcpClientError", "AgentGone", "Line", "Transcript", "choose"]
