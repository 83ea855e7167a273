"""One run at a time in a folder: two would remove each other's checkpoints and mix their logs.

The lock is the operating system's, so it ends with its process, however that ends. Processes that train one
model together are one run, whose first process holds it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from likewise.errors import TrainingError


@contextlib.contextmanager
def only_run(folder: Path, *, leads: bool = True) -> Iterator[None]:
    """Keep other runs out of a folder for the length of a `with` block.

    Args:
        folder: Where the run keeps its files; made for the lock, gone afterwards if nothing else is in it.
        leads: Whether this is the first process of the run; others take no lock.

    Raises:
        TrainingError: Another run is in the folder, or it cannot be written.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp()) / "training"
        >>> with only_run(folder):
        ...     folder.is_dir()
        True
        >>> folder.exists()
        False
    """
    if not leads:
        yield
        return
    from filelock import FileLock, Timeout

    path = folder / "run.lock"
    lock = FileLock(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise TrainingError(
            f"another process is training in {folder}",
            remedy="wait until it is done, end it, or name another folder",
        ) from None
    except (OSError, NotImplementedError) as error:  # the latter is filelock's: no locks there
        raise TrainingError(
            f"the folder {folder} cannot be written: {error}", remedy="name another folder for the result"
        ) from error
    try:
        yield
    finally:
        lock.release()
        with contextlib.suppress(OSError):  # another run may have begun, and Windows then holds the file
            path.unlink(missing_ok=True)
            folder.rmdir()
            folder.parent.rmdir()
