"""The rules of a turn, without any I/O: state and input give state and outputs."""
