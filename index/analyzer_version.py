"""The version of the analyser, apart from it: asking for it must not load stemmers."""

from __future__ import annotations

ANALYZER_VERSION = "3"
"""Changes with every change of a term, or of what terms are made of: an index made by an older one is built
again."""
