"""The plain records that readers, chunker, catalogue and retrieval hand to each other.

Nothing here opens a file or a database. Offsets count Python characters (Unicode code points) in
`Extraction.text`, spans are half-open, lines and pages count from 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class DocumentState(StrEnum):
    """How reading a file ended. Every file that a scan finds ends in exactly one of these."""

    OK = "ok"
    EMPTY = "empty"
    NEEDS_OCR = "needs-ocr"
    ENCRYPTED = "encrypted"
    UNSUPPORTED = "unsupported"
    TOO_LARGE = "too-large"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open character range `[start, end)` of a text.

    Example:
        >>> Span(2, 4).of("abcdef")
        'cd'
    """

    start: int
    end: int

    def of(self, text: str) -> str:
        """The characters of `text` that the span covers."""
        return text[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading in the text of a document.

    Attributes:
        span: The heading's own line(s) in `Extraction.text`, markers included.
        level: 1 is the outermost.
        title: The heading as a person reads it, without markers.
    """

    span: Span
    level: int
    title: str


@dataclass(frozen=True, slots=True)
class Link:
    """A stretch of text that leads somewhere.

    Attributes:
        span: What a person reads.
        target: Where it leads, as the document says it.
    """

    span: Span
    target: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a reader got out of one file: the text that spans refer to, and its structure.

    Attributes:
        text: The whole text. For text formats it is the decoded file itself, so spans are places in the
            file; for PDF, DOCX, HTML and the like it is what a person would read.
        reader: Name and version of the reader, such as `"markdown/1"`; a new version reads again.
        title: The document's own title, or "" where it has none.
        language: ISO 639 code of the main language as detected or declared ("en", "zh", "ja"), or "".
        headings: In text order.
        page_starts: Offsets at which pages begin, the first being 0; empty for formats without pages.
        breaks: Offsets before which a passage had better end (notebook cells, records, functions);
            ascending, optional.
        verbatim: Spans that read as lines rather than prose (code, tables); ascending.
        links: Ascending, for formats whose text does not show where its links lead; not stored in an index.
        metadata: Front matter and document properties, JSON values only.
        body_start: Offset at which the text proper begins; what stands before it was read into `metadata` and
            lies in no passage.
        encoding: Encoding that the bytes were decoded with, or "" for binary formats.
        lossy: Number of characters that could not be decoded and were replaced.
        notes: Remarks a person should see ("page 3 could not be read").
    """

    text: str
    reader: str
    title: str = ""
    language: str = ""
    headings: tuple[Heading, ...] = ()
    page_starts: tuple[int, ...] = ()
    breaks: tuple[int, ...] = ()
    verbatim: tuple[Span, ...] = ()
    links: tuple[Link, ...] = ()
    metadata: Mapping[str, Json] = field(default_factory=dict)
    body_start: int = 0
    encoding: str = ""
    lossy: int = 0
    notes: tuple[str, ...] = ()

    @property
    def body(self) -> str:
        """The text without what was read into `metadata`."""
        return self.text[self.body_start :]


@dataclass(frozen=True, slots=True)
class Skip:
    """A file that gives no passages, and why.

    Attributes:
        state: Any state but `OK`.
        reason: One sentence for a person ("needs a password").
        reader: The reader that decided, or "" when none was tried.
    """

    state: DocumentState
    reason: str
    reader: str = ""


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document that is embedded and found as a unit.

    Attributes:
        ordinal: Position among the document's passages, from 0.
        text: Exactly `span.of(extraction.text)`.
        span: Place in `Extraction.text`.
        lines: First and last line of the span in `Extraction.text`, from 1.
        page: Page on which the span starts, from 1, or None for formats without pages.
        headings: Titles from the outermost to the innermost heading that the passage stands under. They are
            embedded with the text (see `passage_context`) but are not part of it.
    """

    ordinal: int
    text: str
    span: Span
    lines: tuple[int, int]
    page: int | None = None
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as the catalogue returns it, with what a citation needs.

    Attributes:
        id: Never reused; a changed text gets a new one.
        key: Key of its document: its path as users see it.
        title: Title of its document, or "".
        language: Language of its document, or "".
        content_hash: SHA-256 of the file's bytes when it was read, hexadecimal.
        passage: The passage itself.
        metadata: The document's metadata.
    """

    id: int
    key: str
    title: str
    language: str
    content_hash: str
    passage: Passage
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Filter:
    """Which documents may answer. All given conditions must hold; an empty filter allows everything.

    Attributes:
        paths: Globs over document keys (`docs/**/*.md`); one must match.
        exclude_paths: Globs of which none may match.
        suffixes: Lower-case, with the dot; one must match.
        states: Document states; one must match.
        languages: ISO 639 codes; one must match.
        title: Text that the title contains, case-insensitively.
        modified_from: Earliest modification time, seconds since the epoch, inclusive.
        modified_before: Modification time that is already too late, exclusive.
        metadata: Pairs (dotted key, wanted value as text). A list value matches if one of its items does.
    """

    paths: tuple[str, ...] = ()
    exclude_paths: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()
    states: tuple[DocumentState, ...] = ()
    languages: tuple[str, ...] = ()
    title: str = ""
    modified_from: float | None = None
    modified_before: float | None = None
    metadata: tuple[tuple[str, str], ...] = ()

    def __bool__(self) -> bool:
        return self != Filter()


def passage_context(title: str, headings: tuple[str, ...]) -> str:
    """The line that is embedded in front of a passage's text: where in which document it stands.

    Example:
        >>> passage_context("Guide", ("Guide", "Keys"))
        'Guide > Keys'
        >>> passage_context("", ())
        ''
    """
    parts = [title, *headings] if title and title not in headings[:1] else list(headings)
    return " > ".join(part for part in parts if part)
