"""The `likewise` command: thin commands over embedder, index and retrieval."""
