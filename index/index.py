"""`Index`: the one object through which programs and commands use an index folder.

It knows where things are and which encoder belongs to them, and hands the work to `sync`, `view` and
`catalogue`. Nothing is opened, loaded or created before it is needed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from likewise.errors import IndexNotFound
from likewise.index.catalogue import CATALOGUE_FILE, Catalogue
from likewise.index.encoder_slot import EncoderSlot
from likewise.index.records import Json
from likewise.index.settings import ChunkSettings
from likewise.index.stored import stored_chunking, stored_encoder, stored_sources

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder
    from likewise.index.added import TextDocument
    from likewise.index.coverage import Coverage
    from likewise.index.readers.base import ReaderLimits
    from likewise.index.report import Listener, SyncReport
    from likewise.index.settings import SyncSettings
    from likewise.index.sources import Source
    from likewise.index.status import IndexStatus
    from likewise.index.view import IndexReader, IndexView
    from likewise.index.writing import IndexWriter

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
        from likewise.index.coverage import COVERAGE, stored_coverage

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

    def encoder_of(self, view: IndexView) -> TextEncoder:
        """The encoder whose vectors a view holds; once it is loaded, nothing is opened to look that up.

        Raises:
            EncoderMismatch: The encoder that was given is not the one that the vectors come from.
            EncoderError: It cannot be found or loaded.
        """
        return self._slot.ready(view.fingerprint) or self.encoder

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
        from likewise.index.status import read_status

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
        if encoder is not None:
            self._slot = EncoderSlot(encoder, self._folder)
        return self._writer().sync(
            sources,
            include=include,
            exclude=exclude,
            replace_encoder=reembed,
            chunking=chunking,
            limits=limits,
            settings=settings,
            force=force,
            progress=progress,
        )

    def forget(self, source: str | os.PathLike[str]) -> int:
        """Drop a source and its documents from the index; the files themselves are not touched.

        Args:
            source: A remembered source; it need not exist any more.

        Returns:
            How many documents were dropped.

        Raises:
            UsageError: The index does not remember this source.
        """
        return self._writer().forget(source)

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
            >>> from likewise.index.added import TextDocument
            >>> with Index.open(Path(tempfile.mkdtemp()) / ".likewise", encoder="hash") as index:
            ...     index.add([TextDocument("row/1", "Rotate keys yearly.", title="Keys")]).added
            1
        """
        return self._writer().add(documents, settings=settings, progress=progress)

    def remove(self, keys: Sequence[str]) -> int:
        """Remove documents that `add` put into the index; returns how many there were.

        Raises:
            UsageError: A key is that of a file. Nothing was removed.
            IndexNotFound: There is no index.
        """
        return self._writer().remove(keys)

    # -- inside ------------------------------------------------------------------------------------------

    def _writer(self) -> IndexWriter:
        # Imported here: a search needs none of what writing needs.
        from likewise.index.writing import IndexWriter

        return IndexWriter(self._folder, self._slot)

    def _meta(self) -> dict[str, Json]:
        """The stored settings, empty before the first sync."""
        try:
            with Catalogue.open(self._folder, mode="read") as catalogue:
                return catalogue.meta()
        except IndexNotFound:
            return {}
