"""Plain text: the file itself."""

from __future__ import annotations

import re

from likewise.index.readers.base import Reader, Source
from likewise.index.readers.decoding import decode
from likewise.index.records import Extraction


def _read(source: Source) -> Extraction:
    decoded = decode(source.data, strict=source.kind == "unknown")
    # A form feed begins a new page of a printout (RFCs, man pages): not a page of the document, but a good
    # cut.
    breaks = tuple(match.end() for match in re.finditer("\f", decoded.text))
    return Extraction(decoded.text, "", breaks=breaks, encoding=decoded.encoding, lossy=decoded.lossy)


READER = Reader(
    name="plain",
    version=1,
    read=_read,
    suffixes=frozenset(
        (".txt", ".text", ".log", ".srt", ".vtt", ".nfo", ".me", ".1st", ".adoc", ".asciidoc", ".asc")
    ),
    names=frozenset(
        ("readme", "license", "licence", "copying", "authors", "changelog", "changes", "notice", "todo")
    ),
)
