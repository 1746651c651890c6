"""Tests of adapter/daemon/admin, through a real Unix socket."""
