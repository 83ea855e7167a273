"""Numbered, transactional schema migrations of the catalogue."""
