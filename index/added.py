"""Documents that are not files: rows of a table, pages of a wiki, the corpus of a benchmark.

They are cut, embedded and committed like files, by the same code, and found like them. A sync of folders
leaves them alone: they are marked by their reader, and only `add_documents` and `remove_documents` change
them. Nothing here reads a file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from likewise.errors import UsageError
from likewise.index.catalogue import Catalogue
from likewise.index.coverage import COVERAGE, update_coverage
from likewise.index.ingest import Ingest
from likewise.index.language import detect_language
from likewise.index.records import DocumentState, Extraction, Json
from likewise.index.report import Listener, SkippedDocument, SyncEvent, SyncInterrupted, SyncReport, Tally
from likewise.index.rows import DeleteDocument, DocumentRow, WriteDocument
from likewise.index.settings import ChunkSettings, SyncSettings
from likewise.index.stored import CHUNKING, SYNCED_AT, chunking_json

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder

ADDED_READER = "added/1"
"""Stands in place of a reader in documents that did not come from a file."""


@dataclass(frozen=True, slots=True)
class TextDocument:
    """A document that is not a file.

    Attributes:
        key: Name under which it is found and cited, unique in the index; not empty.
        text: The whole text.
        title: Its title, or "".
        language: ISO 639-1 code, or "" to tell it from the text.
        metadata: JSON values that filters can ask for.
    """

    key: str
    text: str
    title: str = ""
    language: str = ""
    metadata: Mapping[str, Json] = field(default_factory=dict)


def is_added(reader: str) -> bool:
    """Whether a stored document was added rather than read from a file.

    Example:
        >>> is_added(ADDED_READER), is_added("markdown/1")
        (True, False)
    """
    return reader.startswith("added/")


def add_documents(
    catalogue: Catalogue,
    documents: Iterable[TextDocument],
    *,
    encoder: Callable[[], TextEncoder],
    chunking: ChunkSettings,
    settings: SyncSettings,
    progress: Listener | None = None,
) -> SyncReport:
    """Put documents into an index; one that is there under the same key is replaced if it differs.

    Args:
        catalogue: Open for writing, under the folder's `WriterLock`.
        documents: Taken one by one, so that there may be any number of them.
        encoder: Loads the encoder, or gives it again; called only when there is text to embed.
        chunking: How documents are cut.
        settings: How the work is divided.
        progress: Told how far it is, in the phase "index".

    Raises:
        UsageError: A key is empty or is that of a file; the documents before it may be committed.
        SyncInterrupted: Ctrl-C; the index is valid and the report says what was saved.
        IndexFolderError: A commit failed; what was committed before is kept.
    """
    known = {row.key: _Known.of_row(row) for row in catalogue.documents()}
    tally = Tally()

    def report() -> None:
        if progress is not None:
            progress(SyncEvent("index", tally.found, None, "", ingest.embedded, ingest.to_embed))

    ingest = Ingest(catalogue, encoder, chunking=chunking, settings=settings, tally=tally, embedding=report)
    if CHUNKING not in catalogue.meta():
        catalogue.set_meta({CHUNKING: chunking_json(chunking)})
    try:
        for document in documents:
            header = _header(document)
            stands = known.get(document.key)
            _check_key(document.key, stands)
            known[document.key] = _Known.of_header(header)
            tally.found += 1
            if stands == known[document.key]:
                tally.unchanged += 1
            elif header.state is DocumentState.OK:
                extraction = Extraction(document.text, ADDED_READER, header.title, header.language)
                ingest.add(header, extraction, is_new=stands is None)
            else:
                tally.skip([SkippedDocument(header.key, header.state, header.reason)])
                ingest.skip(header, is_new=stands is None)
            report()
        ingest.flush()
        catalogue.refresh_lexical()  # where no document changed, but the analyser did
        if tally.report().changed:
            catalogue.set_meta({SYNCED_AT: time.time()})
        tally.published = _publish_if_due(catalogue)
        if tally.embedded and (tally.published or COVERAGE not in catalogue.meta()):
            update_coverage(catalogue, encoder())
    except KeyboardInterrupt:
        raise SyncInterrupted(tally.report()) from None
    return tally.report()


def remove_documents(catalogue: Catalogue, keys: Sequence[str]) -> int:
    """Remove added documents; returns how many there were.

    Raises:
        UsageError: A key is that of a file. Nothing was removed.
    """
    known = {row.key: _Known.of_row(row) for row in catalogue.documents()}
    found = [key for key in dict.fromkeys(keys) if key in known]
    for key in found:
        _check_key(key, known[key])
    if found:
        catalogue.apply([DeleteDocument(key) for key in found])
        catalogue.set_meta({SYNCED_AT: time.time()})
        _publish_if_due(catalogue)
    return len(found)


class _Known(NamedTuple):
    """What of a stored document decides whether it must be written again."""

    content_hash: str
    reader: str
    title: str
    language: str
    metadata: Mapping[str, Json]

    @classmethod
    def of_row(cls, row: DocumentRow) -> _Known:
        return cls(row.content_hash, row.reader, row.title, row.language, row.metadata)

    @classmethod
    def of_header(cls, header: WriteDocument) -> _Known:
        return cls(header.content_hash, header.reader, header.title, header.language, dict(header.metadata))


def _header(document: TextDocument) -> WriteDocument:
    content = document.text.encode("utf-8", "surrogatepass")
    empty = not document.text.strip()
    return WriteDocument(
        key=document.key,
        path_bytes=os.fsencode(document.key),
        size=len(content),
        mtime_ns=time.time_ns(),
        content_hash=sha256(content).hexdigest(),
        state=DocumentState.EMPTY if empty else DocumentState.OK,
        reason="has no text" if empty else "",
        reader=ADDED_READER,
        title=document.title,
        language=document.language or detect_language(document.text),
        metadata=document.metadata,
    )


def _check_key(key: str, stands: _Known | None) -> None:
    if not key:
        raise UsageError("expected a key for every document, found an empty one")
    if stands is not None and not is_added(stands.reader):
        raise UsageError(
            f"expected the key of a document that was added, found {key!r}, which is a file",
            remedy="choose another key, or change the file and run likewise index",
        )


def _publish_if_due(catalogue: Catalogue) -> bool:
    from likewise.index.snapshot import publish, reason_to_publish

    if not reason_to_publish(catalogue, catalogue.folder):
        return False
    publish(catalogue, catalogue.folder)
    return True
