"""Stand-ins for the parts around the adapter: server, model, client."""
