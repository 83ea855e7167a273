"""Documents as pairs are made from them: of an index, or of a folder that has none yet.

A document is known by its passages, so that both give the same pairs. Its text is put together again from
them, with the true line numbers. Nothing is embedded here, and nothing written.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
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
    from likewise.index.settings import ChunkSettings
    from likewise.index.view import IndexView

_NEWLINE = re.compile(r"\r\n?|\n")


@dataclass(frozen=True)
class PairDocument:
    """A document with its passages.

    Attributes:
        key: Its path as users see it.
        title: Its own title, or "".
        language: ISO 639 code, or "".
        passages: In text order, at least one.
    """

    key: str
    title: str
    language: str
    passages: tuple[Passage, ...]

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


class IndexDocuments(Documents):
    """The documents of an index, read as they are asked for.

    Args:
        view: The index; it must stay open.
        below: Only documents whose key begins with this.
    """

    def __init__(self, view: IndexView, *, below: str = "") -> None:
        self._view = view
        rows = [row for row in view.documents() if row.passages and row.key.startswith(below)]
        self._languages = {row.key: (row.title, row.language) for row in rows}

    def __getitem__(self, key: str) -> PairDocument:
        title, language = self._languages[key]
        stored = self._view.document_passages(key)
        return PairDocument(key, title, language, tuple(each.passage for each in stored))

    def __iter__(self) -> Iterator[str]:
        return iter(self._languages)

    def __len__(self) -> int:
        return len(self._languages)


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
                    documents[result.key] = PairDocument(result.key, outcome.title, language, passages)
            if progress is not None:
                progress(number, len(found))
    if not documents:
        raise DataError(
            f"expected documents with text in {folder}, found {len(found)} files and none with any",
            remedy="name a folder of documents; likewise index FOLDER says of each file why it is left out",
        )
    return documents
