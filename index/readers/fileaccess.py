"""Read the bytes of one regular file, or say why not: never hangs, never follows a link, never trusts a stat.

Between the scan and the read a file may vanish, grow, turn into a FIFO or change under the reader's eyes. All
of that ends in a `Skip` here, in the parent process; the worker only ever sees bytes.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from pathlib import Path

from likewise.index.readers.base import FileContent, ReaderLimits, Vanished
from likewise.index.records import DocumentState, Skip

# A FIFO that replaces the file after lstat must not block the open, a link must not lead elsewhere. Windows
# has neither flag, and opens in text mode unless told otherwise.
_OPEN_FLAGS = (
    os.O_RDONLY
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)
_CHUNK = 1 << 20


def load(path: Path, limits: ReaderLimits) -> tuple[FileContent | None, bytes | Skip]:
    """Read and hash a file.

    Args:
        path: A regular file; anything else is refused.
        limits: `max_bytes` is checked before anything is read.

    Returns:
        What identifies the content, None if not even its size is known, and the bytes or why there are none.
    """
    try:
        for _ in range(2):
            loaded = _load_once(path, limits)
            if loaded is not None:
                return loaded
    except (FileNotFoundError, NotADirectoryError):
        return None, Vanished(DocumentState.FAILED, "vanished before it was read")
    except OSError as error:
        return _stat_only(path), Skip(DocumentState.FAILED, _sentence(error))
    return _stat_only(path), Skip(DocumentState.FAILED, "changed while being read, twice")


def content_of(path: Path, limits: ReaderLimits) -> FileContent | Skip:
    """Size, time and hash of a file, to see whether it is still the same, without reading its text."""
    content, data = load(path, limits)
    if isinstance(data, Skip):
        return data
    assert content is not None, "bytes never come without their identity"
    return content


def _load_once(path: Path, limits: ReaderLimits) -> tuple[FileContent | None, bytes | Skip] | None:
    """One attempt; None when the file changed meanwhile."""
    before = os.lstat(path)
    if not stat.S_ISREG(before.st_mode):
        return None, Skip(DocumentState.UNSUPPORTED, f"is {kind_of(before.st_mode)}, not a regular file")
    if before.st_size > limits.max_bytes:
        return _identity(before, ""), Skip(
            DocumentState.TOO_LARGE,
            f"has {before.st_size:,} bytes, the limit is {limits.max_bytes:,}",
        )
    descriptor = os.open(path, _OPEN_FLAGS)
    try:
        opened = os.fstat(descriptor)
        if not stat.S_ISREG(opened.st_mode) or opened.st_size > limits.max_bytes:
            return None  # replaced since lstat: look again
        data = _read_all(descriptor, opened.st_size)
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if len(data) != after.st_size or _version(opened) != _version(after):
        return None
    return _identity(after, hashlib.sha256(data).hexdigest()), data


def _read_all(descriptor: int, size: int) -> bytes:
    """The file's bytes, at most one more than `size`: enough to see that it grew."""
    chunks = []
    missing = size + 1
    while missing > 0:
        chunk = os.read(descriptor, min(missing, _CHUNK))
        if not chunk:
            break
        chunks.append(chunk)
        missing -= len(chunk)
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _version(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _identity(status: os.stat_result, content_hash: str) -> FileContent:
    return FileContent(content_hash, status.st_size, status.st_mtime_ns)


def _stat_only(path: Path) -> FileContent | None:
    try:
        return _identity(os.lstat(path), "")
    except OSError:
        return None


def kind_of(mode: int) -> str:
    """What a file mode stands for, with its article: "a FIFO"."""
    kinds = (
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a FIFO"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    return next((name for test, name in kinds if test(mode)), "something else")


def _sentence(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "permission denied"
    if error.errno == errno.ELOOP:
        return "is a symbolic link, not a regular file"
    return f"cannot be read: {error.strerror or error}"
