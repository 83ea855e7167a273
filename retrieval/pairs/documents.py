"""Documents as pairs are made from them: of an index, or of a folder that has none yet.

A document is known by its passages, so that both give the same pairs. Its text is put together again from
them, with the true line numbers. Nothing is embedded here, and nothing written.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import DataError
from likewise.index.chunker import chunk
from likewise.index.language import detect_language
from likewise.index.readers.isolate import ReaderPool
from likewise.index.records import Extraction, Passage, Span
from likewise.index.scan import FileEntry, scan

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder
    from likewise.index.rows import DocumentRow
    from likewise.index.settings import ChunkSettings
    from likewise.index.view import IndexView

_WITH_UNSEEN_LINKS = "html/"  # the reader whose text comes without them

_NEWLINE = re.compile(r"\r\n?|\n")


@dataclass(frozen=True, slots=True)
class Link:
    """A link as a person reads it.

    Attributes:
        text: What it says.
        target: Where it leads, as it is written.
        line: Line of the document, from 1.
    """

    text: str
    target: str
    line: int


def links_in(extraction: Extraction) -> tuple[Link, ...]:
    r"""The links that a reader found and its text does not show.

    Example:
        >>> from likewise.index.readers.base import Source
        >>> from likewise.index.readers.registry import read
        >>> page = b'<h1>Keys</h1><p>See <a href="vault.html">the vault</a>.</p>'
        >>> links_in(read(Source(page, suffix=".html")))
        (Link(text='the vault', target='vault.html', line=3),)
    """
    text = extraction.text
    return tuple(
        Link(link.span.of(text), link.target, 1 + text.count("\n", 0, link.span.start))
        for link in extraction.links
    )


def no_links() -> tuple[Link, ...]:
    """For a document whose text shows its links."""
    return ()


@dataclass(frozen=True)
class PairDocument:
    """A document with its passages.

    Attributes:
        key: Its path as users see it.
        title: Its own title, or "".
        language: ISO 639 code, or "".
        passages: In text order, at least one.
        unseen_links: Finds the links that the text does not show, such as those of HTML.
    """

    key: str
    title: str
    language: str
    passages: tuple[Passage, ...]
    unseen_links: Callable[[], tuple[Link, ...]] = field(default=no_links, compare=False, repr=False)

    @cached_property
    def text(self) -> str:
        r"""The text from the first passage to the last.

        White space between passages is made up: as many newlines as there are, or else spaces.

        Example:
            >>> parts = [Passage(0, "# Keys", Span(0, 6), (1, 1)), Passage(1, "Rotate.", Span(8, 15), (3, 3))]
            >>> PairDocument("keys.md", "Keys", "en", tuple(parts)).text
            '# Keys\n\nRotate.'
        """
        return "".join(self._pieces[0])

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Offset in `text` at which each passage begins; with overlap it may repeat what stands before."""
        return tuple(self._pieces[1])

    def line_at(self, offset: int) -> int:
        """Line of the document, from 1, in which a character of `text` stands."""
        return self.passages[0].lines[0] + bisect_right(self._newlines, offset)

    def lines_of(self, span: Span) -> tuple[int, int]:
        """First and last line of a stretch of `text`."""
        return self.line_at(span.start), self.line_at(max(span.start, span.end - 1))

    def passage_at(self, offset: int) -> Passage:
        """The passage that holds a character of `text`."""
        return self.passages[max(0, bisect_right(self.starts, offset) - 1)]

    def passages_from(self, span: Span) -> Sequence[Passage]:
        """The passages that begin inside a stretch of `text`."""
        return self.passages[bisect_left(self.starts, span.start) : bisect_left(self.starts, span.end)]

    @cached_property
    def _pieces(self) -> tuple[list[str], list[int]]:
        pieces: list[str] = []
        starts: list[int] = []
        length = end = 0
        last = self.passages[0].lines[0]
        for passage in self.passages:
            if pieces and passage.span.start > end:
                newlines = passage.lines[0] - last
                gap = "\n" * newlines if newlines else " " * (passage.span.start - end)
                pieces.append(gap)
                length += len(gap)
            repeated = min(len(passage.text), max(0, end - passage.span.start)) if pieces else 0
            starts.append(length - repeated)
            pieces.append(passage.text[repeated:])
            length += len(pieces[-1])
            end, last = max(end, passage.span.end), max(last, passage.lines[1])
        return pieces, starts

    @cached_property
    def _newlines(self) -> list[int]:
        """Offsets behind each line end."""
        return [match.end() for match in _NEWLINE.finditer(self.text)]


Documents = Mapping[str, PairDocument]


class FileLinks:
    """Finds links that an index does not keep in the files it was made from, while these are unchanged.

    Args:
        pool: Reads the files; it must stay open.
        base: Folder that the keys of the index are relative to.
    """

    def __init__(self, pool: ReaderPool, base: Path) -> None:
        self._pool = pool
        self._base = base

    def __call__(self, row: DocumentRow) -> tuple[Link, ...]:
        """The links of one document that its text does not show."""
        if not row.reader.startswith(_WITH_UNSEEN_LINKS):
            return ()
        content, outcome = self._pool.read(self._base / os.fsdecode(row.path_bytes), row.key)
        same = content is not None and content.content_hash == row.content_hash
        return links_in(outcome) if same and isinstance(outcome, Extraction) else ()


class IndexDocuments(Documents):
    """The documents of an index, read as they are asked for.

    Args:
        view: The index; it must stay open.
        below: Only documents whose key begins with this.
        links: Finds the links that the text of a document does not show; none without it.
    """

    def __init__(
        self,
        view: IndexView,
        *,
        below: str = "",
        links: Callable[[DocumentRow], tuple[Link, ...]] = lambda row: (),
    ) -> None:
        self._view = view
        self._links = links
        self._rows = {row.key: row for row in view.documents() if row.passages and row.key.startswith(below)}

    def __getitem__(self, key: str) -> PairDocument:
        row = self._rows[key]
        passages = tuple(stored.passage for stored in self._view.document_passages(key))
        return PairDocument(key, row.title, row.language, passages, partial(self._links, row))

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def read_folder(
    folder: Path,
    *,
    tokenizer: TextEncoder,
    settings: ChunkSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, PairDocument]:
    """The documents of a folder, read and cut as `likewise index` would; keys are relative to the folder.

    Args:
        folder: What to read; hidden and ignored files are left out.
        tokenizer: The encoder that the passages shall fit.
        settings: How to cut.
        progress: Called with the number of files read, and of all.

    Raises:
        SourceError: The folder cannot be read.
        DataError: No file in it gives any text.
    """
    found = [entry for entry in scan(folder, base=folder) if isinstance(entry, FileEntry)]
    documents: dict[str, PairDocument] = {}
    with ReaderPool() as pool:
        for number, result in enumerate(pool.read_many((each.path, each.key) for each in found), start=1):
            outcome = result.outcome
            if isinstance(outcome, Extraction):
                passages = tuple(chunk(outcome, tokenizer=tokenizer, settings=settings))
                if passages:
                    language = outcome.language or detect_language(outcome.text)
                    links = partial(tuple[Link, ...], links_in(outcome))
                    documents[result.key] = PairDocument(result.key, outcome.title, language, passages, links)
            if progress is not None:
                progress(number, len(found))
    if not documents:
        raise DataError(
            f"expected documents with text in {folder}, found {len(found)} files and none with any",
            remedy="name a folder of documents; likewise index FOLDER says of each file why it is left out",
        )
    return documents
