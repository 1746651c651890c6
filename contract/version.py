"""The version of this distribution: a constant, so that nothing looks it up at start.

Without annotations: the relay imports this, and `typing` alone would double its time to start.
"""

VERSION = "0.1.0"
