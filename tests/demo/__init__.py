"""The demonstration of `make run`."""
