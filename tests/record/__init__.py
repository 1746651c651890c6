"""`make record`: full recordings of the scripted scenarios on the real server.

They go to tests/data/recordings/NAME.jsonl, one JSON object a line, in the order of `at`:

    {"recording": NAME, "server": VERSION, "session": ID, "directory": DIR}    the first line
    {"at": S, "line": TEXT}                          a line of the feed, heartbeats too
    {"at": S, "until": S, "did": WHAT, "path": PATH, "body": {}, "status": N}
                                                     a request, from sending to its answer
    {"at": S, "until": S, "heard": N, "reads": {}}   one reading: info, inbox, active, message,
                                                     permission, form and children, in this order;
                                                     what equals the reading before is left out

`at` and `until` are seconds since the start; `heard` counts the feed lines with data that had
come when the reading began. Paths of the machine that recorded are replaced.
"""
