"""Tests of the real parts: OpenCode, acpx."""
