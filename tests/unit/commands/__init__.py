"""Tests of adapter/commands."""
