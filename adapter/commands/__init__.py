"""Subcommands of `opencode-acp`, a module each: `arguments(parser)` and `run(given)`."""
