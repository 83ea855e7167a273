"""The catalogue: the SQLite file that is the truth of an index.

`Catalogue` is what the one writer works with, and the only way to change an index; all SQL stands in this
module and its `catalogue_*` neighbours. It knows nothing of the files that are indexed, of encoders, or of
the vector snapshots beyond the row that describes one.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from likewise.errors import EncoderMismatch
from likewise.index import catalogue_read as read
from likewise.index import catalogue_write as write
from likewise.index.analyzer_version import ANALYZER_VERSION
from likewise.index.catalogue_background import has_background, write_background
from likewise.index.catalogue_filter import register_functions
from likewise.index.catalogue_open import CATALOGUE_FILE, Mode, connect, explained
from likewise.index.catalogue_read import EncoderRow
from likewise.index.catalogue_write import Analysis
from likewise.index.files import FileSystem
from likewise.index.records import Json, StoredPassage
from likewise.index.rows import BackgroundRow, CatalogueCounts, Change, DocumentRow, SnapshotRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CATALOGUE_FILE", "Analysis", "Catalogue", "Mode", "default_analysis"]

_ANALYZER_KEY = "analyzer_version"


def default_analysis() -> Analysis:
    """The project's own analyser."""
    from likewise.index.analyzer import analyze

    return Analysis(ANALYZER_VERSION, analyze)


class Catalogue:
    """One connection to the catalogue of an index folder, used from one thread at a time.

    Whoever opens it for writing holds the folder's `WriterLock`. What a method has committed when it returns
    survives a crash of the process and of the machine.

    Example:
        >>> import tempfile
        >>> with Catalogue.open(Path(tempfile.mkdtemp()) / ".likewise", mode="create") as catalogue:
        ...     catalogue.set_meta({"sources": ["docs"]})
        ...     catalogue.meta()["sources"], catalogue.counts().documents
        (['docs'], 0)
    """

    def __init__(
        self, connection: sqlite3.Connection, folder: Path, files: FileSystem, analysis: Analysis | None
    ) -> None:
        self._connection = connection
        self._folder = folder
        self._files = files
        self._analysis = analysis

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        mode: Mode,
        files: FileSystem | None = None,
        analysis: Analysis | None = None,
    ) -> Catalogue:
        """Open the catalogue of an index folder.

        Args:
            folder: The index folder.
            mode: `"read"` never changes a file, `"write"` needs an existing index and brings it to the
                current format, `"create"` makes a new one where none is.
            files: Other than the default for tests.
            analysis: Analyser of the lexical index; the project's own by default.

        Raises:
            IndexNotFound: There is no index.
            IndexVersionError: A newer version of likewise made it.
            IndexFolderError: The folder is something else, damaged, or may not be read or written.
        """
        files = files or FileSystem()
        connection = connect(folder, mode, files)
        register_functions(connection)
        return cls(connection, folder, files, analysis)

    def __enter__(self) -> Catalogue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection; a transaction that is open is rolled back."""
        self._connection.close()

    @property
    def folder(self) -> Path:
        """The index folder."""
        return self._folder

    @property
    def connection(self) -> sqlite3.Connection:
        """The connection, for the neighbouring modules that read through it."""
        return self._connection

    # Reading

    def meta(self) -> dict[str, Json]:
        """All settings."""
        with explained(self._folder):
            return read.read_meta(self._connection)

    def documents(self) -> Iterator[DocumentRow]:
        """All documents in order of their keys. Do not write while iterating."""
        with explained(self._folder):
            yield from read.read_documents(self._connection)

    def counts(self) -> CatalogueCounts:
        """How much there is, and how much of it changed since the last snapshot."""
        with explained(self._folder):
            return read.read_counts(self._connection)

    def encoder(self) -> EncoderRow | None:
        """The encoder whose vectors answer, or None before the first one is set."""
        with explained(self._folder):
            return read.current_encoder(self._connection)

    def snapshots(self) -> list[SnapshotRow]:
        """The recorded snapshots, newest first."""
        with explained(self._folder):
            return read.read_snapshots(self._connection)

    def has_background(self, snapshot: SnapshotRow) -> bool:
        """Whether the distribution of a snapshot's vectors is kept with it."""
        with explained(self._folder):
            return has_background(self._connection, snapshot.generation)

    def known_vectors(
        self, text_hashes: Sequence[bytes], fingerprint: str
    ) -> dict[bytes, NDArray[np.float32]]:
        """Vectors that an encoder already gave to texts, by digest of the text; unknown ones are left out."""
        with explained(self._folder):
            encoder = read.find_encoder(self._connection, fingerprint)
            return read.known_vectors(self._connection, encoder, text_hashes) if encoder else {}

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """One read transaction: everything read inside it is of the same moment."""
        with explained(self._folder):
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

    # Writing

    def set_meta(self, values: Mapping[str, Json]) -> None:
        """Set some settings and keep the others.

        `encoder` is an object with at least `fingerprint` and `dimension`: it says which vectors answer, and
        can only change to an encoder that has embedded every passage (see `switch_encoder`).

        Raises:
            EncoderMismatch: Some passages have no vector of that encoder.
        """
        with self._writing():
            for key, value in values.items():
                write.write_meta(self._connection, key, value)
            if "encoder" in values:
                self._require_vectors(values["encoder"])

    def apply(self, changes: Sequence[Change]) -> None:
        """Apply changes in order, all or none: they are durable when the call returns.

        Raises:
            EncoderError: A vector has the wrong length or is not of unit norm.
            ValueError: A passage has no vector, neither given nor known.
            IndexFolderError: The disk is full or the folder may not be written; nothing changed.
        """
        with self._writing():
            analysis = self._analysis or default_analysis()
            writer = write.Writer(self._connection, read.current_encoder(self._connection), analysis)
            stored = read.read_meta(self._connection).get(_ANALYZER_KEY)
            if stored != analysis.version:
                if stored is not None:
                    writer.rebuild_terms()
                write.write_meta(self._connection, _ANALYZER_KEY, analysis.version)
            writer.apply(changes)

    def refresh_lexical(self) -> bool:
        """Make the lexical index anew if another analyser version made it; returns whether it was done.

        Every `apply` does so too; this is for a run that finds nothing else to change.
        """
        if self.lexical_is_current():
            return False
        self.apply([])
        return True

    def lexical_is_current(self) -> bool:
        """Whether the lexical index was made by the present analyser; if not, the next `apply` mends it."""
        with explained(self._folder):
            stored = read.read_setting(self._connection, _ANALYZER_KEY)
        return stored is None or stored == (self._analysis.version if self._analysis else ANALYZER_VERSION)

    def record_snapshot(
        self, row: SnapshotRow, *, keep: int, background: BackgroundRow | None = None
    ) -> list[SnapshotRow]:
        """Record a published vector file and trim the log through it, in one step.

        Args:
            row: What to record.
            keep: How many snapshots to remember.
            background: How the vectors of this one are distributed, if that is known.

        Returns:
            The snapshots that are still recorded, at most `keep`, newest first.
        """
        with self._writing():
            generation = write.record_snapshot(self._connection, row, keep=keep)
            if background is not None:
                write_background(self._connection, generation, background)
            return read.read_snapshots(self._connection)

    # Changing the encoder: embed everything with the new one, in as many runs as it takes, then switch.

    def passages_to_embed(
        self, fingerprint: str, dimension: int, *, limit: int = 1024
    ) -> list[StoredPassage]:
        """Some passages that an encoder has not embedded yet; empty when it has embedded all."""
        with self._writing():
            encoder = write.ensure_encoder(self._connection, fingerprint, dimension)
            ids = write.passages_without_vector(self._connection, encoder, after=0, limit=limit)
            found = read.read_passages(self._connection, ids)
        return [found[id_] for id_ in ids]

    def add_vectors(self, fingerprint: str, vectors: Mapping[int, NDArray[np.float32]]) -> None:
        """Store vectors of an encoder that does not answer yet.

        Raises:
            EncoderError: A vector has the wrong length or is not of unit norm.
        """
        with self._writing():
            encoder = read.find_encoder(self._connection, fingerprint)
            if encoder is None:
                raise ValueError("expected an encoder that passages_to_embed was called with")
            matrix = write.checked_vectors(list(vectors.values()), encoder.dimension)
            write.insert_vectors(self._connection, encoder, zip(vectors, matrix, strict=True))

    def switch_encoder(self, encoder: Mapping[str, Json]) -> None:
        """Let another encoder's vectors answer from now on, and forget all others, in one step.

        Args:
            encoder: The new value of the setting `encoder`.

        Raises:
            EncoderMismatch: It has not embedded every passage; nothing changed.
        """
        with self._writing():
            write.write_meta(self._connection, "encoder", dict(encoder))
            row = self._require_vectors(dict(encoder))
            write.drop_other_encoders(self._connection, row)

    def _require_vectors(self, encoder: Json) -> EncoderRow:
        if not isinstance(encoder, dict):
            raise ValueError(f"expected an object for the setting encoder, found {encoder!r}")
        fingerprint, dimension = encoder.get("fingerprint"), encoder.get("dimension")
        if not isinstance(fingerprint, str) or not isinstance(dimension, int):
            raise ValueError(
                f"expected a fingerprint and a dimension, found {fingerprint!r} and {dimension!r}"
            )
        row = write.ensure_encoder(self._connection, fingerprint, dimension)
        if write.passages_without_vector(self._connection, row, after=0, limit=1):
            raise EncoderMismatch(
                f"expected an index whose passages {encoder.get('name', fingerprint)} has embedded,"
                f" found other vectors in {self._folder}",
                remedy="use the encoder that the index was made with, or embed all passages anew",
            )
        return row

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """One write transaction, committed at the end and rolled back if anything goes wrong."""
        with explained(self._folder):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._files.commit(self._connection)
            except BaseException:
                # SQLite has already rolled back after some errors, such as a full disk.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
