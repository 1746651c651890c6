"""Benchmarks: each prints its number and fails past its bound."""
