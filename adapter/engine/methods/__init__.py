"""The ACP methods, one file for each thing that a client does with a session."""
