"""Build a text together with the places in it, for formats whose text is not the file itself."""

from __future__ import annotations

import re
from collections.abc import Mapping

from likewise.index.readers.base import too_much_text
from likewise.index.records import Extraction, Heading, Json, Link, Span

# Characters that no reader wants from a parsed format: C0 controls but tab and line feed, and lone
# surrogates.
_UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


def clean(text: str) -> str:
    r"""Text without control characters and lone surrogates, with `\n` as the only line end.

    Example:
        >>> clean("a\r\nb\x02c\x0bd")
        'a\nbcd'
    """
    if text.isprintable():  # true of most runs of text, and much cheaper than two substitutions
        return text
    return _UNWANTED.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


class TextBuilder:
    r"""Text that grows at its end and knows its headings, verbatim spans, links, breaks and pages.

    Args:
        max_characters: More text than this raises `Unreadable` (too-large).

    Example:
        >>> builder = TextBuilder()
        >>> builder.heading("Keys", level=1)
        >>> builder.block("Rotate them.")
        >>> builder.extraction().text
        'Keys\n\nRotate them.\n'
        >>> builder.extraction().headings[0].span
        Span(start=0, end=4)
    """

    def __init__(self, max_characters: int = 1 << 25) -> None:
        self._max = max_characters
        self._parts: list[str] = []
        self._headings: list[Heading] = []
        self._verbatim: list[Span] = []
        self._links: list[Link] = []
        self._breaks: list[int] = []
        self._pages: list[int] = []
        self.length = 0
        self.notes: list[str] = []

    def add(self, text: str) -> Span:
        """Append characters as they are and tell where they went."""
        start = self.length
        self.length += len(text)
        if self.length > self._max:
            raise too_much_text(self._max)
        self._parts.append(text)
        return Span(start, self.length)

    def block(self, text: str, *, verbatim: bool = False, gap: str = "\n\n") -> None:
        """Append a paragraph (or a verbatim block), parted from what stands before it by `gap`."""
        if not text.strip():
            return
        if self._parts:
            self.add(gap)
        span = self.add(text)
        if verbatim:
            self._verbatim.append(span)

    def heading(self, title: str, *, level: int) -> None:
        """Append a heading on lines of its own."""
        title = title.strip()
        if not title:
            return
        if self._parts:
            self.add("\n\n")
        span = self.add(title)
        self._headings.append(Heading(span, level, " ".join(title.split())))

    def link(self, span: Span, target: str) -> None:
        """Note that a stretch of what was added leads somewhere."""
        self._links.append(Link(span, target))

    def place(self, headings: tuple[Heading, ...], verbatim: tuple[Span, ...], *, offset: int) -> None:
        """Take over the structure of a text that was appended at `offset`."""
        for heading in headings:
            span = Span(heading.span.start + offset, heading.span.end + offset)
            self._headings.append(Heading(span, heading.level, heading.title))
        self._verbatim.extend(Span(span.start + offset, span.end + offset) for span in verbatim)

    def mark_break(self) -> None:
        """A passage had better end here."""
        if self.length and self._breaks[-1:] != [self.length]:
            self._breaks.append(self.length)

    def mark_page(self) -> None:
        """A page begins here."""
        self._pages.append(self.length)

    @property
    def is_blank(self) -> bool:
        """Whether nothing but white space was added."""
        return not any(part.strip() for part in self._parts)

    @property
    def page_starts(self) -> tuple[int, ...]:
        """Where pages begin so far."""
        return tuple(self._pages)

    def extraction(
        self,
        *,
        title: str = "",
        language: str = "",
        metadata: Mapping[str, Json] | None = None,
        encoding: str = "",
        lossy: int = 0,
        page_starts: tuple[int, ...] | None = None,
    ) -> Extraction:
        """The finished text; pages are those marked unless `page_starts` says otherwise."""
        text = "".join(self._parts)
        if text and not text.endswith("\n"):
            text += "\n"
        return Extraction(
            text=text,
            reader="",
            title=title,
            language=language,
            headings=tuple(self._headings),
            page_starts=self.page_starts if page_starts is None else page_starts,
            breaks=tuple(offset for offset in self._breaks if offset < len(text)),
            verbatim=tuple(self._verbatim),
            links=tuple(self._links),
            metadata=metadata or {},
            encoding=encoding,
            lossy=lossy,
            notes=tuple(self.notes),
        )
