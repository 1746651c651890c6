"""The stub is held to the real server by random plays: the same events and the same rows.

What is left out of the comparison, and why, stands in `seen.py`.
"""
