"""Tests of what the two sides say."""
