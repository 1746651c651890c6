"""The daemon's administration on a Unix socket of its own: health, readiness, metrics, state."""
