"""Read an index: views that are one moment each, and the reader that remembers vectors between them.

An `IndexView` is one read transaction; whatever writers do meanwhile, all its answers are of the same moment.
An `IndexReader` lives as long as a program does and hands out views, to several threads at once. Neither ever
changes the index, except that a damaged snapshot is published again if nobody else is writing.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from likewise.errors import EncoderMismatch, UsageError
from likewise.index import catalogue_read as read
from likewise.index import catalogue_words as words
from likewise.index import vector_memory
from likewise.index.background import Background, BackgroundMemory
from likewise.index.catalogue import CATALOGUE_FILE, Catalogue
from likewise.index.catalogue_read import EncoderRow
from likewise.index.coverage import COVERAGE, Coverage, stored_coverage
from likewise.index.dense import rank_densely
from likewise.index.phrases import Phrase
from likewise.index.records import Filter, Json, StoredPassage
from likewise.index.rows import CatalogueCounts, DocumentRow, Ranking
from likewise.index.snapshot import SnapshotUnusable, repair
from likewise.index.unfinished import UNFINISHED, stored_unfinished, unfinished_notice
from likewise.index.vector_memory import VectorMemory

_OUTDATED = (
    "the word index was made by another version of the analyser, so words may be missed;"
    " likewise index brings it up to date"
)


class IndexView:
    """The index at one moment; made by `open_view` or `IndexReader.view`.

    Attributes:
        notices: What a person should know: that documents are missing because a sync was stopped, that a
            snapshot had to be rebuilt.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        encoder: EncoderRow | None,
        memory: VectorMemory | None,
        notice: str = "",
        backgrounds: BackgroundMemory | None = None,
    ) -> None:
        self._connection: sqlite3.Connection = catalogue.connection
        self._encoder = encoder
        self._memory = memory
        self._backgrounds = backgrounds or BackgroundMemory()
        outdated = "" if catalogue.lexical_is_current() else _OUTDATED
        unfinished = stored_unfinished(read.read_setting(self._connection, UNFINISHED))
        incomplete = unfinished_notice(catalogue.folder, unfinished)
        repaired = memory.notice if memory else ""
        self.notices = tuple(text for text in (incomplete, notice, repaired, outdated) if text)

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the encoder whose vectors answer; "" for an index without any."""
        return self._encoder.fingerprint if self._encoder else ""

    @property
    def passage_count(self) -> int:
        """How many passages there are."""
        return read.count_passages(self._connection)

    def meta(self) -> dict[str, Json]:
        """All settings."""
        return read.read_meta(self._connection)

    def counts(self) -> CatalogueCounts:
        """How many documents and passages there are."""
        return read.read_counts(self._connection)

    def select(self, filter: Filter) -> NDArray[np.int64] | None:
        """Ids of the passages that may answer, ascending, or None if the filter allows all.

        Raises:
            FilterError: A path pattern is malformed.
        """
        return read.select_passages(self._connection, filter) if filter else None

    def dense(self, vector: NDArray[np.float32], k: int, allowed: NDArray[np.int64] | None = None) -> Ranking:
        """The passages most similar to a vector, by cosine.

        Args:
            vector: float32 of shape (dimension,), of unit length, from the index's own encoder.
            k: How many at most, at least 1.
            allowed: Ascending ids from `select`, or None for all.

        Raises:
            UsageError: `k` is below 1.
            EncoderMismatch: The vector has another length than those in the index.
        """
        _check_k(k)
        if self._encoder is None or self._memory is None:
            return read.empty_ranking()
        if vector.shape != (self._encoder.dimension,):
            raise EncoderMismatch(
                f"expected a vector of shape ({self._encoder.dimension},), found {vector.shape}",
                remedy="use the encoder that the index was made with",
            )
        stores = (self._memory.base, self._memory.tail)
        return rank_densely(self._connection, self._encoder, stores, vector, k, allowed)

    def lexical(self, terms: Sequence[str], k: int, allowed: NDArray[np.int64] | None = None) -> Ranking:
        """The passages that match any of the terms best, by BM25.

        Args:
            terms: From `analyze_query`; taken literally, nothing in them is an operator.
            k: How many at most, at least 1.
            allowed: Ascending ids from `select`, or None for all.

        Raises:
            UsageError: `k` is below 1.
        """
        _check_k(k)
        return read.rank_lexically(self._connection, terms, k, allowed)

    def background(self) -> Background | None:
        """How the vectors of the index are distributed; None for an index without passages.

        It may lag behind by a tenth of the passages.
        """
        return self._backgrounds.current(self._connection, self._encoder) if self._encoder else None

    def coverage(self) -> Coverage | None:
        """How well the encoder's vocabulary covers the passages; None if it was not measured yet."""
        return stored_coverage(read.read_setting(self._connection, COVERAGE), self.fingerprint)

    def passages_with(self, terms: Sequence[str]) -> dict[str, int]:
        """How many passages hold each of the terms; terms that none holds are left out.

        Args:
            terms: From `analyze_query`.
        """
        return read.count_passages_with(self._connection, terms)

    def containing(self, wanted: str | Phrase, allowed: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Ids of the passages that hold a term or a phrase in text, heading or title, ascending.

        Args:
            wanted: A term from `analyze`, or a phrase.
            allowed: Ascending ids to look among, or None for all.
        """
        if isinstance(wanted, Phrase):
            return words.passages_with_phrase(self._connection, wanted, allowed)
        return words.passages_with_term(self._connection, wanted, allowed)

    def terms_beginning(self, letter: str, shortest: int, longest: int) -> dict[str, int]:
        """Terms of a length that begin with a letter, with the number of passages that hold them."""
        return words.terms_beginning(self._connection, letter, shortest, longest)

    def everything(self) -> NDArray[np.int64]:
        """Ids of all passages, ascending."""
        return words.all_passages(self._connection)

    def passages(self, ids: Iterable[int]) -> dict[int, StoredPassage]:
        """Passages by id; ids that do not exist are left out."""
        return read.read_passages(self._connection, ids)

    def vectors(self, ids: Sequence[int] | NDArray[np.int64]) -> NDArray[np.float32]:
        """Vectors of passages in the order of the ids, float32 of shape (n, dimension).

        Raises:
            UsageError: An id does not exist.
        """
        wanted = np.asarray(ids, dtype=np.int64)
        if self._encoder is None or not len(wanted):
            if len(wanted):
                raise UsageError(f"there is no passage with id {wanted[0]}")
            return np.empty((0, self._encoder.dimension if self._encoder else 0), np.float32)
        found, vectors = read.read_vectors(self._connection, self._encoder, wanted)
        missing = np.setdiff1d(wanted, found)
        if len(missing):
            raise UsageError(f"there is no passage with id {missing[0]}")
        return vectors[np.searchsorted(found, wanted)]

    def document_passages(self, key: str) -> list[StoredPassage]:
        """Passages of a document in text order; empty if there is no such document."""
        return read.read_document_passages(self._connection, key)

    def documents(self) -> Iterator[DocumentRow]:
        """All documents in order of their keys."""
        return read.read_documents(self._connection)


class IndexReader:
    """Hands out views of an index folder and keeps vectors in memory between them.

    Safe to use from several threads: each view has a database connection of its own, the vectors are shared.

    Args:
        folder: The index folder.

    Raises:
        IndexNotFound: There is no index.
        IndexFolderError: The folder cannot be read, or is something else.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._loading = threading.Lock()
        self._memory: VectorMemory | None = None
        self._backgrounds = BackgroundMemory()
        self._closed = False
        self._identity = _identity(folder)
        self._idle: list[Catalogue] = [Catalogue.open(folder, mode="read")]

    def __enter__(self) -> IndexReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; those that a view is using when it ends."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for catalogue in idle:
            catalogue.close()

    @contextmanager
    def view(self) -> Iterator[IndexView]:
        """The index as it is now, for the length of a `with` block.

        Raises:
            IndexNotFound: The index is gone.
        """
        catalogue, identity = self._take()
        try:
            with ExitStack() as transaction:
                yield self._begin(catalogue, transaction)
        finally:
            self._give_back(catalogue, identity)

    def _begin(self, catalogue: Catalogue, transaction: ExitStack) -> IndexView:
        """Begin a read transaction, with the vectors that belong to its moment.

        A snapshot that cannot be used may just have been replaced, so the catalogue is asked again; then it
        is published anew; and where that is not possible the vectors are read from the catalogue.
        """
        notice = ""
        for attempt in range(3):
            connection = transaction.enter_context(catalogue.reading())
            encoder = read.current_encoder(connection)
            if encoder is None:
                return IndexView(catalogue, None, None)
            try:
                memory = self._remember(connection, encoder)
                return IndexView(catalogue, encoder, memory, notice, self._backgrounds)
            except SnapshotUnusable as error:
                if attempt == 2:
                    notice = f"{error.message}; its vectors were read from the catalogue instead"
                    memory = vector_memory.read_catalogue(connection, encoder, notice)
                    self._memory = memory
                    return IndexView(catalogue, encoder, memory, backgrounds=self._backgrounds)
                damage = error.message
            transaction.close()
            if attempt == 1 and repair(self._folder):
                notice = f"{damage}; it was made again from the catalogue"
        raise AssertionError("the last attempt returns")

    def _remember(self, connection: sqlite3.Connection, encoder: EncoderRow) -> VectorMemory:
        with self._loading:
            memory = vector_memory.current(connection, encoder, self._folder, self._memory)
            self._memory = memory
            return memory

    def _take(self) -> tuple[Catalogue, tuple[int, int]]:
        identity = _identity(self._folder)
        with self._lock:
            if identity != self._identity:
                # The index was deleted and made again: nothing that was remembered belongs to it.
                outdated, self._idle = self._idle, []
                self._identity, self._memory = identity, None
                self._backgrounds = BackgroundMemory()
            else:
                outdated = []
            catalogue = self._idle.pop() if self._idle else None
        for old in outdated:
            old.close()
        return catalogue or Catalogue.open(self._folder, mode="read"), identity

    def _give_back(self, catalogue: Catalogue, identity: tuple[int, int]) -> None:
        with self._lock:
            if identity == self._identity and not self._closed:
                self._idle.append(catalogue)
                return
        catalogue.close()


def _identity(folder: Path) -> tuple[int, int]:
    """Which file the catalogue is, whatever its content."""
    try:
        status = (folder / CATALOGUE_FILE).stat()
    except OSError:
        return (0, 0)  # opening it will say what is wrong
    return (status.st_dev, status.st_ino)


@contextmanager
def open_view(folder: Path) -> Iterator[IndexView]:
    """The index in a folder as it is now, for one use; keep an `IndexReader` for more than one.

    Raises:
        IndexNotFound: There is no index.
        IndexFolderError: The folder cannot be read, or is something else.
    """
    with IndexReader(folder) as reader, reader.view() as view:
        yield view


def _check_k(k: int) -> None:
    if k < 1:
        raise UsageError(f"expected k of at least 1, found {k}")
