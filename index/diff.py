"""Compare what the sources hold with what the catalogue holds: size, then time, then content.

Decides what to read and what not; reads nothing but the bytes of files that may be unchanged or renamed, and
only to hash them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NamedTuple

from likewise.index.readers.base import FileContent
from likewise.index.records import DocumentState
from likewise.index.scan import FileEntry

_RACE_NS = 2_000_000_000
"""Coarsest resolution of modification times among file systems in use (FAT): 2 s."""


class KnownDocument(NamedTuple):
    """What the comparison needs of a stored document."""

    size: int
    mtime_ns: int
    content_hash: str
    state: DocumentState
    reader: str


class Move(NamedTuple):
    """A stored document that is found at another place with the same content."""

    key: str
    entry: FileEntry
    content: FileContent


@dataclass(slots=True)
class Plan:
    """What a sync has to do.

    Attributes:
        read: Files to read: new, changed, or worth another try.
        touched: Files with a new time and the same content.
        moves: Documents that only moved.
        gone: Keys of documents whose files are no longer there.
        unchanged: Documents that stay as they are, the touched ones included.
    """

    read: list[FileEntry] = field(default_factory=list)
    touched: list[tuple[str, FileContent]] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    unchanged: int = 0


def compare(
    found: Mapping[str, FileEntry],
    known: Mapping[str, KnownDocument],
    *,
    content_of: Callable[[FileEntry], FileContent | None],
    readers: Set[str],
    cut_again: bool,
    unlisted: Sequence[str] = (),
    max_bytes: int | None = None,
) -> Plan:
    """What changed.

    Args:
        found: Files by key.
        known: Stored documents by key, only those that the sync may touch.
        content_of: Hashes a file; None if it cannot be read or is gone.
        readers: Readers of this version; what another one read is read again.
        cut_again: Whether documents with text must be cut into passages anew.
        unlisted: Keys of folders, "/" at the end, that could not be listed: what lies there is not gone.
        max_bytes: Size up to which files are read: one that was too large may fit now. None reads no such
            file again until it changes.
    """
    plan = Plan()
    new: list[FileEntry] = []
    for key, entry in found.items():
        old = known.get(key)
        if old is None:
            new.append(entry)
        elif _must_read(old, readers, cut_again) or _fits_now(old, entry, max_bytes):
            plan.read.append(entry)
        elif (old.size, old.mtime_ns) == (entry.size, entry.mtime_ns):
            plan.unchanged += 1
        elif _same_content(old, entry, content := _hashed(old, entry, content_of)):
            assert content is not None
            plan.touched.append((key, content))
            plan.unchanged += 1
        else:
            plan.read.append(entry)
    prefixes = tuple(unlisted)
    missing = {key: old for key, old in known.items() if key not in found and not key.startswith(prefixes)}
    moved = _moves(new, missing, content_of, readers, cut_again)
    plan.moves = list(moved.values())
    plan.read.extend(entry for entry in new if entry.key not in moved)
    moved_from = {move.key for move in moved.values()}
    plan.gone = [key for key in missing if key not in moved_from]
    return plan


def settled_mtime(content: FileContent, now_ns: int) -> int:
    """The modification time to store for a file that was read at `now_ns`.

    A file written again within the resolution of its clock keeps size and time while its content changes
    (git calls such an entry racily clean). Its time is stored one nanosecond off, so that the next comparison
    looks at the content.

    Example:
        >>> settled_mtime(FileContent("", 1, mtime_ns=5_000_000_000), now_ns=6_000_000_000)
        4999999999
        >>> settled_mtime(FileContent("", 1, mtime_ns=5_000_000_000), now_ns=9_000_000_000)
        5000000000
    """
    return content.mtime_ns - (0 if now_ns - content.mtime_ns > _RACE_NS else 1)


def _must_read(old: KnownDocument, readers: Set[str], cut_again: bool) -> bool:
    if old.reader not in readers or (cut_again and old.state is DocumentState.OK):
        return True
    # Never read to the end: no permission, a failing disk, or a sync that was killed halfway. What is too
    # large was not read either; `_fits_now` decides about that.
    return not old.content_hash and old.state is not DocumentState.TOO_LARGE


def _fits_now(old: KnownDocument, entry: FileEntry, max_bytes: int | None) -> bool:
    unread = old.state is DocumentState.TOO_LARGE and not old.content_hash
    return unread and max_bytes is not None and entry.size <= max_bytes


def _hashed(
    old: KnownDocument, entry: FileEntry, content_of: Callable[[FileEntry], FileContent | None]
) -> FileContent | None:
    return content_of(entry) if old.size == entry.size and old.content_hash else None


def _same_content(old: KnownDocument, entry: FileEntry, content: FileContent | None) -> bool:
    return content is not None and content.content_hash == old.content_hash


def _moves(
    new: Iterable[FileEntry],
    missing: Mapping[str, KnownDocument],
    content_of: Callable[[FileEntry], FileContent | None],
    readers: Set[str],
    cut_again: bool,
) -> dict[str, Move]:
    """New files that hold what a missing document held, by new key."""
    by_size: defaultdict[int, dict[str, list[str]]] = defaultdict(dict)
    for key, old in missing.items():
        if old.content_hash and not _must_read(old, readers, cut_again):
            by_size[old.size].setdefault(old.content_hash, []).append(key)
    found: dict[str, Move] = {}
    for entry in new:
        candidates = by_size.get(entry.size)
        content = content_of(entry) if candidates else None
        if not candidates or content is None:
            continue
        keys = candidates.get(content.content_hash, [])
        # Another suffix may mean another reader: such a file is read, and its vectors are found by text.
        match = next((key for key in keys if _alike(key, entry.key)), None)
        if match is not None:
            keys.remove(match)
            found[entry.key] = Move(match, entry, content)
    return found


def _alike(old: str, new: str) -> bool:
    a, b = PurePosixPath(old), PurePosixPath(new)
    return a.name == b.name or (bool(a.suffix) and a.suffix.lower() == b.suffix.lower())
