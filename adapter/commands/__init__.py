"""The subcommands of `opencode-acp`, one module each: `ABOUT`, `arguments(parser)`, `run(given)`."""
