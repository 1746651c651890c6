"""The adapter command driven by clients that are not of this project."""
