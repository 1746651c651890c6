"""The back: HTTP client, event feed, credentials and catalogue of the OpenCode server."""
