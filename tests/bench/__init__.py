"""Benchmarks: `make bench` runs each module, which prints its numbers and fails past its bound.

They are no tests: a number says something on a quiet machine only.
"""
