"""What the two sides say: routes, events, ACP messages, limits, error codes."""
