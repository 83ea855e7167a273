"""`Index`: the one object through which programs and commands use an index folder.

It knows where things are and which encoder belongs to them, and hands the work to `sync`, `view` and
`catalogue`. Nothing is opened, loaded or created before it is needed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from likewise.errors import IndexNotFound, UsageError
from likewise.index.added import TextDocument, add_documents, remove_documents
from likewise.index.catalogue import CATALOGUE_FILE, Catalogue
from likewise.index.coverage import COVERAGE, Coverage, stored_coverage
from likewise.index.encoder_slot import EncoderSlot
from likewise.index.lock import WriterLock
from likewise.index.readers.base import ReaderLimits
from likewise.index.records import Json
from likewise.index.reembed import reembed
from likewise.index.report import Listener, SyncEvent, SyncInterrupted, SyncReport
from likewise.index.scan import check_root
from likewise.index.settings import ChunkSettings, SyncSettings
from likewise.index.sources import Source, choose, require
from likewise.index.status import IndexStatus, read_status
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
    from likewise.index.view import IndexReader, IndexView

INDEX_FOLDER = ".likewise"


class Index:
    r"""An index folder.

    Make one with `Index.open`. It may be used from several threads, except that only one of them syncs.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "keys.md").write_text("# Keys\n\nRotate them yearly.", encoding="utf-8")
        >>> with Index.open(folder / ".likewise", encoder="hash") as index:
        ...     report = index.sync([folder])
        >>> report.added, report.passages
        (1, 1)
    """

    def __init__(self, folder: Path, encoder: TextEncoder | str | None) -> None:
        self._folder = folder
        self._slot = EncoderSlot(encoder, folder)
        self._reader: IndexReader | None = None
        self._mutex = threading.Lock()

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, encoder: TextEncoder | str | None = None) -> Index:
        """The index in a folder.

        Args:
            folder: The index folder itself, usually called `.likewise`. It need not exist: the first `sync`
                makes it.
            encoder: An encoder or its name; None for the one that the index was made with, and for a new
                index the default.
        """
        return cls(Path(folder).absolute(), encoder)

    @staticmethod
    def find(start: str | os.PathLike[str] | None = None) -> Path:
        """The nearest index folder, as git finds its repository.

        Args:
            start: Where to begin; the working directory if None.

        Raises:
            IndexNotFound: There is none in `start` or a folder above it.
        """
        begin = Path(start if start is not None else os.curdir).absolute()
        for folder in (begin, *begin.parents):
            candidate = folder / INDEX_FOLDER
            if (candidate / CATALOGUE_FILE).is_file():
                return candidate
        raise IndexNotFound(
            f"no index in {begin} or a folder above it",
            remedy="likewise index FOLDER, or name one with --index",
        )

    def __enter__(self) -> Index:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release what was opened. The index may be used again afterwards."""
        with self._mutex:
            if self._reader is not None:
                self._reader.close()
                self._reader = None

    # -- what it is --------------------------------------------------------------------------------------

    @property
    def folder(self) -> Path:
        """The index folder."""
        return self._folder

    @property
    def base(self) -> Path:
        """The folder that document keys are relative to: the one that holds the index folder."""
        return self._folder.parent

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the encoder whose vectors answer, "" before the first passage."""
        return str(stored_encoder(self._meta()).get("fingerprint", ""))

    @property
    def encoder_name(self) -> str:
        """Name of the encoder that is used; "" for a new index and the default encoder."""
        return self._slot.name(self._meta())

    @property
    def settings(self) -> ChunkSettings:
        """How documents are cut."""
        return stored_chunking(self._meta()) or ChunkSettings()

    @property
    def sources(self) -> tuple[Source, ...]:
        """What the index is made from."""
        return tuple(stored_sources(self._meta()))

    @property
    def coverage(self) -> Coverage | None:
        """How well the encoder's vocabulary covers the passages; None before it was measured."""
        meta = self._meta()
        return stored_coverage(meta.get(COVERAGE), str(stored_encoder(meta).get("fingerprint", "")))

    @property
    def encoder(self) -> TextEncoder:
        """The encoder, loaded on first use.

        Raises:
            EncoderMismatch: It is not the one that the vectors of this index come from.
            EncoderError: It cannot be found or loaded.
        """
        return self._slot.checked(self._meta())

    # -- using it ----------------------------------------------------------------------------------------

    def view(self) -> AbstractContextManager[IndexView]:
        """The index at one moment, for the length of a `with` block.

        Raises:
            IndexNotFound: There is no index yet.
            IndexFolderError: It cannot be read.
        """
        from likewise.index.view import IndexReader

        with self._mutex:
            if self._reader is None:
                self._reader = IndexReader(self._folder)
            return self._reader.view()

    def status(self) -> IndexStatus:
        """What the index holds and what it leaves out.

        Raises:
            IndexNotFound: There is no index yet.
        """
        return read_status(self._folder, self.base)

    def sync(
        self,
        sources: Sequence[str | os.PathLike[str]] | None = None,
        *,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        encoder: TextEncoder | str | None = None,
        reembed: bool = False,
        chunking: ChunkSettings | None = None,
        limits: ReaderLimits | None = None,
        settings: SyncSettings | None = None,
        force: bool = False,
        progress: Listener | None = None,
    ) -> SyncReport:
        """Bring the index up to date: only what changed is read, only new passages are embedded.

        Args:
            sources: Folders or files; they are remembered. None for all that are remembered. Only documents
                under what is given are changed or deleted.
            include: Globs as in `.gitignore`, relative to the source, of which a file must match one. They
                are remembered with the source; without any the remembered ones hold.
            exclude: Globs of what to leave out; remembered likewise.
            encoder: Another encoder, or its name, than `Index.open` was given.
            reembed: Let `encoder` take the place of the one that the index was made with. All passages are
                embedded anew, the old vectors answer until the last one is done, and an interrupted run
                continues where it stopped.
            chunking: How to cut documents; None for what holds already. A change cuts all documents again.
            limits: What reading one document may cost.
            settings: How the work is divided.
            force: Take even a whole drive or the home folder as a source.
            progress: Told how far the run is.

        Returns:
            What was done; all of it is committed.

        Raises:
            SourceError: A source is missing or refused; nothing was changed.
            EncoderMismatch: The index was made with another encoder, and `reembed` was not asked for.
            IndexLocked: Another process is writing.
            IndexFolderError: The index folder cannot be used or written.
            SyncInterrupted: Ctrl-C; the index is valid and `report` says what was saved.
        """
        paths = None if sources is None else [Path(source) for source in sources]
        if encoder is not None:
            self._slot = EncoderSlot(encoder, self._folder)
        self._refuse_before_creating(paths, force=force)
        with WriterLock(self._folder), Catalogue.open(self._folder, mode="create") as catalogue:
            self._ignore_itself()
            meta = catalogue.meta()
            chunking = chunking or stored_chunking(meta) or ChunkSettings()
            remembered, jobs = choose(
                paths, stored_sources(meta), base=self.base, include=include, exclude=exclude
            )
            reembedded = 0
            if reembed:
                reembedded = self._replace_encoder(catalogue, chunking, progress)
            elif not self._slot.is_settled(meta):
                self._slot.checked(meta)
            if chunking != (stored_chunking(meta) or ChunkSettings()):
                chunking.sizes(
                    self._slot.checked(catalogue.meta()).passage_tokens
                )  # refused before it is stored
            if chunking_changed(catalogue.meta(), chunking):
                # A new way to cut holds for the whole index, whatever part of it was named.
                jobs = choose(None, remembered, base=self.base)[1]
            request = SyncRequest(
                base=self.base,
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
        """Drop a source and its documents from the index; the files themselves are not touched.

        Args:
            source: A remembered source; it need not exist any more.

        Returns:
            How many documents were dropped.

        Raises:
            UsageError: The index does not remember this source.
        """
        with WriterLock(self._folder), Catalogue.open(self._folder, mode="write") as catalogue:
            remembered = stored_sources(catalogue.meta())
            dropped = Source.at(Path(source), self.base)
            kept = [other for other in remembered if other.path != dropped.path]
            if len(kept) == len(remembered):
                known = ", ".join(other.path for other in remembered) or "none"
                raise UsageError(f"{source} is not a source of this index; its sources: {known}")
            return forget_documents(catalogue, dropped, kept, base=self.base)

    def add(
        self,
        documents: Iterable[TextDocument],
        *,
        settings: SyncSettings | None = None,
        progress: Listener | None = None,
    ) -> SyncReport:
        """Put documents into the index that are not files, such as the rows of a table.

        They are found, filtered and cited like files. `sync` leaves them alone; adding one under the same key
        again replaces it, and costs nothing if it is the same.

        Args:
            documents: Taken one by one, so that there may be any number of them.
            settings: How the work is divided.
            progress: Told how far it is.

        Returns:
            What was done; all of it is committed.

        Raises:
            UsageError: A key is empty, or is that of a file in the index.
            EncoderMismatch: The index was made with another encoder.
            IndexLocked: Another process is writing.
            IndexFolderError: The index folder cannot be used or written.
            SyncInterrupted: Ctrl-C; the index is valid and `report` says what was saved.

        Example:
            >>> import tempfile
            >>> with Index.open(Path(tempfile.mkdtemp()) / ".likewise", encoder="hash") as index:
            ...     index.add([TextDocument("row/1", "Rotate keys yearly.", title="Keys")]).added
            1
        """
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
        """Remove documents that `add` put into the index; returns how many there were.

        Raises:
            UsageError: A key is that of a file. Nothing was removed.
            IndexNotFound: There is no index.
        """
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

    def _meta(self) -> dict[str, Json]:
        """The stored settings, empty before the first sync."""
        try:
            with Catalogue.open(self._folder, mode="read") as catalogue:
                return catalogue.meta()
        except IndexNotFound:
            return {}

    def _refuse_before_creating(self, paths: Sequence[Path] | None, *, force: bool) -> None:
        """Leave no trace where there will be no index: missing or refused sources, somebody else's folder."""
        for path in paths or ():
            require(path, "it was given")
            if not force and path.is_dir():
                check_root(path)
        if not (self._folder / CATALOGUE_FILE).exists():
            try:
                Catalogue.open(self._folder, mode="write").close()
            except IndexNotFound:
                if paths is None:
                    raise

    def _ignore_itself(self) -> None:
        """Keep the index out of the user's version control."""
        path = self._folder / ".gitignore"
        if not path.exists():
            path.write_text("*\n", encoding="utf-8")
