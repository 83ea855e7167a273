"""Cut a document into passages that an encoder takes whole and a person can cite.

Guarantees, whatever the text and the tokenizer:

- what is embedded (context line and passage) never has more tokens than the encoder takes;
- `span.of(text) == passage.text`, spans ascend, and without overlap they do not touch each other;
- every character of the body that is not white space lies in some passage; no passage is empty or edged by
  white space;
- no passage crosses a page, so that its page number is exact.

Time is linear: the text is worked off in blocks, each tokenised in bounded windows and packed by `packing`.
Reading files and embedding are not done here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from likewise.index.breaks import Outline, break_within, count_newlines, find_breaks
from likewise.index.context_lines import ContextLines
from likewise.index.packing import Atoms, Strength, coalesce, pack
from likewise.index.records import Extraction, Passage, Span
from likewise.index.settings import ChunkSettings, ChunkSize
from likewise.index.tokens import TokenWeights, count_tokens

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder

_BLOCK = 400_000
_VERIFIED_TOGETHER = 512


class Chunk(NamedTuple):
    """A passage and what is embedded for it.

    Attributes:
        passage: The passage.
        embedded: Context line and text: never longer than the encoder takes.
    """

    passage: Passage
    embedded: str


def chunk(
    extraction: Extraction, *, tokenizer: TextEncoder, settings: ChunkSettings | None = None
) -> list[Passage]:
    r"""Passages of a document, in text order.

    Args:
        extraction: The document.
        tokenizer: The encoder that will embed the passages.
        settings: How to cut; the defaults if None.

    Raises:
        UsageError: The wished length is more than the encoder takes.

    Example:
        >>> from likewise.embedder.hash_encoder import HashEncoder
        >>> guide = Extraction("Keys rotate yearly. Ask the owner first.\n", reader="text/1")
        >>> [passage.text for passage in chunk(guide, tokenizer=HashEncoder())]
        ['Keys rotate yearly. Ask the owner first.']
    """
    return [piece.passage for piece in chunk_with_context(extraction, tokenizer=tokenizer, settings=settings)]


def chunk_with_context(
    extraction: Extraction, *, tokenizer: TextEncoder, settings: ChunkSettings | None = None
) -> Iterator[Chunk]:
    """Passages of a document with the text to embed, in text order and made as they are asked for.

    Args:
        extraction: The document.
        tokenizer: The encoder that will embed the passages.
        settings: How to cut; the defaults if None.

    Raises:
        UsageError: The wished length is more than the encoder takes.
    """
    settings = settings or ChunkSettings()
    sizes = settings.sizes(tokenizer.passage_tokens)
    return _Chunker(extraction, tokenizer, settings, sizes).chunks()


def context_lines(title: str, tokenizer: TextEncoder, settings: ChunkSettings) -> ContextLines:
    """The context lines of a document with this title: at most a quarter of a passage each."""
    most = settings.sizes(tokenizer.passage_tokens).most // 4 if settings.heading_context else 0
    return ContextLines(title, tokenizer, most)


class _Chunker:
    """One document on its way to passages."""

    def __init__(
        self, extraction: Extraction, tokenizer: TextEncoder, settings: ChunkSettings, sizes: ChunkSize
    ) -> None:
        self._extraction = extraction
        self._text = extraction.text
        self._tokenizer = tokenizer
        self._sizes = sizes
        self._outline = Outline(extraction)
        self._pages = sorted({0, *(at for at in extraction.page_starts if 0 <= at < len(self._text))})
        self._context = context_lines(extraction.title, tokenizer, settings)

    def chunks(self) -> Iterator[Chunk]:
        ordinal = line = 0
        position = 0  # `line` is that of this offset, from 0
        waiting: list[tuple[int, int]] = []
        for block in [*self._blocks(), None]:
            waiting += [] if block is None else self._plan(*block)
            if block is not None and len(waiting) < _VERIFIED_TOGETHER:
                continue
            for start, end, embedded in self._fit(waiting):
                line += count_newlines(self._text, position, start)
                position = start
                last = line + count_newlines(self._text, start, end)
                yield Chunk(
                    Passage(
                        ordinal,
                        self._text[start:end],
                        Span(start, end),
                        (line + 1, last + 1),
                        bisect_right(self._pages, start) if self._extraction.page_starts else None,
                        self._outline.path_at(start),
                    ),
                    embedded,
                )
                ordinal += 1
            waiting = []

    # -- planning ----------------------------------------------------------------------------------------

    def _blocks(self) -> Iterator[tuple[int, int]]:
        """Stretches that are planned on their own: pages, and long pages in parts."""
        for start, end in zip(self._pages, [*self._pages[1:], len(self._text)], strict=True):
            start = min(max(start, self._extraction.body_start), end)
            while end - start > _BLOCK:
                cut = self._block_end(start)
                yield start, cut
                start = cut
            yield start, end

    def _block_end(self, start: int) -> int:
        """The last good place to cut before a block gets too long."""
        most = start + _BLOCK
        least = start + _BLOCK // 2
        heading = bisect_left(self._outline.starts, most) - 1
        if heading >= 0 and self._outline.starts[heading] > least:
            return self._outline.starts[heading]
        for separator in ("\n\n", "\r\n\r\n", "\n", "\r"):
            found = self._text.rfind(separator, least, most)
            if found >= 0:
                return found + len(separator)
        return break_within(self._text, most - 1, least, most)[0]

    def _plan(self, start: int, end: int) -> list[tuple[int, int]]:
        """Trimmed, non-empty ranges that cover a block."""
        start, end = _trimmed(self._text, start, end)
        if start == end:
            return []
        sizes = self._sizes
        weights = TokenWeights(self._text, start, end, self._tokenizer)
        offsets, strengths = find_breaks(self._extraction, self._outline, start, end)
        offsets, strengths = [start, *offsets, end], [Strength.HEADING, *strengths, Strength.HEADING]
        counted = weights.before(offsets)
        room = max(1, sizes.most - sizes.overlap)
        kept = coalesce(counted, strengths, grain=max(1, sizes.target // 24), most=room)
        offsets, strengths = [offsets[k] for k in kept], [strengths[k] for k in kept]
        budgets = self._budgets(offsets[:-1])
        offsets, strengths = self._cut_long(weights, offsets, strengths, budgets)
        counted = weights.before(offsets)
        budgets = self._budgets(offsets[:-1])
        atoms = Atoms(counted, strengths, [max(1, budget - sizes.overlap) for budget in budgets])
        target = max(1, min(sizes.target - sizes.overlap, room))
        cuts = pack(atoms, target=target, most=room)
        ranges, least = [], 0
        for first, last in pairwise(cuts):
            begin = self._overlapped(first, least, counted, strengths) if sizes.overlap else first
            least = first + 1
            a, b = _trimmed(self._text, offsets[begin], offsets[last])
            if a < b:
                ranges.append((a, b))
        return ranges

    def _overlapped(
        self, first: int, least: int, counted: Sequence[int], strengths: Sequence[Strength]
    ) -> int:
        """Atom, `least` or later, at which a passage begins that repeats the end of the one before it."""
        at = first
        while (
            at > least
            and Strength.SENTENCE <= strengths[at] <= Strength.PARAGRAPH
            and strengths[at - 1] >= Strength.SENTENCE
            and counted[first] - counted[at - 1] <= self._sizes.overlap
        ):
            at -= 1
        return at

    def _cut_long(
        self,
        weights: TokenWeights,
        offsets: Sequence[int],
        strengths: Sequence[Strength],
        budgets: Sequence[int],
    ) -> tuple[list[int], list[Strength]]:
        """Cut atoms that are longer than a passage may be into pieces of a few words."""
        counted = weights.before(offsets)
        step = max(1, self._sizes.target // 8)
        cut, cut_strengths = [offsets[0]], [strengths[0]]
        for k, budget in enumerate(budgets):
            start, end = offsets[k], offsets[k + 1]
            if counted[k + 1] - counted[k] > max(1, budget - self._sizes.overlap):
                least = self._outline.body_after(start)
                if least >= end or weights.before([least])[0] - counted[k] > budget // 2:
                    least = start  # the heading itself is too long
                token = counted[k] + step
                while token < counted[k + 1]:
                    wanted = weights.start_of(token)
                    if wanted > least:
                        offset, strength = break_within(self._text, wanted, least, end)
                        if cut[-1] < offset < end:
                            cut.append(offset)
                            cut_strengths.append(strength)
                    token += step
            cut.append(end)
            cut_strengths.append(strengths[k + 1])
        return cut, cut_strengths

    # -- context and exact fit ---------------------------------------------------------------------------

    def _budgets(self, starts: Sequence[int]) -> list[int]:
        """Tokens of text for passages that begin at these offsets."""
        lines = self._context.tokens([self._outline.path_at(start) for start in starts])
        return [self._sizes.most - tokens for tokens in lines]

    def _fit(self, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int, str]]:
        """The ranges with their embedded text, halved where the exact count is above the limit."""
        embedded = [self._embedded(start, end) for start, end in ranges]
        for (start, end), text, tokens in zip(
            ranges, embedded, count_tokens(embedded, self._tokenizer), strict=True
        ):
            if tokens <= self._sizes.limit:
                yield start, end, text
            elif end - start > 1:
                yield from self._fit(self._halves(start, end))
            else:
                yield start, end, self._text[start:end]  # one character: all that is left is its context

    def _embedded(self, start: int, end: int) -> str:
        return self._context.compose(self._outline.path_at(start), self._text[start:end])

    def _halves(self, start: int, end: int) -> list[tuple[int, int]]:
        offsets, strengths = find_breaks(self._extraction, self._outline, start, end)
        middle, quarter = (start + end) // 2, (end - start) // 4
        near = [k for k, offset in enumerate(offsets) if abs(offset - middle) <= quarter]
        if near:
            cut = offsets[max(near, key=lambda k: (strengths[k], -abs(offsets[k] - middle)))]
        else:
            cut = break_within(self._text, middle, start + 1, end - 1)[0]
        halves = (_trimmed(self._text, start, cut), _trimmed(self._text, cut, end))
        return [(a, b) for a, b in halves if a < b]


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """The range without white space at its ends; empty ranges collapse."""
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return start, end
