"""The daemon: one engine, many clients, each through a Unix socket."""
