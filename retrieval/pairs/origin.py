"""Where the documents for pairs come from: the index that holds a folder, or the folder itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import DataError, IndexNotFound, SourceError
from likewise.index.index import Index
from likewise.index.keys import document_key
from likewise.index.readers.isolate import ReaderPool
from likewise.retrieval.pairs.documents import Documents, FileLinks, IndexDocuments, read_folder

if TYPE_CHECKING:
    from likewise.embedder.protocol import TextEncoder


@contextmanager
def documents_of(
    folder: Path,
    *,
    index: Path | None = None,
    encoder: Callable[[], TextEncoder],
    progress: Callable[[int, int], None] | None = None,
) -> Iterator[tuple[Documents, Path | None]]:
    """The documents in a folder, for the length of a `with` block.

    Args:
        folder: A folder of documents, with an index in it or above it or without any.
        index: The index to use, whatever stands around the folder.
        encoder: Gives the encoder that passages shall fit; asked only where there is no index.
        progress: Called with the number of files read, and of all.

    Yields:
        The documents by key, and the index that they come from; None where the files were read.

    Raises:
        SourceError: There is no such folder.
        IndexFolderError: The index that was named cannot be used.
        DataError: There is no document with text.
    """
    if not folder.is_dir():
        raise SourceError(
            f"expected a folder of documents, found {'a file' if folder.exists() else 'nothing'} at {folder}",
            remedy="look whether the name is right",
        )
    found = index or _index_around(folder)
    if found is None:
        yield read_folder(folder, tokenizer=encoder(), progress=progress), None
        return
    with Index.open(found) as opened, opened.view() as view, ReaderPool() as pool:
        below, links = _prefix(folder, opened.base), FileLinks(pool, opened.base)
        documents = IndexDocuments(view, below=below, links=links)
        if not documents:
            raise DataError(
                f"the index {found} holds no documents with text in {folder}",
                remedy=f"likewise index {folder}",
            )
        yield documents, found


def _index_around(folder: Path) -> Path | None:
    """The nearest index that holds documents of the folder."""
    try:
        found = Index.find(folder)
    except IndexNotFound:
        return None
    with Index.open(found) as opened, opened.view() as view:
        prefix = _prefix(folder, opened.base)
        holds = any(row.key.startswith(prefix) for row in view.documents())
    return found if holds or found.parent == folder.absolute() else None


def _prefix(folder: Path, base: Path) -> str:
    """What the keys of documents in a folder begin with."""
    key = document_key(Path(os.path.realpath(folder)), Path(os.path.realpath(base)))
    return "" if key == "." else key.rstrip("/") + "/"
