"""Which passages may answer a query: its filters, its phrases and its exclusions, before anything is ranked.

The same for every mode of search, because it only makes the set of passages that a search ranks. Conditions
of different origin (the caller's filter, the query's fields) must all hold.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from likewise.index.analyzer import analyze
from likewise.index.phrases import Phrase, is_plain_word
from likewise.index.records import Filter
from likewise.retrieval.fusion.base import Ids

if TYPE_CHECKING:
    from likewise.index.view import IndexView
    from likewise.retrieval.grammar import ParsedQuery


def allowed_passages(view: IndexView, query: ParsedQuery, filter: Filter, notices: list[str]) -> Ids | None:
    """Ids of the passages that may answer, ascending; None if all may.

    Args:
        view: The index.
        query: Brings phrases, exclusions and a filter.
        filter: The caller's own.
        notices: Told why no passage is left, if none is.
    """
    allowed: Ids | None = None
    for condition in (filter, query.filter):
        if condition:
            found = view.select(condition)
            allowed = _both(allowed, found)
    if _is_empty(allowed):
        notices.append("the filter matches no passage")
        return allowed
    for phrase in query.phrases:
        within = "" if allowed is None else ", given the other conditions"
        allowed = view.containing(Phrase(phrase), allowed)
        if _is_empty(allowed):
            notices.append(f"no passage contains the phrase '{phrase}'{within}")
            return allowed
    for wanted in (*map(_excluded, query.excluded), *map(Phrase, query.excluded_phrases)):
        gone = view.containing(wanted, allowed)
        if len(gone):
            allowed = np.setdiff1d(view.everything() if allowed is None else allowed, gone)
    if _is_empty(allowed):
        notices.append("every passage contains what the query excludes")
    return allowed


def _excluded(word: str) -> str | Phrase:
    """A term, which stands for all inflections; a phrase where the lexical index has no such single term."""
    return analyze(word)[0] if is_plain_word(word) else Phrase(word)


def _both(first: Ids | None, second: Ids | None) -> Ids | None:
    if first is None or second is None:
        return second if first is None else first
    return np.intersect1d(first, second, assume_unique=True)


def _is_empty(allowed: Ids | None) -> bool:
    return allowed is not None and not len(allowed)
