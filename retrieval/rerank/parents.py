"""Widen hits to what they stand in: the rest of their section, or of their document, up to a size.

A small passage is found best, a larger one is understood best. The text is put together from the neighbouring
passages, so it needs no file; white space between them is rebuilt. A pure step on hits: nothing is searched.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from likewise.errors import UsageError
from likewise.index.records import Passage
from likewise.retrieval.hits import Hit, SearchResult
from likewise.retrieval.rerank.base import ranked
from likewise.retrieval.stretches import Stretch, stretches

if TYPE_CHECKING:
    from likewise.index.records import StoredPassage
    from likewise.retrieval.tokens import TokenCounter

Parent = Literal["section", "document"]

TOKENS = 1000
"""Largest widened hit unless told otherwise, in tokens."""


def expand(
    result: SearchResult,
    document_passages: Callable[[str], Sequence[StoredPassage]],
    *,
    to: Parent,
    counter: TokenCounter,
    tokens: int = TOKENS,
) -> SearchResult:
    """The same hits, each with as much of its section or document around it as fits.

    A hit that a better one already brings along is left out. Scores, ids, and headings stay those of the
    passage that was found.

    Args:
        result: What a search found.
        document_passages: Passages of a document in text order (`IndexView.document_passages`).
        to: `"section"` is everything under the passage's innermost heading, `"document"` everything.
        counter: Counts the tokens.
        tokens: Most tokens of a widened hit; a passage that is larger stays as it is.

    Raises:
        UsageError: `to` or `tokens` makes no sense.
    """
    if to not in ("section", "document"):
        raise UsageError(f"expected to expand to section or document, found {to!r}")
    if tokens < 1:
        raise UsageError(f"expected at least 1 token, found {tokens}")
    widened: list[Hit] = []
    brought: set[int] = set()
    for hit in result.hits:
        if hit.passage_id in brought:
            continue
        stretch = _around(hit.passage, document_passages(hit.path), to, counter, tokens)
        brought.update(piece.passage.id for piece in stretch.pieces)
        widened.append(replace(hit, passage=_as_passage(hit.passage, stretch)))
    return replace(result, hits=ranked(widened))


def _around(
    found: StoredPassage, passages: Sequence[StoredPassage], to: Parent, counter: TokenCounter, tokens: int
) -> Stretch:
    """The longest run of passages around the one that was found; it grows to both sides in turn."""
    (best,) = stretches([found])
    places = [place for place, passage in enumerate(passages) if passage.id == found.id]
    if not places:
        return best  # the document has changed since
    headings = found.passage.headings
    inside = [
        to == "document" or passage.passage.headings[: len(headings)] == headings for passage in passages
    ]
    first = last = places[0]
    sides = [1, -1]
    while sides:
        side = sides.pop(0)
        place = last + 1 if side > 0 else first - 1
        if not (0 <= place < len(passages) and inside[place]):
            continue
        joined = stretches(passages[min(first, place) : max(last, place) + 1])
        if len(joined) != 1 or counter.count(joined[0].text) > tokens:
            continue
        (best,) = joined
        first, last = min(first, place), max(last, place)
        sides.append(side)
    return best


def _as_passage(found: StoredPassage, stretch: Stretch) -> StoredPassage:
    pages = stretch.pages
    passage = Passage(
        found.passage.ordinal,
        stretch.text,
        stretch.span,
        stretch.lines,
        pages[0] if pages else None,
        found.passage.headings,
    )
    return replace(found, passage=passage)
