"""Query -> hits -> context with citations -> generator."""
