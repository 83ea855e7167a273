"""Everything that changes an index folder, under the writer's lock.

`Index` hands its writing here, so that a search loads none of what reading, cutting and committing need.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import IndexNotFound, UsageError
from likewise.index.added import TextDocument, add_documents, remove_documents
from likewise.index.catalogue import CATALOGUE_FILE, Catalogue
from likewise.index.encoder_slot import EncoderSlot
from likewise.index.lock import WriterLock
from likewise.index.readers.base import ReaderLimits
from likewise.index.reembed import reembed
from likewise.index.report import Listener, SyncEvent, SyncInterrupted, SyncReport
from likewise.index.scan import check_root
from likewise.index.settings import ChunkSettings, SyncSettings
from likewise.index.sources import Source, choose, require
from likewise.index.stored import (
    CHUNKING,
    ENCODER,
    OUTDATED,
    chunking_changed,
    chunking_json,
    encoder_json,
    stored_chunking,
    stored_encoder,
    stored_sources,
)
from likewise.index.sync import SyncRequest, forget_documents, run_sync

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder


class IndexWriter:
    """Writes to one index folder; `Index` documents what each method does and raises.

    Args:
        folder: The index folder.
        slot: Which encoder belongs to it.
    """

    def __init__(self, folder: Path, slot: EncoderSlot) -> None:
        self._folder = folder
        self._base = folder.parent
        self._slot = slot

    def sync(
        self,
        sources: Sequence[str | os.PathLike[str]] | None,
        *,
        include: Sequence[str],
        exclude: Sequence[str],
        replace_encoder: bool,
        chunking: ChunkSettings | None,
        limits: ReaderLimits | None,
        settings: SyncSettings | None,
        force: bool,
        progress: Listener | None,
    ) -> SyncReport:
        """See `Index.sync`; `replace_encoder` is its `reembed`."""
        paths = None if sources is None else [Path(source) for source in sources]
        self._refuse_before_creating(paths, force=force)
        with WriterLock(self._folder), Catalogue.open(self._folder, mode="create") as catalogue:
            self._ignore_itself()
            meta = catalogue.meta()
            chunking = chunking or stored_chunking(meta) or ChunkSettings()
            remembered, jobs = choose(
                paths, stored_sources(meta), base=self._base, include=include, exclude=exclude
            )
            reembedded = 0
            if replace_encoder:
                reembedded = self._replace_encoder(catalogue, chunking, progress)
            elif not self._slot.is_settled(meta):
                self._slot.checked(meta)
            if chunking != (stored_chunking(meta) or ChunkSettings()):
                chunking.sizes(
                    self._slot.checked(catalogue.meta()).passage_tokens
                )  # refused before it is stored
            if chunking_changed(catalogue.meta(), chunking):
                # A new way to cut holds for the whole index, whatever part of it was named.
                jobs = choose(None, remembered, base=self._base)[1]
            request = SyncRequest(
                base=self._base,
                sources=remembered,
                jobs=jobs,
                encoder=cache(lambda: self._encoder_for(catalogue)),
                chunking=chunking,
                limits=limits or ReaderLimits(),
                settings=settings or SyncSettings(),
                force=force,
                progress=progress,
            )
            return replace(run_sync(catalogue, request), reembedded=reembedded)

    def forget(self, source: str | os.PathLike[str]) -> int:
        """See `Index.forget`."""
        with WriterLock(self._folder), Catalogue.open(self._folder, mode="write") as catalogue:
            remembered = stored_sources(catalogue.meta())
            dropped = Source.at(Path(source), self._base)
            kept = [other for other in remembered if other.path != dropped.path]
            if len(kept) == len(remembered):
                known = ", ".join(other.path for other in remembered) or "none"
                raise UsageError(f"{source} is not a source of this index; its sources: {known}")
            return forget_documents(catalogue, dropped, kept, base=self._base)

    def add(
        self, documents: Iterable[TextDocument], *, settings: SyncSettings | None, progress: Listener | None
    ) -> SyncReport:
        """See `Index.add`."""
        if self._is_new():
            self._find_encoder()
        with WriterLock(self._folder), Catalogue.open(self._folder, mode="create") as catalogue:
            self._ignore_itself()
            meta = catalogue.meta()
            if not self._slot.is_settled(meta):
                self._slot.checked(meta)
            return add_documents(
                catalogue,
                documents,
                encoder=cache(lambda: self._encoder_for(catalogue)),
                chunking=stored_chunking(meta) or ChunkSettings(),
                settings=settings or SyncSettings(),
                progress=progress,
            )

    def remove(self, keys: Sequence[str]) -> int:
        """See `Index.remove`."""
        with WriterLock(self._folder), Catalogue.open(self._folder, mode="write") as catalogue:
            return remove_documents(catalogue, keys)

    # -- encoder -----------------------------------------------------------------------------------------

    def _encoder_for(self, catalogue: Catalogue) -> TextEncoder:
        """The encoder for the sync in progress; the first one becomes that of the index."""
        meta = catalogue.meta()
        encoder = self._slot.checked(meta)
        if not stored_encoder(meta):
            catalogue.set_meta({ENCODER: encoder_json(encoder, self._slot.lasting_name(encoder))})
        return encoder

    def _replace_encoder(
        self, catalogue: Catalogue, chunking: ChunkSettings, progress: Listener | None
    ) -> int:
        """Put the encoder that was given in the place of the index's own; returns how many were embedded."""
        stored = stored_encoder(catalogue.meta())
        encoder = self._slot.load(catalogue.meta())
        if not stored or encoder.fingerprint == stored.get("fingerprint"):
            return 0
        chunking.sizes(encoder.passage_tokens)

        embedded = 0

        def cut_again() -> None:
            catalogue.set_meta({CHUNKING: chunking_json(chunking, OUTDATED)})

        def report(done: int, total: int) -> None:
            nonlocal embedded
            embedded = done
            if progress is not None:
                progress(SyncEvent("reembed", done, total, embedded=done))

        try:
            reembed(
                catalogue,
                encoder,
                name=self._slot.lasting_name(encoder),
                chunking=chunking,
                on_truncated=cut_again,
                progress=report,
            )
        except KeyboardInterrupt:
            raise SyncInterrupted(SyncReport(reembedded=embedded)) from None
        return embedded

    # -- folder ------------------------------------------------------------------------------------------

    def _refuse_before_creating(self, paths: Sequence[Path] | None, *, force: bool) -> None:
        """Leave no trace where there will be no index.

        That is with sources that are missing or refused, an encoder that is not found, or somebody else's
        folder.
        """
        for path in paths or ():
            require(path)
            if not force and path.is_dir():
                check_root(path)
        if self._is_new():
            if paths is None:
                raise IndexNotFound(f"no index in {self._folder} yet", remedy="likewise index FOLDER")
            self._find_encoder()

    def _is_new(self) -> bool:
        """Whether there is no index yet; a folder that is somebody else's is refused."""
        if not (self._folder / CATALOGUE_FILE).exists():
            try:
                Catalogue.open(self._folder, mode="write").close()
            except IndexNotFound:
                return True
        return False

    def _find_encoder(self) -> None:
        """Load the encoder of a new index, unless it is the default one, which is always there."""
        if self._slot.name({}):
            self._slot.load({})

    def _ignore_itself(self) -> None:
        """Keep the index out of the user's version control."""
        path = self._folder / ".gitignore"
        if not path.exists():
            path.write_text("*\n", encoding="utf-8")
