"""Bring an index up to date: scan, compare, read, cut, embed, commit, publish.

The order keeps the index true at every moment. Renames and new times are committed first, then documents in
groups, deletions last (so that a text that moved finds its vector), but also when the run is interrupted.
When nothing has changed, no encoder is loaded and no worker process started. The caller holds the writer's
lock; what a run is given comes in a `SyncRequest`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.index.added import is_added
from likewise.index.catalogue import Catalogue
from likewise.index.coverage import COVERAGE, update_coverage
from likewise.index.diff import KnownDocument, Plan, compare, settled_mtime
from likewise.index.ingest import Ingest
from likewise.index.readers.base import FileContent, ReaderLimits, ReadResult, Vanished
from likewise.index.readers.fileaccess import content_of
from likewise.index.records import DocumentState, Extraction, Json, Skip
from likewise.index.report import (
    Listener,
    Phase,
    SkippedDocument,
    SyncEvent,
    SyncInterrupted,
    SyncReport,
    Tally,
)
from likewise.index.rows import DeleteDocument, DocumentRow, RenameDocument, TouchDocument, WriteDocument
from likewise.index.scan import FileEntry, ScanNote, scan
from likewise.index.settings import ChunkSettings, SyncSettings
from likewise.index.sources import Job, Scope, Source
from likewise.index.stored import (
    CHUNKING,
    LEFT_OUT,
    SOURCES,
    SYNCED_AT,
    Meta,
    chunking_changed,
    chunking_json,
    sources_json,
    stored_notes,
)
from likewise.index.unfinished import UNFINISHED, stored_unfinished, with_begun, without_finished

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder

_SCAN_EVENT_EVERY = 256
_NOTES_KEPT = 1000


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """What one sync is to do.

    Attributes:
        base: Folder that document keys are relative to.
        sources: What the index is made from henceforth.
        jobs: The walks over the sources.
        encoder: Loads the encoder, or gives it again; called only when there is text to embed.
        chunking: How documents are cut; a change cuts all documents in scope again.
        limits: What reading one document may cost.
        settings: How the work is divided.
        force: Walk even a whole drive or the home folder.
        progress: Told how far the run is.
    """

    base: Path
    sources: Sequence[Source]
    jobs: Sequence[Job]
    encoder: Callable[[], TextEncoder]
    chunking: ChunkSettings
    limits: ReaderLimits = field(default_factory=ReaderLimits)
    settings: SyncSettings = field(default_factory=SyncSettings)
    force: bool = False
    progress: Listener | None = None


def run_sync(catalogue: Catalogue, request: SyncRequest) -> SyncReport:
    """Do what the request says.

    Args:
        catalogue: Open for writing, under the folder's `WriterLock`.
        request: What to do.

    Raises:
        SourceError: A source cannot be walked. Nothing was changed.
        SyncInterrupted: Ctrl-C; the index is valid and the report says what was saved.
        IndexFolderError: A commit failed; what was committed before is kept.
    """
    return _Sync(catalogue, request).run()


def forget_documents(catalogue: Catalogue, dropped: Source, kept: Sequence[Source], *, base: Path) -> int:
    """Drop a source and the documents that lie under no other one; returns how many."""
    gone, stay = Scope([Job(dropped)], base), Scope([Job(source) for source in kept], base)
    keys = [
        row.key
        for row in catalogue.documents()
        if not is_added(row.reader) and gone.covers(row.key) and not stay.covers(row.key)
    ]
    notes = [note for note in stored_notes(catalogue.meta()) if not gone.covers(note[0].rstrip("/"))]
    unfinished = [path for path in stored_unfinished(catalogue.meta().get(UNFINISHED)) if stay.covers(path)]
    catalogue.apply([DeleteDocument(key) for key in keys])
    catalogue.set_meta(
        {
            SOURCES: sources_json(kept),
            LEFT_OUT: [list(note) for note in notes],
            UNFINISHED: [*unfinished],
        }
    )
    return len(keys)


class _Sync:
    def __init__(self, catalogue: Catalogue, request: SyncRequest) -> None:
        self._catalogue = catalogue
        self._request = request
        self._scope = Scope(request.jobs, request.base)
        self._tally = Tally()
        self._phase: Phase = "scan"
        self._done = 0
        self._total: int | None = None
        self._path = ""
        self._gone: list[str] = []
        self._cut_again = chunking_changed(catalogue.meta(), request.chunking)
        self._ingest = Ingest(
            catalogue,
            request.encoder,
            chunking=request.chunking,
            settings=request.settings,
            tally=self._tally,
            embedding=self._report,
        )

    def run(self) -> SyncReport:
        # Arguments and sources are checked before anything is changed.
        walks = [
            scan(
                job.source.location(self._request.base),
                base=self._request.base,
                include=job.source.include,
                exclude=job.source.exclude,
                index_folder=self._catalogue.folder,
                force=self._request.force,
            )
            for job in self._request.jobs
        ]
        self._begin()
        try:
            found, notes = self._scan(walks)
            plan, known = self._compare(found, notes)
            self._index(plan, known)
            self._delete_gone()
            self._remember()
            self._publish()
        except KeyboardInterrupt:
            with suppress(KeyboardInterrupt):
                self._delete_gone()
            raise SyncInterrupted(self._tally.report()) from None
        return self._tally.report()

    def _begin(self) -> None:
        """Store what must hold for whatever is committed from here on."""
        meta, values = self._catalogue.meta(), dict[str, Json]()
        sources = sources_json(self._request.sources)
        if meta.get(SOURCES) != sources:
            values[SOURCES] = sources
            values[UNFINISHED] = self._begun(meta)
        if CHUNKING not in meta:
            values[CHUNKING] = chunking_json(self._request.chunking)
        if values:
            self._catalogue.set_meta(values)

    def _begun(self, meta: Meta) -> list[Json]:
        return with_begun(meta, self._request.jobs, self._request.base)

    # -- what is there -----------------------------------------------------------------------------------

    def _scan(
        self, walks: Sequence[Iterator[FileEntry | ScanNote]]
    ) -> tuple[dict[str, FileEntry], dict[str, ScanNote]]:
        self._start("scan")
        found: dict[str, FileEntry] = {}
        notes: dict[str, ScanNote] = {}
        for job, walk in enumerate(walks):
            for item in walk:
                if not self._scope.wanted(job, item.key):
                    continue
                if isinstance(item, ScanNote):
                    notes[item.key] = item
                else:
                    # Sources may overlap, and two undecodable names may read alike: the first one counts.
                    found.setdefault(item.key, item)
                    if len(found) % _SCAN_EVENT_EVERY == 0:
                        self._step(len(found), item.key)
        self._tally.found = len(found)
        self._tally.left_out = sorted((note.key, note.reason) for note in notes.values())
        return found, notes

    def _compare(
        self, found: dict[str, FileEntry], notes: dict[str, ScanNote]
    ) -> tuple[Plan, dict[str, KnownDocument]]:
        from likewise.index.readers.registry import current_readers

        self._start("compare", len(found))
        known: dict[str, KnownDocument] = {}
        for row in self._catalogue.documents():
            if is_added(row.reader):
                if found.pop(row.key, None):
                    # What a program put in under this name stays what it says.
                    self._tally.left_out.append((row.key, "a document that was added has this name"))
            elif self._scope.covers(row.key):
                known[row.key] = KnownDocument(
                    row.size, row.mtime_ns, row.content_hash, row.state, row.reader
                )
                if row.state is not DocumentState.OK and row.key in found:
                    self._tally.skip([_skipped(row)])
        plan = compare(
            found,
            known,
            content_of=self._content,
            readers=current_readers(),
            cut_again=self._cut_again,
            unlisted=[key for key in notes if key.endswith("/")],
            max_bytes=self._request.limits.max_bytes,
        )
        self._tally.unchanged = plan.unchanged
        self._gone = plan.gone
        return plan, known

    def _content(self, entry: FileEntry) -> FileContent | None:
        self._step(self._done + 1, entry.key)
        content = content_of(entry.path, self._request.limits)
        return None if isinstance(content, Skip) else content

    # -- what changes ------------------------------------------------------------------------------------

    def _index(self, plan: Plan, known: dict[str, KnownDocument]) -> None:
        self._start("index", len(plan.read))
        self._settle(plan)
        if not plan.read:
            return
        meta = self._catalogue.meta()
        if meta.get(UNFINISHED, []) != (begun := self._begun(meta)):
            self._catalogue.set_meta({UNFINISHED: begun})
        from likewise.index.readers.isolate import ReaderPool

        entries = {entry.key: entry for entry in plan.read}
        with ReaderPool(self._request.limits) as pool:
            results = pool.read_many([(entry.path, entry.key) for entry in plan.read])
            # Closed at once when a document or a commit fails: the reader must not run on.
            with closing(results):  # type: ignore[type-var]  # a generator, typed as an iterator
                for result in results:
                    self._step(self._done, result.key)
                    if isinstance(result.outcome, Vanished):
                        self._gone += [result.key] if result.key in known else []
                    else:
                        self._take(entries[result.key], result, known.get(result.key))
                    self._step(self._done + 1, result.key)
        self._ingest.flush()

    def _settle(self, plan: Plan) -> None:
        """Commit what needs neither reading nor embedding."""
        now = time.time_ns()
        for move in plan.moves:
            self._ingest.change(
                RenameDocument(
                    move.key,
                    move.entry.key,
                    self._path_bytes(move.entry.path),
                    move.content.size,
                    settled_mtime(move.content, now),
                )
            )
        for key, content in plan.touched:
            self._ingest.change(TouchDocument(key, content.size, settled_mtime(content, now)))
        self._ingest.flush()
        self._tally.renamed = len(plan.moves)

    def _take(self, entry: FileEntry, result: ReadResult, old: KnownDocument | None) -> None:
        outcome = result.outcome
        self._tally.skipped.pop(entry.key, None)
        header = self._header(entry, result)
        if isinstance(outcome, Extraction):
            self._tally.lossy += [(entry.key, outcome.lossy)] if outcome.lossy else []
            self._tally.remarks += [(entry.key, note) for note in outcome.notes]
            self._ingest.add(header, outcome, is_new=old is None)
            return
        known = old is not None and _same_skip(old, header)
        self._tally.skip([SkippedDocument(entry.key, outcome.state, outcome.reason, known)])
        if known:
            self._tally.unchanged += 1
            self._ingest.change(TouchDocument(entry.key, header.size, header.mtime_ns))
        else:
            self._ingest.skip(header, is_new=old is None)

    def _header(self, entry: FileEntry, result: ReadResult) -> WriteDocument:
        """The document as it will be stored, without passages."""
        outcome = result.outcome
        content = result.content or FileContent("", entry.size, entry.mtime_ns)
        header = WriteDocument(
            key=entry.key,
            path_bytes=self._path_bytes(entry.path),
            size=content.size,
            mtime_ns=settled_mtime(content, time.time_ns()),
            content_hash=content.content_hash,
            reader=outcome.reader,
        )
        if isinstance(outcome, Skip):
            return replace(header, state=outcome.state, reason=outcome.reason)
        return replace(
            header,
            title=outcome.title,
            language=outcome.language,
            encoding=outcome.encoding,
            lossy=outcome.lossy,
            notes=outcome.notes,
            metadata=outcome.metadata,
        )

    def _delete_gone(self) -> None:
        if self._gone:
            self._catalogue.apply([DeleteDocument(key) for key in self._gone])
            self._tally.deleted += len(self._gone)
            self._gone = []

    def _remember(self) -> None:
        """Store what the next sync and the status need, if it differs from what is stored."""
        self._catalogue.refresh_lexical()  # where no document changed, but the analyser did
        meta = self._catalogue.meta()
        values: dict[str, Json] = {}
        others = [note for note in stored_notes(meta) if not self._scope.covers(note[0].rstrip("/"))]
        notes: list[Json] = [list(note) for note in sorted([*others, *self._tally.left_out])[:_NOTES_KEPT]]
        if notes != meta.get(LEFT_OUT, []):
            values[LEFT_OUT] = notes
        unfinished = without_finished(meta, self._request.jobs, self._request.base)
        if unfinished != meta.get(UNFINISHED, []):
            values[UNFINISHED] = unfinished
        if self._cut_again:
            values[CHUNKING] = chunking_json(self._request.chunking)
        if values or self._tally.report().changed or SYNCED_AT not in meta:
            self._catalogue.set_meta({**values, SYNCED_AT: time.time()})

    def _publish(self) -> None:
        from likewise.index.snapshot import publish, reason_to_publish

        if reason_to_publish(self._catalogue, self._catalogue.folder):
            total = self._catalogue.counts().passages
            self._start("publish", total)
            publish(self._catalogue, self._catalogue.folder)
            self._tally.published = True
            self._step(total)
        measured = self._catalogue.meta().get(COVERAGE)
        if self._tally.embedded and (self._tally.published or measured is None):
            update_coverage(self._catalogue, self._request.encoder())

    # -- small things ------------------------------------------------------------------------------------

    def _path_bytes(self, path: Path) -> bytes:
        base = Path(os.path.realpath(self._request.base))
        return os.fsencode(path.relative_to(base) if path.is_relative_to(base) else path)

    def _start(self, phase: Phase, total: int | None = None) -> None:
        self._phase, self._total = phase, total
        self._step(0)

    def _step(self, done: int, path: str = "") -> None:
        self._done, self._path = done, path
        self._report()

    def _report(self) -> None:
        if self._request.progress is not None:
            ingest = self._ingest
            event = SyncEvent(
                self._phase, self._done, self._total, self._path, ingest.embedded, ingest.to_embed
            )
            self._request.progress(event)


def _skipped(row: DocumentRow) -> SkippedDocument:
    return SkippedDocument(row.key, row.state, row.reason, known=True)


def _same_skip(old: KnownDocument, new: WriteDocument) -> bool:
    return (old.state, old.content_hash, old.reader) == (new.state, new.content_hash, new.reader)
