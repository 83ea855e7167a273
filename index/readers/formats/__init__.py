"""One module per format family, each with a `READER`; `registry` finds whatever stands here."""
