"""PDF through PDFium: the text of each page in reading order, pages, and the outline where it can be placed.

PDFium aborts on some hostile files and is not thread-safe: only the worker process may call this. Nothing is
rendered; a page that is only a picture has no text here and is counted as one for OCR.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from likewise.index.readers.base import Reader, Source, Unreadable
from likewise.index.readers.compose import TextBuilder, clean
from likewise.index.records import DocumentState, Extraction, Heading, Json, Span

if TYPE_CHECKING:
    import pypdfium2

# FPDF_ERR_* of fpdfview.h.
_ERROR_FORMAT, _ERROR_PASSWORD, _ERROR_SECURITY = 3, 4, 5
# What PDFium puts for a hyphen at the end of a line, with the line end taken out: "rea\ufffesoning".
_LINE_HYPHEN = re.compile("\ufffe|\x02(?:\r?\n)?|\xad(?:\r?\n)?")
# Titles that programs write, not people.
_MADE_UP_TITLE = re.compile(
    r"(?:untitled|microsoft (?:word|powerpoint|excel) - .*|document\d*|slide \d+"
    r"|.*\.(?:docx?|pptx?|xlsx?|indd|tex|dvi|rtf|odt|pdf|qxd|pmd|ps))$",
    re.I,
)
_IMAGE_DEPTH = 3  # nested forms deeper than this are attacks rather than scans
_MAX_OUTLINE = 5000
_MAX_TITLE = 500
_METADATA = {
    "Author": "author",
    "Subject": "subject",
    "Keywords": "keywords",
    "CreationDate": "created",
    "ModDate": "modified",
}
_DATE = re.compile(r"D?:?(\d{4})(\d\d)?(\d\d)?")


def _read(source: Source) -> Extraction:
    import pypdfium2

    document = _open(source.data)
    try:
        builder = TextBuilder(source.max_characters)
        pictures, failed = _add_pages(document, builder)
        pages = len(document)
        if len(failed) == pages:
            raise Unreadable(DocumentState.FAILED, "is damaged: no page can be read")
        if builder.is_blank:
            if pictures:
                raise Unreadable(DocumentState.NEEDS_OCR, f"has {_pages(pages)} of pictures and no text")
            raise Unreadable(DocumentState.EMPTY, "holds no text")
        if failed:
            builder.notes.append(f"could not be read: {_listed(failed)}")
        if pictures:
            builder.notes.append(f"no text, only pictures: {_listed(pictures)}")
        # The language that a PDF declares is most often the default of the program that wrote it.
        extraction = builder.extraction(title=_title(document), metadata=_metadata(document))
        return _with_outline(extraction, document)
    except pypdfium2.PdfiumError as error:
        raise Unreadable(DocumentState.FAILED, f"is damaged: {error}") from error
    finally:
        document.close()


def _open(data: bytes) -> pypdfium2.PdfDocument:
    import pypdfium2

    try:
        return pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        code = error.err_code
        if code == _ERROR_PASSWORD:
            raise Unreadable(DocumentState.ENCRYPTED, "needs a password") from error
        if code == _ERROR_SECURITY:
            raise Unreadable(
                DocumentState.ENCRYPTED, "is encrypted in a way that is not supported"
            ) from error
        reason = "it is no PDF or cut off" if code == _ERROR_FORMAT else "no page can be found"
        raise Unreadable(DocumentState.FAILED, f"is damaged: {reason}") from error


def _add_pages(document: pypdfium2.PdfDocument, builder: TextBuilder) -> tuple[list[int], list[int]]:
    """Append the text of every page; the pages that are only pictures, and those that failed."""
    import pypdfium2

    pictures: list[int] = []
    failed: list[int] = []
    for number in range(1, len(document) + 1):
        builder.mark_page()
        try:
            page = document[number - 1]
            try:
                text = _page_text(page)
                if not text.strip() and _has_picture(page):
                    pictures.append(number)
            finally:
                page.close()
        except pypdfium2.PdfiumError:
            failed.append(number)
            continue
        if text.strip():
            builder.add(text + "\n")
    return pictures, failed


def _page_text(page: pypdfium2.PdfPage) -> str:
    textpage = page.get_textpage()
    try:
        # The whole page: asking for an area misses text outside of the crop box and on rotated pages.
        text: str = textpage.get_text_range()
    finally:
        textpage.close()
    text = clean(_LINE_HYPHEN.sub("", text))
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def _has_picture(page: pypdfium2.PdfPage) -> bool:
    import pypdfium2.raw as pdfium

    return any(True for _ in page.get_objects(filter=[pdfium.FPDF_PAGEOBJ_IMAGE], max_depth=_IMAGE_DEPTH))


def _title(document: pypdfium2.PdfDocument) -> str:
    title = clean(document.get_metadata_value("Title")).strip()
    return "" if _MADE_UP_TITLE.match(title) else title


def _metadata(document: pypdfium2.PdfDocument) -> dict[str, Json]:
    metadata: dict[str, Json] = {}
    for name, key in _METADATA.items():
        value = clean(document.get_metadata_value(name)).strip()
        if key in ("created", "modified"):
            date = _DATE.match(value)
            value = "-".join(part for part in date.groups() if part) if date else ""
        if value:
            metadata[key] = value
    return metadata


def _with_outline(extraction: Extraction, document: pypdfium2.PdfDocument) -> Extraction:
    """Headings from the outline: entries whose title stands on the page that they lead to.

    An outline of which most entries cannot be found there ("Sheet1", file names) says nothing about the text.
    """
    from dataclasses import replace
    from itertools import islice

    headings: list[Heading] = []
    entries = 0
    position = 0
    for bookmark in islice(document.get_toc(), _MAX_OUTLINE):
        title = " ".join(clean(bookmark.get_title()).split())[:_MAX_TITLE]
        if not title:
            continue
        entries += 1
        target = bookmark.get_dest()
        page = target.get_index() if target is not None else None
        if page is None or page >= len(extraction.page_starts):
            continue
        span = _find_title(extraction, title, page, position)
        if span is not None:
            headings.append(Heading(span, bookmark.level + 1, title))
            position = span.end
    if len(headings) * 2 < entries:
        return extraction
    return replace(extraction, headings=tuple(headings))


def _find_title(extraction: Extraction, title: str, page: int, position: int) -> Span | None:
    """Where a title stands on a page, behind the previous heading: whole lines that hold only it."""
    start = max(extraction.page_starts[page], position)
    following = extraction.page_starts[page + 1 :]
    end = following[0] if following else len(extraction.text)
    # Spaces are free: a title breaks over lines on the page, and letters may be set apart.
    pattern = r"\s*".join(re.escape(char) for char in title if not char.isspace())
    numbering = r"(?:[\dA-Za-z]{1,4}(?:\.\d+)*[.:)]?[ \t]+|[^\W\d_]{1,12}[ \t]+\d+[.:]?\s+)?"
    match = re.compile(rf"^[ \t]*{numbering}({pattern})[ \t]*$", re.M | re.I).search(
        extraction.text, start, end
    )
    return Span(match.start(), match.end()) if match else None


def _pages(count: int) -> str:
    return "1 page" if count == 1 else f"{count:,} pages"


def _listed(numbers: list[int]) -> str:
    """Page numbers for a sentence, ten at most."""
    if len(numbers) == 1:
        return f"page {numbers[0]}"
    shown = ", ".join(map(str, numbers[:10]))
    return f"pages {shown}" + (f" and {len(numbers) - 10:,} more" if len(numbers) > 10 else "")


READER = Reader(
    name="pdf",
    version=1,
    read=_read,
    kinds=frozenset(("pdf",)),
    suffixes=frozenset((".pdf",)),
)
