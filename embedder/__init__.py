"""Text -> vectors, and everything that trains an encoder."""
