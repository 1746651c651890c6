"""The front: framing, the JSON-RPC peer, ACP methods and updates."""
