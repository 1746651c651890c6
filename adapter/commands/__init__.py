"""Subcommands of `opencode-acp`, a module each: `ABOUT`, `arguments(parser)`, `run(given)`."""
