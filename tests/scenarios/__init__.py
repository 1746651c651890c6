"""Whole conversations over real stdio; each runs on the stub and on the real server."""
