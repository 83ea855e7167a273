"""One writer at a time per index folder, in whatever process, and a name for whoever it is.

The lock is the operating system's (flock, LockFileEx), so it ends with its process, however that ends: a file
that says who writes may be left behind, a lock cannot. The file is only there to be shown to people; no
decision rests on it. Network file systems that do not pass locks on are not served.
"""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from likewise.errors import IndexFolderError, IndexLocked

if TYPE_CHECKING:
    from filelock import BaseFileLock

LOCK_FILE = "write.lock"
HOLDER_FILE = "writer.json"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who writes, or wrote, to an index.

    Attributes:
        pid: Process id.
        host: Name of the machine.
        since: When it began, seconds since the epoch.
    """

    pid: int
    host: str
    since: float

    def __str__(self) -> str:
        began = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.since))
        return f"process {self.pid} on {self.host}, since {began}"


class WriterLock:
    """The right to write to an index folder; a context manager.

    Args:
        folder: The index folder; made if it does not exist.
        timeout: Seconds to wait for another writer to finish.

    Attributes:
        recovered: A writer that ended without releasing the lock (killed, power lost), found when this one
            was acquired; what it had committed is there.

    Raises:
        IndexLocked: On entry: another process, or another lock of this one, is writing.
        IndexFolderError: On entry: the folder may not be written.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> with WriterLock(folder):
        ...     current_holder(folder).pid == os.getpid()
        True
        >>> current_holder(folder) is None
        True
    """

    def __init__(self, folder: Path, *, timeout: float = 0.5) -> None:
        self._folder = folder
        self._timeout = timeout
        self._lock: BaseFileLock | None = None
        self.recovered: Holder | None = None

    def __enter__(self) -> WriterLock:
        from filelock import FileLock, Timeout

        # Not bound to a thread: a server may acquire in one and release in another.
        lock = FileLock(self._folder / LOCK_FILE, thread_local=False)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            lock.acquire(timeout=self._timeout)
        except Timeout:
            holder = _read_holder(self._folder)
            raise IndexLocked(
                f"the index {self._folder} is being written by {holder or 'another process'}",
                remedy="wait until it is done, or end that process",
            ) from None
        except (OSError, NotImplementedError) as error:  # the latter is filelock's: no locks there
            raise IndexFolderError(
                f"the index folder {self._folder} cannot be written: {error}",
                remedy=f"give yourself write permission on {self._folder}, or choose another with --index",
            ) from error
        self._lock = lock
        self.recovered = _read_holder(self._folder)
        try:
            holder = Holder(os.getpid(), socket.gethostname(), time.time())
            (self._folder / HOLDER_FILE).write_text(json.dumps(asdict(holder)), encoding="utf-8")
        except OSError as error:
            # The disk may be full; the lock itself holds, but without space there is nothing to write for.
            self._release()
            raise IndexFolderError(
                f"the index folder {self._folder} cannot be written: {error}",
                remedy="free some disk space, or check the permissions of the folder",
            ) from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Before the lock is released: afterwards the file may already be another writer's.
        (self._folder / HOLDER_FILE).unlink(missing_ok=True)
        self._release()

    def _release(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None


def current_holder(folder: Path) -> Holder | None:
    """Who is writing to the index, or None if nobody is. Changes nothing, and does not wait."""
    holder = _read_holder(folder)
    if holder is None:
        return None
    from filelock import FileLock, Timeout

    lock = FileLock(folder / LOCK_FILE, thread_local=False)
    try:
        with lock.acquire(timeout=0):
            return None  # left behind by a process that is gone
    except Timeout:
        return holder
    except OSError:
        return None  # a folder that may not be written has no writer that we could know of


def _read_holder(folder: Path) -> Holder | None:
    try:
        found = json.loads((folder / HOLDER_FILE).read_text(encoding="utf-8"))
        return Holder(int(found["pid"]), str(found["host"]), float(found["since"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None  # absent, or being written at this moment
