"""The corpus of a BEIR folder as an index, kept in the cache so that the second evaluation is quick."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.embedder.cache import cache_root, writable
from likewise.index.added import TextDocument
from likewise.index.catalogue import Catalogue
from likewise.index.index import INDEX_FOLDER, Index
from likewise.index.lock import WriterLock
from likewise.index.stored import CHUNKER_VERSION
from likewise.retrieval.evaluation.judgements import corpus

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder
    from likewise.index.report import Listener


@contextmanager
def collection_index(
    folder: Path, *, encoder: TextEncoder, keep: bool = True, progress: Listener | None = None
) -> Iterator[Index]:
    """An index of the corpus of a BEIR folder, whose document keys are the corpus's ids.

    Args:
        folder: Holds `corpus.jsonl` or `corpus.jsonl.gz`.
        encoder: Embeds the documents, title in front.
        keep: Keep the index in the cache folder: next time only what changed is embedded. Otherwise it is
            gone after the `with` block.
        progress: Told how far indexing is.

    Raises:
        DataError: The corpus is missing or malformed.
        IndexLocked: Another process is indexing the same corpus.
    """
    place = cache_root() / "collections" / _name(folder, encoder)
    if keep and writable(place):
        with _indexed(place, folder, encoder, progress) as index:
            yield index
    else:
        with (
            tempfile.TemporaryDirectory(prefix="likewise-", ignore_cleanup_errors=True) as temporary,
            _indexed(Path(temporary), folder, encoder, progress) as index,
        ):
            yield index


@contextmanager
def _indexed(place: Path, folder: Path, encoder: TextEncoder, progress: Listener | None) -> Iterator[Index]:
    with Index.open(place / INDEX_FOLDER, encoder=encoder) as index:
        ids = []

        def documents() -> Iterator[TextDocument]:
            for row in corpus(folder):
                ids.append(row.id)
                yield TextDocument(row.id, row.text, row.title)

        index.add(documents(), progress=progress)
        with Catalogue.open(index.folder, mode="read") as catalogue:
            gone = {row.key for row in catalogue.documents()}.difference(ids)
        index.remove(sorted(gone))
        # Words are looked up as the present analyser cuts them, even where no document has changed.
        with WriterLock(index.folder), Catalogue.open(index.folder, mode="write") as catalogue:
            catalogue.refresh_lexical()
        yield index


def _name(folder: Path, encoder: TextEncoder) -> str:
    """Name of a cache folder: readable, and another one for another corpus, encoder or way to cut."""
    resolved = folder.resolve()
    digest = sha256(f"{resolved}\0{encoder.fingerprint}\0{CHUNKER_VERSION}".encode("utf-8", "surrogatepass"))
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in resolved.name)
    return f"{readable[:40]}-{digest.hexdigest()[:16]}"
