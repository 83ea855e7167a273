"""A copy of an index to change at will and throw away; the index itself is only read."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from likewise.errors import IndexFolderError
from likewise.index.catalogue import CATALOGUE_FILE, Catalogue
from likewise.index.catalogue_open import explained


@contextmanager
def scratch_copy(folder: Path) -> Iterator[Path]:
    """The index folder of a copy, which is as large as the catalogue and gone after the `with` block.

    The copy is of one moment, whoever writes meanwhile. It has no vector file: publish one, or the first
    search does.

    Args:
        folder: The index folder.

    Raises:
        IndexNotFound: There is no index.
        IndexFolderError: It cannot be read, or there is no space for a copy.

    Example:
        >>> from likewise.index.index import Index
        >>> with tempfile.TemporaryDirectory() as place:
        ...     _ = (Path(place) / "keys.md").write_text("Rotate keys yearly.")
        ...     with Index.open(Path(place) / ".likewise", encoder="hash") as index:
        ...         _ = index.sync([place])
        ...     with scratch_copy(index.folder) as copy, Index.open(copy) as other:
        ...         other.status().counts.passages
        1
    """
    try:
        place = tempfile.TemporaryDirectory(prefix="likewise-", ignore_cleanup_errors=True)
    except OSError as error:
        raise IndexFolderError(
            f"no folder can be made for a copy of the index: {error.strerror or error}",
            remedy="free some disk space, or set TMPDIR to a folder that has some",
        ) from error
    with place as name:
        copy = Path(name) / folder.name
        copy.mkdir()
        with (
            Catalogue.open(folder, mode="read") as original,
            explained(copy),
            closing(sqlite3.connect(copy / CATALOGUE_FILE)) as target,
        ):
            original.connection.backup(target)
        yield copy
