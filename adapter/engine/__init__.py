"""The joint: feeds the core, performs what it asks for, and serves the clients' requests."""
