"""Open the SQLite file of an index folder, and say clearly why it cannot be opened.

Holds only what concerns connections: modes, pragmas, format version, error messages. No table is read here.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from likewise.errors import IndexFolderError, IndexLocked, IndexNotFound, IndexVersionError
from likewise.index.files import FileSystem
from likewise.index.lock import WriterLock
from likewise.index.migrations import FORMAT_VERSION, migrate
from likewise.index.migrations.m0001_initial import APPLICATION_ID

Mode = Literal["read", "write", "create"]

CATALOGUE_FILE = "catalogue.db"

# Names that an index folder may hold before its catalogue exists.
_BEFORE_CATALOGUE = ("write.lock", "writer.json", ".gitignore")

# How the names of all that an index folder ever holds begin.
_OF_AN_INDEX = (*_BEFORE_CATALOGUE, CATALOGUE_FILE, "vectors-")

# Ten vectors of 384 dimensions or three of 1024 fill such a page well; in the default of 4096 bytes they
# leave a quarter empty.
_PAGE_SIZE = 16384
_BUSY_SECONDS = 10.0


def connect(folder: Path, mode: Mode, files: FileSystem) -> sqlite3.Connection:
    """Connect to the catalogue of an index folder.

    Args:
        folder: The index folder.
        mode: `"read"` never changes a file; `"write"` needs an index; `"create"` makes one where none is.
            The caller of the latter two holds the `WriterLock`.
        files: Commits.

    Returns:
        A connection in autocommit mode that may be handed from thread to thread, used by one at a time.

    Raises:
        IndexNotFound: There is no index.
        IndexVersionError: A newer version of likewise made it.
        IndexFolderError: The folder is something else, damaged, or may not be read or written.
    """
    path = folder / CATALOGUE_FILE
    if mode == "create" and not path.exists():
        _make_folder(folder)
    elif not path.is_file():
        raise _not_an_index(folder)
    with explained(folder):
        if mode != "read":
            return _open_writer(folder, path, mode, files)
        return _open_reader(folder, path) or _upgrade_and_open_reader(folder, path, files)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn what SQLite says into an error that says which index it concerns and what mends it."""
    try:
        yield
    except sqlite3.Error as error:
        text = str(error)
        if "locked" in text:
            raise IndexLocked(
                f"the index {folder} is being written by another process", remedy="try again in a moment"
            ) from error
        if "is full" in text:
            raise IndexFolderError(
                f"no space left for the index {folder}; everything committed before is kept",
                remedy="free some disk space, then run likewise index again",
            ) from error
        if "readonly" in text or "unable to open" in text:
            raise IndexFolderError(
                f"the index {folder} cannot be opened for this: {text}",
                remedy=f"give yourself read and write permission on {folder}",
            ) from error
        if "malformed" in text or "not a database" in text:
            raise IndexFolderError(
                f"the catalogue of the index {folder} is damaged: {text}",
                remedy=remedy_of_damage(folder),
            ) from error
        raise IndexFolderError(f"the index {folder} cannot be used: {text}") from error


def remedy_of_damage(folder: Path) -> str:
    """What mends an index whose catalogue is damaged; never to delete a folder that holds anything else."""
    foreign = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith(_OF_AN_INDEX))
    if foreign:
        return (
            f"name the folder that likewise index made (it is called .likewise): {folder} holds other files "
            f"too, such as {foreign[0]}"
        )
    return f"delete {folder} and run likewise index again; your documents are not affected"


def _not_an_index(folder: Path) -> IndexFolderError:
    if not folder.exists():
        return IndexNotFound(f"no index at {folder}", remedy="likewise index FOLDER")
    if not folder.is_dir():
        return IndexFolderError(f"expected an index folder, found the file {folder}")
    if all(entry.name in _BEFORE_CATALOGUE for entry in folder.iterdir()):
        return IndexNotFound(f"no index in {folder} yet", remedy="likewise index FOLDER")
    return IndexFolderError(
        f"{folder} is not an index: it has no {CATALOGUE_FILE}",
        remedy="name the folder that likewise index made (it is called .likewise)",
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = next((entry for entry in folder.iterdir() if entry.name not in _BEFORE_CATALOGUE), None)
    except OSError as error:
        raise IndexFolderError(
            f"the index folder {folder} cannot be made: {error.strerror or error}",
            remedy="choose a folder you may write to with --index",
        ) from error
    if foreign is not None:
        raise IndexFolderError(
            f"expected an empty or missing folder for a new index, found {foreign.name} in {folder}",
            remedy="empty that folder, or choose another with --index",
        )


def _open_reader(folder: Path, path: Path) -> sqlite3.Connection | None:
    """A connection for reading, or None if the catalogue is of an older format."""
    connection = _connect(path, "mode=ro")
    try:
        try:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        except sqlite3.OperationalError:
            # A catalogue in WAL mode needs its -wal and -shm files, which cannot be made in a folder that may
            # not be written. Without a log nobody is writing, so the file may be read as it stands.
            wal = path.with_name(path.name + "-wal")
            if wal.exists() and wal.stat().st_size:
                raise
            connection.close()
            connection = _connect(path, "immutable=1")
        version = _format(connection, folder)
        if version == 0:
            # A writer was stopped between making the file and filling it.
            raise IndexNotFound(f"no index in {folder} yet", remedy="likewise index FOLDER")
    except BaseException:
        connection.close()
        raise
    if version < FORMAT_VERSION:
        connection.close()
        return None
    return connection


def _upgrade_and_open_reader(folder: Path, path: Path, files: FileSystem) -> sqlite3.Connection:
    """Bring the catalogue to the current format, as far as that is possible for a reader."""
    try:
        with WriterLock(folder, timeout=0):
            _open_writer(folder, path, "write", files).close()
    except IndexFolderError as error:
        raise IndexFolderError(
            f"the index {folder} is of an older format and cannot be upgraded now: {error.message}",
            remedy="likewise index",
        ) from error
    connection = _open_reader(folder, path)
    if connection is None:
        raise IndexFolderError(f"the index {folder} did not change to format {FORMAT_VERSION}")
    return connection


def _open_writer(folder: Path, path: Path, mode: Mode, files: FileSystem) -> sqlite3.Connection:
    connection = _connect(path, "mode=rwc" if mode == "create" else "mode=rw")
    try:
        _format(connection, folder)
        connection.execute(f"PRAGMA page_size = {_PAGE_SIZE}")  # takes effect on an empty file only
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA fullfsync = ON")  # macOS; has no effect elsewhere
        connection.execute("PRAGMA foreign_keys = ON")
        # What is deleted shall be gone from the file, whatever SQLite was compiled with.
        connection.execute("PRAGMA secure_delete = ON")
        migrate(connection, files)
    except BaseException:
        connection.close()
        raise
    return connection


def _connect(path: Path, parameters: str) -> sqlite3.Connection:
    # A Windows drive letter needs the slash in front of it: file:///C:/...
    name = quote(path.absolute().as_posix())
    uri = f"file://{name if name.startswith('/') else '/' + name}?{parameters}"
    return sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS
    )


def _format(connection: sqlite3.Connection, folder: Path) -> int:
    """Format version of the catalogue, 0 for an empty file; foreign and newer ones are refused."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if tables and application != APPLICATION_ID:
        raise IndexFolderError(
            f"{folder / CATALOGUE_FILE} is a database, but not a likewise catalogue",
            remedy="choose another folder with --index",
        )
    if version > FORMAT_VERSION:
        raise IndexVersionError(
            f"the index {folder} has format {version}, this version of likewise reads up to {FORMAT_VERSION}",
            remedy="pip install --upgrade likewise",
        )
    return int(version)
