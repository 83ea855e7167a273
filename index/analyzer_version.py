"""The version of the analyser, apart from it: asking for it must not load stemmers."""

from __future__ import annotations

ANALYZER_VERSION = "2"
"""Changes with every change of a term, so that an index made by an older analyser is built again."""
