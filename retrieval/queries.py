"""What a query may be: the checks that come before any search.

Nothing is cut here. A query either passes, is refused with a `QueryError`, or is known to have nothing to
look for.
"""

from __future__ import annotations

import unicodedata

from likewise.errors import QueryError, UsageError

MAX_QUERY_BYTES = 100_000
"""Longest query, in UTF-8 bytes. Longer texts are documents: index them and ask for similar passages."""

MAX_QUERY_TERMS = 512
"""Most distinct words that the lexical side looks up; the rest of a query is left out, with a notice."""


def check_query(query: str) -> str:
    r"""The query without surrounding white space.

    Raises:
        QueryError: Not a string, empty, longer than `MAX_QUERY_BYTES`, or bytes that are no text.

    Example:
        >>> check_query("  signing keys\n")
        'signing keys'
        >>> check_query("  ")
        Traceback (most recent call last):
        ...
        likewise.errors.QueryError: expected a query, found only white space
          try: likewise search "how do I rotate a signing key"
    """
    if not isinstance(query, str):
        raise QueryError(f"expected the query as a string, found {type(query).__name__}")
    stripped = query.strip().strip("\0")
    if not stripped:
        found = "only white space" if query else "an empty string"
        raise QueryError(
            f"expected a query, found {found}", remedy='likewise search "how do I rotate a signing key"'
        )
    try:
        size = len(stripped.encode("utf-8"))
    except UnicodeEncodeError:
        # Python turns undecodable bytes of a command line into lone surrogates.
        raise QueryError(
            "expected a query in valid Unicode, found bytes that the terminal's encoding cannot decode",
            remedy="set the terminal and LANG (or PYTHONUTF8=1) to UTF-8",
        ) from None
    if size > MAX_QUERY_BYTES:
        raise QueryError(
            f"expected a query of at most {MAX_QUERY_BYTES:,} bytes, found {size:,}",
            remedy="ask with the part that matters, or index the text and use `likewise similar FILE`",
        )
    return stripped


def has_content(query: str) -> bool:
    """Whether there is anything to look for: a letter, a digit, an emoji, any symbol but punctuation.

    Example:
        >>> has_content("?! ... 。"), has_content("C++"), has_content("🔑"), has_content("鍵")
        (False, True, True, True)
    """
    return any(unicodedata.category(character)[0] in "LNS" for character in query)


def check_k(k: int) -> int:
    """The number of hits to return.

    Raises:
        UsageError: `k` is not a whole number of at least 1.
    """
    if isinstance(k, bool) or not isinstance(k, int):
        raise UsageError(f"expected k as a whole number, found {k!r}")
    if k < 1:
        raise UsageError(f"expected k of at least 1, found {k}", remedy="k=10")
    return k


def check_relevance(least: float) -> float:
    """The least relevance that a hit may have.

    Raises:
        UsageError: It is no number in [0, 1].
    """
    if isinstance(least, bool) or not isinstance(least, (int, float)) or not 0 <= least <= 1:
        raise UsageError(f"expected a relevance in [0, 1], found {least!r}", remedy="min_relevance=0.5")
    return least
