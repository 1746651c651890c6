"""One daemon, many clients, mixed work and faults for a while: nothing may grow, leak or be lost.

`make soak` runs ten minutes, the tests run less of it (test_soak.py).
"""
