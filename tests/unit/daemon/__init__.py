"""Tests of adapter/daemon, through real Unix sockets."""
