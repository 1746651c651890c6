"""What stands between a client and its answers, looked at one thing after the other."""
