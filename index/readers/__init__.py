"""Readers: one file per family of formats, run in an isolated worker process."""
