"""Settings: one table, and what flags, environment and file say by it."""
