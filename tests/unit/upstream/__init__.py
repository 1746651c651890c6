"""Tests of the back: HTTP, the feed, credentials, the catalogue."""
