"""`make record`: full recordings of the scripted scenarios on the real server.

They go to tests/data/recordings/NAME.jsonl, one JSON object a line, in the order of time:

    {"recording": NAME, "server": VERSION, "session": ID, "directory": DIR}    the first line
    {"at": S, "line": TEXT}                        a line of the feed as it came, heartbeats too
    {"at": S, "did": WHAT, ..., "status": N}       a request that was made, noted when answered
    {"at": S, "until": S, "heard": N, "reads": {}} one reading of inbox, active, message,
                                                   permission, form, children and info, in this
                                                   order; what equals the reading before is left out

`at` and `until` are seconds since the start; `heard` counts the feed lines that hold data and
had come when the reading began, so that a replay knows what a reconnected client would have
buffered. Paths of the machine that recorded are replaced.
"""
