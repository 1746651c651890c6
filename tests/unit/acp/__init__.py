"""Tests of the front: framing, JSON-RPC, the peer, the first answer."""
