"""The ACP adapter: the commands, the front (acp), the rules (core), the back (upstream)."""
