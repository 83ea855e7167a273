"""Vocabularies that grow: new tokens for an encoder that lacks them, and the extension that is shipped."""
