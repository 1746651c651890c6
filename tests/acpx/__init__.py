"""The real acpx in front of the adapter and the real server."""
