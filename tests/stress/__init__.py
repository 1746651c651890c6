"""Random schedules against a server, with cut feeds and neighbours on the same session.

`python -m tests.stress --schedules N` (`make stress`) runs them on the real server; `--stub` on
the stub. Every turn is checked for a hang, for lost, repeated and foreign text, and for an outcome
that nothing in the schedule explains.
"""
