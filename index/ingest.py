"""Turn read documents into committed ones: cut, look up known vectors, embed the rest, commit.

Passages of many documents are embedded together, because an encoder is only fast on many texts of similar
length. A group is bounded by passages and by the time that embedding it takes, and is committed in one
transaction: that much, and no more, is lost when the process is killed. Finding and reading files is not done
here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING

from likewise.index.catalogue import Catalogue
from likewise.index.chunker import chunk_with_context
from likewise.index.records import Extraction, Passage
from likewise.index.report import Tally
from likewise.index.rows import Change, PassageRow, WriteDocument
from likewise.index.settings import ChunkSettings, SyncSettings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from likewise.embedder.protocol import TextEncoder

# Texts per call of the encoder: as many as take this long. Then progress is reported and Ctrl-C answered.
_SLICE_SECONDS = 2.0
_FIRST_SLICE, _SMALLEST_SLICE, _LARGEST_SLICE = 64, 16, 256
_CUT_EVENT_EVERY = 512  # passages
_FIRST_GROUP = 128  # before the encoder's speed is known
_SMALLEST_GROUP = 32
_HELD = 8192  # documents, changes or passages in hand, whether or not they need vectors


def text_digest(embedded: str) -> bytes:
    """Digest under which a vector is found again: of the text as it was embedded, context included.

    Example:
        >>> text_digest("Keys")[:4].hex()
        'f0d66a79'
    """
    # A lone surrogate is no text, yet a file name in a title may bring one along.
    return sha256(embedded.encode("utf-8", "surrogatepass")).digest()


@dataclass(slots=True)
class _Pending:
    """A document whose passages are not all committed yet."""

    header: WriteDocument
    is_new: bool
    rows: list[tuple[Passage, bytes]] = field(default_factory=list)
    counted: int = 0  # rows that were committed before


class Ingest:
    """Collects documents and commits them in groups.

    Args:
        catalogue: Open for writing.
        encoder: Embeds the passages; only asked for when there is text.
        chunking: How documents are cut.
        settings: How much is done at a time.
        tally: Counts what has been committed.
        embedding: Called whenever some passages have been embedded.
        clock: Seconds, monotonic.

    Attributes:
        embedded: Passages embedded so far, the ones not yet committed included.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        encoder: Callable[[], TextEncoder],
        *,
        chunking: ChunkSettings,
        settings: SyncSettings,
        tally: Tally,
        embedding: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._catalogue = catalogue
        self._encoder = encoder
        self._chunking = chunking
        self._settings = settings
        self._tally = tally
        self._embedding = embedding
        self._clock = clock
        self.embedded = 0
        self._group = min(_FIRST_GROUP, settings.group_passages)
        self._slice = _FIRST_SLICE
        self._since = clock()
        self._pending: list[_Pending] = []
        self._changes: list[Change] = []
        self._texts: dict[bytes, str] = {}  # by digest: not looked up yet, or known to need a vector
        self._looked_up = 0  # how many of the first texts are known to need one
        self._vectors: dict[bytes, NDArray[np.float32]] = {}  # of the documents in hand

    @property
    def to_embed(self) -> int:
        """Passages that need a vector as far as is known, the ones embedded so far included."""
        return self._tally.embedded + len(self._texts)

    def change(self, change: Change) -> None:
        """Add a change that needs no vectors; it is committed before the documents in hand."""
        self._changes.append(change)
        self._flush_if_due()

    def skip(self, header: WriteDocument, *, is_new: bool) -> None:
        """Add a document without passages."""
        self._pending.append(_Pending(header, is_new))
        self._flush_if_due()

    def add(self, header: WriteDocument, extraction: Extraction, *, is_new: bool) -> None:
        """Cut a document and add its passages.

        Args:
            header: The document without passages.
            extraction: Its text.
            is_new: Whether it counts as added or as updated.
        """
        document = _Pending(header, is_new)
        pieces = chunk_with_context(extraction, tokenizer=self._encoder(), settings=self._chunking)
        for passage, embedded in pieces:
            digest = text_digest(embedded)
            document.rows.append((passage, digest))
            if digest not in self._vectors:
                self._texts.setdefault(digest, embedded)
            if len(document.rows) % _CUT_EVENT_EVERY == 0:
                self._embedding()
        self._pending.append(document)
        if len(self._texts) >= self._group:
            # The whole document at once, before any of it is written: writing its first part would remove
            # the old passages whose vectors the rest may use again.
            self._look_up()
        while len(self._texts) >= self._group:
            self._flush()
        self._flush_if_due()

    def flush(self) -> None:
        """Embed and commit everything in hand."""
        while self._pending or self._changes:
            self._flush()

    def _flush_if_due(self) -> None:
        rows = sum(len(document.rows) for document in self._pending)
        held = max(rows, len(self._pending) + len(self._changes))
        if held >= _HELD or self._clock() - self._since >= self._settings.commit_seconds:
            self.flush()

    def _look_up(self) -> None:
        """Find the vectors that the catalogue already has."""
        unchecked = list(self._texts)[self._looked_up :]
        if unchecked:
            found = self._catalogue.known_vectors(unchecked, self._encoder().fingerprint)
            for digest in found:
                del self._texts[digest]
            self._vectors.update(found)
        self._looked_up = len(self._texts)

    def _flush(self) -> None:
        """Embed a group and commit every document in hand, one that needs more vectors as far as it goes.

        Such a document is stored without a content hash: should this sync not come to its end, the next one
        reads it again, and finds its vectors by text.
        """
        self._look_up()
        group = dict(islice(self._texts.items(), self._group))
        self._vectors.update(self._embed(group))
        for digest in group:
            del self._texts[digest]
        self._looked_up = len(self._texts)
        self._catalogue.apply([*self._changes, *map(self._write, self._pending)])
        self._changes = []
        self._tally.embedded += len(group)
        self._pending = [document for document in self._pending if not self._count(document)]
        if not self._pending:
            self._vectors = {}
        self._since = self._clock()

    def _write(self, document: _Pending) -> WriteDocument:
        rows = [
            PassageRow(passage, digest, self._vectors[digest])
            for passage, digest in document.rows
            if digest in self._vectors
        ]
        whole = len(rows) == len(document.rows)
        content_hash = document.header.content_hash if whole else ""
        return replace(document.header, passages=rows, content_hash=content_hash)

    def _count(self, document: _Pending) -> bool:
        """Count what was committed of a document; whether that is all of it."""
        committed = sum(digest in self._vectors for _, digest in document.rows)
        self._tally.passages += committed - document.counted
        document.counted = committed
        if committed < len(document.rows):
            return False
        if document.is_new:
            self._tally.added += 1
        else:
            self._tally.updated += 1
        return True

    def _embed(self, texts: Mapping[bytes, str]) -> dict[bytes, NDArray[np.float32]]:
        vectors: dict[bytes, NDArray[np.float32]] = {}
        if not texts:
            return vectors
        encoder = self._encoder()
        # By length, so that a batch has little padding; the encoder sorts too, but sees only a slice.
        order = sorted(texts.items(), key=lambda item: len(item[1]))
        began = self._clock()
        start = 0
        while start < len(order):
            piece = order[start : start + self._slice]
            start += len(piece)
            since = self._clock()
            embedded, truncated = encoder.embed([text for _, text in piece], role="passage")
            vectors.update(zip((digest for digest, _ in piece), embedded, strict=True))
            self._tally.truncated += len(truncated)
            self.embedded += len(piece)
            self._embedding()
            if (seconds := self._clock() - since) > 0:
                texts_then = int(len(piece) / seconds * _SLICE_SECONDS)
                self._slice = min(_LARGEST_SLICE, max(_SMALLEST_SLICE, texts_then))
        self._adapt(len(order), self._clock() - began)
        return vectors

    def _adapt(self, texts: int, seconds: float) -> None:
        """Choose the next group so that embedding it takes no longer than a commit may wait."""
        wanted = self._settings.group_passages
        if seconds > 0:
            wanted = min(wanted, int(texts / seconds * self._settings.commit_seconds))
        self._group = min(self._settings.group_passages, max(_SMALLEST_GROUP, wanted))
