"""Word documents: paragraphs, headings, lists, tables, text boxes and notes of the main part.

Written against ECMA-376, transitional and strict. Headers, footers, comments and deleted text are left out;
fields show their last result. Pages are those of the last layout, given only if the document knows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from likewise.index.readers.base import Reader, Source, Unreadable
from likewise.index.readers.compose import TextBuilder
from likewise.index.records import DocumentState, Extraction, Json

if TYPE_CHECKING:
    from likewise.index.readers.package import Package

_METADATA = {
    "creator": "author",
    "subject": "subject",
    "keywords": "keywords",
    "description": "description",
    "created": "created",
    "modified": "modified",
}


def _read(source: Source) -> Extraction:
    from likewise.index.readers.package import Package
    from likewise.index.readers.word_body import Body
    from likewise.index.readers.word_parts import Numbering, Styles

    package = Package(source.data)
    relations = package.relations("")
    main = next(iter(relations.get("officeDocument", ["word/document.xml"])))
    if main not in package:
        raise Unreadable(DocumentState.FAILED, "is damaged: it has no main document part")
    parts = package.relations(main)
    styles, numbering = Styles(), Numbering()
    for kind, handler in (("styles", styles), ("numbering", numbering)):
        for name in parts.get(kind, ())[:1]:
            if name in package:
                package.parse(name, handler)
    builder = TextBuilder(source.max_characters)
    body = Body(builder, styles, numbering)
    package.parse(main, body)
    body.finish()
    for kind, label in (("footnotes", "fn"), ("endnotes", "en")):
        for name in parts.get(kind, ())[:1]:
            if name in package:
                notes = Body(builder, styles, numbering, note_label=label)
                package.parse(name, notes)
                notes.finish()
    properties = _leaves(package, relations.get("core-properties", ()))
    pages = _leaves(package, relations.get("extended-properties", ())).get("Pages", "")
    metadata: dict[str, Json] = {
        key: properties[name] for name, key in _METADATA.items() if properties.get(name)
    }
    starts = body.page_starts
    # The breaks must agree with the number of pages that Word saved, or some are missing.
    known = bool(starts) and (str(len(starts)) == pages or (not pages and len(starts) > 1))
    return builder.extraction(
        title=body.title or properties.get("title", ""),
        metadata=metadata,
        page_starts=starts if known else (),
    )


def _leaves(package: Package, names: Sequence[str]) -> Mapping[str, str]:
    from likewise.index.readers.word_parts import Leaves

    leaves = Leaves()
    for name in names[:1]:
        if name in package:
            package.parse(name, leaves)
    return leaves.found


READER = Reader(
    name="docx",
    version=1,
    read=_read,
    kinds=frozenset(("docx",)),
    suffixes=frozenset((".docx", ".docm", ".dotx", ".dotm")),
)
