"""The few file-system calls that durability depends on, in one place so that tests can make each one fail.

Everything that must survive a crash is written through a `FileSystem`: tests pass a subclass that stops the
process at the n-th call, tears a write or runs out of space. Nothing here knows what the files mean.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from typing import BinaryIO


class FileSystem:
    """Create, flush, rename and remove files so that the order on disk is the order of the calls.

    Example:
        >>> import tempfile
        >>> files, folder = FileSystem(), Path(tempfile.mkdtemp())
        >>> with files.create(folder / "a.tmp") as file:
        ...     _ = files.write(file, b"content")
        ...     files.sync(file)
        >>> files.rename(folder / "a.tmp", folder / "a")
        >>> files.sync_folder(folder)
        >>> (folder / "a").read_bytes()
        b'content'
    """

    def create(self, path: Path) -> BinaryIO:
        """Open a new file for writing; one that exists is an error, never overwritten."""
        return path.open("xb")

    def write(self, file: BinaryIO, data: bytes) -> int:
        """Write all of `data`; returns its length."""
        return file.write(data)

    def sync(self, file: BinaryIO) -> None:
        """Wait until the content of the file is on the device."""
        file.flush()
        if sys.platform == "darwin":
            # fsync on macOS leaves the data in the drive's cache; F_FULLFSYNC does what the name promises.
            import fcntl

            fcntl.fcntl(file.fileno(), fcntl.F_FULLFSYNC)
        else:
            os.fsync(file.fileno())

    def sync_folder(self, folder: Path) -> None:
        """Wait until names created, renamed or removed in the folder are on the device."""
        if sys.platform == "win32":
            return  # NTFS journals names, and a folder cannot be opened for flushing
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, source: Path, target: Path) -> None:
        """Give a file its final name in one step."""
        os.rename(source, target)

    def unlink(self, path: Path) -> None:
        """Remove a file; one that is already gone is fine."""
        path.unlink(missing_ok=True)

    def commit(self, connection: sqlite3.Connection) -> None:
        """Commit the transaction; SQLite waits for the device itself (`synchronous=FULL`)."""
        connection.execute("COMMIT")
