"""What becomes of a turn under each fault, in each of its phases, on each transport.

`make matrix` runs every cell and writes docs/fault-matrix.md and its picture; the tests run them
and hold them to `table.py`.
"""
