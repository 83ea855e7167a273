"""Training pairs from documents that nobody labelled: texts that belong together by where they stand."""
