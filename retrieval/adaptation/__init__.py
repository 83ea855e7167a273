"""Adapting an encoder to the documents of one index, and finding out whether that helps."""
