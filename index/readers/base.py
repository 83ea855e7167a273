"""What every reader is given and gives back.

A reader is a pure function from bytes to an `Extraction` (or a `Skip` that says why there is none). It opens
no file, keeps no state, and may crash, hang or grow: `isolate` runs it in a process that can be killed. A
reader module declares one `READER`; `registry` finds it, so that a new format is one new file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from likewise.errors import ReadError
from likewise.index.records import DocumentState, Extraction, Skip

MEBI = 1 << 20


@dataclass(frozen=True, slots=True)
class ReaderLimits:
    """What one document may cost.

    Attributes:
        max_bytes: Larger files end as too-large and are not opened.
        max_characters: Extracted text beyond this ends as too-large (a small file can unpack into a huge
            text).
        seconds: Wall-clock time for one document.
        memory_bytes: Address space of the worker process, where the platform can limit it.
    """

    max_bytes: int = 32 * MEBI
    max_characters: int = 32 * MEBI
    seconds: float = 60.0
    memory_bytes: int = 2048 * MEBI

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_characters", "seconds", "memory_bytes"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be positive, got {getattr(self, name)}")


@dataclass(frozen=True, slots=True)
class Source:
    """One document as a reader gets it.

    Attributes:
        data: The whole file.
        suffix: Lower-case suffix of its name with the dot (".md"), or "".
        name: Its file name, lower-case, for formats that are known by name ("makefile").
        kind: What `sniff` found it to be, one of the reader's kinds.
        max_characters: See `ReaderLimits`.
    """

    data: bytes
    suffix: str = ""
    name: str = ""
    kind: str = "text"
    max_characters: int = 32 * MEBI


class Unreadable(ReadError):
    """A document that gives no text. Readers raise it anywhere; the registry turns it into a `Skip`.

    Args:
        state: Any state but `OK`.
        reason: One sentence for a person.
    """

    def __init__(self, state: DocumentState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


def too_much_text(limit: int) -> Unreadable:
    """The error for text that grows beyond `limit` characters."""
    return Unreadable(DocumentState.TOO_LARGE, f"holds more than {limit:,} characters of text")


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader and what it takes.

    Attributes:
        name: Short and stable; part of `Extraction.reader`.
        version: Raised whenever the reader gives other output for the same bytes, so that files are read
            again.
        read: The function. It returns the extraction with `reader` left "" (the registry fills it in), or
            raises `Unreadable`.
        kinds: Binary formats by the names that `sniff` gives them.
        suffixes: Text formats by suffix, lower-case with the dot.
        names: Text formats by whole file name, lower-case.
    """

    name: str
    version: int
    read: Callable[[Source], Extraction]
    kinds: frozenset[str] = field(default=frozenset())
    suffixes: frozenset[str] = field(default=frozenset())
    names: frozenset[str] = field(default=frozenset())

    @property
    def id(self) -> str:
        """Name and version, as it stands in `Extraction.reader`: `"markdown/1"`."""
        return f"{self.name}/{self.version}"


@dataclass(frozen=True, slots=True)
class FileContent:
    """A file as of the moment it was read.

    Attributes:
        content_hash: SHA-256 of the bytes, hexadecimal; "" where they were not read (too large, forbidden).
        size: Bytes.
        mtime_ns: Modification time in nanoseconds since the epoch.
    """

    content_hash: str
    size: int
    mtime_ns: int


@dataclass(frozen=True, slots=True)
class Vanished(Skip):
    """The file was gone when it was to be read: to the index it is a deleted file, not a failed one."""


@dataclass(frozen=True, slots=True)
class ReadResult:
    """What `ReaderPool.read_many` yields for each file.

    Attributes:
        key: The key it was asked for with.
        content: The bytes' identity, or None where not even the file's size is known.
        outcome: Its text, or why there is none.
    """

    key: str
    content: FileContent | None
    outcome: Extraction | Skip
